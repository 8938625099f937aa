"""What a worker says about itself with every heartbeat: its machine, and its crawl.

It is a record in the worker's row, so that any machine can show all workers without asking them.
"""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import msgspec
from msgspec.structs import replace

from quadloom.crawling.run.report import CrawlReport
from quadloom.model.version import __version__
from quadloom.model.wire import decode, encode


class MachineState(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in bytes. `load`: processes that wanted to run, averaged over the last minute. 0 = not known."""

    host: str = ""
    cores: int = 1
    load: float = 0.0
    memory_total: int = 0
    memory_free: int = 0
    disk_total: int = 0  # of the disk with the worker's directory
    disk_free: int = 0


class WorkerBeat(msgspec.Struct, frozen=True, kw_only=True):
    version: str = __version__
    path: str = ""  # the worker's directory
    phases: list[str] = []
    machine: MachineState = MachineState()
    heartbeat: float = 10.0  # seconds between two of these records
    clock_error: float = 0.0  # seconds by which the machine's clock is ahead of the database's; 0 = it is right
    queued: int = 0  # URLs of its own shards that may be read now or soon
    report: CrawlReport = CrawlReport()

    def encode(self) -> bytes:
        return encode(self)


def read_beat(record: bytes) -> WorkerBeat:
    """The record of a row; an empty one, and one that this version cannot read, say nothing."""
    try:
        return decode(record, WorkerBeat) if record else WorkerBeat(version="")
    except msgspec.DecodeError:  # of another version
        return WorkerBeat(version="?")


def with_waits(record: bytes, waits: dict[str, float]) -> bytes:
    """The record with more that its worker waits for."""
    beat = read_beat(record)
    return replace(beat, report=replace(beat.report, waits_for={**beat.report.waits_for, **waits})).encode()


def clock_words(error: float) -> str:
    """For people, if the clock of this machine is so many seconds ahead of the database's, or behind it."""
    side = "ahead of" if error > 0 else "behind"
    return (
        f"the clock of this machine is {abs(error):.0f} s {side} that of the database: "
        "pages get wrong times and are due too soon or too late. Hosts are not asked early: they wait their full delay "
        "whenever a shard moves. Set the clocks of all machines, with NTP"
    )


def machine_state(path: Path) -> MachineState:
    """Of this machine. `path`: a directory on the disk that matters."""
    total, free = _memory()
    disk = shutil.disk_usage(path)
    return MachineState(
        host=socket.gethostname(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        load=round(os.getloadavg()[0], 2),
        memory_total=total,
        memory_free=free,
        disk_total=disk.total,
        disk_free=disk.free,
    )


def _memory() -> tuple[int, int]:
    """Total, and what could be used without swapping."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        kilobytes = {line.partition(":")[0]: int(line.split()[1]) for line in lines if len(line.split()) > 1}
        return kilobytes["MemTotal"] * 1024, kilobytes["MemAvailable"] * 1024
    except (OSError, KeyError, ValueError):  # not Linux
        return 0, 0
