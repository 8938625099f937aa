"""What a crawl has brought, in one record: the data of `quadloom report`.

Counts of the whole warehouse come from the catalog and the statistics. What needs the rows of pages (languages, hosts,
findings, a single site) is counted over at most `PAGES` of them; the catalog lists pages by a hash of their URL, so
these are a fair sample. Places and dates come from two queries with a limit, in a process that can be killed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from quadloom.asking.audit.across_pages import audited_pages
from quadloom.asking.audit.report import AuditReport, audit
from quadloom.asking.questions import WarehouseQueries
from quadloom.asking.report.numbers import WarehouseNumbers
from quadloom.asking.things.paths import PART_TYPES
from quadloom.asking.things.schema import SchemaPicture, schema_of
from quadloom.documents.index import namespace
from quadloom.errors import NothingFound, QueryError
from quadloom.model.outcome import READ_OUTCOMES, PageRow
from quadloom.model.url import belongs_to, host_of, site_of
from quadloom.planning.ranking.link_lookup import links_touching
from quadloom.stores.opened import Stores
from quadloom.stores.quads.json_results import Row

PAGES = 50_000
_SLICE = 2000
_MAX_LINKED = 5000  # pages whose links are drawn
_MAX_PLACES = 1000
_MAX_DATES = 1000
_DATE = re.compile(r"([12]\d{3})-(\d\d)(?:-(\d\d))?")
_PLACES_QUERY = """
SELECT DISTINCT ?page ?name ?lat ?lon WHERE {
  GRAPH ?page { ?spot schema:latitude ?lat ; schema:longitude ?lon .
    OPTIONAL { ?thing schema:geo ?spot ; schema:name ?name } OPTIONAL { ?spot schema:name ?own } }
} LIMIT 1000"""
_DATES_QUERY = """
SELECT DISTINCT ?page ?name ?date WHERE {
  VALUES ?when { schema:startDate schema:datePublished schema:datePosted schema:uploadDate dcterms:date }
  GRAPH ?page { ?thing ?when ?date ; schema:name ?name }
} LIMIT 1000"""


class HostSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`delay`: seconds between two requests, which grow with the time that its server takes to answer."""

    host: str
    pages: int
    unread: int  # failed, denied or gone at the last visit
    delay: float
    reason: str = ""  # the commonest of those


class PlacedThing(msgspec.Struct, frozen=True):
    name: str
    longitude: float
    latitude: float


class DatedThing(msgspec.Struct, frozen=True):
    name: str
    at: float  # Unix time


class LinkedSites(msgspec.Struct, frozen=True):
    source: str
    target: str
    links: int


Counts = tuple[tuple[str, int], ...]


class CrawlSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`site`: empty = the whole warehouse. `sampled`: pages that were looked at one by one."""

    site: str
    numbers: WarehouseNumbers | None  # None: of a single site
    sampled: int
    complete: bool
    first_visit: float
    last_visit: float
    outcomes: Counts
    kinds: Counts
    languages: Counts
    types: Counts
    vocabularies: Counts
    change_rates: tuple[tuple[str, float], ...]
    sites: Counts
    failing: tuple[HostSummary, ...]
    slowest: tuple[HostSummary, ...]
    places: tuple[PlacedThing, ...]
    dates: tuple[DatedThing, ...]
    links: tuple[LinkedSites, ...]
    schema: SchemaPicture
    audit: AuditReport


def summarise(
    queries: WarehouseQueries, stores: Stores, site: str = "", progress: Callable[[int], None] = lambda _pages: None
) -> CrawlSummary:
    """Raises `NothingFound` if no page was visited, or none of the site."""
    rows = list(_rows(stores, site, progress))
    if not rows:
        what = f"no page of {site} was visited" if site else "no page was visited yet"
        raise NothingFound(
            what, hint="to see the sites: `quadloom sites`" if site else "begin with `quadloom crawl URL`"
        )
    statistics = queries.statistics(limit=50)
    read = [row for row in rows if row.outcome in READ_OUTCOMES and row.kind != "redirect"]
    schema = schema_of(stores.quads, read, {} if site else queries.tables().types().things)
    found = Counter[str]()
    for row in read[:300] if site else ():
        found.update(_vocabularies(stores.quads.graph(row.graph)))
    hosts = _hosts(stores, rows)
    return CrawlSummary(
        site=site,
        numbers=None if site else queries.numbers(),
        sampled=len(rows),
        complete=len(rows) < PAGES,
        first_visit=min((row.first_seen for row in rows if row.first_seen), default=0.0),
        last_visit=max(row.fetched_at for row in rows),
        outcomes=_counted(str(row.outcome) for row in rows),
        kinds=_counted(row.kind for row in read if row.kind),
        languages=_counted(row.language.partition("-")[0] for row in read if row.language),
        types=tuple((one.iri, one.things) for one in schema.classes if one.iri not in PART_TYPES),
        vocabularies=tuple(found.most_common(12)) if site else statistics.vocabularies[:12],
        change_rates=_change_rates(read),
        sites=_counted(site_of(row.host) for row in read),
        failing=tuple(sorted((one for one in hosts if one.unread), key=lambda one: -one.unread)[:10]),
        slowest=_slowest(hosts),
        places=_places(queries, site),
        dates=_dates(queries, site),
        links=_links(stores, rows),
        schema=schema,
        audit=audit(audited_pages(stores, (site,) if site else ())),
    )


def _rows(stores: Stores, site: str, progress: Callable[[int], None]) -> Iterator[PageRow]:
    hosts = (
        [row.host for row in stores.frontier.hosts.rows(limit=1_000_000) if belongs_to(row.host, (site,))]
        if site
        else [""]
    )
    seen = 0
    for host in hosts:
        after = -(1 << 63)
        while seen < PAGES and (rows := stores.catalog.scan(after=after, limit=_SLICE, host=host)):
            after = rows[-1].fingerprint
            seen += len(rows)
            progress(seen)
            yield from rows


def _hosts(stores: Stores, rows: Sequence[PageRow]) -> list[HostSummary]:
    pages, unread = Counter(row.host for row in rows), Counter[str]()
    reasons: dict[str, Counter[str]] = {}
    for row in rows:
        if row.outcome not in READ_OUTCOMES:
            unread[row.host] += 1
            reasons.setdefault(row.host, Counter())[row.reason] += 1
    delays = {found.host: found.delay for found in stores.frontier.hosts.rows(limit=100_000)}
    return [
        HostSummary(
            host=host,
            pages=count,
            unread=unread[host],
            delay=delays.get(host, 0.0),
            reason=reasons[host].most_common(1)[0][0] if host in reasons else "",
        )
        for host, count in pages.items()
    ]


def _slowest(hosts: Sequence[HostSummary]) -> tuple[HostSummary, ...]:
    """Those with the longest pauses; none if all are alike, since then nothing is known of their speed."""
    if len({one.delay for one in hosts}) < 2:
        return ()
    return tuple(sorted(hosts, key=lambda one: -one.delay)[:10])


def _change_rates(rows: Sequence[PageRow]) -> tuple[tuple[str, float], ...]:
    """Of pages that were read more than once: the share that never changed, sometimes, at most visits, at every one."""
    again = [row.changes / (row.visits - 1) for row in rows if row.visits > 1]
    if not again:
        return ()
    groups = (
        ("never changed", sum(rate == 0 for rate in again)),
        ("at less than half of the visits", sum(0 < rate < 0.5 for rate in again)),
        ("at half of the visits or more", sum(0.5 <= rate < 1 for rate in again)),
        ("at every visit", sum(rate >= 1 for rate in again)),
    )
    return tuple((name, count / len(again)) for name, count in groups)


def _places(queries: WarehouseQueries, site: str) -> tuple[PlacedThing, ...]:
    found: dict[tuple[float, float], PlacedThing] = {}
    for row in _asked(queries, _PLACES_QUERY, site):
        latitude, longitude = _number(row, "lat"), _number(row, "lon")
        if latitude is not None and longitude is not None:
            name = str(row["name"].value) if "name" in row else str(row["page"].value)
            found.setdefault((latitude, longitude), PlacedThing(name, longitude, latitude))
    return tuple(found.values())[:_MAX_PLACES]


def _dates(queries: WarehouseQueries, site: str) -> tuple[DatedThing, ...]:
    found = {}
    for row in _asked(queries, _DATES_QUERY, site):
        at = _moment(str(row["date"].value))
        if at is not None:
            found[str(row["name"].value), at] = DatedThing(str(row["name"].value), at)
    return tuple(found.values())[:_MAX_DATES]


def _asked(queries: WarehouseQueries, query: str, site: str) -> list[Row]:
    try:
        with queries.sparql(query) as answer:
            rows = answer.rows()
    except QueryError:
        return []  # too large a store for the limits of a query: the report has no such picture
    return [row for row in rows if not site or site in (host_of(str(row["page"].value)), _site(str(row["page"].value)))]


def _site(url: str) -> str:
    return site_of(host_of(url))


def _links(stores: Stores, rows: Sequence[PageRow]) -> tuple[LinkedSites, ...]:
    """Links between the sites of these pages, the most first."""
    site = {row.fingerprint: site_of(row.host) for row in rows[:_MAX_LINKED]}
    links = links_touching(stores.places.links, list(site))
    counts: Counter[tuple[str, str]] = Counter()
    for source, target in zip(links.sources.tolist(), links.targets.tolist(), strict=True):
        if source in site and target in site and site[source] != site[target]:
            counts[site[source], site[target]] += 1
    return tuple(LinkedSites(*pair, number) for pair, number in counts.most_common(40))


def _vocabularies(nquads: bytes) -> Counter[str]:
    parts = (line.split(b" ", 2) for line in nquads.split(b"\n"))
    return Counter(namespace(found[1][1:-1].decode("utf-8", "replace")) for found in parts if len(found) == 3)


def _counted(values: Iterator[str]) -> Counts:
    return tuple(Counter(values).most_common())


def _number(row: Row, name: str) -> float | None:
    try:
        return float(str(row[name].value))
    except (KeyError, ValueError):
        return None


def _moment(text: str) -> float | None:
    match = _DATE.match(text)
    if match is None:
        return None
    year, month, day = (int(part or 1) for part in match.groups())
    try:
        return datetime(year, month, day, tzinfo=UTC).timestamp()
    except ValueError:
        return None
