"""The state of a warehouse of many machines: on one PostgreSQL database that all workers share.

A worker keeps its name in its own directory, so that it finds its own values again after a restart; the owner's name in
a lease has a part of chance besides, because a worker that was killed and started again is another owner. Whoever
starts in a directory holds its lock, so former owners of that name are dead: their leases end at once.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from zlib import crc32

from quadloom.errors import SettingsError
from quadloom.settings import Settings
from quadloom.stores.archive.shared import worker_name
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.memory_bus import MemoryBus
from quadloom.stores.postgres.bus import PostgresBus
from quadloom.stores.postgres.catalog import PostgresCatalog
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier import SLOTS, PostgresFrontier
from quadloom.stores.postgres.outbox import PostgresOutbox
from quadloom.stores.postgres.shards import ShardLeases
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import ScopeRules
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.sqlite.state import T, WholeCatalog

# Sums over what one worker has read; see quadloom.asking.statistics, run.admission and run.schedule_state.
PRIVATE = ("statistics", "traps", "schedule:")


class ClusterState:
    """See `quadloom.stores.state.State`. Owns no shard until its frontier takes some."""

    def __init__(self, path: Path, settings: Settings, writable: bool) -> None:
        self._settings = settings
        self._writable = writable
        self.url = database_url(settings)
        _check_times(settings)
        self.worker = worker_name(path) if writable else "reader"
        self.leases = ShardLeases(
            f"{self.worker}:{secrets.token_hex(4)}",
            duration=settings.cluster.lease,
            request_seconds=settings.limits.total_seconds,
        )
        self.database = PostgresDatabase.open(self.url) if writable else PostgresDatabase.read_only(self.url)
        slot = crc32(self.worker.encode()) % SLOTS
        self._catalog = PostgresCatalog(
            self.database, slot=slot, worker=self.worker, private=PRIVATE if writable else (),
            shards=(lambda: self.leases.owned) if writable else None,
        )  # fmt: skip
        self.catalog: Catalog = self._catalog
        self.outbox: Outbox = PostgresOutbox(self.database)
        self.bus: Bus = PostgresBus(self.url) if writable else MemoryBus()
        if writable:
            self.leases.end_former(self.database, self.worker)

    def catalog_of(self, shards: Sequence[int]) -> Catalog:
        """The catalog, where only these shards' pages wait for the indexes."""
        return self._catalog.of_shards(shards)

    def frontier(self, scope: ScopeRules, now: float) -> PostgresFrontier:
        policy = FrontierPolicy.from_settings(self._settings)
        return PostgresFrontier(self.database, policy, self.leases, now=now, scope=scope)

    def look(self, question: Callable[[WholeCatalog], T]) -> T:
        with contextlib.closing(PostgresDatabase.read_only(self.url)) as database:
            return question(PostgresCatalog(database))

    def size(self) -> int:
        return int(
            self.database.execute(
                "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c "
                "WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
            )[0][0]
        )

    def close(self) -> None:
        if self._writable:
            self.leases.leave(self.database)
            if isinstance(self.bus, PostgresBus):
                self.bus.close()
        self.database.close()


def database_url(settings: Settings) -> str:
    return settings.stores.frontier


def described(settings: Settings) -> tuple[str, bool]:
    """The server and who works on it, for people; and whether the tables are made."""
    _check_times(settings)
    with contextlib.closing(PostgresDatabase(database_url(settings), writable=False, patience=2.0)) as database:
        version = database.execute("SHOW server_version")[0][0]
        made = database.schema_version() > 0
        workers = ShardLeases("nobody").workers(database) if made else 0
    state = f"{workers} workers" if made else "no warehouse yet"
    return f"PostgreSQL {version} at {database.name}, {state}", made


def _check_times(settings: Settings) -> None:
    """A request must be able to end within the lease that it began in."""
    least = settings.limits.total_seconds + 2 * settings.cluster.heartbeat
    if settings.cluster.lease < least:
        raise SettingsError(
            f"cluster.lease = {settings.cluster.lease:g} s is too short for requests of "
            f"{settings.limits.total_seconds:g} s and heartbeats every {settings.cluster.heartbeat:g} s",
            hint=f"set cluster.lease to {least:g} or more",
        )
