"""Lanes: each class of work has its own threads and its own queue, so that a slow class never starves another.

Sixteen visitors who inspect slow pages must not keep a seventeenth from searching. A queue without a limit helps nobody
either: a client that has waited for seconds has left, or asks again. So a request gets 503 with Retry-After, which
costs next to nothing, if its queue is full, or if the wait would be too long judging by the last requests; and also if
its wait turns out to be too long after all.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from quadloom.web.server.errors import HttpError

Answer = TypeVar("Answer")
_NEWEST_WEIGHT = 0.1  # weight of the newest request in the mean duration


class Lane:
    """`queue`: how many requests may wait for a thread. `max_wait`: seconds after which a waiting request is given up.

    `run` belongs to the event loop, which alone counts the requests; the threads only work and record how long it took.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int,
        queue: int,
        max_wait: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.threads = threads
        self._capacity = threads + queue
        self._max_wait = max_wait
        self._clock = clock
        self._inside = 0
        self._mean = (
            0.0  # seconds of one request's work; two threads that write at once may lose one, which is harmless
        )
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """What `work` returns or raises, from a thread of this lane. Raises `HttpError` 503 if the lane is too busy."""
        wait = self.expected_wait()
        if self._inside >= self._capacity or wait > self._max_wait:
            raise _busy(wait)
        self._inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, self._work, work, self._clock())
        finally:
            self._inside -= 1

    def expected_wait(self) -> float:
        """Seconds until a new request would get a thread; 0 while one is free, so some work always runs."""
        return max(0, self._inside - self.threads + 1) * self._mean / self.threads

    def _work(self, work: Callable[[], Answer], entered: float) -> Answer:
        began = self._clock()
        if began - entered > self._max_wait:
            raise _busy(self._max_wait)
        try:
            return work()
        finally:
            self._mean += _NEWEST_WEIGHT * (self._clock() - began - self._mean)

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


def _busy(wait: float) -> HttpError:
    seconds = str(max(1, math.ceil(wait)))
    return HttpError(
        503, "the server is too busy right now", hint=f"try again in {seconds} s", headers={"Retry-After": seconds}
    )
