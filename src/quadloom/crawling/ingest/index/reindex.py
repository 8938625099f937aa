"""Settled pages transformed again from the archive: after a crash, after a takeover of shards, and for `rebuild`.

The archive has what servers said and the transform is a pure function of it, so both indexes can always be rebuilt.
The work is done by the same workers as a crawl's: a page that was harmless to the version that fetched it may kill the
version that reads it again.

A page that the archive does not have (its site forbids archiving, or the record is damaged) is requested again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from quadloom.crawling.ingest.index.indexer import IndexJob
from quadloom.crawling.ingest.index.jobs import IndexJobs, removal
from quadloom.crawling.ingest.index.ledger import IndexLedger
from quadloom.crawling.ingest.outgoing import OutgoingBuffer
from quadloom.crawling.workers.pool import TransformResult, WorkerPool
from quadloom.errors import ArchiveDamaged
from quadloom.model.link import Discovery
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.model.page import Page
from quadloom.model.page_result import PageResult
from quadloom.model.visit import Visit
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.shards import shard_of

Fallback = Callable[[PageRow, bytes], IndexJob]
"""A page that the archive does not have, and its description → what is indexed for it."""


_OK = 200  # status of a version that was indexed


Content = Callable[[PageRow], PageResult | Page | None]
"""What there is of a page: the result of an earlier transformation, the page itself, or nothing."""


class _Waiting(msgspec.Struct, frozen=True):
    row: PageRow
    content: Content
    fallback: Fallback | None


class Reindexing:
    """Rows in (`add`), jobs for the indexer out. One thread, the owner's. Its length: pages in progress.

    With a `fallback` the indexes are filled from nothing: every graph is new, and `fallback` makes the job of a page
    that the archive does not have. `links_of` receives the links of every page.
    """

    def __init__(
        self,
        stores: Stores,
        jobs: IndexJobs,
        ledger: IndexLedger,
        outgoing: OutgoingBuffer,
        links_of: Callable[[int, bytes], None] = lambda _page, _edges: None,
    ) -> None:
        self._links_of = links_of
        self._catalog = stores.catalog
        self._archive = stores.archive
        self._jobs = jobs
        self._ledger = ledger
        self._outgoing = outgoing
        self.waiting: deque[_Waiting] = deque()
        self._in_workers: Counter[str] = Counter()  # by host
        self._missing: set[int] = set()

    def __len__(self) -> int:
        return len(self.waiting) + self._in_workers.total()

    @property
    def in_workers(self) -> int:
        return self._in_workers.total()

    @property
    def missing(self) -> frozenset[int]:
        """Pages that the archive does not have; asked for without validators, as a 304 brings nothing."""
        return frozenset(self._missing)

    def add(
        self, rows: Sequence[PageRow], now: float, *, fallback: Fallback | None = None, content: Content | None = None
    ) -> None:
        """Transform these pages again. `content`: where they are, if not in the archive."""
        if rows:
            self._ledger.reprocessed(now)
            self._jobs.reprocessed(now)
            self.waiting.extend(_Waiting(row, content or self._archived, fallback) for row in rows)

    def send(self, pool: WorkerPool, room: int) -> None:
        """Give up to `room` pages to the workers."""
        while self.waiting and room > 0:
            waiting = self.waiting.popleft()
            row = waiting.row
            if not row.quads_digest and not row.text_digest:
                self._jobs.put([removal(row.fingerprint, row.graph, row.host)])
                continue
            content = waiting.content(row)
            if isinstance(content, PageResult):
                self._put(waiting, content, row.status)
            elif content is None or row.kind == "quarantined":
                self._not_archived(waiting)
            else:
                visit = Visit(row.href, row.key, row.host, row.fingerprint, row.depth, known=True)
                self._in_workers[row.host] += 1
                pool.submit(visit, content, partial(self._transformed, waiting), archive=False)
                room -= 1

    def _transformed(self, waiting: _Waiting, done: TransformResult) -> None:
        host = waiting.row.host
        self._in_workers[host] -= 1
        if not self._in_workers[host]:
            del self._in_workers[host]
        if done.answer is None:
            self._not_archived(waiting)
        elif waiting.fallback is not None or self._is_current(waiting.row):  # nothing else writes during a rebuild
            self._put(waiting, done.answer.with_links(), done.page.status)

    def _archived(self, row: PageRow) -> Page | None:
        return archived_page(self._archive, row)

    def _put(self, waiting: _Waiting, result: PageResult, status: int) -> None:
        row = waiting.row
        description = self._jobs.description(row, status)
        self._jobs.put([reindex_job(row, result, description, fresh=waiting.fallback is not None)])
        if waiting.fallback is not None:
            self._outgoing.waiting.links += result.discoveries
        self._links_of(row.fingerprint, result.edges)  # noted when it was settled, but perhaps lost in a crash

    def request(self, row: PageRow) -> None:
        """Have a page read again, without validators."""
        self._missing.add(row.fingerprint)
        self._outgoing.waiting.requests.append(page_request(row))

    def shards(self) -> frozenset[int]:
        return frozenset(map(shard_of, {*(item.row.host for item in self.waiting), *self._in_workers}))

    def _is_current(self, row: PageRow) -> bool:
        """False if a newer visit was settled meanwhile: its own job is on its way and must stay the last one."""
        now = self._catalog.page(row.fingerprint)
        return now is None or (now.quads_digest, now.text_digest) == (row.quads_digest, row.text_digest)

    def _not_archived(self, waiting: _Waiting) -> None:
        """Without a fallback the page stays marked as not indexed until it has been read again."""
        row = waiting.row
        self.request(row)
        if waiting.fallback is not None:
            self._jobs.put([waiting.fallback(row, self._jobs.description(row, _OK))])


def reindex_job(row: PageRow, result: PageResult, description: bytes, *, fresh: bool) -> IndexJob:
    """The job of a settled page that was transformed again. Marked with the settled digests: the catalog compares with
    those, also across versions of the transform."""
    return IndexJob(
        fingerprint=row.fingerprint,
        quads=msgspec.structs.replace(result.quads, digest=row.quads_digest),
        text=result.text,
        text_digest=row.text_digest,
        fresh=fresh,
        description=description,
        links=result.link_quads,
        depth=row.depth,
        host=row.host,
    )


def page_request(row: PageRow) -> Discovery:
    """A page that is to be read again, without validators."""
    return Discovery(row.href, row.key, row.host, row.fingerprint, row.depth, "other", 0)


def archived_page(archive: Archive, row: PageRow, ref: ArchiveRef | None = None) -> Page | None:
    """The page's last complete version in the archive, or the one at `ref`; None if there is none, or none that can be
    read."""
    ref = ref or row.archive
    if ref is None:
        return None
    try:
        page = archive.get(ref)
    except ArchiveDamaged:
        return None
    return page if isinstance(page, Page) else None
