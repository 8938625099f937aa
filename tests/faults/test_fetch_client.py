"""The client against servers that behave: what is sent, what comes back, which connections are used."""

from __future__ import annotations

import gc
import gzip
import shutil
import ssl
import subprocess
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import brotli
import pytest
import zstandard
from fetch_server import Seen, Server, reply

from quadloom.documents.archives.content_coding import BodyDecoder
from quadloom.errors import FetchError
from quadloom.fetching.http.documents import DocumentFetcher, fetch_one
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import FetchRequest, Result
from quadloom.model.page import Failure, Page
from quadloom.settings import CrawlSettings, GuardSettings, LimitSettings, PolitenessSettings, Settings


def settings(**limits: float) -> Settings:
    return Settings(
        crawl=CrawlSettings(contact="bot@example.org"),
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts={"*.test": "127.0.0.1"}),
        limits=LimitSettings(**limits),  # type: ignore[arg-type]
        politeness=PolitenessSettings(ip_delay=0.0),
    )


def run(client: CurlTransport, *requests: FetchRequest) -> list[Result]:
    results: dict[int, Result] = {}
    for number, request in enumerate(requests):
        client.submit(request, partial(results.__setitem__, number))
    while client.in_flight:
        client.step(1.0)
    return [results[number] for number in range(len(requests))]


def test_who_we_are_and_what_we_would_like() -> None:
    with Server(lambda seen: reply(b"x")) as server, DocumentFetcher(settings()) as transport:
        page = transport.fetch_one(server.url("/a?b=c", "www.test"))
        headers = server.log[0].headers
        assert page.body == b"x" and page.status == 200 and page.address == "127.0.0.1"
        assert headers["host"] == f"www.test:{server.port}"
        assert headers["user-agent"].startswith("Quadloom/") and "(+bot@example.org)" in headers["user-agent"]
        assert headers["from"] == "bot@example.org"
        assert headers["accept-encoding"] == "gzip, deflate, br, zstd"
        accept = headers["accept"]
        assert accept.startswith("text/turtle") and accept.index("text/html") < accept.index("application/ld+json")
        assert "cookie" not in headers and "authorization" not in headers


@pytest.mark.parametrize("coding", ["", "gzip"])
def test_bodies_are_let_go_of_without_the_garbage_collector(coding: str) -> None:
    """It comes late: bodies and decoders that waited for it made the fetch process twice as large."""
    body = gzip.compress(b"x" * 50_000) if coding else b"x" * 50_000
    headers = {"content_encoding": coding} if coding else {}
    with Server(lambda seen: reply(body, **headers)) as server:
        client = CurlTransport(settings())
        gc.collect()
        before = {id(thing) for thing in gc.get_objects() if isinstance(thing, BodyDecoder)}  # of other tests' clients
        gc.disable()
        try:
            results = run(client, *(FetchRequest(href=server.url(f"/{n}")) for n in range(20)))
            left = [thing for thing in gc.get_objects() if isinstance(thing, BodyDecoder) and id(thing) not in before]
        finally:
            gc.enable()
            client.close()
    assert all(isinstance(result, Page) and len(result.body) == 50_000 for result in results)
    assert left == []


def test_login_in_a_link_is_not_used() -> None:
    with Server(lambda seen: reply(b"x")) as server:
        fetch_one(f"http://user:secret@127.0.0.1:{server.port}/", settings())
        assert "authorization" not in server.log[0].headers


@pytest.mark.parametrize(
    ("coding", "pack"),
    [("gzip", gzip.compress), ("br", brotli.compress), ("zstd", zstandard.ZstdCompressor().compress), ("", bytes)],
)
def test_codings_are_decoded(coding: str, pack) -> None:  # type: ignore[no-untyped-def]
    body = b"<p>hello</p>" * 5000
    headers = {"Content_Encoding": coding} if coding else {}
    with Server(lambda seen: reply(pack(body), **headers)) as server:
        page = fetch_one(server.url(), settings())
        assert page.body == body
        assert not page.truncated
        assert (page.wire_bytes < len(body)) is bool(coding)


