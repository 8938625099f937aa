"""Balance of the phases, as MultiCrawler's table 2 drew it: how many pages a second can one core take through each?

The seed measured each phase on a server of its own and told how many servers each needs. Here the phases share one
machine, so what counts is the CPU a page costs in each. Transform runs in any number of processes; fetch, index
and settle have one thread or process each and cannot use more than one core. With costs c and C cores the most that
can flow is

    min( C / Σ c,  1/c_fetch,  1/c_index,  1/c_settle )      pages per second

and transform needs as many workers as cores at that flow. When no phase is busy, the crawl waits for others: for
politeness (hosts rest between requests) or for the network, and more workers would change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

# What `CrawlReport.cpu` counts, in order of flow, and which counter of pages belongs to it.
_COUNTED_BY = {"fetch": "fetch", "transform": "transform", "index": "index", "settle": "extract"}
_SINGLE = ("fetch", "index", "settle")
_BUSY = 0.7  # of a core: above it a phase holds up the others
_ENOUGH = 50  # pages below which figures are noise


class PhaseLoad(msgspec.Struct, frozen=True):
    """One row of the table. `per_core`: pages per second one core can do; `ratio`: to the fastest phase."""

    phase: str
    pages: int
    cpu_seconds: float
    per_core: float
    ratio: float
    rate: float  # pages per second now
    busy: float  # cores used now
    cores: float  # share of the machine's cores that it should get
    workers: int  # processes it has


class Balance(msgspec.Struct, frozen=True):
    """`bottleneck` is a phase, `politeness` or empty (too early to tell)."""

    phases: tuple[PhaseLoad, ...] = ()
    bottleneck: str = ""
    advice: str = ""
    workers: int = 0  # transform processes that would be right
    possible: float = 0.0  # pages per second that the machine could do


def balance(
    pages: Mapping[str, int], cpu: Mapping[str, float], rates: Mapping[str, float], *, workers: int, cores: int
) -> Balance:
    """From a crawl's counters to the table and one sentence of advice."""
    costs = {
        phase: cpu[phase] / pages[counter]
        for phase, counter in _COUNTED_BY.items()
        if pages.get(counter, 0) > 0 and cpu.get(phase, 0.0) > 0
    }
    if not costs:
        return Balance(advice="No page has gone through yet.")
    possible = min([cores / sum(costs.values()), *(1 / costs[phase] for phase in _SINGLE if phase in costs)])
    fastest = 1 / min(costs.values())
    rows = tuple(_row(phase, costs[phase], pages, cpu, rates, fastest, possible, workers) for phase in costs)
    right = max(1, math.ceil(possible * costs.get("transform", 0.0) - 0.05))
    bottleneck, advice = _advice(rows, pages, workers, right, possible, cores)
    return Balance(rows, bottleneck, advice, right, round(possible, 1))


def _row(
    phase: str,
    cost: float,
    pages: Mapping[str, int],
    cpu: Mapping[str, float],
    rates: Mapping[str, float],
    fastest: float,
    possible: float,
    workers: int,
) -> PhaseLoad:
    counter = _COUNTED_BY[phase]
    rate = rates.get(counter, 0.0)
    return PhaseLoad(
        phase=phase,
        pages=pages[counter],
        cpu_seconds=round(cpu[phase], 2),
        per_core=round(1 / cost, 1),
        ratio=round(1 / cost / fastest, 3),
        rate=round(rate, 1),
        busy=round(rate * cost, 2),
        cores=round(possible * cost, 2),
        workers=workers if phase == "transform" else 1,
    )


def _advice(
    rows: tuple[PhaseLoad, ...], pages: Mapping[str, int], workers: int, right: int, possible: float, cores: int
) -> tuple[str, str]:
    if max(pages.values()) < _ENOUGH:
        return "", f"Too few pages yet to judge; {_ENOUGH} are enough."
    busiest = max(rows, key=lambda row: row.busy / row.workers)
    total = sum(row.busy for row in rows)
    if busiest.busy / busiest.workers >= _BUSY:
        if busiest.phase == "transform" and right > workers:
            return "transform", (
                f"Transform holds up the others: {right} workers would be right, it has {workers} (crawl.workers)."
            )
        return busiest.phase, (
            f"{busiest.phase.capitalize()} uses its core in full. This machine can do about {possible:.0f} pages/s."
        )
    if total >= _BUSY * cores:
        return busiest.phase, f"All {cores} cores are busy; most of the work is in {busiest.phase}."
    return "politeness", (
        f"The machine is idle most of the time: hosts rest between requests. It could do about {possible:.0f} pages/s; "
        "more sites at once, not more workers, make the crawl faster."
    )
