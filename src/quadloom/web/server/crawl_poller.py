"""What the crawl does, as this server follows it: its newest report, a history for charts, and its events.

One thread asks the crawl's owner every second, however many browsers listen, so that listeners cost the crawl
nothing. Events keep their ids, hence a listener that comes back says the last one it saw and gets what it missed.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from quadloom.crawl.control import Value, ask
from quadloom.errors import QuadloomError
from quadloom.model.event import Event
from quadloom.stores.memory_bus import MemoryBus

EVERY = 1.0
_POINTS = 600


class ChartPoint(msgspec.Struct, frozen=True):
    """A moment for the charts."""

    at: float
    rates: dict[str, float]
    pages: int
    queued: int


class MonitorFeed:
    """Starts to follow with the first look at it."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        self._path = path
        self._clock = clock
        self._bus = MemoryBus(kept=2000)
        self._points: deque[ChartPoint] = deque(maxlen=_POINTS)
        self._report: dict[str, Value] | None = None
        self._last = 0
        self._stopped = threading.Event()
        self._looked = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._looking = threading.Lock()  # events are asked for after the last one: two at once would give them twice

    def report(self) -> dict[str, Value] | None:
        """The crawl's newest report; None = no crawl runs."""
        self._begin()
        return self._report

    def points(self) -> list[ChartPoint]:
        self._begin()
        return list(self._points)

    def events(self, after: int, limit: int = 500) -> list[Event]:
        self._begin()
        return self._bus.recent(after, limit)

    def refresh(self) -> None:
        """Look now: the crawl was told something, and whoever told it wants to see what became of it."""
        self._begin()
        with contextlib.suppress(QuadloomError, OSError, msgspec.MsgspecError):
            self._look()

    def close(self) -> None:
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _begin(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="feed", daemon=True)
                self._thread.start()
        self._looked.wait(timeout=2 * EVERY)

    def _follow(self) -> None:
        while not self._stopped.is_set():
            try:
                self._look()
            except (QuadloomError, OSError, msgspec.MsgspecError):
                self._report = None  # the crawl ended while it was asked; the next look tells
            self._looked.set()
            self._stopped.wait(EVERY)

    def _look(self) -> None:
        with self._looking:
            self._ask()

    def _ask(self) -> None:
        report = ask(self._path, "status")
        self._report = report if isinstance(report, dict) else None
        if self._report is None:
            return
        self._points.append(_point(self._report, self._clock()))
        news = ask(self._path, "events", after=self._last)
        for event in msgspec.convert(news, list[Event]) if isinstance(news, list) else []:
            self._bus.publish(event)
            self._last = event.id


class _Figures(msgspec.Struct):
    rates: dict[str, float] = {}
    pages: int = 0
    frontier: dict[str, int] = {}


def _point(report: dict[str, Value], now: float) -> ChartPoint:
    figures = msgspec.convert(report, _Figures)
    return ChartPoint(round(now, 1), figures.rates, figures.pages, figures.frontier.get("queued", 0))
