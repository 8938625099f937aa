"""Hosts of slow pages hold up nobody else: judged by the order in which pages are done, not by the clock."""

from __future__ import annotations

import queue
from pathlib import Path

import pytest

from quadloom.crawling.ingest.in_flight import InFlightVisits
from quadloom.crawling.workers.pool import PoolChanged, SlowPage, TransformResult, WorkerPool
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, Settings

BURNING = """
import time
import quadloom.documents.pipeline as pipeline
original = pipeline.process_page

def burning(page, *rest):
    if b"SLOW" in page.body:
        until = time.process_time() + 1.5
        while time.process_time() < until:
            pass
    return original(page, *rest)

pipeline.process_page = burning
"""


@pytest.fixture(autouse=True)
def burning_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(BURNING, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))


def _page(host: str, number: int, body: bytes) -> tuple[Visit, Page]:
    url = f"http://{host}/{number}"
    page = Page(url, url, 200, (("content-type", "text/html"),), body, 0.0, 0.1)
    return Visit(url, url, host, number), page


def _order(pages: list[tuple[Visit, Page]], workers: int) -> tuple[list[str], int]:
    """Hosts in the order in which their pages were done, and the most workers with a slow page at any time."""
    messages: queue.Queue[TransformResult | SlowPage | PoolChanged | BaseException] = queue.Queue()
    pool = WorkerPool(
        workers, Settings(), messages.put, lambda *_: messages.put(PoolChanged()), messages.put, gives_back=True
    )
    visits = InFlightVisits(CrawlSettings())
    for visit, page in pages:
        visits.add_page(visit, page, None)
    done: list[str] = []
    most = 0
    try:
        while len(done) < len(pages):
            pool.redistribute()
            visits.send(pool, pool.room())
            most = max(most, sum(worker.slow is not None for worker in pool._workers))
            message = messages.get(timeout=120.0)
            if isinstance(message, TransformResult):
                visits.transformed(message)
                assert message.answer is not None
                done.append(message.visit.host)
            elif isinstance(message, SlowPage):
                visits.slow(message)
            elif isinstance(message, BaseException):
                raise message
    finally:
        pool.close()
    assert visits.waiting == 0
    return done, most


@pytest.mark.parametrize("workers", [2, 1])
def test_pages_of_slow_hosts_wait_and_not_the_others(workers: int) -> None:
    slow = [_page(f"slow{host}.example", 10 * host + n, b"<title>SLOW") for host in range(3) for n in range(2)]
    good = [_page(f"good{n % 20}.example", 1000 + n, b"<title>fine") for n in range(200)]
    done, most = _order(slow + good, workers)
    last = max(place for place, host in enumerate(done) if host.startswith("good"))
    assert sum(host.startswith("slow") for host in done[:last]) <= 1, "a lane of one worker may have ended one"
    assert most == 1
    assert sorted(host for host in done if host.startswith("slow")) == [
        f"slow{host}.example" for host in (0, 0, 1, 1, 2, 2)
    ]


def test_hosts_take_turns_by_the_cpu_of_their_pages() -> None:
    visits = InFlightVisits(CrawlSettings())
    pages = visits._pages
    for number in range(30):
        visits.add_page(*_page("many.example", number, b"x"), None)
    visits.add_page(*_page("few.example", 100, b"x"), None)
    taken = [pages.take(slow=False) for _ in range(3)]
    assert "few.example" in [waiting.visit.host for waiting in taken if waiting is not None]
    pages.charge("many.example", 0.2)
    for number in range(5):
        visits.add_page(*_page("late.example", 200 + number, b"x"), None)
    first = [waiting.visit.host for _ in range(5) if (waiting := pages.take(slow=False)) is not None]
    assert first == ["late.example"] * 5, "until they have had as much"
    pages.charge("many.example", 5.0)
    assert pages.take(slow=False) is None
    assert (pages.slow, len(pages)) == (28, 28)
    pages.charge("many.example", 0.001)
    assert (pages.slow, len(pages)) == (0, 28), "a quick page, and the host is like others again"
