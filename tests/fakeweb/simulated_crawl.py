"""A crawl without an end in simulated time: real frontier, catalog, schedule and bandwidth; a function is the web.

Nothing sleeps and nothing is fetched or parsed: `answer(url, now)` says what a visit finds. `log` has every request
with its time, so that a test judges what a server would have seen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from quadloom.crawling.ingest.settle import settle_failure
from quadloom.crawling.subscriptions.notify import ChangeNotifier
from quadloom.model.link import Discovery, LinkKind
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Failure
from quadloom.model.url import canonical, fingerprint, host_of
from quadloom.model.visit import Visit
from quadloom.model.wire import decode, encode
from quadloom.planning.policy.change_rate import ChangeRate, Prior
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.planning.ranking.ranker import PageRanker
from quadloom.planning.refresh.reschedule import Rescheduler
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.planning.scope import KEPT_DEPTH
from quadloom.settings import Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.sqlite.catalog import SqliteCatalog, SqliteOutbox
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.schema import SCHEMA
from quadloom_lab.memory.quads import MemoryQuads

START = 1_700_000_000.0


class Answer(NamedTuple):
    """What a visit finds. `version`: content; another one is a change. `links`: URLs on the page."""

    status: int = 200
    version: int = 0
    links: tuple[str, ...] = ()
    kind: str = "html"


class LoggedRequest(NamedTuple):
    at: float
    url: str
    status: int
    known: bool


Web = Callable[[str, float], Answer]


def link(url: str, depth: int = 1, kind: LinkKind = "plain", priority: int = 3, via: int = 1) -> Discovery:
    key = canonical(url)
    return Discovery(url, key, host_of(key), fingerprint(key), depth, kind, priority, via)


class SimulatedCrawl:
    """`step`: simulated seconds from one look at the frontier to the next. `rate_of`: changes per second of a URL, if
    the schedule is to know them and not to learn them. `places`: hosts in memory."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        web: Web,
        *,
        step: float = 0.1,
        ranker: PageRanker | None = None,
        rate_of: Callable[[str], float] | None = None,
        places: int = 2048,
    ) -> None:
        self._rate_of = rate_of
        self._settings = settings
        self._web = web
        self._step = step
        self.database = SqliteDatabase.open(folder / "q.db", SCHEMA)
        self.database.execute("PRAGMA synchronous=OFF")  # no crash is simulated, and a month has many commits
        self.catalog = SqliteCatalog(self.database)
        policy = msgspec.structs.replace(FrontierPolicy.from_settings(settings), delay=0.0, ip_delay=0.0, per_site=64)
        self.frontier = SqliteFrontier(self.database, policy, now=START, capacity=places)
        self.scheduler = RefreshScheduler(self.catalog, self.frontier, settings, ranker=ranker)
        self.outbox = SqliteOutbox(self.database)
        self.notifier = ChangeNotifier(self.catalog, self.outbox, MemoryQuads())
        self._pacer = self.scheduler.pacer()
        self._rescheduler = Rescheduler(
            self.catalog,
            self.frontier,
            self.scheduler,
            ranker,
            lambda: None,
            lambda _rows: None,
            clock=lambda: self.now,
        )
        self.log: list[LoggedRequest] = []
        self.now = START

    def add(self, urls: Sequence[str]) -> None:
        """Seeds."""
        self.frontier.add([link(url, 0, priority=1, via=0) for url in urls], self.now)

    def find(self, urls: Sequence[str]) -> None:
        """URLs that some page links to."""
        self.frontier.add(self.scheduler.predictor.prioritize(tuple(map(link, urls)), from_data=False), self.now)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            visits = self.frontier.lease(1000, self.now, quota=self._pacer.quota(self.now))
            if visits:
                self._settle([self._visited(visit) for visit in visits])
            self._rescheduler.turn(self.now)
            self.now += self._step

    def take(self, urls: Sequence[str]) -> None:
        """Pages that a topical crawl has read, outside of the queue."""
        visits = [
            Visit(url, canonical(url), host_of(url), fingerprint(canonical(url)), KEPT_DEPTH, kind="result", priority=2)
            for url in urls
        ]
        self._settle([self._visited(visit) for visit in visits])

    def row(self, url: str) -> PageRow:
        row = self.catalog.page(fingerprint(canonical(url)))
        assert row is not None
        return row

    def times(self, url: str, since: float = START) -> list[float]:
        return [item.at for item in self.log if item.url == url and item.at >= since]

    def _visited(self, visit: Visit) -> Settlement:
        answer = self._web(visit.href, self.now)
        self.log.append(LoggedRequest(self.now - START, visit.href, answer.status, visit.known))
        old = self.catalog.page(visit.fingerprint)
        pace = HostPace(visit.host, "", 0.0, self.now)
        if answer.status != 200:
            transient = answer.status >= 500
            failure = Failure(
                url=visit.href, kind="status", message=f"HTTP {answer.status}", transient=transient,
                fetched_at=self.now, seconds=0.0, status=answer.status,
            )  # fmt: skip
            return settle_failure(visit, failure, pace, old, self._settings)
        digest = answer.version.to_bytes(8, "big")
        was_read = old is not None and old.changed_at > 0.0
        outcome = Outcome.NEW
        if old is not None and was_read:
            outcome = Outcome.UNCHANGED if old.text_digest == digest else Outcome.CHANGED
        changed = outcome is not Outcome.UNCHANGED or old is None
        row = PageRow(
            fingerprint=visit.fingerprint, key=visit.key, href=visit.href, host=visit.host, final_url=visit.href,
            status=200, outcome=outcome, kind=answer.kind, fetched_at=self.now, first_seen=self.now,
            changed_at=self.now if changed or old is None else old.changed_at,
            visits=(old.visits if old else 0) + 1, depth=visit.depth, via=visit.via, link_kind=visit.kind,
            quads_digest=digest, text_digest=digest, schedule=old.schedule if old else b"",
        )  # fmt: skip
        found = tuple(link(url, visit.depth + 1, via=visit.fingerprint) for url in answer.links)
        return Settlement(visit, outcome, row, pace, found)

    def _settle(self, settlements: list[Settlement]) -> None:
        known = self.catalog.pages([item.visit.fingerprint for item in settlements])
        planned = self.scheduler.plan(settlements, known, self.now)
        if self._rate_of is not None:
            planned = [self._with_known_rate(item, self._rate_of(item.visit.href)) for item in planned]
        notices = self.notifier.notices(planned, lambda _i: b"", known, self.now)
        with self.catalog.transaction():
            self.frontier.settle(planned, self.now)
            self.catalog.record(planned, self.now)
            self.scheduler.write(self.now)
            if notices:
                self.outbox.append(notices)
        self.scheduler.committed()
        for item in planned:
            self._pacer.settled(item)

    def _with_known_rate(self, item: Settlement, rate: float) -> Settlement:
        """A first read with evidence that outweighs everything that visits can show."""
        if item.outcome is not Outcome.NEW or item.page is None:
            return item
        known = ChangeRate(Prior.around(1.0 / rate), forgetting=1.0)
        for _ in range(5000):
            known.observe(math.inf, True, 1.0 / rate)
        row = decode(item.page.schedule, PageScheduleRow)
        row = msgspec.structs.replace(row, plan=msgspec.structs.replace(row.plan, rate=known.encode()))
        return msgspec.structs.replace(item, page=msgspec.structs.replace(item.page, schedule=encode(row)))

    def close(self) -> None:
        self.scheduler.close()
        self.frontier.close()
        self.database.close()
