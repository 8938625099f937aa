"""The running crawl as this server follows it: its newest report, a history for charts, and its events.

One thread polls the process that crawls every second, however many browsers listen, so that listeners cost the crawl
nothing. Events keep their ids, so a listener that reconnects sends the last id it saw and gets what it missed.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from quadloom.crawling.cluster.view import ClusterView, cluster_view, merged_report
from quadloom.crawling.run.control import Value, ask
from quadloom.errors import QuadloomError
from quadloom.model.event import Event
from quadloom.settings import Settings
from quadloom.stores.backends import open_cluster
from quadloom.stores.memory_bus import MemoryBus
from quadloom.stores.protocols.cluster import Cluster

EVERY = 1.0
_MAX_POINTS = 600


class ChartPoint(msgspec.Struct, frozen=True):
    """The rates of one moment, for the charts."""

    at: float
    rates: dict[str, float]
    pages: int
    queued: int


class CrawlPoller:
    """Starts polling when it is first used. On a cluster it follows all workers, through the shared database."""

    def __init__(self, path: Path, settings: Settings, clock: Callable[[], float]) -> None:
        self._path = path
        self._settings = settings
        self._cluster: Cluster | None = None
        self._view: ClusterView | None = None
        self._clock = clock
        self._bus = MemoryBus(kept=2000)
        self._points: deque[ChartPoint] = deque(maxlen=_MAX_POINTS)
        self._report: dict[str, Value] | None = None
        self._last = 0
        self._stopped = threading.Event()
        self._polled = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._polling = (
            threading.Lock()
        )  # each poll asks for events after the last one: two at once would get them twice

    def report(self) -> dict[str, Value] | None:
        """The crawl's newest report; None = no crawl is running."""
        self._start()
        return self._report

    def cluster(self) -> ClusterView | None:
        """All workers; None = this warehouse belongs to one machine."""
        self._start()
        return self._view

    @property
    def state(self) -> str:
        """The state in the newest report; empty = no crawl is running, or none was found yet. Never waits."""
        self._begin()
        return str(self._report.get("state", "")) if self._report is not None else ""

    def points(self) -> list[ChartPoint]:
        self._start()
        return list(self._points)

    def events(self, after: int, limit: int = 500) -> list[Event]:
        self._start()
        return self._bus.recent(after, limit)

    def refresh(self) -> None:
        """Poll now: a command was sent to the crawl, and its effect should be visible at once."""
        self._start()
        with contextlib.suppress(QuadloomError, OSError, msgspec.MsgspecError):
            self._poll()

    def close(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        if self._cluster is not None:
            self._cluster.close()

    def _start(self) -> None:
        self._begin()
        self._polled.wait(timeout=2 * EVERY)

    def _begin(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="crawl-poller", daemon=True)
                self._thread.start()

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                self._poll()
            except (QuadloomError, OSError, msgspec.MsgspecError):
                self._report = None  # the crawl ended during the poll; the next one will tell
            self._polled.set()
            self._stopped.wait(EVERY)

    def _poll(self) -> None:
        with self._polling:
            if self._settings.stores.is_shared:
                events = self._read_cluster()
            else:
                report = ask(self._path, "status")
                self._report = report if isinstance(report, dict) else None
                told = ask(self._path, "events", after=self._last) if self._report is not None else None
                events = msgspec.convert(told, list[Event]) if isinstance(told, list) else []
            if self._report is not None:
                self._points.append(_point(self._report, self._clock()))
            for event in events:
                self._bus.publish([event])
                self._last = event.id

    def _read_cluster(self) -> list[Event]:
        try:
            if self._cluster is None:
                self._cluster = open_cluster(self._settings)
            rows = self._cluster.workers()
            events = self._cluster.events(self._last, limit=1000)
        except QuadloomError:
            self._view = None  # before the first worker there are no tables
            raise
        self._view = cluster_view(rows)
        whole = merged_report(rows)
        self._report = msgspec.to_builtins(whole) if whole is not None else None
        return events


class _Figures(msgspec.Struct):
    rates: dict[str, float] = {}
    pages: int = 0
    frontier: dict[str, int] = {}


def _point(report: dict[str, Value], now: float) -> ChartPoint:
    figures = msgspec.convert(report, _Figures)
    return ChartPoint(round(now, 1), figures.rates, figures.pages, figures.frontier.get("queued", 0))
