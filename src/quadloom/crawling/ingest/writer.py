"""The order of writes that makes kill -9 harmless at every point. `BatchWriter.settle` is that order, in one place:

1. Archive records of a batch are appended and fsynced.
2. ONE transaction settles frontier and catalog: pages, hosts, links, queue, archive offsets, and what the hooks add.
3. Quads and text follow in the indexer's thread; a later transaction of kind 2 marks what both have acknowledged.

A crash after 1 leaves an archive record that nothing refers to. A crash after 2, or within 3, leaves a page that is
settled but not marked as indexed; the next start transforms it again from the archive
(`crawling/ingest/index/reindex.py`). Nothing that was acknowledged (2) depends on anything that is not on disk yet."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from quadloom.crawling.ingest.handover.backlog import Backlog, ExtractedPage
from quadloom.crawling.ingest.index.indexer import IndexAcks
from quadloom.crawling.ingest.index.jobs import IndexJobs
from quadloom.crawling.ingest.index.ledger import IndexLedger
from quadloom.crawling.ingest.index.reindex import Reindexing
from quadloom.crawling.ingest.settle import (
    settle_detected,
    settle_failure,
    settle_fetched,
    settle_later,
    settle_lost,
    settle_page,
    settle_quarantine,
    settle_same,
    settle_status,
    size_price,
)
from quadloom.crawling.ingest.sources import PageSources
from quadloom.crawling.workers.messages import unpacked
from quadloom.documents.extract import sitemap_discoveries
from quadloom.errors import StoreError, StoreUnavailable
from quadloom.fetching.politeness import cost_of
from quadloom.model.link import Discovery
from quadloom.model.lru import LruCache
from quadloom.model.outcome import ArchiveRef, HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Failure, Page, RobotsUpdate
from quadloom.model.page_result import PageResult
from quadloom.model.phase import ALL_PHASES, Owed, left_owed
from quadloom.model.url import site_of
from quadloom.process.failpoints import Failpoints
from quadloom.process.retry import retry_when_unavailable
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode as encode_record
from quadloom.stores.frontier.policy import discovery_of
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.archive import ArchiveRecord
from quadloom.stores.protocols.frontier import HostRow, ScheduledPage
from quadloom.stores.protocols.settlement import LATER_STEPS, FinishedVisit, SettleBatch, SettleHook
from quadloom.stores.shards import shard_of

_PAUSE = 1.0  # seconds between two tries to reach an archive that is away
_FEW_LINKS = 1000
_TEXTS = 100_000  # digests of texts remembered to recognise duplicates


class _Batch(SettleBatch, kw_only=True):
    """With what else becomes durable: acknowledgements, requests, pages whose links were extracted. `found` and
    `found_again`: how many links of pages that were settled before are in it, by where they wait."""

    acks: list[IndexAcks]
    requests: list[Discovery]
    extracted: list[ExtractedPage]
    found: int
    found_again: int


class BatchWriter:
    """Writes batches of finished visits, with what has arrived besides: robots.txt files, acknowledgements of the
    indexer, requests for pages that could not be reindexed, links of pages that were settled before. `hooks` take part
    in their order. One thread."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        hooks: Sequence[SettleHook],
        jobs: IndexJobs,
        reindexing: Reindexing,
        backlog: Backlog,
        ledger: IndexLedger,
        sources: PageSources,
        failpoints: Failpoints,
        notice: Callable[[str], None],
    ) -> None:
        self._notice = notice
        self._stores = stores
        self._settings = settings
        self._hooks = hooks
        self._jobs = jobs
        self._reindexing = reindexing
        self._backlog = backlog
        self._alone = stores.phases == ALL_PHASES and stores.shards is None
        self._leaves = not {"index", "extract"} <= stores.phases
        self._ledger = ledger
        self._sources = sources
        self._failpoints = failpoints
        self._texts: LruCache[tuple[str, bytes], int] = LruCache(_TEXTS)
        self._disk_problems: dict[str, str] = {}
        self._robots: list[RobotsUpdate] = []
        self._originals: dict[int, Page] = {}  # rendered pages as their servers sent them, by fingerprint
        self._acks: list[IndexAcks] = []
        self._links: list[Discovery] = []  # of pages that were settled before

    def add_robots(self, update: RobotsUpdate) -> None:
        self._robots.append(update)

    def add_original(self, fingerprint: int, page: Page) -> None:
        """A page as its server sent it; the one of its visit was rendered from it."""
        self._originals[fingerprint] = page

    def add_acks(self, acks: IndexAcks) -> None:
        self._acks.append(acks)

    def add_links(self, links: Sequence[Discovery]) -> None:
        """Links of pages that were settled before."""
        self._links += links

    @property
    def has_acks(self) -> bool:
        """Pages that are indexed and not marked so."""
        return bool(self._acks)

    @property
    def has_more(self) -> bool:
        """Something waits to be written even if no visit has finished."""
        return bool(
            self._acks or self._links or self._reindexing.requests or self._reindexing.links or self._backlog.extracted
        )

    def settle(self, visits: Sequence[FinishedVisit], now: float) -> list[Settlement]:
        """Make a batch durable, in the order above. Returns what was settled, in order.

        Raises `DiskFull` and `ShardsLost`; then nothing was acknowledged, and the batch may be tried again."""
        if not visits and not self.has_more and not self._robots:
            return []
        refs = self._archive(visits)
        if visits:
            self._failpoints.reach("after-archive")
        if self._alone:
            batch = self._prepared(visits, refs, now)
            retry_when_unavailable(lambda: self._transaction(batch))
        else:
            batch = retry_when_unavailable(lambda: self._together(visits, refs, now))
        self._committed(batch)
        if visits:
            self._failpoints.reach("after-catalog")
        batch.settlements = [_without_many_links(settlement) for settlement in batch.settlements]
        if "index" in self._stores.phases:
            self._jobs.add(batch)  # waits for the indexer, if that has too much to do
        return batch.settlements

    def _together(self, visits: Sequence[FinishedVisit], refs: Sequence[ArchiveRef | None], now: float) -> _Batch:
        """While other processes write, too: what a row says must not change between reading and writing it."""
        with self._stores.catalog.transaction():
            batch = self._prepared(visits, refs, now, lock=True)
            self._transaction(batch)
        return batch

    def _prepared(
        self, visits: Sequence[FinishedVisit], refs: Sequence[ArchiveRef | None], now: float, *, lock: bool = False
    ) -> _Batch:
        known = self._stores.catalog.pages(
            [
                item.visit.fingerprint
                for item in visits
                if item.visit.known or item.visit.attempt > 1 or item.step in LATER_STEPS
            ],
            lock=lock,
        )
        settlements = [
            self._settlement(item, known.get(item.visit.fingerprint), ref)
            for item, ref in zip(visits, refs, strict=True)
        ]
        batch = _Batch(
            visits=visits,
            settlements=settlements,
            known={key: row for key, row in known.items() if row.visits},  # without those that were only fetched so far
            links=[
                *(link for ack in self._acks for link in ack.discoveries),
                *self._links,
                *self._reindexing.links,
                *self._backlog.links(),
            ],
            robots=list(self._robots),
            now=now,
            indexed=sum(len(ack.marks) for ack in self._acks) + sum(map(_is_indexed, visits, settlements)),
            acks=list(self._acks),
            requests=list(self._reindexing.requests),
            extracted=list(self._backlog.extracted),
            found=len(self._links),
            found_again=len(self._reindexing.links),
        )
        for hook in self._hooks:
            hook.prepare(batch)
        if self._leaves:
            self._leave(batch)
            if visits:
                self._failpoints.reach("after-spool")
        return batch

    def disk_notices(self) -> list[str]:
        """Which directories of the archive were left out since the last call, and which are in use again."""
        notices = []
        for disk in self._stores.archive.disks():
            if disk.configured and disk.problem != self._disk_problems.get(disk.directory, ""):
                self._disk_problems[disk.directory] = disk.problem
                words = f"is left out: {disk.problem}" if disk.problem else "is in use again"
                notices.append(f"archive directory {disk.directory} {words}")
        return notices

    def drop_shards(self, lost: frozenset[int]) -> None:
        """Another worker has taken over these shards: what was found out about their hosts is not ours to write."""
        self._robots = [item for item in self._robots if shard_of(item.host) not in lost]
        self._originals.clear()  # those of other shards too: the archive does without them

    def _transaction(self, batch: _Batch) -> None:
        """The one transaction. Changes nothing in memory that a second try would miss."""
        catalog, frontier, now = self._stores.catalog, self._stores.frontier, batch.now
        with catalog.transaction():
            later = [s for item, s in zip(batch.visits, batch.settlements, strict=True) if item.step in LATER_STEPS]
            if later:
                self._write_later(batch, later)
            else:
                frontier.settle(batch.settlements, now)
            catalog.record(batch.settlements, now)
            if batch.links:
                frontier.add(batch.links, now)
            self._ledger.write(batch.acks, batch.requests, now)
            self._backlog.write(batch.extracted, [mark.fingerprint for ack in batch.acks for mark in ack.marks])
            self._write_robots(batch.robots, now)
            for hook in self._hooks:
                hook.write(now)

    def _write_later(self, batch: _Batch, later: Sequence[Settlement]) -> None:
        """What the frontier gets of pages that it settled when they were fetched: links, and the time of the next
        visit."""
        frontier, now = self._stores.frontier, batch.now
        arrived = [s for item, s in zip(batch.visits, batch.settlements, strict=True) if item.step not in LATER_STEPS]
        if arrived:
            frontier.settle(arrived, now)
        found = [link for settlement in later for link in settlement.discoveries]
        if found:
            frontier.add(found, now)
        again = [(s.visit, s.again_at) for s in later if s.again_at is not None]
        frontier.reschedule([ScheduledPage(visit.fingerprint, visit.host, at) for visit, at in again], now)
        lost = [item.visit for item in batch.visits if item.step == "lost"]
        if lost:
            frontier.request([discovery_of(visit) for visit in lost], now)
        self._backlog.end_leases([settlement.visit.fingerprint for settlement in later])

    def _leave(self, batch: _Batch) -> None:
        """What this process does not do is left to others: marked in the rows, with what was transformed."""
        for place, (item, settlement) in enumerate(zip(batch.visits, batch.settlements, strict=True)):
            row = settlement.page
            if row is None:
                continue
            behind = (row.quads_digest, row.text_digest) != (row.indexed_quads, row.indexed_text)
            if behind and "index" not in self._stores.phases and not row.owed & Owed.TRANSFORM:
                row = msgspec.structs.replace(row, owed=row.owed | Owed.INDEX)
                batch.settlements[place] = msgspec.structs.replace(settlement, page=row)
            if item.result is not None and row.owed:
                self._backlog.spool.put(row.fingerprint, row.fetched_at, item.result)

    def _committed(self, batch: _Batch) -> None:
        del self._acks[: len(batch.acks)], self._robots[: len(batch.robots)]
        self._reindexing.requested(batch.requests)
        del self._links[: batch.found], self._reindexing.links[: batch.found_again]
        self._backlog.committed(batch.extracted, [mark.fingerprint for ack in batch.acks for mark in ack.marks])
        for ack in batch.acks:
            self._jobs.pending.acknowledge(ack.marks)
        for hook in self._hooks:
            hook.committed()
        if batch.acks:
            self._failpoints.reach("after-marks")
        if batch.extracted:
            self._failpoints.reach("after-extract")

    def _write_robots(self, updates: Sequence[RobotsUpdate], now: float) -> None:
        frontier = self._stores.frontier
        for item in updates:
            row = frontier.hosts.get(item.host) or HostRow(host=item.host, site=site_of(item.host))
            frontier.hosts.put(
                msgspec.structs.replace(
                    row, robots=item.robots, robots_expires=item.expires, crawl_delay=item.crawl_delay
                )
            )
        sitemaps = [url for item in updates for url in item.sitemaps] if self._settings.crawl.sitemaps else []
        if sitemaps:
            frontier.add(sitemap_discoveries(sitemaps), now)

    def _archive(self, visits: Sequence[FinishedVisit]) -> list[ArchiveRef | None]:
        written: list[ArchiveRecord] = []
        places: list[int | None] = []  # by visit, in `written`
        for item in visits:
            record = self._record(item)
            original = self._originals.get(item.visit.fingerprint)
            if record is not None and original is not None:  # first, so that readers take the other for the newest
                written.append(encode_record(original))
            places.append(len(written) if record is not None else None)
            if record is not None:
                written.append(record)
        if not self._settings.index.only_data:  # robots.txt too, so that a crawl can be replayed from its archive
            written += [encode_record(item.response) for item in self._robots if item.response is not None]
        refs = self._put(written) if written else []
        for item in visits:
            self._originals.pop(item.visit.fingerprint, None)
        return [refs[place] if place is not None else None for place in places]

    def _put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        """Durable on return. A disk may fail as late as in `sync`; then the archive goes on in another directory."""
        archive = self._stores.archive
        try:
            refs = archive.put(records)
            self._sync()
        except StoreError:
            if sum(disk.configured for disk in archive.disks()) < 2:
                raise
            refs = archive.put(records)
            self._sync()
        return refs

    def _sync(self) -> None:
        """As soon as the archive can be reached: nothing is settled before."""
        waiting = False
        while True:
            try:
                self._stores.archive.sync()
                break
            except StoreUnavailable as error:
                if not self._stores.state.waits():
                    raise
                if not waiting:
                    self._notice(f"waiting for a store: {error.message}")
                    waiting = True
                time.sleep(_PAUSE)
        if waiting:
            self._notice("the store answers again")

    def _record(self, item: FinishedVisit) -> ArchiveRecord | None:
        """Workers have already packed what they transformed; other responses are small and packed here."""
        if item.record is not None or item.result is not None or item.step in LATER_STEPS or item.step == "same":
            return item.record
        if item.step == "fetched" and isinstance(item.response, Page):
            return encode_record(item.response)  # whatever it says about archiving: that is found out later
        if self._settings.index.only_data or isinstance(item.response, Failure) or item.response.status == 304:
            return None
        return encode_record(item.response)

    def _settlement(self, item: FinishedVisit, old: PageRow | None, ref: ArchiveRef | None) -> Settlement:
        if item.step != "whole":
            return self._step(item, old, ref)
        if isinstance(item.response, Failure):
            return settle_failure(item.visit, item.response, item.pace, old, self._settings)
        if item.result is not None:
            source = self._sources.digest(item.response)
            result = unpacked(item.result, item.links)
            settlement = settle_page(item.visit, item.response, result, self._priced(item), old, ref, source)
            return settlement if "extract" in self._stores.phases else _without_links(settlement)
        if item.reason:
            return settle_quarantine(item.visit, item.response, item.reason, item.pace, old, ref)
        ended = settle_status(item.visit, item.response, item.pace, old, self._settings)
        if ended is None:
            raise AssertionError("a page with content came back without being transformed")
        return ended

    def _step(self, item: FinishedVisit, old: PageRow | None, ref: ArchiveRef | None) -> Settlement:
        """Of a visit whose phases are not all run at once."""
        visit, page = item.visit, item.response
        if item.step == "same" and isinstance(page, Page):
            return settle_same(visit, page, item.pace, old)
        if item.step == "lost" or isinstance(page, Failure):
            return settle_lost(visit, page, old)
        if item.step == "fetched" and ref is not None:
            owed = left_owed(self._stores.phases)
            return settle_fetched(visit, page, item.facts, item.pace, old, ref, owed)
        if item.step == "detected" and item.facts is not None:
            return settle_detected(visit, page, item.facts, old)
        result = unpacked(item.result, item.links) if item.result is not None else None
        settlement = settle_later(visit, page, result, item.reason, old, self._settings.index.only_data)
        return settlement if "extract" in self._stores.phases else _without_links(settlement)

    def _priced(self, item: FinishedVisit) -> HostPace | None:
        """A page with the same text as another page of its host costs the host's budget more, so that traps starve; so
        does one that states more than its share of what the host may state in all."""
        if item.result is None or item.pace is None:
            return item.pace
        price = size_price(item.result, self._settings)
        if self._is_duplicate(item, item.result):
            price = max(price, cost_of(item.response, duplicate=True))
        return msgspec.structs.replace(item.pace, cost=price) if price > item.pace.cost else item.pace

    def _is_duplicate(self, item: FinishedVisit, result: PageResult) -> bool:
        if not result.text_digest:
            return False
        key = (item.visit.host, result.text_digest)
        first = self._texts.get(key)
        if first is None:
            self._texts.put(key, item.visit.fingerprint)
        return first is not None and first != item.visit.fingerprint


def _is_indexed(item: FinishedVisit, settlement: Settlement) -> bool:
    """Whether the indexes have what a page says before it is settled: it may not be indexed, or only its links are new.
    Nothing repeats it after a crash."""
    row = settlement.page
    return (
        item.result is not None
        and row is not None
        and (row.quads_digest, row.text_digest) == (row.indexed_quads, row.indexed_text)
    )


def _without_many_links(settlement: Settlement) -> Settlement:
    """What was written, for those who count it; 50,000 links would stay in memory as long as they hold it."""
    if len(settlement.discoveries) <= _FEW_LINKS:
        return settlement
    return msgspec.structs.replace(settlement, discoveries=())


def _without_links(settlement: Settlement) -> Settlement:
    """Of a page whose links another process extracts."""
    row = settlement.page
    if row is None or settlement.outcome is Outcome.FETCHED or row.kind == "quarantined":
        return settlement
    row = msgspec.structs.replace(row, owed=row.owed | Owed.EXTRACT)
    return msgspec.structs.replace(settlement, page=row, discoveries=())
