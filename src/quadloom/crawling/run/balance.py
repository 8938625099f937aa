"""Balance of the phases, as in table 2 of MultiCrawler: how many pages per second can one core take through each?

That paper measured each phase on a server of its own and derived how many servers each phase needs. Here the phases
share one machine, so what counts is the CPU that a page costs in each. Detect, transform and extract run in any number
of worker processes; fetch, index and settle have one thread or process each and cannot use more than one core. With
costs c and C cores, the highest possible rate is

    min( C / Σ c,  1/c_fetch,  1/c_index,  1/c_settle )      pages per second

and the workers need as many processes as they use cores at that rate. When no phase is busy, the crawl waits for
something else: a service, memory, the disk, `freshness.bandwidth`, the network, or the pause between two requests to a
host. The loop measures for what (`Meter.held`), and the advice names the setting that would change it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from quadloom.crawling.run.report import CrawlReport
from quadloom.model.service import InstanceLoad

_ORDER = ("fetch", "detect", "transform", "index", "extract", "settle")  # in which a page passes them
_IN_WORKERS = frozenset(("detect", "transform", "extract"))
_BUSY = 0.7  # of a core: a phase above it slows down the others
_ENOUGH = 50  # pages; with fewer the figures are noise
_FULL = 0.9  # of `freshness.bandwidth`
_MOSTLY = 0.4  # of the time: what the crawl waits for that long is worth naming


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
    queue: int = 0  # pages that wait before it


class Balance(msgspec.Struct, frozen=True):
    """`bottleneck`: a phase, or one of `services`, `memory`, `disk`, `bandwidth`, `shares`, `network`, `store` and
    `politeness`; empty if there are too few pages to say."""

    phases: tuple[PhaseLoad, ...] = ()
    bottleneck: str = ""
    advice: str = ""
    workers: int = 0  # worker processes that the highest possible rate needs
    possible: float = 0.0  # pages per second that the machine could do


class CrawlState(NamedTuple):
    """What the balance is judged by. `waits`: see `CrawlReport.waits`; `bandwidth`: reads a second that a crawl without
    an end may make, 0 = no limit; `due`: URLs that could be read now but for their hosts; `crawls`: as in
    `Machines`."""

    pages: Mapping[str, int]
    cpu: Mapping[str, float]
    rates: Mapping[str, float]
    workers: int = 1
    cores: int = 1
    queues: Mapping[str, int] = {}
    waits: Mapping[str, float] = {}
    services: Sequence[InstanceLoad] = ()
    bandwidth: float = 0.0
    due: int = 1
    crawls: int = 1


class _Machine(NamedTuple):
    """`possible`: pages per second that it could do; `needed`: workers at that rate."""

    cores: int
    workers: int
    needed: int
    possible: float


class _Advice(NamedTuple):
    bottleneck: str
    text: str


class Machines(NamedTuple):
    """`cores`: of all of them; 0 = those of this machine. `crawls`: each has one thread or process to fetch, index and
    settle."""

    cores: int = 0
    crawls: int = 1


def balance_of(report: CrawlReport, machines: Machines = Machines()) -> Balance:  # noqa: B008  immutable
    """The balance of a crawl, for `status`, its last report and the monitor."""
    workers = max(1, sum(beat.name.startswith("transform") for beat in report.workers))
    return balance(
        CrawlState(
            report.phases,
            report.cpu,
            report.rates,
            workers,
            machines.cores or os.cpu_count() or 1,
            report.queues,
            report.waits,
            report.services,
            report.bandwidth,
            report.frontier.get("queued", 0) + report.frontier.get("leased", 0) if report.state == "running" else 1,
            machines.crawls,
        )
    )


def balance(state: CrawlState) -> Balance:
    """The table and one sentence of advice, from the counters of a crawl."""
    pages, cpu = state.pages, state.cpu
    costs = {phase: cpu[phase] / pages[phase] for phase in _ORDER if pages.get(phase) and cpu.get(phase, 0.0) > 0}
    if not costs:
        return Balance(advice="No page has been processed yet.")
    single = [state.crawls / cost for phase, cost in costs.items() if phase not in _IN_WORKERS]
    possible = min([state.cores / sum(costs.values()), *single])
    fastest = 1 / min(costs.values())
    rows = tuple(
        PhaseLoad(
            phase=phase,
            pages=pages[phase],
            cpu_seconds=round(cpu[phase], 2),
            per_core=round(1 / cost, 1),
            ratio=round(1 / cost / fastest, 3),
            rate=round(state.rates.get(phase, 0.0), 1),
            busy=round(state.rates.get(phase, 0.0) * cost, 2),
            cores=round(possible * cost, 2),
            workers=state.workers if phase in _IN_WORKERS else state.crawls,
            queue=state.queues.get(phase, 0),
        )
        for phase, cost in costs.items()
    )
    in_workers = sum(cost for phase, cost in costs.items() if phase in _IN_WORKERS)
    needed = max(1, math.ceil(possible * in_workers - 0.05))
    advice = _advice(rows, state, _Machine(state.cores, state.workers, needed, possible))
    return Balance(rows, advice.bottleneck, advice.text, needed, round(possible, 1))


def _advice(rows: tuple[PhaseLoad, ...], state: CrawlState, machine: _Machine) -> _Advice:
    if max(state.pages.values()) < _ENOUGH:
        return _Advice("", f"Too few pages yet to judge; {_ENOUGH} are enough.")
    return (
        _busy_phase(rows, machine)
        or _busy_services(state.services)
        or _waiting(state, machine)
        or _idle(state, machine)
    )


def _idle(state: CrawlState, machine: _Machine) -> _Advice:
    """The machine could do more: why it does not."""
    if not state.due:
        return _Advice("", "Nothing is due now: the crawl waits for the next page of its schedule.")
    if state.waits.get("hosts", 0.0) < _MOSTLY:
        return _Advice("", f"Nothing slows down the crawl. This machine can do about {machine.possible:.0f} pages/s.")
    return _Advice(
        "politeness",
        "The machine is idle most of the time, because of the pauses between requests to a host. It could do about"
        f" {machine.possible:.0f} pages/s. Crawling more sites at once makes it faster, or a shorter"
        " politeness.delay on a site of your own ([[site]] delay, per_site); more workers do not.",
    )


def _busy_phase(rows: tuple[PhaseLoad, ...], machine: _Machine) -> _Advice | None:
    """A phase that uses all the CPU it can have."""
    in_workers = sum(row.busy for row in rows if row.phase in _IN_WORKERS)
    single = max((row for row in rows if row.phase not in _IN_WORKERS), key=lambda row: row.busy, default=None)
    slowest = max(rows, key=lambda row: row.busy)
    if in_workers / machine.workers >= _BUSY and machine.needed > machine.workers:
        return _Advice(
            "transform",
            f"Transform slows down the other phases: it has {machine.workers} workers and needs {machine.needed}"
            f" (crawl.workers) for the {machine.possible:.0f} pages/s that this machine can do.",
        )
    if single is not None and single.busy >= _BUSY * single.workers:
        return _Advice(
            single.phase,
            f"{single.phase.capitalize()} uses a full core. This machine can do about {machine.possible:.0f} pages/s;"
            " several machines can do more (quadloom worker).",
        )
    if sum(row.busy for row in rows) >= _BUSY * machine.cores or in_workers / machine.workers >= _BUSY:
        return _Advice(
            slowest.phase,
            f"All {machine.cores} cores are busy; most of the work is in {slowest.phase}. This machine can do about"
            f" {machine.possible:.0f} pages/s.",
        )
    return None


def _busy_services(services: Sequence[InstanceLoad]) -> _Advice | None:
    """Instances that all have as many requests as they take, while pages wait for them."""
    able = [load for load in services if not load.resting_seconds]
    if services and not able:
        return _Advice("services", "No instance of a service answers; pages wait for them. See [[service]].")
    waiting = max((load.waiting for load in able), default=0)
    if not waiting or any(load.in_progress < load.parallel for load in able):
        return None
    mean = sum(load.mean_seconds for load in able) / len(able)
    rate = sum(load.parallel / load.mean_seconds for load in able if load.mean_seconds) if mean else 0.0
    return _Advice(
        "services",
        f"{waiting} pages wait for a service. Its {len(able)} instances take {mean:.2f} s a page, {rate:.1f} pages/s"
        " together; each further instance in [[service]] url adds its share. More workers do not help.",
    )


def _waiting(state: CrawlState, machine: _Machine) -> _Advice | None:
    """What the loop has waited for most, other than hosts."""
    rate = state.rates.get("fetch", 0.0)
    by, share = max(state.waits.items(), key=lambda item: item[1], default=("", 0.0))
    if state.bandwidth and rate >= _FULL * state.bandwidth:
        by, share = "bandwidth", 1.0  # whatever a single page waits for, all of them together get what was set
    if share < _MOSTLY:
        return None
    texts = {
        "bandwidth": f"The crawl is held at freshness.bandwidth = {state.bandwidth:g} reads/s. This machine could do"
        f" about {machine.possible:.0f} pages/s.",
        "shares": "The URLs that wait have a share of 0 in the bandwidth, and nothing else is due. To read them, change"
        " freshness.discovery_share or freshness.suspect_share (`quadloom freshness`).",
        "memory": f"Bodies that wait for transform fill the memory for them, at {rate:.0f} pages/s. A smaller"
        " limits.body_bytes or more crawl.workers would help.",
        "disk": "Writing to the archive and the database takes most of the time. A faster disk, several of them"
        " (stores.directories), or a longer crawl.batch_seconds would help.",
        "network": "The network of this machine is down; the crawl waits for it.",
        "store": "A store is away; the crawl waits for it. `quadloom check` says which.",
        "phases": f"{state.queues.get('transform', 0)} pages wait for transform and {state.queues.get('index', 0)} for"
        " their index; crawl.in_flight limits how many may.",
    }
    return _Advice(by, texts[by]) if by in texts else None
