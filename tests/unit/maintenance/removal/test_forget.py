"""Forget on real warehouses: no byte of a site's words is left in any file, row or object, other sites are as before,
and a kill between any two steps is finished by the next command."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from faults.crawling import command, finish
from postgres_server import postgres
from quadloom.cli.main import run
from quadloom.errors import UsageError
from quadloom.maintenance.removal.forget import FORGET_POINTS, begin, plan
from quadloom.maintenance.removal.requests import REQUESTS, Forgotten, pending, rules_of
from quadloom.model.event import Notice
from quadloom.model.page import Failure, Page
from quadloom.process.failpoints import EXIT_CODE
from quadloom.settings import CrawlSettings, Settings, StoreSettings
from quadloom.settings.loading import load
from quadloom.stores.archive.s3_bucket import S3Address, S3Bucket
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.protocols.text import SearchRequest
from quadloom.warehouse import Warehouse
from servers import new_bucket, sparql_server

SITES = 10
GONE = "site3.example"
WORD = "quokkamere"  # in all that the forgotten site says, and nowhere else
SMALL = Settings(crawl=CrawlSettings(scope="any"), stores=StoreSettings(archive_file_bytes=6000))
RULES = rules_of([GONE], [])


def page(url: str, at: float, word: str, final_url: str = "") -> Page:
    body = (
        f'<html><title>{word} title</title><p vocab="http://schema.org/" typeof="Event"><b property="name">{word} {url}'
        f"{at}</b></p><p>A few words on {word} that everybody can read.</p>"
        f'<a href="http://site1.example/from-{len(word)}">anchor {word}</a></html>'
    )
    headers = (("content-type", "text/html"), ("x-word", word))
    return Page(url, final_url or url, 200, headers, body.encode(), at, 0.1)


def pages() -> Iterator[Page | Failure]:
    for at in (1000.0, 2000.0):
        for site in range(SITES):
            host = f"site{site}.example"
            word = WORD if host == GONE else f"word{site}"
            for number in range(4):
                yield page(f"http://{host}/{number}", at, word)
            yield page(f"http://www.{host}/", at, word)
    yield page("http://site1.example/moved", 1000.0, WORD, f"http://{GONE}/0")
    yield page("http://site1.example/moved", 2000.0, "word1")
    yield page("http://site2.example/moved", 2000.0, WORD, f"http://{GONE}/1")


def imported(folder: Path, settings: Settings) -> Path:
    source = folder / "source.warc.gz"
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(item).member for item in pages()))
    with Warehouse.open(folder / "warehouse", settings=settings) as warehouse:
        warehouse.maintenance.import_(source)
        refs = [row.archive for row in warehouse.stores.catalog.scan() if row.href.startswith(f"http://{GONE}/")]
        row = warehouse.stores.frontier.hosts.get(GONE)
        assert row is not None
        warehouse.stores.frontier.hosts.put(msgspec.structs.replace(row, robots=WORD.encode(), robots_expires=1e10))
        warehouse.stores.outbox.append(
            [
                Notice(at=1.0, subscription="a", kind="new", url=f"http://{GONE}/0", title=WORD, after=refs[0]),
                Notice(at=1.0, subscription="a", kind="new", url="http://site1.example/1", title="stays"),
                Notice(at=1.0, subscription="b", kind="result", added=(WORD, "other")),
            ]
        )
    source.unlink()
    return folder / "warehouse"


def files_with_word(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and has_word(path.read_bytes())]


def has_word(data: bytes) -> bool:
    """Also in gzip members, in which words do not show."""
    if data.startswith(b"\x1f\x8b"):
        data = gzip.decompress(data)
    return WORD.encode() in data


def answers(warehouse: Warehouse) -> object:
    """What other sites say: rows and visits without their places in the archive, statements, hits and counts."""
    stores = warehouse.stores
    rows = [row for row in stores.catalog.scan() if not Forgotten(RULES).page(row)]
    visits = [
        (visit.fetched_at, visit.body_digest)
        for row in rows
        for visit in stores.catalog.visits.of(row.fingerprint)
        if (row.href, visit.fetched_at) != ("http://site1.example/moved", 1000.0)
    ]
    hits = [
        sorted(hit.id for hit in stores.text.search(SearchRequest(text=f"word{site}", limit=50)))
        for site in range(SITES)
    ]
    return [row.href for row in rows], visits, [stores.quads.graph(row.graph) for row in rows], hits


def check(warehouse: Warehouse, before: object) -> None:
    stores = warehouse.stores
    assert answers(warehouse) == before
    assert warehouse.maintenance.verify().ok
    assert sum(number for name, number in stores.catalog.counts().items() if name.startswith("kind:")) == len(
        stores.catalog.scan()
    )
    stats = stores.frontier.stats(0.0)
    hosts = stores.frontier.hosts.rows()
    assert stats.hosts == len(hosts) == 2 * (SITES - 1)
    assert sum(row.queued for row in hosts) == stats.queued
    assert not any(row.host.endswith(GONE) for row in hosts)
    assert [(notice.title, notice.added, notice.more) for notice in stores.outbox.since(0)] == [
        ("stays", (), 0),
        ("", (), 2),
    ]
    assert stores.text.search(SearchRequest(text=WORD)).total == 0
    reason = warehouse.scope.current.verdict(f"http://www.{GONE}/new", f"www.{GONE}", 1)
    assert reason is not None and "excluded" in reason


def test_nothing_of_a_site_is_left_in_any_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    from quadloom.maintenance.lake.sync import sync

    path = imported(tmp_path, SMALL)
    with Warehouse.open(path, settings=SMALL) as warehouse:
        sync(warehouse.stores)
        with closing(sqlite3.connect(path / "quadloom.db")) as database:
            anchors = "SELECT count(*) FROM url WHERE instr(anchor, ?)"
            assert database.execute(anchors, (WORD,)).fetchone() == (1,), "of a link that stays"
        before = answers(warehouse)
        planned = plan(warehouse.stores, RULES)
        (report,) = warehouse.maintenance.forget(RULES)
        assert planned.pages == report.pages == 6
        assert (planned.records, planned.files, planned.bytes) == (report.records, report.files, report.bytes)
        assert report.records == 2 * 5 + 2 and report.urls == 5 and report.hosts == 2 and report.notices == 2
        check(warehouse, before)
        assert warehouse.maintenance.forget() == []
    with Warehouse.open(path, settings=SMALL) as warehouse:
        check(warehouse, before)
    assert files_with_word(path) == []
    assert any(b"records: " in gzip.decompress(file.read_bytes()) for file in (path / "archive").glob("*.gz"))


@pytest.mark.parametrize("point", FORGET_POINTS)
def test_a_kill_between_two_steps_is_finished_by_the_next_command(tmp_path: Path, point: str) -> None:
    path = imported(tmp_path, SMALL)
    with Warehouse.read(path) as warehouse:
        before = answers(warehouse)
    config = tmp_path / "quadloom.toml"
    config.write_text(f'[crawl]\nscope = "any"\nfailpoint = "{point}"\n[stores]\narchive_file_bytes = 6000\n')
    killed = subprocess.run(command(path, config, "forget", GONE), capture_output=True, timeout=60, check=False)
    assert killed.returncode == EXIT_CODE, killed.stderr
    with Warehouse.read(path) as warehouse:
        assert len(pending(warehouse.stores.catalog)) == 1
        assert "forget" in {drift.what for drift in warehouse.maintenance.verify().drifts}
    config.write_text('[crawl]\nscope = "any"\n[stores]\narchive_file_bytes = 6000\n')
    assert finish(path, config, "status", "--json")["forgetting"] == 1
    (report,) = finish(path, config, "forget", "--json")["forgotten"]  # type: ignore[misc]
    assert report["records"] == 12 and report["pages"] == 6
    with Warehouse.open(path, settings=SMALL) as warehouse:
        check(warehouse, before)
        assert not pending(warehouse.stores.catalog)
    assert files_with_word(path) == []


def test_one_page_and_a_part_of_a_site(tmp_path: Path) -> None:
    path = imported(tmp_path, SMALL)
    with Warehouse.open(path, settings=SMALL) as warehouse:
        warehouse.maintenance.forget(rules_of([f"https://{GONE}/1"], ["http://site4.example/*"]))
        left = {row.href for row in warehouse.stores.catalog.scan()}
        assert f"http://{GONE}/0" in left and f"http://{GONE}/1" not in left
        assert "http://site2.example/moved" not in left, "it has the content of that page"
        assert "http://www.site4.example/" in left and "http://site4.example/0" not in left
        hosts = {row.host for row in warehouse.stores.frontier.hosts.rows()}
        assert GONE in hosts and "site4.example" not in hosts
        assert warehouse.maintenance.verify().ok


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = imported(tmp_path, SMALL)

    def json_of(*arguments: str) -> dict[str, object]:
        assert run(["-w", str(path), "forget", *arguments, "--json"]) == 0
        found: dict[str, object] = json.loads(capsys.readouterr().out)
        return found

    would = json_of(GONE, "--dry-run")
    assert would["pages"] == 6 and files_with_word(path)
    (report,) = json_of(GONE)["forgotten"]  # type: ignore[misc]
    assert {name: report[name] for name in ("pages", "records", "files", "bytes")} == {
        name: would[name] for name in ("pages", "records", "files", "bytes")
    }
    assert GONE not in json.dumps(report)
    assert json_of() == {"forgotten": [report]}
    assert run(["-w", str(path), "forget", "no site"]) == 2
    assert run(["-w", str(path), "forget", "--dry-run"]) == 2
    assert "example.org" in capsys.readouterr().err


def test_not_the_whole_warehouse(tmp_path: Path) -> None:
    with Warehouse.open(imported(tmp_path, SMALL), settings=SMALL) as warehouse:
        with pytest.raises(UsageError, match="every page"):
            begin(warehouse.stores, ["*"])
        assert not list(REQUESTS.items(warehouse.stores.catalog))


def test_postgresql_and_s3(tmp_path: Path) -> None:
    """On servers: no row and no object has a word of it, and a kill in the middle is finished."""
    address, url = new_bucket(), postgres().url()
    sparql = sparql_server("--location", str(tmp_path / "server"))
    config = tmp_path / "quadloom.toml"
    stores = {
        "frontier": url, "catalog": url, "text": "postgresql:", "archive_file_bytes": 6000,
        "quads": f"sparql+{sparql.url}",
        "archive": f"s3://{address.bucket}/{address.prefix}", "archive_endpoint": address.endpoint,
    }  # fmt: skip
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in stores.items())
    config.write_text(f'[crawl]\nscope = "any"\nfailpoint = "forget-repointed"\n[stores]\n{lines}')
    path = imported(tmp_path, load(config=config).settings)
    assert objects_with_word(address) and rows_with_word(url)
    with Warehouse.read(path, settings=load(config=config).settings) as warehouse:
        before = answers(warehouse)
    killed = subprocess.run(command(path, config, "forget", GONE), capture_output=True, timeout=60, check=False)
    assert killed.returncode == EXIT_CODE, killed.stderr
    config.write_text(config.read_text().replace("forget-repointed", ""))
    (report,) = finish(path, config, "forget", "--json")["forgotten"]  # type: ignore[misc]
    assert report["records"] == 12 and report["pages"] == 6
    with Warehouse.open(path, settings=load(config=config).settings) as warehouse:
        check(warehouse, before)
    assert objects_with_word(address) == rows_with_word(url) == files_with_word(path) == []
    sparql.stop()


def objects_with_word(address: S3Address) -> list[str]:
    bucket = S3Bucket(address)
    return [key for key, size in bucket.files().items() if has_word(bucket.read(key, 0, size))]


def rows_with_word(url: str) -> list[str]:
    with closing(PostgresDatabase(url, writable=False)) as database:
        tables = database.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        )
        hexadecimal = WORD.encode().hex()
        statement = "SELECT count(*) FROM {0} t WHERE strpos(t::text, ?) + strpos(t::text, ?) > 0"
        return [name for (name,) in tables if database.execute(statement.format(name), (WORD, hexadecimal))[0][0]]
