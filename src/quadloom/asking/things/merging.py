"""Several descriptions of one thing become one row. Nothing is lost: a row knows its members and all their pages.

Two things are one if
* one names the other by owl:sameAs or schema:sameAs, or both name the same third; or
* the same page describes both with the same name, at least one of them without an IRI of its own, and nothing that
  tells things apart (date, number of an article …) differs. Pages often say the same in two syntaxes. Of several that
  fit, the first joins them, in the order of `_quality`: another IRI is not drawn in by what may be either.

The row's IRI is the best of its members': one that the pages gave, not one that was made up for a blank node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence

import msgspec

from quadloom.asking.sparql.prefixes import both_schemes
from quadloom.asking.things.paths import BLANK, NAMES, SAME, SCHEMA, alternatives, comparable, term
from quadloom.asking.things.selection import type_pattern
from quadloom.stores.quads.json_results import Row

Ask = Callable[[str], list[Row]]  # a SELECT query → its rows; runs where it can be killed
_DISTINGUISHING = tuple(SCHEMA + name for name in ("startDate", "isbn", "sku", "gtin13", "birthDate", "price"))
_NAMING = 6  # of the properties that name a thing
_MAX_GROUP = 50  # things of one name on one page that are compared
_Marks = dict[str, set[str]]


class MergedThings(msgspec.Struct, frozen=True):
    """`best`: thing → IRI of its row, for things that are not their row's own. `pages`: thing → pages describing it."""

    best: dict[str, str]
    members: dict[str, tuple[str, ...]]
    pages: dict[str, frozenset[str]]

    def row_of(self, thing: str) -> str:
        return self.best.get(thing, thing)

    def members_of(self, row: str) -> tuple[str, ...]:
        return self.members.get(row, (row,))

    def rows(self, things: Iterable[str] | None = None) -> list[str]:
        """The rows of these things, or of all, in their order, each once."""
        return list(dict.fromkeys(self.best.get(thing, thing) for thing in (self.pages if things is None else things)))


class DescribedThings(msgspec.Struct, frozen=True):
    """What merging needs of descriptions: thing → pages and types, (page, name) → things, thing → what tells it apart,
    and pairs of thing and other name."""

    pages: dict[str, set[str]]
    types: dict[str, set[str]]
    names: dict[tuple[str, str], set[str]]
    marks: dict[str, _Marks]
    same: list[tuple[str, str]]


def read_descriptions(
    ask: Ask, types: Sequence[str], known: frozenset[str], *, limit: int, only: Sequence[str] = ()
) -> DescribedThings:
    """Of all things of these types, or `only` some of them; at most `limit` descriptions are read."""
    these = f"VALUES ?thing {{ {' '.join(f'<{iri}>' for iri in only)} }} " if only else ""
    pattern = f"{these}{type_pattern(types, '?kind')}"
    pages: dict[str, set[str]] = {}
    kinds: dict[str, set[str]] = {}
    names: dict[tuple[str, str], set[str]] = {}
    naming = "|".join(alternatives(iri, known) for iri in NAMES[:_NAMING])
    for row in ask(
        f"SELECT ?thing ?page ?kind ?name WHERE {{ GRAPH ?page {{ {pattern} OPTIONAL {{ ?thing {naming} ?name }} }} "
        f"FILTER(!STRSTARTS(STR(?page), 'urn:quadloom:')) }} LIMIT {limit}"
    ):
        thing, page = str(row["thing"].value), str(row["page"].value)
        pages.setdefault(thing, set()).add(page)
        kinds.setdefault(thing, set()).add(str(row["kind"].value))
        if "name" in row:
            names.setdefault((page, comparable(str(row["name"].value))), set()).add(thing)
    marks = _marks(ask, pattern, limit) if any(map(_may_be_alike, names.values())) else {}
    same = "|".join(alternatives(iri, known) for iri in SAME)
    pairs = ask(f"SELECT DISTINCT ?thing ?other WHERE {{ {pattern} ?thing {same} ?other }} LIMIT {limit}")
    stated = [(str(row["thing"].value), str(row["other"].value)) for row in pairs if row["other"].type == "uri"]
    return DescribedThings(pages, kinds, names, marks, stated)


def merged_things(found: DescribedThings, among: Container[str] | None = None) -> MergedThings:
    """All described things, or those `among` which things are looked for: things of other types are never one with
    them, whatever their names."""
    sets = _Sets()
    for group in found.names.values():
        chosen = sorted((thing for thing in group if among is None or thing in among), key=_quality)
        if _may_be_alike(chosen):
            _join_alike(chosen[:_MAX_GROUP], found.marks, sets)
    for thing, other in found.same:
        if among is None or thing in among:
            sets.join(thing, other)
    return _merged(sets, {thing: pages for thing, pages in found.pages.items() if among is None or thing in among})


def _may_be_alike(group: Collection[str]) -> bool:
    """At least two things of one name on one page, one of them without an IRI of its own."""
    return len(group) > 1 and any(thing.startswith(BLANK) for thing in group)


def _marks(ask: Ask, pattern: str, limit: int) -> dict[str, _Marks]:
    """Thing → property → values, of the properties that tell things of one name apart."""
    predicates = " ".join(term(spelling) for iri in _DISTINGUISHING for spelling in both_schemes(iri))
    found: dict[str, _Marks] = {}
    query = (
        f"SELECT DISTINCT ?thing ?p ?v WHERE {{ {pattern} VALUES ?p {{ {predicates} }} ?thing ?p ?v }} LIMIT {limit}"
    )
    for row in ask(query):
        values = found.setdefault(str(row["thing"].value), {})
        values.setdefault(str(row["p"].value).rpartition("/")[2], set()).add(comparable(str(row["v"].value)))
    return found


def _join_alike(group: list[str], marks: dict[str, _Marks], sets: _Sets) -> None:
    for place, thing in enumerate(group):
        for other in group[:place]:
            blank = thing.startswith(BLANK) or other.startswith(BLANK)
            if blank and not _differ(marks.get(thing, {}), marks.get(other, {})):
                sets.join(other, thing)
                break


def _differ(mine: _Marks, other: _Marks) -> bool:
    return any(mine[name].isdisjoint(other[name]) for name in mine.keys() & other.keys())


def _merged(sets: _Sets, pages: dict[str, set[str]]) -> MergedThings:
    groups: dict[str, list[str]] = {}
    for thing in pages:
        groups.setdefault(sets.root(thing), []).append(thing)
    best, members = {}, {}
    for group in groups.values():
        if len(group) > 1:
            ordered = sorted(group, key=_quality)
            members[ordered[0]] = tuple(ordered)
            best.update(dict.fromkeys(ordered[1:], ordered[0]))
    return MergedThings(best, members, {thing: frozenset(found) for thing, found in pages.items()})


def _quality(iri: str) -> tuple[bool, int, str]:
    return iri.startswith(BLANK), len(iri), iri


class _Sets:
    """Disjoint sets of IRIs."""

    def __init__(self) -> None:
        self._parents: dict[str, str] = {}

    def root(self, name: str) -> str:
        while (parent := self._parents.get(name, name)) != name:
            self._parents[name] = self._parents.get(parent, parent)
            name = parent
        return name

    def join(self, one: str, other: str) -> None:
        self._parents[self.root(other)] = self.root(one)
