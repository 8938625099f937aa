"""The open stores of one warehouse, as one frozen record: the seams, where they are, and the settings. No verbs.

Which backend serves which seam is decided by `quadloom.stores.backends`; from here on nobody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from quadloom.errors import StoreError
from quadloom.model.phase import ALL_PHASES, PhaseName
from quadloom.settings import Settings
from quadloom.stores.backends import local_indexes, open_archive, open_quads, open_state, open_text, query_source
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier, ScopeRules
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.state import Shards, State
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.quads.sparql_client import SparqlServer

INDEXES = ("quads", "text")  # folders of a warehouse whose indexes are not on a server
JOURNAL = "rebuild.journal"  # new indexes are complete and take the place of the old (`quadloom.maintenance.swap`)
_VIEWS = 5  # times that a reader opens the indexes again, because they were exchanged meanwhile


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
    query_source: Path | SparqlServer
    opened_at: bytes  # `State.changed_mark()` from before the quads were opened: their view is never older than this
    shards: Shards | None = None  # what this worker owns of a warehouse that many share; None = all of it
    phases: frozenset[PhaseName] = ALL_PHASES  # what this process may write; all of them = it owns the warehouse


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
    fetches, indexes_them = writable and "fetch" in phases, writable and "index" in phases
    with ExitStack() as closing:
        state = open_state(path, settings, writable=writable, fetches=fetches)
        closing.callback(state.close)
        opened_at = state.changed_mark()
        frontier = state.frontier(scope_of(state.catalog), now)
        closing.callback(frontier.close)
        archive = open_archive(path / "archive", settings, writable=fetches)
        closing.callback(archive.close)
        if not repairing and settings.stores.frontier.startswith("sqlite:"):
            _refuse_missing(path, settings, state.catalog)
        if writable and not indexes_them:
            _create_missing(path, settings)
        indexes = _open_indexes(path, settings, writable=indexes_them)
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


def new_folder(path: Path, name: str) -> Path:
    """Where `rebuild` fills an index."""
    return path / f"{name}.new"


def index_folder(path: Path, name: str) -> Path:
    """Where an index is now. If a rebuild was killed after its journal was written, its new folder counts."""
    new = new_folder(path, name)
    return new if (path / JOURNAL).exists() and new.is_dir() else path / name


class _Indexes(NamedTuple):
    quads: QuadStore
    text: TextIndex
    folder: Path  # of the quads


def _open_indexes(path: Path, settings: Settings, *, writable: bool) -> _Indexes:
    """Both indexes of one generation: if a rebuild exchanges them meanwhile, they are opened again."""
    for attempt in range(1, _VIEWS + 1):
        before = _generation(path)
        folder = index_folder(path, "quads")
        try:
            quads = open_quads(folder, settings, writable=writable)
            try:
                text = open_text(index_folder(path, "text"), settings, writable=writable)
            except BaseException:
                quads.close()
                raise
        except StoreError:
            if writable or attempt == _VIEWS or _generation(path) == before:
                raise
            continue
        if writable or attempt == _VIEWS or _generation(path) == before:
            return _Indexes(quads, text, folder)
        quads.close()
        text.close()
    raise AssertionError("unreachable")


def _generation(path: Path) -> tuple[int, ...]:
    """Differs after the folders were exchanged."""
    found = []
    for name in INDEXES:
        try:
            found.append(index_folder(path, name).stat().st_ino)
        except FileNotFoundError:
            found.append(0)
    return tuple(found)


def _create_missing(path: Path, settings: Settings) -> None:
    """Nothing is in the indexes yet, and this process will not write them; but readers expect that they are there."""
    for name in local_indexes(settings):
        if not index_folder(path, name).exists():
            (open_quads if name == "quads" else open_text)(path / name, settings, writable=True).close()


def _refuse_missing(path: Path, settings: Settings, catalog: Catalog) -> None:
    """An empty index instead of a missing one would answer every question with nothing, and nobody would notice."""
    missing = [name for name in local_indexes(settings) if not index_folder(path, name).exists()]
    if missing and catalog.scan(limit=1):
        raise StoreError(
            f"the warehouse {path} has pages, but its folder {missing[0]} is missing",
            hint="restore the folder, or build it again from the archive: `quadloom rebuild`",
        )
