"""Rebuild: both indexes from nothing, out of the archive. The new ones are filled next to the old ones; how they take
their place is in `quadloom.maintenance.swap`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol

import msgspec

from quadloom.crawling.ingest.index.indexer import IndexAcks, IndexJob, LinksFound
from quadloom.crawling.ingest.intake import Ingest
from quadloom.documents.descriptions import PAGES
from quadloom.errors import ArchiveDamaged, DiskFull, StoreError, WarehouseLocked
from quadloom.maintenance.archive_order import ArchivedPage, all_pages, pages_by_file
from quadloom.maintenance.batches import batches
from quadloom.maintenance.links import LinkRecorder
from quadloom.maintenance.recovery.lost_database import lost_database
from quadloom.maintenance.swap import SpooledLedger, exchange_folders
from quadloom.maintenance.verify import is_page
from quadloom.model.link import Discovery
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.process.checksums import set_aside
from quadloom.process.clock import unix_time
from quadloom.process.failpoints import Failpoints
from quadloom.settings import IndexSettings, Settings
from quadloom.stores.backends import local_indexes, open_quads, open_text
from quadloom.stores.lock import WarehouseLock
from quadloom.stores.opened import INDEXES, Places, Stores, places_of
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import TextWriter
from quadloom.stores.statistics import Statistics

_BATCH = 2000  # pages; each batch is a commit of both indexes, and large ones cost less for each page
_BATCH_BYTES = 64 << 20
_NEVER = 365 * 86400.0  # seconds
_LINKS = 20_000  # queued in one transaction
_NAMED = 1000  # unreadable records that a report names; all are counted


class UnreadableRecord(msgspec.Struct, frozen=True):
    """A page whose record in the archive cannot be read."""

    url: str
    reason: str


class RebuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a rebuild did. `unreadable`: the first of `unreadable_records` pages that lost their words, since their
    records cannot be read; they are visited again."""

    pages: int = 0
    unreadable_records: int = 0
    unreadable: tuple[UnreadableRecord, ...] = ()


def check_sources(stores: Stores, *, partial: bool) -> None:
    """Raise `StoreError` if a rebuild would only empty the indexes: the catalog knows no page, or files of the archive
    are missing. `partial`: missing files are accepted."""
    if not stores.catalog.scan(limit=1):
        has_any = (
            stores.archive.size() or any(True for _ in stores.quads.graphs()) or any(True for _ in stores.text.ids())
        )
        if has_any:
            raise lost_database(
                f"the database of {stores.path} knows no page, but archive or indexes have some; nothing was changed",
                stores.path,
                stores.settings,
            )
    missing = () if partial else _missing_files(stores)
    if missing:
        raise StoreError(
            f"{len(missing)} files of the archive are missing ({', '.join(missing[:3])}{' …' if missing[3:] else ''}); "
            "the indexes were left as they are",
            hint=f"{_directories(stores)}mount the disk or restore the files; if they are lost, "
            "`quadloom rebuild --partial` keeps the statements of their pages, drops their words, and has them"
            " visited again",
        )


def _directories(stores: Stores) -> str:
    """A hint at directories that the settings do not name any more."""
    forgotten = [disk.directory for disk in stores.archive.disks() if not disk.configured]
    return f"add {' and '.join(forgotten)} to stores.directories, or " if forgotten else ""


def _missing_files(stores: Stores) -> tuple[str, ...]:
    first: dict[str, ArchiveRef] = {}
    for row in all_pages(stores.catalog):
        if row.archive is not None and (row.quads_digest or row.text_digest):
            first.setdefault(row.archive.file, row.archive)
    suspects = sorted(file for file, ref in first.items() if _trouble(stores, ref))
    present = stores.archive.files() if suspects else {}
    return tuple(file for file in suspects if file not in present)


def _trouble(stores: Stores, ref: ArchiveRef) -> str:
    """Why a record cannot be read; empty = it can."""
    try:
        stores.archive.get(ref)
    except ArchiveDamaged as error:
        return error.message
    return ""


