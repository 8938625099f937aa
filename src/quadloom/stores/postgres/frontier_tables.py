"""The frontier's tables of hosts and URLs on PostgreSQL. Searches are confined to the shards that the worker owns,
look-ups by key are not.

Rows travel as one array per column and become a table again by `unnest`, so a batch of a hundred pages with their
links is about a dozen round trips.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from quadloom.model.url import site_of
from quadloom.stores.frontier.host_table import HostState
from quadloom.stores.frontier.policy import UrlState
from quadloom.stores.frontier.rows import HOST_COLUMNS, HostColumns, qualified
from quadloom.stores.postgres.arrays import column, columns
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.schema import HOST_BITS
from quadloom.stores.postgres.shard_leases import Claim, ShardLeases
from quadloom.stores.shards import shard_of
from quadloom.stores.sql.hosts import SqlHosts
from quadloom.stores.sql.statements import Row, SqlCondition, upsert
from quadloom.stores.sql.urls import SqlUrls

_HOSTS = -1  # in frontier_count, in addition to the states of URLs
_FEW = 2  # hosts that are read from each shard at least
# A subquery, because it is hashed once. An array would be searched from its start for every host, as soon as the
# statement has a plan that does not depend on its values.
_NOT_LOADED = "x.id NOT IN (SELECT unnest(?::bigint[]))"
_PAIRS = "unnest(?::bigint[], ?::bigint[]) AS w(h, f)"
_COUNT = upsert(
    "frontier_count", "slot what number", "slot what", {"number": "frontier_count.number + excluded.number"}
)


def host_number(host_id: int) -> int:
    """An id without the shard with which it begins."""
    return host_id & ((1 << HOST_BITS) - 1)


def urls_of(shards: Sequence[int]) -> SqlCondition:
    """Narrows a query over `url u` to hosts of these shards."""
    return SqlCondition(f" AND (u.host_id >> {HOST_BITS}) = ANY(?::bigint[])", (list(shards),))


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
        rows = [(self._slot, what, change) for what, change in sorted(changes.items()) if change]
        self._database.write_many(_COUNT, rows)


class PostgresHosts(SqlHosts):
    """See `quadloom.stores.sql.hosts.SqlHosts`."""

    _database: PostgresDatabase

    def __init__(self, database: PostgresDatabase, leases: ShardLeases, counters: FrontierCounters) -> None:
        super().__init__(database)
        self._leases = leases
        self._counters = counters

    def _create(self, names: Sequence[str]) -> dict[str, int]:
        made = self._database.execute(
            f"INSERT INTO host(id, name, site, shard) SELECT (w.shard::bigint << {HOST_BITS}) + "
            "nextval('host_number'), * FROM unnest(?::text[], ?::text[], ?::smallint[]) AS w(name, site, shard) "
            "RETURNING name, id",
            columns("ssh", [(name, site_of(name), shard_of(name)) for name in names]),
        )
        self._counters.add({_HOSTS: len(made)})
        return dict(made)

    def remove(self, ids: Sequence[int]) -> None:
        super().remove(ids)
        self._counters.add({_HOSTS: -len(ids)})

    def _own(self, table: str = "host") -> SqlCondition:
        return SqlCondition(f" AND {table}.shard = ANY(?::smallint[])", (self._leases.leasable,))

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

    def _ready(self, now: float, loaded: Collection[int], shards: Sequence[int], of_each: int, limit: int) -> list[Row]:
        """Rows of hosts whose turn has come, with their shard in the last column."""
        return self._database.execute(
            f"SELECT {qualified('h', HOST_COLUMNS)}, h.shard FROM unnest(?::smallint[]) AS s(shard) "
            "CROSS JOIN LATERAL (SELECT * FROM host x WHERE x.is_queued AND x.shard = s.shard AND x.ready_at <= ? "
            f"AND {_NOT_LOADED} ORDER BY x.ready_at LIMIT ?) h ORDER BY h.ready_at LIMIT ?",
            (shards, now, column("q", loaded), of_each, limit),
        )

    def next_wake(self, now: float, loaded: Collection[int]) -> float:
        rows = self._database.execute(
            "SELECT min(h.ready_at) FROM unnest(?::smallint[]) AS s(shard) CROSS JOIN LATERAL (SELECT ready_at "
            f"FROM host x WHERE x.is_queued AND x.shard = s.shard AND x.ready_at > ? AND {_NOT_LOADED} "
            "ORDER BY x.ready_at LIMIT 1) h",
            (self._leases.leasable, now, column("q", loaded)),
        )
        return float(rows[0][0]) if rows[0][0] is not None else float("inf")

    def _number(self) -> int:
        total = "SELECT coalesce(sum(number), 0)::bigint FROM frontier_count WHERE what = ?"
        return int(self._database.execute(total, (_HOSTS,))[0][0])

    def last_host_number(self) -> int:
        """Hosts are numbered in the order in which they are met, see `host_number`."""
        return int(self._database.execute("SELECT last_value - (NOT is_called)::int FROM host_number")[0][0])


class PostgresUrls(SqlUrls):
    """See `quadloom.stores.sql.urls.SqlUrls`. `ranks` reads from the index alone, which has its columns
    besides the key: the rows of a page's links are in as many blocks of the table, and those of a large one are not in
    memory."""

    def __init__(self, database: PostgresDatabase, leases: ShardLeases) -> None:
        super().__init__(database)
        self._leases = leases

    def _look_up(self, pairs: Sequence[tuple[int, int]], columns_: str) -> Sequence[Row]:
        if not pairs:
            return []
        statement = f"SELECT {columns_} FROM {_PAIRS} JOIN url ON host_id = w.h AND fingerprint = w.f"
        return list(self._database.execute(statement, columns("qq", pairs)))

    def _own(self) -> SqlCondition:
        return urls_of(self._leases.owned)

    def note_leased(self, pairs: Sequence[tuple[int, int]]) -> None:
        numbers = array("q", [number for pair in pairs for number in pair]).tobytes()
        self._database.write(
            "INSERT INTO leased VALUES(?, ?) ON CONFLICT(worker) DO UPDATE SET pairs = excluded.pairs",
            (self._leases.owner, numbers),
        )

    def count_leased_attempts(self, claims: Sequence[Claim]) -> None:
        """Count one attempt more for the visits that former owners of these shards had in progress."""
        taken = {claim.shard for claim in claims if not claim.clean}
        owners = sorted({claim.previous for claim in claims if not claim.clean})
        stored = self._database.execute("SELECT pairs FROM leased WHERE worker = ANY(?::text[])", (owners,))
        numbers = array("q", b"".join(row[0] for row in stored))
        pairs = zip(numbers[::2], numbers[1::2], strict=True)
        self.count_attempts(pair for pair in pairs if pair[0] >> HOST_BITS in taken)
