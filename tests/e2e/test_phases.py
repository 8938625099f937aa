"""The phases of a crawl run apart: the same pages, quads, text and links as the crawl in one piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from faults.crawling import finish, write_config
from quadloom.maintenance.verify import all_pages, is_page
from quadloom.model.phase import Owed
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, FakeWebServer, WebSpec, serve_in_process

pytestmark = pytest.mark.timeout(300)


class Held(NamedTuple):
    """What a warehouse holds after a crawl, without anything that depends on the order of visits."""

    pages: dict[str, tuple[object, ...]]
    graphs: dict[str, frozenset[str]]
    documents: frozenset[str]
    urls: dict[str, int]


def held(path: Path) -> Held:
    with Warehouse.read(path) as warehouse:
        stores = warehouse.stores
        rows = list(all_pages(stores))
        assert stores.catalog.owing() == {}
        assert stores.catalog.lease_owners() == []
        pages = {
            row.href: (row.status, row.kind, row.title, row.quads, row.quads_digest, row.text_digest, row.links,
                       str(row.outcome), row.visits, row.state, row.fetched)
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
        WebSpec(seed=5, pages=60, hosts=4, scale=0.1, links=20, traps=False, slow_seconds=0.0, crawl_delay=0.0)
    )
    with serve_in_process(web, log=folder / "requests.jsonl") as serving:
        config = write_config(folder, serving)
        finish(folder / "w", config, "crawl", *serving.web.seeds, "--json")
        yield Site(serving, config, held(folder / "w"))


def until_done(path: Path, config: Path, *splits: str, seeds: tuple[str, ...] = ()) -> None:
    """Run each split of the phases to its end, round after round, until no URL is left."""
    first = seeds
    for _ in range(60):
        for phases in splits:
            finish(path, config, "crawl", *first, "--phases", phases, "--json")
            first = ()
        with Warehouse.read(path) as warehouse:
            if not warehouse.stores.frontier.stats(0.0).queued and not warehouse.stores.catalog.owing():
                return
    raise AssertionError("it does not come to an end")


def test_fetch_alone_and_then_the_rest(tmp_path: Path, site: Site) -> None:
    path, seeds = tmp_path / "w", tuple(site.serving.web.seeds)
    report = finish(path, site.config, "fetch", *seeds, "--json")
    with Warehouse.read(path) as warehouse:
        owing = warehouse.stores.catalog.owing()
        assert owing[Owed.TRANSFORM] == owing[Owed.EXTRACT] >= 1
        assert not list(warehouse.stores.quads.graphs())
    assert report["pages"]
    finish(path, site.config, "crawl", "--json")
    assert held(path) == site.whole