def test_validators_are_sent_and_304_comes_back() -> None:
    def answer(seen: Seen) -> bytes:
        return b'HTTP/1.1 304 Not Modified\r\nETag: "v1"\r\n\r\n'

    with Server(answer) as server, closing(CurlTransport(settings())) as transport:
        modified = "Mon, 01 Jan 2024 00:00:00 GMT"
        (page,) = run(transport, FetchRequest(href=server.url(), etag='"v1"\r\nX-Evil: 1', last_modified=modified))
        assert isinstance(page, Page) and page.status == 304 and page.body == b""
        assert server.log[0].headers["if-none-match"] == '"v1"X-Evil: 1'
        assert "x-evil" not in server.log[0].headers
        assert server.log[0].headers["if-modified-since"] == "Mon, 01 Jan 2024 00:00:00 GMT"


def test_connections_are_kept_and_headers_do_not_leak_between_requests() -> None:
    with Server(lambda seen: reply(seen.path.encode())) as server:
        client = CurlTransport(settings())
        for number in range(20):
            etag = f'"{number}"' if number % 2 else ""
            (page,) = run(client, FetchRequest(href=server.url(f"/{number}"), etag=etag))
            assert isinstance(page, Page) and page.body == f"/{number}".encode()
        client.close()
        assert server.connections == 1
        assert [bool(seen.headers.get("if-none-match")) for seen in server.log] == [False, True] * 10


def test_many_hosts_at_once_and_the_socket_limit() -> None:
    with Server(lambda seen: reply(seen.host.encode())) as server:
        client = CurlTransport(settings(connections=8))
        results = run(client, *(FetchRequest(href=server.url("/", f"h{n}.test")) for n in range(100)))
        client.close()
        assert [result.body for result in results if isinstance(result, Page)] == [
            f"h{n}.test:{server.port}".encode() for n in range(100)
        ]


def test_urgent_requests_pass_waiting_ones() -> None:
    gate = threading.Event()

    def answer(seen: Seen) -> bytes:
        gate.wait(5)
        return reply(b"x")

    with Server(answer) as server:
        client = CurlTransport(settings(connections=1))
        for number, priority in enumerate((3, 4, 3, 0)):
            client.submit(FetchRequest(href=server.url(f"/{number}"), priority=priority), lambda _: None)
        client.step(0.05)
        gate.set()
        while client.in_flight:
            client.step(1.0)
        client.close()
        assert server.paths() == ["/0", "/3", "/2", "/1"]


def test_redirects_are_handed_back_or_followed_hop_by_hop() -> None:
    def answer(seen: Seen) -> bytes:
        if seen.path == "/a":
            return reply(b"", "303 See Other", Location="/b")
        return reply(b"here")

    with Server(answer) as server:
        client = CurlTransport(settings())
        back, followed = run(
            client, FetchRequest(href=server.url("/a")), FetchRequest(href=server.url("/a"), redirects=3)
        )
        client.close()
    assert isinstance(back, Page) and back.status == 303 and back.hops[0].location == server.url("/b")
    assert isinstance(followed, Page) and followed.body == b"here" and followed.final_url == server.url("/b")
    assert followed.url == server.url("/a")


def test_a_veto_stops_a_redirect() -> None:
    with (
        Server(lambda seen: reply(b"", "302 Found", Location="/out")) as server,
        DocumentFetcher(settings()) as transport,
    ):
        with pytest.raises(FetchError) as caught:
            transport.fetch_one(server.url("/in"), allow_hop=lambda href: "outside" if href.endswith("/out") else None)
        assert caught.value.kind == "scope"
        assert server.paths() == ["/in"]


def test_post_is_sent_once_and_the_next_get_is_a_get() -> None:
    with Server(lambda seen: reply(seen.body)) as server, DocumentFetcher(settings()) as transport:
        page = transport.fetch_one(
            server.url(), method="POST", payload=b"\x00data", headers=(("Content-Type", "application/json"),)
        )
        assert page.body == b"\x00data"
        assert transport.fetch_one(server.url("/next")).status == 200
        head = transport.fetch_one(server.url("/head"), method="HEAD")
        assert head.status == 200 and head.body == b""
        assert [seen.method for seen in server.log] == ["POST", "GET", "HEAD"]
        assert server.log[0].headers["content-type"] == "application/json"


