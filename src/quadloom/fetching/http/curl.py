"""libcurl: a reusable handle with the response that it receives, the loop that drives all handles, and its errors.

The handle, its callbacks and its header list are created once and used for thousands of requests; a request sets only
the URL, the address and, if they differ from the last ones, the header lines. libcurl calls `list.append` for each
header line directly, without a Python frame. The headers are parsed when the first body byte arrives; that is also
the moment to cut a body that is unwanted, too large or in a coding that was not offered.

The address is pinned twice. `CONNECT_TO` sends every connection of the handle to the checked address, whatever host
name libcurl reads out of the URL, so libcurl never resolves anything. `OPENSOCKETFUNCTION` checks the address once
more at the moment of connecting, so that no forgotten option can open another connection.

The loop is libcurl's multi interface driven by epoll: the cost of a step depends on the ready sockets, not on all of
them. `curl_multi_perform` checks every handle each time; with 300 sockets, of which three are ready, that is most of
the work of a fetcher. Here libcurl names the sockets it waits for (`M_SOCKETFUNCTION`) and the time at which it has to
be called anyway (`M_TIMERFUNCTION`), and epoll does the waiting.
"""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import pycurl

from quadloom.documents.archives.content_coding import BodyDecoder, coding_of
from quadloom.fetching.http.proxy import Proxy
from quadloom.fetching.transport import TOO_LATE, FetchRequest, Headers, Refusal, is_too_late, refused_response
from quadloom.process.clock import unix_time
from quadloom.settings import LimitSettings

_HTTP_ONLY = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
_ABORT = -1  # from a write callback: not the number of bytes given, so libcurl ends the transfer
_AUTHORITIES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
_TLS_CODES = frozenset(
    getattr(pycurl, name)
    for name in (
        "E_SSL_CONNECT_ERROR", "E_PEER_FAILED_VERIFICATION", "E_SSL_CACERT", "E_SSL_CACERT_BADFILE",
        "E_SSL_CERTPROBLEM", "E_SSL_CIPHER", "E_SSL_ISSUER_ERROR", "E_SSL_INVALIDCERTSTATUS",
    )
    if hasattr(pycurl, name)
)  # fmt: skip
_TOO_LARGE = 100  # CURLE_TOO_LARGE: libcurl's own ceiling on header bytes, 300 KiB

_EVENTS = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}

_READING_SECONDS = 0.5  # of CPU, without a pause, on one connection; a body of 10 MB takes a tenth of that
_LOOK_SECONDS = 0.1

Verdict = Literal["", "cut"] | Refusal


