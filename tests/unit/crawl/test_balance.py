"""Balance of the phases: the table and the advice."""

from __future__ import annotations

import pytest

from quadloom.crawl.balance import balance

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


def test_too_few_pages_to_judge() -> None:
    assert balance({}, {}, {}, workers=1, cores=2).phases == ()
    few = balance(dict.fromkeys(PAGES, 3), {"fetch": 0.1}, {}, workers=1, cores=2)
    assert few.bottleneck == "" and "Too few" in few.advice
