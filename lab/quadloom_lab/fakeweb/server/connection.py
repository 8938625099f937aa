"""From request bytes to response bytes: the protocol, the response cache and the request log of the server."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import OrderedDict
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

from isal import isal_zlib

from quadloom_lab.fakeweb.exchange import FakeRequest, FakeResponse
from quadloom_lab.fakeweb.server.counters import ServerCounters
from quadloom_lab.fakeweb.web import FakeWeb

MAX_HEAD = 64 * 1024
_FLUSH_SECONDS = 0.01
_PACKED = ("image/png", "application/pdf", "application/gzip")  # gzip would only make these longer
_NONE = b""


class RawResponse(NamedTuple):
    """A response ready to send. `head` ends with the blank line."""

    head: bytes
    body: bytes
    status: int
    delay: float
    etag: str
    last_modified: str


class Responder:
    """Answers for all connections of one server process."""

    def __init__(self, web: FakeWeb, counters: ServerCounters, log: str, cache_mib: int) -> None:
        self._web = web
        self._counters = counters
        self.worker = 0  # which counters to write; set after the fork
        self._cache: OrderedDict[tuple[bytes, bytes, bool], RawResponse] = OrderedDict()
        self._cache_left = self._cache_bytes = cache_mib << 20
        self._attempts: dict[tuple[bytes, bytes], int] = {}
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) if log else -1
        self._lines: list[str] = []
        self._dirty = False
        self._requests = 0
        self._applied = counters.state()

    def reply(
        self, target: bytes, headers: dict[bytes, bytes], address: str, method: str, connection: int
    ) -> RawResponse:
        if self._counters.state() != self._applied:
            self._apply_state()
        host = headers.get(b"host", _NONE)
        key = (host, target, b"gzip" in headers.get(b"accept-encoding", _NONE))
        found = self._cache.get(key)
        if found is None:
            found = self._make(key, headers)
        else:
            self._cache.move_to_end(key)
        if found.status == 200 and (b"if-none-match" in headers or b"if-modified-since" in headers):
            found = _conditional(found, headers)
        self._record(host, target, headers, found.status, address, method, connection)
        return found

    def prerender(self) -> int:
        """Fill the cache with gzip responses of numbered pages, host by host in turn, until it is full.

        For benchmarks: a first request costs the server about 1 ms of CPU, a cached one 0.03 to 0.08 ms. Called before
        the server forks, so that its processes share the memory. Returns the number of pages that are ready.
        """
        layout = self._web.layout
        headers = {b"accept-encoding": b"gzip"}
        for item in range(max(host.size for host in layout.hosts)):
            for host in layout.hosts:
                if host.registry or item >= host.size:
                    continue
                key = (layout.authorities[host.index].encode(), layout.item_path(host.index, item).encode(), True)
                self._make(key, headers)
                if self._cache_left < 1 << 20:
                    return len(self._cache)
        return len(self._cache)

    def _apply_state(self) -> None:
        """The test changed the revision or the robots status: cached responses may be old."""
        self._applied = self._counters.state()
        self._web.revision, self._web.robots_status = self._applied
        self._cache.clear()
        self._cache_left = self._cache_bytes

    def _make(self, key: tuple[bytes, bytes, bool], headers: dict[bytes, bytes]) -> RawResponse:
        host, target, gzip = key
        place = (host, target)
        accept = headers.get(b"accept", _NONE).decode("latin-1")
        request = FakeRequest(
            host.decode("latin-1"), target.decode("latin-1"), accept=accept, attempt=self._attempts.get(place, 0)
        )
        answer = self._web.answer(request)
        if not answer.cacheable:
            self._attempts[place] = request.attempt + 1
        made = assemble(answer, gzip)
        size = len(made.head) + len(made.body)
        if answer.cacheable and size < self._cache_bytes:
            self._cache[key] = made
            self._cache_left -= size
            while self._cache_left < 0:
                _, old = self._cache.popitem(last=False)
                self._cache_left += len(old.head) + len(old.body)
        return made

    def _record(
        self,
        host: bytes,
        target: bytes,
        headers: dict[bytes, bytes],
        status: int,
        address: str,
        method: str,
        connection: int,
    ) -> None:
        self._requests += 1
        if not self._dirty:
            self._dirty = True
            asyncio.get_running_loop().call_later(_FLUSH_SECONDS, self.flush)
        if self._log < 0:
            return
        extra = ""
        if b"if-none-match" in headers:
            extra += f',"if_none_match":{_quoted(headers[b"if-none-match"])}'
        if b"if-modified-since" in headers:
            extra += f',"if_modified_since":{_quoted(headers[b"if-modified-since"])}'
        self._lines.append(
            f'{{"monotonic":{time.monotonic():.6f},"wall":{time.time():.6f},"host":{_quoted(host)},'
            f'"target":{_quoted(target)},"status":{status},"method":"{method}","address":"{address}",'
            f'"connection":{connection},"agent":{_quoted(headers.get(b"user-agent", _NONE))}{extra}}}\n'
        )

    def flush(self) -> None:
        """Write the log lines at once: with O_APPEND, one write of one process never mixes with another's."""
        self._dirty = False
        if self._lines:
            os.write(self._log, "".join(self._lines).encode())
            self._lines.clear()
        self._counters.count(self.worker, self._requests, time.process_time_ns())


