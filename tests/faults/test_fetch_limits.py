"""Hostile servers: each is ended by its limit, a finding says which, and the memory of the process stays bounded.

No clock judges: a test makes the one limit short that it is about, and the finding names the limit that ended it.
"""

from __future__ import annotations

import re
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator

import brotli
import msgspec
import pytest
import zstandard
from fetch_server import Seen, Server, endless, reply

from quadloom.fetching.dns import DnsLookup
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import FetchRequest, Result
from quadloom.model.page import Failure, Page
from quadloom.settings import GuardSettings, LimitSettings, PolitenessSettings, Settings

MIB = 1024 * 1024
ROOM = 48 * MIB  # what one hostile answer may add to the process, besides limits.body_bytes
HANGS = 120.0  # seconds; no busy machine takes as long, so what does hangs
LIMITS = LimitSettings(
    total_seconds=HANGS, low_speed_bytes=1000, low_speed_seconds=HANGS, connect_seconds=HANGS, dns_seconds=HANGS,
    redirects=5,
)  # fmt: skip
SLOW = msgspec.structs.replace(LIMITS, low_speed_seconds=1.0)


def settings(limits: LimitSettings = LIMITS) -> Settings:
    guard = GuardSettings(allow=["127.0.0.0/8"], hosts={"*.test": "127.0.0.1"})
    return Settings(guard=guard, limits=limits, politeness=PolitenessSettings(ip_delay=0.0))


def peak() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read())
    assert found is not None
    return int(found.group(1)) * 1024


def reset_peak() -> int:
    with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")
    return peak()


def fetch(href: str, limits: LimitSettings = LIMITS, redirects: int = 0) -> Result:
    """Fails if the process grows more than it may."""
    client = CurlTransport(settings(limits))
    results: list[Result] = []
    before = reset_peak()
    start = time.monotonic()
    client.submit(FetchRequest(href=href, redirects=redirects), results.append)
    while not results:
        client.step(0.5)
        assert time.monotonic() - start < HANGS, "the limit did not end it"
    client.close()
    assert peak() - before < ROOM + limits.body_bytes
    return results[0]


def test_a_process_that_was_stopped_between_begin_and_send_sends_nothing() -> None:
    """The address is checked when the connection is opened: from there on the clock is past the end of the lease."""
    at, client = [0.0], CurlTransport(settings(), now=lambda: at[0])
    verdict = client.guard.address_verdict

    def stopped(address: str) -> str | None:
        at[0] = 60.0
        return verdict(address)

    client.guard.address_verdict = stopped  # type: ignore[method-assign]
    results: list[Result] = []
    with Server(lambda _seen: reply(b"page")) as server:
        client.submit(FetchRequest(href=server.url("/page"), send_before=20.0), results.append)
        while not results:
            client.step(0.5)
        assert isinstance(results[0], Failure) and results[0].is_unsent and results[0].transient
        assert server.log == [], "not a byte of the request"
        client.submit(FetchRequest(href=server.url("/page"), send_before=90.0), results.append)
        while len(results) < 2:
            client.step(0.5)
        assert isinstance(results[1], Page)
    client.close()


