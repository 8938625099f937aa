"""The catalog on PostgreSQL: pages, their histories, counts and named values, in the frontier's database.

As on SQLite, a page is one msgpack record and the few columns that SQL must see, and only `mark_indexed` writes
`indexed_quads` and `indexed_text`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

from msgspec.structs import replace

from quadloom.model.outcome import ArchiveRef, PageRow, Settlement
from quadloom.model.phase import Owed, waiting_states
from quadloom.model.wire import decode, encode
from quadloom.stores.postgres.arrays import columns
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.schema import BEHIND
from quadloom.stores.protocols.catalog import (
    FIRST_UNINDEXED,
    IndexedPage,
    PageSummary,
    UnindexedPlace,
    VisitKey,
    VisitRow,
)
from quadloom.stores.shards import SHARDS, shard_of
from quadloom.stores.sql.catalog_rows import (
    RowFacts,
    newest_of,
    page_of,
    pages_of,
    record_of,
    repointed,
    visit_row,
    visits_of,
    waiting_counts,
    written,
)

_PAGE = "record, indexed_quads, indexed_text, owed"


class PostgresCatalog:
    """See `quadloom.stores.protocols.state.WholeCatalog`.

    `slot`: which row of the counters this process writes. `private`: names of values of which each worker (`worker`)
    has its own, because they describe only what it has done (`named_values.PER_WORKER`). `shards`: the shards whose
    pages this worker indexes and amends, None = all.
    """

    def __init__(
        self,
        database: PostgresDatabase,
        *,
        slot: int = 0,
        worker: str = "",
        private: frozenset[str] = frozenset(),
        shards: Callable[[], Sequence[int]] | None = None,
    ) -> None:
        self._database = database
        self._slot = slot
        self._worker = worker
        self._private = private
        self._shards = shards or (lambda: range(SHARDS))

    def of_shards(self, shards: Sequence[int]) -> PostgresCatalog:
        """The same catalog with only these shards' pages in `unindexed`."""
        return PostgresCatalog(
            self._database, slot=self._slot, worker=self._worker, private=self._private, shards=lambda: shards
        )

    def transaction(self) -> AbstractContextManager[None]:
        return self._database.transaction()

    def record(self, settlements: Sequence[Settlement], now: float) -> None:
        pages = pages_of(settlements)
        if not pages:
            return
        with self._database.transaction():
            self._write_pages(newest_of(pages), now)
            visits = {(page.fingerprint, page.fetched_at): encode(visit_row(page)) for page in visits_of(settlements)}
            self._database.write(
                "INSERT INTO visit SELECT * FROM unnest(%s::bigint[], %s::float8[], %s::bytea[]) "
                "ON CONFLICT(fingerprint, fetched_at) DO UPDATE SET record = excluded.record",
                columns("qdy", [(*key, record) for key, record in visits.items()]),
            )

    def _write_pages(self, pages: Sequence[PageRow], now: float) -> None:
        done = written(pages, self._facts([page.fingerprint for page in pages]), now)
        rows = [
            (
                page.fingerprint,
                shard_of(page.host),
                page.host,
                str(page.outcome),
                page.kind,
                page.status,
                page.fetched_at,
                page.quads_digest,
                page.text_digest,
                record_of(page),
                int(page.owed),
            )
            for page in done.pages
        ]
        if rows:
            self._database.write(
                "INSERT INTO page(fingerprint, shard, host, outcome, kind, status, fetched_at, quads_digest, "
                "text_digest, record, owed) SELECT * FROM unnest(%s::bigint[], %s::smallint[], %s::text[], %s::text[], "
                "%s::text[], %s::int[], %s::float8[], %s::bytea[], %s::bytea[], %s::bytea[], %s::smallint[]) "
                "ON CONFLICT(fingerprint) DO UPDATE SET host=excluded.host, outcome=excluded.outcome, "
                "kind=excluded.kind, status=excluded.status, fetched_at=excluded.fetched_at, "
                "quads_digest=excluded.quads_digest, text_digest=excluded.text_digest, record=excluded.record, "
                "owed=excluded.owed",
                columns("qhsssidyyyh", sorted(rows)),
            )
        if done.changes:
            self._database.write(
                "INSERT INTO count AS c SELECT %s, * FROM unnest(%s::text[], %s::bigint[]) "
                "ON CONFLICT(slot, name) DO UPDATE SET number = c.number + excluded.number",
                (self._slot, *columns("sq", sorted(done.changes.items()))),
            )

    def _facts(self, fingerprints: Sequence[int]) -> dict[int, RowFacts]:
        rows = self._database.execute(
            "SELECT fingerprint, fetched_at, outcome, kind, status FROM page WHERE fingerprint = ANY(%s::bigint[])",
            (list(fingerprints),),
        )
        return {row[0]: RowFacts(*row[1:]) for row in rows}

    def page(self, fingerprint: int) -> PageRow | None:
        return self.pages([fingerprint]).get(fingerprint)

    def pages(self, fingerprints: Sequence[int], *, lock: bool = False) -> dict[int, PageRow]:
        if not fingerprints:
            return {}
        locking = " ORDER BY fingerprint FOR UPDATE" if lock else ""  # in one order, so that two workers never wait
        found = self._read(f"WHERE fingerprint = ANY(%s::bigint[]){locking}", (list(fingerprints),))
        return {page.fingerprint: page for page in found}

    def summaries(self, fingerprints: Sequence[int]) -> dict[int, PageSummary]:
        query = "SELECT record FROM page WHERE fingerprint = ANY(%s::bigint[])"
        found = self._database.execute(query, (list(fingerprints),))
        rows = (decode(record, PageSummary) for (record,) in found)
        return {row.fingerprint: row for row in rows}

    def scan(self, *, after: int = -(1 << 63), limit: int = 1000, host: str = "") -> list[PageRow]:
        if host:
            return self._read("WHERE host=%s AND fingerprint > %s ORDER BY fingerprint LIMIT %s", (host, after, limit))
        return self._read("WHERE fingerprint > %s ORDER BY fingerprint LIMIT %s", (after, limit))

    def history(self, fingerprint: int) -> list[VisitRow]:
        return self._histories([fingerprint])

    def _histories(self, fingerprints: Sequence[int]) -> list[VisitRow]:
        rows = self._database.execute(
            "SELECT record FROM visit WHERE fingerprint = ANY(%s::bigint[]) ORDER BY fingerprint, fetched_at DESC",
            (list(fingerprints),),
        )
        return [decode(row[0], VisitRow) for row in rows]

    def forget(self, visits: Sequence[VisitKey]) -> None:
        if visits:
            with self._database.transaction():
                self._database.write(
                    "DELETE FROM visit v USING unnest(%s::bigint[], %s::float8[]) AS w(f, at) "
                    "WHERE v.fingerprint = w.f AND v.fetched_at = w.at",
                    columns("qd", visits),
                )

    def amend(self, pages: Sequence[PageRow]) -> None:
        rows = [(page.fingerprint, page.fetched_at, record_of(page)) for page in pages]
        with self._database.transaction():
            self._database.write(
                "UPDATE page SET record = w.record FROM unnest(%s::bigint[], %s::float8[], %s::bytea[]) "
                "AS w(f, at, record) WHERE fingerprint = w.f AND fetched_at = w.at AND shard = ANY(%s::smallint[])",
                (*columns("qdy", rows), list(self._shards())),
            )

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef], fingerprints: Sequence[int]) -> None:
        with self._database.transaction():
            pages = [
                (page.fingerprint, record_of(repointed(page, moved)))
                for page in self.pages(fingerprints).values()
                if repointed(page, moved) is not page
            ]
            self._database.write(
                "UPDATE page SET record = w.record FROM unnest(%s::bigint[], %s::bytea[]) AS w(f, record) "
                "WHERE fingerprint = w.f",
                columns("qy", pages),
            )
            visits = [
                (visit.fingerprint, visit.fetched_at, encode(replace(visit, archive=moved[visit.archive])))
                for visit in self._histories(fingerprints)
                if visit.archive is not None and visit.archive in moved
            ]
            self._database.write(
                "UPDATE visit SET record = w.record FROM unnest(%s::bigint[], %s::float8[], %s::bytea[]) "
                "AS w(f, at, record) WHERE fingerprint = w.f AND fetched_at = w.at",
                columns("qdy", visits),
            )

    def unindexed(self, limit: int, after: UnindexedPlace = FIRST_UNINDEXED) -> list[PageRow]:
        return self._read(
            f"WHERE {BEHIND} AND (fetched_at, fingerprint) > (%s, %s) AND shard = ANY(%s::smallint[]) "
            "ORDER BY fetched_at, fingerprint LIMIT %s",
            (*after, list(self._shards()), limit),
        )

    def mark_indexed(self, pages: Sequence[IndexedPage]) -> None:
        if pages:
            newest = {page.fingerprint: page for page in pages}
            with self._database.transaction():
                self._database.write(
                    "UPDATE page SET indexed_quads = w.quads, indexed_text = w.text, owed = CASE WHEN quads_digest = "
                    f"w.quads AND text_digest = w.text THEN owed & ~{int(Owed.INDEX)} ELSE owed END "
                    "FROM unnest(%s::bigint[], %s::bytea[], %s::bytea[]) AS w(f, quads, text) "
                    "WHERE fingerprint = w.f AND shard = ANY(%s::smallint[])",
                    (*columns("qyy", sorted(newest.values())), list(self._shards())),
                )

    def owe(self, phase: Owed, *, host: str = "") -> int:
        # A page that waits to be transformed owes all later phases already.
        with self._database.unhurried():
            rows = self._database.execute(
                "WITH marked AS (UPDATE page SET owed = owed | %s WHERE quads_digest || text_digest <> '' "
                f"AND owed & {int(Owed.TRANSFORM)} = 0 AND (%s = '' OR host = %s) RETURNING 1) "
                "SELECT count(*) FROM marked",
                (int(phase), host, host),
            )
            return int(rows[0][0])

    def pay(self, phase: Owed, visits: Sequence[VisitKey]) -> None:
        if visits:
            with self._database.transaction():
                self._database.write(
                    f"UPDATE page SET owed = owed & ~{int(phase)} FROM unnest(%s::bigint[], %s::float8[]) AS w(f, at) "
                    "WHERE fingerprint = w.f AND fetched_at = w.at",
                    columns("qd", sorted(visits)),
                )

    def owing(self) -> dict[Owed, int]:
        return waiting_counts(self._database.execute("SELECT owed, count(*) FROM page WHERE owed > 0 GROUP BY owed"))

    def lease_pages(self, phase: Owed, limit: int, owner: str) -> list[PageRow]:
        """Two workers that want the same rows insert them in one order: the second waits for the first and gets none
        of them. No row of `page` is locked, so nobody who settles a page ever waits for a lease. Workers look several
        times a second and mostly find nothing; a transaction, which locks their shards' rows, is begun only if there is
        something."""
        waiting = "owed > 0 AND owed = ANY(%s::smallint[])"
        states = list(waiting_states(phase))
        if not self._database.execute(f"SELECT FROM page WHERE {waiting} LIMIT 1", (states,)):
            return []
        with self._database.transaction():
            rows = self._database.execute(
                "INSERT INTO page_lease SELECT fingerprint, %s FROM (SELECT fingerprint FROM page p WHERE "
                f"{waiting} AND NOT EXISTS (SELECT FROM page_lease l WHERE l.fingerprint = "
                "p.fingerprint) ORDER BY owed, fetched_at, fingerprint LIMIT %s) w ORDER BY fingerprint "
                "ON CONFLICT(fingerprint) DO NOTHING RETURNING fingerprint",
                (owner, states, limit),
            )
            found = self.pages([row[0] for row in rows]).values()
            return sorted(found, key=lambda page: (page.fetched_at, page.fingerprint))

    def end_leases(self, owner: str, fingerprints: Sequence[int] | None = None) -> None:
        which = "" if fingerprints is None else " AND fingerprint = ANY(%s::bigint[])"
        values = (owner,) if fingerprints is None else (owner, list(fingerprints))
        with self._database.transaction():
            self._database.write(f"DELETE FROM page_lease WHERE owner=%s{which}", values)

    def lease_owners(self) -> list[str]:
        return [row[0] for row in self._database.execute("SELECT DISTINCT owner FROM page_lease")]

    def get(self, name: str, *, lock: bool = False) -> bytes | None:
        ending = " FOR UPDATE" if lock else ""
        rows = self._database.execute(f"SELECT data FROM value WHERE name=%s{ending}", (self._own(name),))
        return rows[0][0] if rows else None

    def put(self, name: str, value: bytes | None) -> None:
        name = self._own(name)
        with self._database.transaction():
            if value is None:
                self._database.write("DELETE FROM value WHERE name=%s", (name,))
            else:
                self._database.write(
                    "INSERT INTO value VALUES(%s,%s) ON CONFLICT(name) DO UPDATE SET data = excluded.data",
                    (name, value),
                )

    def _own(self, name: str) -> str:
        return f"worker:{self._worker}:{name}" if name in self._private else name

    def names(self, prefix: str) -> list[str]:
        rows = self._database.execute(
            "SELECT name FROM value WHERE name >= %s AND starts_with(name, %s) ORDER BY name", (prefix, prefix)
        )
        return [row[0] for row in rows]

    def of_kinds(self, kinds: Sequence[str]) -> list[int]:
        rows = self._database.execute("SELECT fingerprint FROM page WHERE kind = ANY(%s::text[])", (list(kinds),))
        return [row[0] for row in rows]

    def hosts(self) -> list[str]:
        return [row[0] for row in self._database.execute("SELECT DISTINCT host FROM page")]

    def counts(self) -> dict[str, int]:
        rows = self._database.execute(
            "SELECT name, sum(number)::bigint FROM count GROUP BY name HAVING sum(number) <> 0 ORDER BY name"
        )
        return dict(rows)

    def close(self) -> None:
        self._database.close()

    def _read(self, where: str, values: Sequence[object]) -> list[PageRow]:
        rows = self._database.execute(f"SELECT {_PAGE} FROM page {where}", values)
        return [page_of(*row) for row in rows]
