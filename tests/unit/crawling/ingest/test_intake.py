"""What is written for a visit, on a real warehouse: pages that move, come back, or may not be archived any more."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from quadloom.crawling.ingest.intake import Ingest
from quadloom.crawling.subscriptions.notify import ChangeNotifier, difference
from quadloom.crawling.subscriptions.registry import add_subscription
from quadloom.crawling.workers.version_reader import ArchivedVersions
from quadloom.documents.pipeline import process_page
from quadloom.errors import DiskFull
from quadloom.maintenance.links import LinkRecorder
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Page
from quadloom.model.subscription import Subscription
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.settings import FreshnessSettings, Settings
from quadloom.stores.archive.warc_record import encode
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.protocols.settlement import FinishedVisit
from quadloom.stores.protocols.text import SearchRequest
from quadloom.warehouse import Warehouse

OLD, NEW = "http://site.example/old", "http://site.example/new"
SETTINGS = Settings(freshness=FreshnessSettings(dead_after=1))
HTML = (("content-type", "text/html"),)


def page(url: str, text: str, at: float, *, headers: tuple[tuple[str, str], ...] = (), status: int = 200) -> Page:
    body = f'<html><title>{text}</title><p vocab="http://schema.org/" typeof="Event"><b property="name">{text}</b>'
    return Page(url, url, status, HTML + headers, body.encode(), at, 0.1)


def redirect(url: str, target: str, at: float, status: int = 301) -> Page:
    return Page(url, url, status, (("location", target),), b"", at, 0.1)


class Crawler:
    """The writing half of a crawl: everything behind the network, with the clock in the test's hand."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        stores = warehouse.stores
        schedule = RefreshScheduler(stores.catalog, stores.frontier, SETTINGS)
        notifier = ChangeNotifier(stores.catalog, stores.outbox, stores.quads)
        self.links = LinkRecorder(stores.places.links)
        self.ingest = Ingest(stores, SETTINGS, hooks=[schedule, notifier, self.links], links_of=self.links.append)

    def visit(self, *pages: Page) -> list[Settlement]:
        return self.ingest.settle([self.finished(item) for item in pages], pages[-1].fetched_at)

    def close(self) -> None:
        self.ingest.close()
        self.links.close()

    def finished(self, found: Page) -> FinishedVisit:
        url = Url.parse(found.url)
        known = self.warehouse.stores.catalog.page(url.fingerprint) is not None
        visit = Visit(url.href, url.key, url.host, url.fingerprint, known=known, deadline=found.fetched_at + 600)
        pace = HostPace(url.host, "192.0.2.1", 1.0, found.fetched_at + 1.0)
        if not 200 <= found.status < 300:
            return FinishedVisit(visit, found, pace)
        result = process_page(found, visit, SETTINGS, ())
        return FinishedVisit(visit, found, pace, result, None if result.noarchive else encode(found))


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "warehouse", settings=SETTINGS) as opened:
        yield opened


def crawled(warehouse: Warehouse, *batches: list[Page]) -> list[Settlement]:
    """Everything settled and indexed, as after the proper end of a crawl."""
    crawler = Crawler(warehouse)
    settled = [done for batch in batches for done in crawler.visit(*batch)]
    crawler.close()
    return settled


def row_of(warehouse: Warehouse, url: str) -> PageRow:
    row = warehouse.stores.catalog.page(Url.parse(url).fingerprint)
    assert row is not None
    return row


def found(warehouse: Warehouse, words: str) -> list[str]:
    return [hit.id for hit in warehouse.stores.text.search(SearchRequest(text=words)).hits]


def told_of(warehouse: Warehouse) -> list[tuple[str, str]]:
    return [(notice.kind, notice.url) for notice in warehouse.stores.outbox.since(0)]


