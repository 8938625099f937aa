"""Balance of the phases, as in table 2 of MultiCrawler: how many pages per second can one core take through each?

That paper measured each phase on a server of its own and derived how many servers each phase needs. Here the phases
share one machine, so what counts is the CPU that a page costs in each. Transform runs in any number of processes;
fetch, index and settle have one thread or process each and cannot use more than one core. With costs c and C cores, the
highest possible rate is

    min( C / Σ c,  1/c_fetch,  1/c_index,  1/c_settle )      pages per second

and transform needs as many workers as it uses cores at that rate. When no phase is busy, the crawl is waiting: for
politeness (the pause between two requests to a host) or for the network, and more workers would change nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from quadloom.crawl.report import CrawlReport

# The phases of `CrawlReport.cpu` in the order a page passes them, each with its counter of pages.
_COUNTED_BY = {"fetch": "fetch", "transform": "transform", "index": "index", "settle": "extract"}
_SINGLE = ("fetch", "index", "settle")
_BUSY = 0.7  # of a core: a phase above it slows down the others
_ENOUGH = 50  # pages; with fewer the figures are noise


class PhaseLoad(msgspec.Struct, frozen=True):
    """One row of the table. `per_core`: pages per second that one core can do; `ratio`: to the fastest phase."""

    phase: str
    pages: int
    cpu_seconds: float
    per_core: float
    ratio: float
    rate: float  # pages per second now
    busy: float  # cores used now
    cores: float  # cores that it needs at the highest possible rate
    workers: int  # processes that it has


class Balance(msgspec.Struct, frozen=True):
    """`bottleneck` is a phase, `politeness`, or empty if there are too few pages to say."""

    phases: tuple[PhaseLoad, ...] = ()
    bottleneck: str = ""
    advice: str = ""
    workers: int = 0  # transform processes that the highest possible rate needs
    possible: float = 0.0  # pages per second that the machine could do


class _Machine(NamedTuple):
    """`possible`: pages per second that it could do; `needed`: transform workers at that rate."""

    cores: int
    workers: int
    needed: int
    possible: float


class _Advice(NamedTuple):
    bottleneck: str
    text: str


def balance_of(report: CrawlReport) -> Balance:
    """The balance of a running crawl, for `status` and the monitor."""
    workers = max(1, sum(beat.name.startswith("transform") for beat in report.workers))
    return balance(report.phases, report.cpu, report.rates, workers=workers, cores=os.cpu_count() or 1)


def balance(
    pages: Mapping[str, int], cpu: Mapping[str, float], rates: Mapping[str, float], *, workers: int, cores: int
) -> Balance:
    """The table and one sentence of advice, from the counters of a crawl."""
    costs = {
        phase: cpu[phase] / pages[counter]
        for phase, counter in _COUNTED_BY.items()
        if pages.get(counter, 0) > 0 and cpu.get(phase, 0.0) > 0
    }
    if not costs:
        return Balance(advice="No page has been processed yet.")
    possible = min([cores / sum(costs.values()), *(1 / costs[phase] for phase in _SINGLE if phase in costs)])
    fastest = 1 / min(costs.values())
    rows = tuple(
        PhaseLoad(
            phase=phase,
            pages=pages[_COUNTED_BY[phase]],
            cpu_seconds=round(cpu[phase], 2),
            per_core=round(1 / cost, 1),
            ratio=round(1 / cost / fastest, 3),
            rate=round(rates.get(_COUNTED_BY[phase], 0.0), 1),
            busy=round(rates.get(_COUNTED_BY[phase], 0.0) * cost, 2),
            cores=round(possible * cost, 2),
            workers=workers if phase == "transform" else 1,
        )
        for phase, cost in costs.items()
    )
    needed = max(1, math.ceil(possible * costs.get("transform", 0.0) - 0.05))
    advice = _advice(rows, pages, _Machine(cores, workers, needed, possible))
    return Balance(rows, advice.bottleneck, advice.text, needed, round(possible, 1))


def _advice(rows: tuple[PhaseLoad, ...], pages: Mapping[str, int], machine: _Machine) -> _Advice:
    if max(pages.values()) < _ENOUGH:
        return _Advice("", f"Too few pages yet to judge; {_ENOUGH} are enough.")
    busiest = max(rows, key=lambda row: row.busy / row.workers)
    total = sum(row.busy for row in rows)
    if busiest.busy / busiest.workers >= _BUSY:
        if busiest.phase == "transform" and machine.needed > machine.workers:
            return _Advice(
                "transform",
                f"Transform slows down the other phases: it has {machine.workers} workers and needs {machine.needed}"
                " (crawl.workers).",
            )
        return _Advice(
            busiest.phase,
            f"{busiest.phase.capitalize()} uses a full core. This machine can do about {machine.possible:.0f} pages/s.",
        )
    if total >= _BUSY * machine.cores:
        return _Advice(busiest.phase, f"All {machine.cores} cores are busy; most of the work is in {busiest.phase}.")
    return _Advice(
        "politeness",
        "The machine is idle most of the time, because of the pauses between requests to a host. It could do about"
        f" {machine.possible:.0f} pages/s. Crawling more sites at once makes it faster; more workers do not.",
    )
