"""Views of the warehouse for handlers: a few threads, each with a view of its own.

A read-only SQLite connection belongs to one thread, and an Oxigraph view shows what was committed when it was opened.
So each reading thread has a warehouse open, and reopens it if something was committed since and the view is older than
`STALE` seconds. Opening costs 20 ms, and up to .2 s more while a crawl writes (`quadloom.stores.quads.views`). So one
thread at a time does it; the others answer from the views that they have, and then share what it opened. What a crawl
writes is visible within five seconds.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from quadloom.errors import QuadloomError, StoreError
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from quadloom.web.server.lanes import Lane

STALE = 2.0
_MAX_AGE = 3.5  # seconds after which a thread waits for its turn to reopen
THREADS = 4
QUEUE = 400
MAX_WAIT = 3.0  # seconds
_ATTEMPTS = 3

Answer = TypeVar("Answer")


class ViewDate(NamedTuple):
    """What a view shows: everything up to the commit `mark`, and everything that was committed at `seen_at`."""

    mark: bytes
    seen_at: float


class _View(threading.local):
    warehouse: Warehouse | None = None
    opened: float = 0.0
    seen_at: float = 0.0  # when it showed everything that was committed


class WarehouseReader:
    """`run` calls a function in a thread that has a fresh enough view."""

    def __init__(
        self, path: Path, settings: Settings, *, name: str = "reading", threads: int = THREADS, queue: int = QUEUE
    ) -> None:
        self.path = path
        self.settings = settings
        self._view = _View()
        self._reopening = threading.Lock()
        self._lane = Lane(name, threads=threads, queue=queue, max_wait=MAX_WAIT)

    async def run(self, work: Callable[[Warehouse], Answer]) -> Answer:
        return await self._lane.run(lambda: self._read(work))

    async def run_dated(self, work: Callable[[Warehouse, ViewDate], Answer]) -> Answer:
        """The same for a function that needs the date of its view."""
        return await self.run(lambda found: work(found, ViewDate(found.stores.opened_at, self._view.seen_at)))

    def ask(self, work: Callable[[Warehouse], Answer]) -> Answer:
        """The same as `run` for a caller in a thread that may block."""
        return self._lane.pool.submit(self._read, work).result()

    def warm(self) -> None:
        """Open a view in each thread, so that the first visitors need not wait for it."""
        self._in_each_thread(self._fresh)

    def _in_each_thread(self, work: Callable[[], object]) -> None:
        """Exactly once per thread: the barrier keeps a thread from taking a second turn before all have started."""
        barrier = threading.Barrier(self._lane.threads, timeout=5.0)

        def turn() -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                barrier.wait()
            with contextlib.suppress(QuadloomError):
                work()

        for _ in range(self._lane.threads):
            self._lane.pool.submit(turn)

    def _read(self, work: Callable[[Warehouse], Answer]) -> Answer:
        """Retried on a new view if the writer's compaction removed a file under the old one."""
        for _ in range(_ATTEMPTS - 1):
            with contextlib.suppress(StoreError):
                return work(self._fresh())
            self._close_view()
        return work(self._fresh())

    def _fresh(self) -> Warehouse:
        view, now = self._view, time.monotonic()
        if view.warehouse is not None and now - view.opened < STALE:
            return view.warehouse
        if view.warehouse is not None and view.warehouse.is_current():
            view.seen_at = now
            return view.warehouse
        must = view.warehouse is None or now - view.opened >= _MAX_AGE
        if not self._reopening.acquire(blocking=must):
            assert view.warehouse is not None
            return view.warehouse
        try:
            self._close_view()
            opened = time.monotonic()  # before: what is committed while it opens may be missing
            view.warehouse = Warehouse.read(self.path, settings=self.settings)
            view.opened = view.seen_at = opened
        finally:
            self._reopening.release()
        return view.warehouse

    def _close_view(self) -> None:
        warehouse, self._view.warehouse = self._view.warehouse, None
        if warehouse is not None:
            warehouse.close()

    def close(self) -> None:
        """Each thread closes its own view: SQLite does not let another thread do it."""
        self._in_each_thread(self._close_view)
        self._lane.pool.shutdown(wait=True)