class Transfer:
    """A handle and its state. `verdict` is "", "cut" for a body over its limit, or the failure."""

    __slots__ = (
        "_limits",
        "_lines",
        "_now",
        "_proxy",
        "_sent_lines",
        "address",
        "body",
        "certificate",
        "curl",
        "header_bytes",
        "headers",
        "http_version",
        "request",
        "status",
        "url",
        "verdict",
    )

    def __init__(
        self,
        limits: LimitSettings,
        check_address: Callable[[str], str | None],
        ca_file: str,
        proxy: Proxy | None = None,
        certificate: str = "",
        now: Callable[[], float] = unix_time,
    ) -> None:
        self._limits = limits
        self._now = now
        self._proxy = proxy
        self.certificate = certificate
        self._lines: list[bytes] = []
        self._sent_lines: tuple[str, ...] = ()
        self.body: BodyDecoder | None = None
        self.curl = _handle(limits, check_address, ca_file, self._lines, self._on_body)
        if proxy is not None:
            proxy.set_up(self.curl)
        if certificate:
            self.curl.setopt(pycurl.SSLCERT, certificate)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._may_send)
        self.clear()

    def clear(self) -> None:
        """Forget the last request, so that an idle handle holds no body."""
        if self.body is not None:
            self.body.release()
        self.request: FetchRequest | None = None
        self.url = ""
        self.address = ""
        self.status = 0
        self.headers: Headers = ()
        self.header_bytes = 0
        self.http_version = ""
        self.body = None
        self.verdict: Verdict = ""
        self._lines.clear()

    def prepare(self, request: FetchRequest, url: str, address: str, lines: tuple[str, ...], seconds: float) -> None:
        """Set up for one request to `address`, to end within `seconds`. `address` "" = the proxy finds it."""
        curl = self.curl
        self.request = request
        self.url = url
        self.address = address
        curl.setopt(pycurl.URL, url)
        if self._proxy is not None and not (address and self._proxy.pins(url)):
            curl.setopt(pycurl.CONNECT_TO, [])
        else:
            curl.setopt(pycurl.CONNECT_TO, [f"::[{address}]:" if ":" in address else f"::{address}:"])
        curl.setopt(pycurl.TIMEOUT_MS, max(1, int(seconds * 1000)))
        if lines != self._sent_lines:
            curl.setopt(pycurl.HTTPHEADER, list(lines))
            self._sent_lines = lines
        if request.method != "GET":
            self._prepare_method(request)

    def finish_headers(self) -> None:
        """At the end of a response without a decoded byte: parse the headers if nothing arrived after them, and refuse
        a body of which nothing could be decoded."""
        if self.body is None and not self.verdict:
            self._read_headers()
        body = self.body
        if body is not None and body.wire and not body.decoded and not self.verdict and body.incomplete():
            self.verdict = ("protocol", f"the body is not valid {self._coding()[:40]}")

    def _prepare_method(self, request: FetchRequest) -> None:
        if request.method == "HEAD":
            self.curl.setopt(pycurl.NOBODY, 1)
            return
        self.curl.setopt(pycurl.CUSTOMREQUEST, request.method)
        self.curl.setopt(pycurl.POSTFIELDSIZE, len(request.payload))
        self.curl.setopt(pycurl.POSTFIELDS, request.payload)

    def _may_send(self, *_connection: object) -> int:
        """libcurl's callback when the connection is made, just before the first byte of the request. Between the begin
        and this moment lie a slow handshake, or minutes in which the process was stopped."""
        if self.request is not None and is_too_late(self.request, self._now()):
            self.verdict = TOO_LATE
            return int(pycurl.PREREQFUNC_ABORT)
        return int(pycurl.PREREQFUNC_OK)

    def _on_body(self, data: bytes) -> int | None:
        """libcurl's write callback. No exception may pass through C, and nothing here raises one."""
        if self.body is None:
            self._read_headers()
            if self.verdict:
                return _ABORT
        body = self.body
        if body is None:
            return _ABORT
        if body.feed(data):
            return None
        if body.state == "cut":
            self.verdict = "cut"
        elif body.state == "bomb":
            ratio = f"more than {self._limits.decode_ratio:g} times its transferred size (limits.decode_ratio)"
            self.verdict = ("bomb", f"{body.wire} bytes decoded to {body.decoded} and counting: {ratio}")
        else:
            self.verdict = ("protocol", f"the body is not valid {self._coding()[:40]}")
        return _ABORT

    def _coding(self) -> str:
        return next((value for name, value in self.headers if name == "content-encoding"), "")

    def _read_headers(self) -> None:
        """Parse the headers, and either refuse the body or open it."""
        limits, request = self._limits, self.request
        self.header_bytes = sum(map(len, self._lines))
        self._parse_headers()
        if request is None:
            self.verdict = ("internal", "a response without a request")
            return
        self.verdict = refused_response(request, self.status, self.headers, self.header_bytes, limits) or ""
        if self.verdict:
            return
        encoding = self._coding()
        coding = coding_of(encoding) if encoding else ""
        if coding is None:
            self.verdict = ("protocol", f"content coding {encoding[:80]!r}: unknown, or more than one")
            return
        sink = request.sink if 200 <= self.status < 300 else None
        self.body = BodyDecoder(coding, request.max_bytes or limits.body_bytes, limits.decode_ratio, sink)

    def _parse_headers(self) -> None:
        """The last block of header lines: before it there may be 1xx responses."""
        pairs: list[tuple[str, str]] = []
        for line in self._lines:
            if line.startswith(b"HTTP/"):
                pairs = []
                words = line.split(None, 2)
                self.http_version = words[0][5:].decode("latin-1")
                self.status = int(words[1]) if len(words) > 1 and words[1].isdigit() else 0
                continue
            name, colon, value = line.decode("latin-1").partition(":")
            if colon:
                pairs.append((name.strip().lower(), value.strip()))
            elif pairs and line[:1] in b" \t" and line.strip():
                # obsolete line folding: RFC 9112 5.2 lets a client replace it by a space
                pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {name.strip()}")
        self.headers = tuple(pairs)


