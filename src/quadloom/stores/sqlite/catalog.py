"""Catalog and outbox on SQLite, in the frontier's database."""

from __future__ import annotations

from collections.abc import Sequence

from quadloom.stores.sql.catalog import SqlBacklog, SqlCatalog, SqlValues
from quadloom.stores.sql.outbox import SqlOutbox
from quadloom.stores.sql.statements import first, insert
from quadloom.stores.sql.stored_records import damaged
from quadloom.stores.sqlite.database import SqliteDatabase

_LEASE = insert("page_lease", "fingerprint owner")


class SqliteCatalog(SqlCatalog):
    """See `quadloom.stores.sql.catalog.SqlCatalog`."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database, SqlValues(database), SqliteBacklog(database))

    def check(self) -> None:
        """Of the file, too: whether its trees are whole and every index agrees with its table."""
        found = first(self._database.execute("PRAGMA integrity_check(1)"))
        if found is None or found[0] != "ok":
            raise damaged(str(found[0]) if found is not None else "it cannot be checked")
        super().check()


class SqliteBacklog(SqlBacklog):
    def _choose(self, states: Sequence[int], limit: int, owner: str) -> list[int]:
        found: list[int] = []
        for state in states:  # one after another, so that each is read in the order of the index
            rows = self._database.execute(
                "SELECT fingerprint FROM page WHERE owed = ? AND owed > 0 AND NOT EXISTS (SELECT 1 FROM page_lease l "
                "WHERE l.fingerprint = page.fingerprint) ORDER BY fetched_at, fingerprint LIMIT ?",
                (state, limit - len(found)),
            )
            found += [row[0] for row in rows]
        self._database.write_many(_LEASE, [(key, owner) for key in found])
        return found


class SqliteOutbox(SqlOutbox):
    """See `quadloom.stores.protocols.outbox.Outbox`."""

    def _lock_ids(self) -> None:
        """One process at a time writes."""

    def last_id(self) -> int:
        row = first(self._database.execute("SELECT seq FROM sqlite_sequence WHERE name='notice'"))
        return int(row[0]) if row else 0

    def skip_ids(self, until: int) -> None:
        with self._database.transaction():
            self._database.write(
                "INSERT INTO sqlite_sequence(name, seq) SELECT 'notice', 0 "
                "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name='notice')"
            )
            self._database.write("UPDATE sqlite_sequence SET seq=max(seq, ?) WHERE name='notice'", (until,))
