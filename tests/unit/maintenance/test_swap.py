"""Quads, text and links in folders of their own, as on other disks: everything works there, a rebuild too."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from quadloom.errors import SettingsError, StoreError
from quadloom.maintenance import swap
from quadloom.model.page import Page
from quadloom.process.failpoints import Failpoints
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.opened import places_of
from quadloom.stores.protocols.text import SearchRequest
from quadloom.warehouse import Warehouse


def placed(folder: Path) -> Settings:
    return Settings(
        stores=StoreSettings(
            quads=f"oxigraph://{folder}/disk2/quads",
            text=f"tantivy://{folder}/disk3/deep/text",
            links=f"{folder}/disk2/links",
        )
    )


def source(folder: Path) -> Path:
    body = b'<title>Whale</title><p vocab="http://schema.org/" typeof="Event"><b property="name">n</b>'
    urls = [f"http://site.example/{number}" for number in range(4)]
    pages = [Page(url, url, 200, (("content-type", "text/html"),), body, 1000.0, 0.1) for url in urls]
    file = folder / "source.warc.gz"
    file.write_bytes(file_header(file.name, 0.0) + b"".join(encode(page).member for page in pages))
    return file


def found(warehouse: Warehouse) -> tuple[int, int]:
    return len(warehouse.stores.quads), warehouse.stores.text.search(SearchRequest(text="whale")).total


def test_each_index_can_be_on_a_disk_of_its_own(tmp_path: Path) -> None:
    settings, path = placed(tmp_path), tmp_path / "w"
    with Warehouse.open(path, settings=settings) as warehouse:
        warehouse.maintenance.import_(source(tmp_path))
    assert not (path / "quads").exists()
    assert not (path / "text").exists()
    assert any((tmp_path / "disk2" / "quads").iterdir())
    with Warehouse.read(path, settings=settings) as warehouse:
        before = found(warehouse)
        assert before[1] == 4
        assert len(warehouse.sparql("SELECT ?s { ?s a <http://schema.org/Event> }").values()) == 4
        sizes = warehouse.ask.status()["sizes"]
        assert isinstance(sizes, dict) and sizes["quads"]
        assert warehouse.maintenance.verify().ok
    with Warehouse.open(path, settings=settings) as warehouse:
        warehouse.maintenance.rebuild()
        assert found(warehouse) == before
    left = sorted(file.name for file in (*(tmp_path / "disk2").iterdir(), *(tmp_path / "disk3" / "deep").iterdir()))
    assert left == ["links", "quads", "text"]


def test_a_rebuild_that_was_killed_is_finished_on_the_disks_of_the_indexes(tmp_path: Path) -> None:
    """The journal is written, nothing is renamed yet."""
    settings, path = placed(tmp_path), tmp_path / "w"
    with Warehouse.open(path, settings=settings) as warehouse:
        warehouse.maintenance.import_(source(tmp_path))
        before = found(warehouse)
    places = places_of(path, settings)
    for name in ("quads", "text"):
        shutil.copytree(places.of(name), places.new(name))
        shutil.rmtree(places.of(name))
        places.of(name).mkdir()  # the old ones, which nobody may look at any more
    swap.SpooledLedger(path).close()
    assert swap.commit(places, Failpoints(""))
    with Warehouse.read(path, settings=settings) as warehouse:
        assert found(warehouse) == before
    with Warehouse.open(path, settings=settings) as warehouse:
        assert found(warehouse) == before
    assert not places.new("quads").exists()
    assert not places.old("quads").exists()


def test_an_index_that_is_still_in_the_warehouse_is_to_be_moved(tmp_path: Path) -> None:
    path = tmp_path / "w"
    with Warehouse.open(path) as warehouse:
        warehouse.maintenance.import_(source(tmp_path))
        before = found(warehouse)
    settings = placed(tmp_path)
    with pytest.raises(StoreError, match="still in") as refused:
        Warehouse.open(path, settings=settings).__enter__()
    assert f"mv {path / 'quads'} {tmp_path}/disk2/quads" in refused.value.hint
    places = places_of(path, settings)
    for name in ("quads", "text"):
        places.of(name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).rename(places.of(name))
    with Warehouse.open(path, settings=settings) as warehouse:
        assert found(warehouse) == before


def test_a_mount_point_is_no_folder_for_an_index(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(Settings(), stores=StoreSettings(quads="oxigraph:///proc"))
    with pytest.raises(SettingsError, match="whole disk") as refused:
        places_of(tmp_path, settings)
    assert "oxigraph:///proc/quads" in refused.value.hint
