"""The outbox on a database, in that of frontier and catalog."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from quadloom.model.event import Notice
from quadloom.model.outcome import ArchiveRef
from quadloom.stores.protocols.outbox import NOBODY, Delivery, moved_notice
from quadloom.stores.sql.statements import SqlDatabase, delete, first, insert, update
from quadloom.stores.sql.stored_records import decode, encode

_LARGEST = (1 << 63) - 1
_APPEND = insert("notice", "at subscription record")
_REPOINT = update("notice", "record", "id")
_REMOVE = delete("notice", "id")


class SqlOutbox(ABC):
    """See `quadloom.stores.protocols.outbox.Outbox`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    def append(self, notices: Sequence[Notice]) -> None:
        if notices:
            with self._database.transaction():
                self._lock_ids()
                rows = [(notice.at, notice.subscription, encode(replace(notice, id=0))) for notice in notices]
                self._database.write_many(_APPEND, rows)

    def since(self, id: int, *, limit: int = 1000, subscription: str = "") -> list[Notice]:
        where, values = ("subscription = ? AND ", (subscription,)) if subscription else ("", ())
        rows = self._database.execute(
            f"SELECT id, record FROM notice WHERE {where}id > ? ORDER BY id LIMIT ?", (*values, id, limit)
        )
        return [replace(decode(record, Notice), id=number) for number, record in rows]

    def trim(self, before: float, *, waiting: Mapping[str, int] = NOBODY) -> int:
        with self._database.transaction():
            found = list(self._database.execute("SELECT DISTINCT subscription FROM notice WHERE at < ?", (before,)))
            return sum(
                self._database.change(
                    "DELETE FROM notice WHERE subscription = ? AND id <= ? AND at < ?",
                    (subscription, waiting.get(subscription, _LARGEST), before),
                )
                for (subscription,) in found
            )

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef]) -> None:
        with self._database.transaction():
            last = 0
            while notices := self.since(last):
                last = notices[-1].id
                changed = [
                    (encode(replace(moved_notice(notice, moved), id=0)), notice.id)  # the id is the row's
                    for notice in notices
                    if notice.before in moved or notice.after in moved
                ]
                self._database.write_many(_REPOINT, changed)

    def edit(self, change: Callable[[Notice], Notice | None]) -> int:
        edited = last = 0
        with self._database.transaction():
            while notices := self.since(last):
                last = notices[-1].id
                changed = [(notice, after) for notice in notices if (after := change(notice)) != notice]
                rows = [(encode(replace(after, id=0)), notice.id) for notice, after in changed if after is not None]
                self._database.write_many(_REPOINT, rows)
                self._database.write_many(_REMOVE, [(notice.id,) for notice, after in changed if after is None])
                edited += len(changed)
        return edited

    def delivery(self, subscription: str) -> Delivery:
        row = first(self._database.execute("SELECT record FROM delivery WHERE subscription = ?", (subscription,)))
        return decode(row[0], Delivery) if row else Delivery(subscription=subscription)

    def put_delivery(self, delivery: Delivery) -> None:
        with self._database.transaction():
            self._database.write(
                "INSERT INTO delivery VALUES(?, ?) ON CONFLICT(subscription) DO UPDATE SET record = excluded.record",
                (delivery.subscription, encode(delivery)),
            )

    def forget_delivery(self, subscription: str) -> None:
        with self._database.transaction():
            self._database.write("DELETE FROM delivery WHERE subscription = ?", (subscription,))

    @abstractmethod
    def _lock_ids(self) -> None:
        """Let nobody else append before the end of the transaction."""

    @abstractmethod
    def last_id(self) -> int: ...

    @abstractmethod
    def skip_ids(self, until: int) -> None: ...
