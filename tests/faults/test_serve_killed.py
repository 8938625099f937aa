"""A server that dies without a word: its crawl finishes what is under way, saves and ends too."""

from __future__ import annotations

import os
from pathlib import Path

from e2e.live_site import live_site
from quadloom.crawling.run.control import ask
from quadloom.stores.statistics import OPEN
from quadloom.warehouse import Warehouse
from waiting import wait_until


def children(parent: int) -> dict[int, list[str]]:
    """Processes that one has started, by their command lines (Linux)."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                found[int(stat.parent.name)] = (stat.parent / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
    return found


def descendants(parent: int) -> list[int]:
    """All processes below one: fetcher and workers are forked by their template."""
    below = list(children(parent))
    return [*below, *(one for child in below for one in descendants(child))]


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_a_killed_server_takes_its_crawl_along(tmp_path: Path) -> None:
    with live_site(tmp_path) as site:
        (crawler,) = (number for number, words in children(site.process.pid).items() if "crawl" in words)
        below = [crawler, *descendants(crawler)]
        assert len(below) > 2, "the crawl has its fetcher and its workers"
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, site.process.pid) == min(own + 5, 19), "answers come after the crawl"
        assert {os.getpriority(os.PRIO_PROCESS, number) for number in below} == {own}
        site.process.kill()
        site.process.wait()
        wait_until(lambda: not any(is_running(number) for number in below), "the crawl goes on without its site")
        assert ask(site.warehouse, "status") is None
    with Warehouse.open(site.warehouse) as warehouse:
        assert not OPEN.get(warehouse.stores.catalog), "it came to its proper end, not to a crash"
        assert len(warehouse.stores.text) > 0
        assert warehouse.maintenance.verify().ok
