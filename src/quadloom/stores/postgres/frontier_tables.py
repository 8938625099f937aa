"""The frontier's tables of hosts and URLs on PostgreSQL: the same statements as on SQLite, each for many rows at once.

Rows travel as one array per column and become a table again by `unnest`, so a batch of a hundred pages with their
links is about a dozen round trips. Searches (hosts with work, unread URLs) are confined to the shards that the worker
owns; look-ups by key are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from quadloom.model.link import Discovery
from quadloom.model.outcome import READ_OUTCOMES, Settlement
from quadloom.model.url import site_of
from quadloom.stores.frontier.host_table import HostState
from quadloom.stores.frontier.policy import UrlPast, UrlState
from quadloom.stores.frontier.tables import (
    HOST_COLUMNS,
    URL_COLUMNS,
    HostColumns,
    ScopedUrl,
    SettledRow,
    UrlRank,
    UrlRow,
    qualified,
)
from quadloom.stores.postgres.arrays import column, columns
from quadloom.stores.postgres.database import PostgresDatabase, plain
from quadloom.stores.postgres.schema import HOST_BITS
from quadloom.stores.postgres.shard_leases import ShardLeases
from quadloom.stores.protocols.frontier import HostRow, Place
from quadloom.stores.shards import shard_of

_HOSTS = -1  # in frontier_count, in addition to the states of URLs
_FEW = 2  # hosts that are read from each shard at least
_QUEUED = int(UrlState.QUEUED)
# A subquery, because it is hashed once. An array would be searched from its start for every host, as soon as the
# statement has a plan that does not depend on its values.
_NOT_LOADED = "x.id NOT IN (SELECT unnest(%s::bigint[]))"
PAIRS = "unnest(%s::bigint[], %s::bigint[]) AS w(h, f)"


def host_number(host_id: int) -> int:
    """An id without the shard with which it begins."""
    return host_id & ((1 << HOST_BITS) - 1)


class FrontierCounters:
    """Numbers of URLs by state and of hosts: sums over slots, so that workers need not wait for each other's rows."""

    def __init__(self, database: PostgresDatabase, slot: int) -> None:
        self._database = database
        self._slot = slot

    def by_state(self) -> list[int]:
        """Numbers of URLs."""
        counts = [0] * len(UrlState)
        for what, number in self._database.execute(
            "SELECT what, sum(number)::bigint FROM frontier_count WHERE what >= 0 GROUP BY what"
        ):
            counts[what] = number
        return counts

    def add(self, changes: Mapping[int, int]) -> None:
        changed = sorted((what, change) for what, change in changes.items() if change)
        if changed:
            self._database.write(
                "INSERT INTO frontier_count AS c SELECT %s, * FROM unnest(%s::smallint[], %s::bigint[]) "
                "ON CONFLICT(slot, what) DO UPDATE SET number = c.number + excluded.number",
                (self._slot, *columns("hq", changed)),
            )


