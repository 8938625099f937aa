"""Prune: superseded visits that are older than `index.retention` leave the history, and their bytes the archive.

A visit expires when it is older than the retention, unless it is the page's newest or names the version that the
page's row rests on: `verify`, `rebuild` and replay read that one. Notices in the outbox work out their differences
from two archived versions, so what a notice names stays too, until the notice is trimmed.

WARC files are never changed in place. A file with nothing alive is removed; one at least half dead is *sparse*: its
living records are copied into a new file, and then it is removed. Below half, copying costs more than it frees. In
this order a kill at any moment loses nothing, and the next prune ends what was begun, because every plan is made anew
from what the catalog refers to:

1. Expired visits are forgotten. A crash leaves dead bytes.
2. Per group of sparse files: copies are written and synced. A crash leaves a file nobody refers to.
3. One transaction makes pages, visits and notices name the copies. A crash leaves old files nobody refers to.
4. The old files are removed.

Only the owner of the warehouse may prune, so no crawl runs meanwhile: an unsettled record would look dead.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

import msgspec

from quadloom.errors import ArchiveDamaged, StoreError
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.settings import length_of
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.catalog import Catalog, VisitKey, VisitRow
from quadloom.stores.stores import Stores

_PAGES = 500
_VISITS = 10_000  # forgotten per transaction
_GROUP_BYTES = 256 << 20  # of living records: the room on disk that a prune needs before it frees any


class PruneReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune did. `damaged`: sparse files left alone, because a living record in them cannot be read."""

    visits: int = 0
    removed: int = 0  # files, of which
    rewritten: int = 0  # had living records, which were copied
    freed_bytes: int = 0
    damaged: tuple[str, ...] = ()


class PrunePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a prune would do. `sparse`: file → bytes of its living records."""

    visits: int
    empty: tuple[str, ...]
    sparse: dict[str, int]
    dead_bytes: int  # in these files

    @property
    def expected(self) -> PruneReport:
        """What a prune would say it did. A copied record costs as much as before, so only dead bytes are freed."""
        return PruneReport(
            visits=self.visits,
            removed=len(self.empty) + len(self.sparse),
            rewritten=len(self.sparse),
            freed_bytes=self.dead_bytes,
        )


class _Tenants(msgspec.Struct):
    """The living records of one file, and the pages that name them."""

    refs: set[ArchiveRef]
    pages: set[int]


def horizon(retention: str, now: float) -> float | None:
    """Visits before this unix time may go; None = all stay, forever."""
    before = now - length_of("index.retention", retention)
    return before if before > 0.0 else None


def plan(stores: Stores, before: float, *, without: Container[int] = ()) -> PrunePlan:
    """Reads the catalog once; writes nothing. `without`: ids of notices that will be trimmed first. Raises `StoreError`
    where a catalog knows nothing of its archive: with a lost database every file looks dead, and is all that is left.

    A record that two pages share would count twice. That only makes a file look fuller than it is, never emptier.
    """
    files = stores.archive.files()  # first: what a crawl ends meanwhile is not judged
    if files and not stores.catalog.scan(limit=1):
        raise StoreError(
            "the archive has files, but the catalog knows no page of them",
            hint="`quadloom import` reads the files of a warehouse whose database was lost into a new one",
        )
    living = dict.fromkeys(files, 0)
    visits = 0
    told = set(_told(stores, without))
    for page, kept, expired in _histories(stores.catalog, before):
        visits += len(expired)
        refs = _refs(page, kept)
        told -= refs
        _count(living, refs)
    _count(living, told)
    sparse = {name: living[name] for name, size in files.items() if 0 < living[name] <= size / 2}
    empty = tuple(name for name in files if living[name] == 0)
    dead = sum(files[name] - living[name] for name in (*empty, *sparse))
    return PrunePlan(visits=visits, empty=empty, sparse=sparse, dead_bytes=dead)


def prune(stores: Stores, before: float, *, reached: Callable[[str], None] = lambda _step: None) -> PruneReport:
    """Forget, copy, repoint, remove. `reached` is told each step when it is durable: tests end the process there."""
    archive = stores.archive
    archive.seal()
    size = archive.size()
    planned = plan(stores, before)
    _forget(stores.catalog, before)
    reached("forgotten")
    _remove(archive, planned.empty)
    reached("emptied")
    tenants = _tenants(stores, before, planned.sparse)
    damaged = tuple(name for name in planned.sparse if not _readable(archive, tenants[name].refs))
    whole = {name: living for name, living in planned.sparse.items() if name not in damaged}
    for group in _groups(whole):
        _rewrite(stores, group, tenants, reached)
    return PruneReport(
        visits=planned.visits,
        removed=len(planned.empty) + len(whole),
        rewritten=len(whole),
        freed_bytes=size - archive.size(),
        damaged=damaged,
    )


def _rewrite(
    stores: Stores, group: Sequence[str], tenants: dict[str, _Tenants], reached: Callable[[str], None]
) -> None:
    archive = stores.archive
    moved: dict[ArchiveRef, ArchiveRef] = {}
    for name in group:
        for ref in sorted(tenants[name].refs, key=lambda ref: ref.offset):
            (moved[ref],) = archive.put([archive.record(ref)])
    archive.seal()  # a file of this group alone: after a crash here nothing in it is referred to, so all of it goes
    reached("copied")
    with stores.catalog.transaction():
        stores.catalog.repoint(moved, sorted(set().union(*(tenants[name].pages for name in group))))
        if stores.outbox is not None:
            stores.outbox.repoint(moved)
    reached("repointed")
    _remove(archive, group)
    reached("removed")


def _histories(catalog: Catalog, before: float) -> Iterator[tuple[PageRow, list[VisitRow], list[VisitRow]]]:
    """Each page with the visits that stay and those that expired."""
    after = -(1 << 63)
    while pages := catalog.scan(after=after, limit=_PAGES):
        after = pages[-1].fingerprint
        for page in pages:
            kept: list[VisitRow] = []
            expired: list[VisitRow] = []
            for visit in catalog.history(page.fingerprint):
                (expired if _is_expired(visit, page, before) else kept).append(visit)
            yield page, kept, expired


def _is_expired(visit: VisitRow, page: PageRow, before: float) -> bool:
    current = visit.archive is not None and visit.archive == page.archive
    return visit.fetched_at < before and visit.fetched_at != page.fetched_at and not current


def _refs(page: PageRow, visits: Iterable[VisitRow]) -> set[ArchiveRef]:
    return {ref for ref in (page.archive, *(visit.archive for visit in visits)) if ref is not None}


def _count(living: dict[str, int], refs: Iterable[ArchiveRef]) -> None:
    for ref in refs:
        if ref.file in living:
            living[ref.file] += ref.length


def _told(stores: Stores, without: Container[int] = ()) -> Iterator[ArchiveRef]:
    """What notices name, but for some."""
    last = 0
    while stores.outbox is not None and (notices := stores.outbox.since(last)):
        for notice in (notice for notice in notices if notice.id not in without):
            yield from (ref for ref in (notice.before, notice.after) if ref is not None)
        last = notices[-1].id


def _forget(catalog: Catalog, before: float) -> None:
    batch: list[VisitKey] = []
    for _page, _kept, expired in _histories(catalog, before):
        batch += [VisitKey(visit.fingerprint, visit.fetched_at) for visit in expired]
        if len(batch) >= _VISITS:
            catalog.forget(batch)
            batch = []
    if batch:
        catalog.forget(batch)


def _tenants(stores: Stores, before: float, files: Iterable[str]) -> dict[str, _Tenants]:
    found = {name: _Tenants(set(), set()) for name in files}
    if not found:
        return found
    for page, kept, _expired in _histories(stores.catalog, before):
        for ref in _refs(page, kept):
            if ref.file in found:
                found[ref.file].refs.add(ref)
                found[ref.file].pages.add(page.fingerprint)
    for ref in _told(stores):
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


def _groups(sparse: dict[str, int]) -> Iterator[list[str]]:
    """Files whose living records are written together, so that many small files become few."""
    group: list[str] = []
    total = 0
    for name, living in sparse.items():
        if group and total + living > _GROUP_BYTES:
            yield group
            group, total = [], 0
        group.append(name)
        total += living
    if group:
        yield group


def _remove(archive: Archive, files: Iterable[str]) -> None:
    for name in files:
        archive.remove(name)
