"""`/sparql`: the endpoint for programs, and for people an editor with examples that have answers here."""

from __future__ import annotations

import time

import msgspec
from starlette.responses import Response

from quadloom.asking.entity import Value
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.asking.sparql.service import form_of
from quadloom.errors import QueryError, StoreError
from quadloom.web.api.sparql_protocol import SparqlRequest, answer, asked, service_description
from quadloom.web.pages.home import ExampleQuery, examples
from quadloom.web.server.errors import Refusal, RequestRefused, refusal_of
from quadloom.web.server.negotiation import prefers_html
from quadloom.web.server.rendering import json_response
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.terms import value_of_binding
from quadloom.web.view.usage import usage

_ROWS = 1000
_FIRST = "SELECT ?thing ?type\nWHERE { ?thing a ?type }\nLIMIT 20"
_WORDS = 60
# As the editor shortens IRIs: it takes the first that fits, and one prefix for each vocabulary.
_SHOWN = {prefix: iri for prefix, iri in sorted(PREFIXES.items(), key=lambda it: -len(it[1])) if prefix != "dct"}


class ResultTable(msgspec.Struct, frozen=True, kw_only=True):
    """A result as the page shows it: rows, a verdict, or a graph as text."""

    variables: tuple[str, ...] = ()
    rows: list[list[Value | None]] = []
    verdict: bool | None = None
    graph: str = ""
    truncated: bool = False
    seconds: float = 0.0


def sparql_page(ask: WebRequest) -> ViewResponse | Response:
    """People who ask for HTML get the editor, with the result below it; everybody else speaks the protocol."""
    for_people = prefers_html(ask.accept) and not ask.text("format")
    if not for_people:
        wanted = asked(ask)
        return answer(ask, wanted) if wanted is not None else service_description(ask)
    table, refusal, query = None, None, ask.text("query")
    try:
        wanted = asked(ask)
        if wanted is not None:
            query = wanted.query
            table = _table(ask, wanted)
    except (QueryError, StoreError, RequestRefused) as error:
        refusal, _ = refusal_of(error)
    return _editor(ask, query, table, refusal)


def _editor(ask: WebRequest, query: str, table: ResultTable | None, refusal: Refusal | None) -> ViewResponse:
    data: dict[str, object] = {
        "query": query or _FIRST,
        "table": table,
        "refusal": refusal,
        "examples": _examples(ask),
        "prefixes": _SHOWN,
        "endpoint": str(ask.request.url.replace(query="", fragment="")),
    }
    return ViewResponse("sparql.html", data, status=refusal.status if refusal else 200)


def _table(ask: WebRequest, wanted: SparqlRequest) -> ResultTable:
    limits = msgspec.structs.replace(ask.desk.settings.limits, query_rows=_ROWS)
    form = form_of(wanted.query, limits)
    began = time.monotonic()
    client = ask.request.client.host if ask.request.client else ""
    running = ask.desk.queries.ask(
        wanted.query, default_graphs=wanted.default_graphs, named_graphs=wanted.named_graphs, limits=limits,
        client=client,
    )  # fmt: skip
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


def _examples(ask: WebRequest) -> list[ExampleQuery]:
    try:
        return examples([use.short for use in usage(ask.desk).classes])
    except (QueryError, StoreError):
        return examples([])


def completions(ask: WebRequest) -> Response:
    """The most used words that begin with, or contain, what is typed."""
    kind, start = ask.text("kind", "class"), ask.text("start").strip("<>").lower()
    if kind not in ("class", "property"):
        raise RequestRefused(400, "kind is class or property", hint="?kind=class&start=Ev")
    known = usage(ask.desk)
    words = known.classes if kind == "class" else known.properties
    found = [use for use in words if start in use.iri.lower() or start in use.short.lower()]
    return json_response({"words": found[:_WORDS]})
