"""Quads and text again from the archive: after a crash for what was not indexed yet, on `rebuild` for everything.

The archive has what servers said, the transform is a pure function, so the indexes can always be made anew. Workers
do it (`quadloom.workers.batch`): what was harmless when it was fetched may kill the version that reads it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from quadloom.asking.statistics import OPEN
from quadloom.errors import ArchiveDamaged
from quadloom.ingest.describe import REPROCESSED_AT, SourceUrls, description
from quadloom.ingest.indexer import IndexJob
from quadloom.ingest.link_queries import UserQueryRunner
from quadloom.model.link import Discovery
from quadloom.model.outcome import PageRow
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.model.visit import Visit
from quadloom.phases.extract_queries import user_queries
from quadloom.phases.index import PAGES
from quadloom.pipeline import PageResult
from quadloom.settings import Settings
from quadloom.stores.protocols.catalog import FIRST_UNINDEXED, IndexedPage, UnindexedPlace
from quadloom.stores.stores import Stores
from quadloom.workers.batch import TransformPool

_BATCH = 200


class ReplayReport(msgspec.Struct, frozen=True):
    """How a replay went. `missing`: fingerprints of pages that are not (readably) in the archive. They were requested,
    and must be asked for without validators: nothing can be made of a 304."""

    pages: int = 0
    missing: frozenset[int] = frozenset()


def replay_unindexed(stores: Stores, settings: Settings, now: float) -> ReplayReport:
    """Bring the indexes up to the settled truth. Called at every start, before the first lease."""
    pages = 0
    lost: set[int] = set()
    after = FIRST_UNINDEXED
    with TransformPool(settings) as pool:
        while rows := stores.catalog.unindexed(_BATCH, after):
            after = UnindexedPlace(rows[-1].fetched_at, rows[-1].fingerprint)
            entries, missing = _entries(stores, pool, rows, schedule=settings.index.schedule)
            _index(stores, entries, now)
            found = _extracted(stores, settings, entries)
            with stores.catalog.transaction():
                stores.frontier.add(found, now)
                marks = [IndexedPage(e.fingerprint, e.quads.digest, e.text_digest) for e in entries]
                stores.catalog.mark_indexed(marks)
                if missing:  # they stay unindexed until they have been read again
                    stores.frontier.request([_request(row) for row in missing], now)
            pages += len(entries)
            lost.update(row.fingerprint for row in missing)
    return ReplayReport(pages, frozenset(lost))


def replay_taken(
    stores: Stores, settings: Settings, now: float, index: Callable[[Sequence[IndexJob], float], None]
) -> None:
    """Bring what another worker settled and did not index to our own running indexer, which marks it when done."""
    rows = stores.catalog.unindexed(_BATCH)
    if not rows:
        return  # as after every proper hand-over: no processes need be started for it
    with TransformPool(settings) as pool:
        while rows:
            entries, missing = _entries(stores, pool, rows, schedule=settings.index.schedule)
            REPROCESSED_AT.put(stores.catalog, now)
            index(entries, now)
            if missing:
                stores.frontier.request([_request(row) for row in missing], now)
            rows = stores.catalog.unindexed(_BATCH, UnindexedPlace(rows[-1].fetched_at, rows[-1].fingerprint))


def retransformed(
    stores: Stores, pool: TransformPool, rows: Iterable[PageRow]
) -> Iterator[tuple[PageRow, PageResult | None, Page | None]]:
    """Each page's newest archived version, transformed again; None where the archive has no (readable) copy, or where
    the page is in quarantine or has earned it now."""
    with_pages = ((row, _archived(stores, row)) for row in rows)
    for (row, page), done in pool.each(with_pages, _task):
        if done is None or done.answer is None:
            yield row, None, page
        else:
            yield row, done.answer.woven, page


def _task(item: tuple[PageRow, Page | None]) -> tuple[Visit, Page] | None:
    row, page = item
    if page is None or row.kind == "quarantined":
        return None
    return Visit(row.href, row.key, row.host, row.fingerprint, row.depth, known=True), page


def _index(stores: Stores, entries: list[IndexJob], now: float) -> None:
    for entry in entries:
        stores.quads.replace(entry.quads)
    stores.quads.describe(PAGES, [(entry.quads.graph, entry.about) for entry in entries])
    REPROCESSED_AT.put(stores.catalog, now)
    OPEN.put(stores.catalog, "1")  # the sums know nothing of these: the crawl counts anew
    stores.text.put([entry.text for entry in entries if entry.text is not None])
    stores.text.remove([entry.quads.graph for entry in entries if entry.text is None])
    stores.quads.flush()
    stores.text.commit()


def _entries(
    stores: Stores, pool: TransformPool, rows: list[PageRow], *, schedule: bool
) -> tuple[list[IndexJob], list[PageRow]]:
    entries, missing = [], []
    sources = SourceUrls(stores.catalog)
    for row, result, page in retransformed(stores, pool, rows):
        if not row.quads_digest and not row.text_digest:
            gone = Quads.of(row.final_url or row.href, b"")
            entries.append(IndexJob(row.fingerprint, gone, None, b"", fresh=False, host=row.host))
        elif result is None or page is None:
            missing.append(row)
        else:
            # Marked with the settled digests: they are what the catalog compares with, also across versions of us.
            quads = msgspec.structs.replace(result.quads, digest=row.quads_digest)
            about = description(row, page.status, sources.href(row.via), schedule=schedule)
            entries.append(
                IndexJob(
                    row.fingerprint, quads, result.text, row.text_digest, fresh=False, about=about,
                    links=result.link_quads, depth=row.depth, host=row.host,
                )
            )  # fmt: skip
    return entries, missing


def _extracted(stores: Stores, settings: Settings, entries: list[IndexJob]) -> tuple[Discovery, ...]:
    """What the user's own strategies find: the crash may have come before their links were written."""
    if not user_queries(settings.crawl.strategies):
        return ()
    extractor = UserQueryRunner(settings, stores.query_source, lambda _text: None)
    try:
        return extractor.discoveries(entries)
    finally:
        extractor.close()


def _archived(stores: Stores, row: PageRow) -> Page | None:
    if row.archive is None:
        return None
    try:
        page = stores.archive.get(row.archive)
    except ArchiveDamaged:
        return None
    return page if isinstance(page, Page) else None


def _request(row: PageRow) -> Discovery:
    return Discovery(row.href, row.key, row.host, row.fingerprint, row.depth, "other", 0)
