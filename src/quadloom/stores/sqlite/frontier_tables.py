"""The frontier's tables on SQLite: statements, no scheduling.

`url` has the key (host, fingerprint): links stay mostly within a host, so a page's new links fall on few leaves of
the tree. `queue` holds what may be leased, in the order of leasing, and only ever sees inserts and deletes; `later`
does the same for what is due at a known time. `host` has the durable clocks; robots files are in a table of their own,
because a host row is rewritten with every batch.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from quadloom.model.link import Discovery
from quadloom.model.outcome import READ_OUTCOMES
from quadloom.model.url import site_of
from quadloom.stores.frontier.host_table import HostState, QueuedUrl
from quadloom.stores.frontier.policy import GUIDED, RANK_SQL, Order, UrlPast, UrlState, rank
from quadloom.stores.frontier.tables import (
    HOST_COLUMNS,
    URL_COLUMNS,
    HostColumns,
    ScopedUrl,
    SettledRow,
    UrlBatch,
    UrlRank,
    UrlRow,
    qualified,
)
from quadloom.stores.protocols.frontier import HostRow, Place, ScheduledPage
from quadloom.stores.sqlite.database import SqliteDatabase

_LOOKUP = 256  # pairs in one lookup; a fixed size keeps the statement prepared


class SqliteHosts:
    """See `quadloom.stores.frontier.tables.HostRecords`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def host_ids(self, names: Sequence[str], *, create: bool) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, len(names), 500):
            part = names[start : start + 500]
            marks = ",".join("?" * len(part))
            found.update(self._database.execute(f"SELECT name, id FROM host WHERE name IN ({marks})", part))
        missing = [name for name in names if name not in found] if create else []
        for name in missing:
            cursor = self._database.execute("INSERT INTO host(name, site) VALUES(?,?)", (name, site_of(name)))
            assert cursor.lastrowid is not None
            found[name] = cursor.lastrowid
        return found

    def host_states(self, ids: Sequence[int]) -> list[HostState]:
        rows = (self._database.execute(f"SELECT {HOST_COLUMNS} FROM host WHERE id=?", (id,)).fetchone() for id in ids)
        return [HostColumns(*row).state() for row in rows if row]

    def hosts_with_work(self, now: float, loaded: Collection[int], limit: int) -> list[HostState]:
        statement = f"SELECT {HOST_COLUMNS} FROM host WHERE queued > 0 AND ready_at <= ? ORDER BY ready_at"
        rows = self._database.execute(statement, (now,))
        return [HostColumns(*row).state() for row in islice((row for row in rows if row[0] not in loaded), limit)]

    def hosts_with_refreshes(self) -> list[int]:
        wanted = "EXISTS (SELECT 1 FROM queue WHERE host_id = host.id AND priority <= 1)"
        return [id for (id,) in self._database.execute(f"SELECT id FROM host WHERE queued > 0 AND {wanted}")]

    def next_wake(self, now: float, loaded: Collection[int]) -> float:
        statement = "SELECT id, ready_at FROM host WHERE queued > 0 AND ready_at > ? ORDER BY ready_at"
        waking: Iterator[tuple[int, float]] = iter(self._database.execute(statement, (now,)))
        return next((at for id, at in waking if id not in loaded), float("inf"))

    def write_hosts(self, hosts: Iterable[HostState]) -> None:
        self._database.executemany(
            "UPDATE host SET address=?, delay=?, next_at=?, blocked_until=?, block_reason=?, ready_at=?, failures=?, "
            "pages=?, spent=?, budget=?, crawl_delay=? WHERE id=?",
            [
                (
                    h.address,
                    h.delay,
                    h.next_at,
                    h.blocked_until,
                    h.block_reason,
                    h.free_at,
                    h.failures,
                    h.pages,
                    h.spent,
                    h.budget,
                    h.crawl_delay,
                    h.id,
                )
                for h in hosts
            ],
        )

    def move_clocks(self, seconds: float) -> None:
        """Of all hosts that have one."""
        moved = ", ".join(
            f"{name}=iif({name} > 0, {name} + ?1, 0)" for name in ("next_at", "blocked_until", "ready_at")
        )
        self._database.execute(f"UPDATE host SET {moved}", (seconds,))

    def clamp_clocks(self, next_at: float, blocked_until: float) -> int:
        return self._database.execute(
            "UPDATE host SET next_at=min(next_at, ?1), blocked_until=min(blocked_until, ?2), "
            "ready_at=max(min(next_at, ?1), min(blocked_until, ?2)) WHERE next_at > ?1 OR blocked_until > ?2",
            (next_at, blocked_until),
        ).rowcount

    def host_row(self, name: str) -> HostRow | None:
        rows = self._host_rows("WHERE h.name=?", (name,))
        return rows[0] if rows else None

    def host_rows(self, limit: int, offset: int, shards: Sequence[int] | None = None) -> list[HostRow]:
        return self._host_rows("ORDER BY h.name LIMIT ? OFFSET ?", (limit, offset))

    def _host_rows(self, where: str, values: Sequence[str | int]) -> list[HostRow]:
        columns = qualified("h", HOST_COLUMNS)
        cursor = self._database.execute(
            f"SELECT {columns}, r.data, r.expires FROM host h LEFT JOIN robots r ON r.host_id = h.id {where}", values
        )
        return [HostColumns(*columns).row(robots, expires) for *columns, robots, expires in cursor]

    def host_counts(self, now: float) -> tuple[int, int]:
        blocked = self._database.execute("SELECT count(*) FROM host WHERE blocked_until > max(?, 0)", (now,)).fetchone()
        return self.last_host_id(), int(blocked[0])  # hosts are never deleted, so the last id is their number

    def last_host_id(self) -> int:
        return int(self._database.execute("SELECT ifnull(max(id), 0) FROM host").fetchone()[0])

    def write_robots(self, host_id: int, data: bytes, expires: float) -> None:
        self._database.execute("INSERT OR REPLACE INTO robots VALUES(?,?,?)", (host_id, data, expires))