class FinishedTransfer(NamedTuple):
    """A handle, libcurl's error code (0 = success) and the text of the error."""

    curl: pycurl.Curl
    code: int
    text: str


class CurlLoop:
    """`add` handles, `step` until they come back; `remove` takes one out. `watch` adds a descriptor of the caller to
    the same wait."""

    def __init__(self, connections: int, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._epoll = select.epoll()
        self._sockets: set[int] = set()
        self._guard = _ReadingGuard(self._sockets)
        self._watched: dict[int, Callable[[], None]] = {}
        self._due: float | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
        self.add: Callable[[pycurl.Curl], None] = self._multi.add_handle
        self.remove: Callable[[pycurl.Curl], None] = self._multi.remove_handle

    def watch(self, descriptor: int, callback: Callable[[], None]) -> None:
        self._watched[descriptor] = callback
        self._epoll.register(descriptor, select.EPOLLIN)

    def step(self, timeout: float) -> list[FinishedTransfer]:
        """Wait at most `timeout` seconds for an event; return the handles that are done, already removed."""
        if self._due is not None:
            timeout = min(timeout, max(0.0, self._due - self._monotonic()))
        act, guard = self._multi.socket_action, self._guard
        if self._sockets:
            guard.watch()
        for descriptor, events in self._epoll.poll(timeout):
            if descriptor in self._sockets:
                mask = 0
                if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                    mask |= pycurl.CSELECT_IN
                if events & select.EPOLLOUT:
                    mask |= pycurl.CSELECT_OUT
                if events & select.EPOLLERR:
                    mask |= pycurl.CSELECT_ERR
                guard.reading = [descriptor]
                act(descriptor, mask)
                with guard.lock:
                    guard.reading = None
            elif descriptor in self._watched:
                self._watched[descriptor]()
        if self._due is not None and self._due <= self._monotonic():
            self._due = None
            act(pycurl.SOCKET_TIMEOUT, 0)
        return self._finished()

    def close(self) -> None:
        """Close all connections. Handles still inside must have been removed."""
        self._guard.close()
        self._multi.close()
        self._epoll.close()

    def _finished(self) -> list[FinishedTransfer]:
        done: list[FinishedTransfer] = []
        while True:
            queued, succeeded, failed = self._multi.info_read()
            done.extend(FinishedTransfer(curl, 0, "") for curl in succeeded)
            done.extend(FinishedTransfer(*failure) for failure in failed)
            if not queued:
                break
        for curl, _, _ in done:
            self._multi.remove_handle(curl)
        return done

    def _on_socket(self, what: int, descriptor: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            self._sockets.discard(descriptor)
            with suppress(OSError):  # closed already: the kernel has removed it from the set
                self._epoll.unregister(descriptor)
        elif descriptor in self._sockets:
            self._epoll.modify(descriptor, _EVENTS[what])
        else:
            self._sockets.add(descriptor)
            self._epoll.register(descriptor, _EVENTS[what])

    def _on_timer(self, milliseconds: int) -> None:
        self._due = None if milliseconds < 0 else self._monotonic() + milliseconds / 1000


class _ReadingGuard:
    """Ends a connection on which libcurl reads without a pause.

    libcurl reads from a socket until that is empty. A server that sends small HTTP/2 frames faster than they are
    parsed, such as GOAWAY, which no limit counts, keeps it there: no other request goes on, and no deadline is looked
    at. So a thread looks from outside, and shuts a connection down that took `_READING_SECONDS` at a stretch.

    `reading`: the descriptor that libcurl reads from, in a list of its own each time, so that two times on the same
    descriptor differ. None = it reads from none; that is set under `lock`, so no connection is shut down too late.
    """

    def __init__(self, sockets: Collection[int]) -> None:
        self.lock = threading.Lock()
        self.reading: list[int] | None = None
        self._sockets = sockets  # those that libcurl has open
        self._reader, self._clock = 0, 0  # the thread that reads, and its CPU clock
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self) -> None:
        """Look at the calling thread from now on."""
        if self._reader != threading.get_ident():
            self._reader = threading.get_ident()
            self._clock = time.pthread_getcpuclockid(self._reader)
        if self._thread is None:
            self._thread = threading.Thread(target=self._look, name="curl-guard", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._closed.set()

    def _look(self) -> None:
        seen, since = self.reading, 0.0
        while not self._closed.wait(_LOOK_SECONDS):
            with suppress(OSError):  # that thread has ended
                reading, used = self.reading, time.clock_gettime(self._clock)
                if reading is None or reading is not seen:
                    seen, since = reading, used
                elif used - since > _READING_SECONDS:
                    self._shut(reading)

    def _shut(self, reading: list[int]) -> None:
        with self.lock, suppress(OSError):
            if self.reading is reading and reading[0] in self._sockets:
                with socket.socket(fileno=os.dup(reading[0])) as connection:
                    connection.shutdown(socket.SHUT_RDWR)


def _handle(
    limits: LimitSettings,
    check_address: Callable[[str], str | None],
    ca_file: str,
    lines: list[bytes],
    on_body: Callable[[bytes], int | None],
) -> pycurl.Curl:
    curl = pycurl.Curl()
    for option, value in (
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROTOCOLS, _HTTP_ONLY),
        (pycurl.REDIR_PROTOCOLS, _HTTP_ONLY),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.PROXY, ""),  # an empty string switches off the proxy variables of the environment
        (pycurl.NOPROXY, "*"),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS),
        (pycurl.PIPEWAIT, 1),  # several requests to one host share a connection if the protocol allows it
        (pycurl.HTTP_CONTENT_DECODING, 0),
        (pycurl.SSL_VERIFYPEER, 1),
        (pycurl.SSL_VERIFYHOST, 2),
        (pycurl.CONNECTTIMEOUT_MS, int(limits.connect_seconds * 1000)),
        (pycurl.LOW_SPEED_LIMIT, limits.low_speed_bytes),
        (pycurl.LOW_SPEED_TIME, max(1, round(limits.low_speed_seconds))),
        (pycurl.BUFFERSIZE, 32 * 1024),
        (pycurl.HEADERFUNCTION, lines.append),
        (pycurl.WRITEFUNCTION, on_body),
        (pycurl.OPENSOCKETFUNCTION, _opener(check_address)),
    ):
        curl.setopt(option, value)
    authorities = ca_file or system_authorities()
    if authorities:
        curl.setopt(pycurl.CAINFO, authorities)
    return curl


