"""The state of a warehouse: frontier, catalog and outbox on one database, so that a settlement is one transaction.

`Warehouse` sees only the Protocol. Here is the embedded one; that of many machines is in `postgres_state`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

from quadloom.settings import Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.memory_bus import MemoryBus
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier, ScopeRules
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.outbox import SqliteOutbox
from quadloom.stores.sqlite.schema import SCHEMA

T = TypeVar("T")
DATABASE = "quadloom.db"


class WholeCatalog(Catalog, Protocol):
    """A catalog that also answers what only a ranking asks, since it looks at all pages."""

    def of_kinds(self, kinds: list[str]) -> list[int]:
        """Fingerprints of all pages of these kinds."""
        ...

    def hosts(self) -> list[str]:
        """Hosts of all pages."""
        ...


class State(Protocol):
    catalog: Catalog
    outbox: Outbox
    bus: Bus

    def frontier(self, scope: ScopeRules, now: float) -> Frontier:
        """Opened once; closed by whoever asked for it, before `close`."""
        ...

    def look(self, question: Callable[[WholeCatalog], T]) -> T:
        """Ask the catalog from another thread, over a connection of its own."""
        ...

    def size(self) -> int:
        """Bytes of the database."""
        ...

    def close(self) -> None: ...


def exists(path: Path, settings: Settings) -> bool:
    """Whether there may be a warehouse: a server has to be asked, so for it the answer is yes."""
    return not settings.stores.frontier.startswith("sqlite:") or (path / DATABASE).exists()


class EmbeddedState:
    """On SQLite in the warehouse's directory; the caller holds the `WarehouseLock` to write."""

    def __init__(self, path: Path, settings: Settings, writable: bool) -> None:
        self._file = path / DATABASE
        self._settings = settings
        self._database = SqliteDatabase.open(self._file, SCHEMA) if writable else SqliteDatabase.read_only(self._file)
        self.catalog: Catalog = SqliteCatalog(self._database)
        self.outbox: Outbox = SqliteOutbox(self._database)
        self.bus: Bus = MemoryBus()

    def frontier(self, scope: ScopeRules, now: float) -> Frontier:
        policy = FrontierPolicy.from_settings(self._settings)
        return SqliteFrontier(self._database, policy, now=now, scope=scope)

    def look(self, question: Callable[[WholeCatalog], T]) -> T:
        with contextlib.closing(SqliteDatabase.read_only(self._file)) as database:
            return question(SqliteCatalog(database))

    def size(self) -> int:
        return sum(file.stat().st_size for file in self._file.parent.glob(self._file.name + "*"))

    def close(self) -> None:
        self._database.close()
