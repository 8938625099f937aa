"""All workers of a cluster as one record, for `status`, the monitor and the metrics of any machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

from quadloom.crawling.cluster.beat import WorkerBeat, read_beat
from quadloom.crawling.run.report import CrawlReport
from quadloom.stores.protocols.cluster import WorkerRow

WorkerState = Literal["starting", "running", "paused", "stopping", "dead"]
_COUNTED = (
    *("pages", "quads", "failed", "denied", "gone", "unchanged", "bytes", "links", "findings", "quarantined"),
    *("cpu_seconds", "pages_per_second"),
)  # of all crawls together
_OF_WORKERS = ("shards", "queued", "pages", "quads", "failed", "cores_busy", "memory_used")
_OF_MACHINES = ("cores", "load", "memory_free", "memory_total", "disk_free", "disk_total")


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """One worker, or the totals of all that are alive (`name` is then empty). Sizes in bytes, rates per second."""

    name: str
    state: WorkerState
    host: str = ""
    version: str = ""
    phases: list[str] = []
    shards: int = 0
    queued: int = 0  # URLs of its shards that may be read now or soon
    pages: int = 0  # since it started
    quads: int = 0
    failed: int = 0
    rates: dict[str, float] = {}  # pages per second through each phase
    cores_busy: float = 0.0  # on average since it started
    cores: int = 0  # of the machine
    load: float = 0.0  # of the machine
    memory_used: int = 0  # by the worker's processes
    memory_free: int = 0  # of the machine
    memory_total: int = 0
    disk_free: int = 0
    disk_total: int = 0
    silent_seconds: float = 0.0  # since its last heartbeat

    @property
    def rate(self) -> float:
        """Pages per second through the first of its phases that counts any."""
        return max(self.rates.values(), default=0.0)


class ClusterView(msgspec.Struct, frozen=True):
    workers: list[WorkerView] = []
    totals: WorkerView = WorkerView(name="", state="dead")

    @property
    def alive(self) -> list[WorkerView]:
        return [worker for worker in self.workers if worker.state != "dead"]


def cluster_view(rows: Iterable[WorkerRow]) -> ClusterView:
    """Processes that never said anything about themselves are commands, not workers: they are left out."""
    workers = [_view(row, read_beat(row.record)) for row in rows if row.record]
    return ClusterView(workers, _totals([worker for worker in workers if worker.state != "dead"]))


def merged_report(rows: Iterable[WorkerRow]) -> CrawlReport | None:
    """The crawl of all workers that are alive, as if it were one. None = there is none."""
    beats = [(row.owner.partition(":")[0], read_beat(row.record)) for row in rows if row.record and row.is_alive]
    reports = [beat.report for _, beat in beats]
    if not reports:
        return None
    newest = max(reports, key=lambda report: report.frontier.get("total", 0))
    whole = CrawlReport(
        seconds=max(report.seconds for report in reports),
        frontier=newest.frontier,  # counts all URLs of the warehouse, of all workers
        phases=_added(report.phases for report in reports),
        cpu=_added(report.cpu for report in reports),
        rates=_added(report.rates for report in reports),
        statuses=_added(report.statuses for report in reports),
        expected=next((report.expected for report in reports if report.expected is not None), None),
        state=_state(report.state for report in reports),
        workers=[
            process._replace(name=f"{name} {process.name}") for name, beat in beats for process in beat.report.workers
        ],
        services=[service for report in reports for service in report.services],
        disks=[disk for report in reports for disk in report.disks],
        notices=list(dict.fromkeys(text for report in reports for text in report.notices)),
    )
    return replace(whole, **_sums(reports, _COUNTED))


def _view(row: WorkerRow, beat: WorkerBeat) -> WorkerView:
    report, machine = beat.report, beat.machine
    states: dict[str, WorkerState] = {"running": "running", "paused": "paused", "stopping": "stopping"}
    return WorkerView(
        name=row.owner.partition(":")[0],
        state=states.get(report.state, "starting") if row.is_alive else "dead",
        host=machine.host,
        version=beat.version,
        phases=beat.phases,
        shards=row.shards,
        queued=beat.queued,
        pages=report.pages,
        quads=report.quads,
        failed=report.failed,
        rates=report.rates if row.is_alive else {},
        cores_busy=round(report.cpu_seconds / report.seconds, 2) if report.seconds else 0.0,
        cores=machine.cores,
        load=machine.load,
        memory_used=sum(process.memory for process in report.workers),
        memory_free=machine.memory_free,
        memory_total=machine.memory_total,
        disk_free=machine.disk_free,
        disk_total=machine.disk_total,
        silent_seconds=round(row.silent_seconds, 1),
    )


def _totals(workers: Sequence[WorkerView]) -> WorkerView:
    """Figures of machines count each machine once, however many workers it has."""
    machines = list({worker.host: worker for worker in workers}.values())
    rates = _added(worker.rates for worker in workers)
    whole = WorkerView(name="", state=_state(worker.state for worker in workers), rates=rates)
    return replace(whole, **_sums(workers, _OF_WORKERS), **_sums(machines, _OF_MACHINES))


S = TypeVar("S", bound=str)
N = TypeVar("N", int, float)


def _state(states: Iterable[S]) -> S | Literal["running", "dead"]:
    """`running` if one of them is, otherwise the commonest."""
    counts = Counter(states)
    return "running" if "running" in counts else counts.most_common(1)[0][0] if counts else "dead"


def _sums(records: Sequence[object], names: Sequence[str]) -> dict[str, float]:
    return {name: round(sum(getattr(record, name) for record in records), 3) for name in names}


def _added(figures: Iterable[dict[str, N]]) -> dict[str, N]:
    total: dict[str, N] = {}
    for some in figures:
        for name, value in some.items():
            total[name] = round(total.get(name, 0) + value, 3)
    return total
