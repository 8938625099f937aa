"""The runs of a warehouse: when each crawl began and ended, what it read, and its pace over time.

A run is one named value, written every few seconds and at its end, so a crawl that is killed is in the
history too. The curve of a run has at most `_POINTS` points: when it is full, every second one is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from quadloom.crawling.run.balance import Balance, CrawlState, balance, balance_of
from quadloom.crawling.run.report import CrawlReport, Meter
from quadloom.errors import StoreError
from quadloom.stores.named_values import NamedValues
from quadloom.stores.protocols.catalog import Catalog

_EVERY = 2.0  # seconds between two writes; doubled when the curve is full
_POINTS = 120
_RUNS = 100  # the newest; older ones are removed


class RunPoint(msgspec.Struct, frozen=True, array_like=True):
    """`at`: Unix time; `rate`: pages a second since the last point; `phases`: the same through each of
    `Meter.PHASES`, the curves of MultiCrawler's figures 2 to 6."""

    at: float
    pages: int
    rate: float
    phases: tuple[float, ...] = ()


class CrawlRun(msgspec.Struct, frozen=True, kw_only=True):
    """`state`: running, paused, stopping or ended. A run that was killed keeps the state of its last write."""

    started_at: float
    ended_at: float
    state: str
    pages: int = 0
    quads: int = 0
    failed: int = 0
    denied: int = 0
    gone: int = 0
    points: tuple[RunPoint, ...] = ()
    phases: dict[str, int] = {}  # pages through each phase
    cpu: dict[str, float] = {}  # seconds by phase
    workers: int = 1
    advice: str = ""

    @property
    def seconds(self) -> float:
        return self.ended_at - self.started_at


RUNS = NamedValues("run:", CrawlRun)


def last_crawl_began(catalog: Catalog) -> float:
    """When the last crawl that visited anything began; 0 = there was none."""
    return max((run.started_at for _, run in RUNS.items(catalog)), default=0.0)


class RunHistory:
    """Writes the run of one crawl. Used by the crawl's own thread."""

    def __init__(self, catalog: Catalog, now: float) -> None:
        self._catalog = catalog
        self._key = f"{int(now * 1000):013d}-{os.getpid()}"
        self._run = CrawlRun(started_at=now, ended_at=now, state="running")
        self._every = _EVERY

    def is_due(self, now: float) -> bool:
        return now - self._run.ended_at >= self._every

    def write(self, report: CrawlReport, now: float) -> None:
        """Write the run as it is now."""
        last = self._run.points[-1] if self._run.points else RunPoint(self._run.started_at, 0, 0.0)
        passed = max(now - last.at, 1e-3)
        before = self._run.phases
        rates = tuple(
            round(max(0, report.phases.get(phase, 0) - before.get(phase, 0)) / passed, 3) for phase in Meter.PHASES
        )
        points = (
            *self._run.points,
            RunPoint(round(now, 1), report.pages, round((report.pages - last.pages) / passed, 3), rates),
        )
        found = balance_of(report)
        if len(points) > _POINTS:
            points = _halved(points)
            self._every *= 2
        self._run = CrawlRun(
            started_at=self._run.started_at,
            ended_at=now,
            state=report.state,
            pages=report.pages,
            quads=report.quads,
            failed=report.failed,
            denied=report.denied,
            gone=report.gone,
            points=points,
            phases=report.phases,
            cpu=report.cpu,
            workers=next((row.workers for row in found.phases if row.phase == "transform"), 1),
            advice=found.advice,
        )
        with suppress(StoreError):  # no crawl ends because its history cannot be written
            RUNS.put(self._catalog, self._key, self._run)

    def end(self, report: CrawlReport, now: float) -> None:
        """Write the last state, and remove the oldest runs. A crawl that visited nothing is no run."""
        visits = report.pages + report.failed + report.denied + report.gone
        if visits:
            self.write(msgspec.structs.replace(report, state="ended"), now)
        with suppress(StoreError):
            if not visits and RUNS.get(self._catalog, self._key) is not None:
                RUNS.put(self._catalog, self._key, None)
            for key in RUNS.keys(self._catalog)[:-_RUNS]:
                RUNS.put(self._catalog, key, None)


def runs_of(catalog: Catalog, limit: int = 20) -> list[CrawlRun]:
    """The newest runs, newest first."""
    keys = RUNS.keys(catalog)[-limit:]
    found = [RUNS.get(catalog, key) for key in reversed(keys)]
    return [run for run in found if run is not None]


def balance_of_run(run: CrawlRun, cores: int) -> Balance:
    """The table of phases of a run that has ended; rates are those of the whole run."""
    seconds = max(run.seconds, 1e-3)
    rates = {phase: pages / seconds for phase, pages in run.phases.items()}
    found = balance(CrawlState(run.phases, run.cpu, rates, run.workers, cores))
    return msgspec.structs.replace(found, advice=run.advice or found.advice)


def _halved(points: Sequence[RunPoint]) -> tuple[RunPoint, ...]:
    """Every second point; its rate is the mean of the two that it stands for."""
    return tuple(
        RunPoint(
            second.at,
            second.pages,
            round((first.rate + second.rate) / 2, 3),
            tuple(round((one + two) / 2, 3) for one, two in zip(first.phases, second.phases, strict=False)),
        )
        for first, second in zip(points[::2], points[1::2], strict=False)
    )
