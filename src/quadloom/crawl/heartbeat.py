"""The system manager's list: every process of a crawl with memory, CPU and work in hand, and the totals below."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.process.channel import ProcessHeartbeat


class WorkerLoad(msgspec.Struct, frozen=True):
    """`load`: cores used on average since the crawl began. The totals row has pid 0."""

    name: str
    pid: int
    memory: int
    cpu_seconds: float
    load: float
    in_hand: int


def heartbeat(workers: Sequence[ProcessHeartbeat], seconds: float) -> list[WorkerLoad]:
    """One row for each process, and a last one with the sums. `seconds`: since the crawl began."""
    beats = [
        WorkerLoad(
            beat.name,
            beat.pid,
            beat.memory,
            round(beat.cpu_seconds, 2),
            _load(beat.cpu_seconds, seconds),
            beat.in_hand,
        )
        for beat in workers
    ]
    if not beats:
        return []
    cpu = sum(beat.cpu_seconds for beat in beats)
    total = WorkerLoad(
        f"total of {len(beats)}",
        0,
        sum(beat.memory for beat in beats),
        round(cpu, 2),
        _load(cpu, seconds),
        sum(beat.in_hand for beat in beats),
    )
    return [*beats, total]


def _load(cpu: float, seconds: float) -> float:
    return round(cpu / seconds, 3) if seconds > 0 else 0.0
