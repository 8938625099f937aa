"""New indexes in place of the old ones, so that kill -9 is harmless at every point.

`rebuild` fills `quads.new` and `text.new`, and collects in `rebuild.marks` what the catalog will have to say about
them. Until the journal is there, nothing else has changed. Then, in this order:

1. The new folders and the marks are synced; the journal is written under its name, with the parent directory synced.
2. Per index: the old folder is renamed to NAME.old, the new one to NAME.
3. ONE transaction writes the marks: what is indexed, which pages must be read again, the statistics.
4. The old folders are removed, then the journal, then the marks.

A process that is killed before 1 leaves folders that the next opening for writing removes; after 1, that opening
continues where the journal and the folders say. Every step may be repeated. Readers use the new folders as soon as the
journal is there (`quadloom.stores.opened`), so the two indexes they see belong together.

Stores on a server are filled in place and have no folder. Then only the marks are written, in the same way.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from quadloom.crawling.ingest.index.describe import REPROCESSED_AT
from quadloom.crawling.ingest.index.indexer import IndexAcks
from quadloom.errors import StoreError
from quadloom.maintenance.batches import read_records, write_record
from quadloom.model.link import Discovery
from quadloom.process.clock import unix_time
from quadloom.process.durable import sync, sync_tree, write_file
from quadloom.process.failpoints import Failpoints
from quadloom.process.retry import retry_when_unavailable
from quadloom.stores.opened import INDEXES, JOURNAL, Places, Stores
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.statistics import STATISTICS, mark_complete

_MARKS = "rebuild.marks"


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """Some of the marks, and the statistics of all pages up to here. The last entry has those of the whole."""

    marks: tuple[IndexedPage, ...] = ()
    requests: tuple[Discovery, ...] = ()
    reprocessed_at: float = 0.0
    statistics: bytes = b""


class SpooledLedger:
    """An `IndexLedger` in a file, for indexes that are not in place yet. `resume`: append to the file of a rebuild that
    was killed. `marked` are the pages that it names, `statistics` their counts."""

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self._file = (path / _MARKS).open("ab+" if resume else "wb")
        marked: set[int] = set()
        self.statistics = b""
        for entry in self._whole_entries() if resume else ():
            marked.update(mark.fingerprint for mark in entry.marks)
            self.statistics = entry.statistics or self.statistics
        self.marked = frozenset(marked)

    def _whole_entries(self) -> Iterator[_Entry]:
        """All but a torn last one, which is cut off."""
        self._file.seek(0)
        end = 0
        with suppress(msgspec.DecodeError):
            for entry in read_records(self._file, _Entry):
                end = self._file.tell()
                yield entry
        self._file.truncate(end)

    def reprocessed(self, at: float) -> None:
        self._append(_Entry(reprocessed_at=at))

    def write(self, acks: Sequence[IndexAcks], requests: Sequence[Discovery], now: float) -> None:
        marks = tuple(mark for ack in acks for mark in ack.marks)
        self._append(_Entry(marks, tuple(requests), statistics=acks[-1].statistics if acks else b""))
        self._file.flush()

    def mark_complete(self) -> None:
        """The statistics come from the finished store, with `complete`."""

    def complete(self, statistics: bytes) -> None:
        """The last entry; durable on return."""
        self._append(_Entry(statistics=statistics))
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    def _append(self, entry: _Entry) -> None:
        write_record(self._file, entry)


def discard(places: Places) -> None:
    """Remove what a rebuild left behind that did not come as far as its journal."""
    if not (places.path / JOURNAL).exists():
        for name in INDEXES:
            shutil.rmtree(places.new(name), ignore_errors=True)
        (places.path / _MARKS).unlink(missing_ok=True)


def abandon(places: Places) -> None:
    """Forget a rebuild, however far it came, because other indexes will take its place. Those that it has exchanged
    already stay."""
    exchange_folders(places, Failpoints())
    (places.path / JOURNAL).unlink(missing_ok=True)
    sync(places.path)
    discard(places)


def commit(places: Places, failpoints: Failpoints) -> bool:
    """Step 1: from here on the rebuild counts. The new stores are closed. True = there are folders to exchange, which
    the next opening does."""
    path = places.path
    folders = [name for name in INDEXES if places.new(name).is_dir()]
    for name in folders:
        sync_tree(places.new(name))
        sync(places.new(name).parent)
        shutil.rmtree(places.old(name), ignore_errors=True)
    failpoints.reach("rebuild-filled")
    write_file(path / JOURNAL, msgspec.json.encode(folders))
    failpoints.reach("rebuild-journal")
    return bool(folders)


def exchange_folders(places: Places, failpoints: Failpoints, *, keep_unfinished: bool = False) -> None:
    """Step 2, or nothing if there is no journal. No store is open, and the caller holds the `WarehouseLock`.
    `keep_unfinished`: a rebuild may go on where another was killed, since nothing else has written in between."""
    if not keep_unfinished:
        discard(places)
    journal = places.path / JOURNAL
    if not journal.exists():
        return
    for name in msgspec.json.decode(journal.read_bytes(), type=list[str]):
        new, current, old = places.new(name), places.of(name), places.old(name)
        if not new.is_dir():
            continue  # done before the process was killed
        if current.exists():
            if old.exists():  # made by something that does not know the journal
                shutil.rmtree(current)
            else:
                current.rename(old)
            sync(current.parent)
        failpoints.reach("rebuild-old-away")
        new.rename(current)
        sync(current.parent)
        failpoints.reach("rebuild-new-in")


def write_marks(stores: Stores, failpoints: Failpoints) -> None:
    """Steps 3 and 4, or nothing if there is no journal. Raises `WarehouseLocked` if other workers run on a shared
    database: then the marks wait for an opening without them."""
    path, places = stores.path, stores.places
    if not (path / JOURNAL).exists():
        return
    now = unix_time()
    if stores.shards is not None:
        stores.shards.take_all(now)
    retry_when_unavailable(lambda: _transaction(stores, now))
    failpoints.reach("rebuild-marks")
    for name in INDEXES:
        shutil.rmtree(places.old(name), ignore_errors=True)
    failpoints.reach("rebuild-old-removed")
    (path / JOURNAL).unlink()
    sync(path)
    failpoints.reach("rebuild-done")
    discard(places)


def _transaction(stores: Stores, now: float) -> None:
    catalog = stores.catalog
    with catalog.transaction():
        for entry in _entries(stores.path / _MARKS):
            catalog.mark_indexed(entry.marks)
            if entry.requests:
                stores.frontier.request(entry.requests, now)
            if entry.reprocessed_at:
                REPROCESSED_AT.put(catalog, entry.reprocessed_at)
            if entry.statistics:
                STATISTICS.put_encoded_for_all(catalog, entry.statistics)
        mark_complete(catalog)


def _entries(file: Path) -> Iterator[_Entry]:
    try:
        with file.open("rb") as stream:
            yield from read_records(stream, _Entry)
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(
            f"cannot read {file}, which a rebuild needs to finish: {error}",
            hint=f"remove {file.parent / JOURNAL}, then run `quadloom rebuild` again",
        ) from error
