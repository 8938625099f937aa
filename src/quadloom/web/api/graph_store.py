"""Graph Store Protocol, reading: a page's statements by its URL, or all graphs together as the default graph."""

from __future__ import annotations

from starlette.responses import Response

from quadloom.web.api.rdf_responses import RDF_TYPES, chosen_format, graph_response
from quadloom.web.api.sparql_protocol import stream_result
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import WebRequest
from quadloom.web.view.terms import is_iri

PRODUCES = RDF_TYPES
_ALL = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"


def read_graph(request: WebRequest) -> Response:
    graphs, is_default = request.texts("graph"), "default" in request.http.query_params
    if len(graphs) + is_default != 1:
        raise HttpError(400, "name exactly one graph", hint="use ?graph=IRI, or ?default for all graphs together")
    if graphs and not is_iri(graphs[0]):
        raise HttpError(
            400, f"not an absolute IRI: {graphs[0][:200]}", hint="write the whole IRI, such as https://example.org/"
        )
    format = chosen_format(request)
    if is_default:
        if format in ("nq", "trig"):
            format = "nt" if format == "nq" else "turtle"  # the merged graph has no name
        return stream_result(
            request.site.queries.ask(_ALL, format=format, client=request.client), request.site.answering
        )
    nquads = request.site.reader.ask(lambda warehouse: warehouse.stores.quads.graph(graphs[0]))
    if not nquads:
        raise HttpError(404, f"there is no graph {graphs[0][:200]}", hint="a graph has the URL of its page as its name")
    return graph_response(nquads, "application/n-quads", format)
