"""`/result`, the answer to a query as a table and a picture, and `/query/…`, the same for queries saved by name."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlencode

import msgspec
from starlette.responses import RedirectResponse, Response

from quadloom.asking.entity import Value
from quadloom.asking.sparql.service import form_of
from quadloom.asking.things.cells import fallback_name
from quadloom.crawling.run.control import Value as ControlValue
from quadloom.crawling.subscriptions.saved_queries import SavedQuery, checked_query, saved_queries, saved_query
from quadloom.model.timestamps import iso_time
from quadloom.web.api.control import send_command
from quadloom.web.api.sparql_protocol import SparqlRequest
from quadloom.web.pages.sparql import ResultTable, result_table
from quadloom.web.server.errors import HttpError
from quadloom.web.server.rendering import json_response
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.result_views import ResultColumns, View, draw
from quadloom.web.view.terms import is_web, labels

_MAX_ENTRIES = 100
_VIEW_NAMES: dict[View, str] = {
    "map": "Map", "line": "Line", "timeline": "Timeline", "bars": "Bars", "graph": "Graph", "table": "Table only",
}  # fmt: skip
VIEWS = tuple(_VIEW_NAMES)


class QueryAnswer(ResultTable, frozen=True, kw_only=True):
    """`names`: labels of the things in it."""

    query: str
    names: dict[str, str] = {}
    views: list[View] = []


def result_page(request: WebRequest) -> ViewResponse:
    query = request.required("query", "SELECT * { ?s ?p ?o } LIMIT 5")
    return _page(request, query, None, lambda view: "/result?" + urlencode({"query": query, "view": view}))


def query_page(request: WebRequest) -> ViewResponse:
    saved = _saved(request)
    return _page(request, saved.query, saved, lambda view: f"/query/{saved.name}?view={view}")


def query_csv(request: WebRequest) -> Response:
    saved = _saved(request)
    with request.site.queries.ask(saved.query, format=_rows_format(request, saved), client=request.client) as result:
        body = result.read()
    headers = {"Content-Disposition": f'attachment; filename="{saved.name}.csv"'}
    return Response(body, media_type="text/csv; charset=utf-8", headers=headers)


def query_feed(request: WebRequest) -> Response:
    """An entry for each row. Its id is made of the row, so a reader shows each row once."""
    saved = _saved(request)
    _rows_format(request, saved)
    answer = _answer(request, saved.query)
    url = str(request.http.url.replace(query="", fragment=""))
    at = iso_time(saved.saved_at)
    entries = "".join(_entry(answer, row, url, at) for row in answer.rows[:_MAX_ENTRIES])
    feed = (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>{_xml(url)}</id><title>{_xml(saved.title)}</title><updated>{at}</updated>"
        f"<subtitle>{_xml(saved.description)}</subtitle><author><name>Quadloom</name></author>\n{entries}</feed>\n"
    )
    return Response(feed.encode(), media_type="application/atom+xml")


def queries_page(request: WebRequest) -> ViewResponse:
    found = request.site.reader.ask(lambda warehouse: saved_queries(warehouse.stores.catalog))
    return ViewResponse("queries.html", {"queries": found})


def save(request: WebRequest) -> Response:
    """POST saves a query in the warehouse of the running crawl, DELETE removes one."""
    is_form = request.content_type == "application/x-www-form-urlencoded"
    given = {name: request.text(name).strip() for name in ("name", "query", "title", "description")}
    if not is_form:
        given = {name: str(request.document().get(name, "")) for name in given}
    if request.http.method == "DELETE":
        return json_response({"answer": send_command(request, "forget-query", {"name": given["name"]})})
    saved = checked_query(SavedQuery(**given, saved_at=request.site.clock()), request.site.settings.limits)
    arguments: dict[str, ControlValue] = {**msgspec.to_builtins(saved)}
    answer = send_command(request, "save-query", arguments)
    return (
        RedirectResponse(f"/query/{saved.name}", HTTPStatus.SEE_OTHER) if is_form else json_response({"answer": answer})
    )


def _saved(request: WebRequest) -> SavedQuery:
    name = request.path("name")
    return request.site.reader.ask(lambda warehouse: saved_query(warehouse.stores.catalog, name))


def _rows_format(request: WebRequest, saved: SavedQuery) -> str:
    if form_of(saved.query, request.site.settings.limits) == "graph":
        raise HttpError(406, "this query makes a graph, which has no rows", hint=f"/query/{saved.name} shows it")
    return "spreadsheet"


def _page(request: WebRequest, query: str, saved: SavedQuery | None, link: Callable[[View], str]) -> ViewResponse:
    answer = _answer(request, query)
    wanted = [view for view in answer.views if view == request.text("view")]
    chosen: View = next(iter((*wanted, *answer.views)), "table")
    extra: dict[str, object] = {
        "saved": saved,
        "chosen": chosen,
        "drawn": draw(chosen, answer.variables, answer.rows, answer.names),
        "tabs": [(view, _VIEW_NAMES[view], link(view)) for view in answer.views] if len(answer.views) > 1 else [],
        "numbers": ResultColumns(answer.variables, answer.rows).numbers,
    }
    return ViewResponse("result.html", answer, extra)


def _answer(request: WebRequest, query: str) -> QueryAnswer:
    table = result_table(request, SparqlRequest(query))
    views = ResultColumns(table.variables, table.rows).views() if table.variables else []
    found = msgspec.structs.asdict(table)
    return QueryAnswer(**found, query=query, names=_names(request, table.rows), views=views)


def _names(request: WebRequest, rows: list[list[Value | None]]) -> dict[str, str]:
    iris = [cell.text for row in rows for cell in row if cell is not None and cell.kind == "iri"]
    found = request.site.reader.ask(lambda warehouse: labels(warehouse.stores.quads, iris))
    return {iri: found.get(iri) or fallback_name(iri, []) for iri in dict.fromkeys(iris)}


def _entry(answer: QueryAnswer, row: list[Value | None], url: str, at: str) -> str:
    texts = ["" if cell is None else answer.names.get(cell.text) or cell.text for cell in row]
    id = hashlib.sha256("\0".join(texts).encode("utf-8", "replace")).hexdigest()[:24]
    link = next((cell.text for cell in row if cell is not None and cell.kind == "iri" and is_web(cell.text)), "")
    content = "\n".join(f"{name}: {text}" for name, text in zip(answer.variables, texts, strict=True))
    href = f'<link href="{_xml(link)}"/>' if link else ""
    title = next((text for text in texts if text), "–")
    return (
        f"<entry><id>{_xml(url)}#{id}</id><title>{_xml(title[:200])}</title><updated>{at}</updated>{href}"
        f'<content type="text">{_xml(content)}</content></entry>\n'
    )


def _xml(text: str) -> str:
    return html.escape("".join(mark if mark.isprintable() or mark in "\n\t" else " " for mark in text))
