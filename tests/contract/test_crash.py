"""kill -9 of a writing process: archive, frontier and catalog agree afterwards, and nothing acknowledged is missing.

The child crawls a web of 400 pages without a network: lease, archive, sync, settle, tell. It is killed at three random
moments; then the parent finishes the crawl and counts.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from contract_records import found, settlement
from msgspec.structs import replace

from quadloom.model.link import Discovery
from quadloom.model.outcome import Settlement
from quadloom.model.page import Page
from quadloom.stores.archive.warc import WarcArchive
from quadloom.stores.archive.warc_record import encode
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.lock import WarehouseLock
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.schema import SCHEMA

PAGES = 400
BATCH = 8


def url(number: int) -> Discovery:
    return found(f"http://h{number % 9}.example/{number}")


def links(href: str) -> tuple[Discovery, ...]:
    number = int(href.rpartition("/")[2])
    return tuple(url(n) for n in (2 * number + 1, 2 * number + 2, number // 2) if n < PAGES)


def crawl(directory: Path, *, pause: float = 0.0) -> None:
    lock = WarehouseLock(directory)
    database = SqliteDatabase.open(directory / "quadloom.db", SCHEMA)
    policy = FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=4)
    frontier, catalog = SqliteFrontier(database, policy, now=time.time()), SqliteCatalog(database)
    archive = WarcArchive([directory / "archive"], file_bytes=50_000)
    frontier.add([url(0)], time.time())
    while visits := frontier.lease(BATCH, time.time()):
        pages = [Page(v.href, v.href, 200, (), random.randbytes(500), v.not_before, 0.0) for v in visits]
        refs = archive.put([encode(page) for page in pages])
        archive.sync()
        ended: list[Settlement] = []
        for visit, ref in zip(visits, refs, strict=True):
            plain = settlement(visit, discoveries=links(visit.href))
            assert plain.page is not None
            ended.append(replace(plain, page=replace(plain.page, archive=ref)))
        with catalog.transaction():
            frontier.settle(ended, time.time())
            catalog.record(ended, time.time())
        print(*(visit.key for visit in visits), flush=True)
        time.sleep(pause)
    frontier.close()
    archive.close()
    database.close()
    lock.release()


def test_three_kills_lose_nothing(tmp_path: Path) -> None:
    chance = random.Random(11)
    acknowledged: list[str] = []
    for _ in range(3):
        command = [sys.executable, __file__, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for _ in range(chance.randrange(3, 12)):
                acknowledged += child.stdout.readline().split()
            child.kill()
            acknowledged += child.stdout.read().split()
    before = len(acknowledged)
    assert before >= 3 * 3
    crawl(tmp_path)
    database = SqliteDatabase.read_only(tmp_path / "quadloom.db")
    catalog = SqliteCatalog(database)
    stats = SqliteFrontier(database, FrontierPolicy(), now=0.0).stats(time.time())
    assert (stats.done, stats.total) == (PAGES, PAGES)
    rows = catalog.scan(limit=PAGES + 1)
    assert {row.key for row in rows} == {url(number).key for number in range(PAGES)}
    archive = WarcArchive([tmp_path / "archive"], read_only=True)
    for row in rows:
        assert row.archive is not None
        page = archive.get(row.archive)
        assert page.url == row.href
    fetches = [record.url for _, record in archive.scan()]
    assert set(acknowledged) <= {row.key for row in rows}
    assert len(acknowledged) == len(set(acknowledged))  # an acknowledged page is not fetched again
    assert len(fetches) <= PAGES + 3 * BATCH
    database.close()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    crawl(Path(sys.argv[1]), pause=0.002)
