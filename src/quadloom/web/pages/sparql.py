"""`/sparql`: the endpoint for programs, and for people an editor with examples that have results."""

from __future__ import annotations

import time

import msgspec
from starlette.responses import Response

from quadloom.asking.entity import Value
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.asking.sparql.service import form_of
from quadloom.errors import QueryError, StoreError
from quadloom.web.api.sparql_protocol import SparqlRequest, parse_request, run_query, service_description
from quadloom.web.pages.home import ExampleQuery, examples
from quadloom.web.server.errors import ErrorBody, HttpError, describe_error
from quadloom.web.server.negotiation import prefers_html
from quadloom.web.server.rendering import json_response
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.terms import value_of_binding

_MAX_ROWS = 1000
_FIRST_QUERY = (
    "SELECT ?type (COUNT(*) AS ?things)\nWHERE { ?thing a ?type }\nGROUP BY ?type\nORDER BY DESC(?things)\nLIMIT 20"
)
_MAX_WORDS = 60
# For the editor, which shortens an IRI by the first prefix that fits: longest first, one prefix per vocabulary.
_EDITOR_PREFIXES = {
    prefix: iri for prefix, iri in sorted(PREFIXES.items(), key=lambda it: -len(it[1])) if prefix != "dct"
}


class ResultTable(msgspec.Struct, frozen=True, kw_only=True):
    """A result as the page shows it: rows, yes or no, or a graph as text."""

    variables: tuple[str, ...] = ()
    rows: list[list[Value | None]] = []
    verdict: bool | None = None
    graph: str = ""
    truncated: bool = False
    seconds: float = 0.0


def sparql_page(request: WebRequest) -> ViewResponse | Response:
    """Browsers get the editor with the result below it; all other clients use the protocol."""
    for_people = prefers_html(request.accept) and not request.text("format")
    if not for_people:
        wanted = parse_request(request)
        return run_query(request, wanted) if wanted is not None else service_description(request)
    table, failure, query = None, None, request.text("query")
    try:
        wanted = parse_request(request)
        if wanted is not None:
            query = wanted.query
            table = result_table(request, wanted)
    except (QueryError, StoreError, HttpError) as error:
        failure, _ = describe_error(error)
    return _editor(request, query, table, failure)


def _editor(request: WebRequest, query: str, table: ResultTable | None, failure: ErrorBody | None) -> ViewResponse:
    data: dict[str, object] = {
        "query": query or _FIRST_QUERY,
        "table": table,
        "failure": failure,
        "examples": _examples(request),
        "prefixes": _EDITOR_PREFIXES,
        "endpoint": str(request.http.url.replace(query="", fragment="")),
    }
    return ViewResponse("sparql.html", data, status=failure.status if failure else 200)


def result_table(request: WebRequest, wanted: SparqlRequest) -> ResultTable:
    """Run a query whose result a page shows, with at most a thousand rows."""
    limits = msgspec.structs.replace(request.site.settings.limits, query_rows=_MAX_ROWS)
    form = form_of(wanted.query, limits)
    began = time.monotonic()
    running = request.site.queries.ask(
        wanted.query,
        default_graphs=wanted.default_graphs,
        named_graphs=wanted.named_graphs,
        limits=limits,
        client=request.client,
    )
    with running:
        if form == "ask":
            return ResultTable(verdict=running.boolean(), seconds=time.monotonic() - began)
        if form == "graph":
            text = running.read().decode()
            return ResultTable(graph=text, truncated=running.truncated, seconds=time.monotonic() - began)
        rows = [
            [value_of_binding(row[name]) if name in row else None for name in running.variables]
            for row in running.rows()
        ]
    return ResultTable(
        variables=running.variables, rows=rows, truncated=running.truncated, seconds=time.monotonic() - began
    )


def _examples(request: WebRequest) -> list[ExampleQuery]:
    try:
        return examples([use.short for use in request.site.usage.current().classes])
    except (QueryError, StoreError):
        return examples([])


def completions(request: WebRequest) -> Response:
    """The most used classes or properties that contain the typed text."""
    kind, start = request.text("kind", "class"), request.text("start").strip("<>").lower()
    if kind not in ("class", "property"):
        raise HttpError(400, "kind must be class or property", hint="example: ?kind=class&start=Ev")
    usage = request.site.usage.current()
    terms = usage.classes if kind == "class" else usage.properties
    found = [use for use in terms if start in use.iri.lower() or start in use.short.lower()]
    return json_response({"words": found[:_MAX_WORDS]})
