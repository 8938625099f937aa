"""The frontier on PostgreSQL: as the embedded one (`stores.frontier`), for the shards that this worker owns.

A worker has its shards' hosts in its own memory and settles them in its own transactions, so politeness needs no clock
that two machines share. What is found for a shard of another worker goes to `link_outbox`, in the transaction that
found it. The shard's owner moves it from there into its frontier in one transaction: exactly once. A process that owns
no shard (a command that adds seeds, the web site) sends everything that way.

When a worker takes over a shard that was not given back cleanly, it cannot know which of the hosts were asked a moment
ago: all of them wait their full delay from that moment. Visits carry the time until which a request may begin
(`Visit.start_before`), because a worker that is stopped with visits in hand does not notice that its lease has ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from zlib import crc32

import msgspec

from quadloom.errors import SettingsError, WarehouseLocked
from quadloom.model.link import Discovery
from quadloom.model.outcome import Settlement
from quadloom.model.visit import Visit
from quadloom.model.wire import decode, encode
from quadloom.stores.frontier.frontier import TableFrontier
from quadloom.stores.frontier.host_table import HostState
from quadloom.stores.frontier.leasing import INFINITY
from quadloom.stores.frontier.policy import FrontierPolicy, order_mark
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier_tables import PostgresFrontierTables
from quadloom.stores.postgres.shards import LinkOutbox, ShardLeases
from quadloom.stores.protocols.frontier import HostRow, Quota, ScheduledPage, ScopeRules
from quadloom.stores.shards import SHARDS, shard_of

SLOTS = 64  # of counters; two workers that share a slot wait for each other
PULLED = 200  # batches from other shards taken in one transaction
_ELSEWHERE_FOR = 1.0  # seconds for which an answer about other workers' shards is cached


class _Sent(msgspec.Struct, frozen=True, array_like=True):
    """A batch for another shard. `urgent`: explicit requests, not offers."""

    discoveries: tuple[Discovery, ...]
    urgent: bool = False


class PostgresFrontier(TableFrontier):
    """See `quadloom.stores.protocols.frontier.Frontier`. Every method that writes raises `ShardsLost` if another worker
    has taken over one of the shards; nothing is written then. For the methods about shards see
    `quadloom.stores.protocols.state.Shards`."""

    _tables: PostgresFrontierTables

    def __init__(
        self,
        database: PostgresDatabase,
        policy: FrontierPolicy,
        leases: ShardLeases,
        *,
        now: float,
        scope: ScopeRules | None = None,
        capacity: int = 2048,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._suspected: dict[int, tuple[float, int]] = {}  # shard → time of the takeover, last host id then
        self._elsewhere: tuple[float, float | None] = (-INFINITY, None)
        tables = PostgresFrontierTables(database, policy.order, leases, crc32(leases.owner.encode()) % SLOTS)
        super().__init__(tables, policy, now=now, scope=scope, capacity=capacity)
        self._leasing.suspected_at = self._suspected_at
        if database.writable:
            self._check_order()
            database.on_begin(lambda: leases.check(database))
            database.on_rollback(self._reload)
        self._base = database
        self._links = LinkOutbox(database, leases)

    def _check_order(self) -> None:
        order, stored = order_mark(self.policy.order), self._tables.value("order")
        if stored == order:
            return
        with self._database.transaction():
            if stored is not None and self._leases.workers(self._tables.database):
                raise SettingsError(
                    f"crawl.order = {self.policy.order}, but running workers use {stored.decode().split()[0]}",
                    hint="give all workers the same settings, or stop them to change the order",
                )
            if stored is not None:
                self._tables.rebuild()
            self._tables.set_value("order", order)

    @property
    def owned(self) -> frozenset[int]:
        return frozenset(self._leases.epochs)

    def take(self, limit: int, now: float) -> list[int]:
        """Own up to `limit` more shards; returns those that were free."""
        with self._database.transaction():
            claims = self._leases.claim(self._base, limit)
            last_id = self._tables.last_host_id()
            self._tables.count_leased_attempts(claims)
        self._leases.took(claims)
        self._suspected.update((claim.shard, (now, last_id)) for claim in claims if not claim.clean)
        if claims:
            self._recent.clear()  # it also holds what was sent to these shards and has not arrived
            self._tables.read_first_due()
            self._leasing.hosts_added()
            self._leasing.unpark_within_budget()
        return [claim.shard for claim in claims]

    def take_all(self, now: float) -> None:
        """Own every shard, for a command that writes pages of any site. Raises `WarehouseLocked` if a worker runs."""
        self._leases.renew(self._base)
        self.take(SHARDS, now)
        if len(self.owned) < SHARDS:
            raise WarehouseLocked(
                f"running workers own {SHARDS - len(self.owned)} of {SHARDS} shards",
                hint="stop the workers with `quadloom stop` on each machine, and start them again afterwards",
            )

    def drain(self, shards: Iterable[int]) -> None:
        """Lease nothing more from these, so that they can be given back."""
        self._leases.draining.update(self.owned.intersection(shards))
        self._leasing.retire(self._in(self._leases.draining))
        self._tables.read_first_due()

    def give_back(self, unfinished: frozenset[int] = frozenset()) -> list[int]:
        """Give back drained shards without visits in progress, with all clocks written. `unfinished`: shards of
        which the caller still has something to write."""
        busy = {shard_of(lease.host.name) for lease in self._leasing.leases.values()}
        ready = sorted(self._leases.draining - busy - unfinished)
        if ready:
            with self._database.transaction():
                self._tables.write_hosts(filter(self._in(ready), self._leasing.hosts.loaded.values()))
                self._leases.release(self._base, ready)
            self.lose(ready)
        return ready

    def lose(self, shards: Iterable[int]) -> None:
        """These belong to another worker: forget everything about them that is in memory."""
        gone = set(shards)
        self._leases.forget(gone)
        for shard in gone:
            self._suspected.pop(shard, None)
        self._leasing.drop(self._in(gone))
        self._tables.read_first_due()

    def pull(self, now: float, prepare: Callable[[], None] = lambda: None) -> int:
        """Queue links that other workers found for these shards. Returns the number of batches; `PULLED` = there may be
        more. `prepare`: see `quadloom.stores.protocols.state.Shards.pull`."""
        waiting = self._links.waiting(PULLED) if self._leases.epochs else []
        if not waiting:
            return 0
        prepare()
        with self._database.transaction():
            batches = [decode(data, _Sent) for data in self._links.receive(waiting)]
            for urgent in (False, True):
                found = [item for batch in batches if batch.urgent is urgent for item in batch.discoveries]
                if found and urgent:
                    super().request(found, now)
                elif found:
                    self._add(found)
        return len(batches)

    def lease(self, limit: int, now: float, *, duration: float = 600.0, quota: Quota | None = None) -> list[Visit]:
        if self._clock() >= self._leases.begin_until:
            return []  # the heartbeat could not be renewed: other workers may own the hosts by then
        self._leasing.start_before = self._leases.begin_until
        return super().lease(limit, now, duration=duration, quota=quota)

    def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        if not settlements:
            return  # saves the round trips of a transaction
        self._leases.lost({shard_of(s.visit.host) for s in settlements} - self._leases.epochs.keys())
        super().settle(settlements, now)
        if self._leases.draining:
            self._leasing.retire(self._in(self._leases.draining))

    def _write_fresh(self, fresh: dict[int, Discovery]) -> int:
        epochs = self._leases.epochs
        foreign = {key: found for key, found in fresh.items() if shard_of(found.host) not in epochs}
        if not foreign:
            return super()._write_fresh(fresh)
        self._send(foreign.values(), urgent=False)
        for key, found in foreign.items():
            self._recent.learn(key, found.priority, found.depth)
        own = {key: found for key, found in fresh.items() if key not in foreign}
        return len(foreign) + (super()._write_fresh(own) if own else 0)

    def request(self, urls: Sequence[Discovery], now: float) -> int:
        foreign = {found.fingerprint: found for found in urls if shard_of(found.host) not in self._leases.epochs}
        own = [found for found in urls if found.fingerprint not in foreign]
        with self._database.transaction():
            self._send(foreign.values(), urgent=True)
            return len(foreign) + (super().request(own, now) if own else 0)

    def _send(self, found: Iterable[Discovery], *, urgent: bool) -> None:
        by_shard: dict[int, list[Discovery]] = {}
        for item in found:
            by_shard.setdefault(shard_of(item.host), []).append(item)
        self._links.send([(shard, encode(_Sent(tuple(items), urgent))) for shard, items in by_shard.items()])

    def next_due(self, now: float) -> float | None:
        """Includes other workers' shards: a crawl ends when no worker has anything left."""
        own = super().next_due(now)
        if own is not None and own <= now:
            return own
        asked, elsewhere = self._elsewhere
        if not asked <= self._clock() < asked + _ELSEWHERE_FOR:
            elsewhere = self._tables.next_elsewhere(now)
            self._elsewhere = (self._clock(), elsewhere)
        return min((time for time in (own, elsewhere) if time is not None), default=None)

    def block(self, host: str, until: float, reason: str) -> None:
        self._leases.lost({shard_of(host)} - self._leases.epochs.keys())
        super().block(host, until, reason)

    def put_host(self, row: HostRow) -> None:
        self._leases.lost({shard_of(row.host)} - self._leases.epochs.keys())
        super().put_host(row)

    def reschedule(self, pages: Sequence[ScheduledPage], now: float) -> None:
        super().reschedule([page for page in pages if shard_of(page.host) in self._leases.epochs], now)

    def close(self) -> None:
        """Give back all shards; those with visits in progress are left as after a crash."""
        if self._database.writable and self._leases.epochs:
            self.drain(range(SHARDS))
            self.give_back()

    def _reload(self) -> None:
        super()._reload()
        owned = self._leases.epochs
        self._leasing.drop(lambda host: shard_of(host.name) not in owned)

    def _suspected_at(self, host: HostState) -> float:
        at, last_id = self._suspected.get(shard_of(host.name), (-INFINITY, 0))
        return at if host.id <= last_id else -INFINITY

    @staticmethod
    def _in(shards: Iterable[int]) -> Callable[[HostState], bool]:
        chosen = frozenset(shards)
        return lambda host: shard_of(host.name) in chosen
