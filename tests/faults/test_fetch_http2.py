"""HTTP/2 over TLS: negotiated, multiplexed within politeness, and every limit and failure as over HTTP/1.1."""

from __future__ import annotations

import gzip
import itertools
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("h2", reason="the package h2 (a part of the `dev` extra) is the server's side")

from h2_server import H2Server, Stream, make_certificate

from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import FetchRequest, Result
from quadloom.fetching.unit import open_fetcher
from quadloom.model.page import Failure, Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, GuardSettings, LimitSettings, PolitenessSettings, Settings

REFUSED_STREAM, INTERNAL_ERROR, ENHANCE_YOUR_CALM, NO_ERROR = 7, 2, 11, 0


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("the openssl command makes the test certificate")
    return make_certificate(tmp_path_factory.mktemp("h2"), "h2.test", "other.test")


def settings(certificate: Path, *, politeness: PolitenessSettings | None = None, **limits: float) -> Settings:
    return Settings(
        crawl=CrawlSettings(contact="bot@example.org"),
        guard=GuardSettings(
            allow=["127.0.0.0/8"], hosts={"*.test": "127.0.0.1"}, authorities=str(certificate / "cert.pem")
        ),
        limits=LimitSettings(**limits),  # type: ignore[arg-type]
        politeness=politeness or PolitenessSettings(ip_delay=0.0),
    )


def run(chosen: Settings, *requests: FetchRequest) -> list[Result]:
    client = CurlTransport(chosen)
    results: dict[int, Result] = {}
    for number, request in enumerate(requests):
        client.submit(request, partial(results.__setitem__, number))
    try:
        while client.in_flight:
            client.step(1.0)
    finally:
        client.close()
    return [results[number] for number in range(len(requests))]


def page(stream: Stream) -> None:
    stream.head(200, ("content-type", "text/html"), ("etag", '"1"'))
    stream.body([b"<title>", stream.asked.path.encode(), b"</title>"])


def test_it_is_negotiated_and_streams_share_one_connection(certificate: Path) -> None:
    with H2Server(certificate, page) as server:
        first = run(settings(certificate), *(FetchRequest(href=server.url(f"/{n}")) for n in range(12)))
        assert server.protocols == ["h2"] * server.connections
        assert server.connections == 1
    for number, result in enumerate(first):
        assert isinstance(result, Page)
        assert result.http_version == "2"
        assert result.status == 200
        assert result.body == b"<title>/%d</title>" % number
        assert result.header("etag") == '"1"'


def test_names_of_one_certificate_and_address_keep_their_own_connections(certificate: Path) -> None:
    """A connection that served two names would escape the check of the second name's address."""
    with H2Server(certificate, page) as server:
        results = run(
            settings(certificate), *(FetchRequest(href=server.url("/", host)) for host in ("h2.test", "other.test"))
        )
        assert all(isinstance(result, Page) for result in results)
        assert server.connections == 2
        assert {(asked.connection, asked.host.partition(":")[0]) for asked in server.log} in (
            {(1, "h2.test"), (2, "other.test")}, {(2, "h2.test"), (1, "other.test")},
        )  # fmt: skip


def test_an_unknown_authority_is_refused_and_the_advice_names_the_setting(certificate: Path) -> None:
    strict = settings(certificate)
    strict = Settings(guard=GuardSettings(allow=strict.guard.allow, hosts=strict.guard.hosts))
    with H2Server(certificate, page) as server:
        (result,) = run(strict, FetchRequest(href=server.url("/")))
    assert isinstance(result, Failure)
    assert result.kind == "tls"
    assert "guard.authorities" in result.findings[0].advice
    assert not server.log


def test_the_pace_of_a_host_holds_over_one_connection(certificate: Path) -> None:
    """Multiplexing makes asking at once easy; the delay still stands between two requests."""
    delay = 0.25

    def answer(stream: Stream) -> None:
        if stream.asked.path == "/robots.txt":
            stream.head(404, end=True)
        else:
            page(stream)

    chosen = settings(certificate, politeness=PolitenessSettings(delay=delay, ip_delay=delay, adaptive=0.0))
    with H2Server(certificate, answer) as server:
        host = f"h2.test:{server.port}"
        fetcher = open_fetcher(chosen)
        fetcher.submit([Visit(server.url(f"/{n}"), server.url(f"/{n}"), host, n) for n in range(4)])
        brought = []
        while fetcher.in_flight:
            brought += fetcher.step(0.5)
        fetcher.close()
        assert all(isinstance(fetched.result, Page) for fetched in brought)
        assert server.log[0].path == "/robots.txt"
        gaps = [later.at - earlier.at for earlier, later in itertools.pairwise(server.log)]
        assert min(gaps) > delay * 0.8
        assert server.busiest == {1: 1}


def test_a_server_that_allows_few_streams_is_obeyed(certificate: Path) -> None:
    def slowly(stream: Stream) -> None:
        stream.head(200)
        time.sleep(0.05)
        stream.body([b"x"])

    with H2Server(certificate, slowly, streams=2) as server:
        # The limit stands in the server's SETTINGS, so it is known once the first answer has come on a connection.
        client = CurlTransport(settings(certificate))
        results: list[Result] = []
        client.submit(FetchRequest(href=server.url("/first")), results.append)
        while client.in_flight:
            client.step(1.0)
        for number in range(8):
            client.submit(FetchRequest(href=server.url(f"/{number}")), results.append)
        while client.in_flight:
            client.step(1.0)
        client.close()
        assert [result for result in results if isinstance(result, Failure)] == []
        assert server.busiest[1] == 2


