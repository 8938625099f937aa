"""Verify: compare archive and indexes with the catalog."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest, xxh3_128_digest

from quadloom.documents.descriptions import PAGES
from quadloom.documents.syntaxes.terms import iri
from quadloom.errors import ArchiveDamaged
from quadloom.maintenance.archive_order import FilePlan, all_pages, pages_apart, pages_in_file
from quadloom.maintenance.links import StoredLinks, has_links
from quadloom.maintenance.parallel.jobs import warehouse_job
from quadloom.maintenance.parallel.results import TaskFolder
from quadloom.maintenance.recovery.lost_database import way_out
from quadloom.maintenance.removal.requests import pending
from quadloom.maintenance.reprocessing import ReprocessedPage, reprocessed
from quadloom.model.outcome import PageRow
from quadloom.model.page import Page
from quadloom.model.page_result import PageResult
from quadloom.model.wire import decode, encode
from quadloom.process.bulk_tasks import BulkJob, Runner, TaskResult
from quadloom.process.checksums import changed_files
from quadloom.process.durable import is_writable
from quadloom.settings import Settings
from quadloom.stores.opened import INDEXES, Stores
from quadloom.stores.protocols.archive import MISSING_FILE

FOLDER = "verify.tasks"
_MOST = 1000  # differences that the task of one file reports


class Drift(msgspec.Struct, frozen=True):
    """One difference from the catalog."""

    what: str  # archive quads text description links file unindexed forget stray-graph stray-document …
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
    stores: Stores,
    settings: Settings,
    *,
    limit: int = 1000,
    progress: Callable[[int], None] = lambda _n: None,
    runner: Runner | None = None,
    resume: bool = False,
) -> VerifyReport:
    """Compare every page's archive records, graph, document, description and links with the catalog, rows with
    themselves, and files of the indexes with their checksums. Reads everything, writes nothing. Raises `StoreError` if
    the database is damaged.

    Archived pages are transformed again, because only that shows whether the graph has what the page says. Files of the
    archive are read one after another; with a `runner` they are its tasks. `resume`: files that an interrupted run has
    finished are not read again.
    """
    stores.catalog.check()
    plan, names = FilePlan(), _Inventory(stores)
    drifts = list(_changed_files(stores))
    pages = checked = 0
    for row in all_pages(stores.catalog):
        pages += 1
        plan.note(row)
        names.add(row)
        if len(drifts) < limit:
            drifts.extend(names.drifts(row))
            if row.archive is None:
                drifts.extend(_page_drifts(stores, None, ReprocessedPage(row, None, None)))
    checked = pages - plan.expected.total()
    files = sorted(plan.expected)
    with ExitStack() as ends:
        folder = stores.path / FOLDER
        if not is_writable(stores.path):
            folder = Path(ends.enter_context(TemporaryDirectory(prefix="quadloom-verify-"))) / FOLDER
        results = TaskFolder(folder, warehouse_job("verify", stores.path, settings), files, resume=resume)
        for file in results.run(runner if runner is not None and len(files) > 1 else _in_this_process(stores), files):
            found = decode(results.path(file).read_bytes(), _FileResult)
            plan.found(file, found.offsets)
            drifts.extend(found.drifts[: max(0, limit - len(drifts))])
            checked += len(found.offsets)
            progress(checked)
    links = _stored_links(stores)
    for item in reprocessed(settings, pages_apart(stores, plan, lambda _row: True)):
        if len(drifts) < limit:
            drifts.extend(_page_drifts(stores, links, item))
        progress(checked := checked + 1)
    drifts.extend(names.strays())
    drifts.extend(
        Drift("forget", name, "a request to forget pages was interrupted") for name in pending(stores.catalog)
    )
    results.finish()
    return VerifyReport(pages=pages, drifts=tuple(drifts[:limit]), advice=_advice(stores, pages, drifts))


def _changed_files(stores: Stores) -> Iterator[Drift]:
    """Files of the indexes that are not what was written: queries would fail, or find less."""
    for folder in (*map(stores.places.current, INDEXES), stores.places.links):
        for name in changed_files(folder):
            yield Drift("file", str(folder / name), "the file has changed on disk since it was written")


def _in_this_process(stores: Stores) -> Runner:
    def runner(_job: BulkJob, files: Sequence[str]) -> Iterator[TaskResult]:
        links = _stored_links(stores)
        return (TaskResult(file, encode(_compare(stores, links, file))) for file in files)

    return runner


class _FileResult(msgspec.Struct, frozen=True):
    """`offsets`: of the records that are the current version of a page."""

    offsets: list[int]
    drifts: tuple[Drift, ...]


def verify_file(stores: Stores, file: str, _argument: bytes) -> bytes:
    """The task of one file of the archive: its pages against their graphs. Returns an encoded `_FileResult`."""
    return encode(_compare(stores, _links_of_process(stores), file))


def _compare(stores: Stores, links: StoredLinks | None, file: str) -> _FileResult:
    offsets: list[int] = []
    drifts: list[Drift] = []
    for item in reprocessed(stores.settings, pages_in_file(stores, file)):
        assert item.row.archive is not None
        offsets.append(item.row.archive.offset)
        if len(drifts) < _MOST:
            drifts.extend(_page_drifts(stores, links, item))
    return _FileResult(offsets, tuple(drifts))


_links_counted: dict[int, StoredLinks | None] = {}  # by the identity of open stores


def _links_of_process(stores: Stores) -> StoredLinks | None:
    """Counted once in a process that does many tasks with the same stores."""
    key = id(stores)
    if key not in _links_counted:
        _links_counted.clear()
        _links_counted[key] = _stored_links(stores)
    return _links_counted[key]


class _Inventory:
    """What the indexes hold and what the catalog says they should, as 64-bit hashes of names: eight bytes each."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._documents = _hashes(stores.text.ids())
        self._described = _hashes(_subjects(stores))
        self._graphs, self._ids, self._subjects = array("Q"), array("Q"), array("Q")

    def add(self, row: PageRow) -> None:
        name = _hash(row.graph)
        if row.quads_digest:
            self._graphs.append(name)
        if row.text_digest:
            self._ids.append(name)
        if row.quads_digest or row.text_digest:
            self._subjects.append(name)

    def drifts(self, row: PageRow) -> Iterator[Drift]:
        """What can be said about a page without its content."""
        graph = row.graph
        if not _is_indexed(row):
            yield Drift("unindexed", row.href, "settled but not indexed yet; the next crawl replays it")
            return
        if row.text_digest and not _has(self._documents, graph):
            yield Drift("text", graph, "the document is missing from the text index")
        is_indexed = bool(row.quads_digest or row.text_digest)
        if is_indexed and not _has(self._described, graph) and iri(graph) is not None:
            yield Drift("description", graph, f"the page is not described in {PAGES}")

    def strays(self) -> Iterator[Drift]:
        """What is in an index, but of no page."""
        graphs, ids, subjects = (np.unique(np.array(of, np.uint64)) for of in (self._graphs, self._ids, self._subjects))
        for graph in self._stores.quads.graphs():
            if is_page(graph) and not _has(graphs, graph):
                yield Drift("stray-graph", graph, "in the quad store, but not a graph of any page")
        if len(np.setdiff1d(self._documents, ids, assume_unique=True)):
            for id_ in sorted(id_ for id_ in self._stores.text.ids() if not _has(ids, id_)):
                yield Drift("stray-document", id_, "in the text index, but not a document of any page")
        if len(np.setdiff1d(self._described, subjects, assume_unique=True)):
            for subject in sorted({name for name in _subjects(self._stores) if not _has(subjects, name)}):
                yield Drift("stray-description", subject, f"described in {PAGES}, but the catalog has no such page")


