"""The one way in: pages in, durable and indexed pages out. Nothing else writes pages to the stores.

::

    submit ──► transform workers ──► batch ──► BatchWriter: archive ──► ONE transaction ──► indexer ──► acknowledged
               (processes)                     (fsync)      (frontier, catalog, hooks)      (quads,     (with the next
                                                                                             text)       transaction)

Crawl, import, topical crawl, replay, rebuild and the takeover of shards all use `Ingest`. One thread owns it; workers
and the indexer's thread hand over what they have through its inbox. The order of writes is in `quadloom.ingest.writer`.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from quadloom.asking.statistics import Statistics
from quadloom.errors import DiskFull, ShardsLost
from quadloom.fetching.fetcher import RobotsUpdate
from quadloom.ingest.failpoints import Failpoints
from quadloom.ingest.hooks import FinishedVisit, SettleHook
from quadloom.ingest.inbox import EventMessage, Inbox
from quadloom.ingest.indexer import IndexAcks, Indexer
from quadloom.ingest.jobs import IndexJobs
from quadloom.ingest.ledger import CatalogLedger, IndexLedger
from quadloom.ingest.link_queries import UserQueryRunner
from quadloom.ingest.reindex import Fallback, Reindexing
from quadloom.ingest.traps import TrapFilter
from quadloom.ingest.writer import BatchWriter
from quadloom.model.event import EventKind
from quadloom.model.outcome import HostPace, PageRow, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.service import InstanceLoad
from quadloom.model.visit import Visit
from quadloom.pipeline import PageResult
from quadloom.process.channel import ProcessHeartbeat
from quadloom.settings import Settings
from quadloom.stores.protocols.archive import DiskState
from quadloom.stores.protocols.catalog import FIRST_UNINDEXED, UnindexedPlace
from quadloom.stores.shards import shard_of
from quadloom.stores.stores import Stores
from quadloom.workers.pool import PoolChanged, TransformResult, WorkerPool

_TEXTS = 100_000  # digests of texts remembered to recognise duplicates
_WAIT = 0.05  # seconds to wait for a message when there is nothing else to do
_GROW_AFTER = 100  # pages that one worker transforms: starting another costs as much CPU as transforming so many
_REPLAYED = 200  # pages of one replay batch

Amend = Callable[[PageResult], PageResult]


class VisitsDropped(msgspec.Struct, frozen=True):
    """Visits of shards that another worker has taken over; nothing was written for them. Sent to the inbox."""

    visits: tuple[Visit, ...]


class IngestCounts(msgspec.Struct):
    """What has passed through, since the start."""

    transformed: int = 0
    indexed: int = 0
    quarantined: int = 0
    quads: int = 0
    links: int = 0
    findings: int = 0


class _InHand(msgspec.Struct):
    """A visit between `submit` and its settlement."""

    visit: Visit
    pace: HostPace | None
    bytes: int = 0
    amend: Amend | None = None


class Ingest:
    """`submit` what was fetched, then `step` until it is settled; `close` finishes the indexes.

    `hooks` take part in every transaction, in their order. `workers` 0: one worker at first, all cores after
    `_GROW_AFTER` pages; they start with the first page. `notice` receives what a person should see. `ledger`: where it
    is written what the indexes hold, if not in the catalog.
    """

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        *,
        hooks: Sequence[SettleHook] = (),
        inbox: Inbox | None = None,
        workers: int = 0,
        statistics: Statistics | None = None,
        ledger: IndexLedger | None = None,
        clock: Callable[[], float] = time.time,
        notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    ) -> None:
        self._stores = stores
        self._settings = settings
        self._clock = clock
        self._notice = notice
        self._workers = workers
        self.inbox = inbox or Inbox()
        self.counts = IngestCounts()
        failpoints = Failpoints(settings.crawl.failpoint)
        self._link_queries = UserQueryRunner(
            settings, stores.query_source, lambda text: self.inbox.event("notice", text)
        )
        self._indexer = Indexer(
            stores.quads,
            stores.text,
            settings.index,
            self.inbox.put,
            failpoints,
            statistics or Statistics.resume(stores.catalog, stores.quads),
            self._link_queries.discoveries,
        )
        self._jobs = IndexJobs(stores.catalog, self._indexer, settings.index)
        self._ledger = ledger or CatalogLedger(stores.catalog, stores.frontier)
        self._reindexing = Reindexing(stores, self._jobs, self._ledger)
        traps = TrapFilter(stores.catalog, lambda text: self.inbox.event("trap", text))
        self._writer = BatchWriter(
            stores, settings, (traps, *hooks), self._jobs, self._reindexing, self._ledger, failpoints
        )
        self._pool: WorkerPool | None = None
        self._in_hand: dict[int, _InHand] = {}
        self._held_bytes = 0
        self._waiting: deque[tuple[Visit, Page]] = deque()  # to be transformed
        self._finished: list[FinishedVisit] = []
        self._settled_at = 0.0
        self._disk_problems: dict[str, str] = {}  # those that were told

    # What comes in

    def submit(self, visit: Visit, response: Page | Failure, pace: HostPace | None = None) -> None:
        """Take a visit that has come back. A page with content is transformed first; anything else settles as it is."""
        if isinstance(response, Failure) or not 200 <= response.status < 300:
            self._in_hand[visit.fingerprint] = _InHand(visit, pace)
            self._finished.append(FinishedVisit(visit, response, pace))
        else:
            self._submit_page(visit, response, pace)

    def feed(
        self, visit: Visit, page: Page, pace: HostPace | None = None, *, amend: Amend | None = None
    ) -> list[Settlement]:
        """Take a page whatever its status, for callers that have nothing else to do: waits until an earlier version of
        the same page is settled and a worker has room. `amend` may change what the transformation says before it is
        settled. Returns what was settled meanwhile."""
        settled = self.wait_for(visit.fingerprint)
        while self._waiting:
            settled += self.step(_WAIT)
        self._submit_page(visit, page, pace, amend=amend)
        return settled + self.step(0.0)

    def wait_for(self, fingerprint: int) -> list[Settlement]:
        """Step until no version of this page is in progress. Returns what was settled meanwhile."""
        settled: list[Settlement] = []
        while fingerprint in self._in_hand:
            settled += self.step(_WAIT)
        return settled

    def add_robots(self, update: RobotsUpdate) -> None:
        """A host's robots.txt and sitemaps, written with the next batch."""
        self._writer.robots.append(update)

    def add_source(self, fingerprint: int, href: str) -> None:
        """The address of a page that others were found on, if the catalog may not have it yet."""
        self._jobs.add_source(fingerprint, href)

    def describe(self, rows: Sequence[PageRow]) -> None:
        """Update what the indexes say about pages whose own statements and words stay as they are."""
        self._jobs.describe(rows)

    def reindex(self, rows: Sequence[PageRow], *, fallback: Fallback | None = None) -> None:
        """Transform settled pages again from the archive and index them. Returns at once; `step` does the work."""
        self._reindexing.add(rows, self._clock(), fallback)

    # What is in progress

    @property
    def held_bytes(self) -> int:
        """Bodies that wait in memory."""
        return self._held_bytes

    @property
    def may_find_links(self) -> bool:
        """The user's own link queries have not seen all pages yet that are on their way through the indexer."""
        return bool(self._link_queries.queries) and self._is_indexing()

    @property
    def missing(self) -> frozenset[int]:
        """Fingerprints of pages to reindex that the archive does not have. They were requested, and must be asked for
        without validators: a 304 would bring nothing to index."""
        return self._reindexing.missing

    def unfinished_shards(self) -> frozenset[int]:
        """Shards with pages that are settled but not marked as indexed yet."""
        return self._jobs.pending.shards() | self._reindexing.shards()

    def forget_links(self) -> None:
        """The scope has changed: workers offer all links again."""
        if self._pool is not None:
            self._pool.forget_links()

    def worker_loads(self) -> list[ProcessHeartbeat]:
        return self._pool.heartbeats() if self._pool is not None else []

    def service_loads(self) -> list[InstanceLoad]:
        """Every instance of the user's services; nothing before the first page was sent to one."""
        return list(self._pool.service_loads()) if self._pool is not None else []

    def disks(self) -> list[DiskState]:
        """The directories of the archive, with what is wrong with them."""
        return list(self._stores.archive.disks())

    def worker_cpu_seconds(self) -> float:
        return self._pool.cpu_seconds() if self._pool is not None else 0.0

    # What goes on

    def step(self, wait: float, on_message: Callable[[object], None] | None = None) -> list[Settlement]:
        """One turn: take in messages, hand out pages to workers, settle a batch if one is due. Waits up to `wait`
        seconds for the first message. `on_message` gets messages that are not for this class."""
        for message in self.inbox.take(wait):
            if not self._handle(message) and on_message is not None:
                on_message(message)
        self._hand_out()
        return self._settle_finished() if self._is_due() else []

    def drain(self) -> list[Settlement]:
        """Step until everything submitted is settled. It ends: the pool's watchdog answers for every page."""
        settled: list[Settlement] = []
        while self._in_hand:
            settled += self.step(_WAIT)
        return settled

    def replay(self) -> int:
        """Bring the indexes up to the settled truth: after a crash, pages that were settled and not indexed. Called
        before the first visit. Returns how many pages were reindexed."""
        pages = 0
        after = FIRST_UNINDEXED
        while rows := self._stores.catalog.unindexed(_REPLAYED, after):
            after = UnindexedPlace(rows[-1].fetched_at, rows[-1].fingerprint)
            pages += len(rows)
            self.reindex(rows)
            while self._reindexing.waiting:
                self.step(_WAIT)
        self.finish_indexing()
        self.counts = IngestCounts()  # they are about this run, not about what an earlier one left
        return pages - len(self.missing)

    def finish_indexing(self) -> None:
        """Return when all that was settled or given to `reindex` is indexed, and marked so."""
        while self._is_indexing():
            self.step(_WAIT)
            if not self._reindexing.in_work:
                self._indexer.hurry()
            if self._writer.has_more:
                self._settle_finished()

    def close(self) -> None:
        """End the workers, finish the indexes and write the last acknowledgements. What is not settled is dropped."""
        if self._pool is not None:
            self._pool.close()
        self._indexer.close()
        self._link_queries.close()
        self.inbox.close()
        for message in self.inbox.rest():
            if isinstance(message, IndexAcks):
                self._handle(message)
        try:
            self.settle([], self._clock())
        except ShardsLost as lost:
            self._notice("notice", lost.message)
        self._ledger.ended()

    def settle(self, visits: Sequence[FinishedVisit], now: float) -> list[Settlement]:
        """Make finished visits durable now, without waiting for a full batch; see `BatchWriter.settle`."""
        return self._writer.settle(visits, now)

    def _is_indexing(self) -> bool:
        """Pages are on their way through the indexer, or their acknowledgements are not written yet."""
        return bool(self._jobs.pending or self._reindexing or self._writer.acks)

    def _submit_page(
        self, visit: Visit, page: Page, pace: HostPace | None = None, *, amend: Amend | None = None
    ) -> None:
        """Queue a page for the workers."""
        self._in_hand[visit.fingerprint] = _InHand(visit, pace, len(page.body), amend)
        self._held_bytes += len(page.body)
        self._waiting.append((visit, page))

    def _handle(self, message: object) -> bool:
        if isinstance(message, TransformResult):
            self._transformed(message)
        elif isinstance(message, IndexAcks):
            self.counts.indexed += len(message.marks)
            self._writer.acks.append(message)
        elif isinstance(message, PoolChanged):
            if self._pool is not None:
                self._pool.redistribute()
        elif isinstance(message, EventMessage):
            self.counts.quarantined += message.kind == "quarantined"
            if self._pool is not None:
                self._pool.redistribute()
            self._notice(message.kind, message.text)
        else:
            return False
        return True

    def _transformed(self, done: TransformResult) -> None:
        if self._reindexing.take(done):
            return
        self.counts.transformed += 1
        in_hand = self._in_hand.get(done.visit.fingerprint)
        pace = in_hand.pace if in_hand is not None else None
        if done.answer is None:
            self._finished.append(FinishedVisit(done.visit, done.page, pace, reason=done.reason))
            return
        result = done.answer.result
        if in_hand is not None and in_hand.amend is not None:
            result = in_hand.amend(result)
        self.counts.quads += result.quads.count
        self.counts.links += result.links
        self.counts.findings += len(result.findings)
        self._finished.append(FinishedVisit(done.visit, done.page, pace, result, done.answer.record))

    def _hand_out(self) -> None:
        if not self._waiting and not self._reindexing.waiting:
            return
        pool = self._started_pool()
        room = pool.room()
        while self._waiting and room > 0:
            visit, page = self._waiting.popleft()
            number = pool.submit(visit, page)
            room -= 1
            if number == _GROW_AFTER and not self._workers:
                pool.grow(self._settings.crawl.workers or os.cpu_count() or 1)
        if room > 0:
            self._reindexing.hand_out(pool, room)

    def _started_pool(self) -> WorkerPool:
        if self._pool is None:
            inbox = self.inbox
            self._pool = WorkerPool(self._workers or 1, self._settings, inbox.put, inbox.event, inbox.fail)
        return self._pool

    def _is_due(self) -> bool:
        """A full batch, or anything at all after `crawl.batch_seconds`. Acknowledgements count too: a worker with
        nothing to read may never settle a page again."""
        crawl = self._settings.crawl
        if len(self._finished) >= crawl.batch:
            return True
        has_any = bool(self._finished) or self._writer.has_more
        return has_any and time.monotonic() - self._settled_at >= crawl.batch_seconds

    def _settle_finished(self) -> list[Settlement]:
        batch, self._finished = self._finished, []
        try:
            settlements = self.settle(batch, self._clock())
        except DiskFull:
            self._finished = batch  # nothing was acknowledged; the leases return
            raise
        except ShardsLost as lost:
            self._notice("notice", lost.message)
            self._drop(batch, lost.shards)
            return []
        self._settled_at = time.monotonic()
        self._tell_disks()
        for settlement in settlements:
            self._release(settlement.visit)
        return settlements

    def _tell_disks(self) -> None:
        """A notice if a directory of the archive was left out, or is in use again."""
        for disk in self._stores.archive.disks():
            told = self._disk_problems.get(disk.directory, "")
            if disk.problem == told or not disk.configured:
                continue
            self._disk_problems[disk.directory] = disk.problem
            words = f"is left out: {disk.problem}" if disk.problem else "is in use again"
            self._notice("notice", f"archive directory {disk.directory} {words}")

    def _drop(self, batch: Sequence[FinishedVisit], lost: frozenset[int]) -> None:
        """Nothing was written. Another worker reads the pages of the lost shards again; the rest is tried once more."""
        dropped = [item.visit for item in batch if shard_of(item.visit.host) in lost]
        self._finished = [item for item in batch if shard_of(item.visit.host) not in lost] + self._finished
        self._writer.drop_shards(lost)
        for visit in dropped:
            self._release(visit)
        self.inbox.put(VisitsDropped(tuple(dropped)))

    def _release(self, visit: Visit) -> None:
        in_hand = self._in_hand.pop(visit.fingerprint, None)
        self._held_bytes -= in_hand.bytes if in_hand is not None else 0


def without_links(settings: Settings) -> Settings:
    """No link of a page is queued."""
    return msgspec.structs.replace(settings, crawl=msgspec.structs.replace(settings.crawl, strategies=[]))
