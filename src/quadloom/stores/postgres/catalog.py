"""Catalog and outbox on PostgreSQL, in the frontier's database. A worker indexes the pages of its own shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from copy import copy

from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.shards import shard_of
from quadloom.stores.sql.catalog import PAGE_COLUMNS, SqlBacklog, SqlCatalog, SqlValues
from quadloom.stores.sql.outbox import SqlOutbox
from quadloom.stores.sql.statements import EVERYTHING, SqlCondition, first, upsert

_SEQUENCE = "pg_get_serial_sequence('notice', 'id')::regclass"


class PostgresCatalog(SqlCatalog):
    """See `quadloom.stores.sql.catalog.SqlCatalog`.

    `slot`: which row of the counters this process writes. `private`: names of values of which each worker (`worker`)
    has its own, because they describe only what it has done (`named_values.PER_WORKER`). `shards`: the shards whose
    pages this worker indexes and amends, None = all.
    """

    write_pages = upsert("page", f"{PAGE_COLUMNS} shard", "fingerprint", {"shard": "page.shard"})
    write_counts = upsert("count", "slot name number", "slot name", {"number": "count.number + excluded.number"})

    def __init__(
        self,
        database: PostgresDatabase,
        *,
        slot: int = 0,
        worker: str = "",
        private: frozenset[str] = frozenset(),
        shards: Callable[[], Sequence[int]] | None = None,
    ) -> None:
        super().__init__(database, _WorkerValues(database, worker, private), PostgresBacklog(database))
        self._slot = slot
        self._shards = shards

    def of_shards(self, shards: Sequence[int]) -> PostgresCatalog:
        """The same catalog with only these shards' pages in `unindexed`."""
        made = copy(self)
        made._shards = lambda: shards
        return made

    @property
    def _own(self) -> SqlCondition:
        if self._shards is None:
            return EVERYTHING
        return SqlCondition(" AND page.shard = ANY(?::smallint[])", (list(self._shards()),))

    def _page_rows(self, rows: Sequence[tuple[int, str, *tuple[object, ...]]]) -> list[tuple[object, ...]]:
        return [(*row, shard_of(row[1])) for row in rows]

    def _count_rows(self, changes: list[tuple[str, int]]) -> list[tuple[object, ...]]:
        return [(self._slot, name, change) for name, change in changes]


class PostgresBacklog(SqlBacklog):
    _database: PostgresDatabase

    def _choose(self, states: Sequence[int], limit: int, owner: str) -> list[int]:
        """Two workers that want the same rows insert them in one order: the second waits for the first and gets none
        of them. No row of `page` is locked, so nobody who settles a page ever waits for a lease."""
        rows = self._database.execute(
            "INSERT INTO page_lease SELECT fingerprint, ? FROM (SELECT fingerprint FROM page p WHERE owed > 0 "
            "AND owed = ANY(?::smallint[]) AND NOT EXISTS (SELECT FROM page_lease l WHERE l.fingerprint = "
            "p.fingerprint) ORDER BY owed, fetched_at, fingerprint LIMIT ?) w ORDER BY fingerprint "
            "ON CONFLICT(fingerprint) DO NOTHING RETURNING fingerprint",
            (owner, list(states), limit),
        )
        return [row[0] for row in rows]

    def _whole_table(self) -> AbstractContextManager[None]:
        return self._database.unhurried()


class _WorkerValues(SqlValues):
    def __init__(self, database: PostgresDatabase, worker: str, private: frozenset[str]) -> None:
        super().__init__(database)
        self._worker = worker
        self._private = private

    def _stored(self, name: str) -> str:
        return f"worker:{self._worker}:{name}" if name in self._private else name


class PostgresOutbox(SqlOutbox):
    """See `quadloom.stores.protocols.outbox.Outbox`.

    Receivers ask for ids above the last they saw, so a smaller id must never become visible after a larger one.
    Sequences alone do not guarantee that: two workers may commit in another order than they drew ids. So `append` holds
    a lock until its transaction ends; there are far fewer notices than pages.
    """

    def _lock_ids(self) -> None:
        self._database.execute("SELECT pg_advisory_xact_lock(hashtext('quadloom notices'), hashtext(current_schema()))")

    def last_id(self) -> int:
        row = first(self._database.execute(f"SELECT coalesce(pg_sequence_last_value({_SEQUENCE}), 0)"))
        return int(row[0]) if row else 0

    def skip_ids(self, until: int) -> None:
        if until > self.last_id():
            self._database.execute(f"SELECT setval({_SEQUENCE}, ?)", (until,))
