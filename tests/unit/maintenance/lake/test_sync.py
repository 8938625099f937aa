"""The lake holds what the warehouse holds, after every sync, whatever happened to the one before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyoxigraph as ox
import pytest

from quadloom.errors import QueryRefused, QuerySyntaxError, UsageError
from quadloom.maintenance.lake import sync as sync_module
from quadloom.maintenance.lake.place import DirectoryLake, place_of, read_manifest
from quadloom.maintenance.lake.query import ask, lake_files, views
from quadloom.maintenance.lake.sync import sync, sync_part
from quadloom.maintenance.lake.tables import quad_rows
from quadloom.model.page import Page
from quadloom.planning.ranking.link_matrix import LinkMatrix
from quadloom.process.bulk_tasks import BulkJob, Runner, TaskResult, in_processes
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.warehouse import Warehouse
from servers import new_bucket

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'quadloom[lake]'")
pytest.importorskip("duckdb", reason="needs duckdb: pip install 'quadloom[lake]'")


def url(number: int) -> str:
    return f"http://site{number % 5}.example/{number}"


def version(number: int, name: str, at: float) -> Page:
    data = {"@context": "https://schema.org", "@type": "Event", "@id": f"{url(number)}#event", "name": name}
    body = f'<title>{name}</title><script type="application/ld+json">{json.dumps(data)}</script>'.encode()
    return Page(url(number), url(number), 200, (("content-type", "text/html"),), body, at, 0.1)


def read_in(warehouse: Warehouse, pages: list[Page]) -> None:
    source = warehouse.path.parent / f"source-{os.urandom(4).hex()}.warc.gz"
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(page).member for page in pages))
    warehouse.maintenance.import_(source)


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "warehouse") as warehouse:
        read_in(warehouse, [version(number, f"Name {number}", 1000.0 + number) for number in range(20)])
        yield warehouse


def in_this_process(warehouse: Warehouse) -> Runner:
    return lambda job, tasks: (TaskResult(task, sync_part(warehouse.stores, task, job.argument)) for task in tasks)


def lake_of(warehouse: Warehouse) -> DirectoryLake:
    place = place_of(warehouse.path, warehouse.settings)
    assert isinstance(place, DirectoryLake)
    return place


def stored_quads(warehouse: Warehouse) -> set[tuple[object, ...]]:
    found: set[tuple[object, ...]] = set()
    for number in range(40):
        found.update(quad_rows(0, url(number), warehouse.stores.quads.graph(url(number))))
    return {row[:-1] for row in found}


def lake_quads(warehouse: Warehouse) -> list[tuple[object, ...]]:
    columns = "subject, predicate, object, object_kind, language, datatype, graph"
    return ask(lake_of(warehouse), f"SELECT {columns} FROM quads").rows


def check_equal(warehouse: Warehouse) -> None:
    rows = lake_quads(warehouse)
    assert len(rows) == len(set(rows))  # nothing twice
    assert set(rows) == stored_quads(warehouse)
    pages = ask(lake_of(warehouse), "SELECT url, visits, title, fetched_at FROM pages ORDER BY url").rows
    known = [
        (row.href, row.visits, row.title, datetime.fromtimestamp(row.fetched_at, UTC).replace(tzinfo=None))
        for row in warehouse.stores.catalog.scan(limit=1000)
    ]
    assert pages == sorted(known)
    on_disk = {
        str(path.relative_to(lake_of(warehouse).folder)) for path in lake_of(warehouse).folder.rglob("*.parquet")
    }
    assert on_disk == {name for names in lake_files(lake_of(warehouse)).values() for name in names}


def test_a_join_by_page_in_one_line(warehouse: Warehouse) -> None:
    report = sync(warehouse.stores, runner=in_processes(2), parts=4)
    assert (report.written, report.parts, report.rows["pages"]) == (20, 4, 20)
    check_equal(warehouse)
    sql = """SELECT p.host, count(*) FROM quads q JOIN pages p USING (page)
             WHERE q.predicate LIKE '%://schema.org/name' GROUP BY 1 ORDER BY 1"""
    assert ask(lake_of(warehouse), sql).rows == [(f"site{number}.example", 4) for number in range(5)]


def test_only_what_changed_is_written(warehouse: Warehouse) -> None:
    run = in_this_process(warehouse)
    sync(warehouse.stores, runner=run, parts=8)
    before = lake_files(lake_of(warehouse))
    assert sync(warehouse.stores, runner=run).written == 0
    assert lake_files(lake_of(warehouse)) == before
    read_in(warehouse, [version(3, "Another name", 9000.0), version(25, "New", 9001.0)])
    report = sync(warehouse.stores, runner=run)
    assert report.written == 2
    check_equal(warehouse)
    assert set(before["quads"]) & set(lake_files(lake_of(warehouse))["quads"])  # files of other parts are the same


def test_small_files_are_merged(warehouse: Warehouse) -> None:
    run = in_this_process(warehouse)
    most = 0
    for number in range(12):
        read_in(warehouse, [version(20 + number, f"New {number}", 2000.0 + number)])
        sync(warehouse.stores, runner=run, parts=1)
        most = max(most, len(lake_files(lake_of(warehouse))["quads"]))
    check_equal(warehouse)
    assert most == 8
    assert len(lake_files(lake_of(warehouse))["quads"]) < 8


@pytest.mark.parametrize("step", ["put", "write_manifest", "remove"])
def test_a_sync_that_ends_anywhere_is_continued(
    warehouse: Warehouse, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = in_this_process(warehouse)
    sync(warehouse.stores, runner=run, parts=2)
    read_in(warehouse, [version(number, f"Changed {number}", 9000.0) for number in range(5)])
    calls = 0

    def dies(*_arguments: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt

    if step == "write_manifest":
        monkeypatch.setattr(sync_module, "write_manifest", lambda *_arguments: (_ for _ in ()).throw(KeyboardInterrupt))
    else:
        real = getattr(DirectoryLake, step)
        monkeypatch.setattr(DirectoryLake, step, lambda self, *given: (dies(), real(self, *given))[1])
    with pytest.raises(KeyboardInterrupt):
        sync(warehouse.stores, runner=run)
    monkeypatch.undo()
    rows = lake_quads(warehouse)
    assert len(rows) == len(set(rows))
    sync(warehouse.stores, runner=run)
    check_equal(warehouse)


def test_links_and_findings_are_tables_too(warehouse: Warehouse) -> None:
    rows = warehouse.stores.catalog.scan(limit=2)
    matrix = LinkMatrix(warehouse.stores.places.links)
    matrix.append(rows[0].fingerprint, [(rows[1].fingerprint, "plain"), (77, "plain")])
    matrix.close()
    LinkMatrix(warehouse.stores.places.links).rebuild()
    sync(warehouse.stores, runner=in_this_process(warehouse))
    found = ask(lake_of(warehouse), "SELECT page, target FROM links ORDER BY target").rows
    assert set(found) == {(rows[0].fingerprint, rows[1].fingerprint), (rows[0].fingerprint, 77)}
    counted = ask(lake_of(warehouse), "SELECT count(*) FROM findings").rows
    assert counted == [(sum(len(row.findings) for row in warehouse.stores.catalog.scan(limit=100)),)]


def test_statements_are_split_as_a_parser_splits_them() -> None:
    graph = "http://a.example/?q= x".replace(" ", "%20")
    lines = [
        f'<http://a.example/s> <http://p.example/> "two words \\"quoted\\" \\\\ \\n\\t \\u00e9 <x> ." <{graph}> .',
        f'<http://a.example/s> <http://p.example/> "chat"@fr <{graph}> .',
        f'<http://a.example/s> <http://p.example/> "1"^^<http://www.w3.org/2001/XMLSchema#integer> <{graph}> .',
        f"_:b1 <http://p.example/> _:b2 <{graph}> .",
        f"<http://a.example/s> <http://p.example/> <http://a.example/o> <{graph}> .",
    ]
    rows = list(quad_rows(5, graph, "\n".join(lines).encode() + b"\n"))
    for row, quad in zip(rows, ox.parse("\n".join(lines), ox.RdfFormat.N_QUADS), strict=True):
        subject, predicate, value, kind, language, datatype, name, page = row
        assert (predicate, name, page) == (quad.predicate.value, graph, 5)
        assert subject == str(quad.subject).strip("<>")
        if isinstance(quad.object, ox.Literal):
            assert (kind, value, language) == ("literal", quad.object.value, quad.object.language)
            assert language or datatype == quad.object.datatype.value
        else:
            assert kind == ("iri" if isinstance(quad.object, ox.NamedNode) else "blank")


def test_plain_readers_see_the_same_rows(warehouse: Warehouse) -> None:
    """Spark, Ray Data and pandas read the folder of a table."""
    import pyarrow.dataset

    sync(warehouse.stores, runner=in_this_process(warehouse), parts=4)
    folder = lake_of(warehouse).folder
    read = pyarrow.dataset.dataset(folder / "quads", format="parquet", partitioning="hive").to_table()
    assert len(read) == len(lake_quads(warehouse))
    assert "CREATE OR REPLACE VIEW quads" in views(lake_of(warehouse))


def test_a_lake_in_a_bucket(warehouse: Warehouse) -> None:
    address = new_bucket()
    settings = msgspec.structs.replace(
        warehouse.settings,
        stores=msgspec.structs.replace(
            warehouse.settings.stores,
            archive_endpoint=address.endpoint,
            archive_region=address.region,
            lake=f"s3://{address.bucket}/lake",
        ),
    )
    stores = msgspec.structs.replace(warehouse.stores, settings=settings)
    place = place_of(warehouse.path, settings)

    def run(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        return (TaskResult(task, sync_part(stores, task, job.argument)) for task in tasks)

    sync(stores, runner=run, parts=2)
    read_in(warehouse, [version(3, "Another name", 9000.0)])
    assert sync(stores, runner=run).written == 1
    columns = "subject, predicate, object, object_kind, language, datatype, graph"
    rows = ask(place, f"SELECT {columns} FROM quads").rows
    assert len(rows) == len(set(rows))
    assert set(rows) == stored_quads(warehouse)
    assert ask(place, "SELECT count(*) FROM pages JOIN quads USING (page)").rows == [(len(rows),)]
    listed = {name for names in lake_files(place).values() for name in names}
    assert {name for name in place.names("") if name.endswith(".parquet")} == listed


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_csv('{secret}', header = false)",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM glob('{secret}*')",
        "SELECT * FROM read_text('http://127.0.0.1:9/')",
        "COPY (SELECT 1) TO '{secret}'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}'",
        "COPY (SELECT 1 AS a) TO '{file}' (FORMAT parquet)",
        "COPY (PIVOT quads ON predicate USING count(*)) TO '{file}' (FORMAT parquet, USE_TMP_FILE false)",
        "EXPLAIN ANALYZE COPY (PIVOT quads ON predicate USING count(*)) TO '{file}' (FORMAT parquet)",
        "/* EXPLAIN SELECT 1 */ COPY (SELECT 1 AS a) TO '{file}' (FORMAT parquet)",
        "SELECT * FROM '{file}'",
        "ATTACH '{secret}.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELECT 1; SELECT * FROM read_text('{secret}')",
        "CREATE TABLE x AS SELECT 1",
        "SELECT * FROM paths",
    ],
)
def test_a_question_reads_the_tables_and_nothing_else(warehouse: Warehouse, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    sync(warehouse.stores, runner=in_this_process(warehouse))
    place = lake_of(warehouse)
    (file, *_) = (place.folder / name for name in lake_files(place)["quads"])
    with pytest.raises((QueryRefused, QuerySyntaxError)) as refused:
        ask(place, sql.format(secret=secret, file=file))
    assert refused.value.hint
    assert secret.read_text() == "secret" and sorted(tmp_path.glob("secret*")) == [secret]
    assert ask(place, "EXPLAIN SELECT * FROM quads").rows
    assert ask(place, "PIVOT pages ON site USING count(*)").rows
    assert ask(place, "SELECT count(*) > 0 FROM quads").rows == [(True,)], "the lake is as it was"
    assert ask(place, "SELECT now() > TIMESTAMPTZ '2020-01-01'").rows == [(True,)]
    assert ask(place, "SELECT now()").rows, "a time with its zone needs a package of its own"


def test_the_command_says_nothing_but_the_answer(warehouse: Warehouse) -> None:
    """A process of its own: the engine complained about objects that were left at its end."""
    sync(warehouse.stores, runner=in_this_process(warehouse))
    command = [sys.executable, "-m", "quadloom", "-w", str(warehouse.path), "lake", "query", "SELECT 7"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("7\n7\n", ""), "the name of the column, and its value"


def test_mistakes_have_a_sentence(warehouse: Warehouse, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no lake yet"):
        ask(DirectoryLake(tmp_path / "none"), "SELECT 1")
    with pytest.raises(UsageError, match="7 parts"):
        sync(warehouse.stores, parts=7)
    with pytest.raises(UsageError, match="ftp://"):
        sync(warehouse.stores, "ftp://host/lake")
    sync(warehouse.stores, runner=in_this_process(warehouse))
    with pytest.raises(QuerySyntaxError, match="nothing"):
        ask(lake_of(warehouse), "SELECT nothing FROM quads")
    assert msgspec.json.encode(read_manifest(lake_of(warehouse), 0))
