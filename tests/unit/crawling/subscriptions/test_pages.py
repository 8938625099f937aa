"""A subscription to a page, a site, a type or a query changes the plan: its pages are read again earlier."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from statistics import fmean

import pytest
from msgspec.structs import replace

from quadloom.crawling.run.session import page_ranker
from quadloom.crawling.subscriptions.pages import subscribed_pages
from quadloom.crawling.subscriptions.standing_queries import StandingQueries, lines_of
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Page
from quadloom.model.subscription import Subscription
from quadloom.model.url import fingerprint
from quadloom.model.visit import Visit
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.settings import FreshnessSettings, Settings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.backends import DATABASE
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.warehouse import Warehouse

HOSTS = ("www.a.example", "b.example")
URLS = [f"http://{host}/{number}" for host in HOSTS for number in range(15)]
SETTINGS = Settings(freshness=FreshnessSettings(bandwidth=0.001, min_interval="1s", max_interval="90d"))
SUBSCRIPTIONS = {
    "url": (Subscription(id="s", urls=(URLS[7],)), {URLS[7]}),
    "site": (Subscription(id="s", sites=("a.example",)), set(URLS[:15])),
    "type": (Subscription(id="s", types=("http://schema.org/Event",)), {URLS[3], URLS[20]}),
    "query": (
        Subscription(id="s", query="SELECT ?page { GRAPH ?page { ?event a schema:Event } }"),
        {URLS[3], URLS[20]},
    ),
}


def page(url: str, at: float) -> Page:
    """Every page links to the next one, so all have the same rank; two describe events."""
    place = URLS.index(url)
    kind = "Event" if place in (3, 20) else "Thing"
    body = (
        f'<title>{url}</title><p vocab="http://schema.org/" typeof="{kind}"><b property="name">{place}</b></p>'
        f'<a href="{URLS[(place + 1) % len(URLS)]}">next</a>'
    )
    return Page(url, url, 200, (("content-type", "text/html"),), body.encode(), at, 0.1)


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    now = time.time()
    source = tmp_path / "pages.warc.gz"
    records = b"".join(encode(page(url, now - 1000.0)).member for url in URLS)
    source.write_bytes(file_header(source.name, now) + records)
    with Warehouse.open(tmp_path / "warehouse", settings=SETTINGS) as opened:
        opened.maintenance.import_(source)
        yield opened


def next_visits(warehouse: Warehouse) -> dict[str, float]:
    """Seconds until each page's next visit, as the planner has it after a ranking and three visits with a change."""
    ranking = page_ranker(warehouse.stores, SETTINGS)
    for place, url in enumerate(URLS):
        ranking.append(fingerprint(url), fingerprint(URLS[(place + 1) % len(URLS)]).to_bytes(8, "little", signed=True))
    ranking.flush()
    now = time.time()
    ranking.recompute(now)
    refreshing = RefreshScheduler(warehouse.stores.catalog, warehouse.stores.frontier, SETTINGS, ranker=ranking)
    rows = warehouse.stores.catalog.pages([fingerprint(url) for url in URLS])
    periods: dict[str, float] = {}
    for at in (now + 3600.0, now + 7200.0, now + 10800.0):
        visited = [replace(row, fetched_at=at, outcome=Outcome.CHANGED) for row in rows.values()]
        for done in refreshing.plan([_settlement(row) for row in visited], rows, at):
            assert done.page is not None and done.again_at is not None
            rows[done.page.fingerprint] = done.page
            periods[done.page.href] = done.again_at - at
    ranking.close()
    return periods


def _settlement(row: PageRow) -> Settlement:
    visit = Visit(row.href, row.key, row.host, row.fingerprint)
    return Settlement(visit, row.outcome, row, HostPace(row.host, "", 0.0, row.fetched_at))


def subscribe(warehouse: Warehouse, subscription: Subscription) -> None:
    """Subscribe; a query is asked once, as the running crawl does."""
    warehouse.subscriptions.add(warehouse.subscriptions.checked(subscription))
    if subscription.query:
        warehouse.stores.quads.flush()
        standing = StandingQueries(
            lambda query: lines_of(warehouse.ask.queries, query, warehouse.settings.limits),
            warehouse.stores.catalog,
            warehouse.stores.outbox,
        )
        assert standing.turn([subscription], version=1) == 1


@pytest.mark.parametrize("kind", SUBSCRIPTIONS)
def test_subscribed_pages_are_read_again_earlier(warehouse: Warehouse, kind: str) -> None:
    subscription, pages = SUBSCRIPTIONS[kind]
    before = _pause_beside_others(next_visits(warehouse), pages)
    subscribe(warehouse, subscription)
    after = _pause_beside_others(next_visits(warehouse), pages)
    assert 0.9 < before < 1.1, "all pages are alike"
    assert after < 0.95 * before


def _pause_beside_others(periods: dict[str, float], pages: set[str]) -> float:
    return fmean(periods[url] for url in pages) / fmean(periods[url] for url in URLS if url not in pages)


@pytest.mark.parametrize("kind", SUBSCRIPTIONS)
def test_each_kind_names_its_pages(warehouse: Warehouse, kind: str) -> None:
    subscription, pages = SUBSCRIPTIONS[kind]
    subscribe(warehouse, subscription)
    with closing(SqliteDatabase.read_only(warehouse.path / DATABASE)) as database:
        (found,) = subscribed_pages(SqliteCatalog(database), warehouse.stores.quads)
    assert set(found.urls) == pages and len(found.urls) == len(pages)
