"""The age of the pages and the load of the processes."""

from __future__ import annotations

import pytest

from quadloom.crawling.run.monitor import freshness, heartbeat
from quadloom.model.outcome import PageRow
from quadloom.process.channel import ProcessHeartbeat


def page(**facts: int | float) -> PageRow:
    return PageRow(fingerprint=1, key="k", href="h", host="x", **facts)  # type: ignore[arg-type]


def test_freshness_counts_ages_changes_and_harvest() -> None:
    now = 1e9
    sample = [
        page(status=200, fetched_at=now - 60, visits=3, changes=1, quads=20),
        page(status=200, fetched_at=now - 2 * 86400, visits=1, quads=2),
        page(status=304, fetched_at=now - 400 * 86400, visits=2, changes=0, quads=9),
        page(status=404, fetched_at=now),
    ]
    found = freshness(sample, now)
    assert found.sampled == 3
    assert [bucket.pages for bucket in found.buckets] == [1, 0, 1, 0, 0, 1]
    assert sum(bucket.share for bucket in found.buckets) == pytest.approx(1, abs=0.001)
    assert found.changed == pytest.approx(1 / 3, abs=0.001) and found.harvest == pytest.approx(2 / 3, abs=0.001)
    assert freshness([], now).sampled == 0


def test_heartbeat_ends_with_the_sums() -> None:
    beats = heartbeat(
        [ProcessHeartbeat("fetch", 11, 100, 1.0, 2), ProcessHeartbeat("transform-1", 12, 300, 3.0, 1)], 10.0
    )
    assert [beat.name for beat in beats] == ["fetch", "transform-1", "total of 2"]
    assert (beats[-1].memory, beats[-1].cpu_seconds, beats[-1].load, beats[-1].in_hand) == (400, 4.0, 0.4, 3)
    assert heartbeat([], 1.0) == []
