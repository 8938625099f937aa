"""JSON-LD 1.1 contexts: the Context Processing algorithm (JSON-LD API, section 4.1). Terms: `definitions`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quadloom.documents.syntaxes import iri as jsonld_iri
from quadloom.documents.syntaxes.jsonld.definitions import Definitions
from quadloom.documents.syntaxes.jsonld.json import Json
from quadloom.documents.syntaxes.jsonld.terms import KEYWORDS, ActiveContext, invalid

MAX_CONTEXTS = 32  # remote contexts within each other; the specification leaves the number to us ("context overflow")

_NOT_TERMS = frozenset(
    ["@base", "@direction", "@import", "@language", "@propagate", "@protected", "@version", "@vocab"]
)
# A long base or vocabulary repeated by many short names would multiply a small page.
_MAX_NAMESPACE = 4096


class RemoteContext(msgspec.Struct, frozen=True):
    """A dereferenced context. `url` is its address after redirects.

    Bundled ones come as a finished `shared` context; their `local` form is made only if a document needs it.
    """

    url: str
    local: Callable[[], Json]
    shared: ActiveContext | None = None


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
        remotes: tuple[str, ...] = (),
        override_protected: bool = False,
        propagate: bool = True,
        validate_scoped: bool = True,
    ) -> ActiveContext:
        result = active.copy()
        if isinstance(local, dict) and isinstance(local.get("@propagate"), bool):
            propagate = bool(local["@propagate"])
        if not propagate and result.previous is None:
            result.previous = active
        for context in local if isinstance(local, list) else (local,):
            if context is None:
                if not override_protected and active.protects:
                    raise invalid("invalid context nullification")
                fresh = ActiveContext.initial(active.original_base)
                fresh.previous = None if propagate else result.previous
                result = fresh
            elif isinstance(context, str):
                result = self._remote(result, context, base_url, remotes, validate_scoped)
            elif isinstance(context, dict):
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
        if remote.shared is not None and result.is_initial() and not self.old:
            shared = remote.shared.copy()
            shared.base, shared.original_base = result.base, result.original_base
            shared.previous = result.previous
            return shared
        return self.process(
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
            self.process(result, scoped, base_url, remotes=remotes, override_protected=True, validate_scoped=False)

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