def gzip_bomb(size: int) -> Iterator[bytes]:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    for _ in range(size // MIB):
        yield packer.compress(bytes(MIB))
    yield packer.flush()


def brotli_bomb(size: int) -> Iterator[bytes]:
    packer = brotli.Compressor(quality=3, lgwin=18)
    for _ in range(size // MIB):
        yield packer.process(bytes(MIB))
    yield packer.finish()


def zstd_bomb(size: int) -> Iterator[bytes]:
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    for _ in range(size // MIB):
        yield packer.compress(bytes(MIB))
    yield packer.flush()


BOMBS: dict[str, Callable[[int], Iterator[bytes]]] = {"gzip": gzip_bomb, "br": brotli_bomb, "zstd": zstd_bomb}


def explode(coding: str, size: int) -> Failure:
    body = b"".join(BOMBS[coding](size))
    with Server(lambda seen: reply(body, Content_Encoding=coding)) as server:
        started = time.process_time()
        result = fetch(server.url())
        assert time.process_time() - started < 1.0, "it was unpacked further than its limit"
    assert isinstance(result, Failure)
    return result


@pytest.mark.parametrize("coding", BOMBS)
def test_bomb_of_100_mib(coding: str) -> None:
    failure = explode(coding, 100 * MIB)
    assert failure.kind == "bomb" and not failure.transient
    assert failure.findings[0].code == "fetch-bomb"
    assert "limits.decode_ratio" in failure.message


@pytest.mark.slow
@pytest.mark.parametrize("coding", BOMBS)
def test_bomb_of_a_gigabyte(coding: str) -> None:
    assert explode(coding, 1024 * MIB).kind == "bomb"


def test_layers_of_codings_and_unknown_ones_are_not_opened() -> None:
    for coding in ("gzip, gzip", "gzip, br", "secret"):
        with Server(lambda seen, coding=coding: reply(b"x" * 100, Content_Encoding=coding)) as server:
            result = fetch(server.url())
        assert isinstance(result, Failure) and result.kind == "protocol" and coding in result.message


def test_endless_body_is_cut_and_marked() -> None:
    with Server(lambda seen: endless(b"<p>and so on</p>" * 4096)) as server:
        result = fetch(server.url())
    assert isinstance(result, Page) and result.truncated
    assert len(result.body) == LIMITS.body_bytes
    assert result.findings[0].code == "fetch-cut" and "limits.body_bytes" in result.findings[0].message


def test_drip_feed_is_too_slow() -> None:
    with Server(lambda seen: endless(b"x", 0.1)) as server:
        result = fetch(server.url(), SLOW)
    assert isinstance(result, Failure) and result.kind == "too-slow"
    assert "limits.low_speed" in result.message


def test_a_fast_enough_drip_meets_the_total_deadline() -> None:
    with Server(lambda seen: endless(b"x" * 500, 0.1)) as server:
        result = fetch(server.url(), msgspec.structs.replace(LIMITS, total_seconds=1.0))
    assert isinstance(result, Failure) and result.kind == "timeout"
    assert "limits.total_seconds" in result.message


def test_silence_ends_too() -> None:
    over = threading.Event()

    def never(seen: Seen) -> Iterator[bytes]:
        over.wait(HANGS)
        yield b""

    with Server(never) as server:
        result = fetch(server.url(), SLOW)
        over.set()
    assert isinstance(result, Failure) and result.kind == "too-slow"


@pytest.mark.parametrize(
    ("line", "count"),
    [(b"X-Filler: " + b"y" * 1000 + b"\r\n", 10_000), (b"A: b\r\n", 500), (b"X: " + b"z" * 70_000 + b"\r\n", 1)],
    ids=["10 MB", "500 headers", "one of 70 KB"],
)
def test_headers_without_end(line: bytes, count: int) -> None:
    def answer(seen: Seen) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n"
        for _ in range(count):
            yield line
        yield b"Content-Length: 2\r\n\r\nok"

    with Server(answer) as server:
        result = fetch(server.url())
    assert isinstance(result, Failure) and result.kind == "headers"
    assert result.findings[0].code == "fetch-headers"
    assert "limits.header_" in result.message


def test_redirect_loops_and_chains() -> None:
    def answer(seen: Seen) -> bytes:
        if seen.path.startswith("/chain/"):
            return reply(b"", "302 Found", Location=f"/chain/{int(seen.path[7:]) + 1}")
        return reply(b"", "301 Moved", Location="/b" if seen.path == "/a" else "/a")

    with Server(answer) as server:
        loop = fetch(server.url("/a"), redirects=5)
        assert server.paths() == ["/a", "/b"]
        chain = fetch(server.url("/chain/0"), redirects=5)
        assert len(server.paths()) == 2 + 6
    assert isinstance(loop, Failure) and loop.kind == "redirects" and "circle" in loop.message
    assert isinstance(chain, Failure) and chain.kind == "redirects" and "5" in chain.message


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "body",
    [
        b"zz\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhel",
        b"FFFFFFFFFFFFFFFFFF\r\nx",
        b"5\r\nhelloXX3\r\nabc\r\n0\r\n\r\n",
        b"-5\r\nx",
    ],
    ids=["no hex", "early end", "overflow", "missing line end", "negative"],
)
def test_broken_chunking(body: bytes) -> None:
    with Server(lambda seen: iter([CHUNKED + body])) as server:
        result = fetch(server.url())
    assert isinstance(result, Failure) and result.kind == "protocol"


@pytest.mark.parametrize(
    "raw",
    [b"", b"\x00\x01\x02", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
     b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!", b"<html>no header</html>"],
    ids=["nothing", "binary", "ssh", "short body", "wrong coding", "HTTP/0.9"],
)  # fmt: skip
def test_what_is_not_http(raw: bytes) -> None:
    with Server(lambda seen: iter([raw])) as server:
        result = fetch(server.url())
    assert isinstance(result, Failure) and result.kind == "protocol"


def test_a_closed_port_and_a_port_that_never_accepts() -> None:
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    result = fetch(f"http://127.0.0.1:{port}/")
    assert isinstance(result, Failure) and result.kind == "connect" and result.transient


@pytest.fixture
def stalled() -> Iterator[DnsLookup]:
    """A resolver that is silent until the test is over."""
    over = threading.Event()

    def lookup(name: str) -> list[str]:
        over.wait(HANGS)
        return ["127.0.0.1"]

    yield lookup
    over.set()


def test_a_stalled_name_holds_up_nobody_else(stalled: DnsLookup) -> None:
    client = CurlTransport(settings(), lookup=stalled)
    results: list[Result] = []
    with Server(lambda seen: reply(b"ok")) as server:
        for number in range(30):
            client.submit(FetchRequest(href=server.url("/", f"stalled{number}.org")), results.append)
        client.submit(FetchRequest(href=server.url("/", "known.test")), results.append)
        while not results:
            client.step(0.5)
        assert isinstance(results[0], Page), "a host whose address is known goes on at once"
        assert client.in_flight == 30
    client.close()


def test_stalled_names_end_together(stalled: DnsLookup) -> None:
    client = CurlTransport(settings(msgspec.structs.replace(LIMITS, dns_seconds=0.5)), lookup=stalled)
    results: list[Result] = []
    for number in range(30):
        client.submit(FetchRequest(href=f"http://stalled{number}.org/"), results.append)
    started = time.monotonic()
    while client.in_flight:
        client.step(0.5)
        assert time.monotonic() - started < HANGS
    client.close()
    assert len(results) == 30
    for result in results:
        assert isinstance(result, Failure) and result.kind == "dns" and "0.5 s" in result.message


def test_hundred_hostile_answers_at_once_stay_within_memory() -> None:
    body = b"".join(gzip_bomb(100 * MIB))

    def answer(seen: Seen) -> bytes | Iterator[bytes]:
        return reply(body, Content_Encoding="gzip") if int(seen.path[1:]) % 2 else endless(b"x", 0.05)

    client = CurlTransport(settings(SLOW))
    results: list[Result] = []
    before = reset_peak()
    with Server(answer) as server:
        for number in range(100):
            client.submit(FetchRequest(href=server.url(f"/{number}", f"h{number}.test")), results.append)
        while client.in_flight:
            client.step(0.5)
    client.close()
    assert sorted({result.kind for result in results if isinstance(result, Failure)}) == ["bomb", "too-slow"]
    assert len(results) == 100
    assert peak() - before < 150 * MIB
