"""`/types`, what kinds of things there are, and `/type`, the things of one type as a table: sort, filter, export."""

from __future__ import annotations

from importlib.util import find_spec
from urllib.parse import urlencode

import msgspec
from starlette.responses import Response

from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.formats import as_csv, as_parquet
from quadloom.asking.things.paths import parse_path, type_name, write_path
from quadloom.asking.things.selection import (
    MOST_CONDITIONS,
    OPERATOR_NAMES,
    Condition,
    ThingSelection,
    parse_condition,
)
from quadloom.asking.things.table import MOST_ROWS, PAGE, TableRequest, ThingTable, ThingTables
from quadloom.errors import NothingFound
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import ViewResponse, WebRequest

_MAX_COLUMNS = 12
_COORDINATES = ("latitude", "longitude")
_VIEWS = {"map": "Map", "timeline": "Timeline", "bars": "Chart"}


class Choice(msgspec.Struct, frozen=True):
    """Something to click: `href` adds or removes it."""

    label: str
    href: str
    count: int = 0
    chosen: bool = False


class ChoiceGroup(msgspec.Struct, frozen=True):
    label: str
    choices: list[Choice]
    exact: bool = True


def types_page(request: WebRequest) -> ViewResponse:
    return ViewResponse("types.html", tables_of(request).types())


def type_page(request: WebRequest) -> ViewResponse:
    tables = tables_of(request)
    wanted = _table_request(request, tables)
    table = tables.table(wanted)
    state = TableState(wanted)
    with_sources = request.text("sources") == "1"
    extra: dict[str, object] = {
        "state": state,
        "groups": _groups(state, table),
        "chips": _chips(state),
        "operators": OPERATOR_NAMES,
        "sort": write_path(wanted.selection.sort),
        "descending": wanted.selection.descending,
        "first": wanted.offset + 1,
        "sites": wanted.selection.sites,
        "with_sources": with_sources,
        "numbers": _numbered(table) if with_sources else {},
        "has_parquet": find_spec("pyarrow") is not None,
        "all_columns": [*table.columns, *table.other_columns],
        **pictures_of(tables, wanted.selection, table),
    }
    return ViewResponse("type.html", table, extra)


def pictures_of(tables: ThingTables, selection: ThingSelection, table: ThingTable) -> dict[str, object]:
    """Pictures that fit the things, and the query of each: its columns are those that the picture needs."""
    columns = [*table.columns, *table.other_columns]
    name = next((one for one in columns if one.kind == "text"), None)
    ends = {one.path.rpartition(":")[2]: one for one in reversed(columns)}
    date = next((one for one in columns if one.kind == "date"), None)
    number = next(
        (one for one in columns if one.kind == "number" and one.path.rpartition(":")[2] not in _COORDINATES), None
    )
    wanted = {
        "map": (name, *(ends.get(end) for end in _COORDINATES)),
        "timeline": (name, date),
        "bars": (name, number),
    }
    queries = {
        view: tables.as_sparql(selection, tuple(parse_path(one.path) for one in chosen if one is not None))
        for view, chosen in wanted.items()
        if None not in chosen and table.total
    }
    return {"views": [(view, _VIEWS[view]) for view in queries], "pictured": queries}


def table_csv(request: WebRequest) -> Response:
    return _download(request, as_csv(_whole(request)), "text/csv; charset=utf-8", "csv")


def table_parquet(request: WebRequest) -> Response:
    return _download(request, as_parquet(_whole(request)), "application/vnd.apache.parquet", "parquet")


def _whole(request: WebRequest) -> ThingTable:
    """All rows of what the page shows, up to `MOST_ROWS`."""
    tables = tables_of(request)
    wanted = _table_request(request, tables)
    return tables.table(msgspec.structs.replace(wanted, offset=0, limit=MOST_ROWS, facets=False))


def _download(request: WebRequest, body: bytes, media_type: str, ending: str) -> Response:
    name = "".join(mark for mark in request.text("iri").replace("#", "/").rpartition("/")[2] if mark.isalnum())
    headers = {"Content-Disposition": f'attachment; filename="{name or "things"}.{ending}"'}
    return Response(body, media_type=media_type, headers=headers)


def tables_of(request: WebRequest) -> ThingTables:
    return request.warehouse.ask.tables(request.site.things, request.site.queries)


