"""What workers say about themselves, and what people ask of them, in tables that all machines see.

A request is a row of `worker_command`; a worker finds it with the next look at its links, four times a second, and
writes its reply to `worker_answer`. Requests with a `standing` hold until another with the same `standing` takes their
place, so a worker that joins later does what those who were there did.
"""

from __future__ import annotations

from typing import NamedTuple

from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.shard_leases import ShardLeases
from quadloom.stores.protocols.state import WorkerNews, WorkerRequest, WorkerRow

_REQUESTS_LAST = "1 hour"  # those without a `standing`, and answers


def worker_rows(database: PostgresDatabase) -> list[WorkerRow]:
    rows = database.execute(
        "SELECT w.name, w.until > clock_timestamp(), extract(epoch FROM clock_timestamp() - w.seen)::float8, "
        "extract(epoch FROM w.started)::float8, w.fetches, coalesce(l.shards, 0), w.record FROM worker w "
        "LEFT JOIN (SELECT owner, count(*) AS shards FROM shard_lease GROUP BY owner) l ON l.owner = w.name "
        "ORDER BY w.name"
    )
    return [WorkerRow(*row) for row in rows]


class SentRequest(NamedTuple):
    id: int
    workers: list[str]  # that are alive and have to answer


class WorkerRequests:
    """Requests to workers, as the one who asks sees them. For a connection that may write."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def send(self, request: bytes, *, target: str, standing: str) -> SentRequest:
        """`target`: a worker's name, empty = all of them. What stood under the same `standing` no longer does."""
        database = self._database
        with database.transaction():
            # Numbers become visible in order, so that nobody misses one.
            database.execute("SELECT pg_advisory_xact_lock(hashtext('quadloom commands'), hashtext(current_schema()))")
            database.write(
                "DELETE FROM worker_command WHERE standing = '' AND at < clock_timestamp() - %s::interval "
                "OR standing <> '' AND standing = %s AND target = %s",
                (_REQUESTS_LAST, standing, target),
            )
            database.write(
                "DELETE FROM worker_answer a WHERE NOT EXISTS (SELECT FROM worker_command c WHERE c.id = a.command)"
            )
            number = database.execute(
                "INSERT INTO worker_command(target, standing, request) VALUES(%s, %s, %s) RETURNING id",
                (target, standing, request),
            )[0][0]
            names = database.execute(
                "SELECT name FROM worker WHERE until > clock_timestamp() AND record <> '' "
                "AND (%s = '' OR split_part(name, ':', 1) = %s) ORDER BY name",
                (target, target),
            )
        return SentRequest(number, [row[0].partition(":")[0] for row in names])

    def answers(self, id: int) -> dict[str, bytes]:
        """Worker → its reply."""
        return dict(self._database.execute("SELECT worker, record FROM worker_answer WHERE command=%s", (id,)))

    def standing(self, standing: str) -> bytes | None:
        """The request to all workers that stands under this word."""
        rows = self._database.execute(
            "SELECT request FROM worker_command WHERE target='' AND standing=%s ORDER BY id DESC LIMIT 1", (standing,)
        )
        return rows[0][0] if rows else None


def news_of(database: PostgresDatabase, leases: ShardLeases, after: int) -> WorkerNews:
    """Everything that a worker looks for several times a second, in one statement."""
    row = database.execute(
        "SELECT EXISTS (SELECT FROM link_outbox WHERE shard_to = ANY(%s::smallint[])), "
        "(SELECT count(*) FROM worker WHERE fetches AND until > clock_timestamp()), "
        "(SELECT count(*) FROM shard_lease WHERE owner = ''), "
        "EXISTS (SELECT FROM worker_command WHERE id > %s)",
        (leases.owned, after),
    )[0]
    return WorkerNews(links=row[0], workers=max(1, row[1]), free_shards=row[2], requests=row[3])


def requests_to(database: PostgresDatabase, leases: ShardLeases, after: int | None) -> list[WorkerRequest]:
    """Requests to this worker with a larger number. None = it has just begun: those that stand."""
    rows = database.execute(
        "SELECT id, request FROM worker_command WHERE target IN ('', %s) AND id > %s AND (%s OR standing <> '') "
        "ORDER BY id",
        (_name(leases), after or 0, after is not None),
    )
    return [WorkerRequest(*row) for row in rows]


def last_request(database: PostgresDatabase) -> int:
    return int(database.execute("SELECT coalesce(max(id), 0) FROM worker_command")[0][0])


def write_answer(database: PostgresDatabase, leases: ShardLeases, id: int, record: bytes) -> None:
    database.write(
        "INSERT INTO worker_answer VALUES(%s, %s, %s) ON CONFLICT(command, worker) DO UPDATE SET "
        "record = excluded.record",
        (id, _name(leases), record),
    )


def _name(leases: ShardLeases) -> str:
    """Of the worker for people: without the part that differs after each start."""
    return leases.owner.partition(":")[0]
