"""SPARQL 1.1 Protocol, the query operation: what was asked, in which format, over which graphs.

All three ways of asking (GET, POST of a form, POST of the query itself) and the QUERY method become one
`SparqlRequest`. The answer streams; a result that ends within its first 256 KiB is sent whole, so that `X-Truncated`
can still be said.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import msgspec
from starlette.responses import Response, StreamingResponse

from quadloom.asking.sparql.checks import Form
from quadloom.asking.sparql.result_formats import GRAPH_MEDIA, ROW_MEDIA
from quadloom.asking.sparql.service import QueryResult, form_of
from quadloom.web.api.rdf_responses import negotiated_graph
from quadloom.web.server.errors import RequestRefused
from quadloom.web.server.negotiation import choose
from quadloom.web.server.requests import WebRequest
from quadloom.web.view.terms import is_iri

_FORM, _QUERY = "application/x-www-form-urlencoded", "application/sparql-query"
_WHOLE = 256 * 1024

# In our order of preference.
_ROWS = {
    "application/sparql-results+json": "json", "application/sparql-results+xml": "xml", "text/csv": "csv",
    "text/tab-separated-values": "tsv",
}  # fmt: skip
_GRAPHS = {
    "text/turtle": "turtle", "application/n-triples": "nt", "application/ld+json": "jsonld",
    "application/rdf+xml": "rdfxml",
}  # fmt: skip
# What clients say when they mean one of those; looked at only where none of the proper names is acceptable.
_ROW_ALIASES = {"application/json": "json", "application/xml": "xml", "text/xml": "xml", "text/plain": "csv"}
_GRAPH_ALIASES = {
    "application/json": "jsonld", "application/x-turtle": "turtle", "text/plain": "nt", "application/xml": "rdfxml"
}  # fmt: skip
PRODUCES = (*_ROWS, *_GRAPHS, "text/html")
# Other words for formats, as clients write them after `format=` (SPARQLWrapper, Virtuoso's users, media types).
_NAMES = {
    **_ROWS, **_GRAPHS, "ttl": "turtle", "n3": "turtle", "n-triples": "nt", "rdf": "rdfxml", "rdf-xml": "rdfxml",
    "rdf+xml": "rdfxml", "rdf xml": "rdfxml", "json-ld": "jsonld",
}  # fmt: skip
_GRAPH_NAMES = {"xml": "rdfxml", "json": "jsonld"}


class SparqlRequest(msgspec.Struct, frozen=True):
    query: str
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()


def asked(ask: WebRequest) -> SparqlRequest | None:
    """None = no query was given, which is a request for the Service Description (or the editor)."""
    if ask.request.method in ("POST", "QUERY"):
        queries = _posted(ask)
        if not queries:
            raise RequestRefused(400, "there is no query in the request", hint=f"POST a form with query=…, or {_QUERY}")
    else:
        queries = ask.texts("query")
    if ask.texts("update"):
        raise RequestRefused(
            400, "updates are not possible here", hint="crawl or import what shall be in the warehouse"
        )
    if len(queries) > 1:
        raise RequestRefused(400, "more than one query in one request", hint="send them one by one")
    if not queries:
        return None
    most = ask.desk.settings.limits.query_length
    if len(queries[0].encode("utf-8", "replace")) > most:
        raise RequestRefused(
            413, f"the query is longer than {most} bytes", hint="split it, or raise limits.query_length"
        )
    return SparqlRequest(queries[0], _graphs(ask, "default-graph-uri"), _graphs(ask, "named-graph-uri"))


def _posted(ask: WebRequest) -> list[str]:
    if ask.content_type == _FORM:
        return ask.texts("query")
    if ask.content_type == _QUERY:
        if ask.texts("query"):
            raise RequestRefused(400, "one query in the body and another in the address", hint="leave one of them out")
        try:
            return [ask.body.decode("utf-8")] if ask.body else []
        except UnicodeDecodeError:
            raise RequestRefused(400, "the query is not UTF-8", hint="SPARQL queries are always UTF-8") from None
    raise RequestRefused(
        415, f"a query cannot come as {ask.content_type or 'nothing'}", hint=f"send {_FORM} or {_QUERY}"
    )


def _graphs(ask: WebRequest, name: str) -> tuple[str, ...]:
    graphs = tuple(ask.texts(name))
    for graph in graphs:
        if not is_iri(graph):
            raise RequestRefused(400, f"{name} is not an absolute IRI: {graph[:100]}", hint="write it out in full")
    return graphs


def format_for(ask: WebRequest, form: Form) -> str:
    """`format=` wins over Accept. Raises 406 where nothing that fits the kind of query is accepted."""
    wanted = ask.text("format").lower()
    known = GRAPH_MEDIA if form == "graph" else ROW_MEDIA
    if wanted:
        wanted = _NAMES.get(wanted, wanted)
        if form == "graph":
            wanted = _GRAPH_NAMES.get(wanted, wanted)
        if wanted not in known:
            raise RequestRefused(406, f"this query has no result as {wanted[:30]}", hint=f"formats: {', '.join(known)}")
        return wanted
    offered, aliases = (_GRAPHS, _GRAPH_ALIASES) if form == "graph" else (_ROWS, _ROW_ALIASES)
    media = choose(ask.accept, list(offered)) or choose(ask.accept, list(aliases))
    if media is None:
        raise RequestRefused(
            406, "none of the accepted media types fits this query", hint=f"accept one of {', '.join(offered)}"
        )
    return {**aliases, **offered}[media]


def answer(ask: WebRequest, wanted: SparqlRequest) -> Response:
    """Run and stream."""
    form = form_of(wanted.query, ask.desk.settings.limits)
    running = ask.desk.queries.ask(
        wanted.query,
        format=format_for(ask, form),
        default_graphs=wanted.default_graphs,
        named_graphs=wanted.named_graphs,
        client=ask.request.client.host if ask.request.client else "",
    )
    return streamed(running)


def streamed(running: QueryResult) -> Response:
    headers = {"Vary": "Accept", "Cache-Control": "no-store"}
    parts, size, chunks = [], 0, iter(running)
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > _WHOLE:
            rest = _rest(running, b"".join(parts), chunks)
            return StreamingResponse(rest, media_type=running.media_type, headers=headers)
    if running.truncated:
        headers["X-Truncated"] = "true"
    return Response(b"".join(parts), media_type=running.media_type, headers=headers)


async def _rest(running: QueryResult, head: bytes, chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Closing ends the query when the client goes away."""
    loop = asyncio.get_running_loop()
    try:
        yield head
        while chunk := await loop.run_in_executor(None, next, chunks, b""):
            yield chunk
    finally:
        await asyncio.shield(loop.run_in_executor(None, running.close))


def service_description(ask: WebRequest) -> Response:
    """SPARQL 1.1 Service Description of this endpoint."""
    endpoint = str(ask.request.url.replace(query="", fragment=""))
    formats = ("SPARQL_Results_JSON", "SPARQL_Results_XML", "SPARQL_Results_CSV", "SPARQL_Results_TSV", "Turtle",
               "N-Triples", "JSON-LD", "RDF_XML")  # fmt: skip
    listed = ", ".join(f"<http://www.w3.org/ns/formats/{name}>" for name in formats)
    turtle = f"""
    @prefix sd: <http://www.w3.org/ns/sparql-service-description#> .
    @prefix void: <http://rdfs.org/ns/void#> .
    <{endpoint}> a sd:Service ;
      sd:endpoint <{endpoint}> ;
      sd:supportedLanguage sd:SPARQL11Query ;
      sd:feature sd:UnionDefaultGraph ;
      sd:resultFormat {listed} ;
      sd:propertyFeature <urn:quadloom:matches> ;
      sd:defaultDataset [ a sd:Dataset ; sd:defaultGraph [ a sd:Graph, void:Dataset ] ] ."""
    return negotiated_graph(ask, turtle.encode(), "text/turtle")
