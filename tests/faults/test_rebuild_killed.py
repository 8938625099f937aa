"""`rebuild` killed between every two steps of its swap, and at random moments: the next command finishes or undoes it,
and everything that could be searched still can."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest

from faults.crawling import command, finish, killed_after, start
from quadloom.documents.descriptions import PAGES
from quadloom.maintenance.archive_order import all_pages
from quadloom.model.page import Page
from quadloom.process.failpoints import EXIT_CODE, REBUILD_POINTS
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.protocols.text import SearchRequest
from quadloom.warehouse import Warehouse

FORBIDDEN = "http://site.example/forbidden"  # to be archived
UNINDEXED = 10  # pages that a crawl had settled and not indexed
MOMENTS = [*REBUILD_POINTS, "rebuild-old-away:2", "rebuild-new-in:2"]


def page(number: int) -> Page:
    url = f"http://site.example/{number}"
    body = (
        f'<title>Whale {number}</title><div vocab="http://schema.org/" typeof="Event"><p property="name">n{number}</p>'
        f'<p property="description">{"words of a whale " * 20}</p></div>'
    )
    return Page(url, url, 200, (("content-type", "text/html"),), body.encode(), 1000.0, 0.1)


def filled(folder: Path, pages: int) -> Path:
    """One of the pages is not archived: its words are the one thing that a rebuild cannot make again."""
    forbidden = Page(
        FORBIDDEN, FORBIDDEN, 200, (("content-type", "text/html"), ("x-robots-tag", "noarchive")),
        b"<title>Whale of its own</title>", 1000.0, 0.1,
    )  # fmt: skip
    source = folder / "source.warc.gz"
    members = [encode(item).member for item in (*map(page, range(pages)), forbidden)]
    source.write_bytes(file_header(source.name, 0.0) + b"".join(members))
    with Warehouse.open(folder / "warehouse") as warehouse:
        warehouse.maintenance.import_(source)
    return folder / "warehouse"


def unindex(path: Path) -> None:
    """As after a crash of a crawl: pages are settled and in neither index. A rebuild that marks them too early would
    make them vanish for good."""
    with Warehouse.open(path) as warehouse:
        stores = warehouse.stores
        rows = [row for row in all_pages(stores.catalog) if row.href != FORBIDDEN][:UNINDEXED]
        for row in rows:
            stores.quads.remove(row.graph)
        stores.quads.describe(PAGES, [(row.graph, b"") for row in rows])
        stores.quads.flush()
        stores.text.remove([row.graph for row in rows])
        stores.text.commit()
        stores.catalog.mark_indexed([IndexedPage(row.fingerprint, b"", b"") for row in rows])


def quads_and_documents(warehouse: Warehouse) -> tuple[int, int]:
    return len(warehouse.stores.quads), warehouse.stores.text.search(SearchRequest(text="whale")).total


def config(folder: Path, failpoint: str = "") -> Path:
    path = folder / "quadloom.toml"
    path.write_text(f'[crawl]\nworkers = 1\nfailpoint = "{failpoint}"\n', encoding="utf-8")
    return path


def check(path: Path, pages: int, quads: int) -> bool:
    """A reader first, then a view that may write: what the catalog calls indexed is there, and nothing else is missing.
    True = the rebuild counts; False = it was undone."""
    with Warehouse.read(path) as warehouse:
        seen = quads_and_documents(warehouse)
    with Warehouse.open(path) as warehouse:
        report = warehouse.maintenance.verify()
        found = quads_and_documents(warehouse)
        state = warehouse.stores.frontier.explain(FORBIDDEN, 1e10)
    unindexed = {drift.subject for drift in report.drifts if drift.what == "unindexed"}
    assert len(unindexed) == len(report.drifts), report.drifts
    assert found == seen
    assert not [*path.glob("*.old"), *path.glob("*.new"), *path.glob("rebuild.*")]
    if len(unindexed - {FORBIDDEN}) == UNINDEXED:
        assert found[0] < quads and found[1] >= pages - UNINDEXED
        return False
    assert found == (quads, pages)
    assert unindexed == {FORBIDDEN} and state is not None and state.state == "queued", "it is visited again"
    return True


def test_killed_between_every_two_steps(tmp_path: Path) -> None:
    pages = 40
    path = filled(tmp_path, pages)
    with Warehouse.read(path) as warehouse:
        quads = len(warehouse.stores.quads)
    for moment in MOMENTS:
        unindex(path)
        done = subprocess.run(
            command(path, config(tmp_path, moment), "rebuild"), capture_output=True, timeout=60, check=False
        )
        assert done.returncode == EXIT_CODE, (moment, done.stderr.decode()[-2000:])
        assert check(path, pages, quads) == (moment != "rebuild-filled"), moment


@pytest.mark.parametrize(
    "kills",
    [
        2,
        pytest.param(50, marks=[pytest.mark.slow, pytest.mark.timeout(2000)]),
    ],
)
def test_killed_at_random_moments(tmp_path: Path, kills: int) -> None:
    pages, seed = 300, 20264
    chance = random.Random(seed)
    path, settings = filled(tmp_path, pages), config(tmp_path)
    with Warehouse.read(path) as warehouse:
        quads = len(warehouse.stores.quads)
    unindex(path)
    started = time.monotonic()
    finish(path, settings, "rebuild", "--json")
    seconds = time.monotonic() - started
    assert check(path, pages, quads)
    killed = 0
    for _ in range(4 * kills):
        unindex(path)
        process, began = start(path, settings, "rebuild"), time.monotonic()
        if killed_after(process, seconds * chance.uniform(0.2, 1.05)):
            killed += 1
        else:
            process.communicate()
            seconds = time.monotonic() - began  # it takes less time now
        check(path, pages, quads)
        if killed == kills:
            return
    raise AssertionError(f"seed {seed}: only {killed} of {kills} rebuilds could be killed")
