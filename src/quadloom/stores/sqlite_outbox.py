"""The outbox on SQLite, beside frontier and catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from quadloom.model.notice import Notice
from quadloom.model.outcome import ArchiveRef
from quadloom.model.wire import decode, encode
from quadloom.stores.outbox import Delivery
from quadloom.stores.sqlite_database import SqliteDatabase


class SqliteOutbox:
    """See `quadloom.stores.outbox.Outbox`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def append(self, notices: Sequence[Notice]) -> None:
        with self._database.transaction():
            self._database.executemany(
                "INSERT INTO notice(at, subscription, record) VALUES(?,?,?)",
                [(notice.at, notice.subscription, encode(notice)) for notice in notices],
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

    def trim(self, before: float) -> int:
        with self._database.transaction():
            return self._database.execute("DELETE FROM notice WHERE at < ?", (before,)).rowcount

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef]) -> None:
        with self._database.transaction():
            last = 0
            while notices := self.since(last):
                last = notices[-1].id
                self._database.executemany(
                    "UPDATE notice SET record=? WHERE id=?",
                    [
                        (encode(moved_notice(notice, moved)), notice.id)
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


def moved_notice(notice: Notice, moved: Mapping[ArchiveRef, ArchiveRef]) -> Notice:
    before = moved.get(notice.before, notice.before) if notice.before else None
    after = moved.get(notice.after, notice.after) if notice.after else None
    return replace(notice, id=0, before=before, after=after)  # the id is the row's, as `append` writes it
