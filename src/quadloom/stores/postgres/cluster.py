"""Workers of a cluster and requests to them, in tables that all machines see.

A request is a row of `worker_command`. A worker finds it when it looks for news, four times a second, and writes its
answer to `worker_answer`. A retained request has a key in the column `standing`; the next with that key replaces it.
"""

from __future__ import annotations

from msgspec.structs import replace

from quadloom.errors import UsageError
from quadloom.model.event import Event
from quadloom.model.wire import decode
from quadloom.settings import Settings
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.shard_leases import ShardLeases
from quadloom.stores.protocols.cluster import SentRequest, WorkerNews, WorkerRequest, WorkerRow

_REQUESTS_LAST = "1 hour"  # those that are not retained, and answers
_HEARTBEAT_SECONDS = 10.0  # for a statement
_HEARTBEAT_PATIENCE = 2.0  # seconds for a connection; the next heartbeat tries again


def worker_rows(database: PostgresDatabase) -> list[WorkerRow]:
    rows = database.execute(
        "SELECT w.name, w.until > clock_timestamp(), extract(epoch FROM clock_timestamp() - w.seen)::float8, "
        "extract(epoch FROM w.started)::float8, w.fetches, coalesce(l.shards, 0), w.record FROM worker w "
        "LEFT JOIN (SELECT owner, count(*) AS shards FROM shard_lease GROUP BY owner) l ON l.owner = w.name "
        "ORDER BY w.name"
    )
    return [WorkerRow(*row) for row in rows]


class PostgresCluster:
    """See `quadloom.stores.protocols.cluster.Cluster`."""

    def __init__(self, settings: Settings, *, writable: bool) -> None:
        url = settings.stores.frontier
        if not writable:
            self._database = PostgresDatabase.read_only(url)
            return
        self._database = PostgresDatabase(url, writable=True, patience=5.0)
        if self._database.schema_version() == 0:
            self._database.close()
            raise UsageError(
                f"there is no warehouse at {self._database.name} yet",
                hint="start a worker on each machine: `quadloom worker`",
            )

    def workers(self) -> list[WorkerRow]:
        return worker_rows(self._database)

    def events(self, after: int, limit: int, *, settled: bool = True) -> list[Event]:
        rows = self._database.execute(
            "SELECT seq, record FROM (SELECT seq, record FROM event WHERE seq > %s AND (%s OR NOT settled) "
            "ORDER BY seq DESC LIMIT %s) newest ORDER BY seq",
            (after, settled, limit),
        )
        return [replace(decode(record, Event), id=seq) for seq, record in rows]

    def send(self, request: bytes, *, worker: str = "", retain: str = "") -> SentRequest:
        database = self._database
        with database.transaction():
            # Numbers become visible in order, so that no worker misses one.
            database.execute("SELECT pg_advisory_xact_lock(hashtext('quadloom commands'), hashtext(current_schema()))")
            database.write(
                "DELETE FROM worker_command WHERE standing = '' AND at < clock_timestamp() - %s::interval "
                "OR standing <> '' AND standing = %s AND target = %s",
                (_REQUESTS_LAST, retain, worker),
            )
            database.write(
                "DELETE FROM worker_answer a WHERE NOT EXISTS (SELECT FROM worker_command c WHERE c.id = a.command)"
            )
            number = database.execute(
                "INSERT INTO worker_command(target, standing, request) VALUES(%s, %s, %s) RETURNING id",
                (worker, retain, request),
            )[0][0]
            names = database.execute(
                "SELECT name FROM worker WHERE until > clock_timestamp() AND record <> '' "
                "AND (%s = '' OR split_part(name, ':', 1) = %s) ORDER BY name",
                (worker, worker),
            )
        return SentRequest(number, [row[0].partition(":")[0] for row in names])

    def answers(self, id: int) -> dict[str, bytes]:
        return dict(self._database.execute("SELECT worker, record FROM worker_answer WHERE command=%s", (id,)))

    def retained(self, key: str) -> bytes | None:
        rows = self._database.execute(
            "SELECT request FROM worker_command WHERE target='' AND standing=%s ORDER BY id DESC LIMIT 1", (key,)
        )
        return rows[0][0] if rows else None

    def close(self) -> None:
        self._database.close()


class PostgresHeartbeat:
    """See `quadloom.stores.protocols.cluster.ShardHeartbeat`."""

    def __init__(self, url: str, leases: ShardLeases) -> None:
        self._leases = leases
        self._worker = leases.owner.partition(":")[0]  # without the part that differs after each start
        self._database = PostgresDatabase(
            url, writable=True, patience=_HEARTBEAT_PATIENCE, statement_seconds=_HEARTBEAT_SECONDS
        )

    def renew(self, record: bytes = b"") -> frozenset[int]:
        return self._leases.renew(self._database, record)

    def news(self, after: int) -> WorkerNews:
        row = self._database.execute(
            "SELECT EXISTS (SELECT FROM link_outbox WHERE shard_to = ANY(%s::smallint[])), "
            "(SELECT count(*) FROM worker WHERE fetches AND until > clock_timestamp()), "
            "(SELECT count(*) FROM shard_lease WHERE owner = ''), "
            "EXISTS (SELECT FROM worker_command WHERE id > %s)",
            (self._leases.owned, after),
        )[0]
        return WorkerNews(links=row[0], workers=max(1, row[1]), free_shards=row[2], requests=row[3])

    def requests(self, after: int | None) -> list[WorkerRequest]:
        rows = self._database.execute(
            "SELECT id, request FROM worker_command WHERE target IN ('', %s) AND id > %s AND (%s OR standing <> '') "
            "ORDER BY id",
            (self._worker, after or 0, after is not None),
        )
        return [WorkerRequest(*row) for row in rows]

    def last_request(self) -> int:
        return int(self._database.execute("SELECT coalesce(max(id), 0) FROM worker_command")[0][0])

    def answer(self, id: int, record: bytes) -> None:
        self._database.write(
            "INSERT INTO worker_answer VALUES(%s, %s, %s) ON CONFLICT(command, worker) DO UPDATE SET "
            "record = excluded.record",
            (id, self._worker, record),
        )

    def close(self) -> None:
        self._database.close()