def _subjects(stores: Stores) -> Iterator[str]:
    return (line[1 : line.index(">")] for line in stores.quads.match(None, None, None, f"<{PAGES}>"))


def _hash(name: str) -> int:
    return xxh3_64_intdigest(name.encode())


def _hashes(names: Iterable[str]) -> npt.NDArray[np.uint64]:
    return np.unique(np.fromiter(map(_hash, names), np.uint64))


def _has(hashes: npt.NDArray[np.uint64], name: str) -> bool:
    wanted = np.uint64(_hash(name))
    place = int(np.searchsorted(hashes, wanted))
    return place < len(hashes) and bool(hashes[place] == wanted)


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
    if "forget" in found:
        return "to finish the request: `quadloom forget`"
    restore = "restore the damaged files of the archive from a backup"
    if found <= {"archive", "unindexed"}:
        return f"{restore}, or have the pages read again: `quadloom refresh URL`; the indexes are in order"
    again = "to rebuild quads, text and links from the archive: `quadloom rebuild`"
    return f"{restore} if there is one; then, {again}" if "archive" in found else again


def _stored_links(stores: Stores) -> StoredLinks | None:
    return StoredLinks(stores.places.links) if has_links(stores.settings) else None


def _page_drifts(stores: Stores, links: StoredLinks | None, item: ReprocessedPage) -> Iterator[Drift]:
    row, result = item.row, item.result
    yield from _archive_drifts(stores, row, item.page)
    yield from _graph_drifts(stores, row, result)
    if links is not None and result is not None and _is_indexed(row):
        difference = links.difference(row, result.edges)
        if difference:
            yield Drift("links", row.href, difference)


def _archive_drifts(stores: Stores, row: PageRow, page: Page | None) -> Iterator[Drift]:
    older = {visit.archive for visit in stores.catalog.visits.of(row.fingerprint)} - {None, row.archive}
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


def _graph_drifts(stores: Stores, row: PageRow, result: PageResult | None) -> Iterator[Drift]:
    if row.quads_digest and _is_indexed(row):
        graph = row.graph
        missing = stores.quads.difference(result.quads) if result else not stores.quads.graph(graph)
        if missing:
            yield Drift("quads", graph, "the graph differs from what the page says")


def _is_indexed(row: PageRow) -> bool:
    return (row.quads_digest, row.text_digest) == (row.indexed_quads, row.indexed_text)


def is_page(graph: str) -> bool:
    return graph.startswith(("http://", "https://"))
