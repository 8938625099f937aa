"""How old the warehouse's knowledge is, and how much of what was read carried data.

A page's fingerprint is a hash, so the first pages in fingerprint order are a uniform sample: two thousand of them
tell shares within two per cent, whatever the size of the warehouse.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.model.outcome import PageRow

SAMPLE = 2000
_HOUR, _DAY = 3600.0, 86400.0
_EDGES = (
    ("under 1 hour", _HOUR), ("1 to 24 hours", _DAY), ("1 to 7 days", 7 * _DAY), ("7 to 30 days", 30 * _DAY),
    ("30 to 90 days", 90 * _DAY), ("over 90 days", float("inf")),
)  # fmt: skip
# Statements that every HTML page gives: title, language, description. More than these is data.
_PAGE_WORDS = 4


class AgeBucket(msgspec.Struct, frozen=True):
    label: str
    pages: int
    share: float


class FreshnessReport(msgspec.Struct, frozen=True):
    """Shares are of the sampled pages that were read; `harvest` of those that carry data of their own."""

    sampled: int = 0
    buckets: tuple[AgeBucket, ...] = ()
    changed: float = 0.0  # share of repeated visits that found a change
    harvest: float = 0.0


def freshness(sample: Sequence[PageRow], now: float) -> FreshnessReport:
    read = [page for page in sample if 200 <= page.status < 300 or page.status == 304]
    if not read:
        return FreshnessReport(buckets=tuple(AgeBucket(label, 0, 0.0) for label, _ in _EDGES))
    counts = [0] * len(_EDGES)
    for page in read:
        age = max(0.0, now - page.fetched_at)
        counts[next(place for place, (_, edge) in enumerate(_EDGES) if age < edge)] += 1
    again = sum(max(0, page.visits - 1) for page in read)
    return FreshnessReport(
        sampled=len(read),
        buckets=tuple(
            AgeBucket(label, count, round(count / len(read), 4))
            for (label, _), count in zip(_EDGES, counts, strict=True)
        ),
        changed=round(sum(page.changes for page in read) / again, 4) if again else 0.0,
        harvest=round(sum(page.quads > _PAGE_WORDS for page in read) / len(read), 4),
    )
