"""The clock of the machine is set while a crawl runs, or between two: no host is asked early, and none starves."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from quadloom.crawling.run.session import CrawlSession
from quadloom.fetching.in_process import respond
from quadloom.fetching.transport import FetchRequest
from quadloom.fetching.unit import answered_in_process
from quadloom.maintenance.archive_order import all_pages
from quadloom.model.page import Page
from quadloom.process import clock
from quadloom.settings import CrawlSettings, FreshnessSettings, GuardSettings, PolitenessSettings, Settings
from quadloom.warehouse import Warehouse

YEAR = 365 * 86400.0
SEED = "http://one.example/"
PAGES = 5
DELAY = 0.4
SETTINGS = Settings(
    crawl=CrawlSettings(workers=1, batch_seconds=0.0, max_wait=10 * DELAY),
    politeness=PolitenessSettings(delay=DELAY, ip_delay=0.0, adaptive=0.0),
    freshness=FreshnessSettings(min_interval="1s", max_interval="2s"),
    guard=GuardSettings(hosts={"one.example": "192.0.2.1"}, allow=["192.0.2.0/24"]),
)


@pytest.fixture(autouse=True)
def own_origin() -> Iterator[None]:
    before = clock.origin()
    yield
    clock.adopt(before)


class Web:
    """`requests`: steady times. `during` is called before the second page is answered."""

    def __init__(self, during: Callable[[], None] = lambda: None) -> None:
        self.requests: list[float] = []
        self.version = 0
        self._during = during

    def answer(self, request: FetchRequest) -> Page:
        if request.href.endswith("/robots.txt"):
            return respond(request, b"", status=404)
        self.requests.append(time.monotonic())
        if len(self.requests) == 2:
            self._during()
        links = "".join(f'<a href="/{number}">{number}</a>' for number in range(1, PAGES))
        body = f"<title>version {self.version}</title>{links} of {request.href}"
        return respond(request, body.encode(), headers=(("content-type", "text/html"),))

    def assert_no_early_request(self) -> None:
        gaps = [later - earlier for earlier, later in itertools.pairwise(self.requests)]
        assert min(gaps) >= DELAY - 0.01, gaps


def crawl(warehouse: Warehouse, web: Web) -> list[str]:
    """Returns the notices."""
    running = CrawlSession(
        warehouse.stores,
        warehouse.settings,
        warehouse.scope,
        lambda: warehouse.ask.queries,
        fetch=answered_in_process(web.answer),
    )
    for _ in running:
        pass
    return list(running.report().notices)


def titles(warehouse: Warehouse) -> list[str]:
    return [row.title for row in all_pages(warehouse.stores.catalog)]


@pytest.mark.parametrize("step", [YEAR, -YEAR, 600.0])
def test_a_step_within_a_run(tmp_path: Path, step: float, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    web = Web(lambda: monkeypatch.setattr(time, "time", lambda: real() + step))
    with Warehouse.open(tmp_path, settings=SETTINGS) as warehouse:
        warehouse.requests.add_seeds([SEED])
        notices = crawl(warehouse, web)
        assert titles(warehouse) == ["version 0"] * PAGES
        rows = list(all_pages(warehouse.stores.catalog))
    web.assert_no_early_request()
    assert len([text for text in notices if "was set" in text]) == 1
    assert all(abs(row.fetched_at - real()) < 3600.0 for row in rows)


@pytest.mark.parametrize("step", [YEAR, -YEAR, 7200.0, -7200.0])
def test_a_step_between_two_runs(tmp_path: Path, step: float) -> None:
    """Half of the pages are read before the step. Then the others are, the schedule goes on, and what is read again
    replaces what was read before, although that may be in the future now."""
    web = Web()
    first = msgspec.structs.replace(SETTINGS, crawl=CrawlSettings(workers=1, batch_seconds=0.0, max_pages=2))
    with Warehouse.open(tmp_path, settings=first) as warehouse:
        warehouse.requests.add_seeds([SEED])
        crawl(warehouse, web)
    clock.adopt(clock.origin() + step)
    with Warehouse.open(tmp_path, settings=SETTINGS) as warehouse:
        notices = crawl(warehouse, web)
        assert len([text for text in notices if "was set" in text]) == 1
        assert titles(warehouse) == ["version 0"] * PAGES
        soonest = warehouse.stores.frontier.soonest(PAGES)
        assert all(page.due < clock.unix_time() + 60.0 for page in soonest), "no page waits for a time that is no more"
    web.version = 1
    with Warehouse.open(tmp_path, settings=SETTINGS) as warehouse:
        warehouse.requests.refresh([row.href for row in all_pages(warehouse.stores.catalog)])
        assert not crawl(warehouse, web), "the step is reported once"
        assert titles(warehouse) == ["version 1"] * PAGES, "what is read now is newer than what was read in the future"
        assert warehouse.maintenance.verify().ok
    web.assert_no_early_request()
