"""Backups and what is restored from them."""

from __future__ import annotations

import hashlib
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from command_line import quadloom
from quadloom.errors import QuadloomError, StoreError, UsageError, WarehouseLocked
from quadloom.maintenance.recovery import backup as module
from quadloom.maintenance.recovery.backup import back_up, backups, restore_files
from quadloom.maintenance.recovery.places import BackupPlace, open_place
from quadloom.model.page import Page
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.backends import DATABASE, open_state
from quadloom.warehouse import Warehouse
from servers import new_bucket

SETTINGS = Settings()


def add(warehouse: Path, folder: Path, *numbers: int) -> None:
    source = folder / f"{numbers[0]}.warc.gz"
    pages = [
        Page(
            f"http://a.example/{number}", f"http://a.example/{number}", 200, (("content-type", "text/html"),),
            f"<html lang=en><title>Lighthouse {number}</title><p>words of page {number}".encode(), 1.7e9 + number, 0.1,
        )
        for number in numbers
    ]  # fmt: skip
    source.write_bytes(file_header(source.name, 1.7e9) + b"".join(encode(page).member for page in pages))
    with Warehouse.open(warehouse) as opened:
        opened.maintenance.import_(source)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    add(tmp_path / "data", tmp_path, *range(30))
    return tmp_path / "data"


@pytest.fixture(params=["directory", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Settings]:
    if request.param == "directory":
        return str(tmp_path / "backups"), SETTINGS
    address = new_bucket()
    stores = {"archive_endpoint": address.endpoint, "archive_region": address.region}
    from msgspec.structs import replace

    return f"s3://{address.bucket}/backups", replace(SETTINGS, stores=replace(SETTINGS.stores, **stores))


def opened(place: tuple[str, Settings]) -> BackupPlace:
    return open_place(*place)


def urls(path: Path) -> set[str]:
    with closing(open_state(path, SETTINGS, writable=False)) as state:
        return {row.href for row in state.catalog.scan(limit=1000)}


def test_what_is_restored_answers_as_before_and_verifies(
    tmp_path: Path, warehouse: Path, place: tuple[str, Settings]
) -> None:
    done = back_up(warehouse, SETTINGS, opened(place))
    assert done.pages == 30 and done.bytes == done.written > 0
    restored = tmp_path / "restored"
    restore_files(opened(place), restored)
    with Warehouse.repair(restored) as found:
        assert found.maintenance.rebuild().pages == 30
        assert found.maintenance.verify().ok
        assert found.search("lighthouse", limit=50).total == 30
    assert urls(restored) == urls(warehouse)


def test_the_next_backup_copies_only_what_is_new(
    tmp_path: Path, warehouse: Path, place: tuple[str, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PIECE", 4096)
    first = back_up(warehouse, SETTINGS, opened(place))
    again = back_up(warehouse, SETTINGS, opened(place))
    assert again.written <= 2 * 4096, "the same pieces, but for the counters of the database"
    add(warehouse, tmp_path, 100)
    third = back_up(warehouse, SETTINGS, opened(place))
    assert 0 < third.written < first.written
    assert third.pages == 31


def test_a_time_can_be_chosen_and_old_backups_go(
    tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = open_place(str(tmp_path / "backups"), SETTINGS)
    times = iter((1.0e9, 1.1e9, 1.2e9, 1.3e9))
    monkeypatch.setattr(module, "unix_time", lambda: next(times))
    for number in (200, 201, 202):
        back_up(warehouse, SETTINGS, place)
        add(warehouse, tmp_path, number)
    made = [one.name for one in backups(place)]
    assert len(made) == 3
    restore_files(place, tmp_path / "second", at="2004-11-09")
    assert len(urls(tmp_path / "second")) == 31
    last = back_up(warehouse, SETTINGS, place, keep=2)
    assert last.removed == 2 and len(backups(place)) == 2
    for one in backups(place):
        for file in one.files:
            for piece in file.pieces:
                assert hashlib.sha256(place.read(f"pieces/{piece}")).hexdigest() == piece
    restore_files(place, tmp_path / "newest")
    assert len(urls(tmp_path / "newest")) == 33
    with pytest.raises(UsageError, match="no backup 1999"):
        restore_files(place, tmp_path / "none", at="1999")


def test_a_damaged_piece_is_named_and_leaves_no_warehouse(tmp_path: Path, warehouse: Path) -> None:
    place = open_place(str(tmp_path / "backups"), SETTINGS)
    back_up(warehouse, SETTINGS, place)
    for file in (tmp_path / "backups" / "pieces").rglob("*"):
        if file.is_file():
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 1
            file.write_bytes(data)
    with pytest.raises(StoreError, match="is damaged"):
        restore_files(place, tmp_path / "restored")
    assert not (tmp_path / "restored" / DATABASE).exists()


def test_what_would_lose_data_is_refused(tmp_path: Path, warehouse: Path) -> None:
    place = open_place(str(tmp_path / "backups"), SETTINGS)
    back_up(warehouse, SETTINGS, place)
    with pytest.raises(UsageError, match="not empty"):
        restore_files(place, warehouse)
    with place.owned(), pytest.raises(WarehouseLocked, match="another backup"):
        back_up(warehouse, SETTINGS, open_place(str(tmp_path / "backups"), SETTINGS))
    for file in (warehouse / "archive").glob("*.warc.gz"):
        shutil.move(file, tmp_path)
    with pytest.raises(StoreError, match="missing or too short"):
        back_up(warehouse, SETTINGS, place)
    with pytest.raises(QuadloomError, match="no place for backups"):
        open_place("ftp://a.example/b", SETTINGS)


def test_the_commands(tmp_path: Path, warehouse: Path) -> None:
    done = quadloom("-w", str(warehouse), "backup", "copies", "--json", cwd=tmp_path)
    assert done.returncode == 0 and '"pages":30' in done.stdout, done.stderr
    listed = quadloom("-w", str(warehouse), "backup", "copies", "--list", cwd=tmp_path)
    assert listed.stdout.splitlines()[0].split("\t") == ["made at", "pages", "size"]
    restored = quadloom("-w", "new", "restore", "copies", cwd=tmp_path)
    assert restored.returncode == 0, restored.stderr
    assert "30 pages restored to" in restored.stderr
    assert quadloom("-w", "none", "backup", "copies", cwd=tmp_path).returncode != 0
