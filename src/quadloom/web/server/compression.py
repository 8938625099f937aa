"""gzip for text answers: pages, JSON, SVG, statements and results are six times smaller on the way to the client.

Plain ASGI, without buffering: a streamed answer is compressed piece by piece. Left alone are events, which must arrive
at once, downloads that are compressed already, and answers so short that the headers outweigh them.
"""

from __future__ import annotations

import zlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_MIN_BYTES = 600  # bytes
_LEVEL = 5  # level 9 takes three times as long for two per cent
_GZIP = 31  # window bits of zlib that mean a gzip header
_TEXT = ("application/json", "application/xml", "image/svg+xml", "application/ld+json", "application/n-quads",
         "application/n-triples", "application/trig", "application/javascript", "application/x-ndjson")  # fmt: skip


class Compression:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        wanted = accepts_gzip(Headers(scope=scope).get("accept-encoding", ""))
        await self._app(scope, receive, _Sender(send, wanted))


class _Sender:
    """Holds the start of an answer back until its first bytes are known."""

    def __init__(self, send: Send, wanted: bool) -> None:
        self._send = send
        self._wanted = wanted
        self._start: Message | None = None
        self._squeezer: zlib._Compress | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        if message["type"] != "http.response.body":
            await self._send(message)
            return
        if self._start is not None:
            start, self._start = self._start, None
            self._begin(start, message)
            await self._send(start)
        await self._send(self._squeezed(message) if self._squeezer is not None else message)

    def _begin(self, start: Message, first: Message) -> None:
        headers = MutableHeaders(raw=start["headers"])
        start["headers"] = headers.raw
        if not is_compressible(headers):
            return
        headers.add_vary_header("Accept-Encoding")
        whole = not first.get("more_body", False)
        if not self._wanted or (whole and len(first.get("body", b"")) < _MIN_BYTES):
            return
        self._squeezer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
        headers["Content-Encoding"] = "gzip"
        if "content-length" in headers:
            del headers["content-length"]

    def _squeezed(self, message: Message) -> Message:
        assert self._squeezer is not None
        body = self._squeezer.compress(message.get("body", b""))
        if not message.get("more_body", False):
            body += self._squeezer.flush()
        return {**message, "body": body}


def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header names gzip, or anything, without refusing it (RFC 9110 12.5.3)."""
    weights = {}
    for part in header[:1000].lower().split(","):
        coding, _, parameters = part.partition(";")
        weights[coding.strip()] = parameters.replace(" ", "")
    chosen = weights.get("gzip", weights.get("*"))
    return chosen is not None and chosen not in ("q=0", "q=0.0", "q=0.00", "q=0.000")


def is_compressible(headers: Headers) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if "content-encoding" in headers or kind == "text/event-stream":
        return False
    return kind.startswith("text/") or kind in _TEXT or kind.endswith(("+xml", "+json"))
