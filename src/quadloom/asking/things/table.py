"""The table of things of a type: one page of rows, facets, counts, and everything with its sources.

Types of up to `WHOLE` things are selected as a whole, so that counts and facets are exact after merging. Of larger
types a page is selected by the store; its rows are merged among themselves, counts are those of the statistics, and
facets come from the first things. What was selected is kept for a few seconds: paging and exports ask again.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec
import pyoxigraph as ox

from quadloom.asking.entity import gone_pages
from quadloom.asking.sparql.prefixes import both_schemes, expand, nearest, shorten, type_iris
from quadloom.asking.things.cells import CellReader, CellValue, ValueCount, fallback_name
from quadloom.asking.things.counts import TypeCounts, count_types
from quadloom.asking.things.hierarchy import SUBCLASS, TypeTree
from quadloom.asking.things.merging import Ask, MergedThings, merged_things, read_descriptions
from quadloom.asking.things.paths import (
    NAMES,
    PropertyPath,
    canonical,
    path_label,
    type_name,
    words,
    write_path,
)
from quadloom.asking.things.profile import DEFAULT_COLUMNS, PropertyColumn, TypeProfile, profile_type
from quadloom.asking.things.selection import (
    ThingSelection,
    as_sparql,
    equal_texts,
    select_things,
    select_values,
)
from quadloom.errors import NothingFound
from quadloom.model.url import host_of, site_of
from quadloom.stores.protocols.quads import QuadStore

WHOLE = 20_000
PAGE = 100
MOST_ROWS = 10_000
_MAX_FACETS = 4
_MAX_FACET_VALUES = 8
_MAX_COUNTED = 5_000  # things whose values facets count; of more, they are at least so many
_MAX_SUGGESTED = 50  # values of one column
_CACHE_SECONDS = 15.0
_MAX_CACHED = 64
_MARKED_SECONDS = 600.0
_MAX_SUBCLASSES = 10_000  # statements of pages about their own types

T = TypeVar("T")


class ThingRow(msgspec.Struct, frozen=True):
    """`members`: all IRIs that this row describes, its own first. `gone`: since when none of its pages is found any
    more; 0 = one of them is."""

    iri: str
    label: str
    cells: tuple[tuple[CellValue, ...], ...]
    members: tuple[str, ...]
    sources: tuple[str, ...]
    gone: float = 0.0


class TableColumn(msgspec.Struct, frozen=True):
    path: str
    label: str
    within: str  # labels of the steps before the last
    kind: str
    share: float


class ColumnFacet(msgspec.Struct, frozen=True):
    """`exact`: False = more things are selected than were counted, so each number is a least one."""

    path: str
    label: str
    values: tuple[ValueCount, ...]
    exact: bool = True


class UnreadableValues(msgspec.Struct, frozen=True):
    """Rows that a comparison leaves out, because it cannot read their value: `condition` selects them."""

    condition: str
    label: str
    count: int


class ThingTable(msgspec.Struct, frozen=True, kw_only=True):
    """`exact`: `total` counts rows after merging; otherwise it counts descriptions, without the conditions. `alone`:
    subtypes are left out. `subtypes`: how many are in use."""

    type: str
    name: str
    total: int
    exact: bool
    alone: bool = False
    subtypes: int = 0
    unreadable: tuple[UnreadableValues, ...] = ()
    columns: tuple[TableColumn, ...]
    rows: tuple[ThingRow, ...] = ()
    facets: tuple[ColumnFacet, ...] = ()
    other_columns: tuple[TableColumn, ...] = ()
    next: int = 0  # offset of the next page; 0 = this is the last
    sparql: str = ""


class TableRequest(msgspec.Struct, frozen=True, kw_only=True):
    """`columns`: empty = the best ones. `offset` as `ThingTable.next` gave it."""

    selection: ThingSelection
    columns: tuple[PropertyPath, ...] = ()
    offset: int = 0
    limit: int = PAGE
    facets: bool = True


class _Kept(msgspec.Struct, frozen=True):
    made_at: float
    until: float
    mark: object
    value: object


class ThingsCache:
    """Profiles, selections and counts of the last seconds, for many threads. What took long is kept for twenty times as
    long, so that it never takes more than a twentieth of the time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, seconds: float = _CACHE_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._kept: OrderedDict[tuple[object, ...], _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...], make: Callable[[], T], mark: object = None) -> T:
        """`mark`: of what the value depends on; while it stays the same, the value is kept for ten minutes."""
        now = self._clock()
        with self._lock:
            found = self._kept.get(key)
        if found is not None and (
            now < found.until or (mark is not None and mark == found.mark and now < found.made_at + _MARKED_SECONDS)
        ):
            return found.value  # type: ignore[return-value]  # put in below by a caller with the same key
        made = make()
        ended = self._clock()
        with self._lock:
            self._kept[key] = _Kept(now, ended + max(self._seconds, 20.0 * (ended - now)), mark, made)
            self._kept.move_to_end(key)
            if len(self._kept) > _MAX_CACHED:
                self._kept.popitem(last=False)
        return made


