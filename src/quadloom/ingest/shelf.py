"""Pages that are fetched outside the frontier's order enter the warehouse like those of any crawl.

Transformed in a disposable worker process, archived, settled in one transaction, indexed: the same parts as
`quadloom.crawl.loop`, without its loop. The topical crawl uses it for the documents it takes.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable

import msgspec

from quadloom.asking.statistics import Statistics, ended
from quadloom.ingest.failpoints import Failpoints
from quadloom.ingest.indexer import IndexAcks, Indexer
from quadloom.ingest.ingest import FinishedVisit, VisitWriter
from quadloom.ingest.traps import TrapFilter
from quadloom.model.outcome import HostPace
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom.stores.stores import Stores
from quadloom.workers.pool import TransformResult, WorkerPool

_PATIENCE = 0.05


class Shelf:
    """`put` pages, then `close`: everything that was put is settled when it returns. One thread."""

    def __init__(self, stores: Stores, settings: Settings, *, clock: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._catalog = stores.catalog
        self._clock = clock
        self._inbox: queue.SimpleQueue[TransformResult | IndexAcks | BaseException | None] = queue.SimpleQueue()
        self._paces: dict[int, HostPace] = {}
        self._ready: list[FinishedVisit] = []
        failpoints = Failpoints("")
        put = self._inbox.put
        self._indexer = Indexer(
            stores.quads, stores.text, settings.index, put, stores.changed, failpoints,
            Statistics.resume(stores.catalog, stores.quads),
        )  # fmt: skip
        self._writer = VisitWriter(
            stores.frontier, stores.catalog, stores.archive, self._indexer, settings, failpoints,
            TrapFilter(lambda _text: None),
        )  # fmt: skip
        self._pool = WorkerPool(1, settings, put, lambda _kind, _text: put(None), put)
        self.kept = 0

    def put(self, visit: Visit, page: Page, pace: HostPace) -> None:
        """Take a page; waits where the worker has enough in hand. A page that is on its way is not taken twice."""
        if visit.fingerprint in self._paces:
            return
        while not self._pool.room():
            self._take(wait=True)
        if self._catalog.page(visit.fingerprint) is not None:
            visit = msgspec.structs.replace(visit, known=True)  # its graph is replaced then, not filled
        self._paces[visit.fingerprint] = pace
        self._pool.submit(visit, page)
        self._take(wait=False)
        if len(self._ready) >= self._settings.crawl.batch:
            self._write()

    def close(self) -> None:
        limits = self._settings.limits
        deadline = time.monotonic() + 3 * limits.transform_seconds + 5
        while self._paces and time.monotonic() < deadline:
            self._take(wait=True)
        self._write()
        self._pool.close()
        self._indexer.close()
        while not self._inbox.empty():
            item = self._inbox.get()
            if isinstance(item, IndexAcks):
                self._writer.acknowledge(item)
        self._writer.write([], self._clock())
        ended(self._catalog)

    def _take(self, *, wait: bool) -> None:
        try:
            item = self._inbox.get(timeout=_PATIENCE) if wait else self._inbox.get_nowait()
            while True:
                self._enter(item)
                item = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _enter(self, item: TransformResult | IndexAcks | BaseException | None) -> None:
        if isinstance(item, BaseException):
            raise item
        if isinstance(item, IndexAcks):
            self._writer.acknowledge(item)
        elif isinstance(item, TransformResult):
            pace = self._paces.pop(item.visit.fingerprint, None)
            if item.answer is None:
                self._ready.append(FinishedVisit(item.visit, item.page, pace, reason=item.reason))
            else:
                self._ready.append(FinishedVisit(item.visit, item.page, pace, item.answer.woven, item.answer.record))
        else:
            self._pool.tend()

    def _write(self) -> None:
        batch, self._ready = self._ready, []
        self.kept += len(self._writer.write(batch, self._clock()))
