"""The frontier's queues on PostgreSQL: which URLs of the shards that this worker owns are visited next."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from quadloom.stores.frontier.host_table import QueuedUrl
from quadloom.stores.frontier.policy import GUIDED, RANK_SQL, Order, UrlState, rank
from quadloom.stores.frontier.tables import URL_COLUMNS, UrlBatch, UrlRow, qualified
from quadloom.stores.postgres.arrays import column, columns
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier_tables import PAIRS, FrontierCounters
from quadloom.stores.postgres.shard_leases import Claim, ShardLeases
from quadloom.stores.protocols.frontier import ScheduledPage
from quadloom.stores.shards import SHARDS

_QUEUED, _SPENT = int(UrlState.QUEUED), int(UrlState.OVER_BUDGET)
_QUEUED_URL = (
    "q.priority, q.first, q.second, q.fingerprint, u.href, coalesce(u.key, u.href), u.depth, u.score, u.kind, "
    "u.attempt, u.etag, u.last_modified, u.visits > 0, u.via, u.anchor"
)
_INDEXING = 7_310_422  # an advisory lock of its own
_IN_ORDER = "q.priority, q.first, q.second, q.fingerprint"
_ITS_URL = "JOIN url u ON u.host_id = q.host_id AND u.fingerprint = q.fingerprint"
_QUEUE_ROWS = "unnest(%s::bigint[], %s::smallint[], %s::float8[], %s::float8[], %s::bigint[]) AS w(h, p, a, b, f)"


class PostgresQueue:
    """See `quadloom.stores.frontier.tables.UrlQueue`."""

    prefetch = 16

    def __init__(
        self, database: PostgresDatabase, leases: ShardLeases, counters: FrontierCounters, order: Order
    ) -> None:
        self.order: Order = order
        self.first_due = float("inf")
        self._database = database
        self._leases = leases
        self._counters = counters
        self.reload()

    def reload(self) -> None:
        self.read_first_due()

    def read_first_due(self) -> None:
        first = self._database.execute(
            "SELECT min(l.due) FROM unnest(%s::smallint[]) AS s(shard) CROSS JOIN LATERAL "
            "(SELECT due FROM later WHERE later.shard = s.shard ORDER BY due LIMIT 1) l",
            (self._leases.leasable,),
        )[0][0]
        self.first_due = float("inf") if first is None else first

    def counts(self) -> Sequence[int]:
        return self._counters.by_state()

    def write_moves(self, batch: UrlBatch) -> None:
        execute = self._database.write
        if batch.left_queue:
            execute(
                f"DELETE FROM queue q USING {_QUEUE_ROWS} WHERE q.host_id = w.h AND q.priority = w.p AND q.first = w.a "
                "AND q.second = w.b AND q.fingerprint = w.f",
                columns("qhddq", batch.left_queue),
            )
        waiting = "unnest(%s::float8[], %s::bigint[], %s::bigint[]) AS w(due, h, f) JOIN host ON host.id = w.h"
        if batch.left_later:
            execute(
                f"DELETE FROM later l USING {waiting} WHERE l.shard = host.shard AND l.due = w.due "
                "AND l.host_id = w.h AND l.fingerprint = w.f",
                columns("dqq", batch.left_later),
            )
        if batch.queue:
            execute(
                f"INSERT INTO queue SELECT * FROM {_QUEUE_ROWS} ON CONFLICT DO NOTHING",
                columns("qhddq", sorted(batch.queue)),
            )
        if batch.later:
            execute(
                f"INSERT INTO later SELECT host.shard, w.due, w.h, w.f FROM {waiting} ON CONFLICT DO NOTHING",
                columns("dqq", batch.later),
            )
        changed = sorted((host, delta) for host, delta in batch.queued.items() if delta)
        if changed:
            execute(
                "UPDATE host SET queued = queued + w.delta FROM unnest(%s::bigint[], %s::bigint[]) AS w(id, delta) "
                "WHERE host.id = w.id",
                columns("qq", changed),
            )
        self._counters.add(dict(enumerate(batch.counts)))

    def front(self, host_id: int, limit: int, priorities: Sequence[int] = ()) -> list[QueuedUrl]:
        chosen = " AND q.priority = ANY(%s::smallint[])" if priorities else ""
        return self._database.execute(
            f"SELECT {_QUEUED_URL} FROM queue q {_ITS_URL} WHERE q.host_id=%s{chosen} ORDER BY {_IN_ORDER} LIMIT %s",
            (host_id, list(priorities), limit) if priorities else (host_id, limit),
        )

    def index_importance(self) -> None:
        with self._database.unhurried():
            self._database.write("SELECT pg_advisory_xact_lock(%s)", (_INDEXING,))  # another worker may be doing it
            self._database.write(
                "CREATE INDEX IF NOT EXISTS queue_by_importance ON queue(host_id, priority, second, fingerprint) "
                f"WHERE {GUIDED}"
            )
            self._database.write("DROP INDEX IF EXISTS queue_importance")  # of version 0.2

    def most_important(self, host_id: int, priority: int, limit: int) -> list[QueuedUrl]:
        return self._database.execute(
            f"SELECT {_QUEUED_URL} FROM queue q {_ITS_URL} WHERE q.host_id=%s AND q.priority=%s AND q.{GUIDED} "
            "ORDER BY q.second, q.fingerprint LIMIT %s",
            (host_id, priority, limit),
        )

    def fronts(self, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]:
        rows = self._database.execute(
            f"SELECT q.host_id, {_QUEUED_URL} FROM unnest(%s::bigint[]) AS w(h) CROSS JOIN LATERAL (SELECT * "
            f"FROM queue q WHERE q.host_id = w.h ORDER BY {_IN_ORDER} LIMIT %s) q {_ITS_URL} "
            f"ORDER BY q.host_id, {_IN_ORDER}",
            (list(host_ids), limit),
        )
        found: dict[int, list[QueuedUrl]] = {}
        for row in rows:
            found.setdefault(row[0], []).append(row[1:])
        return found

    def ahead(self, row: UrlRow) -> int:
        place = (*rank(self.order, row.priority, row.depth, row.score, row.due), row.fingerprint)
        statement = (
            "SELECT count(*) FROM queue WHERE host_id=%s AND (priority, first, second, fingerprint) < (%s,%s,%s,%s)"
        )
        return int(self._database.execute(statement, (row.host_id, *place))[0][0])

    def due(self, now: float, limit: int) -> list[UrlRow]:
        names = qualified("u", URL_COLUMNS)
        rows = self._database.execute(
            f"SELECT {names} FROM unnest(%s::smallint[]) AS s(shard) CROSS JOIN LATERAL (SELECT * FROM later "
            "WHERE later.shard = s.shard AND due <= %s ORDER BY due LIMIT %s) l "
            "JOIN url u ON u.host_id = l.host_id AND u.fingerprint = l.fingerprint ORDER BY l.due LIMIT %s",
            (self._leases.leasable, now, limit, limit),
        )
        return [UrlRow(*row) for row in rows]

    def retries(self, after: float) -> list[UrlRow]:
        names = qualified("u", URL_COLUMNS)
        rows = self._database.execute(
            f"SELECT {names} FROM later l JOIN url u ON u.host_id = l.host_id AND u.fingerprint = l.fingerprint "
            "WHERE l.shard = ANY(%s::smallint[]) AND l.due > %s AND (u.visits = 0 OR u.attempt > 1)",
            (self._leases.leasable, after),
        )
        return [UrlRow(*row) for row in rows]

    def soonest(self, limit: int) -> list[ScheduledPage]:
        rows = self._database.execute(
            "SELECT l.fingerprint, h.name, l.due FROM unnest(%s::smallint[]) AS s(shard) CROSS JOIN LATERAL "
            "(SELECT later.* FROM later JOIN url u USING (host_id, fingerprint) WHERE later.shard = s.shard "
            "AND u.visits > 0 AND u.attempt = 1 ORDER BY later.due LIMIT %s) l "
            "JOIN host h ON h.id = l.host_id ORDER BY l.due LIMIT %s",
            (self._leases.leasable, limit, limit),
        )
        return [ScheduledPage(*row) for row in rows]

    def next_elsewhere(self, now: float) -> float | None:
        """Earliest time at which another worker has work; `now` if links wait for their owner; None = never."""
        others = sorted({*range(SHARDS)}.difference(self._leases.owned))
        row = self._database.execute(
            "SELECT min(h.ready_at), min(l.due), (SELECT EXISTS (SELECT FROM link_outbox)) "
            "FROM unnest(%s::smallint[]) AS s(shard) LEFT JOIN LATERAL (SELECT ready_at FROM host x WHERE x.is_queued "
            "AND x.shard = s.shard ORDER BY x.ready_at LIMIT 1) h ON true LEFT JOIN LATERAL (SELECT due FROM later x "
            "WHERE x.shard = s.shard ORDER BY x.due LIMIT 1) l ON true",
            (others,),
        )[0]
        times = [time for time in (row[0], row[1], now if row[2] else None) if time is not None]
        return max(now, min(times)) if times else None

    def parked_hosts(self) -> list[int]:
        rows = self._database.execute(
            f"SELECT DISTINCT u.host_id FROM url u JOIN host h ON h.id = u.host_id "
            f"WHERE u.state={_SPENT} AND h.shard = ANY(%s::smallint[])",
            (self._leases.owned,),
        )
        return [row[0] for row in rows]

    def park(self, host_id: int, held: Sequence[int]) -> int:
        parked = self._database.execute(
            f"WITH spent AS (UPDATE url u SET state={_SPENT} FROM queue q WHERE u.host_id=%s AND u.visits=0 "
            "AND q.host_id = u.host_id AND q.fingerprint = u.fingerprint AND q.priority > 0 "
            "AND q.fingerprint <> ALL(%s::bigint[]) RETURNING q.host_id, q.fingerprint), "
            "gone AS (DELETE FROM queue q USING spent s WHERE q.host_id = s.host_id AND q.fingerprint = s.fingerprint) "
            "SELECT count(*) FROM spent",
            (host_id, list(held)),
        )[0][0]
        return self._shift(host_id, UrlState.QUEUED, UrlState.OVER_BUDGET, parked)

    def unpark(self, host_id: int) -> int:
        back = self._database.execute(
            f"WITH back AS (UPDATE url SET state={_QUEUED} WHERE host_id=%s AND state={_SPENT} "
            "RETURNING host_id, priority, depth, score, due, fingerprint), queued AS (INSERT INTO queue "
            f"SELECT host_id, priority, {RANK_SQL[self.order]}, fingerprint FROM back) SELECT count(*) FROM back",
            (host_id,),
        )[0][0]
        return self._shift(host_id, UrlState.OVER_BUDGET, UrlState.QUEUED, back)

    def _shift(self, host_id: int, before: UrlState, after: UrlState, number: int) -> int:
        """Returns the change of the queue's length."""
        change = -number if before is UrlState.QUEUED else number
        if number:
            self._database.write("UPDATE host SET queued = queued + %s WHERE id=%s", (change, host_id))
            self._counters.add({before: -number, after: number})
        return change

    def rebuild(self) -> None:
        """Fill the queue from the URLs' states, after the order changed."""
        self._database.write("TRUNCATE queue")
        self._database.write(
            f"INSERT INTO queue SELECT host_id, priority, {RANK_SQL[self.order]}, fingerprint FROM url "
            f"WHERE state={_QUEUED}"
        )

    def note_leased(self, pairs: Sequence[tuple[int, int]]) -> None:
        numbers = array("q", [number for pair in pairs for number in pair]).tobytes()
        self._database.write(
            "INSERT INTO leased VALUES(%s, %s) ON CONFLICT(worker) DO UPDATE SET pairs = excluded.pairs",
            (self._leases.owner, numbers),
        )

    def count_attempts(self, pairs: Sequence[tuple[int, int]]) -> None:
        if pairs:
            self._count_attempts("", columns("qq", pairs))

    def count_leased_attempts(self, claims: Sequence[Claim]) -> None:
        """Count one attempt more for the visits that former owners of these shards had in progress."""
        taken = [claim.shard for claim in claims if not claim.clean]
        owners = sorted({claim.previous for claim in claims if not claim.clean})
        stored = self._database.execute("SELECT pairs FROM leased WHERE worker = ANY(%s::text[])", (owners,))
        numbers = array("q", b"".join(row[0] for row in stored))
        if numbers:
            self._count_attempts(
                "JOIN host ON host.id = w.h AND host.shard = ANY(%s::smallint[])",
                (column("q", numbers[::2]), column("q", numbers[1::2]), taken),
            )

    def _count_attempts(self, narrowed: str, values: Sequence[object]) -> None:
        self._database.write(
            f"UPDATE url SET attempt = attempt + 1 FROM {PAIRS} {narrowed} WHERE host_id = w.h AND fingerprint = w.f "
            f"AND state={_QUEUED}",
            values,
        )
