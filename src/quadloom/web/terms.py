"""RDF terms as pages show them: what a link may lead to, and which language and direction a text has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal
from urllib.parse import urlencode

import msgspec
import pyoxigraph as ox

from quadloom.asking.prefixes import shorten

_XSD = "http://www.w3.org/2001/XMLSchema#"
_PLAIN = (f"{_XSD}string", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString")
# Scripts written from right to left, and the languages that use one of them unless their tag says otherwise.
_RIGHT_TO_LEFT = frozenset(("ar", "arc", "ckb", "dv", "fa", "he", "iw", "ji", "ks", "ps", "sd", "syr", "ug", "ur", "yi"))
_SCRIPTS = {"arab": "rtl", "hebr": "rtl", "syrc": "rtl", "thaa": "rtl", "latn": "ltr", "cyrl": "ltr", "deva": "ltr"}


class Term(msgspec.Struct, frozen=True, omit_defaults=True):
    """`type`: iri, literal or blank. `language` and `datatype` as RDF has them; a plain string has neither."""

    type: Literal["iri", "literal", "blank"]
    value: str
    language: str = ""
    datatype: str = ""


class Statement(msgspec.Struct, frozen=True):
    subject: Term
    predicate: str
    object: Term
    graph: str


def term_of(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Term:
    if isinstance(term, ox.NamedNode):
        return Term("iri", term.value)
    if isinstance(term, ox.Literal):
        datatype = term.datatype.value
        return Term("literal", term.value, term.language or "", "" if datatype in _PLAIN else datatype)
    return Term("blank", str(term))


def statements(lines: Iterable[str]) -> Iterator[Statement]:
    """N-Quads lines, which our own stores gave, as statements."""
    for quad in ox.parse("\n".join(lines).encode(), ox.RdfFormat.N_QUADS, lenient=True):
        graph = quad.graph_name.value if isinstance(quad.graph_name, ox.NamedNode) else ""
        yield Statement(term_of(quad.subject), quad.predicate.value, term_of(quad.object), graph)


def is_web(iri: str) -> bool:
    """The only schemes that a link on our pages may have: `javascript:` and `data:` are somebody's attack."""
    return iri[:7].lower() == "http://" or iri[:8].lower() == "https://"


def direction(language: str) -> str:
    """`rtl`, `ltr`, or `auto` where the tag does not tell."""
    first, *rest = language.lower().split("-")
    for part in rest:
        if part in _SCRIPTS:
            return _SCRIPTS[part]
    return "auto" if not first else "rtl" if first in _RIGHT_TO_LEFT else "ltr"


def entity_link(iri: str) -> str:
    return "/entity?" + urlencode({"iri": iri})


def page_link(url: str) -> str:
    return "/page?" + urlencode({"url": url})


def vocabulary_of(iri: str) -> str:
    """The namespace of a property: up to and including the last # or /."""
    cut = max(iri.rfind("#"), iri.rfind("/"), iri.rfind(":") if "/" not in iri else -1)
    return iri[: cut + 1]


def short_datatype(iri: str) -> str:
    return shorten(iri)
