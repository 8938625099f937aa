"""Canaries: listeners on addresses that must never be reached. Each road that a page could take to them, 0 hits."""

from __future__ import annotations

from collections.abc import Iterator

import pycurl
import pytest
from fetch_server import Seen, Server, reply

from quadloom.errors import FetchError
from quadloom.fetching.guard import Guard
from quadloom.fetching.http.curl import Transfer
from quadloom.fetching.http.documents import DocumentFetcher
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import FetchRequest, Result
from quadloom.fetching.unit import open_fetcher
from quadloom.model.page import Failure
from quadloom.model.url import Url, resolve
from quadloom.model.visit import Visit
from quadloom.settings import GuardSettings, LimitSettings, PolitenessSettings, Settings

# Only 127.0.0.2 stands for the public internet here; 127.0.0.1 is the inside of the network.
OUTSIDE = "127.0.0.2"
SETTINGS = Settings(
    guard=GuardSettings(allow=[f"{OUTSIDE}/32"], hosts={"public.test": OUTSIDE, "inside.test": "127.0.0.1"}),
    politeness=PolitenessSettings(ip_delay=0.0, delay=0.0, adaptive=0.0),
    limits=LimitSettings(total_seconds=3.0, dns_seconds=1.0),
)


@pytest.fixture
def canary() -> Iterator[Server]:
    with Server(lambda seen: reply(b"the crown jewels")) as server:
        yield server
        assert server.connections == 0, "a refused address was connected to"


def visit(href: str) -> Visit:
    url = Url.parse(href)
    return Visit(url.href, url.key, url.host, url.fingerprint)


def literals(port: int) -> list[str]:
    hosts = [
        "127.0.0.1", "127.1", "0", "0.0.0.0", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.1.",
        "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]",
        "①②⑦.0.0.1", "%31%32%37.0.0.1", "localhost", "inside.test",
    ]  # fmt: skip
    return [f"http://{host}:{port}/" for host in hosts]


def test_literals_in_all_notations_and_local_names(canary: Server) -> None:
    with DocumentFetcher(SETTINGS) as transport:
        for text in literals(canary.port):
            href = resolve(text)
            assert href is not None
            with pytest.raises(FetchError) as caught:
                transport.fetch_one(href)
            assert caught.value.kind in ("guard", "dns"), text
            assert not caught.value.transient or caught.value.kind == "dns"


def test_redirects_to_the_inside(canary: Server) -> None:
    targets = [*literals(canary.port), "file:///etc/passwd", "gopher://127.0.0.1:70/", f"//127.0.0.1:{canary.port}/"]

    def answer(seen: Seen) -> bytes:
        location = targets[int(seen.path[1:])].encode("ascii", "ignore").decode() or "x"
        return reply(b"", "302 Found", Location=location)

    with Server(answer, address=OUTSIDE) as outside, DocumentFetcher(SETTINGS) as transport:
        for number in range(len(targets)):
            with pytest.raises(FetchError) as caught:
                transport.fetch_one(outside.url(f"/{number}"))
            assert caught.value.kind in ("guard", "dns", "status", "redirects"), targets[number]
        assert len(outside.log) >= len(targets)


def test_metadata_address_is_refused_without_a_packet() -> None:
    with DocumentFetcher(SETTINGS) as transport, pytest.raises(FetchError, match="metadata") as caught:
        transport.fetch_one("http://169.254.169.254/latest/meta-data/")
    assert caught.value.kind == "guard"


def test_a_name_that_first_answers_public_then_private(canary: Server) -> None:
    answers = iter([[OUTSIDE], ["127.0.0.1"], ["127.0.0.1"]])
    asked: list[str] = []

    def lookup(name: str) -> list[str]:
        asked.append(name)
        return next(answers)

    port = canary.port
    settings = Settings(
        guard=SETTINGS.guard, politeness=SETTINGS.politeness, limits=LimitSettings(total_seconds=3.0, dns_ttl=0.0)
    )
    client = CurlTransport(settings, lookup=lookup)
    results: list[Result] = []
    for _ in range(2):
        client.submit(FetchRequest(href=f"http://rebind.org:{port}/"), results.append)
        while client.in_flight:
            client.step(0.5)
    client.close()
    first, second = results
    assert isinstance(first, Failure) and first.kind == "connect"  # nobody listens outside on that port
    assert isinstance(second, Failure) and second.kind == "guard"
    assert asked == ["rebind.org", "rebind.org"]


def test_a_mixed_answer_reaches_only_its_public_half(canary: Server) -> None:
    client = CurlTransport(SETTINGS, lookup=lambda name: ["127.0.0.1", OUTSIDE, "::1"])
    results: list[Result] = []
    client.submit(FetchRequest(href=f"http://mixed.org:{canary.port}/"), results.append)
    while client.in_flight:
        client.step(0.5)
    client.close()
    assert isinstance(results[0], Failure) and results[0].address == OUTSIDE


def test_robots_of_an_inside_host_and_robots_redirected_inside(canary: Server) -> None:
    def answer(seen: Seen) -> bytes:
        return reply(b"", "301 Moved", Location=canary.url("/robots.txt"))

    with Server(answer, address=OUTSIDE) as outside:
        fetcher = open_fetcher(SETTINGS)
        fetcher.submit([visit(canary.url("/page")), visit(outside.url("/page"))])
        fetched = []
        while fetcher.in_flight:
            fetched += fetcher.step(0.5)
        fetcher.close()
        assert [one.result.kind for one in fetched if isinstance(one.result, Failure)] == ["guard", "guard"]
        assert outside.paths() == ["/robots.txt"]


def test_posts_to_callbacks_are_guarded_too(canary: Server) -> None:
    with DocumentFetcher(SETTINGS) as transport, pytest.raises(FetchError) as caught:
        transport.fetch_one(canary.url("/hook"), method="POST", payload=b"{}")
    assert caught.value.kind == "guard"


def test_the_second_line_refuses_what_the_first_let_through(canary: Server) -> None:
    """A handle that was wrongly pinned to a refused address opens no socket."""
    guard = Guard(SETTINGS.guard)
    transfer = Transfer(SETTINGS.limits, guard.address_verdict, "")
    transfer.prepare(FetchRequest(href=canary.url()), canary.url(), "127.0.0.1", (), 2.0)
    with pytest.raises(pycurl.error):
        transfer.curl.perform()
    transfer.curl.close()


def test_the_environment_cannot_put_a_proxy_in_between(canary: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, canary.url())
    with Server(lambda seen: reply(b"direct"), address=OUTSIDE) as outside, DocumentFetcher(SETTINGS) as transport:
        assert transport.fetch_one(outside.url("/", "public.test")).body == b"direct"


def test_ports_can_be_closed() -> None:
    with Server(lambda seen: reply(b"x"), address=OUTSIDE) as outside:
        guard = GuardSettings(allow=[f"{OUTSIDE}/32"], ports=[80, 443])
        with DocumentFetcher(Settings(guard=guard)) as transport, pytest.raises(FetchError, match=r"guard\.ports"):
            transport.fetch_one(outside.url())
        assert outside.connections == 0
