"""Rebuild changes nothing before its result is complete, and refuses to empty good indexes."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from quadloom.cli.main import run
from quadloom.documents.descriptions import PAGES
from quadloom.errors import StoreError, WarehouseLocked
from quadloom.maintenance import swap
from quadloom.maintenance import tasks as maintenance
from quadloom.maintenance.archive_order import all_pages
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.backends import DATABASE, open_state
from quadloom.stores.opened import JOURNAL, places_of
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.protocols.text import SearchRequest
from quadloom.warehouse import Warehouse

URLS = [f"http://site.example/{number}" for number in range(6)]


def filled(folder: Path) -> Path:
    pages = [
        Page(
            url, url, 200, (("content-type", "text/html"),),
            f'<title>Whale {url[-1]}</title><p vocab="http://schema.org/" typeof="Event">'
            f'<b property="name">n{url[-1]}</b>'.encode(), 1000.0, 0.1,
        )
        for url in URLS
    ]  # fmt: skip
    source = folder / "source.warc.gz"
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(page).member for page in pages))
    with Warehouse.open(folder / "warehouse") as warehouse:
        warehouse.maintenance.import_(source)
    return folder / "warehouse"


def lose_database(path: Path) -> None:
    for file in path.glob(f"{DATABASE}*"):
        file.unlink()


def found(warehouse: Warehouse) -> tuple[int, int]:
    """(quads, documents)"""
    return len(warehouse.stores.quads), warehouse.stores.text.search(SearchRequest(text="whale")).total


def left_over(path: Path) -> list[Path]:
    return [*path.glob("*.old"), *path.glob("*.new"), *path.glob("rebuild.*")]


class Stopped(Exception):
    pass


def test_the_catalog_says_nothing_of_indexes_that_are_not_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path)
    with Warehouse.open(path) as warehouse:
        catalog = warehouse.stores.catalog
        rows = list(all_pages(warehouse.stores.catalog))
        catalog.mark_indexed([IndexedPage(row.fingerprint, b"", b"") for row in rows])  # settled, and not indexed yet
        names = {name: catalog.values.get(name) for name in catalog.values.names("")}

        def stopped(*_: object) -> bool:
            raise Stopped

        monkeypatch.setattr(maintenance, "commit", stopped)
        with pytest.raises(Stopped):
            warehouse.maintenance.rebuild()
        assert {row.fingerprint for row in catalog.unindexed(100)} == {row.fingerprint for row in rows}
        assert {name: catalog.values.get(name) for name in catalog.values.names("")} == names
        monkeypatch.undo()
        warehouse.maintenance.rebuild()
        assert warehouse.stores.catalog.unindexed(100) == []
        assert warehouse.maintenance.verify().ok
    assert not left_over(path)


@pytest.mark.parametrize("killed_after", ["commit", "quads", "text"])
def test_a_reader_between_two_renames_sees_indexes_that_belong_together(tmp_path: Path, killed_after: str) -> None:
    path = filled(tmp_path)
    with Warehouse.read(path) as warehouse:
        before = found(warehouse)
    for name in ("quads", "text"):
        shutil.copytree(path / name, path / f"{name}.new")
    shutil.rmtree(path / "quads")
    shutil.rmtree(path / "text")
    (path / "quads").mkdir()
    (path / "text").mkdir()  # the old ones, which nobody may look at any more
    (path / JOURNAL).write_bytes(msgspec.json.encode(["quads", "text"]))
    swap.SpooledLedger(path).close()
    for name in {"commit": (), "quads": ("quads",), "text": ("quads", "text")}[killed_after]:
        (path / name).rename(path / f"{name}.old")
        (path / f"{name}.new").rename(path / name)
    with Warehouse.read(path) as warehouse:
        assert found(warehouse) == before
        assert len(warehouse.sparql("SELECT ?s { ?s ?p ?o }").values()) > 6
        assert {places_of(path, Settings()).current(name).name for name in ("quads", "text")} <= {
            "quads",
            "text",
            "quads.new",
            "text.new",
        }
    with Warehouse.open(path) as warehouse:
        assert found(warehouse) == before
        assert warehouse.maintenance.verify().ok
    assert not left_over(path)


def test_without_its_database_a_warehouse_is_not_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = filled(tmp_path)
    lose_database(path)
    before = sorted(path.rglob("*"))
    for command in (["verify"], ["rebuild"], ["status"], ["crawl", "http://127.0.0.1:9/", "--contact", "a@b.invalid"]):
        assert run(["-w", str(path), *command]) == 6, command
        assert f"quadloom -w {path} recover" in " ".join(capsys.readouterr().err.split()), command
    assert sorted(path.rglob("*")) == before
    assert run(["-w", str(path), "recover"]) == 0
    with Warehouse.open(path) as recovered:
        assert found(recovered)[1] == len(URLS)


def test_an_empty_database_beside_good_indexes_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with Warehouse.read(path) as warehouse:
        before = found(warehouse)
    lose_database(path)
    open_state(path, Settings(), writable=True).close()
    with Warehouse.repair(path) as warehouse:
        with pytest.raises(StoreError, match="knows no page") as caught:
            warehouse.maintenance.rebuild()
        assert f"quadloom -w {path} recover" in caught.value.hint
        assert found(warehouse) == before
        report = warehouse.maintenance.verify()
        assert not report.ok and f"quadloom -w {path} recover" in report.advice


def test_nothing_to_verify_creates_nothing(tmp_path: Path) -> None:
    assert run(["-w", str(tmp_path / "none"), "verify"]) == 6
    assert not (tmp_path / "none").exists()


def test_a_missing_archive_is_refused(tmp_path: Path) -> None:
    path = filled(tmp_path)
    (path / "archive").rename(tmp_path / "unmounted")
    with Warehouse.repair(path) as warehouse:
        before = found(warehouse)
        with pytest.raises(StoreError, match="1 files of the archive are missing"):
            warehouse.maintenance.rebuild()
        with pytest.raises(StoreError, match="none of the 6 records"):
            warehouse.maintenance.rebuild(partial=True)
        assert found(warehouse) == before
        assert {drift.what for drift in warehouse.maintenance.verify().drifts} == {"archive"}
    assert not left_over(path)


def test_records_that_cannot_be_read_are_named_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = filled(tmp_path)
    with Warehouse.read(path) as warehouse:
        (row,) = (row for row in all_pages(warehouse.stores.catalog) if row.href == URLS[2])
        quads = len(warehouse.stores.quads)
    assert row.archive is not None
    with (path / "archive" / row.archive.file).open("r+b") as file:
        file.seek(row.archive.offset + row.archive.length // 2)
        file.write(b"damage")
    assert run(["-w", str(path), "--json", "rebuild"]) == 1
    told = msgspec.json.decode(capsys.readouterr().out)
    assert (told["pages"], told["unreadable_records"], told["quads"]) == (6, 1, quads)
    assert told["unreadable"][0]["url"] == URLS[2] and row.archive.file in told["unreadable"][0]["reason"]
    with Warehouse.open(path) as warehouse:
        assert found(warehouse) == (quads, 5)
        assert {(drift.what, drift.subject) for drift in warehouse.maintenance.verify().drifts} == {
            ("archive", URLS[2]),
            ("unindexed", URLS[2]),
        }
        (visit,) = warehouse.stores.frontier.lease(10, 1e10)
        assert visit.href == URLS[2]


@pytest.mark.parametrize("name", ["quads", "text"])
def test_a_missing_index_is_not_replaced_by_an_empty_one(tmp_path: Path, name: str) -> None:
    path = filled(tmp_path)
    with Warehouse.read(path) as warehouse:
        before = found(warehouse)
    shutil.rmtree(path / name)
    for opened in (Warehouse.open, Warehouse.read):
        with pytest.raises(StoreError, match=f"folder {name} is missing") as caught:
            opened(path)
        assert "quadloom rebuild" in caught.value.hint
    assert not (path / name).exists()
    with Warehouse.repair(path) as warehouse:
        warehouse.maintenance.rebuild()
        assert found(warehouse) == before


def test_a_shared_database_is_neither_rebuilt_nor_pruned_while_workers_run(tmp_path: Path) -> None:
    class Busy:
        def take_all(self, now: float) -> None:
            raise WarehouseLocked("running workers own 200 of 256 shards")

    path = filled(tmp_path)
    with Warehouse.open(path) as warehouse:
        shared = msgspec.structs.replace(warehouse.stores, shards=Busy())
        upkeep = maintenance.Maintenance(shared, warehouse.ask, lambda: None)
        before = found(warehouse)
        files = sorted(warehouse.stores.archive.files())
        with pytest.raises(WarehouseLocked):
            upkeep.rebuild()
        with pytest.raises(WarehouseLocked):
            upkeep.prune(1e12)
        assert found(warehouse) == before
        assert sorted(warehouse.stores.archive.files()) == files
    assert not left_over(path)


def test_verify_covers_the_graph_about_pages(tmp_path: Path) -> None:
    stray = "http://gone.example/"
    with Warehouse.open(filled(tmp_path)) as warehouse:
        line = f'<{stray}> <urn:quadloom:kind> "html" <{PAGES}> .\n'
        warehouse.stores.quads.describe(PAGES, [(URLS[0], b""), (stray, line.encode())])
        report = warehouse.maintenance.verify()
        assert {(drift.what, drift.subject) for drift in report.drifts} == {
            ("description", URLS[0]),
            ("stray-description", stray),
        }
        assert "quadloom rebuild" in report.advice
        warehouse.maintenance.rebuild()
        assert warehouse.maintenance.verify().ok
        assert warehouse.maintenance.verify().advice == ""


def test_the_advice_is_the_next_step(tmp_path: Path) -> None:
    with Warehouse.open(filled(tmp_path)) as warehouse:
        stores = warehouse.stores
        rows = list(all_pages(stores.catalog))
        stores.catalog.mark_indexed([IndexedPage(rows[0].fingerprint, b"", b"")])
        assert "the next crawl indexes these pages" in warehouse.maintenance.verify().advice
        stores.quads.replace(Quads.of(rows[1].graph, b""))
        assert "quadloom rebuild" in warehouse.maintenance.verify().advice
