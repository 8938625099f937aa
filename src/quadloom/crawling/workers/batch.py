"""Many pages that need no fetching, transformed by disposable workers: for import, replay, rebuild and verify.

The contents of a file or an archive are as hostile as those of a server, and a page that was harmless to the version
which fetched it may harm the version that reads it again. So the crawl's own pool transforms them, with its deadline,
memory cap and quarantine (`quadloom.crawling.workers.pool`), and on all cores.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Generic, NamedTuple, TypeVar

from quadloom.crawling.workers.pool import PoolChanged, SlowPage, TransformResult, WorkerPool
from quadloom.model.event import EventKind
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import Settings

T = TypeVar("T")
_AHEAD = 64  # pages between the one that is waited for and the newest one submitted
_AHEAD_BYTES = 64 << 20


class _PoolNotice(NamedTuple):
    kind: EventKind
    text: str


class _Submitted(NamedTuple, Generic[T]):
    item: T
    number: int | None  # of its page in the pool; None = the item has no page
    size: int


class TransformPool:
    """`each` pairs items with what their pages say. The workers start with the first page; close it, or use `with`.

    Guarantees: results come in the order of the items, each exactly once; a page that kills two workers comes back
    without an answer and with the reason; at most `_AHEAD` pages or `_AHEAD_BYTES` are held. One thread.
    """

    def __init__(
        self, settings: Settings, *, notice: Callable[[EventKind, str], None] = lambda _kind, _text: None
    ) -> None:
        self._notice = notice
        self._inbox: queue.SimpleQueue[TransformResult | SlowPage | PoolChanged | _PoolNotice | BaseException] = (
            queue.SimpleQueue()
        )
        put = self._inbox.put
        self._pool = WorkerPool(0, settings, put, lambda kind, text: put(_PoolNotice(kind, text)), put)
        self._done: dict[int, TransformResult] = {}

    def each(
        self, items: Iterable[T], page_of: Callable[[T], tuple[Visit, Page] | None]
    ) -> Iterator[tuple[T, TransformResult | None]]:
        """(item, the result of its page); None if `page_of` returns none."""
        waiting: deque[_Submitted[T]] = deque()
        held = 0
        for item in items:
            pair = page_of(item)
            size = len(pair[1].body) if pair is not None else 0
            while waiting and (len(waiting) >= _AHEAD or held + size > _AHEAD_BYTES):
                held -= waiting[0].size
                yield self._result(waiting.popleft())
            waiting.append(_Submitted(item, self._submit(*pair) if pair is not None else None, size))
            held += size
            while waiting and (waiting[0].number is None or waiting[0].number in self._done):
                held -= waiting[0].size
                yield self._result(waiting.popleft())
        while waiting:
            yield self._result(waiting.popleft())

    def close(self) -> None:
        self._pool.close()

    def __enter__(self) -> TransformPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _submit(self, visit: Visit, page: Page) -> int:
        while not self._pool.room():
            self._receive()
        number = self._pool.submit(visit, page)
        while not self._inbox.empty():
            self._receive()
        return number

    def _result(self, submitted: _Submitted[T]) -> tuple[T, TransformResult | None]:
        if submitted.number is None:
            return submitted.item, None
        while submitted.number not in self._done:  # ends: the pool's watchdog answers or quarantines every page
            self._receive()
        return submitted.item, self._done.pop(submitted.number)

    def _receive(self) -> None:
        message = self._inbox.get()
        if isinstance(message, TransformResult):
            self._done[message.number] = message
        elif isinstance(message, PoolChanged):
            self._pool.redistribute()
        elif isinstance(message, _PoolNotice):
            self._pool.redistribute()
            self._notice(message.kind, message.text)
        elif isinstance(message, BaseException):
            raise message
