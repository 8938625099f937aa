"""Export, statistics and rebuild in parallel give what one process gives, and go on after an interruption."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard

from postgres_server import postgres
from quadloom.asking.export.selection import Selection
from quadloom.errors import SettingsError, UsageError
from quadloom.maintenance.parallel import ranges
from quadloom.maintenance.parallel.ranges import range_of, range_tasks
from quadloom.maintenance.rebuild import RebuiltFile
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.model.wire import encode as wire_encode
from quadloom.process.bulk_tasks import BulkJob, Runner, TaskResult, in_processes
from quadloom.settings import CrawlSettings, Settings, StoreSettings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.protocols.text import SearchRequest
from quadloom.stores.statistics import STATISTICS, Statistics
from quadloom.warehouse import Warehouse
from servers import Server, sparql_server
from waiting import wait_until

PAGES = 40
CRAWL = CrawlSettings(scope="any", strategies=["same-site"], workers=1)


def url(number: int) -> str:
    return f"http://site{number % 7}.example/{number}"


def version(number: int, fetched_at: float = 1000.0) -> Page:
    thing = {"@context": "https://schema.org", "@type": ("Event", "Place")[number % 2], "name": f"thing {number}"}
    body = (
        f"<title>Page {number}</title><script type='application/ld+json'>{json.dumps(thing)}</script>"
        f"<p>A word and word{number}, read at {fetched_at}. <a href='{url(number + 1)}'>next</a> "
        f"<a href='http://site{number % 7}.example/new/{number}'>new</a></p>{'<!-- filler -->' * 30}"
    )
    return Page(url(number), url(number), 200, (("content-type", "text/html"),), body.encode(), fetched_at, 0.1)


def filled(folder: Path, stores: StoreSettings) -> Warehouse:
    pages = [version(number) for number in range(PAGES)] + [version(number, 2000.0) for number in range(9)]
    source = folder / "source.warc.gz"
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(page).member for page in pages))
    warehouse = Warehouse.open(folder / "warehouse", settings=Settings(stores=stores, crawl=CRAWL))
    warehouse.maintenance.import_(source, links=False)
    warehouse.stores.archive.seal()
    assert len(warehouse.stores.archive.files()) > 3
    return warehouse


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    """Forty pages in several files, in ranges of about ten; nine have an older version."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranges, "_PAGES", 10)
        with filled(tmp_path_factory.mktemp("parallel"), StoreSettings(archive_file_bytes=6_000)) as warehouse:
            yield warehouse


def on_servers(folder: Path, sparql: Server, text: str = "postgresql:") -> StoreSettings:
    return StoreSettings(
        frontier=postgres().url(),
        catalog="postgresql:",
        quads=f"sparql+{sparql.url}",
        text=text if text.endswith(":") else f"{text}://{folder}/text",
        archive=f"warc://{folder}/archive",
        archive_file_bytes=6_000,
    )


