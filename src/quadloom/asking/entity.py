"""Everything that is stated about a thing, by which pages, and where they contradict each other.

A thing is an IRI. Its statements are collected from all graphs; a graph's name is the page that makes the statement, so
provenance costs nothing extra. A property *looks functional* if no single page gives it two values (in one language).
If pages then differ, their values are shown side by side as a contradiction; none is declared right.

With consolidation, IRIs joined by owl:sameAs or schema:sameAs (in either direction) and things that share an
identifying value (a mailbox, an ISBN …) are described as one thing. There is a limit, since such chains on the web are
long and often wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec
import pyoxigraph as ox

from quadloom.asking.sparql.prefixes import PREFIXES, expand
from quadloom.documents.descriptions import GONE, PAGES
from quadloom.errors import NothingFound
from quadloom.stores.protocols.quads import QuadStore

MAX_STATEMENTS = 5_000
MAX_INVERSE = 200
MAX_NAMES = 32
_MAX_GONE = 100_000  # pages
_MAX_MARKED = 200  # sources of one thing

_RDF_TYPE = PREFIXES["rdf"] + "type"
_SCHEMA = (PREFIXES["schema"], PREFIXES["schemas"])
_LABELS = (
    PREFIXES["rdfs"] + "label", PREFIXES["skos"] + "prefLabel", *(space + "name" for space in _SCHEMA),
    PREFIXES["foaf"] + "name", PREFIXES["dcterms"] + "title", PREFIXES["dc"] + "title", PREFIXES["og"] + "title",
    *(space + "headline" for space in _SCHEMA), PREFIXES["vcard"] + "fn",
)  # fmt: skip
_IMAGES = (
    *(space + name for name in ("image", "logo", "thumbnailUrl") for space in _SCHEMA), PREFIXES["foaf"] + "img",
    PREFIXES["foaf"] + "depiction", PREFIXES["og"] + "image", PREFIXES["vcard"] + "photo",
)  # fmt: skip
_SAME = (PREFIXES["owl"] + "sameAs", *(space + "sameAs" for space in _SCHEMA))
_IDENTIFYING = (
    PREFIXES["foaf"] + "mbox", PREFIXES["foaf"] + "mbox_sha1sum", PREFIXES["foaf"] + "homepage",
    *(space + name for name in ("isbn", "gtin13", "orcid", "leiCode") for space in _SCHEMA),
)  # fmt: skip
_SKOLEM = PREFIXES["ql"] + "blank:"
_PLURAL = frozenset((_RDF_TYPE, *_SAME, PREFIXES["rdfs"] + "seeAlso"))


class Value(msgspec.Struct, frozen=True):
    """A term: `kind` iri, blank or literal; `text` without quotes or brackets."""

    kind: str
    text: str
    language: str = ""
    datatype: str = ""


class Statement(msgspec.Struct, frozen=True):
    """One value and all pages that state it."""

    value: Value
    sources: tuple[str, ...]


class Property(msgspec.Struct, frozen=True):
    """`contradicted`: it looks functional, and pages give different values."""

    iri: str
    statements: tuple[Statement, ...]
    contradicted: bool = False


class Inverse(msgspec.Struct, frozen=True):
    """Another thing that points here."""

    subject: str
    predicate: str
    sources: tuple[str, ...]


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    iri: str
    names: tuple[str, ...] = ()  # this IRI first, then those consolidated with it
    label: str = ""
    image: str = ""
    types: tuple[str, ...] = ()
    properties: tuple[Property, ...] = ()
    inverse: tuple[Inverse, ...] = ()
    sources: tuple[str, ...] = ()
    gone: dict[str, float] = {}  # of the sources: since when a page is not found any more
    truncated: bool = False  # more is stated than is shown

    @property
    def contradictions(self) -> tuple[Property, ...]:
        return tuple(item for item in self.properties if item.contradicted)


def describe_entity(quads: QuadStore, iri: str, *, consolidate: bool = False, language: str = "en") -> Entity:
    """The entity view of an IRI (or prefixed name). Raises `NothingFound` if no page states anything about it."""
    iri = expand(iri)
    names = _names(quads, iri) if consolidate else (iri,)
    found: dict[str, dict[Value, dict[str, None]]] = {}
    count = 0
    for name in names:
        for quad in _matching(quads, subject=name, limit=MAX_STATEMENTS - count):
            count += 1
            values = found.setdefault(quad.predicate.value, {})
            values.setdefault(value_of_term(quad.object), {})[graph_of(quad)] = None
    inverse = _inverse(quads, names)
    if not found and not inverse:
        raise NothingFound(f"nothing is known about {iri}", hint="`quadloom search WORDS` finds pages and things")
    properties = tuple(_property(predicate, values) for predicate, values in sorted(found.items()))
    sources = dict.fromkeys(graph for values in found.values() for graphs in values.values() for graph in graphs)
    return Entity(
        iri=iri,
        names=names,
        label=_first(found, _LABELS, language),
        image=_first(found, _IMAGES, language),
        types=tuple(sorted(value.text for value in found.get(_RDF_TYPE, {}) if value.kind == "iri")),
        properties=properties,
        inverse=inverse,
        sources=tuple(sources),
        gone=gone_pages(quads, tuple(sources)),
        truncated=count >= MAX_STATEMENTS or len(inverse) >= MAX_INVERSE,
    )


def gone_pages(quads: QuadStore, pages: Sequence[str] | None = None) -> dict[str, float]:
    """Of these pages, or of all: those that are not found any more though their statements are still here, and since
    when (Unix time)."""
    found: dict[str, float] = {}
    for page in (None,) if pages is None else pages[:_MAX_MARKED]:
        lines = quads.match(page and f"<{page}>", f"<{GONE}>", None, f"<{PAGES}>", _MAX_GONE)
        for quad in ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS, lenient=True):
            if isinstance(quad.subject, ox.NamedNode) and isinstance(quad.object, ox.Literal):
                found[quad.subject.value] = datetime.fromisoformat(quad.object.value).timestamp()
    return found


def as_nquads(entity: Entity) -> bytes:
    """The statements as N-Quads, for content negotiation; consolidated names are replaced by the entity's own."""
    lines = [
        f"<{entity.iri}> <{prop.iri}> {term_of(statement.value)} <{source}> .\n"
        for prop in entity.properties
        for statement in prop.statements
        for source in statement.sources
    ]
    return "".join(lines).encode()


