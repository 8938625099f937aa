"""The queues of hosts on PostgreSQL: reading their fronts, and taking a spent host's URLs off and back on.

A part of `postgres_frontier_tables`; `url` says which state a URL is in, `queue` holds what may be leased, in order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from quadloom.stores.frontier.host_table import QueuedUrl
from quadloom.stores.frontier.policy import RANK_SQL, Order, UrlPast, UrlState, rank
from quadloom.stores.frontier.tables import UrlRow
from quadloom.stores.postgres.database import PostgresDatabase

_ENTRY = (
    "q.priority, q.first, q.second, q.fingerprint, u.href, coalesce(u.key, u.href), u.depth, u.score, u.kind, "
    "u.attempt, u.etag, u.last_modified, u.visits > 0, u.via, u.anchor"
)
_IN_ORDER = "q.priority, q.first, q.second, q.fingerprint"
_ITS_URL = "JOIN url u ON u.host_id = q.host_id AND u.fingerprint = q.fingerprint"
_QUEUED, _SPENT = int(UrlState.QUEUED), int(UrlState.OVER_BUDGET)


class QueueTable(ABC):
    def __init__(self, database: PostgresDatabase, order: Order) -> None:
        self.database = database
        self.order: Order = order

    def front(self, host_id: int, limit: int, priorities: Sequence[int] = ()) -> list[QueuedUrl]:
        chosen = " AND q.priority = ANY(%s::smallint[])" if priorities else ""
        rows = self.database.execute(
            f"SELECT {_ENTRY} FROM queue q {_ITS_URL} WHERE q.host_id=%s{chosen} ORDER BY {_IN_ORDER} LIMIT %s",
            (host_id, list(priorities), limit) if priorities else (host_id, limit),
        )
        return [_entry(row) for row in rows]

    def fronts(self, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]:
        rows = self.database.execute(
            f"SELECT q.host_id, {_ENTRY} FROM unnest(%s::bigint[]) AS w(h) CROSS JOIN LATERAL (SELECT * FROM queue "
            f"q WHERE q.host_id = w.h ORDER BY {_IN_ORDER} LIMIT %s) q {_ITS_URL} ORDER BY q.host_id, {_IN_ORDER}",
            (list(host_ids), limit),
        )
        found: dict[int, list[QueuedUrl]] = {}
        for id, *entry in rows:
            found.setdefault(id, []).append(_entry(entry))
        return found

    def ahead(self, row: UrlRow) -> int:
        place = (*rank(self.order, row.priority, row.depth, row.score, row.due), row.fingerprint)
        statement = (
            "SELECT count(*) FROM queue WHERE host_id=%s AND (priority, first, second, fingerprint) < (%s,%s,%s,%s)"
        )
        return int(self.database.execute(statement, (row.host_id, *place))[0][0])

    def past(self, row: UrlRow) -> UrlPast:
        statement = "SELECT outcome, kind, via FROM url WHERE host_id=%s AND fingerprint=%s"
        return UrlPast(*self.database.execute(statement, (row.host_id, row.fingerprint))[0])

    def park(self, host_id: int, held: Sequence[int]) -> int:
        parked = self.database.execute(
            f"WITH spent AS (UPDATE url u SET state={_SPENT} FROM queue q WHERE u.host_id=%s AND u.visits=0 "
            "AND q.host_id = u.host_id AND q.fingerprint = u.fingerprint AND q.priority > 0 "
            "AND q.fingerprint <> ALL(%s::bigint[]) RETURNING q.host_id, q.fingerprint), "
            "gone AS (DELETE FROM queue q USING spent s WHERE q.host_id = s.host_id AND q.fingerprint = s.fingerprint) "
            "SELECT count(*) FROM spent",
            (host_id, list(held)),
        )[0][0]
        return self._shift(host_id, UrlState.QUEUED, UrlState.OVER_BUDGET, parked)

    def unpark(self, host_id: int) -> int:
        back = self.database.execute(
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
            self.database.write("UPDATE host SET queued = queued + %s WHERE id=%s", (change, host_id))
            self.count({before: -number, after: number})
        return change

    @abstractmethod
    def count(self, changes: Mapping[int, int]) -> None:
        """Change the counters of URLs by state."""

    def rebuild(self) -> None:
        """Fill the queue from the URLs' states, after the order changed."""
        self.database.write("TRUNCATE queue")
        self.database.write(
            f"INSERT INTO queue SELECT host_id, priority, {RANK_SQL[self.order]}, fingerprint FROM url "
            f"WHERE state={_QUEUED}"
        )


def _entry(row: Sequence[object]) -> QueuedUrl:
    return tuple(row)  # type: ignore[return-value]  # the columns of _ENTRY are the fields of QueuedUrl
