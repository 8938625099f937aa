"""EXTRACT on its own: links of pages that were settled before, found in the spool or in the archive.

A crawl that runs all phases finds the links of a page while it transforms it. Here they are found afterwards: because
another process has transformed the page, or because a strategy is new or has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

from msgspec.structs import replace

from quadloom.crawling.ingest.handover.spool import ResultSpool
from quadloom.crawling.ingest.index.indexer import IndexJob
from quadloom.crawling.ingest.index.indexing import Indexing
from quadloom.crawling.ingest.index.reindex import archived_page
from quadloom.crawling.ingest.outgoing import OutgoingBuffer
from quadloom.crawling.workers.pool import TransformResult, WorkerPool
from quadloom.model.link import Discovery, LinkKind
from quadloom.model.outcome import PageRow
from quadloom.model.page import Failure, Page
from quadloom.model.page_result import PageResult
from quadloom.model.visit import Visit
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.catalog import VisitKey


class LinkExtraction:
    """Finds the links of pages (`begin`) and puts them into `outgoing`. One thread, the owner's. Its length: pages in
    progress."""

    def __init__(self, archive: Archive, spool: ResultSpool, indexing: Indexing, outgoing: OutgoingBuffer) -> None:
        self._archive = archive
        self._spool = spool
        self._indexing = indexing
        self._outgoing = outgoing
        self._in_workers = 0
        self.pages = 0  # since the start

    def __len__(self) -> int:
        return self._in_workers + len(self._outgoing.waiting.extracted)

    def begin(self, row: PageRow, pool: WorkerPool) -> None:
        result = self._spool.get(row.fingerprint, row.fetched_at, links=True)
        if result is not None:
            self._found(row, result)
            return
        page = archived_page(self._archive, row)
        if page is None or row.kind == "quarantined":
            if row.kind != "quarantined":
                self._indexing.reindexing.request(row)  # its links are found when it has been read again
            self._done(row, ())
            return
        self._in_workers += 1
        pool.submit(visit_of(row), page, partial(self._transformed, row), archive=False)

    def _transformed(self, row: PageRow, done: TransformResult) -> None:
        self._in_workers -= 1
        if done.answer is not None:
            self._found(row, done.answer.with_links())
        else:  # it kills workers
            self._done(row, ())

    def _found(self, row: PageRow, result: PageResult) -> None:
        job = IndexJob(row.fingerprint, result.quads, None, b"", fresh=False, links=result.link_quads, depth=row.depth)
        self._done(row, (*result.discoveries, *self._indexing.ask(job)))
        self.pages += 1

    def _done(self, row: PageRow, links: Sequence[Discovery]) -> None:
        self._outgoing.waiting.links += links
        self._outgoing.waiting.extracted.append(VisitKey(row.fingerprint, row.fetched_at))


def left_version(archive: Archive, row: PageRow) -> tuple[Visit, Page | Failure]:
    """The version of a page that was fetched and not transformed; a `Failure` if its record cannot be read."""
    assert row.fetched is not None
    page = archived_page(archive, row, row.fetched.archive)
    if page is None:
        return visit_of(row), Failure(row.href, "not-archived", "its record cannot be read", True, row.fetched.at)
    return visit_of(row), replace(page, fetched_at=row.fetched.at)  # the newest visit that found it so


def visit_of(row: PageRow) -> Visit:
    """The visit that fetched a page, as far as later phases need it."""
    kind = cast(LinkKind, row.link_kind or "other")
    known = row.visits > 0
    return Visit(row.href, row.key, row.host, row.fingerprint, row.depth, kind=kind, known=known, via=row.via)