class SqliteUrls:
    """See `quadloom.stores.frontier.tables.UrlRecords`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def urls(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRow]:
        return {row[1]: UrlRow(*row) for row in self._look_up(pairs, URL_COLUMNS)}

    def ranks(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRank]:
        return {row[0]: UrlRank(*row[1:]) for row in self._look_up(pairs, "fingerprint, priority, depth")}

    def _look_up(self, pairs: Sequence[tuple[int, int]], columns: str) -> Iterator[tuple[Any, ...]]:
        for start in range(0, len(pairs), _LOOKUP):
            part = pairs[start : start + _LOOKUP]
            size = 1 << (len(part) - 1).bit_length()
            padded = [*part, *((-1, 0) for _ in range(size - len(part)))]
            # CROSS JOIN fixes the order of loops: one key search per pair, never a scan of the table.
            statement = (
                f"WITH wanted(h, f) AS (VALUES {','.join(['(?,?)'] * size)}) SELECT {columns} "
                "FROM wanted CROSS JOIN url ON host_id = h AND fingerprint = f"
            )
            values = [value for pair in padded for value in pair]
            yield from self._database.execute(statement, values)

    def insert(self, found: Sequence[tuple[UrlRow, Discovery]]) -> None:
        self._database.executemany(
            "INSERT INTO url(host_id, fingerprint, href, key, state, priority, depth, score, kind, via, anchor) "
            "VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            (  # not a list: a sitemap has 50,000
                (
                    row[0],
                    row[1],
                    d.href,
                    None if d.key == d.href else d.key,
                    row[2],
                    row[3],
                    row[4],
                    row[5],
                    d.kind,
                    d.via,
                    d.anchor,
                )
                for row, d in found
            ),
        )

    def update(self, rows: Iterable[UrlRow]) -> None:
        self._database.executemany(
            "UPDATE url SET state=?, priority=?, depth=?, due=? WHERE host_id=? AND fingerprint=?",
            [(r.state, r.priority, r.depth, r.due, r.host_id, r.fingerprint) for r in rows],
        )

    def update_scores(self, rows: Sequence[UrlRow]) -> None:
        self._database.executemany(
            "UPDATE url SET score=? WHERE host_id=? AND fingerprint=?",
            [(row.score, row.host_id, row.fingerprint) for row in rows],
        )

    def update_settled(self, rows: Iterable[SettledRow]) -> None:
        plain, read = [], []
        for r, settlement in rows:
            place = (r.host_id, r.fingerprint)
            values = (r.state, r.priority, r.due, r.attempt, r.visits, str(settlement.outcome), r.token)
            if settlement.page is not None and settlement.outcome in READ_OUTCOMES:
                read.append((*values, settlement.page.etag, settlement.page.last_modified, *place))
            else:
                plain.append((*values, *place))
        columns = "state=?, priority=?, due=?, attempt=?, visits=?, outcome=?, token=?"
        where = "WHERE host_id=? AND fingerprint=?"
        self._database.executemany(f"UPDATE url SET {columns} {where}", plain)
        self._database.executemany(f"UPDATE url SET {columns}, etag=?, last_modified=? {where}", read)

    def unread(self, after: Place, limit: int) -> list[UrlRow]:
        cursor = self._database.execute(
            f"SELECT {URL_COLUMNS} FROM url WHERE (host_id, fingerprint) > (?, ?) AND visits=0 "
            f"AND state={int(UrlState.QUEUED)} ORDER BY host_id, fingerprint LIMIT ?",
            (*after, limit),
        )
        return [UrlRow(*row) for row in cursor]

    def scan_scoped(self) -> Iterator[list[ScopedUrl]]:
        columns = qualified("u", URL_COLUMNS)
        states = ", ".join(str(int(s)) for s in (UrlState.QUEUED, UrlState.WAITING, UrlState.OUT_OF_SCOPE))
        place = (-1, 0)
        while True:
            rows = self._database.execute(
                f"SELECT {columns}, u.href, h.name FROM url u JOIN host h ON h.id = u.host_id "
                f"WHERE (u.host_id, u.fingerprint) > (?, ?) AND u.state IN ({states}) "
                "ORDER BY u.host_id, u.fingerprint LIMIT 5000",
                place,
            ).fetchall()
            if not rows:
                return
            yield [ScopedUrl(UrlRow(*columns), href, host) for *columns, href, host in rows]
            place = (rows[-1][0], rows[-1][1])

    def past(self, row: UrlRow) -> UrlPast:
        statement = "SELECT outcome, kind, via FROM url WHERE host_id=? AND fingerprint=?"
        return UrlPast(*self._database.execute(statement, (row.host_id, row.fingerprint)).fetchone())


class SqliteFrontierValues:
    """Named values of the frontier as a whole."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database

    def get(self, name: str) -> bytes | None:
        row = self._database.execute("SELECT value FROM frontier_value WHERE name=?", (name,)).fetchone()
        return row[0] if row else None

    def put(self, name: str, value: bytes) -> None:
        self._database.execute("INSERT OR REPLACE INTO frontier_value VALUES(?,?)", (name, value))


