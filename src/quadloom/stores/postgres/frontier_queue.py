"""The frontier's queues on PostgreSQL: which URLs of the shards that this worker owns are visited next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quadloom.stores.frontier.host_table import QueuedUrl
from quadloom.stores.frontier.policy import GUIDED, Order
from quadloom.stores.frontier.rows import URL_COLUMNS, UrlBatch, UrlRow, qualified
from quadloom.stores.postgres.arrays import columns
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier_tables import FrontierCounters, urls_of
from quadloom.stores.postgres.shard_leases import ShardLeases
from quadloom.stores.protocols.frontier import ScheduledPage
from quadloom.stores.shards import SHARDS
from quadloom.stores.sql.queue import IN_ORDER, ITS_URL, QUEUED_URL, SqlQueue
from quadloom.stores.sql.statements import SqlCondition

_INDEXING = 7_310_422  # an advisory lock of its own
_WAITING = "unnest(?::float8[], ?::bigint[], ?::bigint[]) AS w(due, h, f) JOIN host ON host.id = w.h"


class PostgresQueue(SqlQueue):
    """See `quadloom.stores.sql.queue.SqlQueue`."""

    prefetch = 16
    guided = f"q.{GUIDED}"
    _database: PostgresDatabase

    def __init__(
        self, database: PostgresDatabase, leases: ShardLeases, counters: FrontierCounters, order: Order
    ) -> None:
        self._leases = leases
        self._counters = counters
        super().__init__(database, order)

    def read_first_due(self) -> None:
        first = self._database.execute(
            "SELECT min(l.due) FROM unnest(?::smallint[]) AS s(shard) CROSS JOIN LATERAL "
            "(SELECT due FROM later WHERE later.shard = s.shard ORDER BY due LIMIT 1) l",
            (self._leases.leasable,),
        )[0][0]
        self.first_due = float("inf") if first is None else first

    def counts(self) -> Sequence[int]:
        return self._counters.by_state()

    def _count(self, changes: Sequence[int]) -> None:
        self._counters.add(dict(enumerate(changes)))

    def _write_later(self, batch: UrlBatch) -> None:
        if batch.left_later:
            self._database.write(
                f"DELETE FROM later l USING {_WAITING} WHERE l.shard = host.shard AND l.due = w.due "
                "AND l.host_id = w.h AND l.fingerprint = w.f",
                columns("dqq", batch.left_later),
            )
        if batch.later:
            self._database.write(
                f"INSERT INTO later SELECT host.shard, w.due, w.h, w.f FROM {_WAITING} ON CONFLICT DO NOTHING",
                columns("dqq", batch.later),
            )

    def _own(self) -> SqlCondition:
        return urls_of(self._leases.owned)

    def _clear(self) -> None:
        self._database.write("TRUNCATE queue")

    def index_importance(self) -> None:
        with self._database.unhurried():
            self._database.write("SELECT pg_advisory_xact_lock(?)", (_INDEXING,))  # another worker may be doing it
            self._database.write(
                "CREATE INDEX IF NOT EXISTS queue_by_importance ON queue(host_id, priority, second, fingerprint) "
                f"WHERE {GUIDED}"
            )
            self._database.write("DROP INDEX IF EXISTS queue_importance")  # of version 0.2

    def fronts(self, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]:
        rows = self._database.execute(
            f"SELECT q.host_id, {QUEUED_URL} FROM unnest(?::bigint[]) AS w(h) CROSS JOIN LATERAL (SELECT * "
            f"FROM queue q WHERE q.host_id = w.h ORDER BY {IN_ORDER} LIMIT ?) q JOIN {ITS_URL} "
            f"ORDER BY q.host_id, {IN_ORDER}",
            (list(host_ids), limit),
        )
        found: dict[int, list[QueuedUrl]] = {}
        for row in rows:
            found.setdefault(row[0], []).append(row[1:])
        return found

    def due(self, now: float, limit: int) -> list[UrlRow]:
        names = qualified("u", URL_COLUMNS)
        rows = self._database.execute(
            f"SELECT {names} FROM unnest(?::smallint[]) AS s(shard) CROSS JOIN LATERAL (SELECT * FROM later "
            "WHERE later.shard = s.shard AND due <= ? ORDER BY due LIMIT ?) l "
            "JOIN url u ON u.host_id = l.host_id AND u.fingerprint = l.fingerprint ORDER BY l.due LIMIT ?",
            (self._leases.leasable, now, limit, limit),
        )
        return [UrlRow(*row) for row in rows]

    def retries(self, after: float) -> list[UrlRow]:
        names = qualified("u", URL_COLUMNS)
        rows = self._database.execute(
            f"SELECT {names} FROM later l JOIN url u ON u.host_id = l.host_id AND u.fingerprint = l.fingerprint "
            "WHERE l.shard = ANY(?::smallint[]) AND l.due > ? AND (u.visits = 0 OR u.attempt > 1)",
            (self._leases.leasable, after),
        )
        return [UrlRow(*row) for row in rows]

    def soonest(self, limit: int) -> list[ScheduledPage]:
        rows = self._database.execute(
            "SELECT l.fingerprint, h.name, l.due FROM unnest(?::smallint[]) AS s(shard) CROSS JOIN LATERAL "
            "(SELECT later.* FROM later JOIN url u USING (host_id, fingerprint) WHERE later.shard = s.shard "
            "AND u.visits > 0 AND u.attempt = 1 ORDER BY later.due LIMIT ?) l "
            "JOIN host h ON h.id = l.host_id ORDER BY l.due LIMIT ?",
            (self._leases.leasable, limit, limit),
        )
        return [ScheduledPage(*row) for row in rows]

    def next_elsewhere(self, now: float) -> float | None:
        """Earliest time at which another worker has work; `now` if links wait for their owner; None = never."""
        others = sorted({*range(SHARDS)}.difference(self._leases.owned))
        row = self._database.execute(
            "SELECT min(h.ready_at), min(l.due), (SELECT EXISTS (SELECT FROM link_outbox)) "
            "FROM unnest(?::smallint[]) AS s(shard) LEFT JOIN LATERAL (SELECT ready_at FROM host x WHERE x.is_queued "
            "AND x.shard = s.shard ORDER BY x.ready_at LIMIT 1) h ON true LEFT JOIN LATERAL (SELECT due FROM later x "
            "WHERE x.shard = s.shard ORDER BY x.due LIMIT 1) l ON true",
            (others,),
        )[0]
        times = [time for time in (row[0], row[1], now if row[2] else None) if time is not None]
        return max(now, min(times)) if times else None
