"""The gate: every check before a handler sees a request, and the headers of every response.

* Host: only configured names, so that a foreign page cannot reach this server by rebinding its own name to this
  address.
* Origin: a request that changes something must come from this site's pages (or from no page at all).
* Other sites' pages may read what is open (CORS) only if `allows_other_sites` says so.
* Rate and body size are limited per client and request.
* Every response forbids scripts, styles, frames and connections from anywhere else: crawled content is shown as text,
  and if a bug ever lets markup through, the browser still runs none of it.

This is plain ASGI, without buffering: results and events stream through it.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quadloom.settings import WebSettings
from quadloom.web.server.errors import ErrorBody, HttpError, error_body

UNSAFE = frozenset(("POST", "PUT", "PATCH", "DELETE"))
BODY_BYTES = 4 * 1024 * 1024
_ALL_BODIES = 64 * 1024 * 1024
_SMALL_BODY = 64 * 1024  # held by each connection at most, besides
_MAX_CLIENTS = 10_000

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Other sites do not learn what was read here. Not `no-referrer`: with it browsers send `Origin: null` with this
    # site's own forms too (Fetch, "append a request Origin header"), and the gate would refuse them.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
# For an archived body: even as text/plain, nothing in it may ever run, load or be sent.
SANDBOX = "default-src 'none'; sandbox"

# A name or address, and a port: the header Host. `evil.example@localhost` would have the name of this server to some.
_AUTHORITY = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\s/@:?#\[\]\\]+)(:[0-9]*)?", re.ASCII)

Refuse = Callable[[Request, ErrorBody, dict[str, str]], ASGIApp]


class RateLimit:
    """A token bucket per client, which holds two seconds' worth. The least recently seen clients are dropped."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> float:
        """0 = allowed; otherwise the seconds until the next request is allowed."""
        if self._rate <= 0:
            return 0.0
        now, most = self._clock(), max(2 * self._rate, 1.0)
        level, at = self._buckets.pop(client, (most, now))
        level = min(most, level + (now - at) * self._rate)
        wait = 0.0 if level >= 1.0 else (1.0 - level) / self._rate
        self._buckets[client] = (level - 1.0 if not wait else level, now)
        if len(self._buckets) > _MAX_CLIENTS:
            self._buckets.popitem(last=False)
        return wait


class BodyMemory:
    """Bytes that the bodies of all requests may hold together. A small body is always taken."""

    def __init__(self, most: int = _ALL_BODIES) -> None:
        self.free = most

    def hold(self) -> HeldBytes:
        return HeldBytes(self)


class HeldBytes:
    """The share of one request, until it is released. Only the event loop counts."""

    def __init__(self, memory: BodyMemory) -> None:
        self._memory = memory
        self._size = 0
        self._counted = 0

    def grow(self, size: int) -> None:
        """Raises `HttpError` 503 if too many long bodies are held already."""
        self._size += size
        more = max(0, self._size - _SMALL_BODY) - self._counted
        if more > self._memory.free:
            raise HttpError(503, "too many long requests at the same time", hint="try again in a few seconds")
        self._counted += more
        self._memory.free -= more

    def release(self) -> None:
        self._memory.free += self._counted
        self._size = self._counted = 0


class Gate:
    """ASGI middleware; the module's docstring lists its checks. `refuse` renders the response to a refused request."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        web: WebSettings,
        refuse: Refuse,
        open_paths: frozenset[str] = frozenset(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._hosts = known_hosts(web)
        self._limit = RateLimit(web.rate, clock)
        self._refuse = refuse
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        error, headers = self._check(request)
        app = self._app if error is None else self._refuse(request, error, headers)
        await app(scope, receive, _with_headers(send))

    def _check(self, request: Request) -> tuple[ErrorBody | None, dict[str, str]]:
        host = request.headers.get("host", "")
        if not self._knows(host):
            hint = "use the address that `quadloom serve` printed, or add the name to web.hosts"
            return error_body(421, f"this server does not answer to the name {host[:100]!r}", hint), {}
        guarded = request.method in UNSAFE and request.url.path not in self._open_paths
        if guarded and not _same_origin(request, host):
            return error_body(
                403, "requests from other sites' pages are refused", "send it from this site, or from a program"
            ), {}
        if "transfer-encoding" in request.headers and "content-length" in request.headers:
            # A proxy in front may believe the other one, and take the end of this body for the next request of somebody
            # else (RFC 9112, 6.1).
            hint = "send Content-Length or Transfer-Encoding, not both"
            return error_body(400, "the request states its length twice", hint), {"Connection": "close"}
        if _announced(request) > BODY_BYTES:
            return error_body(413, f"the body is longer than {BODY_BYTES} bytes", "send less at a time"), {}
        client = request.client.host if request.client else ""
        wait = self._limit.wait(client)
        if wait:
            seconds = str(max(1, round(wait)))
            return error_body(429, "too many requests", f"wait {seconds} s"), {"Retry-After": seconds}
        return None, {}

    def _knows(self, host: str) -> bool:
        found = _AUTHORITY.fullmatch(host)
        return found is not None and ("*" in self._hosts or found["name"].strip("[]").lower() in self._hosts)


def known_hosts(web: WebSettings) -> frozenset[str]:
    """Names that a request may carry: loopback's, the listening address, the public name, those in `web.hosts`."""
    names = {"127.0.0.1", "localhost", "::1", *(name.lower() for name in web.hosts)}
    if public := urlsplit(web.public_url).hostname:
        names.add(public)
    if not _is_wildcard(web.host):
        names.add(web.host.lower())
    return frozenset(names)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def allows_other_sites(web: WebSettings) -> bool:
    """Whether pages of other sites may read what is open (CORS).

    Not on loopback unless it is asked for: the warehouse may be private there, and any page that its owner visits could
    read it.
    """
    return web.cors == "on" or (web.cors == "auto" and not is_loopback(web.host))


def _is_wildcard(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")


def _same_origin(request: Request, host: str) -> bool:
    """Browsers send the page's origin with every unsafe request; programs send none."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin is None or origin.partition("://")[2] == host


def _announced(request: Request) -> int:
    length = request.headers.get("content-length", "0")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 19 else 0


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers: Sequence[tuple[bytes, bytes]] = message["headers"]
            present = {name.lower() for name, _ in headers}
            extra = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in present]
            message = {**message, "headers": [*headers, *extra]}
        await send(message)

    return sending
