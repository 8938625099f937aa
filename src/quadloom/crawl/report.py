"""Counters of a crawl: pages per phase, current and total rates, CPU per phase."""

from __future__ import annotations

import time
from collections import Counter, deque

import msgspec

from quadloom.model.service import InstanceLoad
from quadloom.process.channel import ProcessHeartbeat
from quadloom.scheduling.page_row import ExpectedFreshness
from quadloom.stores.protocols.archive import DiskState


class CrawlReport(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a crawl at one moment, for progress lines, `status`, the monitor and the last line of `--json`."""

    pages: int = 0
    quads: int = 0
    failed: int = 0
    denied: int = 0
    gone: int = 0
    unchanged: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    pages_per_second: float = 0.0
    bytes: int = 0
    links: int = 0
    findings: int = 0
    quarantined: int = 0
    frontier: dict[str, int] = {}
    phases: dict[str, int] = {}  # pages through each phase
    cpu: dict[str, float] = {}  # seconds by phase
    rates: dict[str, float] = {}  # pages per second through each phase, over the last ten seconds
    statuses: dict[str, int] = {}
    expected: ExpectedFreshness | None = None  # of all pages, by their learned rates and the present bandwidth
    state: str = "running"
    workers: list[ProcessHeartbeat] = []
    services: list[InstanceLoad] = []  # every instance of the user's services
    disks: list[DiskState] = []  # directories of the archive
    notices: list[str] = []  # what a person should know of, each text once; in the final report


class Meter:
    """Counts pages by phase; `rates` covers the last ten seconds."""

    PHASES = ("fetch", "detect", "transform", "index", "extract")

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.phases: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.pages = 0
        self.bytes = 0
        self._samples: deque[tuple[float, dict[str, int]]] = deque()

    def tick(self) -> None:
        """Store the counters once a second, for `rates`."""
        now = time.monotonic()
        if not self._samples or now - self._samples[-1][0] >= 1.0:
            self._samples.append((now, dict(self.phases)))
            while now - self._samples[0][0] > 10.0:
                self._samples.popleft()

    def rates(self) -> dict[str, float]:
        if not self._samples:
            return {}
        at, before = self._samples[0]
        elapsed = max(time.monotonic() - at, 1e-3)
        return {phase: (self.phases[phase] - before.get(phase, 0)) / elapsed for phase in self.PHASES}

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started