class ThingTables:
    """Tables over one warehouse. `counts`: statements by class and property, from the statistics."""

    def __init__(
        self, quads: QuadStore, ask: Ask, classes: dict[str, int], properties: dict[str, int], cache: ThingsCache
    ) -> None:
        self._quads = quads
        self._ask = ask
        self._classes = classes
        self._properties = properties
        self._known = frozenset(classes) | frozenset(properties)
        self._cache = cache

    @property
    def tree(self) -> TypeTree:
        """The types in use, with what is known of those below them."""

        def make() -> TypeTree:
            is_stated = SUBCLASS in self._properties
            lines = self._quads.match(None, f"<{SUBCLASS}>", None, None, _MAX_SUBCLASSES) if is_stated else []
            parsed = ox.parse("\n".join(lines).encode(), ox.RdfFormat.N_QUADS, lenient=True)
            return TypeTree(self._classes, [(str(quad.subject)[1:-1], str(quad.object)[1:-1]) for quad in parsed])

        return self._cache.get(("tree", frozenset(self._classes)), make)

    def types(self) -> TypeCounts:
        """All types in use with their numbers of things, which are those of their tables."""
        used = {iri: count for iri, count in self._classes.items() if count > 0}
        mark = hash((frozenset(self._classes.items()), frozenset(self._properties.items())))
        return self._cache.get(("types",), lambda: count_types(self._ask, used, self._known, self.tree), mark)

    def resolve(self, name: str) -> str:
        """The IRI of a type given as `Event`, `schema:Event` or an IRI: of several, the one most in use.

        Raises `NothingFound` if no thing has it."""
        wanted = [canonical(iri) for iri in type_iris(expand(name.strip()))]
        best = max(wanted, key=self.count_of, default="")
        if not best or not self.count_of(best):
            raise NothingFound(f"there is no thing of type {name[:100]}", hint=self._nearest(name))
        return best

    def _nearest(self, name: str) -> str:
        near = nearest(name.strip(), sorted(self._classes, key=self._classes.__getitem__, reverse=True))
        return f"did you mean {near}?" if near else "`quadloom stats` lists the types in use"

    def unused(self, paths: Sequence[PropertyPath]) -> list[str]:
        """A sentence for each property of these paths that no page states, with the most similar one that is stated."""
        ranked = sorted(self._properties, key=self._properties.__getitem__, reverse=True)
        steps = dict.fromkeys(step for path in paths for step in path)
        return [
            f"no page states {shorten(step)}" + (f"; did you mean {near}?" if (near := nearest(step, ranked)) else "")
            for step in steps
            if self._properties and not any(self._properties.get(iri) for iri in both_schemes(step))
        ]

    def count_of(self, type: str) -> int:
        """DescribedThings of things of a type or one of its subtypes, by the statistics."""
        return sum(self._classes[iri] for iri in self.tree.with_subtypes(type))

    def profile(self, type: str, types: tuple[str, ...] = ()) -> TypeProfile:
        """The columns of a type. `types`: its spellings and subtypes; empty = all in use."""
        types = types or self.tree.with_subtypes(type)
        return self._cache.get(("profile", types), lambda: profile_type(self._quads, type, types))

    def _of_types(self, selection: ThingSelection) -> ThingSelection:
        types = self.tree.alone(selection.type) if selection.alone else self.tree.with_subtypes(selection.type)
        return msgspec.structs.replace(selection, types=types or (selection.type,))

    def _is_whole(self, selection: ThingSelection) -> bool:
        return sum(self._classes.get(iri, 0) for iri in selection.types) <= WHOLE

    def table(self, request: TableRequest) -> ThingTable:
        selection = self._of_types(request.selection)
        request = msgspec.structs.replace(request, selection=selection)
        profile = self.profile(selection.type, selection.types)
        columns = request.columns or tuple(column.path for column in profile.columns[:DEFAULT_COLUMNS])
        shown = [profile.column(path) for path in columns]
        whole = self._is_whole(selection)
        things, merged = self._selected(request, profile, whole)
        if whole:
            rows = self._rows(things, merged, selection)
            total = len(rows)
            page = rows[request.offset : request.offset + request.limit]
            following = request.offset + request.limit if total > request.offset + request.limit else 0
        else:
            total = sum(self._classes.get(iri, 0) for iri in selection.types)
            page = self._rows(things, merged, selection)[: request.limit]
            following = request.offset + request.limit if len(things) >= request.limit else 0
        return ThingTable(
            type=selection.type,
            name=type_name(selection.type),
            total=total,
            exact=whole,
            columns=tuple(map(_column, shown)),
            other_columns=tuple(_column(found) for found in profile.columns if found.path not in columns)[:40],
            rows=tuple(self._row(iri, merged, columns) for iri in page),
            alone=selection.alone,
            subtypes=len({canonical(iri) for iri in self.tree.with_subtypes(selection.type)} - {selection.type}),
            unreadable=self._unreadable(selection) if whole else (),
            facets=self._facets(selection, profile, things, merged) if request.facets else (),
            next=following,
            sparql=as_sparql(selection, columns, profile, self._known),
        )

    def as_sparql(self, selection: ThingSelection, columns: tuple[PropertyPath, ...]) -> str:
        """A query for these columns of the selected things."""
        selection = self._of_types(selection)
        return as_sparql(selection, columns, self.profile(selection.type, selection.types), self._known)

    def count(self, selection: ThingSelection) -> int:
        """Rows that a selection has, for the query builder."""
        selection = self._of_types(selection)
        request = TableRequest(selection=selection, facets=False)
        profile = self.profile(selection.type, selection.types)
        things, merged = self._selected(request, profile, self._is_whole(selection))
        return len(self._rows(things, merged, selection))

    def _unreadable(self, selection: ThingSelection) -> tuple[UnreadableValues, ...]:
        found = []
        for condition in selection.conditions:
            if (other := condition.unreadable()) is not None:
                conditions = tuple(other if one is condition else one for one in selection.conditions)
                if count := self.count(msgspec.structs.replace(selection, conditions=conditions)):
                    found.append(UnreadableValues(other.write(), other.describe(), count))
        return tuple(found)

    def values(self, selection: ThingSelection, path: PropertyPath) -> tuple[ValueCount, ...]:
        """The commonest values of one column in a selection, each with its number of rows."""
        selection = self._of_types(selection)
        profile = self.profile(selection.type, selection.types)
        things, merged = self._selected(TableRequest(selection=selection), profile, self._is_whole(selection))
        return self._value_counts(selection, [profile.column(path)], profile, things, merged)[0]

    def _selected(self, request: TableRequest, profile: TypeProfile, whole: bool) -> tuple[list[str], MergedThings]:
        selection = msgspec.structs.replace(request.selection, sites=0)
        limit, offset = (WHOLE, 0) if whole else (request.limit, request.offset)

        def select() -> list[str]:
            query = select_things(selection, profile, self._known, limit=limit, offset=offset)
            return [str(row["thing"].value) for row in self._ask(query) if row["thing"].type == "uri"]

        things = self._cache.get(("things", selection, limit, offset), select)
        if whole:
            return things, self._cache.get(("merged", selection.types), lambda: self._merged(selection, 3 * WHOLE))
        return things, self._merged(selection, WHOLE, things)

    def _merged(self, selection: ThingSelection, limit: int, only: Sequence[str] = ()) -> MergedThings:
        return merged_things(read_descriptions(self._ask, selection.types, self._known, limit=limit, only=only))

    def _rows(self, things: list[str], merged: MergedThings, selection: ThingSelection) -> list[str]:
        """Rows of the selected things. What must not be there must be missing in all descriptions of a row."""
        rows = merged.rows(things)
        if any(condition.operator in ("missing", "not") for condition in selection.conditions):
            selected = set(things)
            rows = [row for row in rows if selected.issuperset(merged.members_of(row))]
        if selection.present and (gone := self._gone()):
            rows = [row for row in rows if not _pages_of(row, merged) <= gone.keys()]
        if selection.sites < 2:
            return rows
        return [row for row in rows if len(_sites(row, merged)) >= selection.sites]

    def _row(self, iri: str, merged: MergedThings, columns: Sequence[PropertyPath]) -> ThingRow:
        members = merged.members_of(iri)
        reader = CellReader(self._quads)
        cells = tuple(reader.cell(members, path) for path in columns)
        label = next((found for found in (reader.label(member) for member in members) if found), "")
        pages = sorted({page for member in members for page in merged.pages.get(member, ())})
        gone = self._gone()
        since = (
            min((gone[page] for page in pages), default=0.0) if gone and all(page in gone for page in pages) else 0.0
        )
        return ThingRow(iri, label or fallback_name(iri, pages), cells, members, tuple(pages), since)

    def _gone(self) -> dict[str, float]:
        """Pages that are not found any more, whose statements are still here."""
        return self._cache.get(("gone",), lambda: gone_pages(self._quads))

    def _facets(
        self, selection: ThingSelection, profile: TypeProfile, things: list[str], merged: MergedThings
    ) -> tuple[ColumnFacet, ...]:
        """Columns whose values repeat, so that choosing one narrows the table."""
        columns = [
            column
            for column in profile.columns
            if column.kind in ("text", "thing", "part")
            and column.repeats
            and column.share >= 0.2
            and not (len(column.path) == 1 and column.path[0] in NAMES)
        ][: 2 * _MAX_FACETS]
        if not columns:
            return ()
        count = lambda: self._value_counts(selection, columns, profile, things, merged)  # noqa: E731
        counts = self._cache.get(("facets", selection), count)
        is_exact = len(things) <= _MAX_COUNTED
        found = [
            ColumnFacet(write_path(column.path), path_label(column.path), values[:_MAX_FACET_VALUES], is_exact)
            for column, values in zip(columns, counts, strict=True)
            if len(values) > 1 and values[0].count > 1
        ]
        return tuple(found[:_MAX_FACETS])

    def _value_counts(
        self,
        selection: ThingSelection,
        columns: Sequence[PropertyColumn],
        profile: TypeProfile,
        things: list[str],
        merged: MergedThings,
    ) -> list[tuple[ValueCount, ...]]:
        """The values that rows show, with the rows that have them: shown, or where `is` looks for them too."""
        rows = set(self._rows(things, merged, selection))
        shown: list[dict[str, ValueCount]] = [{} for _ in columns]
        having: list[dict[str, set[str]]] = [{} for _ in columns]  # value in lower case → rows
        reader = CellReader(self._quads)
        for found in self._ask(select_values(selection, columns, profile, self._known, limit=_MAX_COUNTED)):
            value, row = found["value"], merged.row_of(str(found["thing"].value))
            if row not in rows:
                continue
            place, text = int(str(found["column"].value)), str(value.value)
            having[place % len(columns)].setdefault(text.lower(), set()).add(row)
            if place < len(columns) and (choice := reader.choice(text, value.type == "uri")):
                shown[place].setdefault(choice.value.lower(), choice)
        return [
            _most_common(
                [
                    msgspec.structs.replace(
                        choice, count=len(set().union(*(index.get(text, ()) for text in equal_texts(choice.value))))
                    )
                    for choice in choices.values()
                ]
            )
            for choices, index in zip(shown, having, strict=True)
        ]


def _most_common(counts: list[ValueCount]) -> tuple[ValueCount, ...]:
    return tuple(sorted(counts, key=lambda one: (-one.count, one.value))[:_MAX_SUGGESTED])


def _pages_of(row: str, merged: MergedThings) -> set[str]:
    return {page for member in merged.members_of(row) for page in merged.pages.get(member, ())}


def _sites(row: str, merged: MergedThings) -> set[str]:
    return {site_of(host_of(page)) for page in _pages_of(row, merged)}


def _column(column: PropertyColumn) -> TableColumn:
    within = " › ".join(words(step) for step in column.path[:-1])
    return TableColumn(write_path(column.path), path_label(column.path), within, column.kind, round(column.share, 2))
