"""RDF terms as pages show them: what a link may lead to, and which language and direction a text has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote_plus

import msgspec
import pyoxigraph as ox

from quadloom.asking.entity import Value
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.sparql.service import Binding

_XSD = "http://www.w3.org/2001/XMLSchema#"
_PLAIN = (f"{_XSD}string", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString")
# Scripts written from right to left, and the languages that use one of them unless their tag says otherwise.
_RIGHT_TO_LEFT = frozenset(("ar", "ckb", "dv", "fa", "he", "iw", "ji", "ks", "ps", "sd", "syr", "ug", "ur", "yi"))
_SCRIPTS = {"arab": "rtl", "hebr": "rtl", "syrc": "rtl", "thaa": "rtl", "latn": "ltr", "cyrl": "ltr", "deva": "ltr"}


class StatementView(msgspec.Struct, frozen=True):
    subject: Value
    predicate: str
    object: Value
    graph: str


def value_of(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Value:
    if isinstance(term, ox.NamedNode):
        return Value("iri", term.value)
    if isinstance(term, ox.Literal):
        return Value("literal", term.value, term.language or "", term.datatype.value)
    return Value("blank", str(term))


def value_of_binding(binding: Binding) -> Value:
    """A cell of a query's result."""
    kind = {"uri": "iri", "bnode": "blank"}.get(binding.type, "literal")
    return Value(kind, str(binding.value), binding.language, binding.datatype)


def statements(lines: Iterable[str]) -> Iterator[StatementView]:
    """N-Quads lines, which our own stores gave, as statements."""
    for quad in ox.parse("\n".join(lines).encode(), ox.RdfFormat.N_QUADS, lenient=True):
        graph = quad.graph_name.value if isinstance(quad.graph_name, ox.NamedNode) else ""
        yield StatementView(value_of(quad.subject), quad.predicate.value, value_of(quad.object), graph)


def is_web(iri: str) -> bool:
    """The only schemes that a link on our pages may have: `javascript:` and `data:` are somebody's attack."""
    return iri[:7].lower() == "http://" or iri[:8].lower() == "https://"


def is_iri(text: str) -> bool:
    """Absolute, and without the characters that would end it inside `<` and `>`."""
    return ":" in text and not any(mark in '<>"{}|\\^`' or mark <= " " for mark in text)


def direction(language: str) -> str:
    """`rtl`, `ltr`, or `auto` where the tag does not tell."""
    first, *rest = language.lower().split("-")
    for part in rest:
        if part in _SCRIPTS:
            return _SCRIPTS[part]
    return "auto" if not first else "rtl" if first in _RIGHT_TO_LEFT else "ltr"


# Quoting was a tenth of the cost of a page of results, and most addresses come again.
quoted = lru_cache(maxsize=8192)(quote_plus)


def entity_link(iri: str) -> str:
    return "/entity?iri=" + quoted(iri)


def page_link(url: str) -> str:
    return "/page?url=" + quoted(url)


def values_query(iri: str) -> str:
    """What asks for a property's values."""
    return f"SELECT ?thing ?value ?page\nWHERE {{ GRAPH ?page {{ ?thing <{iri}> ?value }} }}\nLIMIT 50"


def vocabulary_of(iri: str) -> str:
    """The namespace of a property: up to and including the last # or /."""
    cut = max(iri.rfind("#"), iri.rfind("/"), iri.rfind(":") if "/" not in iri else -1)
    return iri[: cut + 1]


def shown_datatype(iri: str) -> str:
    """Empty for plain texts, whose datatype says nothing."""
    return "" if not iri or iri in _PLAIN else shorten(iri)
