"""Several descriptions of one thing become one row. Nothing is lost: a row knows its members and all their pages.

Two things are one if
* one names the other by owl:sameAs or schema:sameAs, or both name the same third; or
* the same page describes both with the same name, at least one of them without an IRI of its own, and nothing that
  tells things apart (date, number of an article …) differs. Pages often say the same in two syntaxes.

The row's IRI is the best of its members': one that the pages gave, not one that was made up for a blank node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

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

    def rows(self, things: Iterable[str]) -> list[str]:
        """The rows of these things, in their order, each once."""
        return list(dict.fromkeys(self.best.get(thing, thing) for thing in things))


def merged_things(ask: Ask, type: str, known: frozenset[str], *, limit: int, only: Sequence[str] = ()) -> MergedThings:
    """All things of a type, or `only` some of them; at most `limit` descriptions are read."""
    these = f"VALUES ?thing {{ {' '.join(f'<{iri}>' for iri in only)} }} " if only else ""
    pattern = type_pattern(type, known)
    pages: dict[str, set[str]] = {}
    names: dict[tuple[str, str], set[str]] = {}  # page and name → things
    naming = "|".join(alternatives(iri, known) for iri in NAMES[:_NAMING])
    for row in ask(
        f"SELECT ?thing ?page ?name WHERE {{ {these}GRAPH ?page {{ {pattern} OPTIONAL {{ ?thing {naming} ?name }} }} "
        f"FILTER(!STRSTARTS(STR(?page), 'urn:quadloom:')) }} LIMIT {limit}"
    ):
        thing, page = str(row["thing"].value), str(row["page"].value)
        pages.setdefault(thing, set()).add(page)
        if "name" in row:
            names.setdefault((page, comparable(str(row["name"].value))), set()).add(thing)
    sets = _Sets()
    alike = [sorted(group, key=_quality) for group in names.values() if len(group) > 1]
    alike = [group for group in alike if group[-1].startswith(BLANK)]  # blank nodes come last
    marks = _marks(ask, these, pattern, limit) if alike else {}
    for group in alike:
        _join_alike(group[:_MAX_GROUP], marks, sets)
    same = "|".join(alternatives(iri, known) for iri in SAME)
    pairs = ask(f"SELECT ?thing ?other WHERE {{ {these}{pattern} ?thing {same} ?other }} LIMIT {limit}")
    for row in pairs:
        if row["other"].type == "uri":
            sets.join(str(row["thing"].value), str(row["other"].value))
    return _merged(sets, pages)


def _marks(ask: Ask, these: str, pattern: str, limit: int) -> dict[str, _Marks]:
    """Thing → property → values, of the properties that tell things of one name apart."""
    predicates = " ".join(term(spelling) for iri in _DISTINGUISHING for spelling in both_schemes(iri))
    found: dict[str, _Marks] = {}
    query = f"SELECT ?thing ?p ?v WHERE {{ {these}{pattern} VALUES ?p {{ {predicates} }} ?thing ?p ?v }} LIMIT {limit}"
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
