"""Balance, freshness, heartbeat: the sums and the advice."""

from __future__ import annotations

import pytest

from quadloom.crawl.balance import balance
from quadloom.crawl.freshness import freshness
from quadloom.crawl.heartbeat import heartbeat
from quadloom.model.outcome import PageRow
from quadloom.process.channel import ProcessHeartbeat

PAGES = dict.fromkeys(("fetch", "detect", "transform", "index", "extract"), 1000)


def test_the_table_has_rates_ratios_and_shares() -> None:
    cpu = {"fetch": 1.0, "transform": 8.0, "index": 2.0, "settle": 1.0}
    found = balance(PAGES, cpu, {"fetch": 50.0, "transform": 50.0}, workers=1, cores=4)
    by_phase = {row.phase: row for row in found.phases}
    assert by_phase["transform"].per_core == 125.0 and by_phase["fetch"].per_core == 1000.0
    assert by_phase["fetch"].ratio == 1.0 and by_phase["transform"].ratio == 0.125
    assert found.possible == pytest.approx(4 / 0.012, abs=0.1)
    assert sum(row.cores for row in found.phases) == pytest.approx(4.0, abs=0.03)
    assert found.workers == 3


def test_a_full_transform_asks_for_workers() -> None:
    cpu = {"fetch": 1.0, "transform": 8.0, "index": 1.0, "settle": 1.0}
    found = balance(PAGES, cpu, {"transform": 120.0, "fetch": 120.0}, workers=1, cores=8)
    assert found.bottleneck == "transform" and "crawl.workers" in found.advice


def test_a_single_phase_cannot_get_more_than_a_core() -> None:
    cpu = {"fetch": 1.0, "transform": 2.0, "index": 9.0, "settle": 1.0}
    found = balance(PAGES, cpu, {"index": 105.0, "transform": 105.0}, workers=2, cores=8)
    assert found.bottleneck == "index" and found.possible == pytest.approx(1000 / 9, abs=0.1)


def test_an_idle_machine_waits_for_hosts() -> None:
    cpu = {"fetch": 1.0, "transform": 2.0, "index": 1.0, "settle": 1.0}
    found = balance(PAGES, cpu, dict.fromkeys(PAGES, 2.0), workers=2, cores=8)
    assert found.bottleneck == "politeness" and "more sites" in found.advice


def test_too_early_to_tell() -> None:
    assert balance({}, {}, {}, workers=1, cores=2).phases == ()
    few = balance(dict.fromkeys(PAGES, 3), {"fetch": 0.1}, {}, workers=1, cores=2)
    assert few.bottleneck == "" and "Too few" in few.advice


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
