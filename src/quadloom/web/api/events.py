"""`/events`, what the crawl does, and `/changes/events`, what subscribers are told, as Server-Sent Events.

A listener that lost its connection says the last id it saw (browsers do so by themselves, in `Last-Event-ID`) and gets
what it missed: of the crawl's events as far as they are still kept, of notices all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec
from starlette.responses import StreamingResponse

from quadloom.model.event import Event
from quadloom.subscriptions.deliver import NoticeMessage
from quadloom.subscriptions.feed import event as encode_notice
from quadloom.warehouse import Warehouse
from quadloom.web.server.errors import RequestRefused
from quadloom.web.server.requests import WebRequest
from quadloom.web.server.state import SiteState

_MOST_LISTENERS = 16
_LOOK = 0.5
_KEEP_ALIVE = 15.0
_LONGEST = 3600.0  # then the browser comes back with its last id; no connection lives for ever
_NOTICES = 50  # sent between two looks

Look = Callable[[int], Awaitable[tuple[int, list[bytes]]]]
"""What is new after an id: the last id looked at, and blocks to send."""


def stream(ask: WebRequest) -> StreamingResponse:
    """Events of the crawl."""
    kinds = frozenset(ask.text("kinds").split(",")) - {""}
    desk = ask.desk

    async def look(after: int) -> tuple[int, list[bytes]]:
        news = await asyncio.get_running_loop().run_in_executor(None, desk.feed.events, after)
        blocks = [encode(event) for event in news if not kinds or event.kind in kinds]
        return (news[-1].id if news else after), blocks

    return _streamed(ask, _last_seen(ask, "after") or 0, look)


def notices(ask: WebRequest) -> StreamingResponse:
    """Notices of subscriptions after the id `since`; without one, those to come."""
    subscription, desk = ask.text("subscription"), ask.desk

    def found(warehouse: Warehouse, after: int) -> list[NoticeMessage]:
        return warehouse.notices(after, subscription=subscription, limit=_NOTICES)

    async def look(after: int) -> tuple[int, list[bytes]]:
        if after < 0:
            return await desk.reader.run(lambda warehouse: warehouse.outbox.last_id()), []
        news = await desk.reader.run(lambda warehouse: found(warehouse, after))
        return (news[-1].id if news else after), [encode_notice(message) for message in news]

    last = _last_seen(ask, "since")
    return _streamed(ask, -1 if last is None else max(last, 0), look)


def encode(event: Event) -> bytes:
    """One event; JSON never holds a raw line break, so one data line is enough."""
    data = msgspec.json.encode({"at": event.at, "subject": event.subject, **event.data})
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, event.kind.encode(), data)


def _last_seen(ask: WebRequest, parameter: str) -> int | None:
    last = ask.request.headers.get("last-event-id") or ask.text(parameter)
    if not last:
        return None
    digits = last.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(last) > 18:
        raise RequestRefused(400, "the last event id is not a number", hint="send the id of the last event you saw")
    return int(last)


def _streamed(ask: WebRequest, after: int, look: Look) -> StreamingResponse:
    client = ask.request.client.host if ask.request.client else ""
    if ask.desk.listeners[client] >= _MOST_LISTENERS:
        raise RequestRefused(
            429, "too many listeners at this address", hint="close some; one connection carries all events"
        )
    return StreamingResponse(
        _counted(ask.desk, client, _blocks(after, look, ask.text("once") == "1")),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _counted(desk: SiteState, client: str, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    desk.listeners[client] += 1
    try:
        async for event in events:
            yield event
    finally:
        desk.listeners[client] -= 1
        if not desk.listeners[client]:
            del desk.listeners[client]


async def _blocks(after: int, look: Look, once: bool) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    begun = spoken = loop.time()
    yield b"retry: 2000\n\n"
    while loop.time() - begun < _LONGEST:
        after, blocks = await look(after)
        for block in blocks:
            spoken = loop.time()
            yield block
        if once:
            return
        if loop.time() - spoken > _KEEP_ALIVE:
            spoken = loop.time()
            yield b": still here\n\n"
        await asyncio.sleep(_LOOK)
