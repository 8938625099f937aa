"""The bandwidth of a crawl without an end is constant, slot by slot, as its servers see it."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from fakeweb.request_log import RequestLog
from quadloom.settings import CrawlSettings, FreshnessSettings, GuardSettings, PolitenessSettings, Settings
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, FakeWebServer, WebSpec, serve_in_process

SPEC = WebSpec(seed=5, pages=60, hosts=6, scale=0.1, links=12, traps=False, slow_seconds=0.0, crawl_delay=0.0)
BANDWIDTH = 40.0
BEGIN, SLOT, SLOTS = 3.0, 4.0, 4  # seconds after the second page; the first ones wait for robots.txt of new hosts


def settings_for(serving: FakeWebServer) -> Settings:
    return Settings(
        crawl=CrawlSettings(contact="test@quadloom.invalid", scope="any", workers=1, batch_seconds=0.1),
        politeness=PolitenessSettings(
            delay=0.0, ip_delay=0.0, per_site=16, adaptive=0.0, retries=1, backoff=0.2, max_backoff=0.5,
            max_crawl_delay=0.0,
        ),
        freshness=FreshnessSettings(
            bandwidth=BANDWIDTH, min_interval="1s", max_interval="60s", prior_interval="3s", importance_every="4s",
        ),
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts=serving.web.hosts_override()),
    )  # fmt: skip


@pytest.mark.slow
def test_every_slot_has_its_reads(tmp_path: Path) -> None:
    """Discovery ends and refresh takes over within these slots, rankings move pages, first reads are forbidden by
    robots.txt: none of it may show. A slot in which this machine stood still is not judged. Where other tests take its
    processors, reads come late: `unit/run/test_pacing` shows the same in simulated time."""
    log = tmp_path / "requests.jsonl"
    settled: list[float] = []
    with (
        serve_in_process(FakeWeb(SPEC), log=log) as serving,
        Warehouse.open(tmp_path / "w", settings=settings_for(serving)) as warehouse,
    ):
        running = warehouse.crawl(serving.web.seeds, forever=True)
        for _ in running:
            settled.append(time.time())
            if len(settled) > 1 and settled[-1] > settled[1] + BEGIN + SLOT * SLOTS + 0.5:
                running.stop()
        outcomes = warehouse.stores.catalog.counts()
    times = [request.wall for request in RequestLog(log).requests if request.target != "/robots.txt"]
    begin = settled[1] + BEGIN
    slots = [
        [at for at in times if begin + number * SLOT <= at < begin + (number + 1) * SLOT] for number in range(SLOTS)
    ]
    steady = [len(slot) for slot in slots if _longest_gap(slot) < 0.05 * SLOT + 0.1]
    assert outcomes["outcome:unchanged"] > 50 and outcomes["outcome:denied"] > 5, "both phases, and what is not asked"
    if len(steady) < 2:
        pytest.skip(f"this machine stood still in most slots: {[len(slot) for slot in slots]}")
    assert all(count == pytest.approx(BANDWIDTH * SLOT, rel=0.05) for count in steady), [len(slot) for slot in slots]


def _longest_gap(times: list[float]) -> float:
    return max((after - before for before, after in pairwise(times)), default=SLOT)