class Interrupted:
    """A runner that ends after some results, or never (0); `given` has the tasks of each job."""

    def __init__(self, runner: Runner, after: int = 0) -> None:
        self._runner = runner
        self._after = after
        self.given: list[set[str]] = []

    def __call__(self, job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        self.given.append(set(tasks))
        for number, result in enumerate(self._runner(job, tasks), 1):
            yield result
            if number == self._after:
                raise KeyboardInterrupt


def blind(runner: Runner) -> Runner:
    """A runner that finds no page in the first file of the archive: its pages are read by their references."""

    def run(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        seen = list(tasks)
        if seen[0].endswith(".warc.gz"):
            yield TaskResult(seen.pop(0), zstandard.compress(wire_encode(RebuiltFile([]))))
        yield from runner(job, seen)

    return run


def without_first_member(data: bytes) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)
    unpacking.decompress(data)
    return unpacking.unused_data


def test_ranges_cover_all_pages_in_their_order(warehouse: Warehouse) -> None:
    tasks = range_tasks(warehouse.stores.catalog)
    assert len(tasks) == 4 and tasks == sorted(tasks)
    bounds = [range_of(task) for task in tasks]
    assert bounds[0].first == -(1 << 63) and bounds[-1].end == 1 << 63
    assert all(one.end == other.first for one, other in pairwise(bounds))


@pytest.mark.parametrize("format", ["nq", "trig.gz", "nt", "parquet", "warc"])
def test_an_export_in_parallel_has_the_same_bytes(warehouse: Warehouse, tmp_path: Path, format: str) -> None:
    alone, together = tmp_path / f"alone.{format}", tmp_path / f"together.{format}"
    one = warehouse.maintenance.export(alone)
    seen: list[int] = []
    other = warehouse.maintenance.export(together, runner=in_processes(2), progress=seen.append)
    assert other == one and seen[-1] == one.pages == PAGES
    content = [path.read_bytes() for path in (alone, together)]
    if format == "warc":
        content = [without_first_member(data) for data in content]  # which has an id and the time of the export
    assert content[0] == content[1]
    assert sorted(path.name for path in tmp_path.glob(".*")) == []


def test_an_export_in_parallel_selects_and_writes_to_a_stream(warehouse: Warehouse) -> None:
    chosen = Selection(types=("http://schema.org/Event",), sites=("site1.example",))
    alone, together = io.BytesIO(), io.BytesIO()
    report = warehouse.maintenance.export(alone, selection=chosen)
    assert 0 < report.pages < 10
    assert warehouse.maintenance.export(together, selection=chosen, runner=in_processes(2)) == report
    assert together.getvalue() == alone.getvalue()


def test_an_interrupted_export_is_resumed(warehouse: Warehouse, tmp_path: Path) -> None:
    target = tmp_path / "out.nq"
    export = warehouse.maintenance.export
    first, second = Interrupted(in_processes(1), 2), Interrupted(in_processes(1))
    with pytest.raises(KeyboardInterrupt):
        export(target, runner=first)
    assert not target.exists()
    with pytest.raises(UsageError, match="other options"):
        export(target, runner=second, resume=True, selection=Selection(sites=("site1.example",)))
    export(target, runner=second, resume=True)
    assert second.given[0] < first.given[0] and len(first.given[0] - second.given[0]) == 2
    alone = io.BytesIO()
    export(alone)
    assert target.read_bytes() == alone.getvalue()
    assert not (tmp_path / ".out.nq.tasks").exists()


def test_statistics_are_counted_again_and_resumed(warehouse: Warehouse) -> None:
    catalog = warehouse.stores.catalog
    counted = Statistics.saved(catalog)
    assert counted.classes["http://schema.org/Event"] == PAGES // 2
    STATISTICS.put_encoded(catalog, Statistics().encode())
    first, second = Interrupted(in_processes(2), 2), Interrupted(in_processes(2))
    with pytest.raises(KeyboardInterrupt):
        warehouse.maintenance.recount(runner=first)
    assert not Statistics.saved(catalog).classes, "nothing is saved before all is counted"
    warehouse.maintenance.recount(runner=second, resume=True)
    assert len(first.given[0] - second.given[0]) == 2
    again = Statistics.saved(catalog)
    assert (again.classes, again.properties) == (counted.classes, counted.properties)


def test_a_rebuild_of_local_indexes_cannot_be_cut(warehouse: Warehouse) -> None:
    with pytest.raises(SettingsError, match=r"stores\.quads and stores\.text"):
        warehouse.maintenance.rebuild(runner=in_processes(2))


@pytest.mark.parametrize("text", ["tantivy+shards", pytest.param("postgresql:", marks=pytest.mark.slow)])
def test_a_rebuild_in_parallel_gives_the_same_and_is_resumed(tmp_path: Path, text: str) -> None:
    sparql = sparql_server()
    try:
        with filled(tmp_path, on_servers(tmp_path, sparql, text)) as warehouse:
            held = warehouse.stores
            before = {url(number): held.quads.graph(url(number)) for number in range(PAGES)}
            counted = Statistics.saved(held.catalog)
            held.quads.remove(url(3))
            held.quads.replace(Quads.of(url(4), f'<{url(4)}> <urn:wrong> "wrong" <{url(4)}> .\n'.encode()))
            held.text.remove([url(5)])
            held.text.commit()
            STATISTICS.put_encoded(held.catalog, Statistics().encode())
            first, second = Interrupted(in_processes(2), 2), Interrupted(blind(in_processes(2)))
            with pytest.raises(KeyboardInterrupt):
                warehouse.maintenance.rebuild(runner=first)
            with pytest.raises(UsageError, match="other options"):
                warehouse.maintenance.rebuild(runner=second, resume=True, links=False)
            seen: list[int] = []
            report = warehouse.maintenance.rebuild(runner=second, resume=True, progress=seen.append)
            assert report.pages == seen[-1] == PAGES and not report.unreadable_records
            assert len(first.given[0] - second.given[0]) == 2, "files that were done are not done again"
            assert {graph: held.quads.graph(graph) for graph in before} == before
            assert sorted(held.text.ids()) == sorted(before)
            assert held.text.search(SearchRequest(text="word5", exact=True)).total == 1
            again = Statistics.saved(held.catalog)
            assert (again.classes, again.properties) == (counted.classes, counted.properties)
            assert warehouse.maintenance.verify().ok
            assert held.frontier.stats(2000.0).queued == PAGES, "each has a link to an unknown page of its site"
            assert not list(tmp_path.glob("**/rebuild.*")), "nothing is left to resume"
    finally:
        sparql.stop()


@pytest.mark.slow
def test_a_killed_rebuild_is_resumed(tmp_path: Path) -> None:
    sparql = sparql_server()
    stores = on_servers(tmp_path, sparql)
    try:
        with filled(tmp_path, stores) as warehouse:
            before = {url(number): warehouse.stores.quads.graph(url(number)) for number in range(PAGES)}
        config = tmp_path / "quadloom.toml"
        lines = [f'{name} = "{getattr(stores, name)}"' for name in ("frontier", "catalog", "quads", "text", "archive")]
        config.write_text("\n".join(("[stores]", *lines, "[cluster]", "lease = 70", "heartbeat = 2")), encoding="utf-8")
        program = [sys.executable, "-m", "quadloom", "-w", str(tmp_path / "warehouse"), "--config", str(config)]
        killed = subprocess.Popen([*program, "rebuild", "--workers", "1"], start_new_session=True)
        tasks = tmp_path / "warehouse" / "rebuild.tasks"
        ended_early = "the rebuild ended before it could be killed"
        wait_until(lambda: len(list(tasks.glob("*.warc.gz"))) >= 2, ended_early, seconds=180, alive=killed)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        resumed = subprocess.run(
            [*program, "--json", "rebuild", "--resume"], capture_output=True, text=True, timeout=180
        )
        assert resumed.returncode == 0, resumed.stderr
        assert json.loads(resumed.stdout)["pages"] == PAGES
        assert not tasks.exists()
        with Warehouse.open(tmp_path / "warehouse", settings=Settings(stores=stores)) as warehouse:
            assert {graph: warehouse.stores.quads.graph(graph) for graph in before} == before
            assert warehouse.maintenance.verify().ok
    finally:
        sparql.stop()
