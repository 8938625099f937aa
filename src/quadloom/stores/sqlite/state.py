"""The embedded state of a warehouse: frontier, catalog and outbox in one SQLite file of its directory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from quadloom.settings import Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.lock import is_working
from quadloom.stores.memory_bus import MemoryBus
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.cluster import Shards, WorkerRow
from quadloom.stores.protocols.frontier import Frontier, ScopeRules
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.protocols.state import T
from quadloom.stores.sqlite.catalog import SqliteCatalog, SqliteOutbox
from quadloom.stores.sqlite.database import SqliteDatabase, bring_up_to_date
from quadloom.stores.sqlite.frontier import SqliteFrontier, SqliteGuestFrontier


class EmbeddedState:
    """See `quadloom.stores.protocols.state.State`. To write, the caller holds the `WarehouseLock`."""

    shards: Shards | None = None

    def __init__(self, file: Path, settings: Settings, writable: bool, fetches: bool = True) -> None:
        self._file = file
        self._settings = settings
        self._fetches = fetches
        self.owner = str(os.getpid())
        if not writable:
            bring_up_to_date(self._file)
        self._database = SqliteDatabase.open(self._file) if writable else SqliteDatabase.read_only(self._file)
        self.catalog: Catalog = SqliteCatalog(self._database)
        self.outbox: Outbox = SqliteOutbox(self._database)
        self.bus: Bus = MemoryBus()
        self.waits: Callable[[], bool] = lambda: False

    def frontier(self, scope: ScopeRules, now: float) -> Frontier:
        policy = FrontierPolicy.from_settings(self._settings)
        if not self._fetches:
            return SqliteGuestFrontier(self._database, policy, now=now)
        return SqliteFrontier(self._database, policy, now=now, scope=scope)

    def is_working(self, owner: str) -> bool:
        return is_working(self._file.parent, int(owner))

    def changed_mark(self) -> bytes:
        return self._database.changed_mark()

    def with_read_connection(self, question: Callable[[Catalog], T]) -> T:
        with contextlib.closing(SqliteDatabase.read_only(self._file)) as database:
            return question(SqliteCatalog(database))

    def wait_while(self, wanted: Callable[[], bool]) -> None:
        self.waits = wanted

    def waits_for(self) -> dict[str, float]:
        return {}

    def take_outage(self) -> float:
        return 0.0

    def workers(self) -> list[WorkerRow]:
        return []

    def links_on_the_way(self) -> int:
        return 0

    def compact(self) -> None:
        self._database.compact()

    def size(self) -> int:
        return sum(file.stat().st_size for file in self._file.parent.glob(self._file.name + "*"))

    def close(self) -> None:
        self._database.close()
