"""The order of writes that makes kill -9 harmless at every point. `BatchWriter.settle` is that order, in one place:

1. Archive records of a batch are appended and fsynced.
2. ONE transaction settles frontier and catalog: pages, hosts, links, queue, archive offsets, and what the hooks add.
3. Quads and text follow in the indexer's thread; a later transaction of kind 2 marks what both have acknowledged.

A crash after 1 leaves an archive record that nothing refers to. A crash after 2, or within 3, leaves a page that is
settled but not marked as indexed; the next start transforms it again from the archive
(`crawling/ingest/index/reindex.py`). Nothing that was acknowledged (2) depends on anything that is not on disk yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from quadloom.crawling.ingest.index.ledger import IndexLedger
from quadloom.crawling.ingest.outgoing import Outgoing, OutgoingBuffer
from quadloom.crawling.ingest.settle import (
    settle_failure,
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
from quadloom.model.lru import LruCache
from quadloom.model.outcome import ArchiveRef, HostPace, PageRow, Settlement
from quadloom.model.page import Failure, RobotsUpdate
from quadloom.model.page_result import PageResult
from quadloom.model.phase import ALL_PHASES
from quadloom.model.url import site_of
from quadloom.process.failpoints import Failpoints
from quadloom.process.retry import retry_when_unavailable
from quadloom.process.waiting import Waiting
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode as encode_record
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.archive import ArchiveRecord
from quadloom.stores.protocols.frontier import HostRow
from quadloom.stores.protocols.settlement import FinishedVisit, SettleBatch, SettleHook, VisitStep

_SILENCE = 5.0  # seconds for which an archive may take to store a batch
_RETRY_SECONDS = 1.0  # between two tries to reach an archive that is away
_FEW_LINKS = 1000
_TEXTS = 100_000  # digests of texts remembered to recognise duplicates

SettleStep = Callable[[FinishedVisit, PageRow | None, ArchiveRef | None], Settlement]
"""(visit, the page's row before, its archive record) → what is written for it."""


class BatchWriter:
    """Writes batches of finished visits, with what waits in `outgoing`. `hooks` take part in their order. One
    thread."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        hooks: Sequence[SettleHook],
        outgoing: OutgoingBuffer,
        ledger: IndexLedger,
        sources: PageSources,
        failpoints: Failpoints,
        notice: Callable[[str], None],
    ) -> None:
        self._stores = stores
        self._settings = settings
        self._hooks = hooks
        self._outgoing = outgoing
        self._ledger = ledger
        self._sources = sources
        self._failpoints = failpoints
        self._notice = notice
        self._steps: dict[VisitStep, SettleStep] = {"whole": self._whole, "same": _same}
        self._alone = stores.phases == ALL_PHASES and stores.shards is None
        self._texts: LruCache[tuple[str, bytes], int] = LruCache(_TEXTS)
        self._disk_problems: dict[str, str] = {}
        self.waiting = Waiting(after=_SILENCE)  # for the archive

    def add_step(self, step: VisitStep, settle: SettleStep) -> None:
        """Settle visits that end with this step by `settle`."""
        self._steps[step] = settle

    def settle(self, visits: Sequence[FinishedVisit], now: float) -> SettleBatch | None:
        """Make a batch durable, in the order above, with all that waits in `outgoing`. None = there was nothing.

        Raises `DiskFull` and `ShardsLost`; then nothing was acknowledged, and the batch may be tried again."""
        outgoing = self._outgoing.take()
        if not visits and not outgoing:
            return None
        try:
            refs = self._archive(visits, outgoing.robots)
            if visits:
                self._failpoints.reach("after-archive")
            batch = self._settled(visits, refs, outgoing, now)
        except BaseException:
            self._outgoing.put_back(outgoing)
            raise
        for hook in self._hooks:
            hook.committed()
        if outgoing.acks:
            self._failpoints.reach("after-marks")
        if visits:
            self._failpoints.reach("after-catalog")
        # 50,000 links would stay in memory as long as the caller holds their settlement.
        batch.settlements = [
            one if len(one.discoveries) <= _FEW_LINKS else msgspec.structs.replace(one, discoveries=())
            for one in batch.settlements
        ]
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

    # The transaction.

    def _settled(
        self, visits: Sequence[FinishedVisit], refs: Sequence[ArchiveRef | None], outgoing: Outgoing, now: float
    ) -> SettleBatch:
        if self._alone:
            batch = self._prepared(visits, refs, outgoing, now)
            retry_when_unavailable(lambda: self._transaction(batch, outgoing))
            return batch
        return retry_when_unavailable(lambda: self._together(visits, refs, outgoing, now))

    def _together(
        self, visits: Sequence[FinishedVisit], refs: Sequence[ArchiveRef | None], outgoing: Outgoing, now: float
    ) -> SettleBatch:
        """While other processes write, too: what a row says must not change between reading and writing it."""
        with self._stores.catalog.transaction():
            batch = self._prepared(visits, refs, outgoing, now, lock=True)
            self._transaction(batch, outgoing)
        return batch

    def _prepared(
        self,
        visits: Sequence[FinishedVisit],
        refs: Sequence[ArchiveRef | None],
        outgoing: Outgoing,
        now: float,
        *,
        lock: bool = False,
    ) -> SettleBatch:
        known = self._stores.catalog.pages(
            [item.visit.fingerprint for item in visits if item.visit.known or item.visit.attempt > 1], lock=lock
        )
        settlements = [
            self._steps[item.step](item, known.get(item.visit.fingerprint), ref)
            for item, ref in zip(visits, refs, strict=True)
        ]
        marks = [mark for ack in outgoing.acks for mark in ack.marks]
        batch = SettleBatch(
            visits=visits,
            settlements=settlements,
            known={key: row for key, row in known.items() if row.visits},  # without those that were only fetched so far
            links=[*(link for ack in outgoing.acks for link in ack.discoveries), *outgoing.links],
            now=now,
            extracted=outgoing.extracted,
            marks=marks,
            indexed=len(marks) + _already_indexed(visits, settlements),
        )
        for hook in self._hooks:
            hook.prepare(batch)
        return batch

    def _transaction(self, batch: SettleBatch, outgoing: Outgoing) -> None:
        """The one transaction. Changes nothing in memory that a second try would miss."""
        catalog, frontier, now = self._stores.catalog, self._stores.frontier, batch.now
        with catalog.transaction():
            frontier.settle(batch.settlements, now)
            catalog.record(batch.settlements, now)
            if batch.links:
                frontier.add(batch.links, now)
            self._ledger.write(outgoing.acks, outgoing.requests, now)
            self._write_robots(outgoing.robots, now)
            for hook in self._hooks:
                hook.write(now)

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

    # The archive.

    def _archive(self, visits: Sequence[FinishedVisit], robots: Sequence[RobotsUpdate]) -> list[ArchiveRef | None]:
        written: list[ArchiveRecord] = []
        places: list[int | None] = []  # by visit, in `written`
        for item in visits:
            record = item.record if item.record is not None or item.result is not None else self._packed(item)
            if record is not None and item.original is not None:  # first, so that readers take the other for the newest
                written.append(encode_record(item.original))
            places.append(len(written) if record is not None else None)
            if record is not None:
                written.append(record)
        if not self._settings.index.only_data:  # robots.txt too, so that a crawl can be replayed from its archive
            written += [encode_record(item.response) for item in robots if item.response is not None]
        refs = self._put(written) if written else []
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
                self.waiting.on("the archive, which does not answer")
                self._stores.archive.sync()
                self.waiting.off()
                break
            except StoreUnavailable as error:
                if not self._stores.state.waits():
                    raise
                if not waiting:
                    self._notice(f"waiting for a store: {error.message}")
                    waiting = True
                time.sleep(_RETRY_SECONDS)
        if waiting:
            self._notice("the store is back")

    def _packed(self, item: FinishedVisit) -> ArchiveRecord | None:
        """The record of a response that no worker has packed: such responses are small."""
        if (
            item.step == "same"
            or self._settings.index.only_data
            or isinstance(item.response, Failure)
            or item.response.status == 304
        ):
            return None
        return encode_record(item.response)

    # What is settled for a visit.

    def _whole(self, item: FinishedVisit, old: PageRow | None, ref: ArchiveRef | None) -> Settlement:
        if isinstance(item.response, Failure):
            return settle_failure(item.visit, item.response, item.pace, old, self._settings)
        if item.result is not None:
            source = self._sources.digest(item.response)
            result = unpacked(item.result, item.links) if item.links else item.result
            return settle_page(item.visit, item.response, result, self._priced(item, result), old, ref, source)
        if item.reason:
            return settle_quarantine(item.visit, item.response, item.reason, item.pace, old, ref)
        ended = settle_status(item.visit, item.response, item.pace, old, self._settings)
        if ended is None:
            raise AssertionError("a page with content came back without being transformed")
        return ended

    def _priced(self, item: FinishedVisit, result: PageResult) -> HostPace | None:
        """A page with the same text as another page of its host costs the host's budget more, so that traps starve; so
        does one that states more than its share of what the host may state in all."""
        pace = item.pace
        if pace is None:
            return None
        price = size_price(result, self._settings)
        if result.text_digest:
            key = (item.visit.host, result.text_digest)
            first = self._texts.get(key)
            if first is None:
                self._texts.put(key, item.visit.fingerprint)
            elif first != item.visit.fingerprint:
                price = max(price, cost_of(item.response, duplicate=True))
        return msgspec.structs.replace(pace, cost=price) if price > pace.cost else pace


def _same(item: FinishedVisit, old: PageRow | None, _ref: ArchiveRef | None) -> Settlement:
    assert not isinstance(item.response, Failure)
    return settle_same(item.visit, item.response, item.pace, old)


def _already_indexed(visits: Sequence[FinishedVisit], settlements: Sequence[Settlement]) -> int:
    """How many pages the indexes have as they are before they are settled: they may not be indexed, or only their links
    are new. Nothing repeats them after a crash."""
    return sum(
        item.result is not None
        and (row := settlement.page) is not None
        and (row.quads_digest, row.text_digest) == (row.indexed_quads, row.indexed_text)
        for item, settlement in zip(visits, settlements, strict=True)
    )
