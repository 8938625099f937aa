"""SPARQL 1.1 Protocol, the query operation: the query, its result format and its graphs.

All three ways to send a query (GET, POST of a form, POST of the query itself) and the QUERY method become one
`SparqlRequest`. The result streams; one that ends within its first 256 KiB is sent whole, so that the header
`X-Truncated` can still be set.
"""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from quadloom.asking.sparql.checks import Form
from quadloom.asking.sparql.result_formats import GRAPH_MEDIA, ROW_MEDIA
from quadloom.asking.sparql.service import QueryResult, form_of
from quadloom.web.api.rdf_responses import negotiated_graph
from quadloom.web.server.block_stream import BlockStream
from quadloom.web.server.errors import HttpError
from quadloom.web.server.lanes import Lane
from quadloom.web.server.negotiation import choose
from quadloom.web.server.requests import WebRequest
from quadloom.web.view.terms import is_iri

_FORM, _QUERY = "application/x-www-form-urlencoded", "application/sparql-query"
_MAX_BUFFERED = 256 * 1024

# In order of preference.
_ROWS = {
    "application/sparql-results+json": "json", "application/sparql-results+xml": "xml", "text/csv": "csv",
    "text/tab-separated-values": "tsv",
}  # fmt: skip
_GRAPHS = {
    "text/turtle": "turtle", "application/n-triples": "nt", "application/ld+json": "jsonld",
    "application/rdf+xml": "rdfxml",
}  # fmt: skip
# What some clients send when they mean one of those; used only if none of the proper names is acceptable.
_ROW_ALIASES = {"application/json": "json", "application/xml": "xml", "text/xml": "xml", "text/plain": "csv"}
_GRAPH_ALIASES = {
    "application/json": "jsonld", "application/x-turtle": "turtle", "text/plain": "nt", "application/xml": "rdfxml"
}  # fmt: skip
PRODUCES = (*_ROWS, *_GRAPHS, "text/html")
# Other names of formats, as clients write them after `format=` (SPARQLWrapper, Virtuoso, media types).
_NAMES = {
    **_ROWS, **_GRAPHS, "ttl": "turtle", "n3": "turtle", "n-triples": "nt", "rdf": "rdfxml", "rdf-xml": "rdfxml",
    "rdf+xml": "rdfxml", "rdf xml": "rdfxml", "json-ld": "jsonld",
}  # fmt: skip
# The same formats as the Service Description names them, under http://www.w3.org/ns/formats/.
_W3C_FORMATS = (
    "SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV", "Turtle", "N-Triples",
    "JSON-LD", "RDF_XML",
)  # fmt: skip
_GRAPH_NAMES = {"xml": "rdfxml", "json": "jsonld"}


class SparqlRequest(msgspec.Struct, frozen=True):
    query: str
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()


def parse_request(request: WebRequest) -> SparqlRequest | None:
    """None = there is no query, which is a request for the Service Description (or the editor)."""
    if request.http.method in ("POST", "QUERY"):
        queries = _posted(request)
        if not queries:
            raise HttpError(400, "there is no query in the request", hint=f"POST a form with query=…, or {_QUERY}")
    else:
        queries = request.texts("query")
    if request.texts("update"):
        raise HttpError(
            400, "this endpoint does not take updates", hint="add data to the warehouse with a crawl or an import"
        )
    if len(queries) > 1:
        raise HttpError(400, "there is more than one query in the request", hint="send one query per request")
    if not queries:
        return None
    most = request.site.settings.limits.query_length
    if len(queries[0].encode("utf-8", "replace")) > most:
        raise HttpError(413, f"the query is longer than {most} bytes", hint="split it, or raise limits.query_length")
    return SparqlRequest(queries[0], _graphs(request, "default-graph-uri"), _graphs(request, "named-graph-uri"))


def _posted(request: WebRequest) -> list[str]:
    if request.content_type == _FORM:
        return request.texts("query")
    if request.content_type == _QUERY:
        if request.texts("query"):
            raise HttpError(
                400, "there is a query in the body and another one in the address", hint="leave one of them out"
            )
        try:
            return [request.body.decode("utf-8")] if request.body else []
        except UnicodeDecodeError:
            raise HttpError(400, "the query is not UTF-8", hint="SPARQL queries are always UTF-8") from None
    raise HttpError(
        415, f"a query cannot be sent as {request.content_type or 'nothing'}", hint=f"send {_FORM} or {_QUERY}"
    )


def _graphs(request: WebRequest, name: str) -> tuple[str, ...]:
    graphs = tuple(request.texts(name))
    for graph in graphs:
        if not is_iri(graph):
            raise HttpError(400, f"{name} is not an absolute IRI: {graph[:100]}", hint="write the whole IRI")
    return graphs


def format_for(request: WebRequest, form: Form) -> str:
    """`format=` overrides Accept. Raises 406 if the client accepts nothing that fits the kind of query."""
    wanted = request.text("format").lower()
    known = GRAPH_MEDIA if form == "graph" else ROW_MEDIA
    if wanted:
        wanted = _NAMES.get(wanted, wanted)
        if form == "graph":
            wanted = _GRAPH_NAMES.get(wanted, wanted)
        if wanted not in known:
            raise HttpError(
                406, f"this query has no result in the format {wanted[:30]}", hint=f"formats: {', '.join(known)}"
            )
        return wanted
    offered, aliases = (_GRAPHS, _GRAPH_ALIASES) if form == "graph" else (_ROWS, _ROW_ALIASES)
    media = choose(request.accept, list(offered)) or choose(request.accept, list(aliases))
    if media is None:
        raise HttpError(
            406, "none of the accepted media types fits this query", hint=f"accept one of {', '.join(offered)}"
        )
    return {**aliases, **offered}[media]


def run_query(request: WebRequest, wanted: SparqlRequest) -> Response:
    form = form_of(wanted.query, request.site.settings.limits)
    running = request.site.queries.ask(
        wanted.query,
        format=format_for(request, form),
        default_graphs=wanted.default_graphs,
        named_graphs=wanted.named_graphs,
        client=request.client,
    )
    return stream_result(running, request.site.answering)


def stream_result(running: QueryResult, lane: Lane) -> Response:
    headers = {"Vary": "Accept", "Cache-Control": "no-store"}
    parts, size, chunks = [], 0, iter(running)
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > _MAX_BUFFERED:
            return BlockStream(
                lane,
                b"".join(parts),
                lambda: next(chunks, b""),
                running.close,
                media_type=running.media_type,
                headers=headers,
            )
    if running.truncated:
        headers["X-Truncated"] = "true"
    return Response(b"".join(parts), media_type=running.media_type, headers=headers)


def service_description(request: WebRequest) -> Response:
    """SPARQL 1.1 Service Description of this endpoint."""
    endpoint = str(request.http.url.replace(query="", fragment=""))
    formats = ", ".join(f"<http://www.w3.org/ns/formats/{name}>" for name in _W3C_FORMATS)
    turtle = f"""
    @prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
    @prefix void: <http://rdfs.org/ns/void#> .
    <{endpoint}> a sd:Service ;
      sd:endpoint <{endpoint}> ;
      sd:supportedLanguage sd:SPARQL11Query ;
      sd:feature sd:UnionDefaultGraph ;
      sd:resultFormat {formats} ;
      sd:propertyFeature <urn:quadloom:matches> ;
      sd:defaultDataset [ a sd:Dataset ; sd:defaultGraph [ a sd:Graph, void:Dataset ] ] ."""
    return negotiated_graph(request, turtle.encode(), "text/turtle")
