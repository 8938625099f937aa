"""Verify: compare archive and indexes with the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from xxhash import xxh3_128_digest

from quadloom.errors import ArchiveDamaged
from quadloom.ingest.index.reindex import archived_page
from quadloom.maintenance.links import StoredLinks, has_links
from quadloom.maintenance.lost_database import way_out
from quadloom.model.outcome import PageRow
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.phases.index import PAGES
from quadloom.pipeline import PageResult
from quadloom.settings import Settings
from quadloom.stores.archive.warc import MISSING_FILE
from quadloom.stores.stores import Stores
from quadloom.syntaxes.terms import iri
from quadloom.workers.batch import TransformPool

_BATCH = 500


class Drift(msgspec.Struct, frozen=True):
    """One difference from the catalog."""

    what: str  # archive quads text description links, stray-graph stray-document stray-description, unindexed
    subject: str
    detail: str


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """`advice`: what to do next; empty if all is well."""

    pages: int = 0
    drifts: tuple[Drift, ...] = ()
    advice: str = ""

    @property
    def ok(self) -> bool:
        return not self.drifts


def verify(
    stores: Stores, settings: Settings, *, limit: int = 1000, progress: Callable[[int], None] = lambda _n: None
) -> VerifyReport:
    """Compare every page's archive records, graph, document, description and links with the catalog. Reads everything,
    writes nothing.

    Archived pages are transformed again, because only that shows whether the graph has what the page says.
    """
    drifts: list[Drift] = []
    documents = set(stores.text.ids())
    described = {line[1 : line.index(">")] for line in stores.quads.match(None, None, None, f"<{PAGES}>")}
    graphs: set[str] = set()
    ids: set[str] = set()
    subjects: set[str] = set()
    links = StoredLinks(stores.places.links) if has_links(settings) else None
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
            if row.quads_digest or row.text_digest:
                subjects.add(graph)
            if len(drifts) < limit:
                drifts.extend(_archive_drifts(stores, row, page))
                drifts.extend(_index_drifts(stores, row, result, documents, described))
                if links is not None and result is not None and _is_indexed(row):
                    difference = links.difference(row, result.edges)
                    drifts.extend([Drift("links", row.href, difference)] if difference else [])
            progress(pages)
    strays = (graph for graph in stores.quads.graphs() if is_page(graph) and graph not in graphs)
    drifts.extend(Drift("stray-graph", graph, "in the quad store, but not a graph of any page") for graph in strays)
    without = sorted(documents - ids)
    drifts.extend(Drift("stray-document", id_, "in the text index, but not a document of any page") for id_ in without)
    unknown = sorted(described - subjects)
    drifts.extend(
        Drift("stray-description", subject, f"described in {PAGES}, but the catalog has no such page")
        for subject in unknown
    )
    return VerifyReport(pages=pages, drifts=tuple(drifts[:limit]), advice=_advice(stores, pages, drifts))


def _advice(stores: Stores, pages: int, drifts: Sequence[Drift]) -> str:
    found = {drift.what for drift in drifts}
    if not found:
        return ""
    if not pages:
        return f"the database is lost or empty: {way_out(stores.path, stores.settings)}"
    if found == {"unindexed"}:
        return "nothing is lost: the next crawl indexes these pages (`quadloom crawl`)"
    forgotten = [disk.directory for disk in stores.archive.disks() if not disk.configured]
    if "archive" in found and forgotten:
        return (
            f"add {' and '.join(forgotten)} to stores.directories: archive files were written there, which are not read"
            " now; then verify again"
        )
    if any(drift.what == "archive" and MISSING_FILE in drift.detail for drift in drifts):
        return (
            "files of the archive are missing: mount the disk that they are on, or name its directory in"
            " stores.directories; then verify again"
        )
    restore = "restore the damaged files of the archive from a backup"
    if found <= {"archive", "unindexed"}:
        return f"{restore}, or have the pages read again: `quadloom refresh URL`; the indexes are in order"
    again = "to rebuild quads, text and links from the archive: `quadloom rebuild`"
    return f"{restore} if there is one; then, {again}" if "archive" in found else again


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
    older = {visit.archive for visit in stores.catalog.history(row.fingerprint)} - {None, row.archive}
    unread = [row.archive] if page is None else []
    for ref in (*unread, *sorted((ref for ref in older if ref is not None), key=lambda ref: (ref.file, ref.offset))):
        try:
            if ref is not None:
                stores.archive.get(ref)
        except ArchiveDamaged as error:
            yield Drift("archive", row.href, error.message)
    if page is None or row.archive is None or not row.body_digest:
        return
    if xxh3_128_digest(page.body) != row.body_digest:
        place = f"{row.archive.file} at {row.archive.offset}"
        yield Drift("archive", row.href, f"{place} has another body than the page that was fetched")


def _index_drifts(
    stores: Stores, row: PageRow, result: PageResult | None, documents: set[str], described: set[str]
) -> Iterator[Drift]:
    graph = row.graph
    if not _is_indexed(row):
        yield Drift("unindexed", row.href, "settled but not indexed yet; the next crawl replays it")
        return
    if row.quads_digest:
        missing = stores.quads.difference(result.quads) if result else not stores.quads.graph(graph)
        if missing:
            yield Drift("quads", graph, "the graph differs from what the page says")
    if row.text_digest and graph not in documents:
        yield Drift("text", graph, "the document is missing from the text index")
    if (row.quads_digest or row.text_digest) and graph not in described and iri(graph) is not None:
        yield Drift("description", graph, f"the page is not described in {PAGES}")


def _is_indexed(row: PageRow) -> bool:
    return (row.quads_digest, row.text_digest) == (row.indexed_quads, row.indexed_text)


def is_page(graph: str) -> bool:
    return graph.startswith(("http://", "https://"))
