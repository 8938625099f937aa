"""Prune: superseded visits that are older than `index.retention` leave the history, and their bytes the archive.

A visit expires when it is older than the retention, unless it is the page's newest or has the version that the page's
row refers to, which `verify`, `rebuild` and replay read. Notices in the outbox compute their differences from two
archived versions, so versions that a notice refers to stay as well, until the notice is trimmed.

WARC files are never changed in place. A file without live records is removed. A file that is at least half dead is
*sparse*: its live records are copied into a new file, and then it is removed. Below half, copying costs more than it
frees. In this order a kill at any moment loses nothing, and the next prune completes what was begun, because it makes
its plan from what the catalog refers to:

1. Expired visits are deleted. A crash leaves dead bytes.
2. Per group of sparse files: copies are written and synced. A crash leaves a file without references.
3. One transaction makes pages, visits and notices refer to the copies. A crash leaves old files without references.
4. The old files are removed.

Only the owner of the warehouse may prune, so that no crawl runs meanwhile: an unsettled record would look dead.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from quadloom.errors import ArchiveDamaged, StoreError
from quadloom.maintenance.archive_order import all_pages
from quadloom.maintenance.batches import batches
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.settings import length_of
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.catalog import Catalog, VisitKey, VisitRow

_VISITS = 10_000  # deleted per transaction
_GROUP_BYTES = 256 << 20  # of live records: the disk space that a prune needs before it frees any


class PruneReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune did. `damaged`: sparse files that were left, because a live record in them cannot be read."""

    visits: int = 0
    removed: int = 0  # files, of which
    rewritten: int = 0  # had live records, which were copied
    freed_bytes: int = 0
    damaged: tuple[str, ...] = ()


class PrunePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune would do. `sparse`: file → bytes of its live records."""

    visits: int
    empty: tuple[str, ...]
    sparse: dict[str, int]
    dead_bytes: int  # in these files

    @property
    def expected(self) -> PruneReport:
        """The report of such a prune. A copied record is as large as before, so only dead bytes are freed."""
        return PruneReport(
            visits=self.visits,
            removed=len(self.empty) + len(self.sparse),
            rewritten=len(self.sparse),
            freed_bytes=self.dead_bytes,
        )


class _History(NamedTuple):
    """A page, and which of its visits stay."""

    page: PageRow
    current: list[VisitRow]
    expired: list[VisitRow]


class _LiveRecords(msgspec.Struct):
    """The live records of one file, and the pages that refer to them."""

    refs: set[ArchiveRef]
    pages: set[int]


def horizon(retention: str, now: float) -> float | None:
    """Visits before this unix time may be deleted; None = all stay."""
    before = now - length_of("index.retention", retention)
    return before if before > 0.0 else None


def plan(stores: Stores, before: float, *, without: Container[int] = ()) -> PrunePlan:
    """Reads the catalog once; writes nothing. `without`: ids of notices that will be trimmed first. Raises `StoreError`
    if the archive has files and the catalog has no pages: the database was lost, and every file would look dead.

    A record that two pages share counts twice. That only makes a file look fuller than it is, never emptier.
    """
    files = stores.archive.files()  # first, so that files which a crawl completes meanwhile are not considered
    if files and not stores.catalog.scan(limit=1):
        raise StoreError(
            "the archive has files, but the catalog has no pages; its database may be lost",
            hint="create a new warehouse, and read these files into it with `quadloom import`",
        )
    live = dict.fromkeys(files, 0)
    visits = 0
    noticed = set(_noticed_refs(stores, without))
    for history in _histories(stores.catalog, before):
        visits += len(history.expired)
        refs = _refs(history)
        noticed -= refs
        _count(live, refs)
    _count(live, noticed)
    sparse = {name: live[name] for name, size in files.items() if 0 < live[name] <= size / 2}
    empty = tuple(name for name in files if live[name] == 0)
    dead = sum(files[name] - live[name] for name in (*empty, *sparse))
    return PrunePlan(visits=visits, empty=empty, sparse=sparse, dead_bytes=dead)


def prune(stores: Stores, before: float, *, reached: Callable[[str], None] = lambda _step: None) -> PruneReport:
    """Delete visits, copy records, update references, remove files. `reached` is called with the name of each step once
    it is durable; tests end the process there."""
    archive = stores.archive
    archive.seal()
    size_before = archive.size()
    planned = plan(stores, before)
    _forget(stores.catalog, before)
    reached("forgotten")
    _remove(archive, planned.empty)
    reached("emptied")
    live_records = _live_records(stores, before, planned.sparse)
    damaged = tuple(name for name in planned.sparse if not _readable(archive, live_records[name].refs))
    readable = {name: size for name, size in planned.sparse.items() if name not in damaged}
    # Live records are written together, so that many small files become few.
    for group in batches(readable, len(readable), size_of=readable.__getitem__, most_bytes=_GROUP_BYTES):
        _rewrite(stores, group, live_records, reached)
    return PruneReport(
        visits=planned.visits,
        removed=len(planned.empty) + len(readable),
        rewritten=len(readable),
        freed_bytes=size_before - archive.size(),
        damaged=damaged,
    )


def _rewrite(
    stores: Stores, group: Sequence[str], live_records: dict[str, _LiveRecords], reached: Callable[[str], None]
) -> None:
    archive = stores.archive
    moved: dict[ArchiveRef, ArchiveRef] = {}
    for name in group:
        for ref in sorted(live_records[name].refs, key=lambda ref: ref.offset):
            (moved[ref],) = archive.put([archive.record(ref)])
    archive.seal()  # a file for this group alone: after a crash here it has no references and can be removed as a whole
    reached("copied")
    with stores.catalog.transaction():
        stores.catalog.repoint(moved, sorted(set().union(*(live_records[name].pages for name in group))))
        if stores.outbox is not None:
            stores.outbox.repoint(moved)
    reached("repointed")
    _remove(archive, group)
    reached("removed")


def _histories(catalog: Catalog, before: float) -> Iterator[_History]:
    for page in all_pages(catalog):
        history = _History(page, [], [])
        for visit in catalog.visits.of(page.fingerprint):
            (history.expired if _is_expired(visit, page, before) else history.current).append(visit)
        yield history


def _is_expired(visit: VisitRow, page: PageRow, before: float) -> bool:
    current = visit.archive is not None and visit.archive == page.archive
    return visit.fetched_at < before and visit.fetched_at != page.fetched_at and not current


def _refs(history: _History) -> set[ArchiveRef]:
    waiting = history.page.fetched.archive if history.page.fetched is not None else None
    refs = (history.page.archive, waiting, *(visit.archive for visit in history.current))
    return {ref for ref in refs if ref is not None}


def _count(live: dict[str, int], refs: Iterable[ArchiveRef]) -> None:
    for ref in refs:
        if ref.file in live:
            live[ref.file] += ref.length


def _noticed_refs(stores: Stores, without: Container[int] = ()) -> Iterator[ArchiveRef]:
    """The records that notices refer to, except the notices in `without`."""
    last = 0
    while stores.outbox is not None and (notices := stores.outbox.since(last)):
        for notice in (notice for notice in notices if notice.id not in without):
            yield from (ref for ref in (notice.before, notice.after) if ref is not None)
        last = notices[-1].id


def _forget(catalog: Catalog, before: float) -> None:
    expired = (visit for history in _histories(catalog, before) for visit in history.expired)
    for batch in batches(expired, _VISITS):
        catalog.visits.forget([VisitKey(visit.fingerprint, visit.fetched_at) for visit in batch])


def _live_records(stores: Stores, before: float, files: Iterable[str]) -> dict[str, _LiveRecords]:
    found = {name: _LiveRecords(set(), set()) for name in files}
    if not found:
        return found
    for history in _histories(stores.catalog, before):
        for ref in _refs(history):
            if ref.file in found:
                found[ref.file].refs.add(ref)
                found[ref.file].pages.add(history.page.fingerprint)
    for ref in _noticed_refs(stores):
        if ref.file in found:
            found[ref.file].refs.add(ref)
    return found


def _readable(archive: Archive, refs: Iterable[ArchiveRef]) -> bool:
    try:
        for ref in refs:
            archive.record(ref)
    except ArchiveDamaged:
        return False
    return True


def _remove(archive: Archive, files: Iterable[str]) -> None:
    for name in files:
        archive.remove(name)
