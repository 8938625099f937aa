"""Lanes: each class of work has threads of its own and a line of its own, so that a slow class never starves another.

Sixteen people who let us inspect slow pages must not keep a seventeenth from searching. A line that has no end helps
nobody either: who has waited for seconds has gone away or asks again. So a request is told that the server is busy
(503 with Retry-After), which costs next to nothing, where its line is full or so long that its turn would come too
late, as far as the last requests tell; and also where its turn does come too late after all.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from quadloom.web.server.errors import RequestRefused

Answer = TypeVar("Answer")
_NEWEST = 0.1  # weight of the newest request in the mean of their lengths


class Lane:
    """`line`: requests that may wait for a thread. `patience`: seconds of waiting that are too many.

    `run` belongs to the event loop, which alone counts; the threads only work, and tell how long it took.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int,
        line: int,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.threads = threads
        self._most = threads + line
        self._patience = patience
        self._clock = clock
        self._inside = 0
        self._mean = 0.0  # seconds of one request's work; two threads that tell at once may lose one, which is no harm
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """What `work` returns or raises, from a thread of this lane. Raises `RequestRefused` if it is too busy."""
        wait = self.expected_wait()
        if self._inside >= self._most or wait > self._patience:
            raise _busy(wait)
        self._inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, self._turn, work, self._clock())
        finally:
            self._inside -= 1

    def expected_wait(self) -> float:
        """Seconds until a request that came now would have a thread; 0 while one is free, so some work always runs."""
        return max(0, self._inside - self.threads + 1) * self._mean / self.threads

    def _turn(self, work: Callable[[], Answer], entered: float) -> Answer:
        began = self._clock()
        if began - entered > self._patience:
            raise _busy(self._patience)
        try:
            return work()
        finally:
            self._mean += _NEWEST * (self._clock() - began - self._mean)

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


def _busy(wait: float) -> RequestRefused:
    seconds = str(max(1, math.ceil(wait)))
    return RequestRefused(
        503, "the server is too busy for this now", hint=f"try again in {seconds} s", headers={"Retry-After": seconds}
    )
