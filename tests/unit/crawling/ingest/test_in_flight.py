"""Visits from their lease to their settlement: when the next batch is due, and what is in it."""

from __future__ import annotations

import tracemalloc
from typing import NamedTuple, cast

from quadloom.crawling.ingest.in_flight import BATCH_BYTES, InFlightVisits, UnindexedPages
from quadloom.crawling.workers.pool import TransformResult, WorkerPool
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.protocols.settlement import FinishedVisit, VisitStep
from quadloom.stores.shards import shard_of


def finished(number: int, size: int = 0, step: VisitStep = "whole") -> FinishedVisit:
    href = f"http://one.example/{number}"
    page = Page(href, href, 200, (), b"x" * size, 0.0, 0.0)
    return FinishedVisit(Visit(href, href, "one.example", number), page, None, step=step)


def waiting(*sizes: int, batch: int = 10, seconds: float = 1e9) -> InFlightVisits:
    visits = InFlightVisits(CrawlSettings(batch=batch, batch_seconds=seconds))
    visits.written()
    for number, size in enumerate(sizes):
        visits.finish(finished(number, size))
    return visits


def numbers(batch: list[FinishedVisit]) -> list[int]:
    return [item.visit.fingerprint for item in batch]


def test_a_batch_is_due_by_pages_by_bytes_and_by_time() -> None:
    assert not waiting(0, batch=2).is_due(has_more=True)
    assert waiting(0, 0, batch=2).is_due(has_more=False)
    assert waiting(BATCH_BYTES).is_due(has_more=False) and waiting(BATCH_BYTES).must_be_written
    assert waiting(0, seconds=0.0).is_due(has_more=False)


def test_nothing_is_due_if_nothing_waits() -> None:
    assert not waiting(seconds=0.0).is_due(has_more=False)
    assert waiting(seconds=0.0).is_due(has_more=True)


def test_a_batch_ends_with_the_page_that_fills_it() -> None:
    half = BATCH_BYTES // 2
    visits = waiting(half, half, 1, 1)
    assert numbers(visits.take_batch()) == [0, 1]
    assert not visits.must_be_written and numbers(visits.take_batch()) == [2, 3]
    assert visits.finished == 0 and len(visits) == 4, "what is taken is in flight until it is released"


def test_what_could_not_be_written_comes_first_and_counts_again() -> None:
    visits = waiting(BATCH_BYTES, 5)
    batch = visits.take_batch()
    assert not visits.must_be_written
    visits.put_back(batch)
    assert visits.must_be_written and visits.finished == 2
    assert numbers(visits.take_batch()) == [0]


def test_steps_after_a_settled_fetch_have_batches_of_their_own() -> None:
    visits = waiting(0)
    steps: tuple[VisitStep, ...] = ("later", "whole", "detected", "same")
    for number, step in enumerate(steps, 1):
        visits.finish(finished(number, step=step))
    assert [numbers(visits.take_batch()) for _ in range(3)] == [[0, 2, 4], [1, 3], []]


def test_a_visit_is_in_flight_from_its_lease_to_its_release() -> None:
    visits = waiting()
    item = finished(7, 3)
    visits.lease([item.visit])
    assert 7 in visits and len(visits) == 1
    visits.finish(item)
    assert 7 in visits and len(visits) == 1, "fetched, it is the same visit"
    visits.release(one.visit for one in visits.take_batch())
    assert 7 not in visits and not visits


def test_a_page_is_unindexed_until_each_of_its_jobs_is_acknowledged() -> None:
    pages = UnindexedPages()
    pages.add([(1, "one.example")])
    pages.add([(1, "one.example")])
    pages.add([(2, "two.example")])
    assert len(pages) == 3 and pages.shards() == {shard_of("one.example"), shard_of("two.example")}
    pages.acknowledge([IndexedPage(1, b"", b""), IndexedPage(2, b"", b""), IndexedPage(3, b"", b"")])
    assert len(pages) == 1 and 1 in pages and 2 not in pages and pages.shards() == {shard_of("one.example")}
    pages.acknowledge([IndexedPage(1, b"", b"")])
    assert not pages and not pages.shards()


class SentPage(NamedTuple):
    visit: Visit
    page: Page


class SentPages:
    """What a pool of workers is given."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self._sent: list[SentPage] = []

    def slow_room(self, *, others: bool) -> int:
        return 0 if self._sent or others else 1

    def submit(self, visit: Visit, page: Page, **_how: bool) -> int:
        self.bodies.append(page.body)
        self._sent.append(SentPage(visit, page))
        return visit.fingerprint

    def take(self) -> list[SentPage]:
        taken, self._sent = self._sent, []
        return taken


def test_large_bodies_wait_in_little_memory_and_come_out_whole() -> None:
    def body(number: int) -> bytes:
        return b"".join(b'<a href="/%d/%d">link</a>' % (number, n) for n in range(150_000))

    visits, sizes = waiting(), []
    tracemalloc.start()
    for number in range(10):
        href = f"http://one.example/{number}"
        visits.add_page(Visit(href, href, "one.example", number), Page(href, href, 200, (), body(number), 0, 0), None)
        sizes.append(len(body(number)))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert visits.waiting == 10 and visits.bytes == sum(sizes)  # what the crawl waits for is as large as before
    assert held < sum(sizes) // 3
    sent = SentPages()
    while visits.waiting:
        visits.send(cast(WorkerPool, sent), 100)
        given = sent.take()
        assert 0 < len(given) < 10, "workers have few of them at a time"
        for page in given:
            visits.transformed(TransformResult(page.visit, page.page, None))
        visits.release(item.visit for item in visits.take_batch())
    assert visits.bytes == 0 and not visits
    assert sent.bodies == [body(number) for number in range(10)]
