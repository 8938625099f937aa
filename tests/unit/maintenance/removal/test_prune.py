"""Prune on a real warehouse: what goes, what stays, and that a kill between any two steps changes nothing."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from quadloom.cli.main import run
from quadloom.errors import NothingFound, SettingsError, StoreError
from quadloom.maintenance.removal.prune import PruneReport, horizon, plan, prune
from quadloom.model.event import Notice
from quadloom.model.outcome import Outcome, Settlement
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.backends import DATABASE, open_state
from quadloom.warehouse import Warehouse

PAGES = [f"http://site.example/{number}" for number in range(8)]
UNCHANGED = "http://site.example/unchanged"  # read once, long ago
TIMES = (1000.0, 2000.0, 3000.0, 4000.0, 5000.0)
BEFORE = 3500.0
STEPS = ("forgotten", "emptied", "copied", "repointed", "removed")
SMALL = Settings(stores=StoreSettings(archive_file_bytes=6000))
Contents = dict[str, list[tuple[float, bytes]]]

KILLED = """
import os, sys
from quadloom.maintenance.removal.prune import prune
from quadloom.warehouse import Warehouse
warehouse = Warehouse.open(sys.argv[1])
stores = warehouse.stores
prune(stores, float(sys.argv[2]), reached=lambda step: step == sys.argv[3] and os._exit(86))
"""


def version(url: str, at: float) -> Page:
    noise = random.Random(f"{url} {at}").randbytes(300).hex()  # bytes that gzip cannot compress
    body = f'<html><title>Things</title><p vocab="http://schema.org/" typeof="Event"><b property="name">{noise}</b>'
    return Page(url, url, 200, (("content-type", "text/html"),), body.encode(), at, 0.1)


def filled(folder: Path, settings: Settings = SMALL) -> Path:
    """Five versions of each page over many small files; `UNCHANGED` is the only current record of its file."""
    path = folder / "warehouse"
    sources = []
    for at in TIMES:
        pages = [version(url, at) for url in (PAGES if at > TIMES[0] else [*PAGES, UNCHANGED])]
        sources.append(folder / f"{at}.warc.gz")
        sources[-1].write_bytes(file_header(sources[-1].name, at) + b"".join(encode(page).member for page in pages))
    with Warehouse.open(path, settings=settings) as warehouse:
        warehouse.maintenance.import_(*sources)
    return path


def contents(warehouse: Warehouse) -> Contents:
    """Every visit with its archived body."""
    found: Contents = {}
    for row in warehouse.stores.catalog.scan():
        assert row.archive is not None
        bodies = []
        for visit in warehouse.stores.catalog.visits.of(row.fingerprint):
            assert visit.archive is not None
            page = warehouse.stores.archive.get(visit.archive)
            assert isinstance(page, Page)
            bodies.append((visit.fetched_at, page.body))
        assert warehouse.stores.catalog.visits.of(row.fingerprint)[0].archive == row.archive
        found[row.href] = bodies
    return found


def expected(*times: float) -> Contents:
    return {url: [(at, version(url, at).body) for at in sorted(times, reverse=True)] for url in PAGES} | {
        UNCHANGED: [(TIMES[0], version(UNCHANGED, TIMES[0]).body)]
    }


def test_old_versions_go_and_the_newest_stay(tmp_path: Path) -> None:
    with Warehouse.open(filled(tmp_path), settings=SMALL) as warehouse:
        assert contents(warehouse) == expected(*TIMES)
        size, files = warehouse.stores.archive.size(), len(warehouse.stores.archive.files())
        planned = plan(warehouse.stores, BEFORE)
        done = prune(warehouse.stores, BEFORE)
        assert done.visits == planned.visits == 3 * len(PAGES)
        assert done.rewritten == len(planned.sparse) > 0
        assert done.removed == len(planned.sparse) + len(planned.empty) > done.rewritten
        assert done.freed_bytes == size - warehouse.stores.archive.size() > planned.dead_bytes / 2 > 0
        assert len(warehouse.stores.archive.files()) < files
        assert contents(warehouse) == expected(4000.0, 5000.0)
        assert warehouse.maintenance.verify().ok
        with pytest.raises(NothingFound):
            warehouse.ask.graph_at(PAGES[0], 2500.0)
        assert prune(warehouse.stores, BEFORE) == PruneReport()
    with Warehouse.open(tmp_path / "warehouse", settings=SMALL) as warehouse:
        assert contents(warehouse) == expected(4000.0, 5000.0)
        assert prune(warehouse.stores, 1e12).visits == len(PAGES)
        assert contents(warehouse) == expected(5000.0)
        assert warehouse.maintenance.verify().ok
        assert warehouse.maintenance.rebuild().pages == len(PAGES) + 1


@pytest.mark.parametrize("step", STEPS)
def test_a_kill_after_any_step_ends_in_the_same_state(tmp_path: Path, step: str) -> None:
    path = filled(tmp_path)
    shutil.copytree(path, tmp_path / "undisturbed")
    with Warehouse.open(tmp_path / "undisturbed", settings=SMALL) as warehouse:
        prune(warehouse.stores, BEFORE)
        bytes_left = sum(warehouse.stores.archive.files().values())
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path), str(BEFORE), step], timeout=60, check=False)
    assert killed.returncode == 86
    with Warehouse.open(path, settings=SMALL) as warehouse:
        assert contents(warehouse) == expected(4000.0, 5000.0)
        assert warehouse.maintenance.verify().ok
        prune(warehouse.stores, BEFORE)
        assert contents(warehouse) == expected(4000.0, 5000.0)
        assert warehouse.maintenance.verify().ok
        assert sum(warehouse.stores.archive.files().values()) == bytes_left


def test_a_file_less_than_half_dead_is_left_and_its_old_visits_are_forgotten(tmp_path: Path) -> None:
    with Warehouse.open(filled(tmp_path, Settings()), settings=Settings()) as warehouse:
        files = warehouse.stores.archive.files()
        assert len(files) == 1
        assert prune(warehouse.stores, 2500.0) == PruneReport(visits=2 * len(PAGES))
        assert warehouse.stores.archive.files() == files
        assert contents(warehouse) == expected(3000.0, 4000.0, 5000.0)


def test_the_current_version_stays_when_later_visits_have_none(tmp_path: Path) -> None:
    with Warehouse.open(filled(tmp_path), settings=SMALL) as warehouse:
        row = warehouse.ask.history(PAGES[0]).page
        leased = Visit(row.href, row.key, row.host, row.fingerprint)
        for at in (6000.0, 7000.0):  # 304: the row still refers to the record of 5000
            unchanged = replace(row, fetched_at=at, status=304, outcome=Outcome.UNCHANGED)
            warehouse.stores.catalog.record([Settlement(leased, Outcome.UNCHANGED, unchanged)], at)
        for at in (8000.0, 9000.0):
            failed = replace(row, fetched_at=at, status=503, outcome=Outcome.FAILED)
            warehouse.stores.catalog.record([Settlement(leased, Outcome.FAILED, failed)], at)
        prune(warehouse.stores, 1e12)
        body = version(PAGES[0], 5000.0).body
        times = (9000.0, 8000.0, 7000.0, 6000.0, 5000.0)
        assert contents(warehouse)[PAGES[0]] == [(at, body) for at in times]
        assert warehouse.maintenance.verify().ok


def test_a_version_with_a_notice_stays_readable(tmp_path: Path) -> None:
    with Warehouse.open(filled(tmp_path), settings=SMALL) as warehouse:
        _, _, _, old, oldest = warehouse.ask.history(PAGES[3]).visits
        notice = Notice(
            at=2000.0, subscription="s", kind="changed", url=PAGES[3], before=oldest.archive, after=old.archive
        )
        warehouse.stores.outbox.append([notice])
        (before,) = warehouse.subscriptions.notices()
        assert prune(warehouse.stores, BEFORE).freed_bytes > 0
        assert warehouse.subscriptions.notices() == [before]
        (moved,) = warehouse.stores.outbox.since(0)
        assert (moved.before, moved.after) != (notice.before, notice.after)
        assert contents(warehouse) == expected(4000.0, 5000.0)


def test_a_version_whose_notice_was_trimmed_goes(tmp_path: Path) -> None:
    sizes = {}
    for name in ("without", "untrimmed", "trimmed"):
        (tmp_path / name).mkdir()
        with Warehouse.open(filled(tmp_path / name), settings=SMALL) as warehouse:
            if name != "without":
                before = warehouse.ask.history(PAGES[3]).visits[-1].archive
                warehouse.stores.outbox.append([Notice(at=2000.0, subscription="s", kind="changed", before=before)])
            if name == "trimmed":
                assert warehouse.subscriptions.trim_notices().dropped == 1
            prune(warehouse.stores, BEFORE)
            sizes[name] = warehouse.stores.archive.size()
    assert abs(sizes["trimmed"] - sizes["without"]) < 100, "except for the names and dates of files"
    assert sizes["untrimmed"] > sizes["trimmed"] + 300


def test_a_file_with_a_damaged_live_record_is_left(tmp_path: Path) -> None:
    path = filled(tmp_path)
    with Warehouse.open(path, settings=SMALL) as warehouse:
        ref = warehouse.ask.history(UNCHANGED).page.archive
        assert ref is not None
        with (path / "archive" / ref.file).open("r+b") as file:
            file.seek(ref.offset + ref.length // 2)
            file.write(b"damage")
        done = prune(warehouse.stores, BEFORE)
        assert done.damaged == (ref.file,)
        assert (path / "archive" / ref.file).exists()
        assert warehouse.ask.history(UNCHANGED).page.archive == ref
        assert [visit.fetched_at for visit in warehouse.ask.history(PAGES[0]).visits] == [5000.0, 4000.0]


def test_an_archive_whose_database_was_lost_is_not_touched(tmp_path: Path) -> None:
    path = filled(tmp_path)
    for file in path.glob(f"{DATABASE}*"):
        file.unlink()
    open_state(path, SMALL, writable=True).close()  # as if the file had been replaced by an empty one
    with Warehouse.open(path, settings=SMALL) as warehouse:
        files = warehouse.stores.archive.files()
        with pytest.raises(StoreError):
            prune(warehouse.stores, BEFORE)
        assert warehouse.stores.archive.files() == files


def test_retention_is_a_length_of_time() -> None:
    assert horizon("forever", 1e9) is None
    assert horizon("10d", 1e9) == 1e9 - 864_000
    assert horizon("0s", 1e9) == 1e9
    for wrong in ("soon", "-1d", "nan", ""):
        with pytest.raises(SettingsError):
            horizon(wrong, 1e9)


def test_the_command_says_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = filled(tmp_path)
    with Warehouse.open(path, settings=SMALL) as warehouse:  # notices refer to old versions until they are trimmed
        for url in PAGES:
            before = warehouse.ask.history(url).visits[-1].archive
            warehouse.stores.outbox.append(
                [Notice(at=2000.0, subscription="s", kind="changed", url=url, before=before)]
            )
    monkeypatch.chdir(tmp_path)

    def prune_json(*options: str) -> dict[str, object]:
        assert run(["-w", str(path), "--json", "prune", *options]) == 0
        return msgspec.json.decode(capsys.readouterr().out, type=dict[str, object])

    size = sum(file.stat().st_size for file in (path / "archive").iterdir())
    assert prune_json()["visits"] == 0
    assert run(["-w", str(path), "prune"]) == 0
    assert "forever" in capsys.readouterr().err
    monkeypatch.setenv("QUADLOOM_INDEX__RETENTION", "1d")
    would = prune_json("--dry-run")
    assert would["visits"] == 4 * len(PAGES)
    assert sum(file.stat().st_size for file in (path / "archive").iterdir()) == size
    with Warehouse.read(path, settings=SMALL) as warehouse:
        assert len(warehouse.stores.outbox.since(0)) == would["notices"] == len(PAGES)
    done = prune_json()
    assert {name: done[name] for name in ("visits", "notices", "removed", "rewritten")} == {
        name: would[name] for name in ("visits", "notices", "removed", "rewritten")
    }
    assert done["freed_bytes"] == size - sum(file.stat().st_size for file in (path / "archive").iterdir())
    monkeypatch.setenv("QUADLOOM_INDEX__RETENTION", "soon")
    assert run(["-w", str(path), "prune"]) == 3
