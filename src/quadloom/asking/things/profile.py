"""Which properties the things of a type have, found in a sample of them: the columns that a table can show.

A few dozen things are enough to rank columns; a lookup of a thing costs some 30 µs, so a profile costs milliseconds
however many things there are. Values that are parts of a thing (an offer, an address) are followed, since what people
look for stands inside: the price of an offer, the city of an address.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import pyoxigraph as ox

from quadloom.asking.entity import graph_of
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.asking.things.comparing import reading_of
from quadloom.asking.things.paths import (
    BLANK,
    MOST_STEPS,
    NAMES,
    RDF_TYPE,
    SAME,
    SCHEMA,
    PropertyPath,
    best_name,
    canonical,
)
from quadloom.stores.protocols.quads import QuadStore

SAMPLE = 60
_MAX_LISTED = 600  # of the types' statements, from which the sample is taken evenly
_MIN_LISTED = 10  # of one of them
_MAX_STATEMENTS = 120  # of one thing
_MAX_NESTED = 12  # parts of one thing that are followed
DEFAULT_COLUMNS = 7
# Moved towards the front or the back of the default columns, against their share of things.
_WEIGHTS = {
    **dict.fromkeys(("startDate", "price", "ratingValue", "addressLocality", "author", "datePublished"), 0.4),
    "birthDate": 0.4,
    **dict.fromkeys(("location", "jobTitle", "performer", "brand", "genre", "servesCuisine"), 0.15),
    **dict.fromkeys(("description", "inLanguage", "eventStatus", "reviewCount", "familyName", "givenName"), -0.4),
    **dict.fromkeys(("url", "image", "sameAs", "mainEntityOfPage", "logo", "identifier", "articleBody", "text"), -0.9),
    **dict.fromkeys(("potentialAction", "breadcrumb", "isPartOf", "availability", "itemCondition"), -0.9),
    "priceCurrency": -0.9,  # prices are shown with it
    "currency": -0.9,
}  # fmt: skip

Kind = Literal["number", "date", "duration", "text", "thing", "part"]


class PropertyColumn(msgspec.Struct, frozen=True):
    """`share`: of the sampled things that have it. `kind` thing: its values are other things; part: parts of this one
    that have a name."""

    path: PropertyPath
    share: float
    kind: Kind
    example: str = ""
    repeats: bool = False  # some values belong to several things, so that choosing one makes sense


class TypeProfile(msgspec.Struct, frozen=True):
    """Columns, the best first; the first is the name, if things have one."""

    type: str
    sampled: int
    columns: tuple[PropertyColumn, ...] = ()

    def column(self, path: PropertyPath) -> PropertyColumn:
        return next((found for found in self.columns if found.path == path), PropertyColumn(path, 0.0, "text"))


class _Found:
    """What the sample says about one path."""

    def __init__(self) -> None:
        self.things: set[str] = set()
        self.kinds: Counter[Kind] = Counter()
        self.example = ""
        self.values: Counter[str] = Counter()


def profile_type(quads: QuadStore, type: str, types: Sequence[str]) -> TypeProfile:
    """The columns of a type, given by its IRI; `types`: it and its subtypes as pages write them."""
    each = max(_MIN_LISTED, _MAX_LISTED // max(1, len(types)))
    things = list(dict.fromkeys(thing for iri in types for thing in _things(quads, iri, each)))
    sample = things[:: max(1, len(things) // SAMPLE)][:SAMPLE]
    found: dict[PropertyPath, _Found] = {}
    for thing in sample:
        _walk(quads, thing, thing, (), found)
    columns = [
        PropertyColumn(
            path, len(seen.things) / len(sample), seen.kinds.most_common(1)[0][0], seen.example[:80], _repeats(seen)
        )
        for path, seen in found.items()
        if seen.kinds
    ]
    ranked = sorted(_shown(columns), key=_rank)
    if len({canonical(iri) for iri in types}) > 1:  # the second column, after the name
        ranked.insert(1, PropertyColumn((RDF_TYPE,), 1.0, "thing", repeats=True))
    return TypeProfile(type, len(sample), tuple(ranked))


def _things(quads: QuadStore, type: str, limit: int) -> list[str]:
    lines = quads.match(None, f"<{RDF_TYPE}>", f"<{type}>", None, limit)
    return [line.split(" ", 1)[0][1:-1] for line in lines if line[0] == "<"]


def _walk(quads: QuadStore, thing: str, node: str, before: PropertyPath, found: dict[PropertyPath, _Found]) -> None:
    parts = 0
    for predicate, value in statements_of(quads, node, _MAX_STATEMENTS):
        if predicate == RDF_TYPE:
            continue
        path = (*before, predicate)
        seen = found.setdefault(path, _Found())
        seen.things.add(thing)
        if isinstance(value, ox.Literal):
            seen.kinds[reading_of(value.value) or "text"] += 1
            seen.values[value.value[:100]] += 1
            seen.example = seen.example or value.value
        elif isinstance(value, ox.NamedNode) and value.value.startswith(BLANK):
            seen.kinds["part"] += 1
            parts += 1
            if len(path) < MOST_STEPS and parts <= _MAX_NESTED:
                _walk(quads, thing, value.value, path, found)
        else:
            seen.kinds["thing"] += 1
            seen.values[str(value)[:200]] += 1


def statements_of(
    quads: QuadStore, node: str, limit: int
) -> Iterator[tuple[str, ox.NamedNode | ox.Literal | ox.BlankNode]]:
    """Property (in its canonical spelling) and value of what pages state about a thing."""
    lines = quads.match(f"<{node}>", None, None, None, limit)
    for quad in ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS, lenient=True):
        described = graph_of(quad).startswith(PREFIXES["ql"])
        if not described and isinstance(quad.object, ox.NamedNode | ox.Literal | ox.BlankNode):
            yield canonical(quad.predicate.value), quad.object


def label_of(quads: QuadStore, node: str, limit: int = 40) -> str:
    """The name of a thing, from the first of its statements; empty if they do not name it."""
    names: dict[str, str] = {}
    for predicate, value in statements_of(quads, node, limit):
        if isinstance(value, ox.Literal):
            names.setdefault(predicate, value.value)
    return best_name(names)


def _repeats(seen: _Found) -> bool:
    """Parts have values of their own only inside, so their names are taken to repeat."""
    return seen.kinds["part"] > 0 or len(seen.values) < sum(seen.values.values())


def _shown(columns: Sequence[PropertyColumn]) -> list[PropertyColumn]:
    """A part that has a name is one column; one that has none is shown by what is inside."""
    named = {column.path[:-1] for column in columns if len(column.path) > 1 and column.path[-1] in NAMES}
    return [
        column
        for column in columns
        if not (column.kind == "part" and column.path not in named)
        and not (len(column.path) > 1 and column.path[-1] in NAMES and _is_part(column.path[:-1], columns))
    ]


def _is_part(path: PropertyPath, columns: Sequence[PropertyColumn]) -> bool:
    return any(column.path == path and column.kind == "part" for column in columns)


def _rank(column: PropertyColumn) -> tuple[int, float, int, PropertyPath]:
    path = column.path
    if len(path) == 1 and path[0] in NAMES:
        return NAMES.index(path[0]) if column.share >= 0.5 else 20, 0.0, 0, path
    weight = sum(_WEIGHTS.get(step.removeprefix(SCHEMA), 0.0) for step in path[-1:])
    if path[-1] in SAME:
        weight -= 0.9
    return 50, -(column.share + weight - 0.1 * (len(path) - 1)), len(path), path
