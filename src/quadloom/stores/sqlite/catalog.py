"""The catalog on SQLite: pages, their histories, counts and named values, in the frontier's database.

A page row is one msgpack record and the few columns that SQL must see. `indexed_quads` and `indexed_text` are
columns and not part of the record: only `mark_indexed` writes them, after the indexes have acknowledged, so that a
settlement cannot claim more than happened. A partial index holds exactly the pages that wait for the indexes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from msgspec.structs import replace

from quadloom.model.outcome import ArchiveRef, PageRow, Settlement
from quadloom.model.phase import Owed, waiting_states
from quadloom.model.wire import decode, encode
from quadloom.stores.protocols.catalog import (
    FIRST_UNINDEXED,
    IndexedPage,
    PageSummary,
    UnindexedPlace,
    VisitKey,
    VisitRow,
)
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
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.schema import BEHIND

_PAGE = "record, indexed_quads, indexed_text, owed"
_CHUNK = 500


class SqliteCatalog:
    """See `quadloom.stores.protocols.state.WholeCatalog`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def transaction(self) -> AbstractContextManager[None]:
        return self._database.transaction()

    def record(self, settlements: Sequence[Settlement], now: float) -> None:
        with self._database.transaction():
            self._write_pages(newest_of(pages_of(settlements)), now)
            self._database.executemany(
                "INSERT OR REPLACE INTO visit VALUES(?,?,?)",
                [(page.fingerprint, page.fetched_at, encode(visit_row(page))) for page in visits_of(settlements)],
            )

    def _write_pages(self, pages: Sequence[PageRow], now: float) -> None:
        done = written(pages, self._facts([page.fingerprint for page in pages]), now)
        self._database.executemany(
            "INSERT INTO page(fingerprint, host, outcome, kind, status, fetched_at, quads_digest, text_digest, record, "
            "owed) VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT(fingerprint) DO UPDATE SET host=excluded.host, "
            "outcome=excluded.outcome, kind=excluded.kind, status=excluded.status, fetched_at=excluded.fetched_at, "
            "quads_digest=excluded.quads_digest, text_digest=excluded.text_digest, record=excluded.record, "
            "owed=excluded.owed",
            [
                (
                    page.fingerprint,
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
            ],
        )
        self._database.executemany(
            "INSERT INTO count VALUES(?,?) ON CONFLICT(name) DO UPDATE SET number = number + excluded.number",
            list(done.changes.items()),
        )

    def _facts(self, fingerprints: Sequence[int]) -> dict[int, RowFacts]:
        found: dict[int, RowFacts] = {}
        for start in range(0, len(fingerprints), _CHUNK):
            part = fingerprints[start : start + _CHUNK]
            cursor = self._database.execute(
                "SELECT fingerprint, fetched_at, outcome, kind, status FROM page "
                f"WHERE fingerprint IN ({_marks(part)})",
                part,
            )
            found.update((row[0], RowFacts(*row[1:])) for row in cursor)
        return found

    def page(self, fingerprint: int) -> PageRow | None:
        return self.pages([fingerprint]).get(fingerprint)

    def pages(self, fingerprints: Sequence[int], *, lock: bool = False) -> dict[int, PageRow]:
        found: dict[int, PageRow] = {}
        for start in range(0, len(fingerprints), _CHUNK):
            part = fingerprints[start : start + _CHUNK]
            for page in self._read(f"WHERE fingerprint IN ({_marks(part)})", part):
                found[page.fingerprint] = page
        return found

    def summaries(self, fingerprints: Sequence[int]) -> dict[int, PageSummary]:
        found: dict[int, PageSummary] = {}
        for start in range(0, len(fingerprints), _CHUNK):
            part = fingerprints[start : start + _CHUNK]
            query = f"SELECT record FROM page WHERE fingerprint IN ({_marks(part)})"
            rows = (decode(record, PageSummary) for (record,) in self._database.execute(query, part))
            found |= {row.fingerprint: row for row in rows}
        return found

    def scan(self, *, after: int = -(1 << 63), limit: int = 1000, host: str = "") -> list[PageRow]:
        if host:
            return self._read("WHERE host=? AND fingerprint > ? ORDER BY fingerprint LIMIT ?", (host, after, limit))
        return self._read("WHERE fingerprint > ? ORDER BY fingerprint LIMIT ?", (after, limit))

    def history(self, fingerprint: int) -> list[VisitRow]:
        cursor = self._database.execute(
            "SELECT record FROM visit WHERE fingerprint=? ORDER BY fetched_at DESC", (fingerprint,)
        )
        return [decode(row[0], VisitRow) for row in cursor]

    def forget(self, visits: Sequence[VisitKey]) -> None:
        with self._database.transaction():
            self._database.executemany("DELETE FROM visit WHERE fingerprint=? AND fetched_at=?", visits)

    def amend(self, pages: Sequence[PageRow]) -> None:
        with self._database.transaction():
            self._database.executemany(
                "UPDATE page SET record=? WHERE fingerprint=? AND fetched_at=?",
                [(record_of(page), page.fingerprint, page.fetched_at) for page in pages],
            )

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef], fingerprints: Sequence[int]) -> None:
        with self._database.transaction():
            for fingerprint in fingerprints:
                page = self.page(fingerprint)
                if page is not None and repointed(page, moved) is not page:
                    record = record_of(repointed(page, moved))
                    self._database.execute("UPDATE page SET record=? WHERE fingerprint=?", (record, fingerprint))
                self._database.executemany(
                    "UPDATE visit SET record=? WHERE fingerprint=? AND fetched_at=?",
                    [
                        (encode(replace(visit, archive=moved[visit.archive])), fingerprint, visit.fetched_at)
                        for visit in self.history(fingerprint)
                        if visit.archive is not None and visit.archive in moved
                    ],
                )

    def unindexed(self, limit: int, after: UnindexedPlace = FIRST_UNINDEXED) -> list[PageRow]:
        return self._read(
            f"WHERE {BEHIND} AND (fetched_at, fingerprint) > (?, ?) ORDER BY fetched_at, fingerprint LIMIT ?",
            (*after, limit),
        )

    def mark_indexed(self, pages: Sequence[IndexedPage]) -> None:
        with self._database.transaction():
            self._database.executemany(
                "UPDATE page SET indexed_quads=?1, indexed_text=?2, owed = CASE WHEN quads_digest=?1 "
                f"AND text_digest=?2 THEN owed & ~{int(Owed.INDEX)} ELSE owed END WHERE fingerprint=?3",
                [(page.quads_digest, page.text_digest, page.fingerprint) for page in pages],
            )

    def owe(self, phase: Owed, *, host: str = "") -> int:
        # A page that waits to be transformed owes all later phases already.
        where = f"(quads_digest <> x'' OR text_digest <> x'') AND owed & {int(Owed.TRANSFORM)} = 0"
        where += " AND (?2 = '' OR host = ?2)"
        with self._database.transaction():
            return self._database.execute(
                f"UPDATE page SET owed = owed | ?1 WHERE {where}", (int(phase), host)
            ).rowcount

    def pay(self, phase: Owed, visits: Sequence[VisitKey]) -> None:
        with self._database.transaction():
            self._database.executemany(
                f"UPDATE page SET owed = owed & ~{int(phase)} WHERE fingerprint=? AND fetched_at=?", visits
            )

    def owing(self) -> dict[Owed, int]:
        cursor = self._database.execute("SELECT owed, count(*) FROM page WHERE owed > 0 GROUP BY owed")
        return waiting_counts(cursor)

    def lease_pages(self, phase: Owed, limit: int, owner: str) -> list[PageRow]:
        found: list[PageRow] = []
        free = "NOT EXISTS (SELECT 1 FROM page_lease l WHERE l.fingerprint = page.fingerprint)"
        if not self._is_owing(phase):
            return []  # without a transaction: this is asked again and again
        with self._database.transaction():
            for value in waiting_states(phase):
                where = f"WHERE owed = ? AND owed > 0 AND {free} ORDER BY fetched_at, fingerprint LIMIT ?"
                found += self._read(where, (value, limit - len(found)))
            self._database.executemany(
                "INSERT INTO page_lease VALUES(?,?)", [(page.fingerprint, owner) for page in found]
            )
        return found

    def _is_owing(self, phase: Owed) -> bool:
        values = waiting_states(phase)
        return any(
            self._database.execute("SELECT 1 FROM page WHERE owed = ? AND owed > 0 LIMIT 1", (value,)).fetchone()
            for value in values
        )

    def end_leases(self, owner: str, fingerprints: Sequence[int] | None = None) -> None:
        with self._database.transaction():
            if fingerprints is None:
                self._database.execute("DELETE FROM page_lease WHERE owner=?", (owner,))
            else:
                self._database.executemany(
                    "DELETE FROM page_lease WHERE fingerprint=? AND owner=?", [(key, owner) for key in fingerprints]
                )

    def lease_owners(self) -> list[str]:
        return [row[0] for row in self._database.execute("SELECT DISTINCT owner FROM page_lease")]

    def get(self, name: str, *, lock: bool = False) -> bytes | None:
        row = self._database.execute("SELECT data FROM value WHERE name=?", (name,)).fetchone()
        return row[0] if row else None

    def put(self, name: str, value: bytes | None) -> None:
        with self._database.transaction():
            if value is None:
                self._database.execute("DELETE FROM value WHERE name=?", (name,))
            else:
                self._database.execute("INSERT OR REPLACE INTO value VALUES(?,?)", (name, value))

    def names(self, prefix: str) -> list[str]:
        cursor = self._database.execute(
            "SELECT name FROM value WHERE name >= ? AND substr(name, 1, ?) = ? ORDER BY name",
            (prefix, len(prefix), prefix),
        )
        return [row[0] for row in cursor]

    def of_kinds(self, kinds: Sequence[str]) -> list[int]:
        cursor = self._database.execute(f"SELECT fingerprint FROM page WHERE kind IN ({_marks(kinds)})", list(kinds))
        return [row[0] for row in cursor]

    def hosts(self) -> list[str]:
        return [row[0] for row in self._database.execute("SELECT DISTINCT host FROM page")]

    def counts(self) -> dict[str, int]:
        return dict(self._database.execute("SELECT name, number FROM count WHERE number <> 0 ORDER BY name"))

    def close(self) -> None:
        self._database.close()

    def _read(self, where: str, values: Sequence[str | int | float]) -> list[PageRow]:
        cursor = self._database.execute(f"SELECT {_PAGE} FROM page {where}", values)
        return [page_of(*row) for row in cursor]


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
