"""kill -9 of the whole process group at random moments: nothing acknowledged is missing, nothing is left out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from faults.crawling import (
    IN_FLIGHT,
    finish,
    kill_group,
    must_be_read,
    requests,
    start,
    wait_for_requests,
    write_config,
)
from quadloom.maintenance.archive_order import all_pages
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process


@pytest.mark.parametrize(
    ("kills", "pages"),
    [
        (5, 400),
        pytest.param(200, 8000, marks=[pytest.mark.slow, pytest.mark.timeout(3000)]),
        pytest.param(500, 12_000, marks=[pytest.mark.slow, pytest.mark.timeout(7000)]),
    ],
)
def test_nothing_is_lost(tmp_path: Path, kills: int, pages: int) -> None:
    seed = 20261
    chance = random.Random(seed)
    web = FakeWeb(
        WebSpec(seed=3, pages=pages, hosts=20, scale=0.15, links=40, traps=False, slow_seconds=0.0, crawl_delay=0.0)
    )
    with serve_in_process(web, log=tmp_path / "requests.jsonl") as serving:
        config = write_config(tmp_path, serving)
        warehouse = tmp_path / "warehouse"
        done_kills = 0
        for _ in range(kills):
            process = start(warehouse, config, "crawl", *serving.web.seeds)
            target = serving.load().requests + chance.randrange(1, 3 * pages // (2 * kills))
            alive = wait_for_requests(serving, target, process)
            kill_group(process)
            done_kills += alive
        assert done_kills >= 0.9 * kills, f"seed {seed}: the crawl was over after {done_kills} kills"
        finish(warehouse, config, "crawl", "--json")
        verified = finish(warehouse, config, "verify", "--json")
        seen = requests(serving)
        expected = must_be_read(serving)
    assert verified["ok"], (seed, verified["drift"])
    missing = {url for url in expected if not seen[url]}
    assert not missing, (seed, sorted(missing)[:10], len(missing))
    # Pages marked noarchive are not kept, so what a crash left unindexed of them must be fetched again.
    with Warehouse.read(warehouse) as stores:
        unarchived = {row.href for row in all_pages(stores.stores.catalog) if row.status == 200 and row.archive is None}
    again = {url: count - 1 for url, count in seen.items() if not url.endswith("/robots.txt") and url not in unarchived}
    refetches = sum(again.values())
    errors = sum(1 for url in expected if serving.web.expected(url).status >= 500)
    print(f"{done_kills} kills, {sum(seen.values())} requests, {refetches} refetches, {len(unarchived)} not archived")
    assert refetches <= kills * IN_FLIGHT + 2 * errors, (seed, refetches)
