"""`/events`: what the crawl does, as Server-Sent Events. A listener that lost its connection says the last id it saw
(browsers do so by themselves, in `Last-Event-ID`) and gets what it missed, as far as that is still kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.responses import StreamingResponse

from quadloom.model.event import Event
from quadloom.web.asks import Ask
from quadloom.web.desk import Desk
from quadloom.web.refusals import Refused

_MOST_LISTENERS = 16
_LOOK = 0.5
_KEEP_ALIVE = 15.0
_LONGEST = 3600.0  # then the browser comes back with its last id; no connection lives for ever


def stream(ask: Ask) -> StreamingResponse:
    last = ask.request.headers.get("last-event-id") or ask.text("after") or "0"
    if not last.lstrip("-").isdigit() or len(last) > 18:
        raise Refused(400, "the last event id is not a number", hint="send the id of the last event you saw")
    kinds = frozenset(ask.text("kinds").split(",")) - {""}
    once = ask.text("once") == "1"
    client = ask.request.client.host if ask.request.client else ""
    if ask.desk.listeners[client] >= _MOST_LISTENERS:
        raise Refused(429, "too many listeners at this address", hint="close some; one connection carries all events")
    return StreamingResponse(
        _counted(ask.desk, client, _events(ask.desk, int(last), kinds, once)),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def encode(event: Event) -> bytes:
    """One event; JSON never holds a raw line break, so one data line is enough."""
    data = msgspec.json.encode({"at": event.at, "subject": event.subject, **event.data})
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.id, event.kind.encode(), data)


async def _counted(desk: Desk, client: str, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    desk.listeners[client] += 1
    try:
        async for event in events:
            yield event
    finally:
        desk.listeners[client] -= 1
        if not desk.listeners[client]:
            del desk.listeners[client]


async def _events(desk: Desk, after: int, kinds: frozenset[str], once: bool) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    begun = spoken = loop.time()
    yield b"retry: 2000\n\n"
    while loop.time() - begun < _LONGEST:
        news = await loop.run_in_executor(None, desk.feed.events, after)
        for event in news:
            after = event.id
            if not kinds or event.kind in kinds:
                spoken = loop.time()
                yield encode(event)
        if once:
            return
        if loop.time() - spoken > _KEEP_ALIVE:
            spoken = loop.time()
            yield b": still here\n\n"
        await asyncio.sleep(_LOOK)
