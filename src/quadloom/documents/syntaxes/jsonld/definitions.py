"""JSON-LD 1.1 term definitions: the Create Term Definition algorithm (JSON-LD API, section 4.2)."""

from __future__ import annotations

from collections.abc import Callable

from quadloom.documents.syntaxes import iri as jsonld_iri
from quadloom.documents.syntaxes.jsonld.json import Json
from quadloom.documents.syntaxes.jsonld.terms import KEYWORDS, ActiveContext, TermDefinition, has_keyword_form, invalid
from quadloom.errors import SyntaxInvalid

_ENTRIES = frozenset((
    "@id", "@reverse", "@container", "@context", "@direction", "@index", "@language", "@nest", "@prefix", "@protected",
    "@type",
))  # fmt: skip
_CONTAINERS = frozenset(["@graph", "@id", "@index", "@language", "@list", "@set", "@type"])
_GENERIC_DELIMITERS = (":", "/", "?", "#", "[", "]", "@")


class Definitions:
    """The terms of one local context, entering the active context `active`, which is not shared yet.

    A term may rest on others of the same local context (a prefix, a type), which are then defined first; `done` maps a
    term to whether its definition is complete, so that a cycle is noticed.
    """

    def __init__(
        self,
        active: ActiveContext,
        local: dict[str, Json],
        check_scoped: Callable[[Json], None],
        *,
        base_url: str | None,
        protected: bool,
        override_protected: bool,
        old: bool,
    ) -> None:
        self._active = active
        self._local = local
        self._check_scoped = check_scoped
        self._base_url = base_url
        self._protected = protected
        self._override = override_protected
        self._old = old
        self._done: dict[str, bool] = {}

    def define(self, name: str) -> None:
        done = self._done.get(name)
        if done is not None:
            if done:
                return
            raise invalid("cyclic IRI mapping", name)
        if name == "":
            raise invalid("invalid term definition", "the empty string is not a term")
        self._done[name] = False
        value = self._local[name]
        if not self._may_be_defined(name, value):
            return
        previous = self._active.terms.pop(name, None)
        term = self._term(name, value)
        if term is None:
            return
        if previous is not None and previous.protected and not self._override:
            if not term.same_as(previous):
                raise invalid("protected term redefinition", name)
            term = previous
        self._active.terms[name] = term
        self._active.protects = self._active.protects or term.protected
        self._done[name] = True

    def _may_be_defined(self, name: str, value: Json) -> bool:
        if name == "@type":
            allowed = isinstance(value, dict) and bool(value) and value.keys() <= {"@container", "@protected"}
            if self._old or not allowed or (isinstance(value, dict) and value.get("@container", "@set") != "@set"):
                raise invalid("keyword redefinition", name)
        elif name in KEYWORDS:
            raise invalid("keyword redefinition", name)
        elif has_keyword_form(name):
            return False
        return True

    def _term(self, name: str, value: Json) -> TermDefinition | None:
        """The definition of `name`, or None if it is to be ignored."""
        simple = isinstance(value, str)
        entry: dict[str, Json]
        if value is None or isinstance(value, str):
            entry = {"@id": value}
        elif isinstance(value, dict):
            entry = value
        else:
            raise invalid("invalid term definition", name)
        term = TermDefinition()
        term.protected = self._protected
        if "@protected" in entry:
            protected = entry["@protected"]
            self._only_new("invalid term definition", "@protected")
            if not isinstance(protected, bool):
                raise invalid("invalid @protected value", protected)
            term.protected = protected
        if "@type" in entry:
            term.type = self._type(entry["@type"])
        if "@reverse" in entry:
            return self._reverse(name, entry, term)
        if not self._map(name, entry, term, simple):
            return None
        self._set_details(name, entry, term)
        unknown = entry.keys() - _ENTRIES
        if unknown:
            raise invalid("invalid term definition", f"{name} has {min(unknown)}")
        return term

    def _type(self, value: Json) -> str:
        if not isinstance(value, str):
            raise invalid("invalid type mapping", value)
        expanded = self._expand(value)
        if expanded in ("@json", "@none") and not self._old:
            return expanded
        if expanded not in ("@id", "@vocab") and (
            expanded is None or expanded.startswith("_:") or not jsonld_iri.has_iri_form(expanded)
        ):
            raise invalid("invalid type mapping", value)
        return expanded

    def _reverse(self, name: str, entry: dict[str, Json], term: TermDefinition) -> TermDefinition | None:
        value = entry["@reverse"]
        if "@id" in entry or "@nest" in entry:
            raise invalid("invalid reverse property", name)
        if not isinstance(value, str):
            raise invalid("invalid IRI mapping", value)
        if has_keyword_form(value):
            return None
        term.iri = self._expand(value)
        if term.iri is None or not _is_iri_or_blank(term.iri):
            raise invalid("invalid IRI mapping", value)
        container = entry.get("@container")
        if container is not None:
            if container not in ("@set", "@index"):
                raise invalid("invalid reverse property", container)
            term.container = frozenset((str(container),))
        term.reverse = True
        return term

    def _map(self, name: str, entry: dict[str, Json], term: TermDefinition, simple: bool) -> bool:
        """Find the IRI of a term (steps 14 to 18). False if the term is to be ignored."""
        colon = name.find(":", 1)
        if "@id" in entry and entry["@id"] != name:
            return self._map_by_id(name, entry["@id"], term, simple)
        if colon > 0:
            prefix = name[:colon]
            if prefix in self._local:
                self.define(prefix)
            known = self._active.terms.get(prefix)
            term.iri = known.iri + name[colon + 1 :] if known is not None and known.iri is not None else name
        elif "/" in name:
            term.iri = self._expand(name)
            if term.iri is None or not jsonld_iri.has_iri_form(term.iri):
                raise invalid("invalid IRI mapping", name)
        elif name == "@type":
            term.iri = "@type"
        elif self._active.vocab is not None:
            term.iri = self._active.vocab + name
        else:
            raise invalid("invalid IRI mapping", name)
        return True

    def _map_by_id(self, name: str, value: Json, term: TermDefinition, simple: bool) -> bool:
        if value is None:
            return True
        if not isinstance(value, str):
            raise invalid("invalid IRI mapping", value)
        if value not in KEYWORDS and has_keyword_form(value):
            return False
        iri = self._expand(value)
        if iri is None or not (iri in KEYWORDS or _is_iri_or_blank(iri)):
            raise invalid("invalid IRI mapping", value)
        if iri == "@context":
            raise invalid("invalid keyword alias", name)
        term.iri = iri
        if ":" in name[1:-1] or "/" in name:
            self._done[name] = True
            if self._expand(name) != iri:
                raise invalid("invalid IRI mapping", name)
        if ":" not in name and "/" not in name and simple:
            term.prefix = iri.endswith(_GENERIC_DELIMITERS) or iri.startswith("_:")
        return True

    def _set_details(self, name: str, entry: dict[str, Json], term: TermDefinition) -> None:
        if "@container" in entry:
            term.container = self._container(entry["@container"])
            if "@type" in term.container:
                term.type = term.type or "@id"
                if term.type not in ("@id", "@vocab"):
                    raise invalid("invalid type mapping", term.type)
        if "@index" in entry:
            term.index = self._index(entry["@index"], term)
        if "@context" in entry:
            self._only_new("invalid term definition", "@context")
            try:
                self._check_scoped(entry["@context"])
            except SyntaxInvalid as error:
                raise invalid("invalid scoped context", error.message) from None
            term.context, term.base_url = entry["@context"], self._base_url
        if "@type" not in entry:
            self._set_strings(entry, term)
        if "@nest" in entry:
            self._only_new("invalid term definition", "@nest")
            nest = entry["@nest"]
            if not isinstance(nest, str) or (nest in KEYWORDS and nest != "@nest"):
                raise invalid("invalid @nest value", nest)
            term.nest = nest
        if "@prefix" in entry:
            prefix = entry["@prefix"]
            if self._old or ":" in name or "/" in name:
                raise invalid("invalid term definition", f"{name} has @prefix")
            if not isinstance(prefix, bool):
                raise invalid("invalid @prefix value", prefix)
            if prefix and term.iri in KEYWORDS:
                raise invalid("invalid term definition", f"{name} has @prefix")
            term.prefix = prefix

    def _container(self, value: Json) -> frozenset[str]:
        names = frozenset(item for item in value if isinstance(item, str)) if isinstance(value, list) else None
        if isinstance(value, str):
            names = frozenset((value,))
        if not names or not names <= _CONTAINERS or (isinstance(value, list) and len(names) != len(value)):
            raise invalid("invalid container mapping", value)
        if self._old and (not isinstance(value, str) or names & {"@graph", "@id", "@type"}):
            raise invalid("invalid container mapping", value)
        rest = names - {"@set"}
        fits = len(rest) <= 1 or ("@graph" in rest and len(rest) == 2 and rest & {"@id", "@index"})
        if not fits or ("@list" in names and len(names) > 1):
            raise invalid("invalid container mapping", value)
        return names

    def _index(self, value: Json, term: TermDefinition) -> str:
        self._only_new("invalid term definition", "@index")
        expanded = self._expand(value) if isinstance(value, str) else None
        if "@index" not in term.container or expanded is None or not jsonld_iri.has_iri_form(expanded):
            raise invalid("invalid term definition", value)
        return str(value)

    def _set_strings(self, entry: dict[str, Json], term: TermDefinition) -> None:
        if "@language" in entry:
            language = entry["@language"]
            if language is not None and not isinstance(language, str):
                raise invalid("invalid language mapping", language)
            term.language = language if language is None else language.lower()
        if "@direction" in entry:
            direction = entry["@direction"]
            if direction not in (None, "ltr", "rtl"):
                raise invalid("invalid base direction", direction)
            term.direction = direction if isinstance(direction, str) else None

    def _only_new(self, code: str, entry: str) -> None:
        if self._old:
            raise invalid(code, f"{entry} needs JSON-LD 1.1")

    def _expand(self, value: str) -> str | None:
        """IRI Expansion while terms are still being defined: those which `value` rests on come first."""
        if value in KEYWORDS or has_keyword_form(value):
            return value if value in KEYWORDS else None
        self._complete(value)
        colon = value.find(":", 1)
        if colon > 0 and value not in self._active.terms and not value.startswith("//", colon + 1):
            self._complete(value[:colon])
        return self._active.expand(value, vocab=True)

    def _complete(self, name: str) -> None:
        if name in self._local and not self._done.get(name, False):
            self.define(name)


def _is_iri_or_blank(value: str) -> bool:
    return value.startswith("_:") or jsonld_iri.has_iri_form(value)
