"""Many pages that no server has to be asked for, transformed by disposable workers: import, replay, rebuild and verify.

What a file or an archive holds is as hostile as what a server sends, and a page that was harmless to the version which
fetched it need not be so to the one that reads it again. So the same pool as the crawl's does it, with its
deadline, memory cap and quarantine (`quadloom.workers.pool`), and on all cores.
"""

from __future__ import annotations

import os
import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import NamedTuple, TypeVar

from quadloom.model.event import EventKind
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom.workers.pool import TransformResult, WorkerPool

T = TypeVar("T")
_AHEAD = 64  # pages between the one that is waited for and the newest one given out
_AHEAD_BYTES = 64 << 20
_ALONE = 100  # pages that one worker does: starting another costs as much CPU as weaving so many


class _Told(NamedTuple):
    kind: EventKind
    text: str


class TransformPool:
    """`each` pairs items with what their pages say. The workers start with the first page; close it, or use `with`.

    Guarantees: results come in the order of the items, each exactly once; a page that kills two workers comes back
    without an answer and with the reason; at most `_AHEAD` pages or `_AHEAD_BYTES` are held. One thread.
    """

    def __init__(
        self, settings: Settings, *, notice: Callable[[EventKind, str], None] = lambda _kind, _text: None
    ) -> None:
        self._settings = settings
        self._notice = notice
        self._inbox: queue.SimpleQueue[TransformResult | _Told | BaseException] = queue.SimpleQueue()
        self._opened: WorkerPool | None = None
        self._done: dict[int, TransformResult] = {}

    def each(
        self, items: Iterable[T], page_of: Callable[[T], tuple[Visit, Page] | None]
    ) -> Iterator[tuple[T, TransformResult | None]]:
        """(item, what became of its page); None where `page_of` gave none."""
        waiting: deque[tuple[T, int | None, int]] = deque()
        held = 0
        for item in items:
            given = page_of(item)
            size = len(given[1].body) if given is not None else 0
            while waiting and (len(waiting) >= _AHEAD or held + size > _AHEAD_BYTES):
                held -= waiting[0][2]
                yield self._next(waiting)
            waiting.append((item, self._given(*given) if given is not None else None, size))
            held += size
            while waiting and (waiting[0][1] is None or waiting[0][1] in self._done):
                held -= waiting[0][2]
                yield self._next(waiting)
        while waiting:
            yield self._next(waiting)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> TransformPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _pool(self) -> WorkerPool:
        if self._opened is None:
            put = self._inbox.put
            self._opened = WorkerPool(1, self._settings, put, lambda *told: put(_Told(*told)), put)
        return self._opened

    def _given(self, visit: Visit, page: Page) -> int:
        while not self._pool.room():
            self._take()
        number = self._pool.submit(visit, page)
        if number == _ALONE:
            self._pool.grow(self._settings.crawl.workers or os.cpu_count() or 1)  # the owner only waits and writes
        while not self._inbox.empty():
            self._take()
        return number

    def _next(self, waiting: deque[tuple[T, int | None, int]]) -> tuple[T, TransformResult | None]:
        item, number, _size = waiting.popleft()
        if number is None:
            return item, None
        while number not in self._done:  # ends: every page is answered, or quarantined by the pool's watchdog
            self._take()
        return item, self._done.pop(number)

    def _take(self) -> None:
        news = self._inbox.get()
        if isinstance(news, TransformResult):
            self._done[news.number] = news
        elif isinstance(news, _Told):
            self._pool.tend()
            self._notice(news.kind, news.text)
        else:
            raise news