@lru_cache(maxsize=4096)
def _quoted(value: bytes) -> str:
    return json.dumps(value.decode("latin-1"))


def assemble(answer: FakeResponse, gzip: bool) -> RawResponse:
    """Head and body as they go over the wire."""
    body = answer.body
    lines = [f"HTTP/1.1 {answer.status} {_reason(answer.status)}"]
    lines += [f"{name}: {value}" for name, value in answer.headers]
    if gzip and len(body) > 200 and not answer.header("Content-Type").startswith(_PACKED):
        body = isal_zlib.compress(body, level=1, wbits=31)
        lines += ["Content-Encoding: gzip", "Vary: Accept-Encoding"]
    lines += [f"Content-Length: {len(body)}", "\r\n"]
    head = "\r\n".join(lines).encode("latin-1")
    return RawResponse(head, body, answer.status, answer.delay, answer.header("ETag"), answer.header("Last-Modified"))


@lru_cache(maxsize=64)
def _reason(status: int) -> str:
    return HTTPStatus(status).phrase


def _conditional(found: RawResponse, headers: dict[bytes, bytes]) -> RawResponse:
    """304 if the reader has this version. RFC 9110, 13.2.2: If-None-Match takes precedence over If-Modified-Since."""
    if b"if-none-match" in headers:
        known = [tag.strip().removeprefix("W/") for tag in headers[b"if-none-match"].decode("latin-1").split(",")]
        same = bool(found.etag) and (found.etag in known or "*" in known)
    else:
        same = bool(found.last_modified) and _not_before(headers[b"if-modified-since"], found.last_modified)
    if not same:
        return found
    lines = ["HTTP/1.1 304 Not Modified"]
    lines += [
        f"{name}: {value}" for name, value in (("ETag", found.etag), ("Last-Modified", found.last_modified)) if value
    ]
    return RawResponse(
        "\r\n".join([*lines, "\r\n"]).encode("latin-1"), b"", 304, found.delay, found.etag, found.last_modified
    )


@lru_cache(maxsize=4096)
def _not_before(given: bytes, last_modified: str) -> bool:
    try:
        return parsedate_to_datetime(given.decode("latin-1")) >= parsedate_to_datetime(last_modified)
    except (TypeError, ValueError):
        return False  # RFC 9110, 13.1.3: an invalid date is ignored


class Connection(asyncio.Protocol):
    """One client connection: keep-alive, pipelining in order, GET and HEAD only."""

    _count = 0

    def __init__(self, responder: Responder, loop: asyncio.AbstractEventLoop) -> None:
        self._responder = responder
        self._loop = loop
        self._buffer = b""
        self._waiting = False  # a slow page is being sent; later requests of this connection wait
        Connection._count += 1
        self._number = Connection._count

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._address = transport.get_extra_info("sockname")[0]

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if not self._waiting:
            self._work()

    def _work(self) -> None:
        while not self._waiting:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > MAX_HEAD:
                    self._refuse(431)
                return
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            self._handle(head)

    def _handle(self, head: bytes) -> None:
        first, *rest = head.split(b"\r\n")
        words = first.split(b" ")
        if len(words) != 3 or not words[1].startswith(b"/"):
            return self._refuse(400)
        if words[0] not in (b"GET", b"HEAD"):
            return self._refuse(405)
        headers: dict[bytes, bytes] = {}
        for line in rest:
            name, _, value = line.partition(b":")
            headers[name.lower()] = value.strip()
        method = words[0].decode()
        reply = self._responder.reply(words[1], headers, self._address, method, self._number)
        out = reply.head if method == "HEAD" else reply.head + reply.body
        last = headers.get(b"connection", _NONE).lower() == b"close" or words[2] == b"HTTP/1.0"
        if reply.delay:
            self._waiting = True
            self._loop.call_later(reply.delay, self._resume, out, last)
            return None
        return self._send(out, last)

    def _resume(self, out: bytes, last: bool) -> None:
        self._waiting = False
        if not self._transport.is_closing():
            self._send(out, last)
            self._work()

    def _send(self, out: bytes, last: bool) -> None:
        self._transport.write(out)
        if last:
            self._transport.close()

    def _refuse(self, status: int) -> None:
        self._buffer = b""
        self._transport.write(
            f"HTTP/1.1 {status} {_reason(status)}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
        )
        self._transport.close()
