"""The outbox on PostgreSQL, in the database of frontier and catalog.

Receivers ask for ids above the last they saw, so a smaller id must never become visible after a larger one. Sequences
alone do not guarantee that: two workers may commit in another order than they drew ids. So `append` holds a lock until
its transaction ends; there are far fewer notices than pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from quadloom.model.event import Notice
from quadloom.model.outcome import ArchiveRef
from quadloom.model.wire import decode, encode
from quadloom.stores.postgres.arrays import column, columns
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.protocols.outbox import NOBODY, Delivery, moved_notice


class PostgresOutbox:
    """See `quadloom.stores.protocols.outbox.Outbox`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def append(self, notices: Sequence[Notice]) -> None:
        if not notices:
            return
        with self._database.transaction():
            self._database.execute(
                "SELECT pg_advisory_xact_lock(hashtext('quadloom notices'), hashtext(current_schema()))"
            )
            self._database.write(
                "INSERT INTO notice(at, subscription, record) "
                "SELECT * FROM unnest(%s::float8[], %s::text[], %s::bytea[])",
                columns("dsy", [(notice.at, notice.subscription, encode(replace(notice, id=0))) for notice in notices]),
            )

    def since(self, id: int, *, limit: int = 1000, subscription: str = "") -> list[Notice]:
        where, values = ("subscription=%s AND ", (subscription,)) if subscription else ("", ())
        rows = self._database.execute(
            f"SELECT id, record FROM notice WHERE {where}id > %s ORDER BY id LIMIT %s", (*values, id, limit)
        )
        return [replace(decode(record, Notice), id=number) for number, record in rows]

    def last_id(self) -> int:
        return int(
            self._database.execute(
                "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('notice', 'id')::regclass), 0)"
            )[0][0]
        )

    def skip_ids(self, until: int) -> None:
        if until > self.last_id():
            self._database.execute("SELECT setval(pg_get_serial_sequence('notice', 'id')::regclass, %s)", (until,))

    def trim(self, before: float, *, waiting: Mapping[str, int] = NOBODY) -> int:
        with self._database.transaction():
            return int(
                self._database.execute(
                    "WITH waiting(subscription, id) AS (SELECT * FROM unnest(%s::text[], %s::bigint[])), "
                    "gone AS (DELETE FROM notice WHERE at < %s AND NOT EXISTS (SELECT FROM waiting "
                    "WHERE waiting.subscription = notice.subscription AND waiting.id < notice.id) RETURNING id) "
                    "SELECT count(*) FROM gone",
                    (column("s", waiting), column("q", waiting.values()), before),
                )[0][0]
            )

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef]) -> None:
        with self._database.transaction():
            last = 0
            while notices := self.since(last):
                last = notices[-1].id
                changed = [
                    (notice.id, encode(replace(moved_notice(notice, moved), id=0)))
                    for notice in notices
                    if notice.before in moved or notice.after in moved
                ]
                self._database.write(
                    "UPDATE notice SET record = w.record FROM unnest(%s::bigint[], %s::bytea[]) AS w(id, record) "
                    "WHERE notice.id = w.id",
                    columns("qy", changed),
                )

    def delivery(self, subscription: str) -> Delivery:
        rows = self._database.execute("SELECT record FROM delivery WHERE subscription=%s", (subscription,))
        return decode(rows[0][0], Delivery) if rows else Delivery(subscription=subscription)

    def put_delivery(self, delivery: Delivery) -> None:
        with self._database.transaction():
            self._database.write(
                "INSERT INTO delivery VALUES(%s,%s) ON CONFLICT(subscription) DO UPDATE SET record = excluded.record",
                (delivery.subscription, encode(delivery)),
            )

    def forget_delivery(self, subscription: str) -> None:
        with self._database.transaction():
            self._database.write("DELETE FROM delivery WHERE subscription=%s", (subscription,))
