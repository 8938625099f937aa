"""What the monitor and `status` show besides the counters: the load of each process, and the age of the pages.

A page's fingerprint is a hash, so the first pages in fingerprint order are a uniform sample: with two thousand of them
the shares are right within two per cent, whatever the size of the warehouse.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.model.outcome import PageRow
from quadloom.process.channel import ProcessHeartbeat

SAMPLE = 2000
_HOUR, _DAY = 3600.0, 86400.0
_EDGES = (
    ("under 1 hour", _HOUR),
    ("1 to 24 hours", _DAY),
    ("1 to 7 days", 7 * _DAY),
    ("7 to 30 days", 30 * _DAY),
    ("30 to 90 days", 90 * _DAY),
    ("over 90 days", float("inf")),
)
_PAGE_STATEMENTS = 4  # that any HTML page yields: title, language, description; more than these is data


class WorkerLoad(msgspec.Struct, frozen=True):
    """`load`: cores used on average since the crawl began. The totals row has pid 0."""

    name: str
    pid: int
    memory: int
    cpu_seconds: float
    load: float
    in_hand: int


class AgeBucket(msgspec.Struct, frozen=True):
    label: str
    pages: int
    share: float


class FreshnessReport(msgspec.Struct, frozen=True):
    """Computed from the sampled pages that were read: `sampled` of them."""

    sampled: int = 0
    buckets: tuple[AgeBucket, ...] = ()
    changed: float = 0.0  # share of repeated visits that found a change
    harvest: float = 0.0  # share of pages with data of their own


def heartbeat(workers: Sequence[ProcessHeartbeat], seconds: float) -> list[WorkerLoad]:
    """One row per process, and a last one with the totals. `seconds`: since the crawl began."""
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


def freshness(sample: Sequence[PageRow], now: float) -> FreshnessReport:
    """The ages of the pages in `sample`, and how many of them changed or carry data."""
    read = [page for page in sample if 200 <= page.status < 300 or page.status == 304]
    if not read:
        return FreshnessReport(buckets=tuple(AgeBucket(label, 0, 0.0) for label, _ in _EDGES))
    counts = [0] * len(_EDGES)
    for page in read:
        age = max(0.0, now - page.fetched_at)
        counts[next(index for index, (_, edge) in enumerate(_EDGES) if age < edge)] += 1
    repeats = sum(max(0, page.visits - 1) for page in read)
    return FreshnessReport(
        sampled=len(read),
        buckets=tuple(
            AgeBucket(label, count, round(count / len(read), 4))
            for (label, _), count in zip(_EDGES, counts, strict=True)
        ),
        changed=round(sum(page.changes for page in read) / repeats, 4) if repeats else 0.0,
        harvest=round(sum(page.quads > _PAGE_STATEMENTS for page in read) / len(read), 4),
    )
