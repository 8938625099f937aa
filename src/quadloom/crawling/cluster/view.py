"""All workers of a cluster as one record, for `status`, the monitor and the metrics of any machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec
from msgspec.structs import replace

from quadloom.crawling.cluster.beat import WorkerBeat, read_beat
from quadloom.crawling.cluster.merging import added, common_state, merged
from quadloom.crawling.run.balance import Machines
from quadloom.crawling.run.report import CrawlReport
from quadloom.stores.protocols.cluster import WorkerRow

WorkerState = Literal["starting", "running", "paused", "stopping", "silent", "dead"]
_SILENT_BEATS = 3.0  # heartbeats that a worker may miss: one may be late
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
    clock_error: float = 0.0  # seconds by which its machine's clock is ahead of the database's; 0 = it is right
    waits_for: dict[str, float] = {}  # what is away → since when, unix seconds

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

    @property
    def machines(self) -> Machines:
        """What the crawl of all workers runs on."""
        return Machines(self.totals.cores, len(self.alive)) if self.alive else Machines()


def cluster_view(rows: Iterable[WorkerRow]) -> ClusterView:
    """Processes that never said anything about themselves are commands, not workers: they are left out."""
    workers = [_view(row, read_beat(row.record)) for row in rows if row.record]
    return ClusterView(workers, _totals([worker for worker in workers if worker.state != "dead"]))


def merged_report(rows: Iterable[WorkerRow]) -> CrawlReport | None:
    """The crawl of all workers that are alive, as if it were one. None = there is none."""
    beats = [(row.owner.partition(":")[0], read_beat(row.record)) for row in rows if row.record and row.is_alive]
    named = [
        replace(beat.report, workers=[one._replace(name=f"{name} {one.name}") for one in beat.report.workers])
        for name, beat in beats
    ]
    return merged(named) if named else None


def _view(row: WorkerRow, beat: WorkerBeat) -> WorkerView:
    report, machine = beat.report, beat.machine
    return WorkerView(
        name=row.owner.partition(":")[0],
        state=_state_of(row, beat),
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
        clock_error=beat.clock_error,
        waits_for=report.waits_for if row.is_alive else {},
    )


def _state_of(row: WorkerRow, beat: WorkerBeat) -> WorkerState:
    """What it said last, unless it has said nothing for longer than that may be true."""
    if not row.is_alive:
        return "dead"
    if row.silent_seconds > _SILENT_BEATS * beat.heartbeat:
        return "silent"
    states: dict[str, WorkerState] = {"running": "running", "paused": "paused", "stopping": "stopping"}
    return states.get(beat.report.state, "starting")


def _totals(workers: Sequence[WorkerView]) -> WorkerView:
    """Figures of machines count each machine once, however many workers it has."""
    machines = list({worker.host: worker for worker in workers}.values())
    rates = added(worker.rates for worker in workers)
    whole = WorkerView(name="", state=common_state(worker.state for worker in workers), rates=rates)
    return replace(whole, **_sums(workers, _OF_WORKERS), **_sums(machines, _OF_MACHINES))


def _sums(records: Sequence[object], names: Sequence[str]) -> dict[str, float]:
    return {name: round(sum(getattr(record, name) for record in records), 3) for name in names}
