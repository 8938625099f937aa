"""A power cut at any moment of a crawl, an import, a rebuild or a prune: nothing acknowledged is lost, and the next
command brings everything into agreement. See `faults.power_cut` for how the cut is made."""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from faults.power_cut import STRACE, Disk, Operation, record
from quadloom.maintenance.archive_order import all_pages
from quadloom.model.page import Page
from quadloom.settings import CrawlSettings, IndexSettings, Settings, StoreSettings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.backends import DATABASE
from quadloom.stores.protocols.text import SearchRequest
from quadloom.warehouse import Warehouse

pytestmark = pytest.mark.skipif(STRACE is None, reason="strace is not installed")

PAGES = 24
RECENT = int(time.time()) - 60.0  # so that no page is due again
OLDER = RECENT - 86400.0
SETTINGS = msgspec.structs.replace(
    Settings(),
    crawl=CrawlSettings(workers=1, batch=4, contact="test@quadloom.invalid"),
    index=IndexSettings(text_commit_pages=6),
    stores=StoreSettings(archive_file_bytes=4000),
)

# Each acknowledges by writing to its second argument how many pages are safe.
COMMON = f"""
import os, sys, msgspec
from pathlib import Path
from quadloom.maintenance.removal.prune import prune
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
settings = msgspec.json.decode({msgspec.json.encode(SETTINGS)!r}, type=Settings)
acks = os.open(sys.argv[2], os.O_WRONLY)
path = Path(sys.argv[1])

def acknowledge(pages):
    os.write(acks, b"%d" % pages)
"""
IMPORT = """
with Warehouse.open(path / "w", settings=settings) as warehouse:
    warehouse.maintenance.import_(path / "source.warc.gz", progress=acknowledge)
"""
CRAWL = """
crawl = msgspec.structs.replace(settings.crawl, transport=f"replay:{path / 'seen'}")
settings = msgspec.structs.replace(settings, crawl=crawl)
with Warehouse.open(path / "w", settings=settings) as warehouse:
    settled = set()
    for settlement in warehouse.crawl(["http://site.example/0"]):
        settled.add(settlement.visit.href)
        acknowledge(len(settled))
"""
REBUILD = """
with Warehouse.open(path / "w", settings=settings) as warehouse:
    warehouse.maintenance.rebuild()
"""
PRUNE = """
with Warehouse.open(path / "w", settings=settings) as warehouse:
    prune(warehouse.stores, float(sys.argv[3]))
"""


def page(number: int, at: float) -> Page:
    url = f"http://site.example/{number}"
    links = "".join(f'<a href="/{target}">on</a>' for target in (2 * number + 1, 2 * number + 2) if target < PAGES)
    noise = random.Random(number + at).randbytes(60).hex()
    body = (
        f'<title>Whale {number}</title><p vocab="http://schema.org/" typeof="Event"><b property="name">{noise}</b></p>'
        f"{links}"
    )
    return Page(url, url, 200, (("content-type", "text/html"),), body.encode(), at, 0.1)


def source(folder: Path, *times: float) -> Path:
    file = folder / "source.warc.gz"
    pages = [page(number, at) for at in times for number in range(PAGES)]
    file.write_bytes(file_header(file.name, 0.0) + b"".join(encode(item).member for item in pages))
    return file


def prepare_import(folder: Path) -> None:
    source(folder, RECENT)


def prepare_crawl(folder: Path) -> None:
    with Warehouse.open(folder / "seen", settings=SETTINGS) as warehouse:
        warehouse.maintenance.import_(source(folder, RECENT))


def prepare_rebuild(folder: Path) -> None:
    with Warehouse.open(folder / "w", settings=SETTINGS) as warehouse:
        warehouse.maintenance.import_(source(folder, OLDER, RECENT))


def check(path: Path, acknowledged: int) -> None:
    """What the next command finds, and what it leaves."""
    if not (path / DATABASE).exists():
        assert not acknowledged, "the database is lost"
        return
    with Warehouse.open(path, settings=SETTINGS) as warehouse:
        before = {row.fingerprint for row in all_pages(warehouse.stores.catalog) if row.visits}
        assert len(before) >= acknowledged, f"{len(before)} pages, but {acknowledged} were acknowledged"
        warehouse.maintenance.import_()  # of nothing: only what a crash has left is done
        report = warehouse.maintenance.verify()
        assert report.ok, report.drifts[:5]
        found = warehouse.stores.text.search(SearchRequest(text="whale")).total
        assert found == len(before)
    assert not [*path.glob("*.new"), *path.glob("*.old"), *path.glob("rebuild.*")]


def cut(folder: Path, script: str, prepare: Callable[[Path], None], states: int, least: int) -> None:
    """`least`: pages that are safe from the beginning."""
    root, acks = folder / "disk", folder / "acks"
    root.mkdir()
    acks.touch()
    prepare(root)
    shutil.copytree(root, folder / "before")
    operations = record([sys.executable, "-c", COMMON + script, str(root), str(acks), str(RECENT - 3600.0)], folder)
    shutil.rmtree(root)
    (folder / "before").rename(root)
    moments = _moments(operations, root)
    assert len(moments) > 50, "the recording has hardly any writes"
    for number in range(states):
        chance = random.Random(f"{script} {number}")
        moment = chance.choice(moments)
        disk = Disk(root)
        for operation in operations[:moment]:
            disk.run(operation, acks)
        state = folder / f"state-{number}"
        disk.after_a_cut(state, chance)
        acknowledged = max([least, *map(int, disk.acknowledged)])
        try:
            check(state / "w", acknowledged)
        except BaseException as error:
            error.add_note(f"state {number}: after {moment} of {len(operations)} calls, {operations[moment - 1].name}")
            raise
        shutil.rmtree(state)


def _moments(operations: list[Operation], root: Path) -> list[int]:
    """Just before and just after every call that changes the warehouse."""
    inside = [
        number
        for number, operation in enumerate(operations)
        if str(root / "w") in (operation.handle + " ".join(operation.paths)) and operation.name != "lseek"
    ]
    return sorted({number + step for number in inside for step in (0, 1)})


STATES = [2, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])]
LATER = [STATES[1]]


@pytest.mark.parametrize("states", [3, STATES[1]])
def test_power_cut_in_a_crawl(tmp_path: Path, states: int) -> None:
    cut(tmp_path, CRAWL, prepare_crawl, states, 0)


@pytest.mark.parametrize("states", STATES)
def test_power_cut_in_a_rebuild(tmp_path: Path, states: int) -> None:
    cut(tmp_path, REBUILD, prepare_rebuild, states, PAGES)


@pytest.mark.parametrize("states", LATER)
def test_power_cut_in_an_import(tmp_path: Path, states: int) -> None:
    cut(tmp_path, IMPORT, prepare_import, states, 0)


@pytest.mark.parametrize("states", LATER)
def test_power_cut_in_a_prune(tmp_path: Path, states: int) -> None:
    cut(tmp_path, PRUNE, prepare_rebuild, states, PAGES)
