"""A fetch unit in a thread, over the fake web in the same process: no sockets, no child process, no waiting."""

from __future__ import annotations

import queue
import socket
from collections.abc import Sequence

import pytest

from fakeweb.in_process import respond_from
from quadloom.errors import SettingsError
from quadloom.fetching.fetcher import Fetcher, FetchResult
from quadloom.fetching.in_process import InProcessTransport, respond
from quadloom.fetching.process import FetchProcess
from quadloom.fetching.transport import FetchRequest
from quadloom.fetching.unit import FetchThread, FetchUnit, FetchUnitFactory, answered_in_process
from quadloom.model.page import Page
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.settings import GuardSettings, PolitenessSettings, Settings
from quadloom_lab.fakeweb import FakeWeb, WebSpec

QUICK = Settings(politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0))


class Clock:
    """Simulated time, which passes only when somebody waits."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def visit(href: str, **more: float) -> Visit:
    url = Url.parse(href)
    return Visit(url.href, url.key, url.host, url.fingerprint, **more)  # type: ignore[arg-type]


def take(inbox: queue.SimpleQueue[Sequence[FetchResult]], count: int) -> list[FetchResult]:
    results: list[FetchResult] = []
    while len(results) < count:
        results += inbox.get(timeout=20)
    return results


def test_a_thread_fetches_the_fake_web(monkeypatch: pytest.MonkeyPatch) -> None:
    web = FakeWeb(WebSpec(seed=3, pages=40, hosts=4, scale=0.1, faults=False, traps=False, crawl_delay=0.0))
    monkeypatch.setattr(socket, "socket", None)
    inbox: queue.SimpleQueue[Sequence[FetchResult]] = queue.SimpleQueue()
    errors: list[BaseException] = []
    unit: FetchUnit = FetchThread(
        Fetcher(QUICK, InProcessTransport(QUICK, respond_from(web))), inbox.put, errors.append
    )
    visits = [visit(home) for home in web.homes]
    unit.send(visits, {}, {})
    results = take(inbox, len(visits))
    assert unit.in_hand == 0
    heartbeat = unit.heartbeat()
    assert (heartbeat.name, heartbeat.in_hand) == ("fetch", 0) and heartbeat.cpu_seconds >= 0.0
    unit.close()
    assert unit.cpu_seconds() > 0.0
    assert errors == []
    assert sorted(one.visit.href for one in results) == sorted(one.href for one in visits)
    for one in results:
        assert isinstance(one.result, Page) and one.result.status == 200
        assert one.learned is not None


def test_time_is_simulated() -> None:
    """An hour of Crawl-delay passes at once."""
    clock = Clock()
    asked: list[tuple[float, str]] = []

    def site(request: FetchRequest) -> Page:
        asked.append((clock.now, request.href))
        body = b"User-agent: *\nCrawl-delay: 3600" if request.href.endswith("/robots.txt") else b"page"
        return respond(request, body, seconds=1.0)

    transport = InProcessTransport(QUICK, site, clock=clock, sleep=clock.sleep)
    fetcher = Fetcher(QUICK, transport, clock=clock, monotonic=clock)
    fetcher.submit([visit("http://x.test/1"), visit("http://x.test/2")])
    fetched: list[FetchResult] = []
    while fetcher.in_flight:
        fetched += fetcher.step(600.0)
    assert [(at - 1_000_000.0, href) for at, href in asked] == [
        (0.0, "http://x.test/robots.txt"),
        (3600.0, "http://x.test/1"),
        (7200.0, "http://x.test/2"),
    ]
    assert {one.pace.delay for one in fetched} == {3600.0}


def test_close_ends_the_thread_with_visits_in_hand() -> None:
    clock = Clock()
    inbox: queue.SimpleQueue[Sequence[FetchResult]] = queue.SimpleQueue()
    errors: list[BaseException] = []
    transport = InProcessTransport(QUICK, lambda request: respond(request, b"page"), clock=clock)
    unit = FetchThread(Fetcher(QUICK, transport, clock=clock), inbox.put, errors.append)
    unit.send([visit("http://x.test/", not_before=clock.now + 60.0)], {}, {})
    assert unit.in_hand == 1
    unit.close()
    assert inbox.empty() and errors == []


def test_a_defect_ends_the_crawl() -> None:
    def broken(_request: FetchRequest) -> Page:
        raise AssertionError("a defect")

    failed: queue.SimpleQueue[BaseException] = queue.SimpleQueue()
    unit = FetchThread(Fetcher(QUICK, InProcessTransport(QUICK, broken)), lambda _fetched: None, failed.put)
    unit.send([visit("http://x.test/")], {}, {})
    assert str(failed.get(timeout=20)) == "a defect"
    unit.close()


def test_the_process_and_a_function_that_starts_a_thread_are_factories() -> None:
    thread = answered_in_process(lambda request: respond(request, b"page"))
    factories: list[FetchUnitFactory] = [FetchProcess, thread]
    inbox: queue.SimpleQueue[Sequence[FetchResult]] = queue.SimpleQueue()
    unit = factories[1](QUICK, inbox.put, lambda _lost: None, lambda _error: None)
    unit.send([visit("http://x.test/")], {}, {})
    assert len(take(inbox, 1)) == 1
    unit.close()


def test_a_block_that_is_none_is_refused_before_anything_starts() -> None:
    """The child was started again and again, and a crawl of a known warehouse never ended."""
    settings = Settings(guard=GuardSettings(allow=["nonsense"]))
    with pytest.raises(SettingsError, match="nonsense"):
        FetchProcess(settings, lambda _fetched: None, lambda _lost: None, lambda _error: None)
