"""The frontier on SQLite: how it opens and closes. What it does is in `stores.frontier`, its statements in
`frontier_tables`.
"""

from __future__ import annotations

from quadloom.stores.frontier.frontier import TableFrontier
from quadloom.stores.frontier.leasing import INFINITY
from quadloom.stores.frontier.policy import FrontierPolicy, order_mark
from quadloom.stores.protocols.frontier import ScopeRules
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier_tables import SqliteFrontierValues, SqliteHosts, SqliteQueue, SqliteUrls


class SqliteFrontier(TableFrontier):
    """One process at a time opens it for writing; see `quadloom.stores.frontier.frontier.TableFrontier`."""

    _host_records: SqliteHosts
    _queue: SqliteQueue

    def __init__(
        self,
        database: SqliteDatabase,
        policy: FrontierPolicy,
        *,
        now: float,
        scope: ScopeRules | None = None,
        capacity: int = 2048,
    ) -> None:
        self._values = SqliteFrontierValues(database)
        super().__init__(
            database,
            SqliteHosts(database),
            SqliteUrls(database),
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
                self._leasing.suspected_at = lambda host: now if host.id <= last_old_id else -INFINITY
            self.clamp_clocks(now)
            self._queue.count_leased_attempts()
            order = order_mark(self.policy.order)
            if values.get("order") not in (None, order):
                self._queue.rebuild()
            for name, value in (("clean", b"no"), ("leased", b""), ("order", order)):
                values.put(name, value)
            self._leasing.unpark_within_budget()

    def close(self) -> None:
        """Write all clocks and a mark that they are complete: the next opening need not make every host wait."""
        if self._database.writable:
            with self._database.transaction():
                self._host_records.write_hosts(self._leasing.hosts.loaded.values())
                self._values.put("clean", b"yes")
                self._queue.note_leased([])
