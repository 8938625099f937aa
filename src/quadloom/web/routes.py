"""READ THIS FIRST: all addresses of the site, in one table.

`app.py` builds the routes from it, `api/openapi.py` the description, and a test checks that each address refuses bad
requests in the one shape. A page marked `twin` is also served as JSON, at its address + `.json`.

To add a page: a function `WebRequest → ViewResponse` in `pages/`, a template, a line here, a line in
docs/reference/http.md.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from starlette.responses import Response

from quadloom.fetching.http.signatures import DIRECTORY, DIRECTORY_TYPE
from quadloom.web.api import (
    cite,
    control,
    events,
    export,
    graph_store,
    keys,
    memento,
    metrics,
    reconciliation,
    sparql_protocol,
)
from quadloom.web.api.openapi import describe
from quadloom.web.pages import (
    about,
    changed,
    entity,
    findings,
    home,
    inspect,
    monitor,
    page,
    pages,
    search,
    sites,
    sparql,
    subscriptions,
)
from quadloom.web.pages.things import ask, queries, schema, types
from quadloom.web.server.requests import Handler, WebRequest
from quadloom.web.server.static_files import static_file

# Where a handler runs (the lanes are in `server/state.py`): `reading` with a view of the warehouse, `scanning` likewise
# for handlers that read much of it; in threads that may block, `querying` for SPARQL, `fetching` for requests to other
# servers, `waiting` for the rest; `inline`, on the event loop, for what is in memory or only
# starts a stream.
Runs = Literal["reading", "scanning", "querying", "fetching", "waiting", "inline"]
HTML, JSON = "text/html", "application/json"


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of an address, as the OpenAPI description shows it."""

    name: str
    description: str
    example: str = ""
    required: bool = False
    many: bool = False
    kind: Literal["string", "integer"] = "string"
    place: Literal["query", "path"] = "query"
    choices: tuple[str, ...] = ()  # all values it may have, if they can be listed


