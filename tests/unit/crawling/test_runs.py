"""Each phase alone, one after another, until nothing is left: the same as the crawl in one piece. The web is that of
`test_session`, in this process; `tests/e2e/test_phases_apart.py` has them in processes of their own."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from quadloom.crawling.run.session import CrawlSession
from quadloom.errors import UsageError, WarehouseLocked
from quadloom.maintenance.archive_order import all_pages
from quadloom.maintenance.verify import is_page
from quadloom.model.phase import Owed, PhaseName
from quadloom.settings import PolitenessSettings
from quadloom.warehouse import Warehouse
from unit.crawling.run.test_session import SEED, SETTINGS, Clock, Web

QUICK = replace(SETTINGS, politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0))


class RealClock(Clock):
    """On a slow machine a fast clock would let pages fall due again."""

    def __call__(self) -> float:
        return time.time()


def run(warehouse: Warehouse, phases: Iterable[PhaseName], web: Web, clock: Clock) -> list[str]:
    stores = msgspec.structs.replace(warehouse.stores, phases=frozenset(phases))
    running = CrawlSession(stores, QUICK, warehouse.scope, lambda: warehouse.ask.queries, fetch=web.unit, clock=clock)
    return [str(item.outcome) for item in running]


def contents(warehouse: Warehouse) -> object:
    stores = warehouse.stores
    rows = {
        row.href: (row.title, row.quads_digest, row.text_digest, row.visits, row.state)
        for row in all_pages(stores.catalog)
    }
    graphs = {graph: stores.quads.graph(graph) for graph in stores.quads.graphs() if is_page(graph)}
    return rows, graphs, set(stores.text.ids()), stores.frontier.stats(0.0), stores.catalog.counts()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> object:
    clock = RealClock()
    with Warehouse.open(tmp_path_factory.mktemp("whole"), settings=QUICK) as warehouse:
        warehouse.requests.add_seeds([SEED])
        run(warehouse, warehouse.stores.phases, Web(clock), clock)
        return contents(warehouse)


SPLITS: list[tuple[tuple[PhaseName, ...], ...]] = [
    (("fetch",), ("detect",), ("transform",), ("index",), ("extract",)),
    (("fetch", "detect"), ("detect", "transform", "extract"), ("index",)),
]


@pytest.mark.parametrize("split", [SPLITS[0], pytest.param(SPLITS[1], marks=pytest.mark.slow)], ids=["five", "three"])
def test_one_after_another(tmp_path: Path, whole: object, split: tuple[tuple[PhaseName, ...], ...]) -> None:
    clock = RealClock()
    web = Web(clock)
    with Warehouse.open(tmp_path, settings=QUICK) as warehouse:
        warehouse.requests.add_seeds([SEED])
        first = [run(warehouse, phases, web, clock) for phases in split]
        assert first[0] == ["fetched"]
        assert web.asked.keys() == {"one.example"}
        for _ in range(2):
            for phases in split:
                run(warehouse, phases, web, clock)
        assert contents(warehouse) == whole
        assert warehouse.stores.catalog.backlog.counts() == {}
        assert warehouse.maintenance.verify().ok
        assert not any((tmp_path / "spool").glob("*/*")), "what is done leaves nothing behind"
    assert sum(map(len, web.asked.values())) == 4, "no page is fetched twice"


def test_a_fetched_page_waits_in_the_archive(tmp_path: Path) -> None:
    clock = RealClock()
    with Warehouse.open(tmp_path, settings=QUICK) as warehouse:
        warehouse.requests.add_seeds([SEED])
        run(warehouse, ["fetch"], Web(clock), clock)
        (row,) = all_pages(warehouse.stores.catalog)
        assert (row.state, row.kind, row.visits, row.archive) == ("fetched", "", 0, None)
        assert row.fetched is not None
        assert warehouse.maintenance.verify().ok
        run(warehouse, ["detect"], Web(clock), clock)
        (row,) = all_pages(warehouse.stores.catalog)
        assert (row.state, row.kind) == ("detected", "html")
        assert warehouse.stores.catalog.backlog.counts() == {Owed.TRANSFORM: 1, Owed.INDEX: 1, Owed.EXTRACT: 1}


def test_a_record_that_cannot_be_read_is_fetched_again(tmp_path: Path, whole: object) -> None:
    clock = RealClock()
    web = Web(clock)
    with Warehouse.open(tmp_path, settings=QUICK) as warehouse:
        warehouse.requests.add_seeds([SEED])
        run(warehouse, ["fetch"], web, clock)
    (file,) = (tmp_path / "archive").glob("*.warc.gz")
    file.write_bytes(file.read_bytes()[:200] + b"\0" * 100)
    with Warehouse.open(tmp_path, settings=QUICK) as warehouse:
        run(warehouse, warehouse.stores.phases, web, clock)
        assert contents(warehouse) == whole
    assert len(web.asked["one.example"]) == 4


def test_a_phase_must_be_opened(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path, settings=QUICK, phases=["transform"]) as warehouse:
        with pytest.raises(UsageError, match="not opened for fetch"):
            warehouse.fetch([SEED])
        with pytest.raises(WarehouseLocked):
            Warehouse.open(tmp_path, settings=QUICK)
        assert list(warehouse.transform()) == []
