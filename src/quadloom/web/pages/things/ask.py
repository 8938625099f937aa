"""`/ask`: a question step by step. A type, then a property, then a condition; each choice shows how many things it
leaves. The question is always shown as SPARQL too."""

from __future__ import annotations

from urllib.parse import urlencode

import msgspec

from quadloom.asking.things.cells import ValueCount
from quadloom.asking.things.counts import TypeCount
from quadloom.asking.things.paths import parse_path, write_path
from quadloom.asking.things.selection import OPERATOR_NAMES, ThingSelection
from quadloom.asking.things.table import TableColumn, TableRequest, ThingTable, ThingTables
from quadloom.web.pages.things.types import Choice, TableState, pictures_of, selection_of, tables_of
from quadloom.web.server.requests import ViewResponse, WebRequest

_MAX_VALUES = 30


class AskView(msgspec.Struct, frozen=True, kw_only=True):
    """`things`: how many fulfil all conditions. `values`: of the chosen property, with the things that each leaves."""

    type: str = ""
    name: str = ""
    things: int = 0
    exact: bool = True
    conditions: list[str] = []
    property: str = ""
    values: tuple[ValueCount, ...] = ()
    columns: tuple[TableColumn, ...] = ()
    sparql: str = ""


def ask_page(request: WebRequest) -> ViewResponse:
    used = tables_of(request).types()
    types: list[TypeCount] = [*used.types, *used.parts]
    chosen = request.text("type").strip()
    if not chosen:
        return ViewResponse("ask.html", AskView(), {"types": used.types, "parts": used.parts, "chips": []})
    tables = tables_of(request)
    selection = selection_of(request, tables.resolve(chosen))
    shown = tables.table(TableRequest(selection=selection, facets=False, limit=1))
    view = _view(tables, selection, shown, request.text("property").strip())
    state = TableState(TableRequest(selection=selection))
    base = [("type", view.type)] + [("where", text) for text in view.conditions]
    sort = _sort_for(view)
    extra: dict[str, object] = {
        "types": types,
        "parts": [],
        "chips": [
            Choice(found.describe(), _link([pair for pair in base if pair != ("where", found.write())]))
            for found in selection.conditions
        ],
        "state": state,
        "base": base,
        "properties": [
            Choice(
                column.label,
                _link([*base, ("property", column.path)]),
                round(100 * column.share),
                column.path == view.property,
            )
            for column in view.columns
        ],
        "choices": [
            Choice(found.label, _link([*base, ("where", f"{view.property} is {found.value}")]), found.count)
            for found in view.values[:_MAX_VALUES]
        ],
        "kind": next((column.kind for column in view.columns if column.path == view.property), "text"),
        "operators": OPERATOR_NAMES,
        "table": state.link(sort=sort) if sort else state.link(),
        **pictures_of(tables, selection, shown),
    }
    return ViewResponse("ask.html", view, extra)


def _view(tables: ThingTables, selection: ThingSelection, table: ThingTable, property: str) -> AskView:
    path = parse_path(property) if property else ()
    return AskView(
        type=table.type,
        name=table.name,
        things=table.total if table.exact else tables.count(selection),
        exact=table.exact,
        conditions=[condition.write() for condition in selection.conditions],
        property=write_path(path),
        values=tables.values(selection, path) if path else (),
        columns=(*table.columns, *table.other_columns),
        sparql=table.sparql,
    )


def _sort_for(view: AskView) -> str:
    """By the number of a condition `above` or `below`, because a reader compares such numbers."""
    paths = [text.split(" ")[0] for text in view.conditions if text.split(" ")[1] in ("above", "below")]
    return paths[0] if paths else ""


def _link(pairs: list[tuple[str, str]]) -> str:
    return "/ask?" + urlencode(pairs)
