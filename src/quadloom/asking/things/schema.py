"""How the types of a warehouse are linked: which property leads from things of one type to things of another.

Counted in a sample of pages: the catalog lists pages by a hash of their URL, so its first pages are a fair one. Up to
`PAGES` pages the picture is complete. The numbers of things are those of their tables if the whole warehouse is drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from quadloom.asking.things.paths import RDF_TYPE, canonical
from quadloom.model.outcome import PageRow
from quadloom.stores.protocols.quads import QuadStore

PAGES = 300
_MAX_CLASSES = 18
_MAX_LINKS = 40
_MAX_GRAPH = 400_000  # bytes; a dump inside of one page would cost seconds
_TYPE = f"<{RDF_TYPE}>"


class SchemaClass(msgspec.Struct, frozen=True):
    iri: str
    things: int


class SchemaLink(msgspec.Struct, frozen=True):
    """`count`: such statements in the sampled pages."""

    source: str
    property: str
    target: str
    count: int


class SchemaPicture(msgspec.Struct, frozen=True, kw_only=True):
    classes: tuple[SchemaClass, ...]
    links: tuple[SchemaLink, ...]
    sampled: int
    complete: bool


def schema_of(quads: QuadStore, pages: Sequence[PageRow], known: Mapping[str, int]) -> SchemaPicture:
    """`known`: things by type, as their tables have them; empty = those of the sampled pages are counted."""
    counts: Counter[str] = Counter()
    links: Counter[tuple[str, str, str]] = Counter()
    for page in pages[:PAGES]:
        if page.quads:
            _count(quads.graph(page.graph), counts, links)
    if known:
        counts = Counter(known)
    shown = {iri for iri, _ in counts.most_common(_MAX_CLASSES)}
    found = [
        SchemaLink(source, property, target, number)
        for (source, property, target), number in links.most_common()
        if source in shown and target in shown
    ][:_MAX_LINKS]
    return SchemaPicture(
        classes=tuple(SchemaClass(iri, number) for iri, number in counts.most_common(_MAX_CLASSES)),
        links=tuple(found),
        sampled=min(len(pages), PAGES),
        complete=len(pages) <= PAGES,
    )


def _count(nquads: bytes, counts: Counter[str], links: Counter[tuple[str, str, str]]) -> None:
    """One page: types of its things, and statements between two of them."""
    statements = [line.split(" ", 3) for line in nquads[:_MAX_GRAPH].decode("utf-8", "replace").split("\n")]
    types: dict[str, list[str]] = {}
    for parts in statements:
        if len(parts) == 4 and parts[1] == _TYPE and parts[2][0] == "<":
            types.setdefault(parts[0], []).append(canonical(parts[2][1:-1]))
    for kinds in types.values():
        counts.update(kinds)
    for parts in statements:
        if len(parts) == 4 and parts[1] != _TYPE and parts[2] in types and parts[0] in types:
            for source in types[parts[0]][:2]:
                for target in types[parts[2]][:2]:
                    links[source, canonical(parts[1][1:-1]), target] += 1
