"""The warehouse answers while it is being filled, says the same after a rebuild, and travels by export and import."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from faults.crawling import finish, start, write_config
from quadloom.asking.export.selection import Selection
from quadloom.cli.main import run as run_command
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from waiting import wait_until

SPEC = WebSpec(seed=11, pages=120, hosts=4, scale=0.1, links=12, traps=False, slow_seconds=0.0, crawl_delay=0.0)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("crawled")
    with serve_in_process(FakeWeb(SPEC)) as serving:
        config = write_config(folder, serving)
        finish(folder / "warehouse", config, "crawl", *serving.web.seeds, "--json")
    yield folder / "warehouse"


SCHEDULE = re.compile(rb" <urn:quadloom:(?:importance|usefulness|changesPerDay\w*|nextVisit)> ")


def statements(warehouse: Warehouse) -> list[bytes]:
    stream = io.BytesIO()
    warehouse.maintenance.export(stream, format="nq")
    return stream.getvalue().splitlines(keepends=True)


def canonical(warehouse: Warehouse) -> bytes:
    """All statements but those about the schedule, which belong to the crawl and not to what it read."""
    return b"".join(line for line in statements(warehouse) if not SCHEDULE.search(line))


def hits(warehouse: Warehouse) -> list[tuple[str, ...]]:
    words = ("museum", "lighthouse", '"the distant"', "book*", "title:the")
    return [tuple(sorted(hit.id for hit in warehouse.search(text, limit=1000).hits)) for text in words]


@pytest.mark.timing
def test_pages_are_found_by_another_process_within_five_seconds(tmp_path: Path) -> None:
    """The crawl is slowed to last; whatever the catalog says was indexed five seconds ago must be found."""
    with serve_in_process(FakeWeb(SPEC)) as serving:
        config = write_config(tmp_path, serving)
        slow = config.read_text().replace("delay = 0.0\nip_delay", "delay = 1.0\nip_delay")
        config.write_text(slow.replace("batch = 32", "batch = 2").replace("per_site = 8", "per_site = 1"))
        crawl = start(tmp_path / "w", config, "crawl", *serving.web.seeds)
        try:
            seen = _watch(tmp_path / "w", crawl)
        finally:
            crawl.terminate()
            crawl.communicate(timeout=30)
    assert seen >= 3, "the crawl ended before it could be watched"


def _watch(path: Path, crawl: subprocess.Popen[bytes]) -> int:
    until = time.monotonic() + 90
    wait_until((path / "text" / "meta.json").exists, seconds=90)
    looks = 0
    with Warehouse.read(path) as warehouse:
        while looks < 5 and time.monotonic() < until and crawl.poll() is None:
            settled = {
                row.final_url
                for row in warehouse.stores.catalog.scan(limit=1000)
                if row.quads_digest and row.text_digest and row.changed_at < time.time() - 5.0
            }
            if settled:
                asked = warehouse.sparql("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }").values()
                assert settled <= {row[0] for row in asked}
                assert settled <= {hit.id for hit in warehouse.search("", limit=1000).hits}
                looks += 1
            time.sleep(0.5)
    return looks


def test_a_rebuild_says_the_same(crawled: Path) -> None:
    with Warehouse.open(crawled) as warehouse:
        before, found, numbers = canonical(warehouse), hits(warehouse), warehouse.ask.statistics(limit=1000)
        assert before.count(b"\n") > 500
        assert any(found)
        warehouse.maintenance.rebuild()
        assert canonical(warehouse) == before
        # What a site does not want archived keeps its statements; its words come back with the next visit.
        private = {
            row.final_url for row in warehouse.stores.catalog.scan(limit=1000) if row.text_digest and not row.archive
        }
        assert hits(warehouse) == [tuple(page for page in pages if page not in private) for pages in found]
        assert warehouse.ask.statistics(limit=1000) == numbers
        drifts = warehouse.maintenance.verify().drifts
        assert {(drift.what, drift.subject) for drift in drifts} == {("unindexed", url) for url in private}


def test_unchanged_pages_write_nothing(crawled: Path) -> None:
    with Warehouse.open(crawled) as warehouse:
        before = canonical(warehouse)
        archive = crawled.parent / "again.warc.gz"
        warehouse.maintenance.export(archive)
        report = warehouse.maintenance.import_(archive)
        assert (report.new, report.changed) == (0, 0)
        assert report.unchanged == report.pages > 0
        assert canonical(warehouse) == before


@pytest.mark.parametrize("name", ["dump.nq.gz", "dump.trig.zst", "dump.jsonld"])
def test_export_and_import_give_the_same_statements(crawled: Path, tmp_path: Path, name: str) -> None:
    with Warehouse.read(crawled) as warehouse:
        before = canonical(warehouse)
        warehouse.maintenance.export(tmp_path / name)
    with Warehouse.open(tmp_path / "new") as copy:
        report = copy.maintenance.import_(tmp_path / name)
        assert report.new == report.pages > 50
        assert canonical(copy) == before
        assert copy.maintenance.verify().ok
        if name == "dump.nq.gz":  # what was imported does not depend on the format any more
            copy.maintenance.rebuild()
            assert canonical(copy) == before


def test_archives_travel_too(crawled: Path, tmp_path: Path) -> None:
    with Warehouse.read(crawled) as warehouse:
        before, found = canonical(warehouse), hits(warehouse)
        archived = [row for row in warehouse.stores.catalog.scan(limit=1000) if row.text_digest]
        warehouse.maintenance.export(tmp_path / "all.warc.gz")
    with Warehouse.open(tmp_path / "new") as copy:
        copy.maintenance.import_(tmp_path / "all.warc.gz")
        # Who linked to a page is not part of what its server said.
        private = {row.final_url for row in archived if not row.archive}
        assert canonical(copy) == b"".join(
            line
            for line in before.splitlines(True)
            if b"<urn:quadloom:foundOn>" not in line and not _is_about(line, private)
        )
        assert hits(copy) == [tuple(page for page in pages if page not in private) for pages in found]


def _is_about(line: bytes, pages: set[str]) -> bool:
    """Whether the statement is in one of these pages' graphs, or describes one of them."""
    subject, graph = line.split(b" ", 1)[0], line.rsplit(b" ", 2)[1]
    return (subject if graph == b"<urn:quadloom:pages>" else graph)[1:-1].decode() in pages


