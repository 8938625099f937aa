"""Lanes: each class of work has threads of its own and a line of its own, so that a slow class never starves another.

Sixteen people who let us inspect slow pages must not keep a seventeenth from searching. A line that has no end helps
nobody either: who has waited for seconds has gone away or asks again. So a request that finds its line full, or whose
turn comes too late, is told at once that the server is busy (503 with Retry-After), which costs next to nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from quadloom.web.refusals import Refused

Answer = TypeVar("Answer")


class Lane:
    """`line`: requests that may wait for a thread. `patience`: seconds after which a waiting request is refused.

    `run` belongs to the event loop, which alone counts; the threads only work.
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
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """What `work` returns or raises, from a thread of this lane. Raises `Refused` where the lane is too busy."""
        if self._inside >= self._most:
            raise _busy(self._patience)
        self._inside += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, self._turn, work, self._clock())
        finally:
            self._inside -= 1

    def _turn(self, work: Callable[[], Answer], entered: float) -> Answer:
        if self._clock() - entered > self._patience:
            raise _busy(self._patience)
        return work()

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


def _busy(patience: float) -> Refused:
    seconds = str(max(1, round(patience / 2)))
    return Refused(
        503, "the server is too busy for this now", hint=f"try again in {seconds} s", headers={"Retry-After": seconds}
    )
