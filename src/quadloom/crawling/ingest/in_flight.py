"""The one book of visits in flight.

::

    leased ─► (fetched) ─► waits for a worker ─► in a worker ─► finished ─► settled ─► indexed
              └──────────── has no content to transform ──────────┘

A visit is in flight from its lease until its settlement is durable; of most pages the transformation and the wait for
a batch are a part of that. A settled page is `unindexed` until the indexer's acknowledgement is durable, too. Imports
and replays have no leases: their visits enter with the response.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import msgspec

from quadloom.crawling.ingest.waiting_pages import WaitingPage, WaitingPages
from quadloom.crawling.workers.pool import SLOW_SECONDS, SlowPage, TransformResult, WorkerPool
from quadloom.model.outcome import HostPace
from quadloom.model.page import Page
from quadloom.model.page_result import PageResult
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.protocols.settlement import LATER_STEPS, FinishedVisit, VisitStep
from quadloom.stores.shards import shard_of

Amend = Callable[[PageResult], PageResult]
# Bytes that are written at once, however few pages they are. Workers have half as many: what they answer may be several
# times as large as the page, and all answers may wait while a batch is written.
BATCH_BYTES = 8 << 20


class _InFlight(msgspec.Struct):
    """`bytes`: of the body, then of the result. `only_detect`: another process transforms the page."""

    pace: HostPace | None = None
    bytes: int = 0
    amend: Amend | None = None
    step: VisitStep = "whole"
    original: Page | None = None
    only_detect: bool = False


class InFlightVisits:
    """One thread. Its length counts visits; `fingerprint in` asks for one.

    `bytes`: bodies and results that wait, unpacked. `waiting`: pages that no worker has yet. `unindexed`: pages that
    the indexer has not acknowledged."""

    def __init__(self, crawl: CrawlSettings) -> None:
        self._visits: dict[int, _InFlight] = {}
        self._pages = WaitingPages()
        self._sent_bytes = 0
        self._most = min(crawl.batch, -(-crawl.in_flight // 4))  # pages that wait hold places of `in_flight`
        self._seconds = crawl.batch_seconds
        self._finished: list[FinishedVisit] = []
        self._finished_bytes = 0
        self._written_at = 0.0
        self.bytes = 0
        self.unindexed = UnindexedPages()

    def __len__(self) -> int:
        return len(self._visits)

    def __contains__(self, fingerprint: object) -> bool:
        return fingerprint in self._visits

    @property
    def waiting(self) -> int:
        return len(self._pages)

    @property
    def has_waiting(self) -> bool:
        """Pages wait that are not slow, or slow ones with much to hold in memory."""
        return len(self._pages) > self._pages.slow or (self._pages.slow > 0 and self.bytes > BATCH_BYTES)

    @property
    def finished(self) -> int:
        """Visits that wait for the next batch."""
        return len(self._finished)

    def among(self, visits: Sequence[Visit]) -> list[Visit]:
        """Those of these that are in flight."""
        known = self._visits
        return [visit for visit in visits if visit.fingerprint in known]

    def lease(self, visits: Iterable[Visit]) -> None:
        """These are sent to be fetched."""
        for visit in visits:
            self._visits[visit.fingerprint] = _InFlight()

    def release(self, visits: Iterable[Visit]) -> None:
        """These are no longer in flight: settled, or given up without a settlement."""
        for visit in visits:
            item = self._visits.pop(visit.fingerprint, None)
            self.bytes -= item.bytes if item is not None else 0

    def add_page(
        self,
        visit: Visit,
        page: Page,
        pace: HostPace | None,
        original: Page | None = None,
        *,
        amend: Amend | None = None,
        step: VisitStep = "whole",
        only_detect: bool = False,
    ) -> None:
        """A page for the workers. `amend` may change what the transformation says before it is settled."""
        size = len(page.body)
        self._visits[visit.fingerprint] = _InFlight(pace, size, amend, step, original, only_detect)
        self.bytes += size
        waiting = WaitingPage(visit, page)
        self._pages.put(waiting.packed() if len(self._pages) else waiting)

    def send(self, pool: WorkerPool, room: int) -> int:
        """Give up to `room` pages to the workers, and slow ones if there is room for those, in the order of
        `WaitingPages`. Returns the room that is left."""
        pages = self._pages
        while pages.slow and pool.slow_room(others=len(pages) > pages.slow) > 0:
            self._submit(pool, pages.take(slow=True), slow=True)
        while len(pages) > pages.slow and room > 0 and max(self._finished_bytes, 2 * self._sent_bytes) < BATCH_BYTES:
            self._submit(pool, pages.take(slow=False), slow=False)
            room -= 1
        return room

    def _submit(self, pool: WorkerPool, waiting: WaitingPage | None, *, slow: bool) -> None:
        assert waiting is not None
        visit, page = waiting.visit, waiting.whole()
        item = self._visits[visit.fingerprint]
        self._weigh(item, len(page.body))
        self._sent_bytes += len(page.body)
        pool.submit(
            visit,
            page,
            archive=item.step in ("whole", "fetched"),
            only_detect=item.only_detect,
            slow=slow,
            number=waiting.number,
        )

    def _weigh(self, item: _InFlight, weight: int) -> None:
        self.bytes += weight - item.bytes
        item.bytes = weight

    def slow(self, slow: SlowPage) -> None:
        """A page came back from its worker, because others waited for the worker: it waits in the slow lane. There it
        counts as what it takes packed, so that slow pages do not keep the crawl from leasing others."""
        self._sent_bytes -= len(slow.page.body)
        self._pages.charge(slow.visit.host, 2 * SLOW_SECONDS)
        item = self._visits.get(slow.visit.fingerprint)
        if item is not None:
            waiting = WaitingPage(slow.visit, slow.page, number=slow.number).packed()
            self._weigh(item, waiting.size)
            self._pages.put(waiting)

    def transformed(self, done: TransformResult) -> FinishedVisit:
        """A worker has answered, or the page is quarantined: the visit waits for the next batch."""
        item = self._visits.get(done.visit.fingerprint) or _InFlight()
        self._sent_bytes -= len(done.page.body)
        answer, pace, step = done.answer, item.pace, item.step
        self._pages.charge(done.visit.host, answer.cpu_seconds if answer is not None else 2 * SLOW_SECONDS)
        if answer is None:
            finished = FinishedVisit(done.visit, done.page, pace, reason=done.reason, step=step)
        elif item.only_detect:
            facts = answer.result.facts
            finished = FinishedVisit(done.visit, done.page, pace, None, answer.record, step=step, facts=facts)
        else:
            result = answer.result if item.amend is None else item.amend(answer.result)
            finished = FinishedVisit(
                done.visit,
                done.page,
                pace,
                result,
                answer.record,
                step=step,
                links=answer.links,
                original=item.original,
            )
        self._wait(finished, item)
        return finished

    def finish(self, finished: FinishedVisit) -> None:
        """A visit that needs no worker: it waits for the next batch."""
        item = self._visits[finished.visit.fingerprint] = _InFlight(finished.pace, step=finished.step)
        self._wait(finished, item)

    def _wait(self, finished: FinishedVisit, item: _InFlight) -> None:
        weight = finished.weight
        self._weigh(item, weight)
        self._finished.append(finished)
        self._finished_bytes += weight

    # The next batch.

    @property
    def must_be_written(self) -> bool:
        """As many bytes wait as are written at once."""
        return self._finished_bytes >= BATCH_BYTES

    def is_due(self, *, has_more: bool) -> bool:
        """A full batch, by pages or bytes, or anything after `crawl.batch_seconds`. `has_more`: something waits to be
        written besides visits."""
        if len(self._finished) >= self._most or self._finished_bytes >= BATCH_BYTES:
            return True
        return (bool(self._finished) or has_more) and time.monotonic() - self._written_at >= self._seconds

    def take_batch(self) -> list[FinishedVisit]:
        """Visits that are written together: the first ones, up to `BATCH_BYTES` and one more. Steps that follow a
        settled fetch have batches of their own."""
        batch: list[FinishedVisit] = []
        left: list[FinishedVisit] = []
        size, of_later = 0, False
        for item in self._finished:
            is_later = item.step in LATER_STEPS
            if not batch:
                of_later = is_later
            if size < BATCH_BYTES and is_later == of_later:
                batch.append(item)
                size += self._visits[item.visit.fingerprint].bytes
            else:
                left.append(item)
        self._finished = left
        self._finished_bytes -= size
        return batch

    def put_back(self, batch: Sequence[FinishedVisit]) -> None:
        """Nothing of it was written: it comes first in the next batch."""
        self._finished[:0] = batch
        self._finished_bytes += sum(self._visits[item.visit.fingerprint].bytes for item in batch)

    def written(self) -> None:
        """A batch is durable: `crawl.batch_seconds` begin again."""
        self._written_at = time.monotonic()


class UnindexedPages:
    """Pages that were given to the indexer and are not acknowledged yet. Its length counts jobs: a page that was read
    twice meanwhile counts twice.

    Until the acknowledgement of a page is durable, no other worker can know that it is indexed. So a worker keeps a
    shard for as long as pages of it are here; otherwise the next owner would transform, or even fetch, them again.
    """

    def __init__(self) -> None:
        self._times: Counter[int] = Counter()
        self._hosts: dict[int, str] = {}
        self._jobs = 0

    def __len__(self) -> int:
        return self._jobs

    def __contains__(self, fingerprint: int) -> bool:
        return fingerprint in self._times

    def add(self, pages: Iterable[tuple[int, str]]) -> None:
        """Fingerprint and host of each."""
        for fingerprint, host in pages:
            self._times[fingerprint] += 1
            self._hosts[fingerprint] = host
            self._jobs += 1

    def acknowledge(self, marks: Iterable[IndexedPage]) -> None:
        for fingerprint, _, _ in marks:
            if fingerprint not in self._times:
                continue
            self._jobs -= 1
            self._times[fingerprint] -= 1
            if not self._times[fingerprint]:
                del self._times[fingerprint], self._hosts[fingerprint]

    def shards(self) -> frozenset[int]:
        return frozenset(map(shard_of, self._hosts.values()))
