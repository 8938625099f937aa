"""Results for analysts: pandas, polars and Arrow tables, `warehouse.things`, and the notebook of the examples."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quadloom.asking.sparql.frames import FrameMethods, typed
from quadloom.errors import NothingFound, UsageError
from quadloom.warehouse import Warehouse
from unit import ROOT
from unit.web.things_fixture import fill_things

DAY = datetime(2026, 5, 1, tzinfo=UTC)
NOTEBOOK = ROOT / "examples" / "notebook" / "analysis.ipynb"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames") / "data"
    fill_things(path)
    return path


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1", "-2", ""], [1, -2, None]),
        (["1", "2.5", None], [1.0, 2.5, None]),
        (["true", "false"], [True, False]),
        (["2026-05-01", "2026-05-01T10:00:00+02:00"], [DAY, DAY.replace(hour=8)]),
        (["1_000", "nan"], ["1_000", "nan"]),
        (["1e3", ".5"], [1000.0, 0.5]),
        (["01234", "12"], ["01234", "12"]),
        (["1", "one", ""], ["1", "one", ""]),
        (["99999999999999999999999"], ["99999999999999999999999"]),
        ([None, ""], [None, None]),
        (["2026"], [2026]),
        (["1999-99-99"], ["1999-99-99"]),
    ],
)  # fmt: skip
def test_a_column_has_the_type_of_all_its_values(texts: list[str | None], values: list[object]) -> None:
    found = typed(texts)
    assert list(found) == values and [type(value) for value in found] == [type(value) for value in values]


def test_things_of_a_type_as_rows_and_tables(path: Path) -> None:
    with Warehouse.read(path) as warehouse:
        found = warehouse.things("schema:Event", where="location/address/addressLocality is Ghent", sort="-startDate")
        assert [row["name"] for row in found] == ["Concert 2", "Concert 0"]
        assert (len(found), found.total) == (2, 2) and "schema:Event" in found.sparql
        assert found.columns()["start date"][1] == datetime(2026, 5, 10, 19, 30, tzinfo=UTC)
        prices = warehouse.things("Product", columns="name,offers/price", sort="offers/price").columns()["price"]
        assert list(prices) == sorted(prices) and all(isinstance(price, float | int) for price in prices)  # type: ignore[type-var]
        with pytest.raises(NothingFound):
            warehouse.things("schema:Nothing")
        with pytest.raises(UsageError):
            warehouse.things("schema:Event", where="nonsense")


def test_a_property_that_no_page_states_is_named(path: Path) -> None:
    with Warehouse.read(path) as warehouse:
        misspelt = warehouse.things("Event", where="location/adress/addressLocality is Ghent", columns="name,zzz")
        assert misspelt.hints == (
            "no page states schema:adress; did you mean schema:address?",
            "no page states schema:zzz",
        )
        assert warehouse.things("Event", where="location/address/addressLocality is Ghent").hints == ()


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_results_become_tables_of_the_libraries(path: Path, library: str) -> None:
    pytest.importorskip({"arrow": "pyarrow"}.get(library, library))
    query = "SELECT ?name ?price WHERE { ?it a schema:Product ; schema:name ?name ; schema:offers/schema:price ?price }"
    with Warehouse.read(path) as warehouse:
        results = warehouse.sparql(query), warehouse.things("schema:Product")
        tables = [getattr(result, library)() for result in results]
    for table in tables:
        names = table.column_names if library == "arrow" else list(table.columns)
        assert "name" in names and "price" in names and len(table) > 1
        column = table["price"].to_pylist() if library == "arrow" else list(table["price"])
        assert all(isinstance(float(price), float) and price > 0 for price in column)


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(UsageError, match="pandas"):
        FrameMethods.pandas(type("Empty", (FrameMethods,), {"columns": lambda _self: {}})())


def test_the_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for library in ("pandas", "polars", "duckdb", "pyarrow"):
        pytest.importorskip(library)
    monkeypatch.setenv("QUADLOOM_WAREHOUSE", str(path))
    names: dict[str, object] = {}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        assert not cell.get("outputs"), "stored without outputs"
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), names)
    assert len(names["by_city"]) == 4  # type: ignore[arg-type]
    assert "Concert" in capsys.readouterr().out
