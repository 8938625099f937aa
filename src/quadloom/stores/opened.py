"""The open stores of one warehouse, as one frozen record: the seams, where they are, and the settings. No verbs.

Which backend serves which seam is decided by `quadloom.stores.backends`; from here on nobody asks.

The folders of the indexes and of the links are in the warehouse, unless a setting places one on another disk:
`stores.quads = "oxigraph:///disk2/quads"`, `stores.text = "tantivy:///disk3/text"`, `stores.links = "/disk2/links"`.
A rebuild fills the new index beside the old one, so on the same disk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from quadloom.errors import SettingsError, StoreError
from quadloom.model.phase import ALL_PHASES, PhaseName
from quadloom.process import clock
from quadloom.process.checksums import note_files
from quadloom.process.limits import return_freed_memory
from quadloom.settings import Settings
from quadloom.stores.backends import local_indexes, open_archive, open_quads, open_state, open_text, query_source
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.cluster import Shards
from quadloom.stores.protocols.frontier import Frontier, ScopeRules
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.queries import QuerySource
from quadloom.stores.protocols.state import State
from quadloom.stores.protocols.text import TextIndex

INDEXES = ("quads", "text")  # indexes that are folders, unless they are on a server
JOURNAL = "rebuild.journal"  # new indexes are complete and take the place of the old (`quadloom.maintenance.swap`)
_VIEWS = 5  # times that a reader opens the indexes again, because they were exchanged meanwhile


class Places(msgspec.Struct, frozen=True):
    """The folders of one warehouse. `path`: the warehouse itself, with its database and the journal of a rebuild."""

    path: Path
    quads: Path
    text: Path
    links: Path

    def of(self, index: str) -> Path:
        return self.quads if index == "quads" else self.text

    def new(self, index: str) -> Path:
        """Where `rebuild` fills an index."""
        return self._beside(index, "new")

    def old(self, index: str) -> Path:
        """Where the index of before the rebuild is, until the new one is in its place."""
        return self._beside(index, "old")

    def damaged(self, index: str) -> Path:
        return self._beside(index, "damaged")

    def current(self, index: str) -> Path:
        """Where an index is now. If a rebuild was killed after its journal was written, its new folder counts."""
        new = self.new(index)
        return new if (self.path / JOURNAL).exists() and new.is_dir() else self.of(index)

    def _beside(self, index: str, ending: str) -> Path:
        folder = self.of(index)
        return folder.with_name(f"{folder.name}.{ending}")


def places_of(path: Path, settings: Settings) -> Places:
    """Raises `SettingsError` for a folder that cannot be exchanged."""
    stores = settings.stores
    return Places(
        path,
        _placed("stores.quads", stores.quads, ("oxigraph",)) or path / "quads",
        _placed("stores.text", stores.text, ("tantivy", "embedded")) or path / "text",
        Path(stores.links) if stores.links else path / "links",
    )


def _placed(name: str, url: str, schemes: tuple[str, ...]) -> Path | None:
    scheme, _, rest = url.partition(":")
    place = rest.removeprefix("//")
    if scheme not in schemes or not place:
        return None
    if os.path.ismount(place):
        raise SettingsError(
            f"{name}: {place} is a whole disk, which `rebuild` cannot exchange for another folder",
            hint=f"name a folder on it, such as {scheme}://{place.rstrip('/')}/{name.rpartition('.')[2]}",
        )
    return Path(place)


class Stores(msgspec.Struct, frozen=True, kw_only=True):
    """`query_source`: where user queries are evaluated. `state`: what frontier, catalog, outbox and bus share."""

    path: Path
    settings: Settings
    state: State
    frontier: Frontier
    catalog: Catalog
    archive: Archive
    quads: QuadStore
    text: TextIndex
    outbox: Outbox
    bus: Bus
    query_source: QuerySource
    opened_at: bytes  # `State.changed_mark()` from before the quads were opened: their view is never older than this
    shards: Shards | None = None  # what this worker owns of a warehouse that many share; None = all of it
    phases: frozenset[PhaseName] = ALL_PHASES  # what this process may write; all of them = it owns the warehouse

    @property
    def places(self) -> Places:
        return places_of(self.path, self.settings)


@contextmanager
def open_stores(
    path: Path,
    settings: Settings,
    scope_of: Callable[[Catalog], ScopeRules],
    now: float,
    *,
    writable: bool,
    repairing: bool = False,
    phases: frozenset[PhaseName] = ALL_PHASES,
) -> Iterator[Stores]:
    """Open all of them; they are closed with the block, the derived ones first. `scope_of` gives the rules by which
    the frontier admits URLs. To write, the caller holds the `WarehouseLock`. `repairing`: an index that is missing
    although pages were read begins empty, to be rebuilt; otherwise `StoreError` is raised. `phases`: only the stores
    that these write are opened for writing."""
    if writable:
        return_freed_memory()
    places = places_of(path, settings)
    fetches, indexes_them = writable and "fetch" in phases, writable and "index" in phases
    with ExitStack() as closing:
        before = clock.origin()
        state = open_state(path, settings, writable=writable, fetches=fetches)
        closing.callback(state.close)
        now += clock.origin() - before  # a cluster has the time of its database
        opened_at = state.changed_mark()
        frontier = state.frontier(scope_of(state.catalog), now)
        closing.callback(frontier.close)
        archive = open_archive(path / "archive", settings, writable=fetches)
        closing.callback(archive.close)
        if not repairing and not settings.stores.is_shared:
            _refuse_missing(places, settings, state.catalog)
        if writable and not indexes_them:
            _create_missing(places, settings)
        indexes = _open_indexes(places, settings, writable=indexes_them)
        if indexes_them:
            closing.callback(_note_files, places)
        closing.callback(indexes.quads.close)
        closing.callback(indexes.text.close)
        yield Stores(
            path=path,
            settings=settings,
            state=state,
            frontier=frontier,
            catalog=state.catalog,
            archive=archive,
            quads=indexes.quads,
            text=indexes.text,
            outbox=state.outbox,
            bus=state.bus,
            query_source=query_source(indexes.folder, settings),
            opened_at=opened_at,
            shards=state.shards,
            phases=phases if writable else frozenset(),
        )


class _Indexes(NamedTuple):
    quads: QuadStore
    text: TextIndex
    folder: Path  # of the quads


def _open_indexes(places: Places, settings: Settings, *, writable: bool) -> _Indexes:
    """Both indexes of one generation: if a rebuild exchanges them meanwhile, they are opened again."""
    for attempt in range(1, _VIEWS + 1):
        before = _generation(places)
        folder = places.current("quads")
        try:
            quads = open_quads(folder, settings, writable=writable)
            try:
                text = open_text(places.current("text"), settings, writable=writable)
            except BaseException:
                quads.close()
                raise
        except StoreError:
            if writable or attempt == _VIEWS or _generation(places) == before:
                raise
            continue
        if writable or attempt == _VIEWS or _generation(places) == before:
            return _Indexes(quads, text, folder)
        quads.close()
        text.close()
    raise AssertionError("unreachable")


def _note_files(places: Places) -> None:
    for folder in (*map(places.current, INDEXES), places.links):
        note_files(folder)


def _generation(places: Places) -> tuple[int, ...]:
    """Differs after the folders were exchanged."""
    found = []
    for name in INDEXES:
        try:
            found.append(places.current(name).stat().st_ino)
        except FileNotFoundError:
            found.append(0)
    return tuple(found)


def _create_missing(places: Places, settings: Settings) -> None:
    """Nothing is in the indexes yet, and this process will not write them; but readers expect that they are there."""
    for name in local_indexes(settings):
        if not places.current(name).exists():
            (open_quads if name == "quads" else open_text)(places.of(name), settings, writable=True).close()


def _refuse_missing(places: Places, settings: Settings, catalog: Catalog) -> None:
    """An empty index instead of a missing one would answer every question with nothing, and nobody would notice."""
    missing = [name for name in local_indexes(settings) if not places.current(name).exists()]
    if not missing or not catalog.scan(limit=1):
        return
    folder, before = places.of(missing[0]), places.path / missing[0]
    if before != folder and before.exists():
        raise StoreError(
            f"stores.{missing[0]} places an index in {folder}, but it is still in {before}",
            hint=f"move it while no crawl runs: `mv {before} {folder}`",
        )
    shown = missing[0] if folder == before else folder
    raise StoreError(
        f"the warehouse {places.path} has pages, but its folder {shown} is missing",
        hint="mount its disk or restore the folder, or build it again from the archive: `quadloom rebuild`",
    )