def endless() -> Iterator[bytes]:
    while True:
        yield b"for ever and ever " * 800


def test_an_endless_body_is_cut_and_its_stream_reset_while_others_go_on(certificate: Path) -> None:
    def answer(stream: Stream) -> None:
        stream.head(200)
        stream.body(endless() if stream.asked.path == "/endless" else [b"short"])

    with H2Server(certificate, answer) as server:
        cut, short = run(
            settings(certificate, body_bytes=200_000),
            FetchRequest(href=server.url("/endless")),
            FetchRequest(href=server.url("/short")),
        )
        assert isinstance(cut, Page)
        assert cut.truncated
        assert len(cut.body) == 200_000
        assert cut.findings[0].code == "fetch-cut"
        assert isinstance(short, Page)
        assert short.body == b"short"


def test_bombs_and_large_bodies_end_at_their_limits(certificate: Path) -> None:
    bomb = gzip.compress(bytes(64 << 20))

    def answer(stream: Stream) -> None:
        if stream.asked.path == "/bomb":
            stream.head(200, ("content-encoding", "gzip"))
            stream.body([bomb])
        elif stream.asked.path == "/large":
            stream.head(200, ("content-length", str(1 << 40)))
            stream.body(endless())
        else:
            stream.head(200, *((f"x-{number}", "y" * 100) for number in range(120)))
            stream.body([b"x"])

    with H2Server(certificate, answer) as server:
        results = run(
            settings(certificate), *(FetchRequest(href=server.url(path)) for path in ("/bomb", "/large", "/many"))
        )
    assert [result.kind for result in results if isinstance(result, Failure)] == ["bomb", "too-large", "headers"]


@pytest.mark.parametrize("where", ["/silent", "/half"])
def test_the_deadline_counts_for_each_stream(certificate: Path, where: str) -> None:
    def answer(stream: Stream) -> None:
        if stream.asked.path == "/half":
            stream.head(200)
            stream.body([b"half"], end=False)
        elif stream.asked.path == "/quick":
            page(stream)

    with H2Server(certificate, answer) as server:
        started = time.monotonic()
        late, quick = run(
            settings(certificate, total_seconds=1.0),
            FetchRequest(href=server.url(where)),
            FetchRequest(href=server.url("/quick")),
        )
        assert time.monotonic() - started < 20
    assert isinstance(late, Failure)
    assert (late.kind, late.transient) == ("timeout", True)
    assert isinstance(quick, Page)


@pytest.mark.parametrize("code", [INTERNAL_ERROR, ENHANCE_YOUR_CALM])
@pytest.mark.parametrize("begun", [False, True])
def test_a_reset_stream_is_a_failure_that_may_be_tried_again(certificate: Path, code: int, begun: bool) -> None:
    def answer(stream: Stream) -> None:
        if stream.asked.path == "/ok":
            page(stream)
            return
        if begun:
            stream.head(200)
            stream.body([b"some"], end=False)
        stream.reset(code)

    with H2Server(certificate, answer) as server:
        broken, fine = run(
            settings(certificate), FetchRequest(href=server.url("/broken")), FetchRequest(href=server.url("/ok"))
        )
        asked = [one.path for one in server.log]
    assert isinstance(broken, Failure)
    assert (broken.kind, broken.transient) == ("protocol", True)
    assert isinstance(fine, Page)
    assert asked.count("/broken") == 1


def test_a_refused_stream_is_asked_again_a_bounded_number_of_times(certificate: Path) -> None:
    """RFC 9113 8.7: a refused request was not processed. libcurl repeats it on new connections, at most five times."""
    with H2Server(certificate, lambda stream: stream.reset(REFUSED_STREAM)) as server:
        (result,) = run(settings(certificate), FetchRequest(href=server.url("/")))
        asked = len(server.log)
    assert isinstance(result, Failure)
    assert result.transient
    assert asked <= 6


def test_go_away_ends_what_it_names_and_the_rest_is_asked_on_a_new_connection(certificate: Path) -> None:
    def answer(stream: Stream) -> None:
        if stream.asked.connection == 1 and stream.asked.stream >= 3:
            stream.go_away(NO_ERROR, 1)
        else:
            page(stream)

    with H2Server(certificate, answer) as server:
        client = CurlTransport(settings(certificate))
        results: list[Result] = []
        for number in range(3):
            client.submit(FetchRequest(href=server.url(f"/{number}")), results.append)
            while client.in_flight:
                client.step(1.0)
        client.close()
        assert server.connections >= 2
    assert isinstance(results[0], Page)
    assert isinstance(results[1], Page) or results[1].transient
    assert isinstance(results[2], Page)


@pytest.mark.parametrize("how", ["go away", "hang up"])
def test_a_connection_that_ends_under_an_answer_is_a_transient_failure(certificate: Path, how: str) -> None:
    def answer(stream: Stream) -> None:
        stream.head(200)
        stream.body([b"some"], end=False)
        if how == "go away":
            stream.go_away(INTERNAL_ERROR, 0)
        stream.hang_up()

    with H2Server(certificate, answer) as server:
        (result,) = run(settings(certificate), FetchRequest(href=server.url("/")))
    assert isinstance(result, Failure)
    assert result.kind in ("protocol", "connect")  # the latter where the client was just giving it more room
    assert result.transient
