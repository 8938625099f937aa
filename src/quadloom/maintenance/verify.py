"""Verify: compare archive and indexes with the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec
from xxhash import xxh3_128_digest

from quadloom.errors import ArchiveDamaged
from quadloom.ingest.reindex import archived_page
from quadloom.model.outcome import PageRow
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.pipeline import PageResult
from quadloom.settings import Settings
from quadloom.stores.stores import Stores
from quadloom.workers.batch import TransformPool

_BATCH = 500


class Drift(msgspec.Struct, frozen=True):
    """One difference from the catalog."""

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

    Archived pages are transformed again, because only that shows whether the graph has what the page says.
    """
    drifts: list[Drift] = []
    documents = set(stores.text.ids())
    graphs: set[str] = set()
    ids: set[str] = set()
    pages = 0
    with TransformPool(settings) as pool:
        for item in _reprocessed(stores, pool, all_pages(stores)):
            row, page, result = item.row, item.page, item.result
            pages += 1
            graph = row.graph
            if row.quads_digest:
                graphs.add(graph)
            if row.text_digest:
                ids.add(graph)
            if len(drifts) < limit:
                drifts.extend(_archive_drifts(stores, row, page))
                drifts.extend(_index_drifts(stores, row, result, graph, documents))
            progress(pages)
    stray_graphs = (graph for graph in stores.quads.graphs() if is_page(graph) and graph not in graphs)
    drifts.extend(
        Drift("stray-graph", graph, "in the quad store, but not a graph of any page") for graph in stray_graphs
    )
    stray_documents = sorted(documents - ids)
    drifts.extend(
        Drift("stray-document", id_, "in the text index, but not a document of any page") for id_ in stray_documents
    )
    return VerifyReport(pages=pages, drifts=tuple(drifts[:limit]))


def all_pages(stores: Stores) -> Iterator[PageRow]:
    after = -(1 << 63)
    while rows := stores.catalog.scan(after=after, limit=_BATCH):
        yield from rows
        after = rows[-1].fingerprint


class _Reprocessed(msgspec.Struct, frozen=True):
    """A page transformed again; `result` is None if it has no readable copy or is quarantined."""

    row: PageRow
    page: Page | None
    result: PageResult | None


def _reprocessed(stores: Stores, pool: TransformPool, rows: Iterable[PageRow]) -> Iterator[_Reprocessed]:
    with_pages = ((row, archived_page(stores.archive, row)) for row in rows)
    for (row, page), done in pool.each(with_pages, _task):
        yield _Reprocessed(row, page, done.answer.result if done is not None and done.answer is not None else None)


def _task(item: tuple[PageRow, Page | None]) -> tuple[Visit, Page] | None:
    row, page = item
    if page is None or row.kind == "quarantined":
        return None
    return Visit(row.href, row.key, row.host, row.fingerprint, row.depth, known=True), page


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
        yield Drift("archive", row.href, f"{place} has another body than the page that was fetched")


def _index_drifts(
    stores: Stores, row: PageRow, result: PageResult | None, graph: str, documents: set[str]
) -> Iterator[Drift]:
    if (row.quads_digest, row.text_digest) != (row.indexed_quads, row.indexed_text):
        yield Drift("unindexed", row.href, "settled but not indexed yet; the next crawl replays it")
        return
    if row.quads_digest:
        missing = stores.quads.difference(result.quads) if result else not stores.quads.graph(graph)
        if missing:
            yield Drift("quads", graph, "the graph differs from what the page says")
    if row.text_digest and graph not in documents:
        yield Drift("text", graph, "the document is missing from the text index")


def is_page(graph: str) -> bool:
    return graph.startswith(("http://", "https://"))
