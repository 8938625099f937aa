"""Replay from an archive: which version answers, what is missing, and how the setting is read."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from quadloom.errors import SettingsError
from quadloom.fetching.fetcher import Fetcher, FetchResult
from quadloom.fetching.replay import ReplayTransport, replay_source, without_pauses
from quadloom.fetching.transport import FetchRequest, Result
from quadloom.fetching.unit import open_fetcher, open_transport
from quadloom.model.page import Failure, Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, PolitenessSettings, Settings, SiteSettings
from quadloom.stores.archive import warc_record
from quadloom.stores.archive.warc import WarcArchive

HOST = "site.example"
URL = f"http://{HOST}/page"


def page(body: bytes, at: float, url: str = URL, *, status: int = 200, **headers: str) -> Page:
    return Page(url, url, status, tuple(headers.items()), body, at, 0.5, "192.0.2.1")


def archived(folder: Path, *records: Page | Failure) -> WarcArchive:
    archive = WarcArchive([folder])
    archive.put([warc_record.encode(record) for record in records])
    archive.sync()
    archive.close()
    return WarcArchive([folder], read_only=True)


def ask(transport: ReplayTransport, request: FetchRequest) -> Result:
    results: list[Result] = []
    transport.submit(request, results.append)
    while not results:
        transport.step(0.1)
    return results[0]


def test_the_newest_version_at_or_before_the_given_time_answers(tmp_path: Path) -> None:
    archive = archived(tmp_path, page(b"second", 200.0), page(b"first", 100.0), page(b"third", 300.0))
    for until, body in ((float("inf"), b"third"), (300.0, b"third"), (299.0, b"second"), (100.0, b"first")):
        result = ask(ReplayTransport(Settings(), archive, until=until), FetchRequest(href=URL))
        assert isinstance(result, Page) and result.body == body
    missing = ask(ReplayTransport(Settings(), archive, until=99.0), FetchRequest(href=URL))
    assert isinstance(missing, Failure) and missing.kind == "not-archived"


def test_a_response_keeps_its_time_address_and_headers(tmp_path: Path) -> None:
    old = page(b"old", 100.0, etag='"1"')
    result = ask(ReplayTransport(Settings(), archived(tmp_path, old)), FetchRequest(href=URL))
    assert isinstance(result, Page)
    assert (result.fetched_at, result.seconds, result.address) == (100.0, 0.5, "192.0.2.1")
    assert result.headers == (("etag", '"1"'),)


def test_what_the_archive_does_not_hold_is_a_failure_that_is_not_retried(tmp_path: Path) -> None:
    transport = ReplayTransport(Settings(), archived(tmp_path, page(b"old", 100.0)))
    for request in (FetchRequest(href=URL + "?x"), FetchRequest(href=URL, method="POST", payload=b"q=1")):
        result = ask(transport, request)
        assert isinstance(result, Failure)
        assert (result.kind, result.transient, result.status) == ("not-archived", False, 0)
        assert [finding.code for finding in result.findings] == ["fetch-not-archived"]


def test_a_damaged_record_is_a_failure(tmp_path: Path) -> None:
    archive = archived(tmp_path, page(b"old", 100.0))
    transport = ReplayTransport(Settings(), archive)
    assert isinstance(ask(transport, FetchRequest(href=URL)), Page)
    for path in tmp_path.iterdir():
        path.unlink()
    result = ask(transport, FetchRequest(href=URL))
    assert isinstance(result, Failure) and result.kind == "not-archived"


def visits(fetcher: Fetcher, *hrefs: str) -> list[FetchResult]:
    fetcher.submit([Visit(href, href, HOST, number) for number, href in enumerate(hrefs)])
    fetched: list[FetchResult] = []
    while fetcher.in_flight:
        fetched += fetcher.step(1.0)
    return sorted(fetched, key=lambda result: result.visit.fingerprint)


def test_robots_of_then_hold_and_a_missing_file_allows_everything(tmp_path: Path) -> None:
    robots = page(b"User-agent: *\nDisallow: /closed", 100.0, f"http://{HOST}/robots.txt")
    closed = page(b"closed", 100.0, f"http://{HOST}/closed")
    strict = Fetcher(Settings(), ReplayTransport(Settings(), archived(tmp_path / "with", robots, closed)))
    assert [getattr(one.result, "kind", "") for one in visits(strict, f"http://{HOST}/closed")] == ["robots"]
    free = Fetcher(Settings(), ReplayTransport(Settings(), archived(tmp_path / "without", closed)))
    (fetched,) = visits(free, f"http://{HOST}/closed")
    assert isinstance(fetched.result, Page) and fetched.result.body == b"closed"


def test_a_replay_makes_no_pauses_and_opens_no_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robots = page(b"User-agent: *\nCrawl-delay: 3600", 100.0, f"http://{HOST}/robots.txt")
    pages = [page(b"page", 100.0, f"{URL}/{number}") for number in range(50)]
    archived(tmp_path / "archive", robots, *pages).close()
    monkeypatch.setattr(socket, "socket", None)
    settings = Settings(crawl=CrawlSettings(transport=f"replay:{tmp_path}"), site=[SiteSettings(match="*", delay=9.0)])
    fetched = visits(open_fetcher(settings), *(each.url for each in pages), f"{URL}/missing")
    assert [isinstance(one.result, Page) for one in fetched] == [True] * 50 + [False]
    assert {one.pace.delay for one in fetched} == {0.0}
    assert fetched[-1].pace.cost == 0.0


def test_the_setting(tmp_path: Path) -> None:
    def source(transport: str) -> object:
        return replay_source(Settings(crawl=CrawlSettings(transport=transport)))

    assert source("http:") is None
    replay = replay_source(Settings(crawl=CrawlSettings(transport=f"replay:{tmp_path}?until=2026-01-31T12:00:00Z")))
    assert replay is not None and (replay.directory, replay.until) == (tmp_path, 1769860800.0)
    for wrong in ("", "http", "http://x", "ftp:", "replay:", "replay:x?until=yesterday"):
        with pytest.raises(SettingsError, match=r"crawl\.transport"):
            source(wrong)
    with pytest.raises(SettingsError, match="no WARC files"):
        open_transport(Settings(crawl=CrawlSettings(transport=f"replay:{tmp_path}")))


def test_pauses_stay_for_the_web() -> None:
    settings = Settings(politeness=PolitenessSettings(delay=3.0))
    assert without_pauses(settings) is settings
