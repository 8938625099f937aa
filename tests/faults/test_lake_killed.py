"""kill -9 of `lake sync`, while it fills a lake, replaces what changed and merges small files: a
question is answered after each kill, and the next run has everything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import quadloom
from faults.crawling import finish
from faults.test_maintenance_killed import config, kill_often, page, timed, warc
from quadloom.maintenance.lake.place import place_of, read_manifest
from quadloom.warehouse import Warehouse

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install quadloom[lake]")
pytest.importorskip("duckdb", reason="needs duckdb: pip install quadloom[lake]")

KILLS = [
    2,
    pytest.param(40, marks=[pytest.mark.slow, pytest.mark.timeout(3000)]),
]
PAGES = 40
COUNT = (
    "SELECT (SELECT count(*) FROM pages) AS pages, (SELECT count(DISTINCT page) FROM pages) AS different, "
    "(SELECT count(DISTINCT page) FROM quads) AS described"
)


def asked(path: Path, settings: Path) -> dict[str, int]:
    done = quadloom("-w", str(path), "--config", str(settings), "--json", "lake", "query", COUNT, cwd=settings.parent)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    names = answer["columns"] if isinstance(answer, dict) else list(answer[0])
    row = answer["rows"][0] if isinstance(answer, dict) else answer[0]
    return dict(row) if isinstance(row, dict) else dict(zip(names, row, strict=True))


def imported(path: Path, settings: Path, numbers: range, at: float) -> None:
    file = warc(settings.parent / f"{at}.warc.gz", [page(n, at) for n in numbers])
    finish(path, settings, "import", str(file), "--json")


@pytest.mark.parametrize("kills", KILLS)
def test_lake_sync_killed_at_random_moments(tmp_path: Path, kills: int) -> None:
    path, settings = tmp_path / "warehouse", config(tmp_path)
    imported(path, settings, range(PAGES), 1000.0)
    seconds = timed(path, settings, "lake", "sync", "--parts", "4")
    rounds = 0

    def changed() -> None:
        """What is asked for between two syncs is the lake of before or after, in each part."""
        nonlocal rounds
        rounds += 1
        answer = asked(path, settings)
        assert answer["pages"] == answer["different"] and answer["pages"] >= PAGES
        imported(path, settings, range(rounds, PAGES + rounds), 1000.0 + 100.0 * rounds)

    kill_often(path, settings, kills, ["lake", "sync"], changed, seconds=seconds)
    finish(path, settings, "lake", "sync", "--json")
    total = PAGES + rounds
    assert asked(path, settings) == {"pages": total, "different": total, "described": total}
    with Warehouse.read(path) as warehouse:
        place = place_of(path, warehouse.stores.settings)
        listed = {
            file.name for part in range(4) for files in read_manifest(place, part).files.values() for file in files
        }
    found = {str(file.relative_to(path / "lake")) for file in (path / "lake").rglob("*.parquet")}
    assert found == listed, "nothing of a killed sync is left"
