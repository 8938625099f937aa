"""The order of writes that makes kill -9 harmless at every point. `BatchWriter.settle` is that order, in one place:

1. Archive records of a batch are appended and fsynced.
2. ONE transaction settles frontier and catalog: pages, hosts, links, queue, archive offsets, and what the hooks add.
3. Quads and text follow in the indexer's thread; a later transaction of kind 2 marks what both have acknowledged.

A crash after 1 leaves an archive record that nothing refers to. A crash after 2, or within 3, leaves a page that is
settled but not marked as indexed; the next start transforms it again from the archive (`quadloom.ingest.reindex`).
Nothing that was acknowledged (2) depends on anything that is not on disk yet.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.errors import StoreError
from quadloom.fetching.fetcher import RobotsUpdate
from quadloom.fetching.politeness import cost_of
from quadloom.ingest.failpoints import Failpoints
from quadloom.ingest.hooks import FinishedVisit, SettleBatch, SettleHook
from quadloom.ingest.indexer import IndexAcks
from quadloom.ingest.jobs import IndexJobs
from quadloom.ingest.ledger import IndexLedger
from quadloom.ingest.reindex import Reindexing
from quadloom.ingest.settle import settle_failure, settle_page, settle_quarantine, settle_status
from quadloom.model.link import Discovery
from quadloom.model.lru import LruCache
from quadloom.model.outcome import ArchiveRef, HostPace, Outcome, PageRow, Settlement
from quadloom.model.page import Failure
from quadloom.model.url import site_of
from quadloom.phases.extract import sitemap_discoveries
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode as encode_record
from quadloom.stores.protocols.archive import ArchiveRecord
from quadloom.stores.protocols.frontier import HostRow
from quadloom.stores.shards import shard_of
from quadloom.stores.stores import Stores
from quadloom.stores.transactions import retry_when_unavailable

_TEXTS = 100_000  # digests of texts remembered to recognise duplicates


class BatchWriter:
    """Writes batches of finished visits, with what has arrived besides: robots.txt files, acknowledgements of the
    indexer, requests for pages that could not be reindexed. `hooks` take part in their order. One thread."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        hooks: Sequence[SettleHook],
        jobs: IndexJobs,
        reindexing: Reindexing,
        ledger: IndexLedger,
        failpoints: Failpoints,
    ) -> None:
        self._stores = stores
        self._settings = settings
        self._hooks = hooks
        self._jobs = jobs
        self._reindexing = reindexing
        self._ledger = ledger
        self._failpoints = failpoints
        self._texts: LruCache[tuple[str, bytes], int] = LruCache(_TEXTS)
        self.robots: list[RobotsUpdate] = []
        self.acks: list[IndexAcks] = []

    @property
    def has_more(self) -> bool:
        """Something waits to be written even if no visit has finished."""
        return bool(self.acks or self._reindexing.requests)

    def settle(self, visits: Sequence[FinishedVisit], now: float) -> list[Settlement]:
        """Make a batch durable, in the order above. Returns what was settled, in order.

        Raises `DiskFull` and `ShardsLost`; then nothing was acknowledged, and the batch may be tried again."""
        if not visits and not self.has_more and not self.robots:
            return []
        known = self._stores.catalog.pages(
            [item.visit.fingerprint for item in visits if item.visit.known or item.visit.attempt > 1]
        )
        refs = self._archive(visits)
        if visits:
            self._failpoints.reach("after-archive")
        settlements = [
            self._settlement(item, known.get(item.visit.fingerprint), ref)
            for item, ref in zip(visits, refs, strict=True)
        ]
        acks, requests = list(self.acks), list(self._reindexing.requests)
        links = [link for ack in acks for link in ack.discoveries]
        batch = SettleBatch(visits, settlements, known, links, list(self.robots), now)
        for hook in self._hooks:
            hook.prepare(batch)
        retry_when_unavailable(lambda: self._transaction(batch, acks, requests))
        self._committed(batch, acks, requests)
        if visits:
            self._failpoints.reach("after-catalog")
        self._jobs.add(batch)
        unchanged = [s.page for s in batch.settlements if s.page is not None and s.outcome is Outcome.UNCHANGED]
        self._jobs.describe(unchanged)
        return batch.settlements

    def drop_shards(self, lost: frozenset[int]) -> None:
        """Another worker has taken over these shards: what was found out about their hosts is not ours to write."""
        self.robots = [item for item in self.robots if shard_of(item.host) not in lost]

    def _transaction(self, batch: SettleBatch, acks: Sequence[IndexAcks], requests: Sequence[Discovery]) -> None:
        """The one transaction. Changes nothing in memory that a second try would miss."""
        catalog, frontier, now = self._stores.catalog, self._stores.frontier, batch.now
        with catalog.transaction():
            frontier.settle(batch.settlements, now)
            catalog.record(batch.settlements, now)
            if batch.links:
                frontier.add(batch.links, now)
            self._ledger.write(acks, requests, now)
            self._write_robots(batch.robots, now)
            for hook in self._hooks:
                hook.write(now)

    def _committed(self, batch: SettleBatch, acks: Sequence[IndexAcks], requests: Sequence[Discovery]) -> None:
        del self.acks[: len(acks)], self.robots[: len(batch.robots)]
        self._reindexing.requested(requests)
        for ack in acks:
            self._jobs.pending.acknowledge(ack.marks)
        for hook in self._hooks:
            hook.committed()
        if acks:
            self._failpoints.reach("after-marks")

    def _write_robots(self, updates: Sequence[RobotsUpdate], now: float) -> None:
        frontier = self._stores.frontier
        for item in updates:
            row = frontier.host(item.host) or HostRow(host=item.host, site=site_of(item.host))
            frontier.put_host(
                msgspec.structs.replace(
                    row, robots=item.robots, robots_expires=item.expires, crawl_delay=item.crawl_delay
                )
            )
        sitemaps = [url for item in updates for url in item.sitemaps] if self._settings.crawl.sitemaps else []
        if sitemaps:
            frontier.add(sitemap_discoveries(sitemaps), now)

    def _archive(self, visits: Sequence[FinishedVisit]) -> list[ArchiveRef | None]:
        records = [self._record(item) for item in visits]
        written = [record for record in records if record is not None]
        if not self._settings.index.only_data:  # robots.txt too, so that a crawl can be replayed from its archive
            written += [encode_record(item.response) for item in self.robots if item.response is not None]
        refs = iter(self._put(written) if written else [])
        return [next(refs) if record is not None else None for record in records]

    def _put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        """Durable on return. A disk may fail as late as in `sync`; then the archive goes on in another directory."""
        archive = self._stores.archive
        try:
            refs = archive.put(records)
            archive.sync()
        except StoreError:
            if sum(disk.configured for disk in archive.disks()) < 2:
                raise
            refs = archive.put(records)
            archive.sync()
        return refs

    def _record(self, item: FinishedVisit) -> ArchiveRecord | None:
        """Workers have already packed what they transformed; other responses are small and packed here."""
        if item.record is not None or item.result is not None:
            return item.record
        if self._settings.index.only_data or isinstance(item.response, Failure) or item.response.status == 304:
            return None
        return encode_record(item.response)

    def _settlement(self, item: FinishedVisit, old: PageRow | None, ref: ArchiveRef | None) -> Settlement:
        if isinstance(item.response, Failure):
            return settle_failure(item.visit, item.response, item.pace, old, self._settings)
        if item.result is not None:
            return settle_page(item.visit, item.response, item.result, self._priced(item), old, ref)
        if item.reason:
            return settle_quarantine(item.visit, item.response, item.reason, item.pace, old, ref)
        settlement = settle_status(item.visit, item.response, item.pace, old, self._settings)
        if settlement is None:
            raise AssertionError("a page with content came back without being transformed")
        return settlement

    def _priced(self, item: FinishedVisit) -> HostPace | None:
        """A page with the same text as another page of its host costs the host's budget more, so that traps starve."""
        if item.result is None or item.pace is None or not item.result.text_digest:
            return item.pace
        key = (item.visit.host, item.result.text_digest)
        first = self._texts.get(key)
        if first is None:
            self._texts.put(key, item.visit.fingerprint)
        if first is None or first == item.visit.fingerprint:
            return item.pace
        return msgspec.structs.replace(item.pace, cost=cost_of(item.response, duplicate=True))
