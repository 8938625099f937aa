"""Pages that crash, hang or bloat a worker: quarantined with a reason, all others done."""

from __future__ import annotations

import gzip
import re
import time
import warnings
from pathlib import Path

import msgspec
import pytest

from quadloom.crawling.workers.pool import PoolChanged, SlowPage, TransformResult, WorkerPool
from quadloom.errors import NothingFound
from quadloom.model.event import Notice
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, LimitSettings, Settings, WebSettings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.warehouse import Warehouse
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from waiting import wait_until

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

PLUGIN = """
import ctypes, pathlib, time

def poison(body):
    if b"POISON" in body:
        with pathlib.Path(__file__).with_name("poison.log").open("ab") as log:
            log.write(body + b"\\n")
    if b"POISON-SEGFAULT" in body:
        ctypes.string_at(0)
    if b"POISON-HANG" in body:
        while True:
            time.sleep(1)
    if b"POISON-MEMORY" in body:
        hold = []
        while True:
            hold.append(bytearray(16 << 20))
            time.sleep(0.02)

import quadloom.documents.pipeline as pipeline
original = pipeline.process_page

def poisoned(page, *rest):
    poison(page.body)
    return original(page, *rest)

pipeline.process_page = poisoned
"""


@pytest.fixture
def poisoned_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every child interpreter gets a real segfault, hang and memory leak on marked pages."""
    poison(tmp_path, monkeypatch)


def poison(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sitecustomize.py").write_text(PLUGIN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))


def _page(number: int, body: bytes) -> tuple[Visit, Page]:
    url = f"http://poison.example/{number}"
    visit = Visit(url, url, "poison.example", number)
    return visit, Page(url, url, 200, (("content-type", "text/html"),), body, 0.0, 0.1)


@pytest.mark.usefixtures("poisoned_workers")
def test_poison_is_quarantined_and_the_rest_is_done() -> None:
    limits = LimitSettings(transform_seconds=4.0, transform_bytes=300 << 20)
    settings = msgspec.structs.replace(Settings(), limits=limits)
    done: dict[int, TransformResult] = {}
    notices: list[tuple[str, str]] = []
    errors: list[BaseException] = []

    def take(item: TransformResult | SlowPage | PoolChanged) -> None:
        if isinstance(item, TransformResult):
            done[item.visit.fingerprint] = item

    pool = WorkerPool(2, settings, take, lambda *n: notices.append(n), errors.append)
    bodies = [b"<title>fine</title><p>hello"] * 40
    bodies[5], bodies[17], bodies[30] = b"POISON-SEGFAULT", b"POISON-HANG", b"POISON-MEMORY"
    try:
        for number, body in enumerate(bodies):
            wait_until(lambda: pool.redistribute() or pool.room())
            pool.submit(*_page(number, body))
        wait_until(lambda: pool.redistribute() or len(done) >= len(bodies), seconds=110)
    finally:
        pool.close()
    assert not errors
    assert len(done) == len(bodies)
    quarantined = {number: item.reason for number, item in done.items() if item.answer is None}
    assert set(quarantined) == {5, 17, 30}
    assert "signal 11" in quarantined[5]
    assert "longer than" in quarantined[17]
    assert "memory" in quarantined[30]
    assert all(
        item.answer.result.title == "fine" for number, item in done.items() if item.answer and number not in quarantined
    )
    assert [kind for kind, _ in notices].count("quarantined") == 3


@pytest.mark.usefixtures("poisoned_workers")
def test_an_archive_with_poison_is_imported_and_kept_in_order(tmp_path: Path) -> None:
    """One worker, so that the poison stands in the way of all that follows it."""
    limits = LimitSettings(transform_seconds=1.0, transform_bytes=300 << 20)
    settings = Settings(limits=limits, crawl=CrawlSettings(workers=1))
    bodies = [f"<title>page {number}</title><p>hello".encode() for number in range(30)]
    bodies[3], bodies[11] = b"POISON-SEGFAULT", b"POISON-HANG"
    source = tmp_path / "poisoned.warc.gz"
    pages = [_page(number, body)[1] for number, body in enumerate(bodies)]
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(page).member for page in pages))
    notices: list[tuple[str, str]] = []
    with Warehouse.open(tmp_path / "warehouse", settings=settings) as warehouse:
        report = warehouse.maintenance.import_(source, notice=lambda kind, text: notices.append((kind, text)))
        assert (report.pages, report.new, report.quarantined) == (30, 28, 2)
        rows = {row.href: row for row in warehouse.stores.catalog.scan()}
        assert {url.rpartition("/")[2] for url, row in rows.items() if row.kind == "quarantined"} == {"3", "11"}
        assert all(row.archive is not None for row in rows.values())
        given = (tmp_path / "poison.log").read_bytes().splitlines()
        assert given.count(b"POISON-SEGFAULT") == 2, "two workers for each"
        assert given.count(b"POISON-HANG") in (2, 3), "and one more from which it was taken, since others waited"
        assert warehouse.maintenance.verify().ok
        assert (tmp_path / "poison.log").read_bytes().splitlines() == given, "known poison is not given out again"
        assert warehouse.maintenance.rebuild().pages == 28
        assert warehouse.maintenance.verify().ok
    assert [text.partition(":")[2][:5] for kind, text in notices if kind == "quarantined"] == ["//poi"] * 2


@pytest.mark.usefixtures("poisoned_workers")
def test_a_known_page_that_became_poison_keeps_its_statements(tmp_path: Path) -> None:
    settings = Settings(limits=LimitSettings(transform_seconds=1.0), crawl=CrawlSettings(workers=1))
    good, bad = _page(1, b"<title>fine</title>")[1], _page(1, b"POISON-SEGFAULT")[1]
    versions = (good, msgspec.structs.replace(bad, fetched_at=10.0))
    source = tmp_path / "two.warc.gz"
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(page).member for page in versions))
    with Warehouse.open(tmp_path / "warehouse", settings=settings) as warehouse:
        assert warehouse.maintenance.import_(source).quarantined == 1
        before = warehouse.stores.quads.graph(good.url)
        assert b"fine" in before
        warehouse.maintenance.rebuild()
        assert warehouse.stores.quads.graph(good.url) == before


@pytest.fixture
def harmful_past(tmp_path: Path) -> Path:
    """A warehouse with a notice of each page. Its versions were harmless when they were read, and no longer are."""
    settings = Settings(crawl=CrawlSettings(workers=1))
    source = tmp_path / "versions.warc.gz"
    versions = [
        msgspec.structs.replace(_page(number, b"<title>version %d</title>%s" % (at, mark))[1], fetched_at=float(at))
        for number, mark in enumerate((b"<p>fine", b"<p>POISON-HANG", b"<p>POISON-SEGFAULT", b"<p>POISON-MEMORY"))
        for at in (1000, 2000)
    ]
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(page).member for page in versions))
    with Warehouse.open(tmp_path / "warehouse", settings=settings) as warehouse:
        assert warehouse.maintenance.import_(source).quarantined == 0
        for number in range(4):
            new, old = warehouse.ask.history(f"http://poison.example/{number}").visits
            notice = Notice(at=3e3, subscription="s", kind="changed", url="x:", before=old.archive, after=new.archive)
            warehouse.stores.outbox.append([notice])
    return tmp_path / "warehouse"


def test_an_old_version_that_hurts_its_reader_gives_no_difference_and_a_reason(
    harmful_past: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the owner of a warehouse nor a web server parses an archived page itself."""
    parsed: list[object] = []
    monkeypatch.setattr("quadloom.documents.pipeline.transform", lambda *_, **named: parsed.append(named))
    poison(tmp_path, monkeypatch)
    settings = Settings(limits=LimitSettings(transform_seconds=4.0, transform_bytes=300 << 20))
    with Warehouse.read(harmful_past, settings=settings) as warehouse:
        fine = warehouse.ask.changes("http://poison.example/0", 1000.0, 2000.0)
        assert [line.split(" ")[2:4] for line in fine.added] == [['"version', '2000"']]
        assert fine.reason == ""
        for number, words in enumerate(("longer than 4 s", "signal 11", "300 MiB of memory"), start=1):
            harmed = warehouse.ask.changes(f"http://poison.example/{number}", 1000.0, 2000.0)
            assert not harmed
            assert words in harmed.reason
        started = time.monotonic()
        messages = warehouse.subscriptions.notices()
        assert [bool(message.added) for message in messages] == [True, False, False, False]
        with pytest.raises(NothingFound, match="longer than 4 s"):
            warehouse.ask.graph_at("http://poison.example/1", 1000.0)
        assert warehouse.ask.graph_at("http://poison.example/0", 1000.0).count == 1
    assert parsed == [], "an archived page was parsed in this process"
    assert time.monotonic() - started < 30.0


