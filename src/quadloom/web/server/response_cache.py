"""Responses for clients that send the same request.

A response from a view of the warehouse is cached as long as what a crawl writes may stay invisible: five seconds from
the moment of which the view is current. Later the view decides: if nothing was committed since, the same bytes are the
answer again, for up to a minute, since pages name ages ("3 minutes ago"). What depends on more than committed data,
such as the crawl's own figures, is cached for a second.

Clients that ask while the first response is in progress wait for it instead of causing it ten times. Only complete,
successful responses of addresses that the route table marks are cached; all of them together hold a few megabytes. Each
carries an ETag, so a client that has the same bytes gets 304.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import NamedTuple

from starlette.responses import Response

from quadloom.web.server.warehouse_reader import ViewDate

SECONDS = 1.0
VISIBLE_SECONDS = 5.0  # what a crawl commits is visible after this time (docs/reference/http.md)
OLDEST_SECONDS = 60.0
_MAX_BYTES = 16 * 1024 * 1024
_MAX_RESPONSE = 128 * 1024  # bytes of one response
_MAX_TAGS = 4096  # characters of If-None-Match that are read
_OVERHEAD = 2048  # bytes of an entry besides its body and its key

Key = tuple[str, ...]


class DatedResponse(NamedTuple):
    """`view`: of which the response was made; None = it depends on more than committed data."""

    response: Response
    made_at: float
    view: ViewDate | None = None


Make = Callable[[DatedResponse | None], Coroutine[None, None, DatedResponse]]
"""Makes a response. Its argument is an older one, to be returned with a new date if nothing was committed since."""


class _Entry:
    def __init__(self, task: asyncio.Task[DatedResponse]) -> None:
        self.task = task
        self.until = 0.0
        self.size = 0

    def lasting(self, oldest: float) -> DatedResponse | None:
        """The response, if it was made of a view since `oldest`."""
        if not self.task.done() or self.task.cancelled() or self.task.exception() is not None:
            return None
        known = self.task.result()
        return known if known.view is not None and known.made_at > oldest else None


class ResponseCache:
    """Belongs to the event loop: no lock, no second thread."""

    def __init__(
        self, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic, most_bytes: int = _MAX_BYTES
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._most_bytes = most_bytes
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self.bytes = 0

    async def get(self, key: Key, make: Make) -> Response:
        """The cached response, the one in progress, or a new one. A client that leaves cancels it for nobody."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._begin(key, make, None)
        elif entry.task.done() and entry.until <= (now := self._clock()):
            self._drop(key, entry)
            entry = self._begin(key, make, entry.lasting(now - OLDEST_SECONDS))
        else:
            self._entries.move_to_end(key)
        return (await asyncio.shield(entry.task)).response

    def clear(self) -> None:
        """Something was changed: later requests get a new response, even if an older one is still in progress."""
        self._entries.clear()
        self.bytes = 0

    def _begin(self, key: Key, make: Make, known: DatedResponse | None) -> _Entry:
        entry = self._entries[key] = _Entry(asyncio.get_running_loop().create_task(make(known)))

        def finished(task: asyncio.Task[DatedResponse]) -> None:
            if self._entries.get(key) is not entry:
                return
            if task.cancelled() or task.exception() is not None or not _is_cacheable(task.result().response):
                self._drop(key, entry)
                return
            found = task.result()
            entry.until = self._clock() + self._seconds
            if found.view is not None:
                entry.until = max(entry.until, found.view.seen_at + VISIBLE_SECONDS)
            entry.size = len(found.response.body) + 4 * sum(map(len, key)) + _OVERHEAD
            self.bytes += entry.size
            self._make_room()

        entry.task.add_done_callback(finished)
        return entry

    def _make_room(self) -> None:
        """Drop the entries that were not used for the longest time."""
        for key, entry in list(self._entries.items()):
            if self.bytes <= self._most_bytes:
                return
            if entry.size:
                self._drop(key, entry)

    def _drop(self, key: Key, entry: _Entry) -> None:
        del self._entries[key]
        self.bytes -= entry.size


def with_etag(response: Response) -> Response:
    """Weak, since the bytes may be compressed on their way. `no-cache`: ask each time whether it is still valid."""
    if _is_cacheable(response):
        response.headers["ETag"] = f'W/"{hashlib.blake2b(response.body, digest_size=12).hexdigest()}"'
        response.headers.setdefault("Cache-Control", "no-cache")
    return response


def unless_known(response: Response, if_none_match: str) -> Response:
    """304 if the client has these bytes already (RFC 9110 13.1.2), otherwise the response itself."""
    tag = response.headers.get("etag")
    if tag is None or not if_none_match:
        return response
    known = {part.strip().removeprefix("W/") for part in if_none_match[:_MAX_TAGS].split(",")}
    if tag.removeprefix("W/") not in known and "*" not in known:
        return response
    kept = ("etag", "vary", "cache-control")
    return Response(
        status_code=304, headers={name: response.headers[name] for name in kept if name in response.headers}
    )


def _is_cacheable(response: Response) -> bool:
    return (
        type(response) is Response
        and response.status_code == 200
        and len(response.body) <= _MAX_RESPONSE
        and "set-cookie" not in response.headers
    )
