"""What the indexer has to do for a settled batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quadloom.crawling.ingest.in_flight import UnindexedPages
from quadloom.crawling.ingest.index.describe import REPROCESSED_AT, SourceUrls, description
from quadloom.crawling.ingest.index.indexer import Indexer, IndexJob
from quadloom.documents.descriptions import VISITS, visit_description
from quadloom.model.outcome import READ_OUTCOMES, Outcome, PageRow, Settlement
from quadloom.model.quads import Quads
from quadloom.model.wire import decode
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.settings import IndexSettings
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.settlement import FinishedVisit, SettleBatch


class IndexJobs:
    """Turns settled batches into jobs for the indexer. One thread. `indexer`: None = another process indexes."""

    def __init__(
        self, catalog: Catalog, indexer: Indexer | None, settings: IndexSettings, unindexed: UnindexedPages
    ) -> None:
        self._indexer = indexer
        self._settings = settings
        self._sources = SourceUrls(catalog)
        self._reprocessed_at = REPROCESSED_AT.get(catalog) or 0.0
        self._unindexed = unindexed

    def add(self, batch: SettleBatch) -> None:
        """Jobs for a batch that has just become durable. Nothing is written for a page that was found as it was before,
        unless what its description says has changed in substance."""
        jobs = [
            job
            for item, settlement in zip(batch.visits, batch.settlements, strict=True)
            if (job := self._job(item, settlement, batch.known.get(item.visit.fingerprint))) is not None
        ]
        self.put(jobs)
        outdated = [_outdated(one, batch.known) for one in batch.settlements if one.outcome is Outcome.UNCHANGED]
        self.describe([row for row in outdated if row is not None])
        self._describe_gone(batch)
        if self._settings.visits and self._indexer is not None:
            rows = [item.page for item in batch.settlements if item.page is not None]
            self._indexer.describe([(row.href, self.visit_description(row)) for row in rows], VISITS)

    def _describe_gone(self, batch: SettleBatch) -> None:
        """The first visit that does not find a page marks what it stated; the first that finds it again is described as
        any visit that changes the status."""
        if self._indexer is None:
            return
        rows = [one.page for one in batch.settlements if one.outcome is Outcome.GONE and one.page is not None]
        self._indexer.describe(
            [
                (row.graph, self.description(row, old.status))
                for row in rows
                if (row.quads_digest or row.text_digest)
                and (old := batch.known.get(row.fingerprint)) is not None
                and old.outcome is not Outcome.GONE
            ]
        )

    def put(self, jobs: Sequence[IndexJob]) -> None:
        if jobs and self._indexer is not None:
            self._unindexed.add([(job.fingerprint, job.host) for job in jobs])
            self._indexer.put(jobs)

    def reprocessed(self, at: float) -> None:
        """Pages are transformed again, perhaps by another version: what older rows say of their lines is not sure."""
        self._reprocessed_at = at

    def add_source(self, fingerprint: int, href: str) -> None:
        """A page with links that the catalog may not have yet: dumps list pages in any order."""
        self._sources.learn(fingerprint, href)

    def description(self, row: PageRow, status: int) -> bytes:
        """What the graph of pages says about one page, as N-Quads."""
        return description(row, status, self._sources.href(row.via), schedule=self._settings.schedule)

    def visit_description(self, row: PageRow) -> bytes:
        """What the graph of visits says about the last visit to a URL, as N-Quads."""
        return visit_description(row, self._sources.href(row.via))

    def describe(self, rows: Sequence[PageRow]) -> None:
        """Update the descriptions of pages that are unchanged themselves."""
        if self._settings.schedule and self._indexer is not None:
            current = [
                row
                for row in rows
                if row.outcome in READ_OUTCOMES and row.status < 300 and (row.quads_digest or row.text_digest)
            ]  # a page that redirects for now keeps the description it had
            self._indexer.describe([(row.graph, self.description(row, row.status)) for row in current])

    def _job(self, item: FinishedVisit, settlement: Settlement, old: PageRow | None) -> IndexJob | None:
        """None for an unchanged page whose last version is indexed. While an earlier version is still pending, what
        the catalog has marked is not what the indexes will hold."""
        row, result = settlement.page, item.result
        if row is None or result is None:
            return self._removal(settlement, old)
        overtaken = old is not None and row.fingerprint in self._unindexed
        quads = overtaken or row.quads_digest != row.indexed_quads
        text = overtaken or row.text_digest != row.indexed_text
        if not quads and not text:
            return None
        return IndexJob(
            fingerprint=row.fingerprint,
            quads=result.quads,
            text=result.text,
            text_digest=row.text_digest,
            fresh=old is None and not item.visit.known and item.visit.attempt <= 1,
            write_quads=quads,
            write_text=text,
            description=self.description(row, item.response.status) if row.quads_digest or row.text_digest else b"",
            links=result.link_quads,
            depth=row.depth,
            stored_lines=b"" if overtaken or old is None else self._stored_lines(old, result.quads.graph),
            host=row.host,
            kind=row.kind,
        )

    def _stored_lines(self, old: PageRow, graph: str) -> bytes:
        """Fingerprints of the lines that the stored graph holds, or b"" if we cannot be certain: the last version was
        not indexed yet, had another name, or came from a replay or rebuild, whose transform may have been another."""
        if not old.quads_digest or old.quads_digest != old.indexed_quads:
            return b""
        return old.lines if old.final_url == graph and old.fetched_at > self._reprocessed_at else b""

    def _removal(self, settlement: Settlement, old: PageRow | None) -> IndexJob | None:
        """A page that has died leaves the indexes; its history stays in the archive."""
        row = settlement.page
        if (
            row is None
            or old is None
            or row.quads_digest
            or row.text_digest
            or not (old.indexed_quads or old.indexed_text or row.fingerprint in self._unindexed)
        ):
            return None
        return removal(row.fingerprint, old.graph, row.host)


def _outdated(settlement: Settlement, known: Mapping[int, PageRow]) -> PageRow | None:
    """The row of an unchanged page whose description differs from what the graph of pages says. The time of its next
    visit alone is no reason: that moves with every visit."""
    row = settlement.page
    if row is None:
        return None
    old = known.get(row.fingerprint)
    if old is None:
        return None
    if (row.title, row.kind, row.language, row.status) != (old.title, old.kind, old.language, old.status):
        return row
    if row.schedule == old.schedule:
        return None
    if not row.schedule or not old.schedule:
        return row
    rates = [decode(schedule, PageScheduleRow).described_rate for schedule in (row.schedule, old.schedule)]
    return row if rates[0] != rates[1] else None


def removal(fingerprint: int, graph: str, host: str) -> IndexJob:
    """The job that takes a page out of both indexes."""
    return IndexJob(fingerprint, Quads.of(graph, b""), None, b"", fresh=False, host=host)
