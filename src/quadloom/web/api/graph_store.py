"""Graph Store Protocol, reading: a page's statements by its URL, or all graphs together as the default graph."""

from __future__ import annotations

from starlette.responses import Response

from quadloom.web.api.rdf_responses import RDF_TYPES, chosen_format, graph_response
from quadloom.web.api.sparql_protocol import streamed
from quadloom.web.server.errors import RequestRefused
from quadloom.web.server.requests import WebRequest
from quadloom.web.view.terms import is_iri

PRODUCES = RDF_TYPES
_ALL = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


def read_graph(ask: WebRequest) -> Response:
    graphs, is_default = ask.texts("graph"), "default" in ask.request.query_params
    if len(graphs) + is_default != 1:
        raise RequestRefused(400, "name one graph", hint="?graph=IRI, or ?default for all together")
    if graphs and not is_iri(graphs[0]):
        raise RequestRefused(400, f"not an absolute IRI: {graphs[0][:200]}", hint="write it out in full")
    format = chosen_format(ask)
    if is_default:
        if format in ("nq", "trig"):
            format = "nt" if format == "nq" else "turtle"  # one graph without a name
        return streamed(ask.desk.queries.ask(_ALL, format=format, client=_client(ask)))
    nquads = ask.desk.reader.ask(lambda warehouse: warehouse.quads.graph(graphs[0]))
    if not nquads:
        raise RequestRefused(
            404, f"there is no graph {graphs[0][:200]}", hint="graphs are named by the URL of their page"
        )
    return graph_response(nquads, "application/n-quads", format)


def _client(ask: WebRequest) -> str:
    return ask.request.client.host if ask.request.client else ""
