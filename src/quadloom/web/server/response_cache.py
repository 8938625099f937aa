"""Answers of the last second, given again to whoever asks the same.

What pages show changes no faster than a view of the warehouse is renewed (two seconds), so the tenth reader of the home
page within a second needs no work of ours. Those who ask while the first answer is being made wait for that one instead
of making it ten times. Only whole, good answers of addresses that the route table marks are kept.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine

import msgspec
from starlette.responses import Response

SECONDS = 1.0
_MOST = 256  # answers
_LARGEST = 128 * 1024  # bytes of one

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

    def answer(self, key: Key, make: Callable[[], Coroutine[None, None, Response]]) -> Awaitable[Response]:
        """The kept answer, the one under way, or a new one. Nobody's leaving cancels what others wait for."""
        found = self._entries.get(key)
        if found is None or (found.task.done() and found.until <= self._clock()):
            found = self._begin(key, make)
        return asyncio.shield(found.task)

    def forget(self) -> None:
        """Somebody changed something: what is asked from now on is answered anew, also where an answer is under way."""
        self._entries.clear()

    def _begin(self, key: Key, make: Callable[[], Coroutine[None, None, Response]]) -> _Entry:
        entry = _Entry(asyncio.get_running_loop().create_task(make()), 0.0)
        self._entries[key] = entry
        self._entries.move_to_end(key)
        while len(self._entries) > _MOST:
            self._entries.popitem(last=False)

        def made(task: asyncio.Task[Response]) -> None:
            if not task.cancelled() and task.exception() is None and _may_be_kept(task.result()):
                entry.until = self._clock() + self._seconds
            elif self._entries.get(key) is entry:
                del self._entries[key]

        entry.task.add_done_callback(made)
        return entry


def _may_be_kept(response: Response) -> bool:
    return (
        type(response) is Response
        and response.status_code == 200
        and len(response.body) <= _LARGEST
        and "set-cookie" not in response.headers
    )
