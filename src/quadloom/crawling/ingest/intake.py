"""The one way in: pages in, durable and indexed pages out. Nothing else writes pages to the stores.

::

    submit ──► transform workers ──► batch ──► BatchWriter: archive ──► ONE transaction ──► indexer ──► acknowledged
               (processes)                     (fsync)      (frontier, catalog, hooks)      (quads,     (with the next
                                                                                             text)       transaction)

Crawl, import, topical crawl, replay, rebuild and the takeover of shards all use `Ingest`. One thread owns it; workers
and the indexer's thread send messages to its inbox. The order of writes is in `quadloom.crawling.ingest.writer`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from quadloom.crawling.ingest.handover.handover import Handover
from quadloom.crawling.ingest.handover.writer import LaterWriter
from quadloom.crawling.ingest.in_flight import Amend, InFlightVisits
from quadloom.crawling.ingest.inbox import Inbox, IngestCounts, IngestLoad
from quadloom.crawling.ingest.index.indexer import IndexAcks, LinksFound
from quadloom.crawling.ingest.index.indexing import Indexing
from quadloom.crawling.ingest.index.ledger import IndexLedger
from quadloom.crawling.ingest.messages import EventMessage
from quadloom.crawling.ingest.outgoing import OutgoingBuffer
from quadloom.crawling.ingest.sources import PageSources
from quadloom.crawling.ingest.traps.filter import TrapFilter
from quadloom.crawling.ingest.writer import BatchWriter
from quadloom.crawling.workers.pool import PoolChanged, SlowPage, TransformResult, WorkerPool
from quadloom.errors import DiskFull, ShardsLost
from quadloom.model.event import EventKind
from quadloom.model.outcome import HostPace, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.phase import ALL_PHASES, Owed
from quadloom.model.visit import Visit
from quadloom.process.clock import unix_time
from quadloom.process.failpoints import Failpoints
from quadloom.process.threads import close_all
from quadloom.settings import Settings
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import FIRST_UNINDEXED, UnindexedPlace
from quadloom.stores.protocols.settlement import FinishedVisit, SettleHook
from quadloom.stores.shards import shard_of
from quadloom.stores.statistics import Statistics

_WAIT = 0.05  # seconds to wait for a message when there is nothing else to do
_REPLAYED = 200  # pages of one replay batch

TakePage = Callable[[Visit, Page, HostPace | None, Page | None], None]


class Ingest:
    """`submit` what was fetched, then `step` until it is settled; `close` finishes the indexes.

    `in_flight` has the visits that are not settled yet, `outgoing` what is written with the next batch besides them,
    and
    `indexing` the phase index. `handover`: work that others have left, or None if there is none.

    `hooks` take part in every transaction, in their order. `workers`: see `WorkerPool`. `notice` receives what a person
    should see. `ledger`: where it is written what the indexes hold, if not in the catalog. `links_of` receives the
    links of pages that are transformed again, or that another process has transformed.

    Which phases it runs is what the stores were opened for.
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
        self._stores = stores
        self._settings = settings
        self._clock = clock
        self._notice = notice
        self.inbox = inbox = inbox or Inbox()
        self.counts = IngestCounts()
        self.in_flight = InFlightVisits(settings.crawl)
        self.outgoing = OutgoingBuffer()
        self._failpoints = Failpoints(settings.crawl.failpoint)
        self.indexing = Indexing(
            stores,
            settings,
            self.in_flight,
            self.outgoing,
            inbox.put,
            self._failpoints,
            ledger=ledger,
            statistics=statistics,
            links_of=links_of,
            notice=lambda text: inbox.event("notice", text),
        )
        self._sources = PageSources(stores, settings)
        self.traps = TrapFilter(stores.catalog, lambda text: inbox.event("trap", text))
        self._hooks: list[SettleHook] = [self.traps, *hooks]
        self._writer = BatchWriter(
            stores,
            settings,
            self._hooks,
            self.outgoing,
            self.indexing.ledger,
            self._sources,
            self._failpoints,
            lambda text: notice("notice", text),
        )
        self.handover: Handover | None = None
        self._later_writer: LaterWriter | None = None
        self._take_page: TakePage = self.in_flight.add_page
        if stores.phases != ALL_PHASES:
            self._hand_over()
        self._pool = WorkerPool(workers, settings, inbox.put, inbox.event, inbox.fail, gives_back=True)
        inbox.on(TransformResult, self._transformed)
        inbox.on(SlowPage, self.in_flight.slow)
        inbox.on(PoolChanged, lambda _changed: self._pool.redistribute())
        inbox.on(IndexAcks, self._acknowledged)
        inbox.on(LinksFound, lambda found: self.outgoing.waiting.links.extend(found.discoveries))
        inbox.on(EventMessage, self._event)

    # What comes in

    def submit(
        self, visit: Visit, response: Page | Failure, pace: HostPace | None = None, original: Page | None = None
    ) -> None:
        """Take a visit that has come back. A page with content is transformed first, if this process does that.
        `original`: the page as its server sent it, if the one of the visit was rendered from it."""
        if isinstance(response, Failure) or not 200 <= response.status < 300:
            self.in_flight.finish(FinishedVisit(visit, response, pace))
        elif (
            visit.known and visit.fingerprint not in self.in_flight.unindexed and self._sources.is_same(visit, response)
        ):
            self.in_flight.finish(FinishedVisit(visit, response, pace, step="same"))
        else:
            self._take_page(visit, response, pace, original)

    def feed(
        self, visit: Visit, page: Page, pace: HostPace | None = None, *, amend: Amend | None = None
    ) -> list[Settlement]:
        """Take a page whatever its status, for callers that have nothing else to do: waits until an earlier version of
        the same page is settled and a worker has room. `amend` may change what the transformation says before it is
        settled. Returns what was settled meanwhile."""
        settled = self.wait_for(visit.fingerprint)
        while self.in_flight.has_waiting:
            settled += self.step(_WAIT)
        self.in_flight.add_page(visit, page, pace, amend=amend)
        return settled + self.step(0.0)

    def wait_for(self, fingerprint: int) -> list[Settlement]:
        """Step until no version of this page is in flight. Returns what was settled meanwhile."""
        settled: list[Settlement] = []
        while fingerprint in self.in_flight:
            settled += self._step_without_rest()
        return settled

    def forget_links(self) -> None:
        """The scope has changed: pages are transformed even if they are the same, and workers offer all links again."""
        self._pool.forget_links()
        self._sources.scope_changed()

    def change_strategies(self, settings: Settings, *, stored: bool) -> int:
        """Follow links by other strategies from now on, which the caller has checked. `stored`: also on all pages that
        were read before. Returns how many pages are looked at again for that."""
        self._settings = settings
        self._sources.settings_changed(settings)
        self.indexing.change_strategies(settings)
        self._pool.change_strategies(settings)
        owing = self._stores.catalog.backlog.add(Owed.EXTRACT) if stored else 0
        if self.handover is not None:
            self.handover.strategies_changed(settings)
        elif owing:
            self._hand_over().open()
        return owing

    def load(self) -> IngestLoad:
        """What its processes and stores are doing now."""
        workers = self._pool.heartbeats()
        waiting = self.in_flight.waiting + len(self.indexing.reindexing.waiting) + sum(w.in_hand for w in workers)
        return IngestLoad(
            workers,
            list(self._pool.service_loads()),
            list(self._stores.archive.disks()),
            self._pool.cpu_seconds(),
            {"transform": waiting, "index": len(self.in_flight.unindexed), "settle": self.in_flight.finished},
        )

    # What others have left

    def open_backlog(self) -> None:
        """From now on, also do what others have left for the phases of this process."""
        if self.handover is None and (self._stores.shards is not None or self._stores.catalog.backlog.counts()):
            self._hand_over()
        if self.handover is not None:
            self.handover.open()

    @property
    def has_backlog(self) -> bool:
        """Pages wait for a phase of this process, or are in progress, or are on their way through the indexer."""
        if self.handover is None:
            return False
        return not self.handover.is_empty or (self._stores.phases != ALL_PHASES and self.indexing.is_busy)

    @property
    def in_progress(self) -> bool:
        """Links of pages that others have left are being extracted."""
        return self.handover is not None and self.handover.in_progress

    def close_backlog(self) -> None:
        """Take nothing more of what others have left; what is in progress is finished."""
        if self.handover is not None:
            self.handover.backlog.open(frozenset())

    def _hand_over(self) -> Handover:
        handover = Handover(
            self._stores,
            self._settings,
            self.in_flight,
            self.outgoing,
            self.indexing,
            self._failpoints,
            lambda text: self._notice("notice", text),
        )
        self._hooks.append(handover)
        self._later_writer = LaterWriter(self._stores, self._settings, self._hooks, handover.backlog, self._failpoints)
        if self._stores.phases != ALL_PHASES:
            self._take_page = handover.take_page
            self._writer.add_step("fetched", handover.settle_fetched)
        self.handover = handover
        return handover

    # What goes on

    def step(self, wait: float) -> list[Settlement]:
        """One turn: handle messages, give pages to workers, settle a batch if one is due. Waits up to `wait` seconds
        for the first message."""
        self.inbox.deliver(wait)
        self.indexing.check()
        self._send_pages()
        settled = self._settle_batch() if self.in_flight.is_due(has_more=bool(self.outgoing)) else []
        while self.in_flight.must_be_written:
            settled += self._settle_batch()
        return settled

    def drain(self) -> list[Settlement]:
        """Step until everything submitted is settled. It ends: the pool's watchdog answers for every page."""
        settled: list[Settlement] = []
        while self.in_flight:
            settled += self._step_without_rest()
        return settled

    def settle(self, visits: Sequence[FinishedVisit], now: float) -> list[Settlement]:
        """Make finished visits durable now, without waiting for a full batch; see `BatchWriter.settle`."""
        if visits and visits[0].is_later and self._later_writer is not None:
            batch = self._later_writer.settle(visits, now)
        elif (written := self._writer.settle(visits, now)) is not None:
            batch = written
        else:
            return []
        self.in_flight.unindexed.acknowledge(batch.marks)
        self.indexing.jobs.add(batch)  # waits for the indexer, if that has too much to do
        return batch.settlements

    def replay(self) -> int:
        """Bring the indexes up to the settled truth: after a crash, pages that were settled and not indexed. Called
        before the first visit. Returns how many pages were reindexed."""
        pages = 0
        after = FIRST_UNINDEXED
        reindexing = self.indexing.reindexing
        while rows := self._stores.catalog.unindexed(_REPLAYED, after):
            after = UnindexedPlace(rows[-1].fetched_at, rows[-1].fingerprint)
            rows = [row for row in rows if not row.owed & Owed.INDEX]  # those are taken from what others have left
            pages += len(rows)
            reindexing.add(rows, self._clock())
            while reindexing.waiting:
                self.step(_WAIT)
        self.finish_indexing()
        self.counts = IngestCounts()  # they are about this run, not about what an earlier one left
        return pages - len(reindexing.missing)

    def finish_indexing(self) -> None:
        """Return when all that was settled or transformed again is indexed, and marked so."""
        while self.indexing.is_busy:
            self.step(_WAIT)
            if not self.indexing.reindexing.in_workers:
                self.indexing.hurry()
            if self.outgoing:
                self._settle_batch()

    def close(self) -> None:
        """End the workers, finish the indexes and write the last acknowledgements. What is not settled is dropped."""
        close_all((self._pool.close, self.indexing.close, self.inbox.close, self._write_rest))

    def _write_rest(self) -> None:
        self.inbox.deliver_rest(IndexAcks, LinksFound)
        ends = [lambda: self.settle([], self._clock()), self.indexing.mark_complete]
        if self.handover is not None:
            ends.insert(1, self.handover.close)
        for end in ends:
            try:
                end()
            except ShardsLost as lost:  # the frontier has forgotten them already, so the next one is not refused
                self._notice("notice", lost.message)

    def _step_without_rest(self) -> list[Settlement]:
        """One turn for a caller that submits nothing before it is done: no batch waits for more pages."""
        settled = self.step(_WAIT)
        if 0 < self.in_flight.finished == len(self.in_flight):
            settled += self._settle_batch()
        return settled

    def _transformed(self, done: TransformResult) -> None:
        counts = self.counts
        if done.answer is not None:
            seconds = done.answer.result.seconds
            counts.detected += 1
            counts.extracted += seconds.extract > 0.0
            counts.detect_seconds += seconds.detect
            counts.extract_seconds += seconds.extract
        if done.receiver is not None:
            done.receiver(done)
            return
        finished = self.in_flight.transformed(done)
        counts.transformed += finished.facts is None
        if (result := finished.result) is not None:
            counts.quads += result.quads.count
            counts.links += result.links
            counts.findings += len(result.findings)

    def _acknowledged(self, acks: IndexAcks) -> None:
        self.counts.indexed += len(acks.marks)
        self.outgoing.waiting.acks.append(acks)

    def _event(self, event: EventMessage) -> None:
        self.counts.quarantined += event.kind == "quarantined"
        self.counts.replaced_workers += event.kind == "worker-killed"
        self._pool.redistribute()
        self._notice(event.kind, event.text)

    def _send_pages(self) -> None:
        in_flight, reindexing = self.in_flight, self.indexing.reindexing
        if self.handover is not None and not in_flight.waiting and in_flight.finished < self._settings.crawl.batch:
            self.handover.feed(self._pool, self._clock())
            self.counts.extracted_later = self.handover.extracted_pages
        if in_flight.waiting or reindexing.waiting:
            room = in_flight.send(self._pool, self._pool.room())
            if room > 0 and reindexing.waiting:
                reindexing.send(self._pool, room)

    def waits(self) -> dict[str, float]:
        """What the thread that settles waits for → since when. For other threads, because this one answers nothing."""
        return {**self._writer.waiting.known(), **self._stores.state.waits_for()}

    def _settle_batch(self) -> list[Settlement]:
        batch = self.in_flight.take_batch()
        settlements = self._settle_taken(batch)
        if batch and batch[0].is_later and self.outgoing:  # its writer takes nothing else along
            self._settle_taken([])
        return settlements

    def _settle_taken(self, batch: list[FinishedVisit]) -> list[Settlement]:
        began, used = time.monotonic(), time.thread_time()
        try:
            settlements = self.settle(batch, self._clock())
        except DiskFull:
            self.in_flight.put_back(batch)  # nothing was acknowledged; the leases return
            raise
        except ShardsLost as lost:
            self._notice("notice", lost.message)
            self._drop(batch, lost.shards)
            return []
        self.in_flight.written()
        self.counts.settle_wait += max(0.0, time.monotonic() - began - (time.thread_time() - used))
        for text in self._writer.disk_notices():
            self._notice("notice", text)
        self.in_flight.release(item.visit for item in batch)
        return settlements

    def _drop(self, batch: Sequence[FinishedVisit], lost: frozenset[int]) -> None:
        """Nothing was written. Another worker reads the lost shards' pages again; the rest is tried once more."""
        self.in_flight.put_back([item for item in batch if shard_of(item.visit.host) not in lost])
        self.in_flight.release(item.visit for item in batch if shard_of(item.visit.host) in lost)
        robots = self.outgoing.waiting.robots
        robots[:] = [item for item in robots if shard_of(item.host) not in lost]
