"""Records of forgotten pages out of the archive: each file that holds one is written again without them.

WARC files are never changed in place. What stays is copied into a new file, byte for byte, with a record in the place
of those that were removed, which says when and how many (`warc_record.tombstone`). Then one transaction makes pages,
visits and notices refer to the copies, and notes which files have been replaced; then these are removed. A kill before
that transaction leaves a file to which nothing refers, a kill after it files that the next run removes first.

Records are found by their own addresses, not by what refers to them: robots.txt, failed visits and old versions go too.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator

import msgspec

from quadloom.maintenance.archive_order import all_pages
from quadloom.maintenance.batches import batches
from quadloom.maintenance.removal.requests import Forgotten
from quadloom.model.event import Notice
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.process.clock import unix_time
from quadloom.stores.archive import warc_record
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import VisitKey

_GROUP_BYTES = 256 << 20  # of records that stay: the disk space that is needed before any is freed


class SortedFile(msgspec.Struct, frozen=True):
    """A file that holds records of forgotten pages (`gone`), and what stays of it."""

    name: str
    gone: frozenset[ArchiveRef]
    staying: tuple[ArchiveRef, ...]

    @property
    def bytes_gone(self) -> int:
        return sum(ref.length for ref in self.gone)

    @property
    def bytes_staying(self) -> int:
        return sum(ref.length for ref in self.staying)


def affected_files(stores: Stores, forgotten: Forgotten) -> Iterator[SortedFile]:
    """Reads every file of the archive once."""
    for name in stores.archive.files():
        gone: set[ArchiveRef] = set()
        staying: list[ArchiveRef] = []
        for ref, record in stores.archive.read_file(name):
            if forgotten.record(record):
                gone.add(ref)
            else:
                staying.append(ref)
        if gone:
            yield SortedFile(name, frozenset(gone), tuple(staying))


def rewrite(
    stores: Stores,
    files: Iterable[SortedFile],
    note: Callable[[list[SortedFile]], None],
    reached: Callable[[str], None],
) -> None:
    """Replace these files by copies of what stays. `note` is called in the transaction in which the copies become
    valid, and with an empty list when the files of before are removed."""
    referring = _referring(stores)
    for group in batches(files, 1 << 20, size_of=lambda file: file.bytes_staying, most_bytes=_GROUP_BYTES):
        moved = _copied(stores, group)
        reached("copied")
        gone = frozenset().union(*(file.gone for file in group))
        pages = sorted({page for file in group for page in referring.get(file.name, ())})
        with stores.catalog.transaction():
            _drop_references(stores, gone, pages)
            stores.catalog.repoint(moved, pages)
            stores.outbox.repoint(moved)
            note(group)
        reached("repointed")
        for file in group:
            stores.archive.remove(file.name)
        reached("removed")
        note([])


def _copied(stores: Stores, group: list[SortedFile]) -> dict[ArchiveRef, ArchiveRef]:
    """Old places to new ones, durably, in a file that holds nothing else."""
    archive = stores.archive
    moved: dict[ArchiveRef, ArchiveRef] = {}
    archive.seal()
    archive.put([warc_record.tombstone(sum(len(file.gone) for file in group), unix_time())])
    for file in group:
        for ref in file.staying:
            (moved[ref],) = archive.put([archive.record(ref)])
    archive.sync()
    archive.seal()
    return moved


def _referring(stores: Stores) -> dict[str, array[int]]:
    """File → fingerprints of the pages that refer to it, with any of their visits."""
    found: dict[str, array[int]] = {}
    for page in all_pages(stores.catalog):
        refs = [*_refs(page), *(visit.archive for visit in stores.catalog.visits.of(page.fingerprint))]
        for file in {ref.file for ref in refs if ref is not None}:
            found.setdefault(file, array("q")).append(page.fingerprint)
    return found


def _refs(page: PageRow) -> tuple[ArchiveRef | None, ArchiveRef | None]:
    return page.archive, page.fetched.archive if page.fetched is not None else None


def _drop_references(stores: Stores, gone: frozenset[ArchiveRef], pages: list[int]) -> None:
    """Visits of pages that stay, from when they led to a forgotten one, and notices about them."""
    for fingerprint in pages:
        visits = [visit for visit in stores.catalog.visits.of(fingerprint) if visit.archive in gone]
        stores.catalog.visits.forget([VisitKey(fingerprint, visit.fetched_at) for visit in visits])
    rows = stores.catalog.pages(pages).values()
    stores.catalog.forget([row.fingerprint for row in rows if not gone.isdisjoint(ref for ref in _refs(row) if ref)])

    def without(notice: Notice) -> Notice | None:
        return None if notice.before in gone or notice.after in gone else notice

    stores.outbox.edit(without)
