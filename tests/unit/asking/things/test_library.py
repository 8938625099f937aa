"""What programs and notebooks show of a warehouse and its answers, and errors with a cure."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import quadloom
from quadloom.asking.things.table import ThingsCache
from quadloom.errors import NothingFound, UsageError
from quadloom.settings import Settings
from quadloom.stores.statistics import STATISTICS, Statistics
from quadloom.warehouse import Warehouse
from unit.web.things_fixture import page_of, product
from unit.web.web_fixture import store_page


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path_factory.mktemp("library") / "data", settings=Settings()) as warehouse:
        lamp = {**product(1, "30.00", "4.4"), "name": "<b>Lamp</b>"}
        store_page(warehouse, "http://shop.example/p/1", page_of(lamp), 1.7e9)
        counts = Statistics.recounted(warehouse.stores.quads)
        STATISTICS.put_encoded(warehouse.stores.catalog, counts.encode())
        yield warehouse


def test_representations_say_what_a_thing_is(warehouse: Warehouse, tmp_path: Path) -> None:
    assert "open for writing" in repr(warehouse) and str(warehouse.path) in repr(warehouse)
    things = warehouse.things("schema:Product")
    assert repr(things).startswith("<Things of type Product: 1 of 1; columns name")
    with warehouse.sparql("SELECT ?s { ?s a schema:Product }") as result:
        assert repr(result).startswith("<QueryResult in json")


def test_a_notebook_shows_a_table_that_runs_nothing(warehouse: Warehouse) -> None:
    html = warehouse.things("schema:Product")._repr_html_()
    assert "<th>price</th>" in html and "<td>30.00</td>" in html
    assert "&lt;b&gt;Lamp" in html and "<b>" not in html


def test_errors_have_a_cure(warehouse: Warehouse) -> None:
    with pytest.raises(UsageError, match="not bytes") as wrong:
        quadloom.transform("<title>x</title>", url="https://a.example/")  # type: ignore[arg-type]
    assert "encode" in wrong.value.hint
    with pytest.raises(UsageError, match="'nope' is not absolute"):
        quadloom.transform(b"<title>x</title>", url="nope")
    with pytest.raises(NothingFound) as unknown:
        warehouse.things("schema:Prodct")
    assert "did you mean schema:Product?" in unknown.value.hint


def test_what_took_long_is_kept_longer_and_what_did_not_change_longest() -> None:
    now, made = [0.0], []

    def make() -> int:
        made.append(now[0])
        now[0] += 2.0
        return len(made)

    cache = ThingsCache(lambda: now[0], seconds=15.0)
    assert cache.get(("types",), make, mark=1) == 1
    now[0] = 41.0
    assert cache.get(("types",), make, mark=2) == 1, "two seconds of work are kept for forty"
    now[0] = 43.0
    assert cache.get(("types",), make, mark=2) == 2
    now[0] = 500.0
    assert cache.get(("types",), make, mark=2) == 2, "nothing it depends on has changed"
    assert cache.get(("types",), make, mark=3) == 3
