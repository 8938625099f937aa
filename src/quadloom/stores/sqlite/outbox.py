"""The outbox on SQLite, in the database of frontier and catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from quadloom.model.event import Notice
from quadloom.model.outcome import ArchiveRef
from quadloom.model.wire import decode, encode
from quadloom.stores.protocols.outbox import NOBODY, Delivery, moved_notice
from quadloom.stores.sqlite.database import SqliteDatabase

_LARGEST = (1 << 63) - 1


class SqliteOutbox:
    """See `quadloom.stores.protocols.outbox.Outbox`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def append(self, notices: Sequence[Notice]) -> None:
        with self._database.transaction():
            self._database.executemany(
                "INSERT INTO notice(at, subscription, record) VALUES(?,?,?)",
                [(notice.at, notice.subscription, encode(replace(notice, id=0))) for notice in notices],
            )

    def since(self, id: int, *, limit: int = 1000, subscription: str = "") -> list[Notice]:
        where, values = ("subscription=? AND ", (subscription,)) if subscription else ("", ())
        cursor = self._database.execute(
            f"SELECT id, record FROM notice WHERE {where}id > ? ORDER BY id LIMIT ?", (*values, id, limit)
        )
        return [replace(decode(record, Notice), id=number) for number, record in cursor]

    def last_id(self) -> int:
        row = self._database.execute("SELECT seq FROM sqlite_sequence WHERE name='notice'").fetchone()
        return int(row[0]) if row else 0

    def skip_ids(self, until: int) -> None:
        with self._database.transaction():
            self._database.execute(
                "INSERT INTO sqlite_sequence(name, seq) SELECT 'notice', 0 "
                "WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name='notice')"
            )
            self._database.execute("UPDATE sqlite_sequence SET seq=max(seq, ?) WHERE name='notice'", (until,))

    def trim(self, before: float, *, waiting: Mapping[str, int] = NOBODY) -> int:
        with self._database.transaction():
            found = self._database.execute(
                "SELECT DISTINCT subscription FROM notice WHERE at < ?", (before,)
            ).fetchall()
            dropped = 0
            for (subscription,) in found:
                dropped += self._database.execute(
                    "DELETE FROM notice WHERE subscription=? AND id <= ? AND at < ?",
                    (subscription, waiting.get(subscription, _LARGEST), before),
                ).rowcount
            return dropped

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef]) -> None:
        with self._database.transaction():
            last = 0
            while notices := self.since(last):
                last = notices[-1].id
                self._database.executemany(
                    "UPDATE notice SET record=? WHERE id=?",
                    [
                        (encode(replace(moved_notice(notice, moved), id=0)), notice.id)  # the id is the row's
                        for notice in notices
                        if notice.before in moved or notice.after in moved
                    ],
                )

    def delivery(self, subscription: str) -> Delivery:
        row = self._database.execute("SELECT record FROM delivery WHERE subscription=?", (subscription,)).fetchone()
        return decode(row[0], Delivery) if row else Delivery(subscription=subscription)

    def put_delivery(self, delivery: Delivery) -> None:
        with self._database.transaction():
            self._database.execute(
                "INSERT OR REPLACE INTO delivery VALUES(?,?)", (delivery.subscription, encode(delivery))
            )

    def forget_delivery(self, subscription: str) -> None:
        with self._database.transaction():
            self._database.execute("DELETE FROM delivery WHERE subscription=?", (subscription,))
