"""Visits between `submit` and their settlement: what is known of each, and the pages that wait for a worker.

A visit enters with its response and leaves when its settlement is durable. A page with content waits for a worker in
between; its answer, together with what was known here, is a `FinishedVisit`, ready for the next batch.
`FinishedVisits` says when that batch is due and what is in it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec
from isal import isal_zlib

from quadloom.crawling.workers.pool import TransformResult, WorkerPool
from quadloom.model.outcome import HostPace
from quadloom.model.page import Failure, Page
from quadloom.model.page_result import PageResult
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings
from quadloom.stores.protocols.settlement import LATER_STEPS, FinishedVisit, VisitStep

Amend = Callable[[PageResult], PageResult]
# Bytes that are written at once, however few pages they are. Workers have half as many: what they answer may be several
# times as large as the page, and all answers may wait while a batch is written.
BATCH_BYTES = 8 << 20
_LARGE_BODY = 1 << 20  # bytes; such bodies are packed while they wait behind others, 2 ms a megabyte
_ONLY_DETECT = frozenset(("fetched", "detected"))  # steps after which the page is transformed by another process


class _InHand(msgspec.Struct):
    pace: HostPace | None
    bytes: int = 0
    amend: Amend | None = None
    step: VisitStep = "whole"


class _WaitingPage(msgspec.Struct, frozen=True):
    """For a worker. `unpacked`: bytes of its body, if that is packed."""

    visit: Visit
    page: Page
    unpacked: int = 0

    def packed(self) -> _WaitingPage:
        body = self.page.body
        if len(body) < _LARGE_BODY:
            return self
        page = msgspec.structs.replace(self.page, body=isal_zlib.compress(body, 1))
        return _WaitingPage(self.visit, page, len(body))

    def whole(self) -> Page:
        if not self.unpacked:
            return self.page
        return msgspec.structs.replace(self.page, body=isal_zlib.decompress(self.page.body, bufsize=self.unpacked))


class VisitsInHand:
    """One thread. `bytes`: bodies and results that wait, as large as they are when they do not wait; `waiting`: pages
    that no worker has yet; `sent_bytes`: bodies of those that workers have."""

    def __init__(self) -> None:
        self._visits: dict[int, _InHand] = {}
        self._pages: deque[_WaitingPage] = deque()
        self.bytes = 0
        self.sent_bytes = 0

    def __len__(self) -> int:
        return len(self._visits)

    def __contains__(self, fingerprint: object) -> bool:
        return fingerprint in self._visits

    @property
    def waiting(self) -> int:
        return len(self._pages)

    @property
    def has_left_pages(self) -> bool:
        """Whether pages that other processes have left are among them."""
        return any(item.step in LATER_STEPS for item in self._visits.values())

    def add(self, visit: Visit, response: Page | Failure, pace: HostPace | None, step: VisitStep) -> FinishedVisit:
        """A response that needs no worker."""
        self._visits[visit.fingerprint] = _InHand(pace, step=step)
        return FinishedVisit(visit, response, pace, step=step)

    def add_page(
        self, visit: Visit, page: Page, pace: HostPace | None, amend: Amend | None, step: VisitStep = "whole"
    ) -> None:
        """A page for the workers. `amend` may change what the transformation says before it is settled."""
        self._visits[visit.fingerprint] = _InHand(pace, len(page.body), amend, step)
        self.bytes += len(page.body)
        waiting = _WaitingPage(visit, page)
        self._pages.append(waiting.packed() if self._pages else waiting)

    def send_next(self, pool: WorkerPool) -> None:
        """Give the page that has waited longest to a worker."""
        waiting = self._pages.popleft()
        visit, page = waiting.visit, waiting.whole()
        self.sent_bytes += len(page.body)
        step = self._visits[visit.fingerprint].step
        pool.submit(visit, page, archive=step not in LATER_STEPS, only_detect=step in _ONLY_DETECT)

    def finished(self, done: TransformResult) -> FinishedVisit:
        """A worker has answered, or its page was quarantined."""
        item = self._visits.get(done.visit.fingerprint)
        self.sent_bytes -= len(done.page.body)
        pace = item.pace if item is not None else None
        step: VisitStep = item.step if item is not None else "whole"
        if done.answer is None:
            return FinishedVisit(done.visit, done.page, pace, reason=done.reason, step=step)
        result, record = done.answer.result, done.answer.record
        if step in _ONLY_DETECT:
            return FinishedVisit(done.visit, done.page, pace, None, record, step=step, facts=result.facts)
        if item is not None and item.amend is not None:
            result = item.amend(result)
        finished = FinishedVisit(done.visit, done.page, pace, result, record, step=step, links=done.answer.links)
        if item is not None:
            self.bytes += finished.weight - item.bytes
            item.bytes = finished.weight
        return finished

    def settled(self, visit: Visit) -> bool:
        """Forget a visit. True if another process had left its page."""
        item = self._visits.pop(visit.fingerprint, None)
        self.bytes -= item.bytes if item is not None else 0
        return item is not None and item.step in LATER_STEPS


class FinishedVisits:
    """Visits that wait for the next batch, in the order in which they finished. `bytes`: about what they hold in
    memory. One thread."""

    def __init__(self, crawl: CrawlSettings) -> None:
        self._most = min(crawl.batch, -(-crawl.in_flight // 4))  # pages that wait hold places of `in_flight`
        self._seconds = crawl.batch_seconds
        self._visits: list[FinishedVisit] = []
        self._written_at = 0.0
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._visits)

    def add(self, item: FinishedVisit) -> None:
        self._visits.append(item)
        self.bytes += item.weight

    def is_due(self, *, has_more: bool) -> bool:
        """A full batch, by pages or bytes, or anything after `crawl.batch_seconds`. `has_more`: something waits to be
        written besides visits."""
        is_full = len(self._visits) >= self._most or self.bytes >= BATCH_BYTES
        is_late = time.monotonic() - self._written_at >= self._seconds
        return is_full or (is_late and (bool(self._visits) or has_more))

    def take(self) -> list[FinishedVisit]:
        """Those that are written together: the first ones, up to `BATCH_BYTES` and one more."""
        taken, size = 0, 0
        while taken < len(self._visits) and size < BATCH_BYTES:
            size += self._visits[taken].weight
            taken += 1
        batch, self._visits = self._visits[:taken], self._visits[taken:]
        self.bytes -= size
        return batch

    def put_back(self, batch: Sequence[FinishedVisit]) -> None:
        """Nothing of it was written: it comes first in the next batch."""
        self._visits[:0] = batch
        self.bytes += sum(item.weight for item in batch)

    def written(self) -> None:
        """A batch is durable: `crawl.batch_seconds` begin again."""
        self._written_at = time.monotonic()
