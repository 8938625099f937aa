"""The frontier on SQLite: how it opens and closes, and how other processes reach it. What it does is in
`stores.frontier`, its statements in `frontier_tables`.

One process owns the frontier, since clocks and leases are in its memory. Processes that run other phases of the same
warehouse have a `SqliteGuestFrontier`: what they find goes to the table `frontier_inbox`, in the transaction that found
it, and the owner moves it into its tables in one transaction (`pull`), now or when it starts: exactly once.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.model.link import Discovery
from quadloom.model.outcome import Settlement
from quadloom.model.visit import Visit
from quadloom.model.wire import encode
from quadloom.process.clock import ClockStamp, stamp, step_since, unix_time
from quadloom.stores.frontier.frontier import TableFrontier
from quadloom.stores.frontier.loaded_hosts import INFINITY
from quadloom.stores.frontier.policy import FrontierPolicy, order_mark
from quadloom.stores.protocols.frontier import Quota, ScheduledPage, ScopeRules
from quadloom.stores.sql.queue import SqlFrontierValues
from quadloom.stores.sql.stored_records import decode
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier_tables import SqliteHosts, SqliteQueue, SqliteUrls

_PULLED = 200  # batches taken in one transaction
_CLOCK = "clock"  # the last `ClockStamp`
_STAMP_SECONDS = 60.0


class FrontierBatch(msgspec.Struct, frozen=True, array_like=True):
    """What a process that does not own the frontier has for it."""

    offers: tuple[Discovery, ...] = ()
    requests: tuple[Discovery, ...] = ()
    scheduled: tuple[ScheduledPage, ...] = ()


class SqliteFrontier(TableFrontier):
    """One process at a time opens it for writing; see `quadloom.stores.frontier.frontier.TableFrontier`."""

    _database: SqliteDatabase
    _host_records: SqliteHosts
    _url_records: SqliteUrls
    _queue: SqliteQueue
    _stamped_at = 0.0

    def __init__(
        self,
        database: SqliteDatabase,
        policy: FrontierPolicy,
        *,
        now: float,
        scope: ScopeRules | None = None,
        capacity: int = 2048,
    ) -> None:
        self._values = SqlFrontierValues(database)
        super().__init__(
            database,
            SqliteHosts(database),
            SqliteUrls(database, self._values),
            SqliteQueue(database, self._values, policy.order),
            policy,
            now=now,
            scope=scope,
            capacity=capacity,
        )
        if database.writable:
            self._open(now)
            database.on_rollback(self._reload)

    def _open(self, now: float) -> None:
        values = self._values
        with self._database.transaction():
            if values.get("clean") != b"yes":
                last_old_id = self._host_records.last_host_id()
                self.loaded.suspected_at = lambda host: now if host.id <= last_old_id else -INFINITY
            self._follow_clock()
            self.clamp_clocks(now)
            self._queue.clamp_due(now + self.policy.longest_wait)
            self._url_records.count_leased_attempts()
            order = order_mark(self.policy.order)
            if values.get("order") not in (None, order):
                self._queue.rebuild()
            for name, value in (("clean", b"no"), ("leased", b""), ("order", order)):
                values.put(name, value)
            self.loaded.unpark_within_budget()
            self.guide(self.policy.guided_share)

    def _follow_clock(self) -> None:
        """The clock may have been set since the last process: times that are still to come move as far as it did, so
        that nothing is visited early and nothing waits for longer."""
        stored = self._values.get(_CLOCK)
        self.clock_step = step_since(decode(stored, ClockStamp)) if stored is not None else 0.0
        if self.clock_step:
            self._host_records.move_clocks(self.clock_step)
            self._queue.move_due(self.clock_step)
        self._stamp()

    def _stamp(self) -> None:
        now = stamp()
        self._values.put(_CLOCK, encode(now))
        self._stamped_at = now.at

    def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        with self._database.transaction():
            super().settle(settlements, now)
            if unix_time() - self._stamped_at >= _STAMP_SECONDS:
                self._stamp()

    def pull(self, now: float) -> bool:
        if self._database.execute("SELECT 1 FROM frontier_inbox LIMIT 1").fetchone() is None:
            return False
        with self._database.transaction():
            rows = self._database.execute("SELECT seq, batch FROM frontier_inbox ORDER BY seq LIMIT ?", (_PULLED,))
            batches = rows.fetchall()
            for _, data in batches:
                self._receive(decode(data, FrontierBatch), now)
            self._database.execute("DELETE FROM frontier_inbox WHERE seq <= ?", (batches[-1][0],))
        return len(batches) == _PULLED

    def _receive(self, batch: FrontierBatch, now: float) -> None:
        if batch.offers:
            self.add(batch.offers, now)
        if batch.requests:
            self.request(batch.requests, now)
        if batch.scheduled:
            self.reschedule(batch.scheduled, now)

    def close(self) -> None:
        """Write all clocks and a mark that they are complete: the next opening need not make every host wait."""
        if self._database.writable:
            with self._database.transaction():
                self._host_records.write_hosts(self.loaded.table.loaded.values())
                self._values.put("clean", b"yes")
                self._stamp()
                self._url_records.note_leased([])


class SqliteGuestFrontier(SqliteFrontier):
    """The frontier as seen by a process that does not own it: it reads, and sends what it has to the owner.

    It has no rules of its own: the owner knows the newest scope, and judges what arrives.
    """

    def __init__(self, database: SqliteDatabase, policy: FrontierPolicy, *, now: float) -> None:
        super().__init__(database, policy, now=now, scope=None)

    def _open(self, now: float) -> None:
        """Nothing: clocks and leases belong to the owner."""

    def _write_fresh(self, fresh: dict[int, Discovery]) -> int:
        self._send(FrontierBatch(offers=tuple(fresh.values())))
        for key, found in fresh.items():
            self._recent.learn(key, found.priority, found.depth)
        return len(fresh)

    def request(self, urls: Sequence[Discovery], now: float) -> int:
        wanted = {found.fingerprint: found for found in urls}
        self._send(FrontierBatch(requests=tuple(wanted.values())))
        return len(wanted)

    def reschedule(self, pages: Sequence[ScheduledPage], now: float) -> None:
        if pages:
            self._send(FrontierBatch(scheduled=tuple(pages)))

    def lease(self, limit: int, now: float, *, duration: float = 600.0, quota: Quota | None = None) -> list[Visit]:
        return []

    def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        assert not settlements, "only the owner of the frontier has visits to settle"

    def guide(self, share: float) -> None:
        """Nothing is handed out here."""

    def set_scope(self, scope: ScopeRules) -> int:
        return 0

    def pull(self, now: float) -> bool:
        return False

    def close(self) -> None:
        """Nothing is in memory."""

    def _send(self, batch: FrontierBatch) -> None:
        with self._database.transaction():
            self._database.execute("INSERT INTO frontier_inbox(batch) VALUES(?)", (encode(batch),))
