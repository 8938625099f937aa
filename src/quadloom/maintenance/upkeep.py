"""Verify and rebuild: do the indexes say what the archive says, and make them say it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec
from xxhash import xxh3_128_digest

from quadloom.asking.statistics import STATISTICS, Statistics, ended
from quadloom.errors import ArchiveDamaged, DiskFull, StoreError, WarehouseLocked
from quadloom.ingest.describe import REPROCESSED_AT, SourceUrls, description
from quadloom.maintenance.replay import retransformed
from quadloom.model.link import Discovery
from quadloom.model.outcome import PageRow
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.phases.index import PAGES
from quadloom.pipeline import PageResult
from quadloom.settings import Settings
from quadloom.stores.backends import open_quads, open_text
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.sqlite.database import WarehouseLock
from quadloom.stores.stores import Stores
from quadloom.workers.batch import TransformPool

_BATCH = 500


class Drift(msgspec.Struct, frozen=True):
    """One thing that is not as the catalog says."""

    what: str  # archive | quads | text | stray-graph | stray-document | unindexed
    subject: str
    detail: str


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    pages: int = 0
    drifts: tuple[Drift, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.drifts


def verify(
    stores: Stores, settings: Settings, *, limit: int = 1000, progress: Callable[[int], None] = lambda _n: None
) -> VerifyReport:
    """Compare every page's archive record, graph and document with the catalog. Reads everything, writes nothing.

    Archived pages are transformed again: only that tells whether the graph says what the page said.
    """
    drifts: list[Drift] = []
    documents = set(stores.text.ids())
    graphs: set[str] = set()
    ids: set[str] = set()
    pages = 0
    with TransformPool(settings) as pool:
        for row, result, page in retransformed(stores, pool, all_pages(stores)):
            pages += 1
            graph = row.final_url or row.href
            if row.quads_digest:
                graphs.add(graph)
            if row.text_digest:
                ids.add(graph)
            if len(drifts) < limit:
                drifts.extend(_archive_drifts(stores, row, page))
                drifts.extend(_index_drifts(stores, row, result, graph, documents))
            progress(pages)
    strays = (graph for graph in stores.quads.graphs() if _is_page(graph) and graph not in graphs)
    drifts.extend(Drift("stray-graph", graph, "in the quad store, but no page has it") for graph in strays)
    without = sorted(documents - ids)
    drifts.extend(Drift("stray-document", id_, "in the text index, but no page has it") for id_ in without)
    return VerifyReport(pages=pages, drifts=tuple(drifts[:limit]))


def rebuild(
    stores: Stores,
    settings: Settings,
    quads: QuadStore,
    text: TextIndex,
    *,
    now: float,
    progress: Callable[[int], None] = lambda _n: None,
) -> int:
    """Fill empty stores from the archive; the caller puts them in place of the old. Returns the number of pages.

    What no page made cannot be made anew, so it is taken over: the scores of topical crawls.
    """
    done = 0
    with TransformPool(settings) as pool:
        for rows in _batches(row for row in all_pages(stores) if row.quads_digest or row.text_digest):
            done += _fill(stores, pool, quads, text, rows, now, schedule=settings.index.schedule)
            progress(done)
    with suppress(StoreError):  # damaged: that is why it is rebuilt
        kept = [graph for graph in stores.quads.graphs() if _is_kept(graph)]
        quads.insert_new([Quads.of(graph, stores.quads.graph(graph)) for graph in kept])
    quads.flush()
    quads.optimize()
    text.commit()
    STATISTICS.put_encoded(stores.catalog, Statistics.recounted(quads).encode())
    REPROCESSED_AT.put(stores.catalog, now)
    ended(stores.catalog)
    return done


def _batches(rows: Iterator[PageRow]) -> Iterator[list[PageRow]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch


def set_damaged_aside(path: Path, settings: Settings) -> list[str]:
    """Indexes of the warehouse at `path` that cannot be opened are renamed to NAME.damaged, so that empty ones take
    their place until they are rebuilt. Returns their names. Raises `WarehouseLocked` where a crawl runs."""
    if not path.is_dir():
        return []
    lock = WarehouseLock(path)
    try:
        return [name for name in ("quads", "text") if _set_aside(path, name, settings)]
    finally:
        lock.release()


def _set_aside(path: Path, name: str, settings: Settings) -> bool:
    try:
        (open_quads if name == "quads" else open_text)(path / name, settings, writable=True).close()
    except (WarehouseLocked, DiskFull):
        raise
    except StoreError:
        if not (path / name).is_dir():  # a store elsewhere, which does not answer
            raise
        aside = path / f"{name}.damaged"
        shutil.rmtree(aside, ignore_errors=True)
        (path / name).rename(aside)
        return True
    return False


def all_pages(stores: Stores) -> Iterator[PageRow]:
    after = -(1 << 63)
    while rows := stores.catalog.scan(after=after, limit=_BATCH):
        yield from rows
        after = rows[-1].fingerprint


def _fill(
    stores: Stores,
    pool: TransformPool,
    quads: QuadStore,
    text: TextIndex,
    rows: list[PageRow],
    now: float,
    *,
    schedule: bool,
) -> int:
    """A page that its site does not want archived (or whose record is damaged) keeps its graph, where it can still be
    read, and is visited again."""
    new: list[Quads] = []
    documents = []
    marks = []
    abouts = []
    again: list[Discovery] = []
    sources = SourceUrls(stores.catalog)
    for row, result, page in retransformed(stores, pool, rows):
        if result is None or page is None:
            kept = _readable(stores.quads, row.final_url or row.href)
            if kept:
                new.append(Quads.of(row.final_url or row.href, kept))
                abouts.append(description(row, 200, sources.href(row.via), schedule=schedule))
            # words come with the next visit
            marks.append(IndexedPage(row.fingerprint, row.quads_digest if kept else b"", b""))
            again.append(Discovery(row.href, row.key, row.host, row.fingerprint, row.depth, "other", 0))
            continue
        new.append(result.quads)
        abouts.append(description(row, page.status, sources.href(row.via), schedule=schedule))
        if result.text is not None:
            documents.append(result.text)
        marks.append(IndexedPage(row.fingerprint, row.quads_digest, row.text_digest))
    quads.insert_new([item for item in new if item.nquads], b"".join(abouts))
    text.put(documents)
    with stores.catalog.transaction():
        stores.catalog.mark_indexed(marks)
        if again:
            stores.frontier.request(again, now)
    return len(new)


def _readable(quads: QuadStore, graph: str) -> bytes:
    try:
        return quads.graph(graph)
    except StoreError:
        return b""


def _archive_drifts(stores: Stores, row: PageRow, page: Page | None) -> Iterator[Drift]:
    if row.archive is None or not row.body_digest:
        return
    place = f"{row.archive.file} at {row.archive.offset}"
    if page is None:
        try:
            stores.archive.get(row.archive)
        except ArchiveDamaged as error:
            yield Drift("archive", row.href, error.message)
    elif xxh3_128_digest(page.body) != row.body_digest:
        yield Drift("archive", row.href, f"{place} holds another body than was fetched")


def _index_drifts(
    stores: Stores, row: PageRow, result: PageResult | None, graph: str, documents: set[str]
) -> Iterator[Drift]:
    if (row.quads_digest, row.text_digest) != (row.indexed_quads, row.indexed_text):
        yield Drift("unindexed", row.href, "settled but not indexed yet; the next crawl replays it")
        return
    if row.quads_digest:
        missing = stores.quads.difference(result.quads) if result else not stores.quads.graph(graph)
        if missing:
            yield Drift("quads", graph, "the graph does not say what the page said")
    if row.text_digest and graph not in documents:
        yield Drift("text", graph, "the document is missing from the text index")


def _is_kept(graph: str) -> bool:
    return not _is_page(graph) and graph != PAGES


def _is_page(graph: str) -> bool:
    return graph.startswith(("http://", "https://"))
