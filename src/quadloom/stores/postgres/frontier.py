"""The frontier on PostgreSQL: as the embedded one (`stores.frontier`), for the shards that this worker owns.

A worker has its shards' hosts in its own memory and settles them in its own transactions, so politeness needs no clock
that two machines share. What is found for a shard of another worker goes to `link_outbox`, in the transaction that
found it. The shard's owner moves it from there into its frontier in one transaction: exactly once. A process that owns
no shard (a command that adds seeds, the web site) sends everything that way.

Shards are taken and given back by `shards`. Visits carry the time until which a request may begin
(`Visit.start_before`), because a worker that is stopped with visits in hand does not notice that its lease has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

from quadloom.errors import SettingsError, ShardsLost
from quadloom.model.link import Discovery
from quadloom.model.outcome import Settlement
from quadloom.model.visit import Visit
from quadloom.process.clock import unix_time
from quadloom.stores.frontier.frontier import TableFrontier
from quadloom.stores.frontier.hosts import TableFrontierHosts
from quadloom.stores.frontier.leasing import UrlLeases
from quadloom.stores.frontier.loaded_hosts import INFINITY
from quadloom.stores.frontier.policy import FrontierPolicy, order_mark
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier_queue import PostgresQueue
from quadloom.stores.postgres.frontier_tables import (
    FrontierCounters,
    PostgresHosts,
    PostgresUrls,
)
from quadloom.stores.postgres.shards import LinkOutbox, OpenFrontier, PostgresShards
from quadloom.stores.protocols.frontier import HostRow, Quota, ScheduledPage, ScopeRules
from quadloom.stores.shards import SHARDS, shard_of
from quadloom.stores.sql.queue import SqlFrontierValues

SLOTS = 64  # of counters; two workers that share a slot wait for each other
_ELSEWHERE_FOR = 1.0  # seconds for which an answer about other workers' shards is cached


class PostgresFrontierHosts(TableFrontierHosts):
    """Hosts of which this worker may change only its own."""

    def __init__(
        self,
        database: PostgresDatabase,
        records: PostgresHosts,
        leases: UrlLeases,
        shards: PostgresShards,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(database, records, leases)
        self._shards = shards
        self._shard_leases = shards.leases
        self._clock = clock

    def put(self, row: HostRow) -> None:
        self._must_own(row.host)
        super().put(row)

    def block(self, host: str, until: float, reason: str) -> None:
        self._must_own(host)
        super().block(host, until, reason)

    def reserve(self, host: str, now: float) -> float | None:
        self._must_own(host)
        if shard_of(host) in self._shard_leases.draining or self._clock() >= self._shard_leases.begin_until:
            return None
        return super().reserve(host, now)

    def free(self, host: str, next_at: float, now: float) -> None:
        """Durable: the shard may be given back at any time, and its next owner does not wait."""
        if shard_of(host) not in self._shard_leases.epochs:
            return  # the next owner has waited the full delay
        state = self._loaded.named(host)
        self._leases.free(state, next_at, now)
        with self._database.transaction():
            self._records.write_hosts([state])
        if self._shard_leases.draining:
            self._shards.retire_draining()

    def _must_own(self, host: str) -> None:
        self._shard_leases.lost({shard_of(host)} - self._shard_leases.epochs.keys())


class PostgresFrontier(TableFrontier):
    """See `quadloom.stores.protocols.frontier.Frontier`. Every method that writes raises `ShardsLost` if another worker
    has taken over one of the shards; nothing is written then."""

    _database: PostgresDatabase
    _host_records: PostgresHosts
    _queue: PostgresQueue

    def __init__(
        self,
        database: PostgresDatabase,
        policy: FrontierPolicy,
        shards: PostgresShards,
        *,
        now: float,
        scope: ScopeRules | None = None,
        capacity: int = 2048,
        clock: Callable[[], float] = unix_time,
    ) -> None:
        self._shards = shards
        self._shard_leases = leases = shards.leases
        self._clock = clock
        self._elsewhere: tuple[float, float | None] = (-INFINITY, None)
        counters = FrontierCounters(database, crc32(leases.owner.encode()) % SLOTS)
        hosts = PostgresHosts(database, leases, counters)
        queue = PostgresQueue(database, leases, counters, policy.order)
        urls = PostgresUrls(database, leases)
        super().__init__(database, hosts, urls, queue, policy, now=now, scope=scope, capacity=capacity)
        self.hosts = PostgresFrontierHosts(database, hosts, self.leases, shards, clock)
        if database.writable:
            self._check_order()
            self.guide(policy.guided_share)
            database.on_begin(lambda: leases.check(database))
            database.on_rollback(self._reload)
        self._links = LinkOutbox(database, leases)
        shards.attach(OpenFrontier(self, hosts, urls, queue, self.leases, self._recent))

    def _check_order(self) -> None:
        values = SqlFrontierValues(self._database)
        order, stored = order_mark(self.policy.order), values.get("order")
        if stored == order:
            return
        with self._database.unhurried():
            if stored is not None and self._shard_leases.workers(self._database):
                raise SettingsError(
                    f"crawl.order = {self.policy.order}, but running workers use {stored.decode().split()[0]}",
                    hint="give all workers the same settings, or stop them to change the order",
                )
            if stored is not None:
                self._queue.rebuild()
            values.put("order", order)

    def lease(self, limit: int, now: float, *, duration: float = 600.0, quota: Quota | None = None) -> list[Visit]:
        if self._clock() >= self._shard_leases.begin_until:
            return []  # the heartbeat could not be renewed: other workers may own the hosts by then
        self.leases.start_before = self._shard_leases.begin_until
        return super().lease(limit, now, duration=duration, quota=quota)

    def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        if not settlements:
            return  # saves the round trips of a transaction
        self._shard_leases.lost({shard_of(s.visit.host) for s in settlements} - self._shard_leases.epochs.keys())
        super().settle(settlements, now)
        if self._shard_leases.draining:
            self._shards.retire_draining()

    def _write_fresh(self, fresh: dict[int, Discovery]) -> int:
        epochs = self._shard_leases.epochs
        foreign = {key: found for key, found in fresh.items() if shard_of(found.host) not in epochs}
        if not foreign:
            return super()._write_fresh(fresh)
        self._links.send(foreign.values(), urgent=False)
        for key, found in foreign.items():
            self._recent.learn(key, found.priority, found.depth)
        own = {key: found for key, found in fresh.items() if key not in foreign}
        return len(foreign) + (super()._write_fresh(own) if own else 0)

    def request(self, urls: Sequence[Discovery], now: float) -> int:
        foreign = {found.fingerprint: found for found in urls if shard_of(found.host) not in self._shard_leases.epochs}
        own = [found for found in urls if found.fingerprint not in foreign]
        with self._database.transaction():
            self._links.send(foreign.values(), urgent=True)
            return len(foreign) + (super().request(own, now) if own else 0)

    def pull(self, now: float) -> bool:
        return False  # see `PostgresShards.pull`

    def next_due(self, now: float) -> float | None:
        """Includes other workers' shards: a crawl ends when no worker has anything left."""
        own = super().next_due(now)
        if own is not None and own <= now:
            return own
        asked, elsewhere = self._elsewhere
        if not asked <= self._clock() < asked + _ELSEWHERE_FOR:
            elsewhere = self._queue.next_elsewhere(now)
            self._elsewhere = (self._clock(), elsewhere)
        return min((time for time in (own, elsewhere) if time is not None), default=None)

    def reschedule(self, pages: Sequence[ScheduledPage], now: float) -> None:
        own = [page for page in pages if shard_of(page.host) in self._shard_leases.epochs]
        super().reschedule(own, now)
        if not self._shard_leases.fetches and len(own) < len(pages):
            with self._database.transaction():
                self._links.schedule(page for page in pages if shard_of(page.host) not in self._shard_leases.epochs)

    def close(self) -> None:
        """Give back all shards; those with visits in progress are left as after a crash."""
        if self._database.writable and self._shard_leases.epochs:
            self._shards.drain(range(SHARDS))
            try:
                self._shards.give_back()
            except ShardsLost:
                self._shards.give_back()  # the others: the lost ones are forgotten

    def _reload(self) -> None:
        super()._reload()
        owned = self._shard_leases.epochs
        self.leases.drop(lambda host: shard_of(host.name) not in owned)
