"""Views of the warehouse for handlers: a few threads, each with a view of its own.

A read-only SQLite connection belongs to one thread, and an Oxigraph view shows what was committed when it was opened.
So each reading thread keeps a warehouse and opens it anew when the database has moved on and the view is older than
`STALE` seconds: opening costs 20 ms, and what a crawl writes is seen within five seconds.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from quadloom.errors import QuadloomError, StoreError
from quadloom.settings import Settings
from quadloom.stores.sqlite.state import DATABASE
from quadloom.warehouse import Warehouse
from quadloom.web.server.lanes import Lane

STALE = 2.0
THREADS = 4
LINE = 400
PATIENCE = 3.0  # seconds
_TRIES = 3

Answer = TypeVar("Answer")


class _View(threading.local):
    warehouse: Warehouse | None = None
    opened: float = 0.0
    mark: tuple[int, int] = (0, 0)


class WarehouseReader:
    """`run` does some reading in a thread that has a fresh enough view."""

    def __init__(
        self, path: Path, settings: Settings, *, name: str = "reading", threads: int = THREADS, line: int = LINE
    ) -> None:
        self.path = path
        self.settings = settings
        self._view = _View()
        self._lane = Lane(name, threads=threads, line=line, patience=PATIENCE)

    async def run(self, work: Callable[[Warehouse], Answer]) -> Answer:
        return await self._lane.run(lambda: self._look(work))

    def ask(self, work: Callable[[Warehouse], Answer]) -> Answer:
        """The same for a thread that may wait."""
        return self._lane.pool.submit(self._look, work).result()

    def warm(self) -> None:
        """Open a view in each thread, so that the first visitors need not wait for it."""
        self._everywhere(self._fresh)

    def _everywhere(self, work: Callable[[], object]) -> None:
        """In each thread once: none takes a second turn before all have met."""
        everybody = threading.Barrier(self._lane.threads, timeout=5.0)

        def turn() -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                everybody.wait()
            with contextlib.suppress(QuadloomError):
                work()

        for _ in range(self._lane.threads):
            self._lane.pool.submit(turn)

    def _look(self, work: Callable[[Warehouse], Answer]) -> Answer:
        """Do it, and again on a new view where the writer's compaction took a file away under the old one."""
        for _ in range(_TRIES - 1):
            with contextlib.suppress(StoreError):
                return work(self._fresh())
            self._forget()
        return work(self._fresh())

    def _forget(self) -> None:
        warehouse, self._view.warehouse = self._view.warehouse, None
        if warehouse is not None:
            warehouse.close()

    def _fresh(self) -> Warehouse:
        view, now, mark = self._view, time.monotonic(), self._mark()
        if view.warehouse is not None and (view.mark == mark or now - view.opened < STALE):
            return view.warehouse
        self._forget()
        view.warehouse = Warehouse.read(self.path, settings=self.settings)
        view.opened, view.mark = now, mark
        return view.warehouse

    def _mark(self) -> tuple[int, int]:
        """Changes with every commit: it is appended to the write-ahead log, or copied from it."""
        marks = []
        for name in (DATABASE, DATABASE + "-wal"):
            try:
                marks.append((self.path / name).stat().st_mtime_ns)
            except FileNotFoundError:
                marks.append(0)
        return marks[0], marks[1]

    def close(self) -> None:
        """Each thread closes its own view: SQLite does not let another do it."""
        self._everywhere(self._forget)
        self._lane.pool.shutdown(wait=True)
