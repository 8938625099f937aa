"""What a process does for phases that run apart: takes up pages that others have left, and leaves pages to others.

A process that runs all phases has one only if earlier commands have left something. As a hook it takes part in every
transaction: it marks in the pages' rows what is left to others, keeps what was transformed for them, and ends the
leases of what was done here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from quadloom.crawling.ingest.handover.backlog import Backlog
from quadloom.crawling.ingest.handover.extraction import LinkExtraction, left_version
from quadloom.crawling.ingest.handover.settle_later import settle_fetched
from quadloom.crawling.ingest.handover.spool import ResultSpool
from quadloom.crawling.ingest.in_flight import InFlightVisits
from quadloom.crawling.ingest.index.indexing import Indexing
from quadloom.crawling.ingest.index.reindex import archived_page
from quadloom.crawling.ingest.outgoing import OutgoingBuffer
from quadloom.crawling.workers.pool import WorkerPool
from quadloom.errors import ShardsLost
from quadloom.model.outcome import ArchiveRef, HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Failure, Page
from quadloom.model.page_result import PageResult
from quadloom.model.phase import OWED_BY_PHASE, Owed, PhaseName, left_owed
from quadloom.model.visit import Visit
from quadloom.process.failpoints import Failpoints
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode as encode_record
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import VisitKey
from quadloom.stores.protocols.settlement import FinishedVisit, SettleBatch, VisitStep

_PAGES_PER_PHASE = 64  # in progress, before more are taken
_STEPS: dict[PhaseName, VisitStep] = {"transform": "later", "detect": "detected"}


class Handover:
    """A `SettleHook`. One thread, the owner's. `open` begins to take up what others have left."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        in_flight: InFlightVisits,
        outgoing: OutgoingBuffer,
        indexing: Indexing,
        failpoints: Failpoints,
        notice: Callable[[str], None],
    ) -> None:
        self._phases = stores.phases
        self._catalog = stores.catalog
        self._archive = stores.archive
        self._in_flight = in_flight
        self._indexing = indexing
        self._failpoints = failpoints
        self._notice = notice
        self._spool = ResultSpool(stores.path, settings)
        self.backlog = Backlog(stores)
        self._extraction = LinkExtraction(stores.archive, self._spool, indexing, outgoing)
        self._extracted: Sequence[VisitKey] = ()  # pages whose links the present transaction writes
        self._marked: list[int] = []  # pages that it marks as indexed
        self._transforms = "transform" in stores.phases
        self._detects = "detect" in stores.phases
        self._may_leave = not {"index", "extract"} <= stores.phases

    # What comes in.

    def open(self) -> None:
        """From now on, take up what others have left for the phases of this process."""
        self.backlog.open(self._phases)

    def close(self) -> None:
        """Give back what is leased; remove the spool if nothing is owed."""
        if self.backlog.close():
            self._spool.clear()

    def take_page(self, visit: Visit, page: Page, pace: HostPace | None, original: Page | None) -> None:
        """A page that was just fetched, in a process that does not run all phases."""
        if self._transforms:
            self._in_flight.add_page(visit, page, pace, original)
        elif self._detects:
            self._in_flight.add_page(visit, page, pace, step="fetched", only_detect=True)
        else:  # archived whatever the page says about archiving: that is found later
            self._in_flight.finish(FinishedVisit(visit, page, pace, record=encode_record(page), step="fetched"))

    def feed(self, pool: WorkerPool, now: float) -> None:
        """Begin with pages that others have left, up to an upper bound for each phase. A worker may learn only here
        that its shards are lost: nothing was leased then, and the next turn tries again."""
        try:
            self._feed(pool, now)
        except ShardsLost as lost:
            self._notice(lost.message)

    def strategies_changed(self, settings: Settings) -> None:
        """Links are found by other strategies from now on."""
        self._spool.strategies = tuple(settings.crawl.strategies)
        self.backlog.look_again()

    @property
    def in_progress(self) -> bool:
        """Links are being extracted, or wait to be written."""
        return bool(self._extraction)

    @property
    def is_empty(self) -> bool:
        """Nothing is in progress, and at the last look there was nothing to take up."""
        return self.backlog.is_empty and not self._extraction

    @property
    def extracted_pages(self) -> int:
        """Pages whose links were extracted since the start."""
        return self._extraction.pages

    def _feed(self, pool: WorkerPool, now: float) -> None:
        backlog, reindexing = self.backlog, self._indexing.reindexing
        if "index" in backlog.phases:
            room = _PAGES_PER_PHASE - len(reindexing.waiting)
            reindexing.add(backlog.take(Owed.INDEX, room), now, content=self._spooled)
        if "extract" in backlog.phases:
            for row in backlog.take(Owed.EXTRACT, _PAGES_PER_PHASE - len(self._extraction)):
                self._extraction.begin(row, pool)
        for name, step in _STEPS.items():
            if name in backlog.phases:
                for row in backlog.take(OWED_BY_PHASE[name], _PAGES_PER_PHASE - len(self._in_flight)):
                    self._begin(row, step)

    def _begin(self, row: PageRow, step: VisitStep) -> None:
        if row.fetched is None or row.fingerprint in self._in_flight:
            self.backlog.give_back([row.fingerprint])  # it was just read again
            return
        visit, response = left_version(self._archive, row)
        if isinstance(response, Failure):
            self._in_flight.finish(FinishedVisit(visit, response, None, step="lost"))
        else:
            self._in_flight.add_page(visit, response, None, step=step, only_detect=step == "detected")

    def _spooled(self, row: PageRow) -> PageResult | Page | None:
        """What another process has transformed; otherwise the page in the archive."""
        return self._spool.get(row.fingerprint, row.fetched_at) or archived_page(self._archive, row)

    # What goes out, as a hook.

    def settle_fetched(self, item: FinishedVisit, old: PageRow | None, ref: ArchiveRef | None) -> Settlement:
        """A page that another process transforms."""
        assert isinstance(item.response, Page) and ref is not None
        owed = left_owed(self._phases)
        return settle_fetched(item.visit, item.response, item.facts, item.pace, old, ref, owed)

    def prepare(self, batch: SettleBatch) -> None:
        self._extracted = batch.extracted
        self._marked = [mark.fingerprint for mark in batch.marks]
        if not self._may_leave:
            return
        batch.settlements = [
            self._left(item, settlement) for item, settlement in zip(batch.visits, batch.settlements, strict=True)
        ]
        if batch.visits:
            self._failpoints.reach("after-spool")

    def write(self, now: float) -> None:
        if self._extracted:
            self._catalog.backlog.remove(Owed.EXTRACT, self._extracted)
        self.backlog.end_leases([*(page.fingerprint for page in self._extracted), *self._marked])

    def committed(self) -> None:
        extracted = [page.fingerprint for page in self._extracted]
        done = extracted + [key for key in self._marked if self.backlog.owes_no_links(key)]
        self.backlog.forget([*extracted, *self._marked])
        self._spool.remove(done)
        if self._extracted:
            self._failpoints.reach("after-extract")

    def _left(self, item: FinishedVisit, settlement: Settlement) -> Settlement:
        """The settlement with what its page owes to phases of other processes; they find its result in the spool."""
        row = settlement.page
        if row is None:
            return settlement
        if item.result is not None and "extract" not in self._phases and _has_links(settlement, row):
            row = msgspec.structs.replace(row, owed=row.owed | Owed.EXTRACT)
            settlement = msgspec.structs.replace(settlement, page=row, discoveries=())
        behind = (row.quads_digest, row.text_digest) != (row.indexed_quads, row.indexed_text)
        if behind and "index" not in self._phases and not row.owed & Owed.TRANSFORM:
            row = msgspec.structs.replace(row, owed=row.owed | Owed.INDEX)
            settlement = msgspec.structs.replace(settlement, page=row)
        if item.result is not None and row.owed:
            self._spool.put(row.fingerprint, row.fetched_at, item.result)
        return settlement


def _has_links(settlement: Settlement, row: PageRow) -> bool:
    return settlement.outcome is not Outcome.FETCHED and row.kind != "quarantined"
