"""The frontier on SQLite: how it opens and closes. What it does is in `stores.frontier`, its statements in
`frontier_tables`.
"""

from __future__ import annotations

from quadloom.stores.frontier.frontier import TableFrontier
from quadloom.stores.frontier.leasing import INFINITY
from quadloom.stores.frontier.policy import FrontierPolicy, order_mark
from quadloom.stores.protocols.frontier import ScopeRules
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier_tables import SqliteFrontierTables


class SqliteFrontier(TableFrontier):
    """One process at a time opens it for writing; see `quadloom.stores.frontier.frontier.TableFrontier`."""

    _tables: SqliteFrontierTables

    def __init__(
        self,
        database: SqliteDatabase,
        policy: FrontierPolicy,
        *,
        now: float,
        scope: ScopeRules | None = None,
        capacity: int = 2048,
    ) -> None:
        tables = SqliteFrontierTables(database, policy.order)
        super().__init__(tables, policy, now=now, scope=scope, capacity=capacity)
        if database.writable:
            self._open(now)
            database.on_rollback(self._reload)

    def _open(self, now: float) -> None:
        tables = self._tables
        with self._database.transaction():
            if tables.value("clean") != b"yes":
                last_old_id = tables.last_host_id()
                self._leasing.suspected_at = lambda host: now if host.id <= last_old_id else -INFINITY
            tables.count_leased_attempts()
            order = order_mark(self.policy.order)
            if tables.value("order") not in (None, order):
                tables.rebuild_queue()
            for name, value in (("clean", b"no"), ("leased", b""), ("order", order)):
                tables.set_value(name, value)
            self._leasing.unpark_within_budget()

    def close(self) -> None:
        """Write all clocks and a mark that they are complete: the next opening need not make every host wait."""
        if self._database.writable:
            with self._database.transaction():
                self._tables.write_hosts(self._leasing.hosts.loaded.values())
                self._tables.set_value("clean", b"yes")
                self._tables.note_leased([])
