"""The one way in: pages in, durable and indexed pages out. Nothing else writes pages to the stores.

::

    submit ──► transform workers ──► batch ──► BatchWriter: archive ──► ONE transaction ──► indexer ──► acknowledged
               (processes)                     (fsync)      (frontier, catalog, hooks)      (quads,     (with the next
                                                                                             text)       transaction)

Crawl, import, topical crawl, replay, rebuild and the takeover of shards all use `Ingest`. One thread owns it; workers
and the indexer's thread hand over what they have through its inbox. The order of writes is in
`quadloom.crawling.ingest.writer`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from quadloom.crawling.ingest.handover.backlog import Backlog
from quadloom.crawling.ingest.handover.extraction import LinkExtraction
from quadloom.crawling.ingest.handover.left_work import LeftWork
from quadloom.crawling.ingest.in_hand import BATCH_BYTES, Amend, FinishedVisits, VisitsInHand
from quadloom.crawling.ingest.inbox import EventMessage, Inbox, IngestCounts, IngestLoad, VisitsDropped
from quadloom.crawling.ingest.index.indexer import IndexAcks, Indexer, LinksFound
from quadloom.crawling.ingest.index.jobs import IndexJobs
from quadloom.crawling.ingest.index.ledger import CatalogLedger, IndexLedger
from quadloom.crawling.ingest.index.reindex import Fallback, Reindexing
from quadloom.crawling.ingest.link_queries import UserQueryRunner
from quadloom.crawling.ingest.sources import PageSources
from quadloom.crawling.ingest.traps.filter import TrapFilter
from quadloom.crawling.ingest.writer import BatchWriter
from quadloom.crawling.workers.pool import PoolChanged, TransformResult, WorkerPool
from quadloom.errors import DiskFull, ShardsLost
from quadloom.model.event import EventKind
from quadloom.model.outcome import HostPace, PageRow, Settlement
from quadloom.model.page import Failure, Page, RobotsUpdate
from quadloom.model.phase import ALL_PHASES, Owed
from quadloom.model.visit import Visit
from quadloom.process.clock import unix_time
from quadloom.process.failpoints import Failpoints
from quadloom.process.threads import close_all
from quadloom.settings import Settings
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import FIRST_UNINDEXED, UnindexedPlace
from quadloom.stores.protocols.settlement import FinishedVisit, SettleHook, VisitStep
from quadloom.stores.shards import shard_of
from quadloom.stores.statistics import Statistics

_WAIT = 0.05  # seconds to wait for a message when there is nothing else to do
_REPLAYED = 200  # pages of one replay batch


class Ingest:
    """`submit` what was fetched, then `step` until it is settled; `close` finishes the indexes.

    `hooks` take part in every transaction, in their order. `workers`: see `WorkerPool`. `notice` receives what a person
    should see. `ledger`: where it is written what the indexes hold, if not in the catalog. `links_of` receives the
    links of pages that are transformed again, or that another process has transformed.

    Which phases it runs is what the stores were opened for. What others have left is taken from `open_backlog` on.
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
        links_of: Callable[[int, bytes], None] = lambda _page, _edges: None,
        clock: Callable[[], float] = unix_time,
        notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    ) -> None:
        self._phases = stores.phases
        self._stores = stores
        self._settings = settings
        self._clock = clock
        self._notice = notice
        self.inbox = inbox or Inbox()
        self.counts = IngestCounts()
        failpoints = Failpoints(settings.crawl.failpoint)
        self._link_queries = UserQueryRunner(
            settings, stores.query_source, lambda text: self.inbox.event("notice", text)
        )
        self._indexer: Indexer | None = None
        if "index" in self._phases:
            self._indexer = Indexer(
                stores.quads,
                stores.text,
                settings.index,
                self.inbox.put,
                failpoints,
                statistics or Statistics.begin(stores),
                self._link_queries,
            )
        self._jobs = IndexJobs(stores.catalog, self._indexer, settings.index)
        self._ledger = ledger or CatalogLedger(stores.catalog, stores.frontier)
        self._backlog = Backlog(stores, settings)
        self._reindexing = Reindexing(stores, self._jobs, self._ledger, self._backlog.spool, links_of)
        self._extraction = LinkExtraction(stores.archive, self._backlog, self._reindexing, self._link_queries)
        self._left = LeftWork(stores.archive, self._backlog, self._reindexing, self._extraction, notice)
        self._sources = PageSources(stores, settings)
        self.traps = TrapFilter(stores.catalog, lambda text: self.inbox.event("trap", text))
        self._writer = BatchWriter(
            stores,
            settings,
            (self.traps, *hooks),
            self._jobs,
            self._reindexing,
            self._backlog,
            self._ledger,
            self._sources,
            failpoints,
            lambda text: notice("notice", text),
        )
        self._pool = WorkerPool(workers, settings, self.inbox.put, self.inbox.event, self.inbox.fail)
        self._in_hand = VisitsInHand()
        self._finished = FinishedVisits(settings.crawl)

    # What comes in

    def submit(self, visit: Visit, response: Page | Failure, pace: HostPace | None = None) -> None:
        """Take a visit that has come back. A page with content is transformed first, if this process does that."""
        if isinstance(response, Failure) or not 200 <= response.status < 300:
            self._finish(visit, response, pace)
        elif visit.fingerprint not in self._jobs.pending and self._sources.is_same(visit, response):
            self._finish(visit, response, pace, "same")
        elif "transform" in self._phases:
            self._in_hand.add_page(visit, response, pace, None)
        elif "detect" in self._phases:
            self._in_hand.add_page(visit, response, pace, None, "fetched")
        else:
            self._finish(visit, response, pace, "fetched")

    def feed(
        self, visit: Visit, page: Page, pace: HostPace | None = None, *, amend: Amend | None = None
    ) -> list[Settlement]:
        """Take a page whatever its status, for callers that have nothing else to do: waits until an earlier version of
        the same page is settled and a worker has room. `amend` may change what the transformation says before it is
        settled. Returns what was settled meanwhile."""
        settled = self.wait_for(visit.fingerprint)
        while self._in_hand.waiting:
            settled += self.step(_WAIT)
        self._in_hand.add_page(visit, page, pace, amend)
        return settled + self.step(0.0)

    def is_working_on(self, fingerprint: int) -> bool:
        """Whether a version of this page was submitted and is not settled yet."""
        return fingerprint in self._in_hand

    def wait_for(self, fingerprint: int) -> list[Settlement]:
        """Step until no version of this page is in progress. Returns what was settled meanwhile."""
        settled: list[Settlement] = []
        while fingerprint in self._in_hand:
            settled += self._step_without_rest()
        return settled

    def add_robots(self, update: RobotsUpdate) -> None:
        """A host's robots.txt and sitemaps, written with the next batch."""
        self._writer.add_robots(update)

    def add_original(self, visit: Visit, page: Page) -> None:
        """The page as its server sent it, if the one of the visit was rendered from it: for the archive."""
        self._writer.add_original(visit.fingerprint, page)

    def add_source(self, fingerprint: int, href: str) -> None:
        """The address of a page that others were found on, if the catalog may not have it yet."""
        self._jobs.add_source(fingerprint, href)

    def describe(self, rows: Sequence[PageRow]) -> None:
        """Update what the indexes say about pages whose own statements and words stay as they are."""
        self._jobs.describe(rows)

    def reindex(
        self,
        rows: Sequence[PageRow],
        *,
        fallback: Fallback | None = None,
        versions: Mapping[int, Page] | None = None,
    ) -> None:
        """Transform settled pages again and index them. Returns at once; `step` does the work. `versions`: by
        fingerprint, what the archive has of these pages; None = it is read from there."""
        self._reindexing.add(rows, self._clock(), fallback, versions)

    def open_backlog(self) -> None:
        """From now on, also do what others have left for the phases of this process."""
        self._backlog.open(self._phases)

    def close_backlog(self) -> None:
        """Take nothing more of what others have left; what is in work is finished."""
        self._backlog.open(frozenset())

    # What is in progress

    @property
    def in_progress(self) -> bool:
        """Pages that others have left are in work."""
        return self._in_hand.has_left_pages or bool(self._extraction or self._backlog.extracted)

    @property
    def has_backlog(self) -> bool:
        """Pages wait for a phase of this process, or are in work, or are on their way through the indexer."""
        is_indexing = self._phases != ALL_PHASES and self._is_indexing()
        return is_indexing or self.in_progress or not self._backlog.is_empty

    @property
    def held_bytes(self) -> int:
        return self._in_hand.bytes

    @property
    def waiting_for(self) -> str:
        """Why nothing can be indexed now: a store is away. Empty = none is."""
        return self._indexer.waiting_for if self._indexer is not None else ""

    @property
    def may_find_links(self) -> bool:
        """The user's own link queries have not seen all pages yet that are on their way through the indexer."""
        return bool(self._link_queries.queries) and self._is_indexing()

    def hurry(self) -> None:
        """Nothing else is in progress: index what waits, for the queries over the index."""
        if self._indexer is not None and self._jobs.pending:
            self._indexer.hurry()

    @property
    def missing(self) -> frozenset[int]:
        """Pages to reindex that the archive does not have; asked for without validators, as a 304 brings nothing."""
        return self._reindexing.missing

    def unfinished_shards(self) -> frozenset[int]:
        """Shards with pages that are settled but not marked as indexed yet."""
        return self._jobs.pending.shards() | self._reindexing.shards()

    def forget_links(self) -> None:
        """The scope has changed: pages are transformed even if they are the same, and workers offer all links again."""
        self._pool.forget_links()
        self._sources.scope_changed()

    def change_strategies(self, settings: Settings, *, stored: bool) -> int:
        """Follow links by other strategies from now on, which the caller has checked. `stored`: also on all pages that
        were read before. Returns how many pages are looked at again for that."""
        self._settings = settings
        self._sources.settings_changed(settings)
        self._link_queries.change(settings)
        self._backlog.spool.strategies = tuple(settings.crawl.strategies)
        self._pool.change_strategies(settings)
        self._backlog.look_again()
        return self._stores.catalog.backlog.add(Owed.EXTRACT) if stored else 0

    def load(self) -> IngestLoad:
        """What its processes and stores are doing now."""
        workers = self._pool.heartbeats()
        waiting = self._in_hand.waiting + len(self._reindexing.waiting) + sum(beat.in_hand for beat in workers)
        return IngestLoad(
            workers,
            list(self._pool.service_loads()),
            list(self._stores.archive.disks()),
            self._pool.cpu_seconds(),
            {"transform": waiting, "index": len(self._jobs.pending), "settle": len(self._finished)},
        )

    # What goes on

    def step(self, wait: float, on_message: Callable[[object], None] | None = None) -> list[Settlement]:
        """One turn: take in messages, hand out pages to workers, settle a batch if one is due. Waits up to `wait`
        seconds for the first message. `on_message` gets messages that are not for this class."""
        for message in self.inbox.take(wait):
            if not self._handle(message) and on_message is not None:
                on_message(message)
        if self._indexer is not None:
            self._indexer.check()
        self._hand_out()
        self.counts.extracted_later = self._extraction.pages
        settled = self._settle_finished() if self._finished.is_due(has_more=self._writer.has_more) else []
        while self._finished.bytes >= BATCH_BYTES:
            settled += self._settle_finished()
        return settled

    def drain(self) -> list[Settlement]:
        """Step until everything submitted is settled. It ends: the pool's watchdog answers for every page."""
        settled: list[Settlement] = []
        while self._in_hand:
            settled += self._step_without_rest()
        return settled

    def _step_without_rest(self) -> list[Settlement]:
        """One turn for a caller that submits nothing before it is done: no batch waits for more pages."""
        settled = self.step(_WAIT)
        if self._finished and len(self._finished) == len(self._in_hand):
            settled += self._settle_finished()
        return settled

    def replay(self) -> int:
        """Bring the indexes up to the settled truth: after a crash, pages that were settled and not indexed. Called
        before the first visit. Returns how many pages were reindexed."""
        pages = 0
        after = FIRST_UNINDEXED
        while rows := self._stores.catalog.unindexed(_REPLAYED, after):
            after = UnindexedPlace(rows[-1].fetched_at, rows[-1].fingerprint)
            rows = [row for row in rows if not row.owed & Owed.INDEX]  # those are taken from what others have left
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
            if not self._reindexing.in_work and self._indexer is not None:
                self._indexer.hurry()
            if self._writer.has_more:
                self._settle_finished()

    def close(self) -> None:
        """End the workers, finish the indexes and write the last acknowledgements. What is not settled is dropped."""
        close_all(
            (
                self._pool.close,
                *((self._indexer.close,) if self._indexer is not None else ()),
                self._link_queries.close,
                self.inbox.close,
                self._write_rest,
            )
        )

    def _write_rest(self) -> None:
        for message in self.inbox.rest():
            if isinstance(message, IndexAcks | LinksFound):
                self._handle(message)
        for last in (lambda: self.settle([], self._clock()), self._backlog.close, self._end_ledger):
            try:
                last()
            except ShardsLost as lost:  # the frontier has forgotten them already, so the next one is not refused
                self._notice("notice", lost.message)

    def _end_ledger(self) -> None:
        if self._indexer is not None:
            self._ledger.ended()

    def settle(self, visits: Sequence[FinishedVisit], now: float) -> list[Settlement]:
        """Make finished visits durable now, without waiting for a full batch; see `BatchWriter.settle`."""
        return self._writer.settle(visits, now)

    def _finish(self, visit: Visit, response: Page | Failure, pace: HostPace | None, step: VisitStep = "whole") -> None:
        """Settle a response without a worker."""
        self._finished.add(self._in_hand.add(visit, response, pace, step))

    def _is_indexing(self) -> bool:
        """Pages are on their way through the indexer, or their acknowledgements are not written yet."""
        return bool(self._jobs.pending or self._reindexing or self._writer.has_acks)

    def _handle(self, message: object) -> bool:
        if isinstance(message, TransformResult):
            self._transformed(message)
        elif isinstance(message, IndexAcks):
            self.counts.indexed += len(message.marks)
            self._writer.add_acks(message)
        elif isinstance(message, PoolChanged):
            self._pool.redistribute()
        elif isinstance(message, LinksFound):
            self._writer.add_links(message.discoveries)
        elif isinstance(message, EventMessage):
            self.counts.quarantined += message.kind == "quarantined"
            self.counts.replaced_workers += message.kind == "worker-killed"
            self._pool.redistribute()
            self._notice(message.kind, message.text)
        else:
            return False
        return True

    def _transformed(self, done: TransformResult) -> None:
        if done.answer is not None:
            self.counts.measured(done.answer.result.seconds.detect, done.answer.result.seconds.extract)
        if self._reindexing.take(done) or self._extraction.take(done):
            return
        finished = self._in_hand.finished(done)
        self._finished.add(finished)
        self.counts.transformed += finished.step not in ("fetched", "detected")
        if (result := finished.result) is not None:
            self.counts.quads += result.quads.count
            self.counts.links += result.links
            self.counts.findings += len(result.findings)

    def _hand_out(self) -> None:
        in_hand = self._in_hand
        if not in_hand.waiting and len(self._finished) < self._settings.crawl.batch and self._backlog.phases:
            for left in self._left.begin(in_hand, self._pool, self._clock()):
                if isinstance(left.response, Failure):
                    self._finish(left.visit, left.response, None, left.step)
                else:
                    in_hand.add_page(left.visit, left.response, None, None, left.step)
        if not in_hand.waiting and not self._reindexing.waiting:
            return
        pool = self._pool
        room = pool.room()
        while in_hand.waiting and room > 0 and max(self._finished.bytes, 2 * in_hand.sent_bytes) < BATCH_BYTES:
            in_hand.send_next(pool)
            room -= 1
        if room > 0:
            self._reindexing.hand_out(pool, room)

    def _settle_finished(self) -> list[Settlement]:
        batch = self._finished.take()
        began, used = time.monotonic(), time.thread_time()
        try:
            settlements = self.settle(batch, self._clock())
        except DiskFull:
            self._finished.put_back(batch)  # nothing was acknowledged; the leases return
            raise
        except ShardsLost as lost:
            self._notice("notice", lost.message)
            self._drop(batch, lost.shards)
            return []
        self._finished.written()
        self.counts.settle_wait += max(0.0, time.monotonic() - began - (time.thread_time() - used))
        for text in self._writer.disk_notices():
            self._notice("notice", text)
        for settlement in settlements:
            self._release(settlement.visit)
        return settlements

    def _drop(self, batch: Sequence[FinishedVisit], lost: frozenset[int]) -> None:
        """Nothing was written. Another worker reads the lost shards' pages again; the rest is tried once more."""
        dropped = [item.visit for item in batch if shard_of(item.visit.host) in lost]
        self._finished.put_back([item for item in batch if shard_of(item.visit.host) not in lost])
        self._writer.drop_shards(lost)
        for visit in dropped:
            self._release(visit)
        self.inbox.put(VisitsDropped(tuple(dropped)))

    def _release(self, visit: Visit) -> None:
        if self._in_hand.settled(visit):
            self._backlog.settled(visit.fingerprint)
