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

from quadloom.asking.entity import graph_of
from quadloom.asking.sparql.prefixes import PREFIXES, both_schemes, expand, nearest, shorten, type_iris
from quadloom.asking.things.merging import Ask, MergedThings, merged_things
from quadloom.asking.things.paths import (
    BLANK,
    NAMES,
    PropertyPath,
    best_name,
    canonical,
    comparable,
    path_label,
    type_name,
    words,
    write_path,
)
from quadloom.asking.things.profile import DEFAULT_COLUMNS, PropertyColumn, TypeProfile, profile_type
from quadloom.asking.things.selection import ThingSelection, as_sparql, select_things, select_values
from quadloom.errors import NothingFound
from quadloom.model.url import host_of, site_of
from quadloom.stores.protocols.quads import QuadStore

WHOLE = 20_000
PAGE = 100
MOST_ROWS = 10_000
_MAX_FACETS = 4
_MAX_FACET_VALUES = 8
_MAX_COUNTED = 5_000  # things whose values facets count
_MAX_SUGGESTED = 50  # values of one column
_MAX_FACET_LENGTH = 80  # characters
_MAX_STATEMENTS = 300  # of one thing
_MAX_VALUES = 8  # of one cell
_MAX_NODES = 20  # parts of one thing that a path leads through
_CACHE_SECONDS = 15.0
_MAX_CACHED = 64

T = TypeVar("T")


class CellValue(msgspec.Struct, frozen=True):
    """One value: `text` as people read it, `iri` if it is a thing, and the pages that state it."""

    text: str
    iri: str = ""
    language: str = ""
    sources: tuple[str, ...] = ()


class ThingRow(msgspec.Struct, frozen=True):
    """`members`: all IRIs that this row describes, its own first."""

    iri: str
    label: str
    cells: tuple[tuple[CellValue, ...], ...]
    members: tuple[str, ...]
    sources: tuple[str, ...]


class TableColumn(msgspec.Struct, frozen=True):
    path: str
    label: str
    within: str  # labels of the steps before the last
    kind: str
    share: float


class ValueCount(msgspec.Struct, frozen=True):
    value: str
    count: int


class ColumnFacet(msgspec.Struct, frozen=True):
    path: str
    label: str
    values: tuple[ValueCount, ...]


class ThingTable(msgspec.Struct, frozen=True, kw_only=True):
    """`exact`: `total` counts rows after merging; otherwise it counts descriptions, without the conditions."""

    type: str
    name: str
    total: int
    exact: bool
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


