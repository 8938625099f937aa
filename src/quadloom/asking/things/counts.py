"""How many things there are of each type: the numbers on the home page, in `/types`, in `/ask`, `quadloom table` and
the crawl report. They are those of the table behind each of them, because both are counted by the same merging.

A *description* is what one page says of one thing: a subject with a type in a page's graph. A *thing* is what remains
after `merging`. Types of more descriptions than are merged have only the number of these.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.hierarchy import TypeTree
from quadloom.asking.things.merging import Ask, merged_things, read_descriptions
from quadloom.asking.things.paths import PART_TYPES, canonical, type_name

MOST_MERGED = 60_000  # descriptions: two seconds
_MAX_TYPES = 200


class TypeCount(msgspec.Struct, frozen=True, kw_only=True):
    """`things`: of the type and its subtypes; `own`: those of exactly this type. `exact`: things are counted, not
    descriptions. `parent`: the nearest type above in the same list. `depth`: how far below the top of its tree."""

    iri: str
    name: str
    short: str
    things: int
    own: int
    exact: bool = True
    descriptions: int
    parent: str = ""
    depth: int = 0


class TypeCounts(msgspec.Struct, frozen=True):
    """Trees one after the other, each type followed by its subtypes; the largest first. `parts`: types of parts of
    other things, such as offers and addresses."""

    types: tuple[TypeCount, ...] = ()
    parts: tuple[TypeCount, ...] = ()

    @property
    def things(self) -> dict[str, int]:
        """Type → things."""
        return {one.iri: one.things for one in (*self.types, *self.parts)}


def count_types(ask: Ask, used: Mapping[str, int], known: frozenset[str], tree: TypeTree) -> TypeCounts:
    """`used`: type as it is written → descriptions. `known`: IRIs of classes and properties in use."""
    found: list[str] = []
    room = MOST_MERGED
    for iri in sorted(used, key=lambda one: used[one]):
        if (room := room - used[iri]) < 0:
            break
        found.append(iri)
    merged = read_descriptions(ask, found, known, limit=3 * MOST_MERGED) if found else None
    read = frozenset(found)
    by_type: dict[str, set[str]] = {}
    if merged is not None:
        for thing, types in merged.types.items():
            for type in types:
                by_type.setdefault(type, set()).add(thing)

    def things(spellings: tuple[str, ...]) -> tuple[int, bool]:
        if merged is None or not read.issuperset(spellings):
            return sum(used[iri] for iri in spellings), False
        return len(merged_things(merged, set().union(*(by_type.get(iri, ()) for iri in spellings))).rows()), True

    counts = {}
    for type in {canonical(iri) for iri in used}:
        together, own = tree.with_subtypes(type), tree.alone(type)
        number, exact = things(together)
        counts[type] = TypeCount(
            iri=type,
            name=type_name(type),
            short=shorten(type),
            things=number,
            own=number if own == together else things(own)[0],
            exact=exact,
            descriptions=sum(used[iri] for iri in together),
        )
    whole = {type: one for type, one in counts.items() if type not in PART_TYPES}
    parts = {type: one for type, one in counts.items() if type in PART_TYPES}
    return TypeCounts(_as_tree(whole, tree), _as_tree(parts, tree))


def _as_tree(counts: dict[str, TypeCount], tree: TypeTree) -> tuple[TypeCount, ...]:
    children: dict[str, list[TypeCount]] = {}
    for type, one in counts.items():
        parent = tree.parent(type, among=counts)
        children.setdefault(parent, []).append(msgspec.structs.replace(one, parent=parent))
    found: list[TypeCount] = []

    def add(parent: str, depth: int) -> None:
        for one in sorted(children.pop(parent, ()), key=lambda one: (-one.things, one.iri)):
            found.append(msgspec.structs.replace(one, depth=depth))
            add(one.iri, depth + 1)

    add("", 0)
    while children:  # types that pages place below each other
        add(next(iter(children)), 0)
    return tuple(found[:_MAX_TYPES])
