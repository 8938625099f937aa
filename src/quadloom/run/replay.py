"""Quads and text again from the archive: after a crash for what was not indexed yet, on `rebuild` for everything.

The archive has what servers said, the transform is a pure function, so the indexes can always be made anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from quadloom.asking.statistics import OPEN
from quadloom.errors import ArchiveDamaged
from quadloom.model.link import Discovery
from quadloom.model.outcome import PageRow
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.model.visit import Visit
from quadloom.phases.extract import chosen
from quadloom.phases.extract_queries import user_queries
from quadloom.phases.index import PAGES
from quadloom.phases.outside import all_syntaxes, document_loader
from quadloom.pipeline import Woven, weave
from quadloom.run.describing import WOVEN_AGAIN, Sources, description
from quadloom.run.extracting import Extractor
from quadloom.run.indexing import Entry
from quadloom.run.opened import Opened
from quadloom.settings import Settings

_BATCH = 200


class Replayed(msgspec.Struct, frozen=True):
    """How a replay went. `refetch`: pages not (readably) in the archive, which were asked for again."""

    pages: int = 0
    refetch: int = 0


def replay_unindexed(stores: Opened, settings: Settings, now: float) -> Replayed:
    """Bring the indexes up to the settled truth. Called at every start, before the first lease."""
    pages = refetch = 0
    after = (-1.0, 0)
    while rows := stores.catalog.unindexed(_BATCH, after):
        after = (rows[-1].fetched_at, rows[-1].fingerprint)
        entries, missing = _entries(stores, settings, rows)
        for entry in entries:
            stores.quads.replace(entry.quads)
        stores.quads.describe(PAGES, [(entry.quads.graph, entry.about) for entry in entries])
        stores.catalog.put(WOVEN_AGAIN, str(now).encode())
        stores.catalog.put(OPEN, b"1")  # the sums know nothing of these: the crawl counts anew
        stores.text.put([entry.text for entry in entries if entry.text is not None])
        stores.text.remove([entry.quads.graph for entry in entries if entry.text is None])
        stores.quads.flush()
        stores.text.commit()
        found = _extracted(stores, settings, entries)
        with stores.catalog.transaction():
            stores.frontier.add(found, now)
            stores.catalog.mark_indexed([(e.fingerprint, e.quads.digest, e.text_digest) for e in entries])
            if missing:  # they stay unindexed until they have been read again
                stores.frontier.request([_request(row) for row in missing], now)
        pages += len(entries)
        refetch += len(missing)
    return Replayed(pages, refetch)


def rewoven(
    stores: Opened, settings: Settings, rows: Iterable[PageRow]
) -> Iterator[tuple[PageRow, Woven | None, Page | None]]:
    """Each page's newest archived version, transformed again; None where the archive has no (readable) copy."""
    strategies = chosen(settings.crawl.strategies)
    loader, syntaxes = document_loader(settings), all_syntaxes(settings).registry
    for row in rows:
        page = _archived(stores, row)
        if page is None:
            yield row, None, None
            continue
        visit = Visit(row.href, row.key, row.host, row.fingerprint, row.depth, known=True)
        yield row, weave(page, visit, settings, strategies, loader, syntaxes), page


def _entries(stores: Opened, settings: Settings, rows: list[PageRow]) -> tuple[list[Entry], list[PageRow]]:
    entries, missing = [], []
    sources = Sources(stores.catalog)
    for row, woven, page in rewoven(stores, settings, rows):
        if not row.quads_digest and not row.text_digest:
            entries.append(Entry(row.fingerprint, Quads.of(row.final_url or row.href, b""), None, b"", fresh=False))
        elif woven is None or page is None:
            missing.append(row)
        else:
            # Marked with the settled digests: they are what the catalog compares with, also across versions of us.
            quads = msgspec.structs.replace(woven.quads, digest=row.quads_digest)
            about = description(row, page.status, sources.href(row.via), schedule=settings.index.schedule)
            entries.append(
                Entry(
                    row.fingerprint, quads, woven.text, row.text_digest, fresh=False, about=about,
                    links=woven.link_quads, depth=row.depth,
                )
            )  # fmt: skip
    return entries, missing


def _extracted(stores: Opened, settings: Settings, entries: list[Entry]) -> tuple[Discovery, ...]:
    """What the user's own strategies find: the crash may have come before their links were written."""
    if not user_queries(settings.crawl.strategies):
        return ()
    extractor = Extractor(settings, stores.quads_path, lambda _text: None)
    try:
        return extractor.discoveries(entries)
    finally:
        extractor.close()


def _archived(stores: Opened, row: PageRow) -> Page | None:
    if row.archive is None:
        return None
    try:
        page = stores.archive.get(row.archive)
    except ArchiveDamaged:
        return None
    return page if isinstance(page, Page) else None


def _request(row: PageRow) -> Discovery:
    return Discovery(row.href, row.key, row.host, row.fingerprint, row.depth, "other", 0)
