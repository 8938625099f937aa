"""Pages transformed by real workers, paired with their items in order."""

from __future__ import annotations

from collections.abc import Iterator

from quadloom.crawling.workers import batch
from quadloom.crawling.workers.batch import TransformPool
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, Settings

SETTINGS = Settings(crawl=CrawlSettings(workers=2))


def task(number: int) -> tuple[Visit, Page] | None:
    if number % 7 == 3:
        return None
    url = f"http://batch.example/{number % 5}"  # the same address many times over: only the number tells them apart
    body = f"<title>page {number}</title>".encode() + b"<p>text " * (5000 if number % 11 == 0 else 1)
    return Visit(url, url, "batch.example", number % 5), Page(
        url, url, 200, (("content-type", "text/html"),), body, 0.0, 0.1
    )


def test_results_come_in_the_order_of_the_items_and_reading_stays_near() -> None:
    read: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(200):
            read.append(number)
            yield number

    with TransformPool(SETTINGS) as pool:
        for position, (number, done) in enumerate(pool.each(numbers(), task)):
            assert number == position
            assert read[-1] - number <= batch._AHEAD
            if task(number) is None:
                assert done is None
            else:
                assert done is not None
                assert done.answer is not None
                assert done.answer.result.title == f"page {number}"
        assert number == 199


def test_without_a_page_no_worker_starts() -> None:
    with TransformPool(SETTINGS) as pool:
        assert list(pool.each([3, 10], task)) == [(3, None), (10, None)]
        assert pool._pool.heartbeats() == []