def test_a_page_that_moved_for_good_leaves_the_indexes_and_its_target_stays(warehouse: Warehouse) -> None:
    subscription = Subscription(id="site", sites=("site.example",))
    add_subscription(
        subscription,
        catalog=warehouse.stores.catalog,
        outbox=warehouse.stores.outbox,
        frontier=warehouse.stores.frontier,
        now=1.0,
    )
    crawled(warehouse, [page(OLD, "ancient", 1000.0), page(NEW, "modern", 1000.0)])
    described = warehouse.stores.quads.match(f"<{NEW}>", None, None, None)
    before = sorted(described), warehouse.stores.quads.graph(NEW)
    (moved,) = crawled(warehouse, [redirect(OLD, NEW, 2000.0)])
    assert moved.outcome is Outcome.UNCHANGED
    assert [item.href for item in moved.discoveries] == [NEW]
    assert not warehouse.stores.quads.graph(OLD)
    assert found(warehouse, "ancient") == []
    assert (
        sorted(warehouse.stores.quads.match(f"<{NEW}>", None, None, None)),
        warehouse.stores.quads.graph(NEW),
    ) == before
    assert told_of(warehouse)[-1] == ("gone", OLD)
    assert warehouse.maintenance.verify().drifts == ()
    crawled(warehouse, [page(OLD, "", 3000.0, status=404)])  # the redirect is gone, its target is not
    assert warehouse.stores.quads.graph(NEW) == before[1]
    assert warehouse.maintenance.verify().drifts == ()
    (back,) = crawled(warehouse, [page(OLD, "revived", 4000.0)])
    assert back.outcome is Outcome.CHANGED
    assert found(warehouse, "revived") == [OLD]
    assert warehouse.maintenance.verify().drifts == ()


def test_a_visit_that_found_nothing_has_its_own_bytes_in_history(warehouse: Warehouse) -> None:
    crawled(warehouse, [page(OLD, "ancient", 1000.0)])
    crawled(warehouse, [page(OLD, "Not found", 2000.0, status=404)])
    visits = warehouse.ask.history(OLD).visits
    assert [(visit.status, visit.quads > 0, visit.archive is None) for visit in visits] == [
        (404, False, True),
        (200, True, False),
    ]
    assert visits[0].body_bytes == len(page(OLD, "Not found", 2000.0).body)
    assert b"ancient" in warehouse.ask.graph_at(OLD).nquads, "the version that was read last"


def test_a_page_that_is_elsewhere_for_now_is_left_as_it_was(warehouse: Warehouse) -> None:
    crawled(warehouse, [page(OLD, "ancient", 1000.0), page(NEW, "modern", 1000.0)])
    graphs = {url: warehouse.stores.quads.graph(url) for url in (OLD, NEW)}
    titles = sorted(
        warehouse.stores.quads.match(None, "<http://purl.org/dc/terms/title>", None, "<urn:quadloom:pages>")
    )
    (away,) = crawled(warehouse, [redirect(OLD, NEW, 2000.0, 302)])
    assert [item.href for item in away.discoveries] == [NEW]
    assert row_of(warehouse, OLD).status == 302
    assert {url: warehouse.stores.quads.graph(url) for url in (OLD, NEW)} == graphs
    assert titles == sorted(
        warehouse.stores.quads.match(None, "<http://purl.org/dc/terms/title>", None, "<urn:quadloom:pages>")
    )
    assert warehouse.maintenance.verify().drifts == ()
    for day in range(13):  # a seed: four times `freshness.dead_span`
        assert warehouse.stores.quads.graph(OLD) == graphs[OLD], "it may come back"
        crawled(warehouse, [page(OLD, "", 3000.0 + day * 86400, status=410)])
    assert not warehouse.stores.quads.graph(OLD)
    assert warehouse.stores.quads.graph(NEW) == graphs[NEW]
    assert warehouse.maintenance.verify().drifts == ()


def test_a_crash_after_a_move_does_not_cost_the_target(warehouse: Warehouse) -> None:
    crawled(warehouse, [page(OLD, "ancient", 1000.0), page(NEW, "modern", 1000.0)])
    row = row_of(warehouse, OLD)
    (moved,) = crawled(warehouse, [redirect(OLD, NEW, 2000.0)])
    # as if not yet indexed
    warehouse.stores.catalog.mark_indexed([IndexedPage(row.fingerprint, row.quads_digest, row.text_digest)])
    assert moved.page is not None
    ingest = Ingest(warehouse.stores, SETTINGS)
    assert ingest.replay() == 1
    ingest.close()
    assert warehouse.stores.quads.graph(NEW)
    assert not warehouse.stores.quads.graph(OLD)