_QUEUED_URLS = (
    "SELECT q.priority, q.first, q.second, q.fingerprint, u.href, ifnull(u.key, u.href), u.depth, u.score, "
    "u.kind, u.attempt, u.etag, u.last_modified, u.visits > 0, u.via, u.anchor "
    "FROM queue q CROSS JOIN url u ON u.host_id = q.host_id AND u.fingerprint = q.fingerprint"
)


class SqliteQueue:
    """See `quadloom.stores.frontier.tables.UrlQueue`. The counts of URLs by state are also in memory."""

    prefetch = 0

    def __init__(self, database: SqliteDatabase, values: SqliteFrontierValues, order: Order) -> None:
        self.order: Order = order
        self.first_due = float("inf")
        self._database = database
        self._values = values
        self._counts: list[int] = []
        self.reload()

    def reload(self) -> None:
        stored = self._values.get("counts")
        self._counts = list(array("q", stored)) if stored else [0] * len(UrlState)
        self.read_first_due()

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

    def read_first_due(self) -> None:
        first = self._database.execute("SELECT due FROM later ORDER BY due LIMIT 1").fetchone()
        self.first_due = first[0] if first else float("inf")

    def counts(self) -> Sequence[int]:
        if not self._database.writable:
            self.reload()
        return self._counts

    def _write_counts(self) -> None:
        self._values.put("counts", array("q", self._counts).tobytes())

    def write_moves(self, batch: UrlBatch) -> None:
        many = self._database.executemany
        if batch.left_queue:
            many(
                "DELETE FROM queue WHERE host_id=? AND priority=? AND first=? AND second=? AND fingerprint=?",
                batch.left_queue,
            )
        if batch.left_later:
            many("DELETE FROM later WHERE due=? AND host_id=? AND fingerprint=?", batch.left_later)
        if batch.queue:
            many("INSERT OR IGNORE INTO queue VALUES(?,?,?,?,?)", sorted(batch.queue))
        if batch.later:
            many("INSERT OR IGNORE INTO later VALUES(?,?,?)", batch.later)
        changed = [(delta, host) for host, delta in batch.queued.items() if delta]
        if changed:
            many("UPDATE host SET queued = queued + ? WHERE id=?", changed)
        self._counts = [number + change for number, change in zip(self._counts, batch.counts, strict=True)]
        self._write_counts()

    def front(self, host_id: int, limit: int, priorities: Sequence[int] = ()) -> list[QueuedUrl]:
        chosen = f" AND q.priority IN ({','.join(map(str, priorities))})" if priorities else ""
        return self._database.execute(
            f"{_QUEUED_URLS} WHERE q.host_id=?{chosen} ORDER BY q.priority, q.first, q.second, q.fingerprint LIMIT ?",
            (host_id, limit),
        ).fetchall()

    def index_importance(self) -> None:
        # With all columns of the order, since thousands of URLs may have the same score. The plus keeps SQLite from
        # searching by this condition instead of by the priority that is asked for: it read and sorted the whole queue
        # of a host each time.
        self._database.execute(
            "CREATE INDEX IF NOT EXISTS queue_by_importance ON queue(host_id, priority, second, fingerprint) "
            f"WHERE +{GUIDED}"
        )
        self._database.execute("DROP INDEX IF EXISTS queue_importance")  # of version 0.2

    def most_important(self, host_id: int, priority: int, limit: int) -> list[QueuedUrl]:
        return self._database.execute(
            f"{_QUEUED_URLS} WHERE q.host_id=? AND q.priority=? AND +q.{GUIDED} "
            "ORDER BY q.second, q.fingerprint LIMIT ?",
            (host_id, priority, limit),
        ).fetchall()

    def fronts(self, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]:
        return {id: urls for id in host_ids if (urls := self.front(id, limit))}

    def ahead(self, row: UrlRow) -> int:
        place = (*rank(self.order, row.priority, row.depth, row.score, row.due), row.fingerprint)
        statement = "SELECT count(*) FROM queue WHERE host_id=? AND (priority, first, second, fingerprint) < (?,?,?,?)"
        return int(self._database.execute(statement, (row.host_id, *place)).fetchone()[0])

    def due(self, now: float, limit: int) -> list[UrlRow]:
        columns = qualified("u", URL_COLUMNS)
        cursor = self._database.execute(
            f"SELECT {columns} FROM later l CROSS JOIN url u "
            "ON u.host_id = l.host_id AND u.fingerprint = l.fingerprint WHERE l.due <= ? ORDER BY l.due LIMIT ?",
            (now, limit),
        )
        return [UrlRow(*row) for row in cursor]

    def retries(self, after: float) -> list[UrlRow]:
        columns = qualified("u", URL_COLUMNS)
        cursor = self._database.execute(
            f"SELECT {columns} FROM later l CROSS JOIN url u ON u.host_id = l.host_id AND "
            "u.fingerprint = l.fingerprint WHERE l.due > ? AND (u.visits = 0 OR u.attempt > 1)",
            (after,),
        )
        return [UrlRow(*row) for row in cursor]

    def soonest(self, limit: int) -> list[ScheduledPage]:
        cursor = self._database.execute(
            "SELECT l.fingerprint, h.name, l.due FROM later l CROSS JOIN url u ON u.host_id = l.host_id AND "
            "u.fingerprint = l.fingerprint JOIN host h ON h.id = l.host_id WHERE u.visits > 0 AND u.attempt = 1 "
            "ORDER BY l.due LIMIT ?",
            (limit,),
        )
        return [ScheduledPage(*row) for row in cursor]

    def parked_hosts(self) -> list[int]:
        if not self._counts[UrlState.OVER_BUDGET]:
            return []
        cursor = self._database.execute(f"SELECT DISTINCT host_id FROM url WHERE state={int(UrlState.OVER_BUDGET)}")
        return [row[0] for row in cursor]

    def park(self, host_id: int, held: Sequence[int]) -> int:
        chosen = f"host_id=? AND priority > 0 AND fingerprint NOT IN ({','.join('?' * len(held))})"
        parked = int(UrlState.OVER_BUDGET)
        cursor = self._database.execute(
            f"UPDATE url SET state={parked} WHERE host_id=? AND visits=0 AND fingerprint IN "
            f"(SELECT fingerprint FROM queue WHERE {chosen})",
            (host_id, host_id, *held),
        )
        chosen += f" AND fingerprint IN (SELECT fingerprint FROM url WHERE host_id=? AND state={parked})"
        self._database.execute(f"DELETE FROM queue WHERE {chosen}", (host_id, *held, host_id))
        return self._shift(host_id, UrlState.QUEUED, UrlState.OVER_BUDGET, cursor.rowcount)

    def unpark(self, host_id: int) -> int:
        cursor = self._database.execute(
            f"UPDATE url SET state={int(UrlState.QUEUED)} WHERE host_id=? AND state={int(UrlState.OVER_BUDGET)}",
            (host_id,),
        )
        if cursor.rowcount:
            self.rebuild(host_id)
        return self._shift(host_id, UrlState.OVER_BUDGET, UrlState.QUEUED, cursor.rowcount)

    def _shift(self, host_id: int, before: UrlState, after: UrlState, number: int) -> int:
        """Returns the change of the queue's length."""
        change = -number if before is UrlState.QUEUED else number
        if number:
            self._counts[before] -= number
            self._counts[after] += number
            self._database.execute("UPDATE host SET queued = queued + ? WHERE id=?", (change, host_id))
            self._write_counts()
        return change

    def rebuild(self, host_id: int | None = None) -> None:
        """Fill the queue from the URLs' states: after the order changed, or for one host after URLs were unparked."""
        where = "" if host_id is None else " AND host_id=?"
        values = () if host_id is None else (host_id,)
        self._database.execute(f"DELETE FROM queue WHERE 1=1{where}", values)
        self._database.execute(
            f"INSERT INTO queue SELECT host_id, priority, {RANK_SQL[self.order]}, fingerprint FROM url "
            f"WHERE state={int(UrlState.QUEUED)}{where}",
            values,
        )

    def note_leased(self, pairs: Sequence[tuple[int, int]]) -> None:
        self._values.put("leased", array("q", [number for pair in pairs for number in pair]).tobytes())

    def count_attempts(self, pairs: Sequence[tuple[int, int]]) -> None:
        self._database.executemany(
            f"UPDATE url SET attempt = attempt + 1 WHERE host_id=? AND fingerprint=? AND state={int(UrlState.QUEUED)}",
            pairs,
        )

    def count_leased_attempts(self) -> None:
        numbers = array("q", self._values.get("leased") or b"")
        self.count_attempts(list(zip(numbers[::2], numbers[1::2], strict=True)))
