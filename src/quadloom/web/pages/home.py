"""`/`, the contents of the warehouse at a glance, and `/vocabularies`, the classes and properties by use."""

from __future__ import annotations

import msgspec

from quadloom.asking.changes.since import MOST_PAGES
from quadloom.asking.report.numbers import WarehouseNumbers, numbers_of
from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.counts import TypeCount
from quadloom.stores.protocols.text import Hit
from quadloom.web.pages.changed import changed_rows, since_of
from quadloom.web.pages.search import ALL_PAGES_SINCE
from quadloom.web.pages.things.types import tables_of
from quadloom.web.server.requests import ViewResponse, WebRequest

_MAX_NEWEST = 100  # pages among which the newest of each site is looked for
_MAX_RECENT = 8
_MAX_TYPES = 10


class ExampleQuery(msgspec.Struct, frozen=True):
    title: str
    query: str


class HomeView(msgspec.Struct, frozen=True, kw_only=True):
    """`types`: those that people look for, without parts of other things. `listed`: pages in the
    list behind the search box, without copies. `changed`: pages since yesterday.
    `recent`: the newest page of each site."""

    name: str
    listed: int
    numbers: WarehouseNumbers
    hosts: int
    state: str  # of the crawl: running, paused, stopping, or stopped if there is none
    running: bool
    changed: int
    types: tuple[TypeCount, ...]
    recent: tuple[Hit, ...]
    examples: list[ExampleQuery]


def home(request: WebRequest) -> ViewResponse:
    warehouse = request.warehouse
    newest = warehouse.search(since=ALL_PAGES_SINCE, limit=_MAX_NEWEST)
    used = tables_of(request).types()
    types = used.types or used.parts
    now, report = request.site.clock(), request.site.crawl.report()
    view = HomeView(
        name=warehouse.path.resolve().name.replace("-", " ").replace("_", " ").capitalize(),
        listed=warehouse.search(since=ALL_PAGES_SINCE).total,
        numbers=numbers_of(warehouse.stores.catalog, warehouse.stores.text, warehouse.stores.quads, patient=False),
        state=str(report["state"]) if report is not None else "stopped",
        hosts=warehouse.stores.frontier.stats(request.site.clock()).hosts,
        running=report is not None,
        changed=len(changed_rows(warehouse, since_of(warehouse, "", now), MOST_PAGES)),
        types=types[:_MAX_TYPES],
        recent=one_of_each_site(newest.hits)[:_MAX_RECENT],
        examples=examples([use.short for use in types]),
    )
    return ViewResponse("home.html", view)


def one_of_each_site(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """The first hit of each site; pages for people before data files, which have no title."""
    found: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda hit: not hit.title):
        found.setdefault(hit.site, hit)
    return tuple(sorted(found.values(), key=lambda hit: -hit.fetched_at))


def examples(types: list[str]) -> list[ExampleQuery]:
    """Queries that have results in this warehouse: they are about its most frequent types."""
    found = [
        ExampleQuery(
            "Which kinds of things are there?",
            "SELECT ?type (COUNT(*) AS ?things)\nWHERE { ?thing a ?type }\nGROUP BY ?type\nORDER BY DESC(?things)\n"
            "LIMIT 20",
        )
    ]
    for name in types[:2]:
        term = name if not name.startswith(("http:", "https:", "urn:")) else f"<{name}>"
        found.append(
            ExampleQuery(
                f"Things of type {shorten(name)}, and the pages that describe them",
                f"SELECT ?thing ?property ?value ?page\nWHERE {{ GRAPH ?page {{ ?thing a {term} ; ?property ?value }} "
                "}\nLIMIT 20",
            )
        )
    found.append(
        ExampleQuery(
            "Which pages state the most?",
            "SELECT ?page (COUNT(*) AS ?statements)\nWHERE { GRAPH ?page { ?s ?p ?o } }\nGROUP BY ?page\n"
            "ORDER BY DESC(?statements)\nLIMIT 20",
        )
    )
    return found


def vocabularies_page(request: WebRequest) -> ViewResponse:
    extra: dict[str, object] = {"things": tables_of(request).types().things}
    return ViewResponse("vocabularies.html", {"vocabularies": request.site.usage.current().vocabularies()}, extra)
