"""EXTRACT on its own: links of pages that were settled before, found in the spool or in the archive.

A crawl that runs all phases finds the links of a page while it transforms it. Here they are found afterwards: because
another process has transformed the page, or because a strategy is new or has changed.
"""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from quadloom.crawling.ingest.handover.backlog import Backlog, ExtractedPage
from quadloom.crawling.ingest.index.indexer import IndexJob
from quadloom.crawling.ingest.index.reindex import Reindexing, archived_page
from quadloom.crawling.ingest.link_queries import UserQueryRunner
from quadloom.crawling.workers.pool import TransformResult, WorkerPool
from quadloom.model.link import LinkKind
from quadloom.model.outcome import PageRow
from quadloom.model.page import Failure, Page
from quadloom.model.page_result import PageResult
from quadloom.model.visit import Visit
from quadloom.stores.protocols.archive import Archive


class LinkExtraction:
    """Rows in (`begin`), their links to `Backlog.extracted`. One thread, the owner's. Its length: pages in work."""

    def __init__(self, archive: Archive, backlog: Backlog, reindexing: Reindexing, queries: UserQueryRunner) -> None:
        self._archive = archive
        self._backlog = backlog
        self._reindexing = reindexing
        self._queries = queries
        self._in_work: dict[int, PageRow] = {}  # by the number that the pool gave
        self.pages = 0  # since the start

    def __len__(self) -> int:
        return len(self._in_work)

    def begin(self, row: PageRow, pool: WorkerPool) -> None:
        result = self._backlog.spool.get(row.fingerprint, row.fetched_at, links=True)
        if result is not None:
            self._found(row, result)
            return
        page = archived_page(self._archive, row)
        if page is None or row.kind == "quarantined":
            if row.kind != "quarantined":
                self._reindexing.request(row)  # its links are found when it has been read again
            self._backlog.extracted.append(ExtractedPage(row, ()))
            return
        self._in_work[pool.submit(visit_of(row), page, archive=False)] = row

    def take(self, done: TransformResult) -> bool:
        """A page that was transformed for its links. False = it was not given out from here."""
        row = self._in_work.pop(done.number, None)
        if row is None:
            return False
        if done.answer is not None:
            self._found(row, done.answer.with_links())
        else:  # it kills workers
            self._backlog.extracted.append(ExtractedPage(row, ()))
        return True

    def _found(self, row: PageRow, result: PageResult) -> None:
        job = IndexJob(row.fingerprint, result.quads, None, b"", fresh=False, links=result.link_quads, depth=row.depth)
        asked = self._queries.discoveries([job]) if self._queries.queries else ()
        self._backlog.extracted.append(ExtractedPage(row, (*result.discoveries, *asked)))
        self.pages += 1


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
