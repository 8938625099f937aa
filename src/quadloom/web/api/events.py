"""`/events`, the events of the crawl, and `/changes/events`, the notices of subscriptions, as Server-Sent Events.

A listener that lost its connection sends the last id it saw (browsers do so by themselves, in `Last-Event-ID`) and gets
what it missed: all notices, and those events of the crawl that are still stored.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from quadloom.crawling.subscriptions.feed import event as encode_notice
from quadloom.crawling.subscriptions.webhooks import NoticeMessage
from quadloom.model.event import Event
from quadloom.warehouse import Warehouse
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import WebRequest

MOST_LISTENERS = 16  # per client
_POLL_SECONDS = 0.5
_KEEP_ALIVE = 15.0
_MAX_SECONDS = 3600.0  # then the browser reconnects with its last id; no connection lives for ever
_MAX_NOTICES = 50  # per poll

Poll = Callable[[int], Awaitable[tuple[int, list[bytes]]]]
"""What is new after an id: the last id that was checked, and the blocks to send."""


def stream(request: WebRequest) -> StreamingResponse:
    """Events of the crawl."""
    kinds = frozenset(request.text("kinds").split(",")) - {""}
    site = request.site

    async def poll(after: int) -> tuple[int, list[bytes]]:
        new = await site.listening.run(lambda: site.crawl.events(after))
        blocks = [encode(event) for event in new if not kinds or event.kind in kinds]
        return (new[-1].id if new else after), blocks

    return _stream(request, _last_seen(request, "after") or 0, poll)


def notices(request: WebRequest) -> StreamingResponse:
    """Notices of subscriptions after the id `since`; without it, only future ones."""
    subscription, site = request.text("subscription"), request.site

    def read(warehouse: Warehouse, after: int) -> list[NoticeMessage]:
        return warehouse.subscriptions.notices(after, subscription=subscription, limit=_MAX_NOTICES)

    async def poll(after: int) -> tuple[int, list[bytes]]:
        if after < 0:
            return await site.reader.run(lambda warehouse: warehouse.stores.outbox.last_id()), []
        new = await site.reader.run(lambda warehouse: read(warehouse, after))
        return (new[-1].id if new else after), [encode_notice(message) for message in new]

    last = _last_seen(request, "since")
    return _stream(request, -1 if last is None else max(last, 0), poll)


def encode(event: Event) -> bytes:
    """One event; JSON never holds a raw line break, so one data line is enough."""
    data = msgspec.json.encode({"at": event.at, "subject": event.subject, **event.data})
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, event.kind.encode(), data)


def _last_seen(request: WebRequest, parameter: str) -> int | None:
    last = request.http.headers.get("last-event-id") or request.text(parameter)
    if not last:
        return None
    digits = last.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(last) > 18:
        raise HttpError(400, "the last event id is not a number", hint="send the id of the last event you saw")
    return int(last)


def _stream(request: WebRequest, after: int, poll: Poll) -> StreamingResponse:
    listeners, client = request.site.listeners, request.client
    if listeners[client] >= MOST_LISTENERS:
        raise HttpError(
            429, "too many event streams from this address", hint="close some; one connection carries all events"
        )
    events = _blocks(after, poll, request.text("once") == "1")
    listeners[client] += 1
    return _CountedStream(events, listeners, client)


class _CountedStream(StreamingResponse):
    """An event stream that was counted when it was accepted, and is a listener of `client` until it ends.

    The handlers run on the event loop, so no other request comes between the check and the count.
    """

    def __init__(self, events: AsyncIterator[bytes], listeners: Counter[str], client: str) -> None:
        super().__init__(
            events,
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
        self._listeners = listeners
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._listeners[self._client] -= 1
            if not self._listeners[self._client]:
                del self._listeners[self._client]


async def _blocks(after: int, poll: Poll, once: bool) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    begun = sent = loop.time()
    yield b"retry: 2000\n\n"
    while loop.time() - begun < _MAX_SECONDS:
        after, blocks = await poll(after)
        for block in blocks:
            sent = loop.time()
            yield block
        if once:
            return
        if loop.time() - sent > _KEEP_ALIVE:
            sent = loop.time()
            yield b": still here\n\n"
        await asyncio.sleep(_POLL_SECONDS)