_Q = Parameter("q", 'words, "phrases", prefix*, field:word, -not', "lighthouse")
_IRI = Parameter("iri", "the entity's IRI", "http://schema.org/Person", required=True)
_URL = Parameter("url", "the page's URL", "https://example.org/", required=True)
_ORIGINAL = Parameter("url", "the page's URL", "https://example.org/", required=True, place="path")
_LIMIT = Parameter("limit", "how many results", "20", kind="integer")
_NEXT = Parameter("next", "where the next part starts, from the last response; opaque")
_FORMAT = Parameter("format", "result format; overrides Accept", "json")
_SITE = Parameter("name", "registered domain or host", "example.org", required=True, place="path")
_CHANGES = (
    Parameter("since", "only notices after this id", "0", kind="integer"),
    Parameter("subscription", "only notices of this subscription"),
)
_FINDINGS = (
    Parameter("site", "registered domain or host", "example.org"),
    Parameter("code", "only this code", "bad-date"),
    Parameter("severity", "only this severity", "error", choices=("error", "warning", "info")),
    Parameter("type", "only findings about things of this type", "Product"),
)
_DATASET = (
    Parameter("default-graph-uri", "graphs merged into the default graph", many=True),
    Parameter("named-graph-uri", "graphs available to GRAPH", many=True),
)


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One address. `token`: only with --crawl and a token. `open`: other sites' pages may read it (CORS).

    `cached`: equal requests within a second get the same response. Not for responses that depend on the client.
    `committed`: the response depends on nothing but what a view of the warehouse shows, so it stays until the next
    commit (`quadloom.web.server.response_cache`). Only for cached addresses that run as `reading`.
    """

    path: str
    handler: Handler
    summary: str
    methods: tuple[str, ...] = ("GET",)
    parameters: tuple[Parameter, ...] = ()
    produces: tuple[str, ...] = (HTML,)
    consumes: tuple[str, ...] = ()
    twin: bool = False
    token: bool = False
    open: bool = False
    runs: Runs = "reading"
    cached: bool = False
    committed: bool = False

    @property
    def twin_path(self) -> str:
        return "/index.json" if self.path == "/" else f"{self.path}.json"


def _openapi(_request: WebRequest) -> Response:
    return Response(msgspec.json.encode(describe(ROUTES)), media_type=JSON)


_TABLE = (
    Parameter("iri", "the type", "schema:Event", required=True),
    Parameter("where", "a condition: property, operator, value", "schema:location contains Ghent", many=True),
    Parameter("col", "a column, as a path of properties; the commonest if none is given", "schema:name", many=True),
    Parameter("sort", "sort by this column", "schema:startDate"),
    Parameter("order", "ascending or descending", "asc", choices=("asc", "desc")),
    Parameter("sites", "only things that at least as many sites describe", "2", kind="integer"),
    Parameter("alone", "1 = without the things of its subtypes", "1"),
    Parameter("present", "1 = only things on pages that are still found", "1"),
)

_PAGES = (
    Endpoint(path="/", handler=home.home, summary="Search box, counts, types, newest pages, examples", twin=True,
             cached=True),
    Endpoint(
        path="/search", handler=search.search_page, summary="Keyword search with facets", twin=True, open=True,
        cached=True, committed=True, parameters=(
            _Q, Parameter("type", "only pages with things of this type", "schema:Event", many=True),
            Parameter("vocab", "only pages that use this vocabulary", "schema", many=True),
            Parameter("site", "registered domain", "example.org", many=True),
            Parameter("lang", "language", "en", many=True),
            Parameter("kind", "document kind", "html", many=True),
            Parameter("since", "fetched on or after this date", "2026-01-01"),
            Parameter("until", "fetched before this date", "2026-12-31"), _LIMIT, _NEXT,
            Parameter("exact", "1 = only pages with all words as they are written"),
            Parameter("gone", "1 = also pages that their server no longer has"),
            Parameter("show", "what to list: pages, or the things that they describe", "things"),
            Parameter("explain", "1 = say what each score is made of"),
        ),
    ),
    Endpoint(path="/changed", handler=changed.changed_page, summary="Pages new or changed since a day", twin=True,
             cached=True, parameters=(Parameter("since", "the day; yesterday if absent", "2026-01-01"),)),
    Endpoint(path="/ask", handler=ask.ask_page, summary="A question step by step: type, property, condition", twin=True,
             cached=True, runs="scanning", parameters=(
                 Parameter("type", "the type", "schema:Event"), _TABLE[1],
                 Parameter("property", "show values of this property", "schema:location"))),
    Endpoint(path="/schema", handler=schema.schema_page, summary="Types and the properties between them", twin=True,
             cached=True, runs="scanning", parameters=(Parameter("site", "only this site", "example.org"),)),
    Endpoint(path="/schema.svg", handler=schema.schema_svg, summary="The schema as a picture", cached=True,
             runs="scanning", parameters=(Parameter("site", "only this site", "example.org"),),
             produces=("image/svg+xml",)),
    Endpoint(path="/types", handler=types.types_page, summary="Types of things with their subtypes", twin=True,
             cached=True, runs="scanning"),
    Endpoint(path="/type", handler=types.type_page, summary="Things of a type as a table", twin=True, open=True,
             cached=True, runs="scanning", parameters=(
                 *_TABLE, Parameter("from", "where this page of rows begins", "0", kind="integer"), _LIMIT,
                 Parameter("sources", "1 = name the source of each value", choices=("0", "1")))),
    Endpoint(path="/type.csv", handler=types.table_csv, summary="The table as CSV", open=True, runs="scanning",
             parameters=_TABLE, produces=("text/csv",)),
    Endpoint(path="/type.parquet", handler=types.table_parquet, summary="The table as Parquet", open=True,
             runs="scanning", parameters=_TABLE, produces=("application/vnd.apache.parquet",)),
    Endpoint(path="/suggest", handler=search.suggest_page, summary="Words, pages and things for what is being typed",
             twin=True, open=True, cached=True, committed=True, parameters=(_Q,)),
    Endpoint(
        path="/entity", handler=entity.entity_page, summary="All statements about an IRI, with sources", twin=True,
        open=True, cached=True, committed=True, parameters=(
            _IRI, Parameter("merge", "1 = all names of the thing (sameAs), 0 = this IRI alone", choices=("0", "1")),
            Parameter("history", "1 = since when each page states it, and what before", choices=("0", "1")),
            Parameter("open", "show the neighbours of this neighbour too", many=True)),
        produces=(HTML, *entity.RDF_TYPES),
    ),
    Endpoint(path="/entity.svg", handler=entity.picture, summary="An entity's neighbourhood as a picture",
             cached=True, committed=True, parameters=(_IRI,), produces=("image/svg+xml",)),
    Endpoint(path="/page", handler=page.page_view, summary="A page: visits, changes, findings, links, why", twin=True,
             open=True, parameters=(_URL, Parameter("from", "compare this visit (Unix time or date)"),
                                    Parameter("to", "with this one"))),
    Endpoint(path="/page.md", handler=page.as_markdown, summary="The main part of a page as Markdown", runs="scanning",
             parameters=(_URL, Parameter("at", "Unix time of the visit; the newest if absent")),
             produces=("text/markdown",)),
    Endpoint(path="/page/body", handler=page.archived_body, summary="The archived body, as plain text",
             parameters=(_URL, Parameter("at", "Unix time of the visit; the newest if absent")),
             produces=("text/plain",)),
    Endpoint(path="/inspect", handler=inspect.inspect_page, summary="Five phases over one page or pasted markup",
             methods=("GET", "POST"), twin=True, runs="fetching",
             parameters=(Parameter("url", "the page to fetch, or the address of the pasted markup", "https://example.org/"),
                         Parameter("markup", "HTML or data to inspect instead")),
             consumes=("application/x-www-form-urlencoded", JSON, HTML)),
    Endpoint(path="/monitor", handler=monitor.monitor_page, summary="The crawl, live", twin=True, cached=True,
             runs="scanning"),
    Endpoint(path="/pages", handler=pages.pages_page, summary="Pages by outcome, status, kind or finding", twin=True,
             cached=True, runs="scanning", parameters=(
                 Parameter("outcome", "outcome of the last visit", "failed"),
                 Parameter("status", "status code of the last visit", "404"),
                 Parameter("kind", "kind of document", "html"),
                 Parameter("finding", "code or severity of a finding", "jsonld-invalid"),
                 Parameter("site", "registered domain or host", "example.org"),
                 Parameter("after", "where this part begins; from the last response", kind="integer"))),
    Endpoint(path="/sites", handler=sites.sites_page, summary="Hosts with pages, queue, delay and blocks", twin=True,
             cached=True, runs="scanning",
             parameters=(Parameter("sort", "sort order", "pages", choices=sites.SORTS),
                         Parameter("q", "only hosts whose name contains this", "example"), _LIMIT)),
    Endpoint(path="/site/{name}", handler=sites.site_page, summary="One site: hosts, pages, vocabularies, findings",
             twin=True, cached=True, runs="scanning",
             parameters=(_SITE, Parameter("tab", "the part of the page to show", "pages", choices=sites.TABS))),
    Endpoint(path="/site/{name}/picture.svg", handler=sites.picture, summary="The site's link structure as a picture",
             cached=True, runs="scanning", parameters=(_SITE,), produces=("image/svg+xml",)),
    Endpoint(path="/site/{name}/neighbours.svg", handler=sites.neighbours,
             summary="The sites it links to and those that link to it, as a picture", cached=True, runs="scanning",
             parameters=(_SITE,), produces=("image/svg+xml",)),
    Endpoint(path="/findings", handler=findings.findings_page, summary="Defects of the data, by template and page",
             twin=True, cached=True, runs="scanning", parameters=_FINDINGS),
    Endpoint(path="/findings.csv", handler=findings.findings_csv, summary="The same as CSV", cached=True,
             runs="scanning", parameters=_FINDINGS, produces=("text/csv",)),
    Endpoint(path="/findings/{code}", handler=findings.finding_code, summary="What a code means, with examples",
             twin=True, cached=True,
             parameters=(Parameter("code", "the code", "bad-date", required=True, place="path"),)),
    Endpoint(path="/vocabularies", handler=home.vocabularies_page, summary="Classes and properties by use",
             twin=True, cached=True, runs="scanning"),
    Endpoint(path="/topics", handler=about.topics_page, summary="Topics and what they found", twin=True),
    Endpoint(path="/subscriptions", handler=subscriptions.subscriptions_page, summary="Subscriptions to changes",
             twin=True),
    Endpoint(path="/about", handler=about.about_page, summary="Who runs this crawler, and how to opt out", twin=True),
)  # fmt: skip

_QUERY_NAME = Parameter("name", "name of the saved query", "events", required=True, place="path")

_QUERIES = (
    Endpoint(path="/result", handler=queries.result_page, twin=True,
             summary="A query's answer as table, chart, map, timeline or graph", runs="querying",
             parameters=(Parameter("query", "the query", "SELECT * { ?s ?p ?o } LIMIT 5", required=True),
                         Parameter("view", "how to see it", "bars", choices=queries.VIEWS))),
    Endpoint(path="/queries", handler=queries.queries_page, summary="Saved queries", twin=True, runs="waiting"),
    Endpoint(path="/queries", handler=queries.save, methods=("POST", "DELETE"), token=True, runs="waiting",
             summary="Save or remove a query", produces=(JSON,), consumes=(JSON,)),
    Endpoint(path="/query/{name}.csv", handler=queries.query_csv, summary="A saved query's answer as CSV",
             runs="querying", parameters=(_QUERY_NAME,), produces=("text/csv",), open=True),
    Endpoint(path="/query/{name}.atom", handler=queries.query_feed, summary="A saved query's answer as a feed",
             runs="querying", parameters=(_QUERY_NAME,), produces=("application/atom+xml",), open=True),
    Endpoint(path="/query/{name}", handler=queries.query_page, summary="A saved query's answer", twin=True, open=True,
             runs="querying", parameters=(_QUERY_NAME,)),
)  # fmt: skip

_API = (
    Endpoint(
        path="/sparql", handler=sparql.sparql_page, summary="SPARQL 1.1 Protocol; without a query, the editor or the "
        "Service Description", methods=("GET", "POST", "QUERY"), open=True, runs="querying",
        parameters=(Parameter("query", "the query", "SELECT * { ?s ?p ?o } LIMIT 5"), _FORMAT, *_DATASET),
        produces=sparql_protocol.PRODUCES,
        consumes=("application/x-www-form-urlencoded", "application/sparql-query"),
    ),
    Endpoint(path="/sparql/words.json", handler=sparql.completions, summary="Classes and properties for completion",
             runs="waiting", produces=(JSON,),
             parameters=(Parameter("kind", "classes or properties", "class", choices=("class", "property")),
                         Parameter("start", "the text typed so far", "Ev"))),
    Endpoint(path="/store", handler=graph_store.read_graph, summary="Graph Store Protocol, reading", open=True,
             parameters=(Parameter("graph", "the graph's IRI", "https://example.org/"),
                         Parameter("default", "the union of all graphs"), _FORMAT),
             produces=graph_store.PRODUCES, runs="querying"),
    Endpoint(path="/cite", handler=cite.citation, summary="Citations of a thing's values, or of a page", open=True,
             parameters=(Parameter("iri", "the thing or page", "http://schema.org/Person", required=True),
                         Parameter("property", "only this property", "schema:name"),
                         Parameter("format", "how to write them", "text", choices=cite.CHOICES)),
             produces=cite.PRODUCES),
    Endpoint(path="/timemap/link/{url:path}", handler=memento.time_map, summary="All visits of a page (RFC 7089)",
             parameters=(_ORIGINAL,), produces=(memento.LINK_FORMAT,), open=True),
    Endpoint(path="/timegate/{url:path}", handler=memento.time_gate, open=True, parameters=(_ORIGINAL,),
             summary="To the visit nearest to Accept-Datetime (RFC 7089)"),
    Endpoint(path="/memento/{stamp}/{url:path}", handler=memento.memento, open=True,
             summary="A page as it was archived",
             parameters=(Parameter("stamp", "time of the visit", "20260131235958", required=True, place="path"),
                         _ORIGINAL)),
    Endpoint(path="/reconcile", handler=reconciliation.endpoint, methods=("GET", "POST"), open=True, runs="scanning",
             summary="Reconciliation API 0.2 (OpenRefine): the manifest, candidates for names, values of things",
             parameters=(Parameter("queries", "a batch of queries as JSON", '{"q0": {"query": "Ada"}}'),
                         Parameter("extend", "things and properties as JSON")),
             produces=(JSON,), consumes=("application/x-www-form-urlencoded",)),
    Endpoint(path="/reconcile/suggest/{kind}", handler=reconciliation.suggest, open=True, runs="scanning",
             summary="Things, types or properties for what is being typed", produces=(JSON,),
             parameters=(Parameter("kind", "what to suggest", "entity", required=True, place="path",
                                   choices=("entity", "type", "property")),
                         Parameter("prefix", "the text typed so far", "ada", required=True),
                         Parameter("cursor", "how many to skip", "0", kind="integer"))),
    Endpoint(path="/reconcile/properties", handler=reconciliation.properties, open=True, runs="scanning",
             summary="Properties that things of a type can be extended by", produces=(JSON,),
             parameters=(Parameter("type", "the type", "http://schema.org/Person"), _LIMIT)),
    Endpoint(path="/reconcile/preview", handler=reconciliation.preview, summary="A thing in a small frame", open=True,
             parameters=(Parameter("id", "the thing's IRI", "http://schema.org/Person", required=True),)),
    Endpoint(path="/events", handler=events.stream, summary="Server-Sent Events of the crawl", runs="inline",
             parameters=(Parameter("kinds", "only these, separated by commas", "settled,finding"),
                         Parameter("after", "only events after this id", kind="integer"),
                         Parameter("once", "1 = send the stored events, then end", choices=("0", "1"))),
             produces=("text/event-stream",)),
    Endpoint(path="/changes.json", handler=subscriptions.changes, summary="Notices of subscriptions", produces=(JSON,),
             parameters=_CHANGES),
    Endpoint(path="/changes.atom", handler=subscriptions.changes_feed, summary="Notices of subscriptions as a feed",
             produces=("application/atom+xml",), parameters=_CHANGES),
    Endpoint(path="/changes/events", handler=events.notices, summary="Notices of subscriptions as Server-Sent Events",
             runs="inline", produces=("text/event-stream",),
             parameters=(*_CHANGES, Parameter("once", "1 = send the existing notices, then end"))),
    Endpoint(path="/metrics", handler=metrics.metrics, summary="OpenMetrics", produces=(metrics.MEDIA_TYPE,),
             runs="scanning", cached=True),
    Endpoint(path="/health/live", handler=metrics.live, summary="The server runs", produces=(JSON,), runs="inline"),
    Endpoint(path="/health/ready", handler=metrics.ready, summary="The stores can be read", produces=(JSON,),
             runs="waiting"),
    Endpoint(path="/export.{format}", handler=export.export, summary="All quads, streamed", runs="waiting",
             parameters=(Parameter("format", "nq, trig, ttl, nt, jsonld, rdf, warc …, also .gz, .zst", "nq",
                                   required=True, place="path"),
                         Parameter("site", "only this registered domain", many=True),
                         Parameter("type", "only pages with things of this type", many=True),
                         Parameter("since", "changed since this date"),
                         Parameter("until", "changed before this date")),
             produces=export.PRODUCES, open=True),
    Endpoint(path="/.well-known/void", handler=export.void, summary="VoID description of the dataset", open=True,
             produces=("text/turtle", *graph_store.PRODUCES[1:]), runs="waiting"),
    Endpoint(path=DIRECTORY, handler=keys.directory, summary="The keys that sign the crawler's requests", open=True,
             produces=(DIRECTORY_TYPE,), runs="waiting"),
    Endpoint(path="/openapi.json", handler=_openapi, summary="This table as OpenAPI 3.1", produces=(JSON,),
             open=True, runs="inline"),
    Endpoint(path="/static/{name:path}", handler=static_file, summary="Styles and scripts",
             runs="inline",
             parameters=(Parameter("name", "file", "quadloom.css", required=True, place="path"),),
             produces=("text/css", "text/javascript")),
)  # fmt: skip

_CONTROL = (
    Endpoint(path="/sign-in", handler=control.sign_in, summary="Store a token in this browser", methods=("GET", "POST"),
             runs="waiting", consumes=("application/x-www-form-urlencoded",)),
    Endpoint(path="/control/{verb}", handler=control.command, methods=("POST",), token=True, runs="waiting",
             summary="pause, resume, stop, seeds, recrawl, scope or freshness", produces=(JSON,), consumes=(JSON,),
             parameters=(Parameter("verb", "the command", "pause", required=True, place="path",
                                   choices=control.COMMANDS),)),
    Endpoint(path="/publish", handler=control.publish, methods=("POST",), token=True, runs="waiting",
             summary="Announce new or changed pages", produces=(JSON,), consumes=(JSON,)),
    Endpoint(path="/subscriptions", handler=control.subscribe, methods=("POST", "DELETE"), token=True, runs="waiting",
             summary="Add or remove a subscription", produces=(JSON,), consumes=(JSON,)),
    Endpoint(path="/websub/{id}", handler=control.websub, methods=("GET", "POST"), runs="waiting",
             summary="Where hubs verify and deliver (WebSub)", produces=("text/plain",),
             parameters=(Parameter("id", "the subscription at the hub", "x", required=True, place="path"),)),
)  # fmt: skip

ROUTES: tuple[Endpoint, ...] = _PAGES + _QUERIES + _API + _CONTROL
