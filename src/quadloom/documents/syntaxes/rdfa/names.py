"""How RDFa attribute values become terms: terms, CURIEs, safe CURIEs and IRIs (RDFa Core 1.1, section 7.4).

Prefix declarations nest like elements. One dictionary with an undo record per element serves all depths, so that a
megabyte of prefixes above a hundred thousand elements is stored once and every lookup stays one dictionary access.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache

from quadloom.documents.memo import Memo
from quadloom.documents.syntaxes.iri import BaseIri, encoded, is_absolute
from quadloom.documents.syntaxes.rdfa.frames import PREFIX_REDEFINITION, UNRESOLVED_CURIE, UNRESOLVED_TERM, Report, Undo
from quadloom.documents.syntaxes.rdfa.hosts import INITIAL_PREFIXES, LINK_TYPES_1_0, XHV
from quadloom.documents.syntaxes.terms import iri as term_of

# A long namespace repeated by many short CURIEs would multiply a small page; no vocabulary in use comes near this.
MAX_NAMESPACE = 2048
_MEMORABLE = 256  # longer IRIs are not kept in memory between pages

_SIMPLE = re.compile(r"[A-Za-z0-9_:.-]+\Z")
_TERM = re.compile(r"[^\W\d][\w.\-/·]*\Z")
_PREFIX = re.compile(r"[^\W\d][\w.\-·]*\Z")


class Names:
    """The names in scope while a document is walked. Terms come out in N-Triples syntax, None = resolves to nothing."""

    def __init__(
        self, document: BaseIri, terms: Mapping[str, str], new_blank: Callable[[], str], report: Report | None
    ) -> None:
        self.declared: dict[str, str] = {}
        self._document = document
        self._terms = terms
        self._new_blank = new_blank
        self._report = report
        self._blanks: dict[str, str] = {}
        self._known: dict[tuple[str, str], str | None] = {}
        self._predicates: dict[tuple[str, str], list[str]] = {}
        self._redefined = 0  # prefixes of the initial context that now mean something else

    def declare(self, pairs: Iterable[tuple[str, str]], undo: Undo) -> None:
        """Adds prefixes to the scope; `undo` receives what `withdraw` needs."""
        for prefix, namespace in pairs:
            prefix = prefix.lower()
            if prefix in ("", "_") or len(namespace) > MAX_NAMESPACE:
                continue
            initial = INITIAL_PREFIXES.get(prefix)
            if self._report and initial and initial != namespace:
                self._report(PREFIX_REDEFINITION, f"The prefix {prefix!r} of the initial context is redefined")
            undo.append((prefix, self.declared.get(prefix)))
            self._set(prefix, namespace)
        self._forget()

    def withdraw(self, undo: Undo) -> None:
        for prefix, before in reversed(undo):
            self._set(prefix, before)
        self._forget()

    def _set(self, prefix: str, namespace: str | None) -> None:
        initial = INITIAL_PREFIXES.get(prefix)
        if initial is not None:
            self._redefined += (namespace or initial) != initial
            self._redefined -= self.declared.get(prefix, initial) != initial
        if namespace is None:
            self.declared.pop(prefix, None)
        else:
            self.declared[prefix] = namespace

    def _forget(self) -> None:
        self._known.clear()
        self._predicates.clear()

    def names(self, value: str, vocabulary: str) -> list[str]:
        """The IRIs of a list of TERMorCURIEorAbsIRI; what resolves to nothing is left out."""
        found = [self.name(token, vocabulary) for token in value.split()]
        return [term for term in found if term]

    def predicates(self, value: str, vocabulary: str) -> list[str]:
        """As `names`; RDF has no blank predicates."""
        if not self._redefined and (shared := _INITIAL_TERMS[value]):
            return shared
        key = (value, vocabulary)
        terms = self._predicates.get(key)
        if terms is None:
            terms = [term for term in self.names(value, vocabulary) if term[0] == "<"]
            self._predicates[key] = terms
        return terms

    links = predicates

    def name(self, token: str, vocabulary: str) -> str | None:
        key = (token, vocabulary)
        if key in self._known:
            return self._known[key]
        term = self._name(token, vocabulary)
        self._known[key] = term
        return term

    def _name(self, token: str, vocabulary: str) -> str | None:
        if ":" not in token:
            if _TERM.match(token):
                if vocabulary:
                    return self._written(vocabulary + token)
                # Exact first, then without regard to case (section 7.4.3).
                iri = self._terms.get(token) or self._terms.get(token.lower())
                if iri:
                    return f"<{iri}>"
            self._missing(UNRESOLVED_TERM, f"The term {token!r} is not defined")
            return None
        term = self.curie(token)
        if term is None and is_absolute(token):
            if "://" not in token:
                self._missing(UNRESOLVED_CURIE, f"The prefix of {token!r} is not declared; it is read as an IRI")
            return self._written(token)
        if term is None:
            self._missing(UNRESOLVED_CURIE, f"The CURIE {token!r} cannot be resolved")
        return term

    def curie(self, token: str) -> str | None:
        """The term of a CURIE whose prefix is known."""
        prefix, colon, rest = token.partition(":")
        if not colon or rest.startswith("//"):
            return None
        if not prefix:
            return self._written(XHV + rest)
        if prefix == "_":
            return self._blank(rest)
        namespace = self._namespace(prefix)
        return None if namespace is None else self._written(namespace + rest)

    def _namespace(self, prefix: str) -> str | None:
        prefix = prefix.lower()
        return self.declared.get(prefix) or INITIAL_PREFIXES.get(prefix)

    def resource(self, value: str | None, base: BaseIri) -> str | None:
        """SafeCURIEorCURIEorIRI of `@about` and `@resource`."""
        if value is None:
            return None
        value = value.strip()
        if value[:1] == "[" and value[-1:] == "]":
            return self._safe_curie(value[1:-1].strip())
        return (self.curie(value) if ":" in value else None) or self.iri(value, base)

    def _safe_curie(self, inner: str) -> str | None:
        term = self.curie(inner)
        if term is None and inner:
            self._missing(UNRESOLVED_CURIE, f"The safe CURIE [{inner}] cannot be resolved")
        return term

    def iri(self, value: str | None, base: BaseIri) -> str | None:
        """The IRI of `@href`, `@src` and `@vocab`."""
        if value is None:
            return None
        return term_of(base.resolve_attribute(value))

    def _written(self, iri: str) -> str | None:
        # A relative namespace is used as it is and becomes absolute by the document's own address (not its base).
        term = _absolute(iri) if len(iri) <= _MEMORABLE else _absolute.__wrapped__(iri)
        return term or self._resolved(iri)

    def _resolved(self, iri: str) -> str | None:
        return term_of(self._document.resolve_attribute(iri))

    def _blank(self, label: str) -> str:
        if label not in self._blanks:
            self._blanks[label] = self._new_blank()
        return self._blanks[label]

    def _missing(self, kind: str, message: str) -> None:
        if self._report:
            self._report(kind, message)


class Names10(Names):
    """RDFa 1.0: CURIEs and link types only, no initial context, references are IRIs or safe CURIEs (section 5.4)."""

    def __init__(
        self,
        document: BaseIri,
        terms: Mapping[str, str],
        new_blank: Callable[[], str],
        report: Report | None,
        *,
        fold_case: bool,
    ) -> None:
        super().__init__(document, terms, new_blank, report)
        self._redefined = 1  # there is no initial context
        self._fold_case = fold_case  # an HTML parser has already folded the names of xmlns attributes

    def declare(self, pairs: Iterable[tuple[str, str]], undo: Undo) -> None:
        for prefix, namespace in pairs:
            if prefix in ("", "_") or len(namespace) > MAX_NAMESPACE:
                continue
            undo.append((prefix, self.declared.get(prefix)))
            self._set(prefix, namespace)
        self._forget()

    def _name(self, token: str, vocabulary: str) -> str | None:
        return self.curie(token)

    def _namespace(self, prefix: str) -> str | None:
        return self.declared.get(prefix.lower() if self._fold_case else prefix)

    def links(self, value: str, vocabulary: str) -> list[str]:
        """`@rel` and `@rev` take the reserved link types beside CURIEs."""
        found: list[str] = []
        for token in value.split():
            word = LINK_TYPES_1_0.get(token.lower())
            term = f"<{word}>" if word else self.curie(token)
            if term and term[0] == "<":
                found.append(term)
        return found

    def resource(self, value: str | None, base: BaseIri) -> str | None:
        if value is None:
            return None
        value = value.strip()
        if value[:1] == "[" and value[-1:] == "]":
            return self._safe_curie(value[1:-1].strip())
        return self.iri(value, base)


@lru_cache(maxsize=4096)
def _absolute(iri: str) -> str | None:
    """The term of an absolute IRI. Pages share vocabularies: 0.1 µs for a known one instead of 0.6."""
    return term_of(encoded(iri))


def _initial_terms(value: str) -> list[str]:
    """The term of one CURIE by the initial context, as nearly all pages write properties; else nothing."""
    prefix, colon, rest = value.partition(":")
    namespace = INITIAL_PREFIXES.get(prefix.lower()) if colon and rest[:2] != "//" and " " not in value else None
    term = _absolute(namespace + rest) if namespace and _SIMPLE.match(rest) else None
    return [term] if term else []


_INITIAL_TERMS = Memo(_initial_terms, 4096)


def prefix_pairs(value: str) -> Iterable[tuple[str, str]]:
    """The declarations in a `@prefix` attribute. A word that is no `name:` is stepped over."""
    tokens = iter(value.split())
    for token in tokens:
        if token[-1] == ":" and _PREFIX.match(token[:-1]):
            namespace = next(tokens, None)
            if namespace is not None:
                yield token[:-1], namespace
