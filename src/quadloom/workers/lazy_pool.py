"""A pool of workers that starts with the first page, and grows when there are more."""

from __future__ import annotations

import os
from collections.abc import Callable

from quadloom.model.event import EventKind
from quadloom.model.page import Page
from quadloom.model.service import InstanceLoad
from quadloom.model.visit import Visit
from quadloom.process.channel import ProcessHeartbeat
from quadloom.settings import Settings
from quadloom.workers.pool import PoolChanged, TransformResult, WorkerPool

_GROW_AFTER = 100  # pages that one worker transforms: starting another costs as much CPU as transforming so many


class LazyPool:
    """`size` 0: one worker at first, all cores after `_GROW_AFTER` pages. The callbacks are those of `WorkerPool`."""

    def __init__(
        self,
        size: int,
        settings: Settings,
        done: Callable[[TransformResult | PoolChanged], None],
        notice: Callable[[EventKind, str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._size = size
        self._settings = settings
        self._done, self._notice, self._failed = done, notice, failed
        self._opened: WorkerPool | None = None

    def room(self) -> int:
        """How many pages can be submitted now without waiting. The first call starts the workers."""
        return self._pool.room()

    def submit(self, visit: Visit, page: Page, *, archive: bool = True, only_detect: bool = False) -> int:
        """See `WorkerPool.submit`."""
        number = self._pool.submit(visit, page, archive=archive, only_detect=only_detect)
        if number == _GROW_AFTER and not self._size:
            self._pool.grow(self._settings.crawl.workers or os.cpu_count() or 1)
        return number

    def redistribute(self) -> None:
        if self._opened is not None:
            self._opened.redistribute()

    def forget_links(self) -> None:
        if self._opened is not None:
            self._opened.forget_links()

    def change_strategies(self, settings: Settings) -> None:
        self._settings = settings
        if self._opened is not None:
            self._opened.change_strategies(settings)

    def heartbeats(self) -> list[ProcessHeartbeat]:
        return self._opened.heartbeats() if self._opened is not None else []

    def service_loads(self) -> list[InstanceLoad]:
        return list(self._opened.service_loads()) if self._opened is not None else []

    def cpu_seconds(self) -> float:
        return self._opened.cpu_seconds() if self._opened is not None else 0.0

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _pool(self) -> WorkerPool:
        if self._opened is None:
            self._opened = WorkerPool(self._size or 1, self._settings, self._done, self._notice, self._failed)
        return self._opened
