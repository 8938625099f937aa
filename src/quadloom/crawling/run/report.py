"""Counters of a crawl: pages per phase, current and total rates, CPU per phase."""

from __future__ import annotations

import resource
import time
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import Literal

import msgspec

from quadloom.fetching.browser.renderer import RenderingTotals
from quadloom.model.outcome import READ_OUTCOMES, Settlement
from quadloom.model.service import InstanceLoad
from quadloom.planning.policy.page_row import ExpectedFreshness
from quadloom.process import template
from quadloom.process.channel import ProcessHeartbeat
from quadloom.stores.protocols.archive import DiskState


class VisitProblem(msgspec.Struct, frozen=True):
    """Why visits of one crawl brought no page: `reason` as pages have it (`dns: …`, `robots: …`, `status: HTTP 404`),
    and one of the URLs."""

    outcome: str
    reason: str
    visits: int
    example: str

    @property
    def kind(self) -> str:
        """The kind of failure: dns, connect, robots, status …"""
        return self.reason.partition(":")[0]


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
    replaced_workers: int = 0  # processes that died or exceeded a limit, and were started again
    frontier: dict[str, int] = {}
    phases: dict[str, int] = {}  # pages through each phase
    cpu: dict[str, float] = {}  # seconds by phase
    rates: dict[str, float] = {}  # pages per second through each phase, over the last ten seconds
    queues: dict[str, int] = {}  # pages that wait before each phase
    waits: dict[str, float] = {}  # what held back further requests, as shares of the last ten seconds; see `HeldBy`
    bandwidth: float = 0.0  # `freshness.bandwidth` of a crawl without an end
    statuses: dict[str, int] = {}
    expected: ExpectedFreshness | None = None  # of all pages, by their learned rates and the present bandwidth
    state: str = "running"
    waits_for: dict[str, float] = {}  # what is away, the network or a store → since when, unix seconds
    workers: list[ProcessHeartbeat] = []
    rendering: RenderingTotals | None = None  # what the browser has cost; None without one
    services: list[InstanceLoad] = []  # every instance of the user's services
    disks: list[DiskState] = []  # directories of the archive
    limit: int = 0  # pages at which the crawl ends; 0 = there is none
    hosts: list[str] = []  # of the latest pages, newest first
    problems: list[VisitProblem] = []  # why visits brought no page, the most frequent reason first
    notices: list[str] = []  # what a person should know of, each text once; in the final report


class ProblemCounter:
    """Counts why visits brought no page. Of endless reasons it keeps the first ones apart, and the rest together."""

    _MOST = 50
    _MOST_CHARACTERS = 300

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, outcome: str, reason: str, url: str) -> None:
        key = (outcome, reason[: self._MOST_CHARACTERS] or "no reason is known")
        if key not in self._found and len(self._found) >= self._MOST:
            key = (outcome, "other reasons")
        visits, example = self._found.get(key, (0, url))
        self._found[key] = (visits + 1, example)

    def problems(self) -> list[VisitProblem]:
        found = [VisitProblem(*key, visits, example) for key, (visits, example) in self._found.items()]
        return sorted(found, key=lambda problem: -problem.visits)


HeldBy = Literal["phases", "memory", "bandwidth", "shares", "hosts", "disk", "network", "store", ""]
"""What keeps a crawl from sending more requests: pages that are in progress, their bytes, `freshness.bandwidth`, a
share of 0, pauses between requests to a host, writing, the network, a store that is away. Empty: nothing, or nobody
wants more."""


class Meter:
    """Counts pages by phase; `rates` and `waits` cover the last ten seconds."""

    PHASES = ("fetch", "detect", "transform", "index", "extract", "settle")
    _LATEST = 40  # pages whose hosts are shown

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.phases: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.problems = ProblemCounter()
        self._hosts: deque[str] = deque(maxlen=self._LATEST)
        self.pages = 0
        self.bytes = 0
        self.rendering = RenderingTotals()
        self._samples: deque[tuple[float, dict[str, int], dict[HeldBy, float]]] = deque()
        self._held: defaultdict[HeldBy, float] = defaultdict(float)
        self._turned_at = self.started
        self._settle_wait = 0.0

    def held(self, by: HeldBy, settle_wait: float) -> None:
        """Once a turn: what has held the crawl back since the last one. `settle_wait`: seconds of waiting for the disk
        or the database so far."""
        now = time.monotonic()
        writing = min(settle_wait - self._settle_wait, now - self._turned_at)
        self._held["disk"] += writing
        self._held[by] += now - self._turned_at - writing
        self._turned_at, self._settle_wait = now, settle_wait

    def waits(self) -> dict[str, float]:
        """Shares of the last ten seconds, the largest first."""
        if not self._samples:
            return {}
        before = self._samples[0][2]
        parts = {str(by): seconds - before.get(by, 0.0) for by, seconds in self._held.items() if by}
        total = max(self._turned_at - self._samples[0][0], 1e-3)
        shares = {by: round(min(1.0, part / total), 3) for by, part in parts.items() if part > 0.0}
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    def settled(self, settlements: Sequence[Settlement]) -> None:
        """Count finished visits."""
        self.phases["settle"] += len(settlements)
        for settlement in settlements:
            self.outcomes[settlement.outcome] += 1
            self._hosts.append(settlement.visit.host)
            page = settlement.page
            if page is not None:
                self.statuses[str(page.status)] += 1
            if settlement.outcome in READ_OUTCOMES:
                self.pages += 1
            else:
                self.problems.add(str(settlement.outcome), page.reason if page else "", settlement.visit.href)

    @property
    def hosts(self) -> list[str]:
        """Hosts of the latest pages, newest first."""
        return list(dict.fromkeys(reversed(self._hosts)))

    def tick(self) -> None:
        """Store the counters once a second, for `rates`."""
        now = time.monotonic()
        if not self._samples or now - self._samples[-1][0] >= 1.0:
            self._samples.append((now, dict(self.phases), dict(self._held)))
            while now - self._samples[0][0] > 10.0:
                self._samples.popleft()

    def rates(self) -> dict[str, float]:
        if not self._samples:
            return {}
        at, before, _ = self._samples[0]
        elapsed = max(time.monotonic() - at, 1e-3)
        return {phase: (self.phases[phase] - before.get(phase, 0)) / elapsed for phase in self.PHASES}

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started


class PhaseCpu:
    """CPU time by phase since it was made, in the thread that settles."""

    def __init__(self) -> None:
        self._process = _process_seconds()
        self._template = template.cpu_seconds()
        self._thread = time.thread_time()

    def seconds(self, *, fetch: float, workers: float, detect: float, extract: float) -> dict[str, float]:
        """By phase. `settle` is this thread; `index` the rest of the process, the stores' threads included. `detect`
        and `extract` are measured in the workers; what else the workers use is `transform`, and so are the imports of
        the template that they are forked from."""
        settle = time.thread_time() - self._thread
        transform = workers + max(0.0, template.cpu_seconds() - self._template) - detect - extract
        return {
            "fetch": round(fetch, 3),
            "detect": round(detect, 3),
            "transform": round(max(0.0, transform), 3),
            "index": round(_process_seconds() - self._process - settle, 3),
            "extract": round(extract, 3),
            "settle": round(settle, 3),
        }


def _process_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