def _table_request(request: WebRequest, tables: ThingTables) -> TableRequest:
    name = request.required("iri", "schema:Event")
    try:
        type = tables.resolve(name)
    except NothingFound as error:
        raise HttpError(404, error.message, hint="/types lists the types in use") from error
    return TableRequest(
        selection=selection_of(request, type),
        columns=tuple(parse_path(text) for text in request.texts("col")[:_MAX_COLUMNS]),
        offset=request.number("from", 0, low=0, high=10_000_000),
        limit=request.number("limit", PAGE, low=1, high=1000),
    )


def selection_of(request: WebRequest, type: str) -> ThingSelection:
    """The conditions of an address; `p`, `op` and `v` come from a form that adds one more."""
    given = request.texts("where")
    for path, operator, value in zip(request.all("p"), request.all("op"), request.all("v"), strict=False):
        if path and operator and (value.strip() or operator in ("exists", "missing")):
            given.append(f"{path} {operator} {value}")
    sort = request.text("sort")
    return ThingSelection(
        type=type,
        conditions=tuple(dict.fromkeys(parse_condition(text) for text in given[:MOST_CONDITIONS])),
        sort=parse_path(sort) if sort else (),
        descending=request.text("order") == "desc",
        sites=request.number("sites", 0, low=0, high=100),
        alone=request.text("alone") == "1",
        present=request.text("present") == "1",
    )


class TableState:
    """What the address says, and addresses that say a little more or less."""

    def __init__(self, wanted: TableRequest) -> None:
        self.selection = wanted.selection
        self._columns = wanted.columns

    def parameters(self, **changes: str) -> list[tuple[str, str]]:
        chosen = self.selection
        found = [("iri", shorten(chosen.type))]
        found += [("where", condition.write()) for condition in chosen.conditions]
        found += [("col", write_path(path)) for path in self._columns]
        if chosen.sort:
            found += [("sort", write_path(chosen.sort)), ("order", "desc" if chosen.descending else "asc")]
        if chosen.sites:
            found.append(("sites", str(chosen.sites)))
        found += [(name, "1") for name in ("alone", "present") if getattr(chosen, name)]
        kept = [(name, value) for name, value in found if name not in changes]
        return kept + [(name, value) for name, value in changes.items() if value]

    def link(self, path: str = "/type", **changes: str) -> str:
        return f"{path}?{urlencode(self.parameters(**changes))}"

    def narrowed(self, condition: Condition) -> str:
        return f"{self.link()}&{urlencode({'where': condition.write()})}"

    def without(self, condition: Condition) -> str:
        kept = [pair for pair in self.parameters() if pair != ("where", condition.write())]
        return f"/type?{urlencode(kept)}"

    def replaced(self, unreadable: str) -> str:
        """The things that a comparison leaves out: its condition is replaced by this one."""
        other = parse_condition(unreadable)
        kept = [("where", one.write()) for one in self.selection.conditions if one.unreadable() != other]
        rest = [pair for pair in self.parameters() if pair[0] != "where"]
        return f"/type?{urlencode([*rest, *kept, ('where', unreadable)])}"

    def has(self, condition: Condition) -> bool:
        return condition in self.selection.conditions

    def sorted_by(self, path: str) -> str:
        """A click on the heading sorts by it, a second click the other way round."""
        again = write_path(self.selection.sort) == path and not self.selection.descending
        return self.link(sort=path, order="desc" if again else "asc")


def _groups(state: TableState, table: ThingTable) -> list[ChoiceGroup]:
    groups = []
    for facet in table.facets:
        choices = []
        for found in facet.values:
            condition = Condition(parse_path(facet.path), "is", found.value)
            chosen = state.has(condition)
            href = state.without(condition) if chosen else state.narrowed(condition)
            choices.append(Choice(found.label, href, found.count, chosen))
        groups.append(ChoiceGroup(facet.label, choices, facet.exact))
    return groups


def _chips(state: TableState) -> list[Choice]:
    chips = [Choice(found.describe(), state.without(found)) for found in state.selection.conditions]
    if state.selection.present:
        chips.append(Choice("on pages that are still found", state.link(present="")))
    if state.selection.alone:
        chips.append(Choice(f"only {type_name(state.selection.type)} itself", state.link(alone="")))
    if state.selection.sites:
        chips.append(Choice(f"described on {state.selection.sites} sites or more", state.link(sites="")))
    return chips


def _numbered(table: ThingTable) -> dict[str, int]:
    """Page → its number in the list of sources below the table."""
    pages = dict.fromkeys(
        page for row in table.rows for values in row.cells for value in values for page in value.sources
    )
    return {page: number for number, page in enumerate(pages, 1)}
