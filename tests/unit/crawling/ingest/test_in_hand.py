"""When the next batch is due, and what is in it."""

from __future__ import annotations

import tracemalloc
from typing import cast

from quadloom.crawling.ingest.in_hand import BATCH_BYTES, FinishedVisits, VisitsInHand
from quadloom.crawling.workers.pool import WorkerPool
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings
from quadloom.stores.protocols.settlement import FinishedVisit


def finished(number: int, size: int = 0) -> FinishedVisit:
    href = f"http://one.example/{number}"
    page = Page(href, href, 200, (), b"x" * size, 0.0, 0.0)
    return FinishedVisit(Visit(href, href, "one.example", number), page, None)


def waiting(*sizes: int, batch: int = 10, seconds: float = 1e9) -> FinishedVisits:
    visits = FinishedVisits(CrawlSettings(batch=batch, batch_seconds=seconds))
    visits.written()
    for number, size in enumerate(sizes):
        visits.add(finished(number, size))
    return visits


def numbers(batch: list[FinishedVisit]) -> list[int]:
    return [item.visit.fingerprint for item in batch]


def test_a_batch_is_due_by_pages_by_bytes_and_by_time() -> None:
    assert not waiting(0, batch=2).is_due(has_more=True)
    assert waiting(0, 0, batch=2).is_due(has_more=False)
    assert waiting(BATCH_BYTES).is_due(has_more=False)
    assert waiting(0, seconds=0.0).is_due(has_more=False)


def test_nothing_is_due_if_nothing_waits() -> None:
    assert not waiting(seconds=0.0).is_due(has_more=False)
    assert waiting(seconds=0.0).is_due(has_more=True)


def test_a_batch_ends_with_the_page_that_fills_it() -> None:
    half = BATCH_BYTES // 2
    visits = waiting(half, half, 1, 1)
    assert numbers(visits.take()) == [0, 1]
    assert visits.bytes == 2 and numbers(visits.take()) == [2, 3]
    assert visits.bytes == 0 and not visits


def test_what_could_not_be_written_comes_first_and_counts_again() -> None:
    visits = waiting(BATCH_BYTES, 5)
    batch = visits.take()
    visits.put_back(batch)
    assert visits.bytes == BATCH_BYTES + 5
    assert numbers(visits.take()) == [0]


class SentPages:
    """What a pool of workers is given."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def submit(self, visit: Visit, page: Page, **_how: bool) -> int:
        self.bodies.append(page.body)
        return visit.fingerprint


def test_large_bodies_wait_in_little_memory_and_come_out_whole() -> None:
    def body(number: int) -> bytes:
        return b"".join(b'<a href="/%d/%d">link</a>' % (number, n) for n in range(150_000))

    in_hand, sizes = VisitsInHand(), []
    tracemalloc.start()
    for number in range(10):
        href = f"http://one.example/{number}"
        in_hand.add_page(
            Visit(href, href, "one.example", number), Page(href, href, 200, (), body(number), 0, 0), None, None
        )
        sizes.append(len(body(number)))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert in_hand.waiting == 10 and in_hand.bytes == sum(sizes)  # what the crawl waits for is as large as before
    assert held < sum(sizes) // 3
    sent = SentPages()
    while in_hand.waiting:
        in_hand.send_next(cast(WorkerPool, sent))
    assert sent.bodies == [body(number) for number in range(10)]
    assert in_hand.sent_bytes == sum(sizes)