class ThingsCache:
    """Profiles and selections of the last seconds, for many threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, seconds: float = _CACHE_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._kept: OrderedDict[tuple[object, ...], tuple[float, object]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...], make: Callable[[], T]) -> T:
        now = self._clock()
        with self._lock:
            found = self._kept.get(key)
        if found is not None and found[0] > now:
            return found[1]  # type: ignore[return-value]  # put in below by a caller with the same key
        made = make()
        with self._lock:
            self._kept[key] = (now + self._seconds, made)
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
        """Descriptions of things of a type, by the statistics."""
        return sum(self._classes.get(iri, 0) for iri in both_schemes(type))

    def profile(self, type: str) -> TypeProfile:
        return self._cache.get(("profile", type), lambda: profile_type(self._quads, type))

    def table(self, request: TableRequest) -> ThingTable:
        selection = request.selection
        profile = self.profile(selection.type)
        columns = request.columns or tuple(column.path for column in profile.columns[:DEFAULT_COLUMNS])
        shown = [profile.column(path) for path in columns]
        whole = self.count_of(selection.type) <= WHOLE
        things, merged = self._selected(request, profile, whole)
        if whole:
            rows = self._rows(things, merged, selection)
            total = len(rows)
            page = rows[request.offset : request.offset + request.limit]
            following = request.offset + request.limit if total > request.offset + request.limit else 0
        else:
            total = self.count_of(selection.type)
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
            facets=self._facets(selection, profile, merged) if request.facets else (),
            next=following,
            sparql=as_sparql(selection, columns, profile, self._known),
        )

    def count(self, selection: ThingSelection) -> int:
        """Rows that a selection has, for the query builder."""
        request = TableRequest(selection=selection, facets=False)
        whole = self.count_of(selection.type) <= WHOLE
        things, merged = self._selected(request, self.profile(selection.type), whole)
        return len(self._rows(things, merged, selection))

    def values(self, selection: ThingSelection, path: PropertyPath) -> tuple[ValueCount, ...]:
        """The commonest values of one column in a selection, each with its number of rows."""
        profile = self.profile(selection.type)
        whole = self.count_of(selection.type) <= WHOLE
        _, merged = self._selected(TableRequest(selection=selection), profile, whole)
        return self._value_counts(selection, [profile.column(path)], profile, merged)[0]

    def _selected(self, request: TableRequest, profile: TypeProfile, whole: bool) -> tuple[list[str], MergedThings]:
        selection = msgspec.structs.replace(request.selection, sites=0)
        limit, offset = (WHOLE, 0) if whole else (request.limit, request.offset)

        def select() -> list[str]:
            query = select_things(selection, profile, self._known, limit=limit, offset=offset)
            return [str(row["thing"].value) for row in self._ask(query) if row["thing"].type == "uri"]

        things = self._cache.get(("things", selection, limit, offset), select)
        if whole:
            make = lambda: merged_things(self._ask, selection.type, self._known, limit=3 * WHOLE)  # noqa: E731
            return things, self._cache.get(("merged", selection.type), make)
        return things, merged_things(self._ask, selection.type, self._known, limit=WHOLE, only=things)

    def _rows(self, things: list[str], merged: MergedThings, selection: ThingSelection) -> list[str]:
        """Rows of the selected things. What must not be there must be missing in all descriptions of a row."""
        rows = merged.rows(things)
        if any(condition.operator in ("missing", "not") for condition in selection.conditions):
            selected = set(things)
            rows = [row for row in rows if selected.issuperset(merged.members_of(row))]
        if selection.sites < 2:
            return rows
        return [row for row in rows if len(_sites(row, merged)) >= selection.sites]

    def _row(self, iri: str, merged: MergedThings, columns: Sequence[PropertyPath]) -> ThingRow:
        members = merged.members_of(iri)
        reader = _CellReader(self._quads)
        cells = tuple(reader.cell(members, path) for path in columns)
        label = next((found for found in (reader.label(member) for member in members) if found), "")
        pages = sorted({page for member in members for page in merged.pages.get(member, ())})
        return ThingRow(iri, label or fallback_name(iri, pages), cells, members, tuple(pages))

    def _facets(self, selection: ThingSelection, profile: TypeProfile, merged: MergedThings) -> tuple[ColumnFacet, ...]:
        """Columns whose values repeat, so that choosing one narrows the table."""
        columns = [
            column
            for column in profile.columns
            if column.kind not in ("date", "number")
            and column.repeats
            and column.share >= 0.2
            and not (len(column.path) == 1 and column.path[0] in NAMES)
        ][: 2 * _MAX_FACETS]
        if not columns:
            return ()
        counts = self._cache.get(("facets", selection), lambda: self._value_counts(selection, columns, profile, merged))
        found = [
            ColumnFacet(write_path(column.path), path_label(column.path), values[:_MAX_FACET_VALUES])
            for column, values in zip(columns, counts, strict=True)
            if len(values) > 1 and values[0].count > 1
        ]
        return tuple(found[:_MAX_FACETS])

    def _value_counts(
        self, selection: ThingSelection, columns: Sequence[PropertyColumn], profile: TypeProfile, merged: MergedThings
    ) -> list[tuple[ValueCount, ...]]:
        rows = self._ask(select_values(selection, columns, profile, self._known, limit=_MAX_COUNTED))
        seen: list[dict[str, set[str]]] = [{} for _ in columns]
        reader = _CellReader(self._quads)
        for row in rows:
            value, thing = row["value"], merged.row_of(str(row["thing"].value))
            if selection.sites > 1 and len(_sites(thing, merged)) < selection.sites:
                continue
            text = str(value.value)
            if value.type == "uri" or _is_term(text):
                text = reader.name(text)
            if text and len(text) <= _MAX_FACET_LENGTH:
                seen[int(str(row["column"].value))].setdefault(text, set()).add(thing)
        return [
            tuple(
                ValueCount(text, len(things))
                for text, things in sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))[:_MAX_SUGGESTED]
            )
            for found in seen
        ]


class _CellReader:
    """Reads the statements of a few things, each once."""

    def __init__(self, quads: QuadStore) -> None:
        self._quads = quads
        self._read: dict[str, list[tuple[str, ox.NamedNode | ox.Literal | ox.BlankNode | ox.Triple, str]]] = {}

    def statements(self, node: str) -> list[tuple[str, ox.NamedNode | ox.Literal | ox.BlankNode | ox.Triple, str]]:
        found = self._read.get(node)
        if found is None:
            lines = self._quads.match(f"<{node}>", None, None, None, _MAX_STATEMENTS)
            found = self._read[node] = [
                (canonical(quad.predicate.value), quad.object, graph)
                for quad in ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS, lenient=True)
                if not (graph := graph_of(quad)).startswith(PREFIXES["ql"])
            ]
        return found

    def label(self, node: str) -> str:
        names: dict[str, str] = {}
        for predicate, value, _ in self.statements(node):
            if isinstance(value, ox.Literal):
                names.setdefault(predicate, value.value)
        return best_name(names)

    def name(self, iri: str) -> str:
        """A thing as people call it: its label, or what can be read from its IRI."""
        return self.label(iri) or fallback_name(iri, [])

    def cell(self, members: Sequence[str], path: PropertyPath) -> tuple[CellValue, ...]:
        found: dict[tuple[str, str], tuple[CellValue, dict[str, None]]] = {}
        for node in self._nodes(members, path[:-1]):
            for predicate, value, graph in self.statements(node):
                if predicate == path[-1]:
                    shown = self._shown(value)
                    key = (comparable(shown.text), shown.iri if not shown.iri.startswith(BLANK) else "")
                    found.setdefault(key, (shown, {}))[1][graph] = None
        return tuple(
            msgspec.structs.replace(value, sources=tuple(sources))
            for value, sources in list(found.values())[:_MAX_VALUES]
        )

    def _nodes(self, members: Sequence[str], path: PropertyPath) -> list[str]:
        nodes = list(members)
        for step in path:
            nodes = [
                value.value
                for node in nodes
                for predicate, value, _ in self.statements(node)
                if predicate == step and isinstance(value, ox.NamedNode)
            ][:_MAX_NODES]
        return nodes

    def _shown(self, value: ox.NamedNode | ox.Literal | ox.BlankNode | ox.Triple) -> CellValue:
        if isinstance(value, ox.Literal):
            text = value.value
            return CellValue(words(text) if _is_term(text) else text, language=value.language or "")
        if isinstance(value, ox.NamedNode):
            return CellValue(self.name(value.value), value.value)
        return CellValue(str(value))


def _is_term(text: str) -> bool:
    """A member of an enumeration, written as a text: `https://schema.org/InStock`."""
    return text.startswith(("http://schema.org/", "https://schema.org/")) and " " not in text and len(text) > 20


def fallback_name(iri: str, pages: Sequence[str]) -> str:
    """A name for a thing without a label. Nobody should have to read the IRI of a blank node."""
    if iri.startswith(BLANK):
        return f"something on {_tail(pages[0])}" if pages else "unnamed"
    short = shorten(iri)
    return words(iri) if short != iri and not short.endswith(":") else _tail(iri)


def _tail(iri: str) -> str:
    """The last part of a URL that says something: `…/events/7-jazz-night#it` → `7-jazz-night`."""
    before, _, fragment = iri.partition("#")
    parts = [part for part in before.split("/") if part]
    tail = parts[-1] if parts else iri
    return f"{tail} {fragment}" if fragment and fragment not in ("it", "this", "me", "id") and len(parts) <= 2 else tail


def _sites(row: str, merged: MergedThings) -> set[str]:
    return {site_of(host_of(page)) for member in merged.members_of(row) for page in merged.pages.get(member, ())}


def _column(column: PropertyColumn) -> TableColumn:
    within = " › ".join(words(step) for step in column.path[:-1])
    return TableColumn(write_path(column.path), path_label(column.path), within, column.kind, round(column.share, 2))
