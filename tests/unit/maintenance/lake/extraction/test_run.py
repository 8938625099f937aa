"""The tables of an archive hold what an import of the same archive would hold, whoever does the work."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from quadloom.errors import UsageError
from quadloom.maintenance.lake.extraction.inputs import sources_of
from quadloom.maintenance.lake.extraction.messages import Options
from quadloom.maintenance.lake.extraction.part import worker
from quadloom.maintenance.lake.extraction.run import ExtractionReport, extract
from quadloom.maintenance.lake.place import DirectoryLake
from quadloom.maintenance.lake.query import ask
from quadloom.model.page import Page
from quadloom.process.bulk_tasks import BulkJob, Runner, TaskResult, in_processes
from quadloom.settings import LimitSettings, Settings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.warehouse import Warehouse

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'quadloom[lake]'")
pytest.importorskip("duckdb", reason="needs duckdb: pip install 'quadloom[lake]'")

POISON = """
import ctypes, time
import quadloom.documents.transform as module
original = module.transform

def poisoned(body, **rest):
    if b"POISON-SEGFAULT" in body:
        ctypes.string_at(0)
    while b"POISON-HANG" in body:
        time.sleep(1)
    return original(body, **rest)

module.transform = poisoned
"""


def html(number: int, more: str = "") -> bytes:
    data = {"@context": "https://schema.org", "@type": "Event", "name": f"Event {number}", "location": {"name": "x"}}
    script = f'<script type="application/ld+json">{json.dumps(data)}</script>'
    link = f'<a href="/page/{number + 1}">next page</a>'
    return f"<title>Page {number}</title>{script}<p>words of page {number} {more}</p>{link}".encode()


def archive(path: Path, bodies: Sequence[bytes]) -> str:
    pages = []
    for number, body in enumerate(bodies):
        url = f"http://{path.name.partition('.')[0]}.example/page/{number}"
        pages.append(Page(url, url, 200, (("content-type", "text/html"),), body, 1000.0 + number, 0.1))
    path.write_bytes(file_header(path.name, 0.0) + b"".join(encode(page).member for page in pages))
    return str(path)


def in_this_process(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
    with worker(job.setup) as function:
        for task in tasks:
            yield TaskResult(task, function(task, job.argument))


def run(
    folder: Path,
    *names: str,
    options: Options = Options(nquads=True, text="main"),  # noqa: B008  a frozen record
    settings: Settings = Settings(),  # noqa: B008
    runner: Runner = in_this_process,
    resume: bool = False,
) -> ExtractionReport:
    return extract(sources_of(names), str(folder), options, settings, runner, resume=resume)


def rows(folder: Path, sql: str) -> list[tuple[object, ...]]:
    return ask(DirectoryLake(folder), sql).rows


def names_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def digests(report: ExtractionReport) -> list[tuple[str, str]]:
    return [(file.name, file.sha256) for part in report.parts for table in part.files.values() for file in table]


def test_quads_are_those_of_an_import(tmp_path: Path) -> None:
    names = [archive(tmp_path / f"{name}.warc.gz", [html(number) for number in range(90)]) for name in "ab"]
    report = run(tmp_path / "tables", *names)
    with Warehouse.open(tmp_path / "warehouse") as warehouse:
        warehouse.maintenance.import_(*names, links=False)
        warehouse.maintenance.export(tmp_path / "all.nq")
    about = b" <urn:quadloom:pages> ."
    imported = sorted(line for line in (tmp_path / "all.nq").read_bytes().splitlines() if not line.endswith(about))
    lines = [gzip.decompress(path.read_bytes()) for path in sorted((tmp_path / "tables/nquads").iterdir())]
    assert sorted(b"".join(lines).splitlines()) == imported
    assert (report.counts["pages"], report.counts["quads"]) == (180, len(imported))
    assert rows(tmp_path / "tables", "SELECT count(*) FROM quads") == [(len(imported),)]


def test_tables_are_joined_by_page(tmp_path: Path) -> None:
    run(tmp_path / "tables", archive(tmp_path / "a.warc.gz", [html(number) for number in range(3)]))
    assert rows(tmp_path / "tables", "SELECT count(*) FROM failures") == [(0,)]
    sql = """SELECT p.url, q.object, l.url, l.anchor, t.text, p.syntaxes FROM pages p JOIN quads q USING (page)
             JOIN links l USING (page) JOIN texts t USING (page)
             WHERE q.predicate = 'http://schema.org/name' AND q.object LIKE 'Event%' ORDER BY 1 LIMIT 1"""
    ((url, name, link, anchor, text, syntaxes),) = rows(tmp_path / "tables", sql)
    assert (url, name) == ("http://a.example/page/0", "Event 0")
    assert (link, anchor) == ("http://a.example/page/1", "next page")
    assert "words of page 0" in str(text)
    assert "jsonld" in syntaxes  # type: ignore[operator]


def test_more_processes_and_a_second_run_give_the_same_bytes(tmp_path: Path) -> None:
    names = [archive(tmp_path / f"{name}.warc.gz", [html(number) for number in range(70)]) for name in "abc"]
    first = digests(run(tmp_path / "one", *names))
    assert len(first) >= 12
    assert digests(run(tmp_path / "two", *names, runner=in_processes(2))) == first


def test_a_run_is_continued_with_the_parts_that_are_missing(tmp_path: Path) -> None:
    names = [archive(tmp_path / f"{name}.warc.gz", [html(number) for number in range(5)]) for name in "abc"]
    whole = digests(run(tmp_path / "whole", *names))
    given: list[list[str]] = []

    def interrupted(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        given.append(list(tasks))
        yield next(iter(in_this_process(job, tasks)))
        if len(given) == 1:
            raise KeyboardInterrupt
        yield from in_this_process(job, tasks[1:])

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "tables", *names, runner=interrupted)
    with pytest.raises(UsageError, match="earlier run"):
        run(tmp_path / "tables", *names)
    with pytest.raises(UsageError, match="other inputs"):
        run(tmp_path / "tables", *names[:2], resume=True)
    assert digests(run(tmp_path / "tables", *names, runner=interrupted, resume=True)) == whole
    assert given == [["00000", "00001", "00002"], ["00001", "00002"]]


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="something else"):
        run(tmp_path / "tables", archive(tmp_path / "a.warc.gz", [html(1)]))


def test_a_hostile_page_costs_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(POISON, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    bodies = [html(number) for number in range(100)]
    bodies[0], bodies[70], bodies[71], bodies[99] = (html(0, word) for word in ("POISON-SEGFAULT",) * 4)
    bodies[30] = html(0, "POISON-HANG")
    settings = Settings(limits=LimitSettings(transform_seconds=1.0))
    monkeypatch.setattr("quadloom.maintenance.lake.extraction.part._BATCH_SECONDS", 4.0)
    report = run(tmp_path / "tables", archive(tmp_path / "a.warc.gz", bodies), settings=settings)
    failures = rows(tmp_path / "tables", "SELECT url, code, message FROM failures ORDER BY position")
    assert [str(url).rpartition("/")[2] for url, _, _ in failures] == ["0", "30", "70", "71", "99"]
    assert {code for _, code, _ in failures} == {"quarantined"}
    assert "signal 11" in str(failures[0][2])
    assert "longer than" in str(failures[1][2])
    assert report.counts["pages"] == 95
    assert rows(tmp_path / "tables", "SELECT count(DISTINCT page) FROM quads") == [(95,)]


def test_bad_records_and_duplicates_are_counted(tmp_path: Path) -> None:
    name = archive(tmp_path / "a.warc.gz", [html(1), html(2), html(1), html(1)])
    with Path(name).open("ab") as file:
        file.write(gzip.compress(b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 999999999\r\n\r\n"))
    options = Options(skip_duplicates=True)
    report = run(tmp_path / "tables", name, options=options)
    assert (report.counts["pages"], report.counts["duplicates"], report.failures) == (2, 2, 1)
    assert report.not_taken == {"warcinfo": 1}
    ((code, message),) = rows(tmp_path / "tables", "SELECT code, message FROM failures")
    assert code == "warc-record"
    assert "impossible length" in str(message)


def test_folders_and_dumps(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    (folder / "below").mkdir(parents=True)
    (folder / "index.html").write_bytes(html(1))
    (folder / "below/data.ttl").write_text("<#a> <http://a.example/p> 'x' .", encoding="utf-8")
    archive(folder / "old.warc.gz", [html(2)])
    dump = tmp_path / "dump.nq"
    dump.write_text('<http://c.example/s> <http://c.example/p> "o" <http://c.example/g> .\n', encoding="utf-8")
    report = run(tmp_path / "tables", str(folder), str(dump))
    assert [Path(part.source).name for part in report.parts] == ["old.warc.gz", "site", "dump.nq"]
    urls = [str(url) for (url,) in rows(tmp_path / "tables", "SELECT url FROM pages ORDER BY url")]
    assert urls == [
        f"{folder.as_uri()}/below/data.ttl", f"{folder.as_uri()}/index.html", "http://c.example/g",
        "http://old.example/page/0",
    ]  # fmt: skip
    graphs = {str(graph) for (graph,) in rows(tmp_path / "tables", "SELECT DISTINCT graph FROM quads")}
    assert graphs == set(urls)


def test_an_input_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file or folder"):
        sources_of([str(tmp_path / "x.warc.gz")])
    with pytest.raises(UsageError, match="nothing to read"):
        sources_of([])


def test_the_command_is_killed_and_continued(tmp_path: Path) -> None:
    for name in "abcd":
        archive(tmp_path / f"{name}.warc.gz", [html(number, "x" * 2000) for number in range(60)])
    command = [sys.executable, "-m", "quadloom", "bulk", *(f"{name}.warc.gz" for name in "abcd"), "--workers", "2"]

    def finish(target: str, *more: str) -> list[object]:
        subprocess.run([*command, "--to", target, *more], cwd=tmp_path, check=True, capture_output=True, timeout=100)
        parts = json.loads((tmp_path / target / "manifest.json").read_bytes())["parts"]
        return [part["files"] for part in parts]

    whole = finish("whole")
    for place, seconds in enumerate((0.4, 0.8, 1.2)):
        with subprocess.Popen([*command, "--to", f"t{place}"], cwd=tmp_path, stderr=subprocess.DEVNULL) as started:
            try:
                started.wait(seconds)
            except subprocess.TimeoutExpired:
                os.kill(started.pid, 9)
        assert finish(f"t{place}", "--resume") == whole
        assert names_in(tmp_path / f"t{place}") == names_in(tmp_path / "whole"), "nothing is left behind"
