"""Responses of the last second, for clients that send the same request.

What pages show changes no faster than a view of the warehouse is renewed (two seconds), so the tenth reader of the home
page within a second causes no work. Clients that ask while the first response is in progress wait for it instead of
causing it ten times. Only complete, successful responses of addresses that the route table marks are cached.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine

import msgspec
from starlette.responses import Response

SECONDS = 1.0
_MOST = 256  # responses
_LARGEST = 128 * 1024  # bytes of one response

Key = tuple[str, ...]


class _Entry(msgspec.Struct):
    task: asyncio.Task[Response]
    until: float


class ResponseCache:
    """Belongs to the event loop: no lock, no second thread."""

    def __init__(self, seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()

    def get(self, key: Key, make: Callable[[], Coroutine[None, None, Response]]) -> Awaitable[Response]:
        """The cached response, the one in progress, or a new one. A client that leaves cancels it for nobody."""
        found = self._entries.get(key)
        if found is None or (found.task.done() and found.until <= self._clock()):
            found = self._begin(key, make)
        return asyncio.shield(found.task)

    def clear(self) -> None:
        """Something was changed: later requests get a new response, even if an older one is still in progress."""
        self._entries.clear()

    def _begin(self, key: Key, make: Callable[[], Coroutine[None, None, Response]]) -> _Entry:
        entry = _Entry(asyncio.get_running_loop().create_task(make()), 0.0)
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > _MOST:
            self._entries.popitem(last=False)

        def finished(task: asyncio.Task[Response]) -> None:
            if not task.cancelled() and task.exception() is None and _is_cacheable(task.result()):
                entry.until = self._clock() + self._seconds
            elif self._entries.get(key) is entry:
                del self._entries[key]

        entry.task.add_done_callback(finished)
        return entry


def _is_cacheable(response: Response) -> bool:
    return (
        type(response) is Response
        and response.status_code == 200
        and len(response.body) <= _LARGEST
        and "set-cookie" not in response.headers
    )