def _names(quads: QuadStore, iri: str) -> tuple[str, ...]:
    """This name and those consolidated with it, nearest first."""
    found = {iri: None}
    waiting = deque([iri])
    while waiting and len(found) < MAX_NAMES:
        name = waiting.popleft()
        for other in _neighbours(quads, name):
            if other not in found and len(found) < MAX_NAMES:
                found[other] = None
                waiting.append(other)
    return tuple(found)


def _neighbours(quads: QuadStore, name: str) -> Iterator[str]:
    for predicate in _SAME:
        for quad in _matching(quads, subject=name, predicate=predicate, limit=MAX_NAMES):
            if isinstance(quad.object, ox.NamedNode):
                yield quad.object.value
        for quad in _matching(quads, predicate=predicate, object=f"<{name}>", limit=MAX_NAMES):
            if isinstance(quad.subject, ox.NamedNode):
                yield quad.subject.value
    for predicate in _IDENTIFYING:
        for own in _matching(quads, subject=name, predicate=predicate, limit=4):
            for quad in _matching(quads, predicate=predicate, object=str(own.object), limit=MAX_NAMES):
                if isinstance(quad.subject, ox.NamedNode):
                    yield quad.subject.value


def _property(predicate: str, values: dict[Value, dict[str, None]]) -> Property:
    statements = tuple(
        Statement(value, tuple(sources))
        for value, sources in sorted(values.items(), key=lambda item: (-len(item[1]), item[0].text))
    )
    return Property(predicate, statements, predicate not in _PLURAL and _is_contradicted(statements))


def _is_contradicted(statements: tuple[Statement, ...]) -> bool:
    by_language: dict[str, dict[str, list[str]]] = {}
    for statement in statements:
        if statement.value.kind == "blank" or statement.value.text.startswith(_SKOLEM):
            continue  # a blank node is a different thing on every page
        pages = by_language.setdefault(statement.value.language, {})
        for source in statement.sources:
            pages.setdefault(source, []).append(_comparable(statement.value))
    for pages in by_language.values():
        if len(pages) < 2 or any(len(set(texts)) > 1 for texts in pages.values()):
            continue
        if len({text for texts in pages.values() for text in texts}) > 1:
            return True
    return False


def _comparable(value: Value) -> str:
    """Spacing and case make no contradiction; nor does the datatype, which authors rarely think about."""
    return " ".join(value.text.split()).casefold()


def _inverse(quads: QuadStore, names: Iterable[str]) -> tuple[Inverse, ...]:
    found: dict[tuple[str, str], dict[str, None]] = {}
    for name in names:
        for quad in _matching(quads, object=f"<{name}>", limit=MAX_INVERSE):
            if isinstance(quad.subject, ox.NamedNode):
                found.setdefault((quad.subject.value, quad.predicate.value), {})[graph_of(quad)] = None
    return tuple(Inverse(subject, predicate, tuple(graphs)) for (subject, predicate), graphs in found.items())


def _first(found: dict[str, dict[Value, dict[str, None]]], predicates: Iterable[str], language: str) -> str:
    """The value that most pages give to the first of these predicates that has any. Values in the wanted language, or
    without a language, come before others."""
    for predicate in predicates:
        values = found.get(predicate)
        if values:
            return min(
                values,
                key=lambda value: (value.language.partition("-")[0] not in ("", language), -len(values[value])),
            ).text
    return ""


def _matching(
    quads: QuadStore,
    *,
    subject: str | None = None,
    predicate: str | None = None,
    object: str | None = None,
    limit: int,
) -> Iterator[ox.Quad]:
    if limit <= 0:
        return
    lines = quads.match(subject and f"<{subject}>", predicate and f"<{predicate}>", object, None, limit)
    for quad in ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS, lenient=True):  # the store takes lenient ones too
        if not graph_of(quad).startswith(PREFIXES["ql"]):
            yield quad


def graph_of(quad: ox.Quad) -> str:
    """The page that states this; empty for the default graph."""
    return quad.graph_name.value if isinstance(quad.graph_name, ox.NamedNode) else ""


def value_of_term(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Value:
    if isinstance(term, ox.Literal):
        return Value("literal", term.value, term.language or "", term.datatype.value)
    if isinstance(term, ox.NamedNode):
        return Value("iri", term.value)
    return Value("blank", str(term))


def term_of(value: Value) -> str:
    """The value as N-Quads write it."""
    if value.kind == "iri":
        return f"<{value.text}>"
    if value.kind == "blank":
        return value.text
    if value.language:
        return str(ox.Literal(value.text, language=value.language))
    return str(ox.Literal(value.text, datatype=ox.NamedNode(value.datatype)))
