"""JSON-LD 1.1 contexts: the Context Processing algorithm (JSON-LD API, section 4.1). Terms: `definitions`.

A processed context is a value that depends on the contexts applied so far and on what is applied to them
(`ActiveContext.history`), so each is made once per process and shared. Real pages name schema.org again in
nested nodes, up to 43 times on one page, and defining its 3,000 terms takes 15 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import msgspec

from quadloom.documents.syntaxes import iri as jsonld_iri
from quadloom.documents.syntaxes.jsonld import contexts
from quadloom.documents.syntaxes.jsonld.definitions import Definitions
from quadloom.documents.syntaxes.jsonld.json import Json
from quadloom.documents.syntaxes.jsonld.terms import KEYWORDS, ActiveContext, invalid
from quadloom.errors import SyntaxInvalid

MAX_CONTEXTS = 32  # remote contexts within each other; the specification leaves the number to us ("context overflow")

_NOT_TERMS = frozenset(
    ["@base", "@direction", "@import", "@language", "@propagate", "@protected", "@version", "@vocab"]
)
_MAX_CACHED_CONTEXTS = 256
_MAX_CACHED_TERMS = 200_000  # of all cached contexts: about 20 MB
_MAX_KEY = 16384  # bytes of JSON; longer contexts are not cached
_MAX_HISTORY = 8  # contexts within each other; a deeper one is processed each time
# A long base or vocabulary repeated by many short names would multiply a small page.
_MAX_NAMESPACE = 4096


class RemoteContext(msgspec.Struct, frozen=True, eq=False):
    """A dereferenced context. `url` is its address after redirects.

    Bundled ones come as a finished `shared` context; their `local` form is made only if a document needs it.
    `independent`: see `is_independent`.
    """

    url: str
    local: Callable[[], Json]
    shared: ActiveContext | None = None
    independent: bool = False


class ContextCache:
    """Active contexts by their history, for all pages of a process. It is emptied when full."""

    def __init__(self) -> None:
        self._known: dict[tuple[Hashable, ...], ActiveContext] = {}
        self._terms = 0

    def get(self, history: tuple[Hashable, ...]) -> ActiveContext | None:
        return self._known.get(history)

    def put(self, history: tuple[Hashable, ...], context: ActiveContext) -> None:
        if len(self._known) >= _MAX_CACHED_CONTEXTS or self._terms + len(context.terms) > _MAX_CACHED_TERMS:
            self._known.clear()
            self._terms = 0
        self._known[history] = context
        self._terms += len(context.terms)


_CACHE = ContextCache()


class ContextProcessor:
    """Turns local contexts into active ones, for one document. `load` dereferences and enforces its own limits."""

    def __init__(self, load: Callable[[str], RemoteContext], *, mode: str = "json-ld-1.1") -> None:
        self.load = load
        self.old = mode == "json-ld-1.0"

    def process(
        self,
        active: ActiveContext,
        local: Json,
        base_url: str | None,
        *,
        override_protected: bool = False,
        propagate: bool = True,
    ) -> ActiveContext:
        """The active context after `local`; it may be shared, so it must not be changed."""
        history = self._history(active, local, base_url, override_protected, propagate)
        if history is None:
            return self._process(active, local, base_url, override_protected=override_protected, propagate=propagate)
        known = _CACHE.get(history)
        if known is None:
            made = self._process(active, local, base_url, override_protected=override_protected, propagate=propagate)
            known = msgspec.structs.replace(made, history=history)
            _CACHE.put(history, known)
        return known.rebased(active.base)

    def _history(
        self, active: ActiveContext, local: Json, base_url: str | None, override_protected: bool, propagate: bool
    ) -> tuple[Hashable, ...] | None:
        """What the result depends on besides the base, or None if it is not to be cached."""
        if active.history is None or len(active.history) >= _MAX_HISTORY or self.old:
            return None
        key = self._key(local, base_url)
        if key is None:
            return None
        return (*active.history, key if propagate and not override_protected else (key, override_protected, propagate))

    def _key(self, local: Json, base_url: str | None) -> Hashable | None:
        if isinstance(local, str):
            bundled = contexts.find(local)
            if bundled is not None:
                return bundled.url
            try:
                remote = self.load(jsonld_iri.resolve(base_url or "", local))
            except SyntaxInvalid:
                return None  # processing says so
            return remote if remote.independent else None
        if not isinstance(local, (dict, list)) or not is_independent(local):
            return None
        try:
            key = msgspec.json.encode(local)
        except UnicodeEncodeError:  # half a surrogate pair
            return None
        return key if len(key) <= _MAX_KEY else None

    def _process(
        self,
        active: ActiveContext,
        local: Json,
        base_url: str | None,
        *,
        remotes: tuple[str, ...] = (),
        override_protected: bool = False,
        propagate: bool = True,
        validate_scoped: bool = True,
    ) -> ActiveContext:
        result = active
        if isinstance(local, dict) and isinstance(local.get("@propagate"), bool):
            propagate = bool(local["@propagate"])
        if not propagate and result.previous is None:
            result = msgspec.structs.replace(result, previous=active, history=None)
        for context in local if isinstance(local, list) else (local,):
            if context is None:
                if not override_protected and active.protects:
                    raise invalid("invalid context nullification")
                fresh = ActiveContext.initial(active.original_base)
                if not propagate:
                    fresh.previous, fresh.history = result.previous, None
                result = fresh
            elif isinstance(context, str):
                result = self._remote(result, context, base_url, remotes, validate_scoped)
            elif isinstance(context, dict):
                result = result.copy()
                self._define(result, context, base_url, remotes, override_protected)
            else:
                raise invalid("invalid local context", context)
        return result

    def _remote(
        self,
        result: ActiveContext,
        reference: str,
        base_url: str | None,
        remotes: tuple[str, ...],
        validate_scoped: bool,
    ) -> ActiveContext:
        url = jsonld_iri.resolve(base_url or "", reference)
        if not jsonld_iri.has_iri_form(url):
            raise invalid("loading document failed", reference)
        if url in remotes:
            if not validate_scoped:
                return result
            raise invalid("recursive context inclusion" if self.old else "context overflow", url)
        if len(remotes) >= MAX_CONTEXTS:
            raise invalid("context overflow", url)
        remote = self.load(url)
        if remote.shared is not None and not self.old:
            joined = result.joined(remote.shared)
            if joined is not None:
                return joined
        return self._process(
            result, remote.local(), remote.url, remotes=(*remotes, url), validate_scoped=validate_scoped
        )

    def _define(
        self,
        result: ActiveContext,
        context: dict[str, Json],
        base_url: str | None,
        remotes: tuple[str, ...],
        override_protected: bool,
    ) -> None:
        """Apply one context definition to `result`, in place: it is a copy that is not shared yet."""
        if "@version" in context:
            if context["@version"] != 1.1 or isinstance(context["@version"], bool):
                raise invalid("invalid @version value", context["@version"])
            if self.old:
                raise invalid("processing mode conflict")
        if "@import" in context:
            context = self._import(context, base_url)
        self._set_defaults(result, context, from_document=not remotes)
        protected = context.get("@protected", False)
        if not isinstance(protected, bool):
            raise invalid("invalid @protected value", protected)

        def check_scoped(scoped: Json) -> None:
            self._process(result, scoped, base_url, remotes=remotes, override_protected=True, validate_scoped=False)

        definitions = Definitions(
            result,
            context,
            check_scoped,
            base_url=base_url,
            protected=protected,
            override_protected=override_protected,
            old=self.old,
        )
        for key in context:
            if key not in _NOT_TERMS:
                definitions.define(key)

    def _import(self, context: dict[str, Json], base_url: str | None) -> dict[str, Json]:
        reference = context["@import"]
        if self.old:
            raise invalid("invalid context entry", "@import")
        if not isinstance(reference, str):
            raise invalid("invalid @import value", reference)
        imported = self.load(jsonld_iri.resolve(base_url or "", reference)).local()
        if not isinstance(imported, dict):
            raise invalid("invalid remote context", reference)
        if "@import" in imported:
            raise invalid("invalid context entry", "@import")
        return {**imported, **context}

    def _set_defaults(self, result: ActiveContext, context: dict[str, Json], *, from_document: bool) -> None:
        if "@base" in context and from_document:
            result.base = _base(context["@base"], result.base)
        if "@vocab" in context:
            result.vocab = self._vocab(context["@vocab"], result)
        if "@language" in context:
            language = context["@language"]
            if language is not None and not isinstance(language, str):
                raise invalid("invalid default language", language)
            result.language = language if language is None else language.lower()
        if "@direction" in context:
            direction = context["@direction"]
            if self.old:
                raise invalid("invalid context entry", "@direction")
            if direction not in (None, "ltr", "rtl"):
                raise invalid("invalid base direction", direction)
            result.direction = direction if isinstance(direction, str) else None
        if "@propagate" in context:
            if self.old:
                raise invalid("invalid context entry", "@propagate")
            if not isinstance(context["@propagate"], bool):
                raise invalid("invalid @propagate value", context["@propagate"])

    def _vocab(self, value: Json, result: ActiveContext) -> str | None:
        if value is None:
            return None
        if not isinstance(value, str):
            raise invalid("invalid vocab mapping", value)
        if self.old and not value.startswith("_:") and not jsonld_iri.has_iri_form(value):
            raise invalid("invalid vocab mapping", value)
        expanded = result.expand(value, relative=True, vocab=True)
        if expanded is None or (value and expanded in KEYWORDS) or len(expanded) > _MAX_NAMESPACE:
            raise invalid("invalid vocab mapping", value[:200])
        return expanded


def is_independent(local: Json) -> bool:
    """Whether a context gives the same terms on every page: bundled or inline, and without relative IRIs."""
    if isinstance(local, list):
        return all(map(is_independent, local))
    if isinstance(local, str):
        return contexts.find(local) is not None
    if not isinstance(local, dict):
        return local is None
    if "@base" in local or "@import" in local:
        return False
    vocab = local.get("@vocab", "a://")
    return (
        isinstance(vocab, str)
        and "://" in vocab
        and all(
            is_independent(entry["@context"])
            for entry in local.values()
            if isinstance(entry, dict) and "@context" in entry
        )
    )


def _base(value: Json, base: str | None) -> str | None:
    if value is None:
        return None
    if isinstance(value, str):
        if jsonld_iri.has_iri_form(value):
            resolved = value
        else:
            resolved = jsonld_iri.resolve(base, value) if base is not None else ""
        if resolved and len(resolved) <= _MAX_NAMESPACE:
            return resolved
        value = value[:200]
    raise invalid("invalid base IRI", value)
