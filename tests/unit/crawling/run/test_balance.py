"""Balance of the phases: the table and the advice."""

from __future__ import annotations

import pytest

from quadloom.crawling.run.balance import CrawlState, balance
from quadloom.model.service import InstanceLoad

PAGES = dict.fromkeys(("fetch", "detect", "transform", "index", "extract", "settle"), 1000)


def test_the_table_has_rates_ratios_and_shares() -> None:
    cpu = {"fetch": 1.0, "transform": 8.0, "index": 2.0, "settle": 1.0}
    found = balance(CrawlState(PAGES, cpu, {"fetch": 50.0, "transform": 50.0}, workers=1, cores=4))
    by_phase = {row.phase: row for row in found.phases}
    assert by_phase["transform"].per_core == 125.0 and by_phase["fetch"].per_core == 1000.0
    assert by_phase["fetch"].ratio == 1.0 and by_phase["transform"].ratio == 0.125
    assert found.possible == pytest.approx(4 / 0.012, abs=0.1)
    assert sum(row.cores for row in found.phases) == pytest.approx(4.0, abs=0.03)
    assert found.workers == 3


def test_a_full_transform_asks_for_workers() -> None:
    cpu = {"fetch": 1.0, "transform": 8.0, "index": 1.0, "settle": 1.0}
    found = balance(CrawlState(PAGES, cpu, {"transform": 120.0, "fetch": 120.0}, workers=1, cores=8))
    assert found.bottleneck == "transform" and "crawl.workers" in found.advice


def test_a_single_phase_cannot_get_more_than_a_core() -> None:
    cpu = {"fetch": 1.0, "transform": 2.0, "index": 9.0, "settle": 1.0}
    found = balance(CrawlState(PAGES, cpu, {"index": 105.0, "transform": 105.0}, workers=2, cores=8))
    assert found.bottleneck == "index" and found.possible == pytest.approx(1000 / 9, abs=0.1)


def test_an_idle_machine_waits_for_hosts() -> None:
    cpu = {"fetch": 1.0, "transform": 2.0, "index": 1.0, "settle": 1.0}
    found = balance(CrawlState(PAGES, cpu, dict.fromkeys(PAGES, 2.0), workers=2, cores=8, waits={"hosts": 0.9}))
    assert found.bottleneck == "politeness" and "more sites" in found.advice


def test_too_few_pages_to_judge() -> None:
    assert balance(CrawlState({}, {}, {}, workers=1, cores=2)).phases == ()
    few = balance(CrawlState(dict.fromkeys(PAGES, 3), {"fetch": 0.1}, {}, workers=1, cores=2))
    assert few.bottleneck == "" and "Too few" in few.advice


IDLE = CrawlState(
    PAGES,
    dict.fromkeys(PAGES, 0.5),
    dict.fromkeys(PAGES, 10.0),
    workers=2,
    cores=8,
    queues={"transform": 7, "index": 3},
)


@pytest.mark.parametrize(
    ("waits", "named"),
    [
        ({"bandwidth": 0.9, "hosts": 0.1}, "freshness.bandwidth = 20 "),
        ({"shares": 0.9, "hosts": 0.1}, "freshness.discovery_share"),
        ({"memory": 0.8}, "limits.body_bytes"),
        ({"disk": 0.6, "hosts": 0.3}, "stores.directories"),
        ({"network": 1.0}, "network"),
        ({"phases": 0.7}, "crawl.in_flight"),
    ],
)
def test_the_advice_names_what_the_crawl_waits_for_and_its_setting(waits: dict[str, float], named: str) -> None:
    found = balance(IDLE._replace(waits=waits, bandwidth=20.0))
    assert found.bottleneck == next(iter(waits)) and named in found.advice


def test_a_crawl_at_its_bandwidth_is_held_by_that_whatever_single_pages_wait_for() -> None:
    found = balance(IDLE._replace(waits={"hosts": 0.9}, bandwidth=10.5))
    assert found.bottleneck == "bandwidth" and "10.5 reads/s" in found.advice


def test_hosts_are_named_only_if_the_crawl_waited_for_them() -> None:
    assert balance(IDLE._replace(waits={"hosts": 0.9, "disk": 0.1})).bottleneck == "politeness"
    free = balance(IDLE._replace(waits={"hosts": 0.1}))
    assert not free.bottleneck and "politeness" not in free.advice
    done = balance(IDLE._replace(waits={"hosts": 1.0}, due=0))
    assert not done.bottleneck and "Nothing is due" in done.advice


def test_a_service_with_pages_before_it_is_the_bottleneck() -> None:
    loads = [InstanceLoad(f"http://s{n}.example/", 90, 4, 4, mean_seconds=0.5, waiting=12) for n in range(2)]
    found = balance(IDLE._replace(services=loads, waits={"phases": 0.9}))
    assert found.bottleneck == "services" and "16.0 pages/s" in found.advice and "crawl.workers" not in found.advice
    free = [InstanceLoad("http://s.example/", 90, 3, 4, mean_seconds=0.5, waiting=12)]
    assert not balance(IDLE._replace(services=free)).bottleneck


def test_detect_and_extract_are_rows_of_their_own() -> None:
    found = balance(IDLE)
    assert [row.phase for row in found.phases] == ["fetch", "detect", "transform", "index", "extract", "settle"]
    assert {row.phase: row.queue for row in found.phases}["transform"] == 7