def test_errors_become_failures_with_the_servers_wish() -> None:
    with Server(lambda seen: reply(b"no", "503 Busy", Retry_After="17")) as server:
        client = CurlTransport(settings())
        (failure,) = run(client, FetchRequest(href=server.url()))
        client.close()
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.status, failure.transient, failure.retry_after) == ("status", 503, True, 17.0)
    assert failure.findings[0].code == "fetch-status"


def test_unwanted_and_announced_large_bodies_are_cut_after_the_headers() -> None:
    sent: list[int] = []

    def answer(seen: Seen):  # type: ignore[no-untyped-def]
        kind = "video/mp4" if seen.path == "/video" else "text/html"
        yield f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: 100000000\r\n\r\n".encode()
        for _ in range(1500):
            yield bytes(65536)
            sent.append(65536)

    def wanted(content_type: str) -> bool:
        return content_type.startswith("text/")

    with Server(answer) as server:
        client = CurlTransport(settings())
        video, large = run(
            client,
            FetchRequest(href=server.url("/video"), wanted=wanted),
            FetchRequest(href=server.url("/large"), wanted=wanted),
        )
        client.close()
    assert isinstance(video, Failure) and video.kind in ("unwanted", "too-large")
    assert isinstance(large, Failure) and large.kind == "too-large"
    assert sum(sent) < 30_000_000
    with Server(lambda seen: reply(b"x" * 1000, Content_Type="image/png")) as server:
        client = CurlTransport(settings())
        (image,) = run(client, FetchRequest(href=server.url(), wanted=wanted))
        client.close()
    assert isinstance(image, Failure) and image.kind == "unwanted" and not image.transient


def test_long_bodies_can_be_streamed() -> None:
    blocks: list[int] = []
    with Server(lambda seen: reply(bytes(3_000_000))) as server, DocumentFetcher(settings()) as transport:
        page = transport.fetch_one(server.url(), sink=lambda block: blocks.append(len(block)), max_bytes=5_000_000)
    assert sum(blocks) == 3_000_000 and page.body == b"" and len(blocks) > 10


def test_interim_responses_folded_and_repeated_headers() -> None:
    raw = (
        b"HTTP/1.1 103 Early Hints\r\nLink: </early>; rel=preload\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nX-A: one\r\nX-A: two\r\nContent-Length: 2\r\n\r\nok"
    )
    with Server(lambda seen: raw) as server:
        page = fetch_one(server.url(), settings())
    assert page.body == b"ok" and page.status == 200
    assert [value for name, value in page.headers if name == "x-a"] == ["one", "two"]
    assert page.header("link") == ""


def test_a_dead_address_gives_way_to_the_next() -> None:
    configuration = Settings(guard=GuardSettings(allow=["127.0.0.0/8"]), politeness=PolitenessSettings(ip_delay=0.0))
    with Server(lambda seen: reply(b"alive")) as server:
        client = CurlTransport(configuration, lookup=lambda name: ["127.0.0.9", "127.0.0.1"])
        first, second = run(client, FetchRequest(href=server.url("/", "two.test"))), None
        second = run(client, FetchRequest(href=server.url("/again", "two.test")))
        client.close()
    for (page,) in (first, second):
        assert isinstance(page, Page) and page.address == "127.0.0.1"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command makes the test certificate")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=tls.test", "-addext", "subjectAltName=DNS:tls.test"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


def test_certificates_are_verified_for_the_name_not_the_address(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    class TlsServer(Server):  # type: ignore[misc]
        def _serve(self, connection, number):  # type: ignore[no-untyped-def]
            try:
                super()._serve(context.wrap_socket(connection, server_side=True), number)
            except OSError:
                connection.close()

    with TlsServer(lambda seen: reply(b"secret")) as server:
        trusting = CurlTransport(settings(), ca_file=str(certificate / "cert.pem"))
        doubting = CurlTransport(settings())
        good, wrong_name = run(
            trusting,
            FetchRequest(href=f"https://tls.test:{server.port}/"),
            FetchRequest(href=f"https://other.test:{server.port}/"),
        )
        (unknown,) = run(doubting, FetchRequest(href=f"https://tls.test:{server.port}/"))
        trusting.close()
        doubting.close()
        assert isinstance(good, Page) and good.body == b"secret"
        assert isinstance(wrong_name, Failure) and wrong_name.kind == "tls" and not wrong_name.transient
        assert isinstance(unknown, Failure) and unknown.kind == "tls"
        assert len(server.log) == 1
