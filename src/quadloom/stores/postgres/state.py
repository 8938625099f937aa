"""The state of a warehouse of many machines: on one PostgreSQL database that all workers share.

A worker's name is stored in its own directory, so that it finds its own values again after a restart. The owner's name
in a lease has a random part in addition, because a worker that was killed and started again is another owner. The
process that starts in a directory holds its lock, so former owners of that name are dead: their leases end at once.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable
from itertools import repeat
from pathlib import Path
from zlib import crc32

from quadloom.errors import SettingsError, StoreError, StoreUnavailable
from quadloom.process import clock
from quadloom.process.clock import unix_time
from quadloom.process.retry import retry, within
from quadloom.settings import Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.memory_bus import MemoryBus
from quadloom.stores.named_values import PER_WORKER, NamedValue
from quadloom.stores.postgres.bus import PostgresBus
from quadloom.stores.postgres.catalog import PostgresCatalog, PostgresOutbox
from quadloom.stores.postgres.cluster import worker_rows
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier import SLOTS, PostgresFrontier
from quadloom.stores.postgres.shard_leases import ShardLeases, clock_error
from quadloom.stores.postgres.shards import PostgresShards
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.cluster import ServerReport, Shards, WorkerRow
from quadloom.stores.protocols.frontier import ScopeRules
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.protocols.state import T
from quadloom.stores.shards import worker_name

_CLOCKS_DIFFER = 1.0  # seconds; less is within what a busy server needs to answer
_PAUSE = 1.0  # seconds between two tries to ask a server that is away


class ClusterState:
    """See `quadloom.stores.protocols.state.State`. Owns no shard until it takes some."""

    def __init__(self, path: Path, settings: Settings, writable: bool, fetches: bool = True) -> None:
        self._settings = settings
        self._writable = writable
        self.url = database_url(settings)
        _check_times(settings)
        self.worker = worker_name(path) if writable else "reader"
        self.leases = ShardLeases(
            f"{self.worker}:{secrets.token_hex(4)}",
            duration=settings.cluster.lease,
            fetches=fetches,
        )
        self.owner = self.leases.owner
        self.database = PostgresDatabase.open(self.url) if writable else PostgresDatabase.read_only(self.url)
        if writable:
            _follow_clock(self.database)
        self._catalog = PostgresCatalog(
            self.database,
            slot=crc32(self.worker.encode()) % SLOTS,
            worker=self.worker,
            private=PER_WORKER if writable else frozenset(),
            # Who takes no shards works on leased pages, of any shard.
            shards=(lambda: self.leases.owned) if writable and fetches else None,
        )
        self._shards = PostgresShards(self.url, self.database, self.leases, self._catalog)
        self.shards: Shards | None = self._shards if writable else None
        self.catalog: Catalog = self._catalog
        self.outbox: Outbox = PostgresOutbox(self.database)
        self.bus: Bus = PostgresBus(self.url) if writable else MemoryBus()
        if writable:
            self.leases.end_former(self.database, self.worker)

    def frontier(self, scope: ScopeRules, now: float) -> PostgresFrontier:
        policy = FrontierPolicy.from_settings(self._settings)
        return PostgresFrontier(self.database, policy, self._shards, now=now, scope=scope)

    def is_working(self, owner: str) -> bool:
        return self.leases.is_alive(self.database, owner)

    def changed_mark(self) -> bytes:
        """The snapshot of a new transaction: it lists which transactions are visible, so equal snapshots see the same
        rows. Heartbeats and events change it too."""
        return str(self.database.execute("SELECT txid_current_snapshot()::text")[0][0]).encode()

    def with_read_connection(self, question: Callable[[Catalog], T]) -> T:
        def ask() -> T:
            # Not `read_only`: a worker that finishes after an upgrade reads newer tables.
            with contextlib.closing(PostgresDatabase(self.url, writable=False, patience=5.0)) as database:
                return question(PostgresCatalog(database))

        return retry(ask, within(0.0, repeat(_PAUSE), unless=self.waits), StoreUnavailable)

    def wait_while(self, wanted: Callable[[], bool]) -> None:
        self.database.waits = wanted

    def waits(self) -> bool:
        return self.database.waits()

    def waits_for(self) -> dict[str, float]:
        return self.database.waiting.known()

    def take_outage(self) -> float:
        seconds, self.database.away_seconds = self.database.away_seconds, 0.0
        return seconds

    def workers(self) -> list[WorkerRow]:
        return worker_rows(self.database)

    def links_on_the_way(self) -> int:
        return int(self.database.execute("SELECT count(*) FROM link_outbox")[0][0])

    def compact(self) -> None:
        self.database.write("DELETE FROM event")
        self.database.compact()

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


def _follow_clock(database: PostgresDatabase) -> None:
    """Have the server's time in this process, if the machine's clock differs from it. Stored times are read by other
    machines: one that is ahead would ask hosts too early, and let them rest too long for all others."""
    before = clock.unix_time()
    server = float(database.execute("SELECT extract(epoch FROM clock_timestamp())::float8")[0][0])
    ahead = (before + clock.unix_time()) / 2 - server
    if abs(ahead) > _CLOCKS_DIFFER:
        clock.adopt(clock.origin() - ahead)


def database_url(settings: Settings) -> str:
    return settings.stores.frontier


_SHARED: NamedValue[dict[str, object]] = NamedValue("settings", dict)


def shared_settings(settings: Settings) -> dict[str, object] | None:
    """The settings that all machines share; None = there are none, or the server cannot be asked now."""
    try:
        with contextlib.closing(PostgresDatabase(database_url(settings), writable=False, patience=1.0)) as database:
            if database.schema_version() == 0:
                return None
            return _SHARED.get(PostgresCatalog(database))
    except StoreError:
        return None  # who opens the warehouse next gets the reason


def share_settings(settings: Settings, tree: dict[str, object] | None) -> None:
    """Write the settings that all machines share; None removes them. Creates the tables if there are none."""
    with contextlib.closing(PostgresDatabase.open(database_url(settings), patience=5.0)) as database:
        _SHARED.put(PostgresCatalog(database), tree)


def described(settings: Settings) -> ServerReport:
    _check_times(settings)
    with contextlib.closing(PostgresDatabase(database_url(settings), writable=False, patience=2.0)) as database:
        version = database.execute("SHOW server_version")[0][0]
        made = database.schema_version() > 0
        workers = ShardLeases("nobody").workers(database) if made else 0
        before = unix_time()
        ((server,),) = database.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        ahead = clock_error(before, server, unix_time())
    state = f"{workers} workers" if made else "no warehouse yet"
    return ServerReport(f"PostgreSQL {version} at {database.name}, {state}", made, ahead)


def _check_times(settings: Settings) -> None:
    """A heartbeat may be late, and one may be lost."""
    least = 3 * settings.cluster.heartbeat
    if settings.cluster.lease < least:
        raise SettingsError(
            f"cluster.lease = {settings.cluster.lease:g} s is too short for heartbeats every "
            f"{settings.cluster.heartbeat:g} s",
            hint=f"set cluster.lease to {least:g} or more",
        )