def test_a_page_of_the_site_shows_why_a_difference_is_not_known(
    harmful_past: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(tmp_path, monkeypatch)
    limits = LimitSettings(transform_seconds=3.0, transform_bytes=300 << 20)
    state = SiteState(harmful_past, Settings(limits=limits, web=WebSettings(rate=0.0)))
    with TestClient(create_app(state), base_url="http://127.0.0.1:7272") as client:
        compared = {"url": "http://poison.example/2", "from": "1000.0", "to": "2000.0"}
        page = client.get("/page", params=compared)
        assert page.status_code == 200
        assert "its transformation crashed with signal 11" in page.text
        changes = client.get("/changes.json")
        assert changes.status_code == 200
        assert [bool(notice["added"]) for notice in changes.json()["notices"]] == [True, False, False, False]


def _deep(levels: int) -> str:
    """Triple terms within each other, which the parser follows on its stack."""
    return "<x:a> <x:p> " + "<<( <x:a> <x:p> " * levels + "<x:b>" + " )>>" * levels + " .\n"


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("deep.nt", _deep(100_000).encode(), "ended its reader .signal"),
        ("cut.nq.gz", gzip.compress(b"<x:a> <x:p> <x:b> <http://g.example/> .\n" * 9)[:-9], "is not valid nq"),
        ("broken.nq", b"<http://a/> <http://p/> <http://b/> <http://g/> .\nnonsense\n", r"is not valid nq: .*line 2"),
    ],
    ids=["deep", "cut", "broken"],  # the bytes of a gzip file hold its time, and workers must collect the same names
)
def test_a_dump_that_ends_its_reader_does_not_end_the_owner(tmp_path: Path, name: str, body: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(body)
    with Warehouse.open(tmp_path / "warehouse") as warehouse:
        report = warehouse.maintenance.import_(
            tmp_path / name, graph="http://poison.example/" if name.endswith(".nt") else ""
        )
        (finding,) = report.findings
        assert re.search(words, finding.message)
        assert (report.pages, report.skipped, report.is_complete) == (0, 1, False)
        assert len(warehouse.stores.quads) == 0
        assert warehouse.maintenance.verify().ok


def test_a_graph_larger_than_a_page_may_be_is_cut_and_reported(tmp_path: Path) -> None:
    (tmp_path / "large.nq").write_text(
        "".join(f'<http://g.example/#{n}> <http://p.example/> "{n}" <http://g.example/> .\n' for n in range(500))
    )
    settings = Settings(limits=LimitSettings(quads_per_page=100))
    with Warehouse.open(tmp_path / "warehouse", settings=settings) as warehouse:
        assert warehouse.maintenance.import_(tmp_path / "large.nq").new == 1
        assert len(warehouse.stores.quads.graph("http://g.example/").splitlines()) == 100
        (row,) = warehouse.stores.catalog.scan()
        assert row.findings