class PostgresHosts:
    """See `quadloom.stores.frontier.tables.HostRecords`."""

    def __init__(self, database: PostgresDatabase, leases: ShardLeases, counters: FrontierCounters) -> None:
        self._database = database
        self._leases = leases
        self._counters = counters

    def host_ids(self, names: Sequence[str], *, create: bool) -> dict[str, int]:
        found: dict[str, int] = dict(
            self._database.execute("SELECT name, id FROM host WHERE name = ANY(%s::text[])", (list(names),))
        )
        missing = [(name, site_of(name), shard_of(name)) for name in names if name not in found] if create else []
        if missing:
            made = self._database.execute(
                f"INSERT INTO host(id, name, site, shard) SELECT (w.shard::bigint << {HOST_BITS}) + "
                "nextval('host_number'), * FROM unnest(%s::text[], %s::text[], %s::smallint[]) AS w(name, site, shard) "
                "RETURNING name, id",
                columns("ssh", missing),
            )
            found.update(made)
            self._counters.add({_HOSTS: len(made)})
        return found

    def host_states(self, ids: Sequence[int]) -> list[HostState]:
        rows = self._database.execute(f"SELECT {HOST_COLUMNS} FROM host WHERE id = ANY(%s::bigint[])", (list(ids),))
        return [HostColumns(*row).state() for row in rows]

    def hosts_with_work(self, now: float, loaded: Collection[int], limit: int) -> list[HostState]:
        """Shard by shard: each is one short look into the index, whatever the number of hosts. From many shards a few
        hosts each are enough; only if that is too little, and a shard had more, is everything read."""
        shards = self._leases.leasable
        few = max(_FEW, 4 * limit // max(1, len(shards)))
        rows = self._ready(now, loaded, shards, min(few, limit), limit)
        if len(rows) < limit and few < limit:
            found = Counter(row[-1] for row in rows)
            if max(found.values(), default=0) >= few:
                rows = self._ready(now, loaded, shards, limit, limit)
        return [HostColumns(*row[:-1]).state() for row in rows]

    def _ready(
        self, now: float, loaded: Collection[int], shards: Sequence[int], of_each: int, limit: int
    ) -> list[tuple[Any, ...]]:
        """Rows of hosts whose turn has come, with their shard in the last column."""
        return self._database.execute(
            f"SELECT {qualified('h', HOST_COLUMNS)}, h.shard FROM unnest(%s::smallint[]) AS s(shard) "
            "CROSS JOIN LATERAL (SELECT * FROM host x WHERE x.is_queued AND x.shard = s.shard AND x.ready_at <= %s "
            f"AND {_NOT_LOADED} ORDER BY x.ready_at LIMIT %s) h ORDER BY h.ready_at LIMIT %s",
            (shards, now, column("q", loaded), of_each, limit),
        )

    def hosts_with_refreshes(self) -> list[int]:
        rows = self._database.execute(
            "SELECT id FROM host WHERE queued > 0 AND shard = ANY(%s::smallint[]) "
            "AND EXISTS (SELECT 1 FROM queue q WHERE q.host_id = host.id AND q.priority <= 1)",
            (self._leases.leasable,),
        )
        return [id for (id,) in rows]

    def next_wake(self, now: float, loaded: Collection[int]) -> float:
        rows = self._database.execute(
            "SELECT min(h.ready_at) FROM unnest(%s::smallint[]) AS s(shard) CROSS JOIN LATERAL (SELECT ready_at "
            f"FROM host x WHERE x.is_queued AND x.shard = s.shard AND x.ready_at > %s AND {_NOT_LOADED} "
            "ORDER BY x.ready_at LIMIT 1) h",
            (self._leases.leasable, now, column("q", loaded)),
        )
        return float(rows[0][0]) if rows[0][0] is not None else float("inf")

    def write_hosts(self, hosts: Iterable[HostState]) -> None:
        rows = [_host_values(host) for host in hosts]
        if rows:
            self._database.write(
                "UPDATE host SET address=w.address, delay=w.delay, next_at=w.next_at, blocked_until=w.blocked_until, "
                "block_reason=w.reason, ready_at=w.ready_at, failures=w.failures, pages=w.pages, spent=w.spent, "
                "budget=w.budget, crawl_delay=w.crawl_delay FROM unnest(%s::bigint[], %s::text[], %s::float8[], "
                "%s::float8[], %s::float8[], %s::text[], %s::float8[], %s::int[], %s::bigint[], %s::float8[], "
                "%s::float8[], %s::float8[]) AS w(id, address, delay, next_at, blocked_until, reason, ready_at, "
                "failures, pages, spent, budget, crawl_delay) WHERE host.id = w.id",
                columns("qsdddsdiqddd", rows),
            )

    def clamp_clocks(self, next_at: float, blocked_until: float) -> int:
        """Of all shards: another worker has the clocks of its own hosts in memory, and writes them again."""
        found = self._database.execute(
            "WITH late AS (UPDATE host SET next_at=least(next_at, %s), blocked_until=least(blocked_until, %s), "
            "ready_at=greatest(least(next_at, %s), least(blocked_until, %s)) WHERE next_at > %s OR blocked_until > %s "
            "RETURNING 1) SELECT count(*) FROM late",
            (next_at, blocked_until) * 3,
        )
        return int(found[0][0])

    def host_row(self, name: str) -> HostRow | None:
        rows = self._host_rows("WHERE h.name=%s", (name,))
        return rows[0] if rows else None

    def host_rows(self, limit: int, offset: int, shards: Sequence[int] | None = None) -> list[HostRow]:
        order = 'ORDER BY h.name COLLATE "C" LIMIT %s OFFSET %s'
        if shards is None:
            return self._host_rows(order, (limit, offset))
        return self._host_rows(f"WHERE h.shard = ANY(%s::smallint[]) {order}", (list(shards), limit, offset))

    def _host_rows(self, where: str, values: Sequence[str | int | list[int]]) -> list[HostRow]:
        names = qualified("h", HOST_COLUMNS)
        rows = self._database.execute(
            f"SELECT {names}, r.data, r.expires FROM host h LEFT JOIN robots r ON r.host_id = h.id {where}", values
        )
        return [HostColumns(*columns).row(robots, expires) for *columns, robots, expires in rows]

    def host_counts(self, now: float) -> tuple[int, int]:
        row = self._database.execute(
            "SELECT (SELECT coalesce(sum(number), 0)::bigint FROM frontier_count WHERE what=%s), "
            "(SELECT count(*) FROM host WHERE blocked_until > greatest(%s, 0))",
            (_HOSTS, now),
        )[0]
        return row[0], row[1]

    def last_host_number(self) -> int:
        """Hosts are numbered in the order in which they are met, see `host_number`."""
        return int(self._database.execute("SELECT last_value - (NOT is_called)::int FROM host_number")[0][0])

    def write_robots(self, host_id: int, data: bytes, expires: float) -> None:
        self._database.write(
            "INSERT INTO robots VALUES(%s,%s,%s) ON CONFLICT(host_id) DO UPDATE SET data=excluded.data, "
            "expires=excluded.expires",
            (host_id, data, expires),
        )


class PostgresUrls:
    """See `quadloom.stores.frontier.tables.UrlRecords`."""

    def __init__(self, database: PostgresDatabase, leases: ShardLeases) -> None:
        self._database = database
        self._leases = leases

    def urls(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRow]:
        if not pairs:
            return {}
        rows = self._database.execute(
            f"SELECT {URL_COLUMNS} FROM {PAIRS} JOIN url ON host_id = w.h AND fingerprint = w.f", columns("qq", pairs)
        )
        return {row[1]: UrlRow(*row) for row in rows}

    def ranks(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRank]:
        """Read from the index alone, which has these two columns besides its key: the rows of a page's links are in as
        many blocks of the table, and those of a large one are not in memory."""
        rows = self._database.execute(
            f"SELECT fingerprint, priority, depth FROM {PAIRS} JOIN url ON host_id = w.h AND fingerprint = w.f",
            columns("qq", pairs),
        )
        return {row[0]: UrlRank(*row[1:]) for row in rows}

    def insert(self, found: Sequence[tuple[UrlRow, Discovery]]) -> None:
        if found:
            self._database.write(
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
            self._database.write(
                "UPDATE url SET state=w.state, priority=w.priority, depth=w.depth, due=w.due FROM unnest("
                "%s::bigint[], %s::bigint[], %s::smallint[], %s::smallint[], %s::int[], %s::float8[]) "
                "AS w(h, f, state, priority, depth, due) WHERE host_id = w.h AND fingerprint = w.f",
                columns("qqhhid", changed),
            )

    def update_scores(self, rows: Sequence[UrlRow]) -> None:
        self._database.write(
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
            self._database.write(
                "UPDATE url SET state=w.state, priority=w.priority, due=w.due, attempt=w.attempt, visits=w.visits, "
                "outcome=w.outcome, token=w.token, etag=coalesce(w.etag, url.etag), "
                "last_modified=coalesce(w.modified, url.last_modified) FROM unnest(%s::bigint[], %s::bigint[], "
                "%s::smallint[], %s::smallint[], %s::float8[], %s::int[], %s::int[], %s::text[], %s::float8[], "
                "%s::text[], %s::text[]) AS w(h, f, state, priority, due, attempt, visits, outcome, token, etag, "
                "modified) WHERE host_id = w.h AND fingerprint = w.f",
                columns("qqhhdiisdss", changed),
            )

    def unread(self, after: Place, limit: int) -> list[UrlRow]:
        names = qualified("u", URL_COLUMNS)
        rows = self._database.execute(
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
            rows = self._database.execute(
                f"SELECT {names}, u.href, h.name FROM url u JOIN host h ON h.id = u.host_id "
                f"WHERE (u.host_id, u.fingerprint) > (%s, %s) AND u.state IN ({states}) "
                "AND h.shard = ANY(%s::smallint[]) ORDER BY u.host_id, u.fingerprint LIMIT 5000",
                (*place, self._leases.owned),
            )
            if not rows:
                return
            yield [ScopedUrl(UrlRow(*columns), href, host) for *columns, href, host in rows]
            place = (rows[-1][0], rows[-1][1])

    def past(self, row: UrlRow) -> UrlPast:
        statement = "SELECT outcome, kind, via FROM url WHERE host_id=%s AND fingerprint=%s"
        return UrlPast(*self._database.execute(statement, (row.host_id, row.fingerprint))[0])


class PostgresFrontierValues:
    """Named values of the frontier as a whole."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def get(self, name: str) -> bytes | None:
        rows = self._database.execute("SELECT value FROM frontier_value WHERE name=%s", (name,))
        return rows[0][0] if rows else None

    def put(self, name: str, value: bytes) -> None:
        self._database.write(
            "INSERT INTO frontier_value VALUES(%s, %s) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
            (name, value),
        )


def _host_values(host: HostState) -> tuple[object, ...]:
    clocks = (host.delay, host.next_at, host.blocked_until, plain(host.block_reason), host.free_at)
    return (host.id, host.address, *clocks, host.failures, host.pages, host.spent, host.budget, host.crawl_delay)


def _validators(settlement: Settlement) -> tuple[str | None, str | None]:
    """ETag and Last-Modified of a page that was read; None = as before."""
    page = settlement.page
    if page is None or settlement.outcome not in READ_OUTCOMES:
        return None, None
    return plain(page.etag), plain(page.last_modified)
