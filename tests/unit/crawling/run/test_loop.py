"""How many visits are in progress: as many as have connections, and some that wait for one while a batch is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from quadloom.crawling.run.session import CrawlSession
from quadloom.fetching.fetcher import Fetcher, FetchResult
from quadloom.fetching.in_process import InProcessTransport, respond
from quadloom.fetching.transport import FetchRequest
from quadloom.fetching.unit import FetchThread, FetchUnit
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.process.channel import ProcessHeartbeat
from quadloom.process.clock import unix_time
from quadloom.settings import (
    CrawlSettings,
    GuardSettings,
    LimitSettings,
    PolitenessSettings,
    Settings,
    SiteSettings,
)
from quadloom.warehouse import Warehouse

HOSTS = [f"host{number}.example" for number in range(12)]
GUARD = GuardSettings(hosts=dict.fromkeys(HOSTS, "192.0.2.1"), allow=["192.0.2.0/24"])


class SilentUnit:
    """Never answers."""

    def __init__(self) -> None:
        self.in_hand = 0

    def send(self, visits: Sequence[Visit], robots: dict[str, bytes], strikes: dict[str, int]) -> None:
        self.in_hand += len(visits)

    def reaches(self, endpoints: object) -> bool:
        return True

    def cpu_seconds(self) -> float:
        return 0.0

    def heartbeat(self) -> ProcessHeartbeat:
        return ProcessHeartbeat("fetch", 0, 0, 0.0, self.in_hand)

    def close(self) -> None:
        return


@pytest.mark.parametrize(
    ("politeness", "site", "sent"),
    [
        (PolitenessSettings(ip_delay=0.0), [], 5),
        (PolitenessSettings(ip_delay=0.0, per_site=2), [], 4),
        (PolitenessSettings(ip_delay=0.0), [SiteSettings(match="host1.example", per_site=2)], 4),
        (PolitenessSettings(ip_delay=0.0), [SiteSettings(match="host1.example", own=True)], 4),
    ],
)
def test_a_quarter_more_than_there_are_connections_unless_a_host_may_have_two(
    tmp_path: Path, politeness: PolitenessSettings, site: list[SiteSettings], sent: int
) -> None:
    settings = Settings(
        crawl=CrawlSettings(workers=1, scope="any", max_seconds=0.3),
        politeness=politeness,
        limits=LimitSettings(connections=4, total_seconds=0.1, transform_seconds=0.1),
        guard=GUARD,
        site=site,
    )
    unit = SilentUnit()
    with Warehouse.open(tmp_path, settings=settings) as warehouse:
        warehouse.requests.add_seeds([f"http://{host}/" for host in HOSTS])
        running = CrawlSession(
            warehouse.stores, settings, warehouse.scope, lambda: warehouse.ask.queries, fetch=lambda *_: unit
        )
        assert list(running) == []
    assert unit.in_hand == sent


class Web:
    """Pages without links, or what `status` says. Answers at once."""

    def __init__(self, status: int = 200) -> None:
        self._status = status

    def answer(self, request: FetchRequest) -> Page:
        if request.href.endswith("/robots.txt"):
            return respond(request, b"", status=404)
        headers = (("content-type", "text/html"),)
        return respond(request, b"<title>page</title>", status=self._status, headers=headers)

    def unit(
        self,
        settings: Settings,
        fetched: Callable[[Sequence[FetchResult]], None],
        lost: Callable[[Sequence[Visit]], None],
        failed: Callable[[BaseException], None],
    ) -> FetchUnit:
        transport = InProcessTransport(settings, self.answer, clock=unix_time)
        return FetchThread(Fetcher(settings, transport), fetched, failed)


def test_pages_that_wait_for_a_batch_do_not_hold_the_few_places_there_are(tmp_path: Path) -> None:
    """Otherwise every second visit here would wait for an hour: `batch_seconds` is for batches that hold up nobody."""
    settings = Settings(
        crawl=CrawlSettings(workers=1, scope="any", in_flight=2, batch_seconds=3600.0, max_seconds=120.0),
        politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0),
        guard=GUARD,
    )
    with Warehouse.open(tmp_path, settings=settings) as warehouse:
        warehouse.requests.add_seeds([f"http://{host}/" for host in HOSTS])
        running = CrawlSession(
            warehouse.stores, settings, warehouse.scope, lambda: warehouse.ask.queries, fetch=Web().unit
        )
        assert len(list(running)) == len(HOSTS)
        assert running.report().seconds < settings.crawl.max_seconds


@pytest.mark.parametrize("status", [200, 404])
def test_a_host_that_answers_does_not_wait_for_the_batch(tmp_path: Path, status: int) -> None:
    """Dead links are answers like others: a site with many of them was read at four URLs a second."""
    settings = Settings(
        crawl=CrawlSettings(workers=1, scope="any", batch_seconds=2.0, max_seconds=15.0),
        politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0),
        guard=GUARD,
    )
    with Warehouse.open(tmp_path, settings=settings) as warehouse:
        warehouse.requests.add_seeds([f"http://{HOSTS[0]}/{number}" for number in range(12)])
        running = CrawlSession(
            warehouse.stores, settings, warehouse.scope, lambda: warehouse.ask.queries, fetch=Web(status).unit
        )
        assert len(list(running)) == 12, "one every two seconds if each waited for the batch before"
