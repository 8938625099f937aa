"""Rebuild on a real warehouse: graphs that come from no page stay, and a damaged quad store does not matter."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.crawling.topical.relevance import Topic
from quadloom.crawling.topical.topic import SCORE, topic_graph
from quadloom.errors import StoreError
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.statistics import STATISTICS, Statistics
from quadloom.warehouse import Warehouse

URL = "http://site.example/event"


def filled(folder: Path, headers: tuple[tuple[str, str], ...] = ()) -> Warehouse:
    page = Page(URL, URL, 200, (("content-type", "text/html"), *headers), b"<title>An event</title>", 1000.0, 0.1)
    source = folder / "one.warc.gz"
    source.write_bytes(file_header(source.name, 0.0) + encode(page).member)
    warehouse = Warehouse.open(folder / "warehouse")
    warehouse.maintenance.import_(source)
    return warehouse


def test_rebuild_keeps_the_scores_of_topics(tmp_path: Path) -> None:
    graph = topic_graph(Topic("Travel", "paris"))
    line = f'<{URL}> <{SCORE}> "0.931"^^<http://www.w3.org/2001/XMLSchema#double> <{graph}> .\n'
    with filled(tmp_path) as warehouse:
        warehouse.stores.quads.replace(Quads.of(graph, line.encode()))
        scores, page = warehouse.stores.quads.graph(graph), warehouse.stores.quads.graph(URL)
        assert scores
        warehouse.maintenance.rebuild()
        assert warehouse.stores.quads.graph(graph) == scores
        assert warehouse.stores.quads.graph(URL) == page
        assert warehouse.maintenance.verify().ok


@pytest.mark.parametrize("headers", [(), (("x-robots-tag", "noarchive"),)])
def test_what_a_rebuild_counts_is_what_the_store_holds(tmp_path: Path, headers: tuple[tuple[str, str], ...]) -> None:
    """It counts the statements that it writes, of archived pages and of others, and no scores of topics."""
    graph = topic_graph(Topic("Travel", "paris"))
    line = f'<{URL}> <{SCORE}> "0.931"^^<http://www.w3.org/2001/XMLSchema#double> <{graph}> .\n'
    with filled(tmp_path, headers) as warehouse:
        catalog, quads = warehouse.stores.catalog, warehouse.stores.quads
        quads.replace(Quads.of(graph, line.encode()))
        STATISTICS.put(catalog, None)
        warehouse.maintenance.rebuild()
        counted = Statistics.saved(warehouse.stores.catalog)
        held = Statistics.recounted(warehouse.stores.quads)
    assert counted.statements > 0
    assert (counted.classes, counted.properties) == (held.classes, held.properties)


def test_a_damaged_quad_store_is_rebuilt(tmp_path: Path) -> None:
    with filled(tmp_path) as warehouse:
        before = warehouse.stores.quads.graph(URL)
    (tmp_path / "warehouse" / "quads" / "CURRENT").write_bytes(b"rubbish\n")
    with pytest.raises(StoreError, match="CURRENT"):
        Warehouse.open(tmp_path / "warehouse")
    with Warehouse.repair(tmp_path / "warehouse") as warehouse:
        warehouse.maintenance.rebuild()
        assert warehouse.stores.quads.graph(URL) == before
        assert warehouse.maintenance.verify().ok
    assert (tmp_path / "warehouse" / "quads.damaged" / "CURRENT").read_bytes() == b"rubbish\n"


def test_an_empty_warehouse_can_be_repaired(tmp_path: Path) -> None:
    with Warehouse.repair(tmp_path / "new") as warehouse:
        assert warehouse.maintenance.rebuild().pages == 0


def test_an_unarchived_page_is_visited_again_when_its_graph_is_lost(tmp_path: Path) -> None:
    with filled(tmp_path, (("x-robots-tag", "noarchive"),)) as warehouse:
        assert warehouse.stores.quads.graph(URL)
    (tmp_path / "warehouse" / "quads" / "CURRENT").write_bytes(b"rubbish\n")
    with Warehouse.repair(tmp_path / "warehouse") as warehouse:
        warehouse.maintenance.rebuild()
        assert [drift.what for drift in warehouse.maintenance.verify().drifts] == ["unindexed"]
        (visit,) = warehouse.stores.frontier.lease(10, 1e10)
        assert visit.href == URL
