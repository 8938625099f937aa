"""The phases of a crawl run apart: the same pages, quads, text and links as the crawl in one piece."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from faults.crawling import command, finish, kill_group, start, write_config
from quadloom.maintenance.archive_order import all_pages
from quadloom.maintenance.verify import is_page
from quadloom.model.phase import Owed
from quadloom.process.failpoints import EXIT_CODE
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, FakeWebServer, WebSpec, serve_in_process
from waiting import wait_until


class Held(NamedTuple):
    """What a warehouse holds after a crawl, without anything that depends on the order of visits."""

    pages: Mapping[str, tuple[object, ...]]
    graphs: dict[str, frozenset[str]]
    documents: frozenset[str]
    urls: dict[str, int]

    def but_visits(self) -> Held:
        """After a kill a page may have been read twice."""
        pages = {href: values[:-2] for href, values in self.pages.items()}
        return self._replace(pages=pages)


def held(path: Path) -> Held:
    with Warehouse.read(path) as warehouse:
        stores = warehouse.stores
        rows = list(all_pages(stores.catalog))
        assert stores.catalog.backlog.counts() == {}
        assert stores.catalog.backlog.owners() == []
        pages = {
            row.href: (row.status, row.kind, row.title, row.quads, row.quads_digest, row.text_digest, row.links,
                       row.state, row.fetched, str(row.outcome), row.visits)
            for row in rows
        }  # fmt: skip
        graphs = {
            graph: frozenset(stores.quads.match(None, None, None, f"<{graph}>"))
            for graph in stores.quads.graphs()
            if is_page(graph)
        }
        stats = stores.frontier.stats(0.0)
        counts = {"total": stats.total, "hosts": stats.hosts, "dead": stats.dead, "queued": stats.queued}
        return Held(pages, graphs, frozenset(stores.text.ids()), counts)


class Site(NamedTuple):
    serving: FakeWebServer
    config: Path
    whole: Held  # by the crawl in one piece


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("whole")
    web = FakeWeb(
        WebSpec(seed=5, pages=24, hosts=2, scale=0.1, links=10, traps=False, slow_seconds=0.0, crawl_delay=0.0)
    )
    with serve_in_process(web, log=folder / "requests.jsonl") as serving:
        config = write_config(folder, serving)
        finish(folder / "w", config, "crawl", *serving.web.seeds, "--json")
        yield Site(serving, config, held(folder / "w"))


def is_done(path: Path) -> bool:
    """Nothing is queued, owed or on its way to the queue."""
    with closing(sqlite3.connect(f"file:{path / 'quadloom.db'}?mode=ro", uri=True)) as database:
        # One snapshot: a page never leaves one of these lists before it is in the next.
        counted = database.execute(
            "SELECT (SELECT count(*) FROM queue) + (SELECT count(*) FROM frontier_inbox) + "
            "(SELECT count(*) FROM page WHERE owed > 0 OR indexed_quads <> quads_digest OR indexed_text <> text_digest)"
        )
        return counted.fetchone() == (0,)


def wait_until_done(path: Path, processes: list[subprocess.Popen[bytes]], seconds: float = 120.0) -> None:
    def done() -> bool:
        for process in processes:
            if process.poll() is not None:
                raise AssertionError(b"".join(process.communicate()).decode()[-3000:])
        return is_done(path)

    wait_until(done, "it does not come to an end", seconds=seconds)


@contextmanager
def side_by_side(path: Path, config: Path, *splits: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """One process for each set of phases, all on one warehouse; they are stopped by command in the end."""
    processes = [start(path, config, "crawl", "--phases", phases, "--follow", "--json") for phases in splits]
    try:
        yield processes
        finish(path, config, "stop", "--json")
        for process in processes:
            out, err = process.communicate(timeout=60)
            assert process.returncode == 0, (out + err).decode()[-3000:]
    finally:
        for process in processes:
            if process.poll() is None:
                kill_group(process)


SPLITS = [
    ("fetch,detect", "transform", "index,extract"),
    ("fetch", "detect", "transform", "index", "extract"),
    ("fetch", "detect,transform,index,extract"),
    ("fetch,detect,transform", "index,extract"),
    ("fetch,transform,extract", "index"),
    ("fetch,index,extract", "transform"),
    ("fetch,transform,index", "extract"),
    ("fetch", "transform", "transform", "index", "extract"),
]


@pytest.mark.slow
@pytest.mark.parametrize("splits", SPLITS)
def test_phases_side_by_side(tmp_path: Path, site: Site, splits: tuple[str, ...]) -> None:
    path = tmp_path / "w"
    finish(path, site.config, "seeds", "add", *site.serving.web.seeds, "--json")
    with side_by_side(path, site.config, *splits) as processes:
        wait_until_done(path, processes)
    assert held(path) == site.whole


KILLS = [  # which process ends where
    ("fetch", "after-catalog:1"),
    ("transform", "after-catalog:1"),
]
MORE_KILLS = [
    ("fetch,detect", "after-archive:1"),
    ("fetch,detect", "after-catalog:1"),
    ("transform,index", "after-spool:1"),
    ("transform,index", "after-catalog:1"),
    ("index", "after-quads:1"),
    ("index,extract", "after-marks:1"),
    ("extract", "after-extract:1"),
    ("fetch", "after-catalog:1"),
    ("detect", "after-catalog:1"),
    ("transform,extract", "after-spool:1"),
    ("transform,extract", "after-catalog:1"),
    ("index", "after-text:1"),
]


@pytest.mark.parametrize("kills", [KILLS, pytest.param(MORE_KILLS, marks=pytest.mark.slow)])
def test_any_phase_may_be_killed(tmp_path: Path, site: Site, kills: list[tuple[str, str]]) -> None:
    path = tmp_path / "w"
    for phases, point in kills:
        config = write_config(tmp_path, site.serving, failpoint=point, seeds=list(site.serving.web.seeds))
        ended = subprocess.run(
            command(path, config, "crawl", "--phases", phases), capture_output=True, timeout=120, check=False
        )
        assert ended.returncode == EXIT_CODE, (phases, point, ended.stderr.decode()[-2000:])
    finish(path, site.config, "crawl", "--json")
    assert held(path).but_visits() == site.whole.but_visits()


@pytest.mark.slow
def test_kill_9_of_every_process_at_random(tmp_path: Path, site: Site) -> None:
    path, chance = tmp_path / "w", random.Random(7)
    finish(path, site.config, "seeds", "add", *site.serving.web.seeds, "--json")
    splits = SPLITS[1]
    processes = [start(path, site.config, "crawl", "--phases", phases, "--follow") for phases in splits]
    try:
        for _ in range(20):
            time.sleep(chance.uniform(0.3, 2.0))  # the moment of the kill, not a synchronisation
            place = chance.randrange(len(splits))
            kill_group(processes[place])
            processes[place] = start(path, site.config, "crawl", "--phases", splits[place], "--follow")
        wait_until_done(path, processes)
        finish(path, site.config, "stop", "--json")
        for process in processes:
            process.communicate(timeout=60)
    finally:
        for process in processes:
            if process.poll() is None:
                kill_group(process)
    assert held(path).but_visits() == site.whole.but_visits()
    assert finish(path, site.config, "verify", "--json")["ok"]


@pytest.mark.slow
def test_a_new_strategy_finds_links_of_pages_read_long_ago(tmp_path: Path, site: Site) -> None:
    path = tmp_path / "w"
    finish(path, site.config, "crawl", *site.serving.web.seeds, "--strategy", "seealso", "--json")
    before = finish(path, site.config, "crawl", "--json")
    assert before["pages"] == 0, "a changed strategy alone reads nothing"
    finish(path, site.config, "extract", "--all", "--json")
    finish(path, site.config, "crawl", "--json")
    after = held(path)
    assert after.pages.keys() == site.whole.pages.keys()
    assert after.graphs == site.whole.graphs


@pytest.mark.slow
def test_fetch_alone_and_then_the_rest(tmp_path: Path, site: Site) -> None:
    path, seeds = tmp_path / "w", tuple(site.serving.web.seeds)
    report = finish(path, site.config, "fetch", *seeds, "--json")
    with Warehouse.read(path) as warehouse:
        owing = warehouse.stores.catalog.backlog.counts()
        assert owing[Owed.TRANSFORM] == owing[Owed.EXTRACT] >= 1
        assert not list(warehouse.stores.quads.graphs())
    assert report["pages"]
    finish(path, site.config, "crawl", "--json")
    assert held(path) == site.whole