def test_a_page_that_may_not_be_archived_any_more_rests_on_no_record(warehouse: Warehouse) -> None:
    subscription = Subscription(id="site", sites=("site.example",))
    crawled(warehouse, [page(OLD, "open", 1000.0)])
    add_subscription(
        subscription,
        catalog=warehouse.stores.catalog,
        outbox=warehouse.stores.outbox,
        frontier=warehouse.stores.frontier,
        now=1.0,
    )
    closed = page(OLD, "closed", 2000.0, headers=(("x-robots-tag", "noarchive"),))
    crawled(warehouse, [closed])
    assert row_of(warehouse, OLD).archive is None
    statements = warehouse.stores.quads.graph(OLD)
    assert b"closed" in statements
    assert warehouse.maintenance.verify().drifts == ()
    (notice,) = warehouse.stores.outbox.since(0)
    assert not difference(notice, ArchivedVersions(warehouse.stores.archive, SETTINGS)), (
        "of one version nothing is known, so nothing is claimed"
    )
    warehouse.maintenance.rebuild()
    assert warehouse.stores.quads.graph(OLD) == statements


def test_a_difference_keeps_literals_in_one_line(warehouse: Warehouse) -> None:
    crawled(warehouse, [page(OLD, "one", 1000.0)])
    warehouse.subscriptions.add(Subscription(id="site", sites=("site.example",)))
    crawled(warehouse, [page(OLD, "two\u2028lines\u0085more", 2000.0)])
    (notice,) = warehouse.stores.outbox.since(0)
    changes = difference(notice, ArchivedVersions(warehouse.stores.archive, SETTINGS))
    assert any("two" in line and "more" in line for line in changes.added)
    assert all(line.startswith("<") and line.endswith(" .") for line in (*changes.added, *changes.removed))


def test_the_newest_of_two_versions_that_are_indexed_together_counts(warehouse: Warehouse) -> None:
    crawled(warehouse, [page(OLD, "first", 1000.0)])
    crawled(
        warehouse,
        [page(OLD, "", 2000.0, status=404)],
        [page(OLD, "second", 3000.0)],
    )
    assert found(warehouse, "second") == [OLD]
    assert warehouse.maintenance.verify().drifts == ()
    noindex = (("x-robots-tag", "noindex"),)
    crawled(warehouse, [page(OLD, "third", 4000.0)], [page(OLD, "fourth", 5000.0, headers=noindex)])
    assert found(warehouse, "third") == []
    assert warehouse.maintenance.verify().drifts == ()


def test_a_quarantined_page_has_cost_its_host_a_request(warehouse: Warehouse) -> None:
    warehouse.requests.add_seeds([OLD, NEW])
    (visit,) = warehouse.stores.frontier.lease(1, 1e10)
    crawler = Crawler(warehouse)
    pace = HostPace(visit.host, "192.0.2.1", 30.0, 1e10 + 30.0)
    fetched = replace(page(visit.href, "poison", 1e10), url=visit.href)
    crawler.ingest.settle(
        [FinishedVisit(visit, fetched, pace, reason="quarantined: its transformation crashed, twice")], 1e10
    )
    crawler.close()
    assert warehouse.stores.frontier.lease(1, 1e10 + 5.0) == []
    assert len(warehouse.stores.frontier.lease(1, 1e10 + 31.0)) == 1


def test_an_error_at_the_end_leaves_no_thread_behind(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk did: the workers' end failed, and the indexer went on writing to indexes that were being closed."""

    def fail() -> None:
        raise DiskFull("no room left")

    crawler = Crawler(warehouse)
    crawler.visit(page(OLD, "a title", 1000.0))
    monkeypatch.setattr(crawler.ingest._pool, "close", fail)
    with pytest.raises(DiskFull):
        crawler.close()
    assert "indexer" not in {thread.name for thread in threading.enumerate()}
    assert row_of(warehouse, OLD).indexed_quads  # and what it had was committed and marked
