"""A warehouse whose database is lost or damaged is recovered in place, from what a real crawl has archived."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from quadloom.cli.main import run
from quadloom.crawling.ingest.intake import Ingest
from quadloom.crawling.run.scope import ScopeEdits, read_edits
from quadloom.crawling.run.session import CrawlSession
from quadloom.errors import StoreError, UsageError
from quadloom.fetching.in_process import respond
from quadloom.fetching.transport import FetchRequest
from quadloom.fetching.unit import answered_in_process
from quadloom.maintenance.archive_order import all_pages
from quadloom.model.outcome import Settlement
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.settings import CrawlSettings, GuardSettings, PolitenessSettings, Settings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.backends import DATABASE
from quadloom.warehouse import Warehouse

ONE, TWO, ALONE = "http://one.example/", "http://two.example/", "http://alone.example/chosen"
BODIES = {
    ONE: '<title>One</title><a href="/a">a</a><a href="/old">moved</a><a href="/gone">gone</a>',
    f"{ONE}a": f'<title>A</title><a href="/b">b</a><a href="{TWO}">two</a><a href="http://three.example/">no</a>',
    f"{ONE}b": '<title>B</title><a href="/unread/1">1</a><a href="/unread/2">2</a><p>never changes</p>',
    f"{ONE}new": "<title>New place</title>",
    TWO: "<title>Two</title>",
    ALONE: '<title>Alone</title><a href="/more">more</a>',
}
AGAIN = [f"{ONE}unread/1", f"{ONE}unread/2", f"{ONE}gone"]  # the archive has no response of theirs
SETTINGS = Settings(
    crawl=CrawlSettings(scope="site", workers=1, batch_seconds=0.0, exclude=["/unread/*"]),
    politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, adaptive=0.0),
    guard=GuardSettings(hosts={"*.example": "192.0.2.1"}, allow=["192.0.2.0/24"]),
)
RECOVERED = msgspec.structs.replace(SETTINGS, crawl=msgspec.structs.replace(SETTINGS.crawl, exclude=[]))


class Web:
    """Three sites. `ONE` changes with every visit."""

    def __init__(self) -> None:
        self.visits = 0

    def answer(self, request: FetchRequest) -> Page:
        href = request.href
        if href == f"{ONE}robots.txt":
            return respond(request, b"User-agent: *\nDisallow: /private\nCrawl-delay: 0.25\n")
        if href == f"{ONE}old":
            return respond(request, b"", status=301, headers=(("location", "/new"),))
        if href not in BODIES:
            return respond(request, b"", status=404)
        self.visits += href == ONE
        body = BODIES[href] + (f"<p>visit {self.visits}" if href == ONE else "")
        return respond(request, body.encode(), headers=(("content-type", "text/html"),))


class Known(NamedTuple):
    """What a warehouse says of a page, without what only its own runs decide."""

    href: str
    status: int
    changes: int
    depth: int
    via: int
    title: str
    archive: object
    versions: tuple[tuple[float, object], ...]


def crawled(path: Path) -> Path:
    """Two crawls of two sites, and a page that a topical crawl has chosen on a third."""
    web = Web()
    with Warehouse.open(path, settings=SETTINGS) as warehouse:
        warehouse.requests.add_seeds([ONE, TWO])
        warehouse.scope.change(ScopeEdits(exclude=("*.never",)))
        for _ in range(2):
            warehouse.requests.refresh([ONE])
            running = CrawlSession(
                warehouse.stores,
                SETTINGS,
                warehouse.scope,
                lambda: warehouse.ask.queries,
                fetch=answered_in_process(web.answer),
            )
            assert list(running)
        assert warehouse.maintenance.verify().ok
    return path


def known(path: Path) -> list[Known]:
    with Warehouse.read(path, settings=RECOVERED) as warehouse:
        catalog = warehouse.stores.catalog
        return sorted(
            Known(
                row.href, row.status, row.changes, row.depth, row.via,
                row.title, row.archive,
                tuple((one.fetched_at, one.archive) for one in catalog.visits.of(row.fingerprint) if one.archive),
            )
            for row in all_pages(warehouse.stores.catalog)
            if row.status < 400
        )  # fmt: skip


def archive_of(path: Path) -> dict[str, str]:
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (path / "archive").glob("*.warc*")}


def lose_database(path: Path) -> None:
    for file in path.glob(f"{DATABASE}*"):
        file.unlink()


def test_a_lost_database_is_recovered_in_place(tmp_path: Path) -> None:
    path = crawled(tmp_path / "warehouse")
    before, archived = known(path), archive_of(path)
    lose_database(path)
    report = Warehouse.recover(path, settings=RECOVERED)
    assert known(path) == before
    assert archive_of(path) == archived, "nothing is written to the archive"
    assert set(report.seeds) == {ONE, TWO} and not report.seeds_known
    assert report.pages == len(before) and not report.unreadable_bytes
    with Warehouse.open(path, settings=RECOVERED) as warehouse:
        assert warehouse.maintenance.verify().ok
        assert warehouse.search("never changes").total == 1
        assert warehouse.stores.frontier.stats(0.0).queued == len(AGAIN), "the queue is what the pages link to"
        host = warehouse.stores.frontier.hosts.get("one.example")
        assert host is not None and host.crawl_delay == 0.25 and b"/private" in host.robots
        changed = warehouse.stores.catalog.pages([row.fingerprint for row in all_pages(warehouse.stores.catalog)])
        assert all(row.schedule for row in changed.values() if row.title), "every page has its next visit"
    assert not [*path.glob("*.new"), *path.glob("*.old"), *path.glob("re*")]


def test_a_page_of_a_topic_is_no_seed(tmp_path: Path) -> None:
    path = crawled(tmp_path / "warehouse")
    with Warehouse.open(path, settings=SETTINGS) as warehouse:
        graph = "urn:quadloom:topic:whales"
        score = f'<{ALONE}> <urn:quadloom:topicScore> "0.9"^^<http://www.w3.org/2001/XMLSchema#double> <{graph}> .\n'
        warehouse.stores.quads.replace(Quads.of(graph, score.encode()))
        warehouse.stores.quads.flush()
        source = tmp_path / "more.warc.gz"
        page = Page(ALONE, ALONE, 200, (("content-type", "text/html"),), BODIES[ALONE].encode(), 2e9, 0.1)
        source.write_bytes(file_header(source.name, 0.0) + encode(page).member)
        warehouse.maintenance.import_(source, links=False)
    lose_database(path)
    report = Warehouse.recover(path, settings=RECOVERED)
    assert set(report.seeds) == {ONE, TWO}
    assert report.queued == len(AGAIN), "its site is not read because of it"
    with Warehouse.open(path, settings=RECOVERED) as warehouse:
        assert warehouse.stores.quads.graph("urn:quadloom:topic:whales")
        assert warehouse.search("alone").total == 1


def test_a_crawl_whose_database_is_deleted_ends_and_is_recovered(tmp_path: Path) -> None:
    web, path = Web(), tmp_path / "warehouse"
    seen: list[Settlement] = []
    with (
        pytest.raises(StoreError, match="was deleted or replaced") as ended,
        Warehouse.open(path, settings=SETTINGS) as warehouse,
    ):
        warehouse.requests.add_seeds([ONE, TWO])
        running = CrawlSession(
            warehouse.stores, SETTINGS, warehouse.scope, lambda: warehouse.ask.queries,
            fetch=answered_in_process(web.answer),
        )  # fmt: skip
        for settlement in running:
            seen.append(settlement)
            lose_database(path)
    assert seen and "recover" in ended.value.hint
    Warehouse.recover(path, settings=RECOVERED)
    archived = {item.visit.href for item in seen if item.page is not None and item.page.archive is not None}
    assert archived <= {page.href for page in known(path)}


def test_what_a_damaged_database_still_says_is_used(tmp_path: Path) -> None:
    path = crawled(tmp_path / "warehouse")
    with Warehouse.open(path, settings=SETTINGS) as warehouse:
        warehouse.requests.add_seeds(["http://later.example/"])
    file = path / DATABASE
    with sqlite3.connect(file) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name='page_host'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with file.open("r+b") as stream:
        stream.seek((root - 1) * size)
        stream.write(b"\xff" * size)
    report = Warehouse.recover(path, settings=RECOVERED)
    assert report.seeds_known and report.seeds == (ONE, TWO, "http://later.example/") and report.kept
    assert (path / f"{DATABASE}.damaged").exists()
    with Warehouse.open(path, settings=RECOVERED) as warehouse:
        assert warehouse.maintenance.verify().ok
        assert read_edits(warehouse.stores.catalog).exclude == ("*.never",)
        queued = {"http://later.example/", *AGAIN}
        assert warehouse.stores.frontier.stats(0.0).queued == len(queued)


@pytest.mark.parametrize(
    ("table", "place", "damage"),
    [("page", b"", b"\xc1"), ("page", b"http", b"\xff\xfe\xfd"), ("visit", b"", b"\xc1")],
    ids=["no record", "no UTF-8", "no visit"],
)
def test_a_damaged_row_names_the_way_out_and_is_recovered(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: str, place: bytes, damage: bytes
) -> None:
    path = crawled(tmp_path / "warehouse")
    before = known(path)
    with sqlite3.connect(path / DATABASE) as connection:
        (record,) = connection.execute(f"SELECT record FROM {table} ORDER BY fingerprint LIMIT 1").fetchone()
        start = record.index(place)
        broken = record[:start] + damage + record[start + len(damage) :]
        connection.execute(f"UPDATE {table} SET record = ? WHERE record = ?", (broken, record))
    if table == "page":
        assert run(["-w", str(path), "verify"]) == 6
        printed = capsys.readouterr().err
        assert "the database is damaged" in printed and "quadloom recover" in printed
    assert run(["-w", str(path), "recover"]) == 0
    assert [page.href for page in known(path)] == [page.href for page in before]
    assert run(["-w", str(path), "verify"]) == 0


def test_a_file_that_is_no_database_is_recovered_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = crawled(tmp_path / "warehouse")
    before = known(path)
    (path / DATABASE).write_bytes(b"garbage" * 1000)
    assert run(["-w", str(path), "status"]) == 6
    assert f"quadloom -w {path} recover" in " ".join(capsys.readouterr().err.split())
    assert run(["-w", str(path), "recover"]) == 0
    assert [page.href for page in known(path)] == [page.href for page in before]


def test_every_command_names_the_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = crawled(tmp_path / "warehouse")
    lose_database(path)
    for command, code in ((["crawl"], 6), (["serve", "--port", "0"], 6), (["check"], 1), (["search", "one"], 6)):
        assert run(["-w", str(path), *command]) == code, command
        printed = capsys.readouterr()
        assert f"quadloom -w {path} recover" in " ".join((printed.err + printed.out).split()), command


def test_refusals_change_nothing(tmp_path: Path) -> None:
    path = crawled(tmp_path / "warehouse")
    before = known(path)
    with pytest.raises(UsageError, match="not damaged"):
        Warehouse.recover(path, settings=RECOVERED)
    assert known(path) == before
    lose_database(path)
    (path / "archive").rename(tmp_path / "unmounted")
    with pytest.raises(StoreError, match="nothing to recover from"):
        Warehouse.recover(path, settings=RECOVERED)
    assert not (path / "archive").exists() and not (path / DATABASE).exists()
    with pytest.raises(StoreError, match="no warehouse"):
        Warehouse.recover(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_notices_get_no_id_twice(tmp_path: Path) -> None:
    path = crawled(tmp_path / "warehouse")
    lose_database(path)
    Warehouse.recover(path, settings=RECOVERED)
    with sqlite3.connect(path / DATABASE) as connection:
        (first,) = connection.execute("SELECT seq FROM sqlite_sequence WHERE name='notice'").fetchone()
    assert first > 1e9, "more than a database can have used"


def test_pages_that_nothing_leads_to_do_not_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `seeds add` with a long list, or an import. Each waited for `crawl.batch_seconds`; with an hour of them
    the command would never end."""
    pages = {
        f"http://site{number % 10}.example/item-{number}-of-many": f"<title>Item {number}</title><p>words</p>".encode()
        for number in range(120)
    }
    pages["http://site0.example/item-50-of-many"] += b'<a href="/linked-page">on</a>'
    pages["http://site0.example/linked-page"] = b"<title>Linked</title>"  # follows the page that links to it
    order = [*list(pages)[:51], "http://site0.example/linked-page", *list(pages)[51:-1]]
    archive = tmp_path / "warehouse" / "archive"
    archive.mkdir(parents=True)
    records = [
        encode(Page(url, url, 200, (("content-type", "text/html"),), pages[url], 1e9 + number, 0.1)).member
        for number, url in enumerate(order)
    ]
    (archive / "quadloom-00000001.warc.gz").write_bytes(file_header("x", 1e9) + b"".join(records))
    drains = 0
    drain = Ingest.drain

    def counted(ingest: Ingest) -> list[Settlement]:
        nonlocal drains
        drains += 1
        return drain(ingest)

    monkeypatch.setattr(Ingest, "drain", counted)
    slow = msgspec.structs.replace(RECOVERED, crawl=msgspec.structs.replace(RECOVERED.crawl, batch_seconds=3600.0))
    report = Warehouse.recover(tmp_path / "warehouse", settings=slow)
    assert report.pages == len(pages)
    assert "http://site0.example/linked-page" not in report.seeds and len(report.seeds) == 120
    assert drains < 10