def rebuild(
    stores: Stores,
    settings: Settings,
    quads: QuadStore,
    text: TextWriter,
    ledger: SpooledLedger,
    *,
    progress: Callable[[int], None] = lambda _n: None,
    elsewhere: FilesElsewhere | None = None,
) -> RebuildReport:
    """Fill empty stores from the archive, and `ledger` with what the catalog will say about them; the caller puts them
    in place of the old ones. Raises `StoreError` if not a single record of the archive can be read.

    Graphs that come from no page, the scores of topical crawls, are copied. A page that is not archived, because its
    site forbids it or its record is damaged, keeps its graph if that can still be read, and is visited again. Links
    that the strategies of `settings` choose are queued. All links of the pages are appended to the link matrix, without
    its damaged files.
    `elsewhere`: other processes do the files of the archive; what they did not find is done here.
    """
    done, archived, unreadable = len(ledger.marked), 0, 0
    named: list[UnreadableRecord] = []
    fresh = msgspec.structs.replace(stores, quads=quads, text=text)
    set_aside(stores.places.links)
    recorder = LinkRecorder(stores.places.links)
    counted = Statistics()
    if ledger.statistics:
        counted.add(ledger.statistics)
    settings = msgspec.structs.replace(settings, index=large_commits(settings.index))
    ingest = Ingest(fresh, settings, statistics=counted, ledger=ledger, links_of=recorder.append)

    def is_left(row: PageRow) -> bool:
        return is_indexed(row) and row.fingerprint not in ledger.marked

    def fallback(row: PageRow, description: bytes) -> IndexJob:
        nonlocal unreadable
        trouble = _trouble(stores, row.archive) if row.archive is not None else ""
        if trouble:
            unreadable += 1
            if len(named) < _NAMED:
                named.append(UnreadableRecord(row.href, trouble))
        return stored_job(stores.quads, row, description)

    try:
        for part in elsewhere.files() if elsewhere is not None else ():
            _take(ingest, ledger, part)
            done += len(part.offsets)
            archived += len(part.offsets)
            progress(done)
        left = pages_by_file(stores, is_left) if elsewhere is None else elsewhere.rest()
        for batch in batches(left, _BATCH, size_of=_body_bytes, most_bytes=_BATCH_BYTES):
            rows = [item.row for item in batch]
            versions = {item.row.fingerprint: item.page for item in batch if item.page is not None}
            ingest.indexing.reindexing.add(
                rows,
                unix_time(),
                fallback=fallback,
                content=partial(_version, versions),
            )
            ingest.finish_indexing()
            done += len(rows)
            archived += sum(row.archive is not None for row in rows)
            progress(done)
    finally:
        ingest.close()
        recorder.close()
    if unreadable and unreadable == archived:
        raise StoreError(
            f"none of the {archived} records of the archive can be read ({named[0].reason}); "
            "the indexes were left as they are",
            hint="check that the archive is mounted and may be read",
        )
    with suppress(StoreError):  # the old store is damaged, which may be why it is rebuilt
        quads.insert_new([Quads.of(graph, stores.quads.graph(graph)) for graph in other_graphs(stores.quads)])
    quads.flush()
    text.commit()
    if elsewhere is not None:
        counted.add(elsewhere.statistics.encode())
    counted.changes = Statistics.saved(stores.catalog).changes
    ledger.complete(counted.encode())
    return RebuildReport(pages=done, unreadable_records=unreadable, unreadable=tuple(named))


def is_indexed(row: PageRow) -> bool:
    """Whether the indexes have something of the page."""
    return bool(row.quads_digest or row.text_digest)


class RebuiltFile(msgspec.Struct, frozen=True):
    """A file of the archive whose pages another process has indexed. `offsets`: of its records that are the current
    version of a page; `requests`: pages to be read again; `links`: found on the pages, each once; `statistics`: encoded
    counts."""

    offsets: list[int]
    marks: tuple[IndexedPage, ...] = ()
    requests: tuple[Discovery, ...] = ()
    links: tuple[Discovery, ...] = ()
    statistics: bytes = b""


class FilesElsewhere(Protocol):
    """Files of the archive that other processes rebuild."""

    statistics: Statistics  # of the files so far

    def files(self) -> Iterator[RebuiltFile]: ...

    def rest(self) -> Iterator[ArchivedPage]:
        """Pages that have no version in the archive, or none that was found in its file. After `files`."""
        ...


def _version(versions: dict[int, Page], row: PageRow) -> Page | None:
    return versions.get(row.fingerprint)


def _take(ingest: Ingest, ledger: SpooledLedger, part: RebuiltFile) -> None:
    """Queue the links of a file through the same filters as those of pages that are rebuilt here."""
    now = unix_time()
    ledger.reprocessed(now)
    ledger.write([IndexAcks(part.marks)], part.requests, now)
    for start in range(0, len(part.links), _LINKS):
        ingest.inbox.put(LinksFound(part.links[start : start + _LINKS]))
        ingest.step(0.0)
        ingest.settle([], now)


def large_commits(settings: IndexSettings) -> IndexSettings:
    """Nobody searches the new indexes yet, so that nothing is gained by early commits."""
    return msgspec.structs.replace(
        settings, text_commit_pages=max(settings.text_commit_pages, _BATCH), text_commit_seconds=_NEVER
    )


def other_graphs(quads: QuadStore) -> list[str]:
    """Graphs that no archived page gives: the scores of topical crawls, and what came of visits."""
    return [graph for graph in quads.graphs() if not is_page(graph) and graph != PAGES]


def stored_job(quads: QuadStore, row: PageRow, description: bytes) -> IndexJob:
    """The old graph of a page that the archive does not have; its text comes with the next visit."""
    graph = row.graph
    try:
        stored = quads.graph(graph)
    except StoreError:
        stored = b""
    graph_quads = msgspec.structs.replace(Quads.of(graph, stored), digest=row.quads_digest if stored else b"")
    return IndexJob(
        row.fingerprint,
        graph_quads,
        None,
        b"",
        fresh=True,
        write_quads=bool(stored),
        write_text=False,
        description=description if stored else b"",
        host=row.host,
    )


def _body_bytes(item: ArchivedPage) -> int:
    return len(item.page.body) if item.page is not None else 0


def rename_damaged(path: Path, settings: Settings) -> list[str]:
    """Rename indexes of the warehouse at `path` that cannot be opened to NAME.damaged, so that empty ones are used
    until they are rebuilt. Returns their names. Raises `WarehouseLocked` if a crawl is running."""
    if not path.is_dir():
        return []
    lock = WarehouseLock(path)
    try:
        places = places_of(path, settings)
        exchange_folders(places, Failpoints(settings.crawl.failpoint), keep_unfinished=True)
        return [name for name in INDEXES if _rename_if_damaged(places, name, settings)]
    finally:
        lock.release()


def _rename_if_damaged(places: Places, name: str, settings: Settings) -> bool:
    folder = places.of(name)
    if name in local_indexes(settings) and not folder.exists():
        return False
    try:
        (open_quads if name == "quads" else open_text)(folder, settings, writable=True).close()
    except (WarehouseLocked, DiskFull):
        raise
    except StoreError:
        if not folder.is_dir():  # a store on a server that does not answer
            raise
        damaged = places.damaged(name)
        shutil.rmtree(damaged, ignore_errors=True)
        folder.rename(damaged)
        return True
    return False
