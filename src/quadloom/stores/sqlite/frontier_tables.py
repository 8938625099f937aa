"""The frontier's tables on SQLite: one process has all hosts."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from quadloom.model.url import site_of
from quadloom.stores.frontier.host_table import HostState, QueuedUrl
from quadloom.stores.frontier.policy import GUIDED, Order, UrlState
from quadloom.stores.frontier.rows import HOST_COLUMNS, URL_COLUMNS, HostColumns, UrlBatch, UrlRow, qualified
from quadloom.stores.protocols.frontier import ScheduledPage
from quadloom.stores.sql.hosts import SqlHosts
from quadloom.stores.sql.queue import SqlFrontierValues, SqlQueue
from quadloom.stores.sql.statements import Row, delete, insert
from quadloom.stores.sql.urls import SqlUrls
from quadloom.stores.sqlite.database import SqliteDatabase

_LOOKUP = 256  # pairs in one lookup; a fixed size keeps the statement prepared
_LEAVE_LATER = delete("later", "due host_id fingerprint")
_ENTER_LATER = insert("later", "due host_id fingerprint", "ON CONFLICT DO NOTHING")
_DUE = f"SELECT {qualified('u', URL_COLUMNS)} FROM later l CROSS JOIN url u "
_ITS_URL = "ON u.host_id = l.host_id AND u.fingerprint = l.fingerprint"


class SqliteHosts(SqlHosts):
    """See `quadloom.stores.sql.hosts.SqlHosts`."""

    _database: SqliteDatabase

    def _create(self, names: Sequence[str]) -> dict[str, int]:
        made: dict[str, int] = {}
        for name in names:
            cursor = self._database.execute("INSERT INTO host(name, site) VALUES(?,?)", (name, site_of(name)))
            assert cursor.lastrowid is not None
            made[name] = cursor.lastrowid
        return made

    def hosts_with_work(self, now: float, loaded: Collection[int], limit: int) -> list[HostState]:
        statement = f"SELECT {HOST_COLUMNS} FROM host WHERE queued > 0 AND ready_at <= ? ORDER BY ready_at"
        rows = self._database.execute(statement, (now,))
        return [HostColumns(*row).state() for row in islice((row for row in rows if row[0] not in loaded), limit)]

    def next_wake(self, now: float, loaded: Collection[int]) -> float:
        statement = "SELECT id, ready_at FROM host WHERE queued > 0 AND ready_at > ? ORDER BY ready_at"
        waking: Iterator[tuple[int, float]] = iter(self._database.execute(statement, (now,)))
        return next((at for id, at in waking if id not in loaded), float("inf"))

    def move_clocks(self, seconds: float) -> None:
        """Of all hosts that have one."""
        moved = ", ".join(
            f"{name}=iif({name} > 0, {name} + ?1, 0)" for name in ("next_at", "blocked_until", "ready_at")
        )
        self._database.execute(f"UPDATE host SET {moved}", (seconds,))

    def _number(self) -> int:
        return int(self._database.execute("SELECT count(*) FROM host").fetchone()[0])

    def last_host_id(self) -> int:
        return int(self._database.execute("SELECT ifnull(max(id), 0) FROM host").fetchone()[0])


class SqliteUrls(SqlUrls):
    """See `quadloom.stores.sql.urls.SqlUrls`."""

    def __init__(self, database: SqliteDatabase, values: SqlFrontierValues) -> None:
        super().__init__(database)
        self._values = values

    def _look_up(self, pairs: Sequence[tuple[int, int]], columns: str) -> Iterator[Row]:
        for start in range(0, len(pairs), _LOOKUP):
            part = pairs[start : start + _LOOKUP]
            size = 1 << (len(part) - 1).bit_length()
            padded = [*part, *((-1, 0) for _ in range(size - len(part)))]
            # CROSS JOIN fixes the order of loops: one key search per pair, never a scan of the table.
            statement = (
                f"WITH wanted(h, f) AS (VALUES {','.join(['(?,?)'] * size)}) SELECT {columns} "
                "FROM wanted CROSS JOIN url ON host_id = h AND fingerprint = f"
            )
            yield from self._database.execute(statement, [value for pair in padded for value in pair])

    def note_leased(self, pairs: Sequence[tuple[int, int]]) -> None:
        self._values.put("leased", array("q", [number for pair in pairs for number in pair]).tobytes())

    def count_leased_attempts(self) -> None:
        numbers = array("q", self._values.get("leased") or b"")
        self.count_attempts(zip(numbers[::2], numbers[1::2], strict=True))


class SqliteQueue(SqlQueue):
    """See `quadloom.stores.sql.queue.SqlQueue`. The counts of URLs by state are also in memory."""

    prefetch = 0
    # The plus keeps SQLite from searching by this condition instead of by the priority that is asked for: it read and
    # sorted the whole queue of a host each time.
    guided = f"+q.{GUIDED}"
    _database: SqliteDatabase

    def __init__(self, database: SqliteDatabase, values: SqlFrontierValues, order: Order) -> None:
        self._values = values
        self._counts: list[int] = []
        super().__init__(database, order)

    def reload(self) -> None:
        stored = self._values.get("counts")
        self._counts = list(array("q", stored)) if stored else [0] * len(UrlState)
        self.read_first_due()

    def read_first_due(self) -> None:
        found = self._database.execute("SELECT due FROM later ORDER BY due LIMIT 1").fetchone()
        self.first_due = found[0] if found else float("inf")

    def counts(self) -> Sequence[int]:
        if not self._database.writable:
            self.reload()
        return self._counts

    def _count(self, changes: Sequence[int]) -> None:
        self._counts = [number + change for number, change in zip(self._counts, changes, strict=True)]
        self._values.put("counts", array("q", self._counts).tobytes())

    def _write_later(self, batch: UrlBatch) -> None:
        self._database.write_many(_LEAVE_LATER, batch.left_later)
        self._database.write_many(_ENTER_LATER, batch.later)

    def move_due(self, seconds: float) -> None:
        """The time of every visit that waits for one."""
        self._database.execute(f"UPDATE url SET due=due+? WHERE state={int(UrlState.WAITING)}", (seconds,))
        self._database.execute("UPDATE later SET due=due+?", (seconds,))
        self.read_first_due()

    def clamp_due(self, latest: float) -> None:
        """Bring visits that wait for a later time forward to this one."""
        late = "SELECT host_id, fingerprint FROM later WHERE due > ?1"
        self._database.execute(f"UPDATE url SET due=?1 WHERE (host_id, fingerprint) IN ({late})", (latest,))
        self._database.execute("UPDATE later SET due=?1 WHERE due > ?1", (latest,))
        self.read_first_due()

    def index_importance(self) -> None:
        # With all columns of the order, since thousands of URLs may have the same score.
        self._database.execute(
            "CREATE INDEX IF NOT EXISTS queue_by_importance ON queue(host_id, priority, second, fingerprint) "
            f"WHERE +{GUIDED}"
        )
        self._database.execute("DROP INDEX IF EXISTS queue_importance")  # of version 0.2

    def fronts(self, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]:
        return {id: urls for id in host_ids if (urls := self.front(id, limit))}

    def due(self, now: float, limit: int) -> list[UrlRow]:
        statement = f"{_DUE}{_ITS_URL} WHERE l.due <= ? ORDER BY l.due LIMIT ?"
        return [UrlRow(*row) for row in self._database.execute(statement, (now, limit))]

    def retries(self, after: float) -> list[UrlRow]:
        statement = f"{_DUE}{_ITS_URL} WHERE l.due > ? AND (u.visits = 0 OR u.attempt > 1)"
        return [UrlRow(*row) for row in self._database.execute(statement, (after,))]

    def soonest(self, limit: int) -> list[ScheduledPage]:
        rows = self._database.execute(
            f"SELECT l.fingerprint, h.name, l.due FROM later l CROSS JOIN url u {_ITS_URL} "
            "JOIN host h ON h.id = l.host_id WHERE u.visits > 0 AND u.attempt = 1 ORDER BY l.due LIMIT ?",
            (limit,),
        )
        return [ScheduledPage(*row) for row in rows]
