"""The frontier's tables on PostgreSQL: the same statements as on SQLite, each for many rows at once.

Rows travel as one array per column and become a table again by `unnest`, so a batch of a hundred pages with their
links is about a dozen round trips. Searches (hosts with work, what is due) are confined to the shards that the worker
owns; look-ups by key are not.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from quadloom.model.link import Discovery
from quadloom.model.outcome import READ_OUTCOMES, Settlement
from quadloom.model.url import site_of
from quadloom.stores.frontier.host_table import HostState, QueuedUrl
from quadloom.stores.frontier.policy import RANK_SQL, Order, UrlPast, UrlState, rank
from quadloom.stores.frontier.tables import (
    HOST_COLUMNS,
    URL_COLUMNS,
    HostColumns,
    ScopedUrl,
    SettledRow,
    UrlBatch,
    UrlRow,
    qualified,
)
from quadloom.stores.postgres.arrays import column, columns
from quadloom.stores.postgres.database import PostgresDatabase, plain
from quadloom.stores.postgres.shards import Claim, ShardLeases
from quadloom.stores.protocols.frontier import HostRow, Place, ScheduledPage
from quadloom.stores.shards import shard_of

_HOSTS = -1  # in frontier_count, in addition to the states of URLs
_QUEUED, _SPENT = int(UrlState.QUEUED), int(UrlState.OVER_BUDGET)
_QUEUED_URL = (
    "q.priority, q.first, q.second, q.fingerprint, u.href, coalesce(u.key, u.href), u.depth, u.score, u.kind, "
    "u.attempt, u.etag, u.last_modified, u.visits > 0, u.via, u.anchor"
)
_IN_ORDER = "q.priority, q.first, q.second, q.fingerprint"
_ITS_URL = "JOIN url u ON u.host_id = q.host_id AND u.fingerprint = q.fingerprint"
_PAIRS = "unnest(%s::bigint[], %s::bigint[]) AS w(h, f)"
_QUEUE_ROWS = "unnest(%s::bigint[], %s::smallint[], %s::float8[], %s::float8[], %s::bigint[]) AS w(h, p, a, b, f)"


class PostgresFrontierTables:
    """See `quadloom.stores.frontier.tables.FrontierTables`."""

    prefetch = 16

    def __init__(self, database: PostgresDatabase, order: Order, leases: ShardLeases, slot: int) -> None:
        self.database = database
        self.order: Order = order
        self.first_due = float("inf")
        self._leases = leases
        self._slot = slot  # counters are sums over slots, so that workers need not wait for each other's rows
        self.reload()

    def reload(self) -> None:
        self.read_first_due()

    def read_first_due(self) -> None:
        first = self.database.execute(
            "SELECT min(l.due) FROM unnest(%s::smallint[]) AS s(shard) CROSS JOIN LATERAL "
            "(SELECT due FROM later WHERE later.shard = s.shard ORDER BY due LIMIT 1) l",
            (self._leases.leasable,),
        )[0][0]
        self.first_due = float("inf") if first is None else first

    def counts(self) -> Sequence[int]:
        counts = [0] * len(UrlState)
        for what, number in self.database.execute(
            "SELECT what, sum(number)::bigint FROM frontier_count WHERE what >= 0 GROUP BY what"
        ):
            counts[what] = number
        return counts

    def host_counts(self, now: float) -> tuple[int, int]:
        row = self.database.execute(
            "SELECT (SELECT coalesce(sum(number), 0)::bigint FROM frontier_count WHERE what=%s), "
            "(SELECT count(*) FROM host WHERE blocked_until > greatest(%s, 0))",
            (_HOSTS, now),
        )[0]
        return row[0], row[1]

    def _count(self, changes: Mapping[int, int]) -> None:
        changed = sorted((what, change) for what, change in changes.items() if change)
        if changed:
            self.database.write(
                "INSERT INTO frontier_count AS c SELECT %s, * FROM unnest(%s::smallint[], %s::bigint[]) "
                "ON CONFLICT(slot, what) DO UPDATE SET number = c.number + excluded.number",
                (self._slot, *columns("hq", changed)),
            )

    def host_ids(self, names: Sequence[str], *, create: bool) -> dict[str, int]:
        found: dict[str, int] = dict(
            self.database.execute("SELECT name, id FROM host WHERE name = ANY(%s::text[])", (list(names),))
        )
        missing = [(name, site_of(name), shard_of(name)) for name in names if name not in found] if create else []
        if missing:
            made = self.database.execute(
                "INSERT INTO host(name, site, shard) SELECT * FROM unnest(%s::text[], %s::text[], %s::smallint[]) "
                "RETURNING name, id",
                columns("ssh", missing),
            )
            found.update(made)
            self._count({_HOSTS: len(made)})
        return found

    def host_states(self, ids: Sequence[int]) -> list[HostState]:
        rows = self.database.execute(f"SELECT {HOST_COLUMNS} FROM host WHERE id = ANY(%s::bigint[])", (list(ids),))
        return [HostColumns(*row).state() for row in rows]

    def hosts_with_work(self, now: float, loaded: Collection[int], limit: int) -> list[HostState]:
        rows = self.database.execute(
            f"SELECT {HOST_COLUMNS} FROM host WHERE queued > 0 AND ready_at <= %s AND shard = ANY(%s::smallint[]) "
            "AND id <> ALL(%s::bigint[]) ORDER BY ready_at LIMIT %s",
            (now, self._leases.leasable, column("q", loaded), limit),
        )
        return [HostColumns(*row).state() for row in rows]

    def next_wake(self, now: float, loaded: Collection[int]) -> float:
        rows = self.database.execute(
            "SELECT ready_at FROM host WHERE queued > 0 AND ready_at > %s AND shard = ANY(%s::smallint[]) "
            "AND id <> ALL(%s::bigint[]) ORDER BY ready_at LIMIT 1",
            (now, self._leases.leasable, column("q", loaded)),
        )
        return float(rows[0][0]) if rows else float("inf")

    def next_elsewhere(self, now: float) -> float | None:
        """Earliest time at which another worker has work; `now` if links wait for their owner; None = never."""
        row = self.database.execute(
            "SELECT (SELECT min(ready_at) FROM host WHERE queued > 0 AND shard <> ALL(%s::smallint[])), "
            "(SELECT min(due) FROM later WHERE shard <> ALL(%s::smallint[])), EXISTS (SELECT FROM link_outbox)",
            (self._leases.owned, self._leases.owned),
        )[0]
        times = [time for time in (row[0], row[1], now if row[2] else None) if time is not None]
        return max(now, min(times)) if times else None

    def write_hosts(self, hosts: Iterable[HostState]) -> None:
        rows = [_host_values(host) for host in hosts]
        if rows:
            self.database.write(
                "UPDATE host SET address=w.address, delay=w.delay, next_at=w.next_at, blocked_until=w.blocked_until, "
                "block_reason=w.reason, ready_at=w.ready_at, failures=w.failures, pages=w.pages, spent=w.spent, "
                "budget=w.budget, crawl_delay=w.crawl_delay FROM unnest(%s::bigint[], %s::text[], %s::float8[], "
                "%s::float8[], %s::float8[], %s::text[], %s::float8[], %s::int[], %s::bigint[], %s::float8[], "
                "%s::float8[], %s::float8[]) AS w(id, address, delay, next_at, blocked_until, reason, ready_at, "
                "failures, pages, spent, budget, crawl_delay) WHERE host.id = w.id",
                columns("qsdddsdiqddd", rows),
            )

    def host_row(self, name: str) -> HostRow | None:
        rows = self._host_rows("WHERE h.name=%s", (name,))
        return rows[0] if rows else None

    def host_rows(self, limit: int, offset: int) -> list[HostRow]:
        return self._host_rows('ORDER BY h.name COLLATE "C" LIMIT %s OFFSET %s', (limit, offset))

    def _host_rows(self, where: str, values: Sequence[str | int]) -> list[HostRow]:
        names = qualified("h", HOST_COLUMNS)
        rows = self.database.execute(
            f"SELECT {names}, r.data, r.expires FROM host h LEFT JOIN robots r ON r.host_id = h.id {where}", values
        )
        return [HostColumns(*columns).row(robots, expires) for *columns, robots, expires in rows]

    def write_robots(self, host_id: int, data: bytes, expires: float) -> None:
        self.database.write(
            "INSERT INTO robots VALUES(%s,%s,%s) ON CONFLICT(host_id) DO UPDATE SET data=excluded.data, "
            "expires=excluded.expires",
            (host_id, data, expires),
        )

    def urls(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRow]:
        if not pairs:
            return {}
        rows = self.database.execute(
            f"SELECT {URL_COLUMNS} FROM {_PAIRS} JOIN url ON host_id = w.h AND fingerprint = w.f", columns("qq", pairs)
        )
        return {row[1]: UrlRow(*row) for row in rows}

    def insert(self, found: Sequence[tuple[UrlRow, Discovery]]) -> None:
        if found:
            self.database.write(
                "INSERT INTO url(host_id, fingerprint, href, key, state, priority, depth, score, kind, via, anchor) "
                "SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::text[], %s::smallint[], "
                "%s::smallint[], %s::int[], %s::float8[], %s::text[], %s::bigint[], %s::text[])",
                columns(
                    "qqsshhidsqs",
                    [
                        (
                            row[0],
                            row[1],
                            d.href,
                            None if d.key == d.href else d.key,
                            row[2],
                            row[3],
                            row[4],
                            row[5],
                            d.kind,
                            d.via,
                            plain(d.anchor),
                        )
                        for row, d in found
                    ],
                ),
            )

    def update(self, rows: Iterable[UrlRow]) -> None:
        changed = [(r.host_id, r.fingerprint, r.state, r.priority, r.depth, r.due) for r in rows]
        if changed:
            self.database.write(
                "UPDATE url SET state=w.state, priority=w.priority, depth=w.depth, due=w.due FROM unnest("
                "%s::bigint[], %s::bigint[], %s::smallint[], %s::smallint[], %s::int[], %s::float8[]) "
                "AS w(h, f, state, priority, depth, due) WHERE host_id = w.h AND fingerprint = w.f",
                columns("qqhhid", changed),
            )

    def update_scores(self, rows: Sequence[UrlRow]) -> None:
        self.database.write(
            "UPDATE url SET score=w.score FROM unnest(%s::bigint[], %s::bigint[], %s::float8[]) AS w(h, f, score) "
            "WHERE host_id = w.h AND fingerprint = w.f",
            columns("qqd", [(row.host_id, row.fingerprint, row.score) for row in rows]),
        )

    def update_settled(self, rows: Iterable[SettledRow]) -> None:
        changed = [
            (
                r.host_id,
                r.fingerprint,
                r.state,
                r.priority,
                r.due,
                r.attempt,
                r.visits,
                str(s.outcome),
                r.token,
                *_validators(s),
            )
            for r, s in rows
        ]
        if changed:
            self.database.write(
                "UPDATE url SET state=w.state, priority=w.priority, due=w.due, attempt=w.attempt, visits=w.visits, "
                "outcome=w.outcome, token=w.token, etag=coalesce(w.etag, url.etag), "
                "last_modified=coalesce(w.modified, url.last_modified) FROM unnest(%s::bigint[], %s::bigint[], "
                "%s::smallint[], %s::smallint[], %s::float8[], %s::int[], %s::int[], %s::text[], %s::float8[], "
                "%s::text[], %s::text[]) AS w(h, f, state, priority, due, attempt, visits, outcome, token, etag, "
                "modified) WHERE host_id = w.h AND fingerprint = w.f",
                columns("qqhhdiisdss", changed),
            )

    def write_moves(self, batch: UrlBatch) -> None:
        execute = self.database.write
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
        self._count(dict(enumerate(batch.counts)))

    def note_leased(self, pairs: Sequence[tuple[int, int]]) -> None:
        numbers = array("q", [number for pair in pairs for number in pair]).tobytes()
        self.database.write(
            "INSERT INTO leased VALUES(%s, %s) ON CONFLICT(worker) DO UPDATE SET pairs = excluded.pairs",
            (self._leases.owner, numbers),
        )

    def count_leased_attempts(self, claims: Sequence[Claim]) -> None:
        """Count one attempt more for the visits that former owners of these shards had in progress."""
        taken = [claim.shard for claim in claims if not claim.clean]
        owners = sorted({claim.previous for claim in claims if not claim.clean})
        stored = self.database.execute("SELECT pairs FROM leased WHERE worker = ANY(%s::text[])", (owners,))
        numbers = array("q", b"".join(row[0] for row in stored))
        if numbers:
            self._count_attempts(
                "JOIN host ON host.id = w.h AND host.shard = ANY(%s::smallint[])",
                (column("q", numbers[::2]), column("q", numbers[1::2]), taken),
            )

    def count_attempts(self, pairs: Sequence[tuple[int, int]]) -> None:
        if pairs:
            self._count_attempts("", columns("qq", pairs))

    def _count_attempts(self, narrowed: str, values: Sequence[object]) -> None:
        self.database.write(
            f"UPDATE url SET attempt = attempt + 1 FROM {_PAIRS} {narrowed} WHERE host_id = w.h AND fingerprint = w.f "
            f"AND state={_QUEUED}",
            values,
        )

    def due(self, now: float, limit: int) -> list[UrlRow]:
        names = qualified("u", URL_COLUMNS)
        rows = self.database.execute(
            f"SELECT {names} FROM unnest(%s::smallint[]) AS s(shard) CROSS JOIN LATERAL (SELECT * FROM later "
            "WHERE later.shard = s.shard AND due <= %s ORDER BY due LIMIT %s) l "
            "JOIN url u ON u.host_id = l.host_id AND u.fingerprint = l.fingerprint ORDER BY l.due LIMIT %s",
            (self._leases.leasable, now, limit, limit),
        )
        return [UrlRow(*row) for row in rows]

    def soonest(self, limit: int) -> list[ScheduledPage]:
        rows = self.database.execute(
            "SELECT l.fingerprint, h.name, l.due FROM unnest(%s::smallint[]) AS s(shard) CROSS JOIN LATERAL "
            "(SELECT later.* FROM later JOIN url u USING (host_id, fingerprint) WHERE later.shard = s.shard "
            "AND u.visits > 0 AND u.attempt = 1 ORDER BY later.due LIMIT %s) l "
            "JOIN host h ON h.id = l.host_id ORDER BY l.due LIMIT %s",
            (self._leases.leasable, limit, limit),
        )
        return [ScheduledPage(*row) for row in rows]

    def unread(self, after: Place, limit: int) -> list[UrlRow]:
        names = qualified("u", URL_COLUMNS)
        rows = self.database.execute(
            f"SELECT {names} FROM url u JOIN host h ON h.id = u.host_id WHERE (u.host_id, u.fingerprint) > (%s, %s) "
            f"AND u.visits = 0 AND u.state = {_QUEUED} AND h.shard = ANY(%s::smallint[]) "
            "ORDER BY u.host_id, u.fingerprint LIMIT %s",
            (*after, self._leases.owned, limit),
        )
        return [UrlRow(*row) for row in rows]

    def scan_scoped(self) -> Iterator[list[ScopedUrl]]:
        names = qualified("u", URL_COLUMNS)
        states = ", ".join(str(int(s)) for s in (UrlState.QUEUED, UrlState.WAITING, UrlState.OUT_OF_SCOPE))
        place = (-1, 0)
        while True:
            rows = self.database.execute(
                f"SELECT {names}, u.href, h.name FROM url u JOIN host h ON h.id = u.host_id "
                f"WHERE (u.host_id, u.fingerprint) > (%s, %s) AND u.state IN ({states}) "
                "AND h.shard = ANY(%s::smallint[]) ORDER BY u.host_id, u.fingerprint LIMIT 5000",
                (*place, self._leases.owned),
            )
            if not rows:
                return
            yield [ScopedUrl(UrlRow(*columns), href, host) for *columns, href, host in rows]
            place = (rows[-1][0], rows[-1][1])

    def parked_hosts(self) -> list[int]:
        rows = self.database.execute(
            f"SELECT DISTINCT u.host_id FROM url u JOIN host h ON h.id = u.host_id "
            f"WHERE u.state={_SPENT} AND h.shard = ANY(%s::smallint[])",
            (self._leases.owned,),
        )
        return [row[0] for row in rows]

    def front(self, host_id: int, limit: int, priorities: Sequence[int] = ()) -> list[QueuedUrl]:
        chosen = " AND q.priority = ANY(%s::smallint[])" if priorities else ""
        return self.database.execute(
            f"SELECT {_QUEUED_URL} FROM queue q {_ITS_URL} WHERE q.host_id=%s{chosen} ORDER BY {_IN_ORDER} LIMIT %s",
            (host_id, list(priorities), limit) if priorities else (host_id, limit),
        )

    def fronts(self, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]:
        rows = self.database.execute(
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
            self._count({before: -number, after: number})
        return change

    def rebuild(self) -> None:
        """Fill the queue from the URLs' states, after the order changed."""
        self.database.write("TRUNCATE queue")
        self.database.write(
            f"INSERT INTO queue SELECT host_id, priority, {RANK_SQL[self.order]}, fingerprint FROM url "
            f"WHERE state={_QUEUED}"
        )

    def value(self, name: str) -> bytes | None:
        rows = self.database.execute("SELECT value FROM frontier_value WHERE name=%s", (name,))
        return rows[0][0] if rows else None

    def set_value(self, name: str, value: bytes) -> None:
        self.database.write(
            "INSERT INTO frontier_value VALUES(%s, %s) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
            (name, value),
        )

    def last_host_id(self) -> int:
        return int(self.database.execute("SELECT coalesce(max(id), 0) FROM host")[0][0])


def _host_values(host: HostState) -> tuple[object, ...]:
    clocks = (host.delay, host.next_at, host.blocked_until, plain(host.block_reason), host.free_at)
    return (host.id, host.address, *clocks, host.failures, host.pages, host.spent, host.budget, host.crawl_delay)


def _validators(settlement: Settlement) -> tuple[str | None, str | None]:
    """ETag and Last-Modified of a page that was read; None = as before."""
    page = settlement.page
    if page is None or settlement.outcome not in READ_OUTCOMES:
        return None, None
    return plain(page.etag), plain(page.last_modified)