def test_selections(crawled: Path) -> None:
    with Warehouse.read(crawled) as warehouse:
        site = warehouse.ask.statistics().sites[0][0]
        for selection in (Selection(sites=(site,)), Selection(types=("http://schema.org/Person",))):
            stream = io.BytesIO()
            written = warehouse.maintenance.export(stream, selection=selection)
            assert 0 < written.pages < len(warehouse.stores.text)
        assert warehouse.maintenance.export(io.BytesIO(), selection=Selection(since=4e9)).pages == 0


def test_every_format_can_be_written(crawled: Path, tmp_path: Path) -> None:
    with Warehouse.read(crawled) as warehouse:
        for suffix in ("ttl", "nt", "rdf", "void"):
            warehouse.maintenance.export(tmp_path / f"x.{suffix}")
            assert (tmp_path / f"x.{suffix}").stat().st_size > 1000
        parquet = pytest.importorskip("pyarrow.parquet")
        warehouse.maintenance.export(tmp_path / "x.parquet")
        table = parquet.read_table(tmp_path / "x.parquet")
        assert table.num_rows == len(statements(warehouse))


def test_history_and_the_graph_as_of_a_time(crawled: Path) -> None:
    with Warehouse.read(crawled) as warehouse:
        # Pages marked noarchive keep no versions.
        page = next(row for row in warehouse.stores.catalog.scan() if row.quads_digest and row.archive)
        found = warehouse.ask.history(page.href)
        assert [visit.fetched_at for visit in found.visits] == sorted(
            (visit.fetched_at for visit in found.visits), reverse=True
        )
        assert warehouse.ask.graph_at(page.href).digest == page.quads_digest
        assert not warehouse.ask.changes(page.href, page.first_seen)


def test_commands_speak_json_and_fail_when_empty(
    crawled: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "quadloom.toml"
    config.write_text("")

    def run(*arguments: str) -> Said:
        code = run_command(["-w", str(crawled), "--config", str(config), *arguments])
        return Said(code, capfd.readouterr().out)

    answer = json.loads(run("search", "the", "--json").stdout)
    assert answer["ok"]
    assert answer["total"] >= len(answer["hits"]) > 0
    assert answer["facets"]["sites"]
    assert run("search", "xyzzyplugh", "--fail-empty").returncode == 4
    assert run("sparql", "SELECT ?s { ?s a <urn:none> }", "--fail-empty").returncode == 4
    assert run("sparql", "ASK { ?s ?p ?o }", "--fail-empty").returncode == 0
    assert run("sparql", "SELECT * {").returncode == 2
    rows = json.loads(run("sparql", "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p", "--json").stdout)
    assert len(rows["results"]["bindings"]) > 5
    assert json.loads(run("stats", "--json").stdout)["classes"]
    first = json.loads(run("search", "the", "--json").stdout)["hits"][0]["id"]
    assert json.loads(run("show", "page", first, "--json").stdout)["href"] == first
    assert json.loads(run("show", first, "--json").stdout)["iri"] == first
    assert run("show", "http://nowhere.example/").returncode == 4


class Said(NamedTuple):
    returncode: int
    stdout: str


def test_verify_finds_what_is_missing_or_damaged(crawled: Path, tmp_path: Path) -> None:
    """On a copy, because it breaks things."""
    broken = tmp_path / "broken"
    shutil.copytree(crawled, broken)
    with Warehouse.open(broken, settings=Settings()) as warehouse:
        rows = [row for row in warehouse.stores.catalog.scan() if row.quads_digest and row.text_digest and row.archive]
        warehouse.stores.quads.remove(rows[0].final_url)
        warehouse.stores.text.remove([rows[1].final_url])
        warehouse.stores.text.commit()
        ref = rows[2].archive
        assert ref is not None
        file = broken / "archive" / ref.file
        data = bytearray(file.read_bytes())
        data[ref.offset + ref.length // 2] ^= 0xFF
        file.write_bytes(data)
        found = {(drift.what, drift.subject) for drift in warehouse.maintenance.verify().drifts}
        assert {("quads", rows[0].final_url), ("text", rows[1].final_url), ("archive", rows[2].href)} <= found
