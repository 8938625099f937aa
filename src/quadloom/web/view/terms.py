"""RDF terms as pages show them: their labels, safe links, and the language and direction of texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from urllib.parse import quote_plus

import msgspec
import pyoxigraph as ox

from quadloom.asking.entity import Value, graph_of, value_of_term
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.profile import label_of
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.quads.json_results import Binding

_XSD = "http://www.w3.org/2001/XMLSchema#"
_PLAIN = (f"{_XSD}string", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString")
_MAX_LABELS = 200
# Scripts written from right to left, and the languages that use one of them unless their tag says otherwise.
_RIGHT_TO_LEFT = frozenset(("ar", "ckb", "dv", "fa", "he", "iw", "ji", "ks", "ps", "sd", "syr", "ug", "ur", "yi"))
_SCRIPTS = {"arab": "rtl", "hebr": "rtl", "syrc": "rtl", "thaa": "rtl", "latn": "ltr", "cyrl": "ltr", "deva": "ltr"}


class StatementView(msgspec.Struct, frozen=True):
    subject: Value
    predicate: str
    object: Value
    graph: str


def value_of_binding(binding: Binding) -> Value:
    """A cell of a query's result."""
    kind = {"uri": "iri", "bnode": "blank"}.get(binding.type, "literal")
    return Value(kind, str(binding.value), binding.language, binding.datatype)


def statements(lines: Iterable[str]) -> Iterator[StatementView]:
    """N-Quads lines from a store as statements."""
    for quad in ox.parse("\n".join(lines).encode(), ox.RdfFormat.N_QUADS, lenient=True):
        subject, object = value_of_term(quad.subject), value_of_term(quad.object)
        yield StatementView(subject, quad.predicate.value, object, graph_of(quad))


def is_web(iri: str) -> bool:
    """The only schemes that a link on a page may have: crawled `javascript:` and `data:` links are attacks."""
    return iri[:7].lower() == "http://" or iri[:8].lower() == "https://"


def is_iri(text: str) -> bool:
    """Absolute, and without the characters that would end it inside `<` and `>`."""
    if ":" not in text or any(mark in '<>"{}|\\^`' or mark <= " " for mark in text):
        return False
    try:
        ox.NamedNode(text)  # stores refuse others
    except ValueError:
        return False
    return True


def labels(quads: QuadStore, iris: Iterable[str]) -> dict[str, str]:
    """IRI → its label, for those of the first few hundred that have one: people read “Ada Yamada”, not an address."""
    wanted = [iri for iri in list(dict.fromkeys(iris))[:_MAX_LABELS] if is_iri(iri)]
    return {iri: label for iri in wanted if (label := label_of(quads, iri))}


@lru_cache(maxsize=1024)
def direction(language: str) -> str:
    """`rtl`, `ltr`, or `auto` if the tag is empty."""
    first, *rest = language.lower().split("-")
    for part in rest:
        if part in _SCRIPTS:
            return _SCRIPTS[part]
    return "auto" if not first else "rtl" if first in _RIGHT_TO_LEFT else "ltr"


# Quoting was a tenth of the cost of a page of results, and most addresses repeat.
quoted = lru_cache(maxsize=8192)(quote_plus)


def entity_link(iri: str) -> str:
    return "/entity?iri=" + quoted(iri)


def page_link(url: str) -> str:
    return "/page?url=" + quoted(url)


def values_query(iri: str) -> str:
    """A SPARQL query for a property's values."""
    return f"SELECT ?thing ?value ?page\nWHERE {{ GRAPH ?page {{ ?thing <{iri}> ?value }} }}\nLIMIT 50"


def vocabulary_of(iri: str) -> str:
    """The namespace of a property: up to and including the last # or /."""
    cut = max(iri.rfind("#"), iri.rfind("/"), iri.rfind(":") if "/" not in iri else -1)
    return iri[: cut + 1]


def shown_datatype(iri: str) -> str:
    """Empty for plain texts, whose datatype adds nothing."""
    return "" if not iri or iri in _PLAIN else shorten(iri)
