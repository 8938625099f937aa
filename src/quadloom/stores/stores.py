"""The open stores of one warehouse, as one frozen record: the seams, where they are, and the settings. No verbs.

Which backend serves which seam is decided by `quadloom.stores.backends`; from here on nobody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from quadloom.settings import Settings
from quadloom.stores.backends import open_archive, open_quads, open_state, open_text, query_source
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier, ScopeRules
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.state import Shards, State
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.quads.sparql_client import SparqlServer


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


@contextmanager
def open_stores(
    path: Path, settings: Settings, scope_of: Callable[[Catalog], ScopeRules], now: float, *, writable: bool
) -> Iterator[Stores]:
    """Open all of them; they are closed with the block, the derived ones first. `scope_of` gives the rules by which
    the frontier admits URLs. To write, the caller holds the `WarehouseLock`."""
    with ExitStack() as closing:
        state = open_state(path, settings, writable=writable)
        closing.callback(state.close)
        opened_at = state.changed_mark()
        frontier = state.frontier(scope_of(state.catalog), now)
        closing.callback(frontier.close)
        archive = open_archive(path / "archive", settings, writable=writable)
        closing.callback(archive.close)
        quads = open_quads(path / "quads", settings, writable=writable)
        closing.callback(quads.close)
        text = open_text(path / "text", settings, writable=writable)
        closing.callback(text.close)
        yield Stores(
            path=path,
            settings=settings,
            state=state,
            frontier=frontier,
            catalog=state.catalog,
            archive=archive,
            quads=quads,
            text=text,
            outbox=state.outbox,
            bus=state.bus,
            query_source=query_source(path / "quads", settings),
            opened_at=opened_at,
            shards=state.shards,
        )
