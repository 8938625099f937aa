"""The seam `Transport`: one small site must give the same results over libcurl, from an archive and by a function."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from faults.fetch_server import Seen, Server
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.in_process import InProcessTransport, respond
from quadloom.fetching.replay import ReplayTransport
from quadloom.fetching.transport import FetchRequest, Result, Transport
from quadloom.model.page import Failure, Page
from quadloom.settings import GuardSettings, LimitSettings, PolitenessSettings, Settings
from quadloom.stores.archive import warc_record
from quadloom.stores.archive.warc import WarcArchive

ETAG = '"v1"'
MODIFIED = "Tue, 10 Nov 2026 10:00:00 GMT"
LONG = b"0123456789" * 400
SETTINGS = Settings(
    guard=GuardSettings(allow=["127.0.0.0/8"], hosts={"inside.test": "10.0.0.1", "*.test": "127.0.0.1"}),
    politeness=PolitenessSettings(ip_delay=0.0),
    limits=LimitSettings(body_bytes=1000, large_bytes=100_000, header_count=20, total_seconds=20.0),
)
HTML = ("content-type", "text/html")
PATHS = (
    *("/", "/gone", "/busy", "/moved", "/chain/0", "/chain/1", "/chain/2", "/circle", "/to-ftp", "/to-inside"),
    *("/versioned", "/dated", "/long", "/announced", "/headers", "/film", *(f"/page/{n}" for n in range(20))),
)


@dataclass
class Site:
    """One site as a function. `base` is its address; `asked` remembers the URLs of all requests."""

    base: str
    asked: list[str] = field(default_factory=list)

    def respond(self, request: FetchRequest) -> Page:
        self.asked.append(request.href)
        path = request.href.removeprefix(self.base)
        redirects = {
            "/moved": "/",
            "/chain/0": "/chain/1",
            "/chain/1": "/chain/2",
            "/chain/2": "/",
            "/circle": "/circle",
            "/to-ftp": "ftp://site.test/file",
            "/to-inside": "http://inside.test/secret",
        }
        if path in redirects:
            return respond(request, status=301, headers=(("location", redirects[path]),))
        if path == "/gone":
            return respond(request, b"no such page", status=404, headers=(HTML,))
        if path == "/busy":
            return respond(request, status=503, headers=(("retry-after", "120"),))
        if path == "/versioned":
            return respond(request, b"version 1", headers=(HTML, ("etag", ETAG), ("last-modified", MODIFIED)))
        if path == "/dated":
            return respond(request, b"dated", headers=(HTML, ("last-modified", MODIFIED)))
        if path == "/long":
            return respond(request, LONG, headers=(HTML,))
        if path == "/announced":
            return respond(request, b"x", headers=(HTML, ("content-length", "99999999")))
        if path == "/headers":
            return respond(request, b"x", headers=tuple((f"x-{number}", "y") for number in range(30)))
        if path == "/film":
            return respond(request, b"film", headers=(("content-type", "video/mp4"),))
        return respond(request, f"page {path}".encode(), headers=(HTML,))


@dataclass
class Place:
    """A transport and the site behind it."""

    transport: Transport
    site: Site

    def get(self, path: str, **more: object) -> Result:
        return self.send(FetchRequest(href=self.site.base + path, **more))[0]  # type: ignore[arg-type]

    def send(self, *requests: FetchRequest) -> list[Result]:
        results: dict[int, Result] = {}
        for number, request in enumerate(requests):
            self.transport.submit(request, lambda result, number=number: _once(results, number, result))  # type: ignore[misc]
        until = time.monotonic() + 20
        while self.transport.in_flight:
            self.transport.step(0.5)
            assert time.monotonic() < until
        return [results[number] for number in range(len(requests))]


def _once(results: dict[int, Result], number: int, result: Result) -> None:
    assert number not in results, "answered twice"
    results[number] = result


def _over_http(_folder: Path) -> Iterator[Place]:
    site = Site("")

    def answer(seen: Seen) -> bytes:
        headers = seen.headers
        request = FetchRequest(
            href=f"http://{seen.host}{seen.path}",
            method=seen.method,
            etag=headers.get("if-none-match", ""),
            last_modified=headers.get("if-modified-since", ""),
        )
        page = site.respond(request)
        body = gzip.compress(page.body) if len(page.body) > 200 else page.body
        lines = [f"HTTP/1.1 {page.status} x", *(f"{name}: {value}" for name, value in page.headers)]
        if len(page.body) > 200:
            lines.append("content-encoding: gzip")
        if not page.header("content-length") and page.status != 304:
            lines.append(f"content-length: {len(body)}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + (b"" if seen.method == "HEAD" else body)

    with Server(answer) as server:
        site.base = f"http://site.test:{server.port}"
        yield Place(CurlTransport(SETTINGS), site)


def _in_process(_folder: Path) -> Iterator[Place]:
    site = Site("http://site.test")
    yield Place(InProcessTransport(SETTINGS, site.respond), site)


def _from_archive(folder: Path) -> Iterator[Place]:
    site = Site("http://site.test")
    wide = Settings(guard=SETTINGS.guard)
    source = Place(InProcessTransport(wide, site.respond), site)
    archive = WarcArchive([folder])
    archive.put([warc_record.encode(source.get(path)) for path in PATHS])
    archive.sync()
    archive.close()
    site.asked.clear()
    yield Place(ReplayTransport(SETTINGS, WarcArchive([folder], read_only=True)), site)


TRANSPORTS = {"libcurl": _over_http, "in-process": _in_process, "replay": _from_archive}


@pytest.fixture(params=TRANSPORTS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    for made in TRANSPORTS[request.param](tmp_path):
        yield made
        made.transport.close()


def _page(result: Result) -> Page:
    assert isinstance(result, Page), result
    return result


def _failure(result: Result) -> Failure:
    assert isinstance(result, Failure), result
    return result


def test_a_page_as_the_server_sent_it(place: Place) -> None:
    before = time.time()
    page = _page(place.get("/page/1"))
    assert (page.status, page.body, page.content_type) == (200, b"page /page/1", "text/html")
    assert page.url == page.final_url == place.site.base + "/page/1"
    assert page.hops == () and not page.truncated and not page.findings
    assert before - 60 < page.fetched_at <= time.time()
    assert 0.0 <= page.seconds < 20.0 and page.wire_bytes > len(page.body)


def test_an_error_status_is_a_failure(place: Place) -> None:
    gone, busy = _failure(place.get("/gone")), _failure(place.get("/busy"))
    assert (gone.kind, gone.status, gone.transient, gone.message) == ("status", 404, False, "HTTP 404")
    assert (busy.kind, busy.status, busy.transient, busy.retry_after) == ("status", 503, True, 120.0)
    assert [finding.code for finding in gone.findings] == ["fetch-status"]


def test_a_redirect_is_returned_as_it_is(place: Place) -> None:
    page = _page(place.get("/moved"))
    assert page.status == 301
    assert [(hop.status, hop.location) for hop in page.hops] == [(301, place.site.base + "/")]


def test_redirects_are_followed_hop_by_hop_if_the_request_allows_it(place: Place) -> None:
    page = _page(place.get("/chain/0", redirects=5))
    assert (page.status, page.body) == (200, b"page /")
    assert (page.url, page.final_url) == (place.site.base + "/chain/0", place.site.base + "/")
    assert [hop.url.removeprefix(place.site.base) for hop in page.hops] == ["/chain/0", "/chain/1", "/chain/2"]


def test_redirects_that_are_not_followed(place: Place) -> None:
    base = place.site.base
    assert _failure(place.get("/chain/0", redirects=2)).kind == "redirects"
    assert _failure(place.get("/circle", redirects=5)).kind == "redirects"
    assert _failure(place.get("/to-ftp", redirects=5)).kind == "guard"
    vetoed = _failure(
        place.get("/chain/0", redirects=5, allow_hop=lambda url: "no" if url == base + "/chain/2" else None)
    )
    assert vetoed.kind == "scope" and not vetoed.transient
    assert [hop.location for hop in vetoed.hops] == [base + "/chain/1", base + "/chain/2"]


@pytest.mark.parametrize(
    ("path", "validators", "status"),
    [
        ("/versioned", {"etag": ETAG}, 304),
        ("/versioned", {"etag": f"W/{ETAG}"}, 304),
        ("/versioned", {"etag": '"v0"'}, 200),
        ("/versioned", {"etag": '"v0"', "last_modified": MODIFIED}, 200),
        ("/dated", {"last_modified": MODIFIED}, 304),
        ("/dated", {"last_modified": "Mon, 09 Nov 2026 10:00:00 GMT"}, 200),
        ("/page/1", {"etag": ETAG}, 200),
    ],
)
def test_a_conditional_request(place: Place, path: str, validators: dict[str, str], status: int) -> None:
    page = _page(place.get(path, **validators))
    assert page.status == status
    assert bool(page.body) == (status == 200)


def test_a_body_is_cut_after_the_limit_on_decoded_bytes(place: Place) -> None:
    page = _page(place.get("/long"))
    assert page.body == LONG[:1000] and page.truncated
    assert [finding.code for finding in page.findings] == ["fetch-cut"]
    assert _page(place.get("/long", max_bytes=100)).body == LONG[:100]
    assert _page(place.get("/long", max_bytes=5000)).body == LONG


def test_other_limits(place: Place) -> None:
    assert _failure(place.get("/announced")).kind == "too-large"
    assert _failure(place.get("/headers")).kind == "headers"
    unwanted = _failure(place.get("/film", wanted=lambda kind: not kind.startswith("video/")))
    assert unwanted.kind == "unwanted" and not unwanted.transient
    assert _page(place.get("/film")).body == b"film"


def test_a_sink_takes_the_body(place: Place) -> None:
    blocks: list[bytes] = []
    assert _page(place.get("/long", max_bytes=5000, sink=blocks.append)).body == b""
    assert b"".join(blocks) == LONG


def test_head_has_no_body(place: Place) -> None:
    page = _page(place.get("/page/2", method="HEAD"))
    assert (page.status, page.body) == (200, b"")


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://[::1]/", "http://inside.test/", "ftp://site.test/"])
def test_a_refused_address_is_never_asked(place: Place, url: str) -> None:
    failure = _failure(place.send(FetchRequest(href=url))[0])
    assert failure.kind == "guard" and not failure.transient
    assert place.site.asked == []


def test_a_redirect_to_a_refused_address_is_never_asked(place: Place) -> None:
    failure = _failure(place.get("/to-inside", redirects=5))
    assert failure.kind == "guard" and "10.0.0.1" in failure.message
    assert "http://inside.test/secret" not in place.site.asked


def test_a_login_in_a_link_is_dropped(place: Place) -> None:
    href = place.site.base.replace("http://", "http://user:password@") + "/page/3"
    page = _page(place.send(FetchRequest(href=href))[0])
    assert (page.url, page.final_url) == (href, place.site.base + "/page/3")


def test_no_request_begins_early(place: Place) -> None:
    at = time.time() + 0.3
    page = _page(place.get("/page/4", not_before=at))
    assert page.body == b"page /page/4"
    assert time.time() >= at


def test_a_request_that_would_outlast_its_lease_is_not_sent(place: Place) -> None:
    failure = _failure(place.get("/page/6", expires=time.time() + 5.0))
    assert failure.kind == "timeout" and failure.transient
    assert place.site.asked == []


def test_nothing_is_sent_when_the_lease_is_over(place: Place) -> None:
    failure = _failure(place.get("/page/6", send_before=time.time() - 0.1))
    assert failure.is_unsent and failure.transient
    assert place.site.asked == []
    assert _page(place.get("/page/6", send_before=time.time() + 5.0)).status == 200


def test_each_request_is_answered_exactly_once_from_within_step(place: Place) -> None:
    requests = [FetchRequest(href=place.site.base + path, redirects=3) for path in PATHS * 3]
    inside = False
    answered: list[str] = []

    def done(result: Result) -> None:
        assert inside
        answered.append(result.url)

    for request in requests:
        place.transport.submit(request, done)
    assert place.transport.in_flight == len(requests)
    ended = 0
    while place.transport.in_flight:
        inside = True
        ended += place.transport.step(0.5)
        inside = False
    assert ended == len(requests)
    inside = True
    assert place.transport.step(0.0) == 0
    assert sorted(answered) == sorted(request.href for request in requests)


def test_an_answer_may_submit_the_next_request(place: Place) -> None:
    pages: list[str] = []

    def done(result: Result) -> None:
        pages.append(result.url)
        if len(pages) < 5:
            place.transport.submit(FetchRequest(href=f"{place.site.base}/page/{len(pages)}"), done)

    place.transport.submit(FetchRequest(href=place.site.base + "/page/0"), done)
    while place.transport.in_flight:
        place.transport.step(0.5)
    assert pages == [f"{place.site.base}/page/{number}" for number in range(5)]


def test_close_drops_what_is_in_flight(place: Place) -> None:
    answered: list[Result] = []
    for number in range(5):
        place.transport.submit(FetchRequest(href=f"{place.site.base}/page/{number}"), answered.append)
    later = FetchRequest(href=place.site.base + "/page/9", not_before=time.time() + 60.0)
    place.transport.submit(later, answered.append)
    place.transport.close()
    assert place.transport.in_flight == 0
    assert answered == []


def test_wake_ends_a_step_early(place: Place) -> None:
    place.transport.submit(
        FetchRequest(href=place.site.base + "/", not_before=time.time() + 60.0), lambda _result: None
    )
    threading.Timer(0.1, place.transport.wake).start()
    start = time.monotonic()
    assert place.transport.step(30.0) == 0
    assert time.monotonic() - start < 15.0
