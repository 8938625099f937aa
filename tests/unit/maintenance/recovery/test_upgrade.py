"""Upgrading: what is old is named, what it will take is measured, and a killed one goes on where it was."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from quadloom.cli.main import run
from quadloom.errors import SettingsError
from quadloom.maintenance import rebuild
from quadloom.maintenance.recovery.upgrade import outdated, plan
from quadloom.maintenance.swap import SpooledLedger
from quadloom.model.page import Page
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.statistics import STATISTICS, Statistics
from quadloom.warehouse import Warehouse

PAGES = 45

KILLED = """
import os, sys
from quadloom.maintenance import rebuild
from quadloom.warehouse import Warehouse
rebuild._BATCH = 10
with Warehouse.repair(sys.argv[1]) as warehouse:
    warehouse.maintenance.rebuild(links=False, resume=True, progress=lambda pages: pages >= 20 and os._exit(86))
"""


def filled(folder: Path) -> Path:
    pages = [
        Page(url, url, 200, (("content-type", "text/html"),), body.encode(), 1000.0, 0.1)
        for number in range(PAGES)
        for url in (f"http://site.example/{number}",)
        for body in (f'<title>Whale {number}</title><p vocab="http://schema.org/" typeof="Event">whales</p>',)
    ]
    source = folder / "source.warc.gz"
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(page).member for page in pages))
    with Warehouse.open(folder / "warehouse") as warehouse:
        warehouse.maintenance.import_(source)
    return folder / "warehouse"


def content(warehouse: Warehouse) -> object:
    counts = Statistics.saved(warehouse.stores.catalog)
    return sorted(warehouse.stores.text.ids()), sorted(warehouse.stores.quads.dump()), counts.classes, counts.properties


def test_a_killed_rebuild_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = filled(tmp_path)
    with Warehouse.read(path) as warehouse:
        before = content(warehouse)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60, check=False)
    assert killed.returncode == 86
    with (path / "rebuild.marks").open("ab") as marks:
        marks.write(b"\0\0\0\7torn")
    with Warehouse.read(path) as warehouse:
        assert content(warehouse) == before, "readers have the old ones"
    with closing(SpooledLedger(path, resume=True)) as ledger:
        assert len(ledger.marked) == 20
    done: list[int] = []
    with Warehouse.repair(path) as warehouse:
        report = warehouse.maintenance.rebuild(links=False, resume=True, progress=done.append)
        assert report.pages == PAGES and done == [PAGES], "only what was left is done again, in one batch"
        assert content(warehouse) == before
        assert warehouse.maintenance.verify().ok


def test_what_something_else_has_written_to_begins_again(tmp_path: Path) -> None:
    path = filled(tmp_path)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], timeout=60, check=False)
    assert killed.returncode == 86 and (path / "text.new").is_dir()
    Warehouse.open(path).close()
    assert not (path / "text.new").exists() and not (path / "rebuild.marks").exists()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    path = filled(tmp_path)
    with Warehouse.open(path) as warehouse:
        before = content(warehouse)

    def json_of(*arguments: str) -> dict[str, object]:
        assert run(["-w", str(path), "upgrade", *arguments, "--json"]) == 0
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    assert json_of()["old"] == []
    with Warehouse.open(path) as warehouse:
        STATISTICS.put(warehouse.stores.catalog, None)
    would = json_of("--dry-run")
    assert len(would["old"]) == 1 and would["pages"] == PAGES  # type: ignore[arg-type]
    assert 0 < would["seconds"] < 60 and 10_000 < would["bytes"] < would["free_bytes"]  # type: ignore[operator]
    assert json_of()["took"]
    assert json_of()["old"] == []
    assert not list(path.glob("upgrade-*"))
    with Warehouse.open(path) as warehouse:
        assert content(warehouse) == before


def test_the_sample_touches_nothing(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with Warehouse.open(path) as warehouse:
        files = {file: file.read_bytes() for file in (path / "links").rglob("*") if file.is_file()}
        before, stats = content(warehouse), warehouse.stores.frontier.stats(0.0)
        assert plan(warehouse.stores).pages == PAGES
        assert content(warehouse) == before and warehouse.stores.frontier.stats(0.0) == stats
        assert {file: file.read_bytes() for file in (path / "links").rglob("*") if file.is_file()} == files
        shared = Settings(stores=StoreSettings(frontier="postgresql://h/d", catalog="postgresql:"))
        with pytest.raises(SettingsError, match="cluster"):
            outdated(replace(warehouse.stores, settings=shared))
    assert rebuild._BATCH == 2000