@cache
def system_authorities() -> str:
    """The machine's certificate authorities. A libcurl from a wheel looks in the path of its build machine (Red Hat's);
    on Debian every certificate would be unknown. Empty = none found: libcurl then refuses all."""
    candidates = (ssl.get_default_verify_paths().cafile, *_AUTHORITIES)
    return next((path for path in candidates if path and Path(path).is_file()), "")


def _opener(check_address: Callable[[str], str | None]) -> Callable[..., socket.socket | int]:
    def open_socket(_purpose: int, target: tuple[int, int, int, tuple[str | bytes, int]]) -> socket.socket | int:
        family, kind, protocol, address = target
        name = address[0].decode() if isinstance(address[0], bytes) else address[0]
        if check_address(name) is not None:
            return int(pycurl.SOCKET_BAD)
        return socket.socket(family, kind, protocol)

    return open_socket


def of_curl(code: int, text: str, limits: LimitSettings) -> Refusal:
    """Kind and message of a libcurl error."""
    if code == pycurl.E_OPERATION_TIMEDOUT:
        if "too slow" in text:
            return "too-slow", (
                f"less than {limits.low_speed_bytes} bytes/s for {limits.low_speed_seconds:g} s (limits.low_speed_*)"
            )
        if "onnection time" in text or "SSL connection timeout" in text:
            return "connect", f"no connection within {limits.connect_seconds:g} s (limits.connect_seconds)"
        return "timeout", f"not finished within {limits.total_seconds:g} s (limits.total_seconds)"
    if code in _TLS_CODES:
        return "tls", text or "TLS failed"
    if code in (pycurl.E_COULDNT_CONNECT, pycurl.E_SEND_ERROR):
        return "connect", text or "no connection"
    if code == pycurl.E_COULDNT_RESOLVE_HOST:
        return "dns", text or "name not found"
    if code == _TOO_LARGE or ("header" in text.lower() and "large" in text.lower()):
        return "headers", f"response headers without end: more than {limits.header_bytes} bytes (limits.header_bytes)"
    return "protocol", text or f"broken answer (libcurl error {code})"
