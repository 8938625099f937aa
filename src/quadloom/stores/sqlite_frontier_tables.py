"""The frontier's tables: statements and batches, no scheduling.

`url` has the key (host, fingerprint): links stay mostly within a host, so a page's new links fall on few leaves of
the tree. `queue` holds what may be leased, in the order of leasing, and only ever sees inserts and deletes; `later`
does the same for what is due at a known time. `host` carries the durable clocks; robots files rest in a table of
their own, because a host row is rewritten with every batch.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from quadloom.model.link import Discovery, LinkKind
from quadloom.model.outcome import Settlement
from quadloom.model.url import site_of
from quadloom.stores.frontier_policy import (
    SUCCESSES,
    Order,
    Past,
    UrlState,
    attempt_after,
    priority_after,
    priority_due,
    rank,
    state_after,
    token_of,
)
from quadloom.stores.frontier_workbench import Entry, HostState
from quadloom.stores.protocols import HostRow
from quadloom.stores.sqlite_database import SqliteDatabase

_HOST = (
    "id, name, site, address, delay, next_at, blocked_until, block_reason, failures, queued, pages, spent, budget, "
    "crawl_delay"
)
_URL = "host_id, fingerprint, state, priority, depth, score, due, attempt, visits, token"
_RANK = {"breadth-first": "depth, -score", "importance": "-score, depth", "random": "0.0, 0.0"}
_LOOKUP = 256  # pairs in one lookup; a fixed size keeps the statement prepared


class UrlRow(NamedTuple):
    host_id: int
    fingerprint: int
    state: int
    priority: int
    depth: int
    score: float
    due: float = 0.0
    attempt: int = 1
    visits: int = 0
    token: float = -1.0

    def due_now(self, refresh_first: bool) -> UrlRow:
        priority = priority_due(self.priority, self.visits, refresh_first)
        return self._replace(state=UrlState.QUEUED, priority=priority)


class SettledRow(NamedTuple):
    row: UrlRow
    settlement: Settlement


class Batch:
    """Moves of URLs, gathered and then written table by table: `executemany` costs a third of single statements.

    A URL may move once per batch.
    """

    def __init__(self, tables: FrontierTables) -> None:
        self._tables = tables
        self._unqueue: list[tuple[int, int, float, float, int]] = []
        self._queue: list[tuple[int, int, float, float, int]] = []
        self._unwait: list[tuple[float, int, int]] = []
        self._wait: list[tuple[float, int, int]] = []
        self.queued: dict[int, int] = {}  # host id to change of its queue's length

    def leave(self, row: UrlRow) -> None:
        self._tables.counts[row.state] -= 1
        if row.state == UrlState.QUEUED:
            self._unqueue.append(self._place(row))
            self.queued[row.host_id] = self.queued.get(row.host_id, 0) - 1
        elif row.state == UrlState.WAITING:
            self._unwait.append((row.due, row.host_id, row.fingerprint))

    def enter(self, row: UrlRow) -> None:
        self._tables.counts[row.state] += 1
        if row.state == UrlState.QUEUED:
            self._queue.append(self._place(row))
            self.queued[row.host_id] = self.queued.get(row.host_id, 0) + 1
        elif row.state == UrlState.WAITING:
            self._wait.append((row.due, row.host_id, row.fingerprint))
            self._tables.first_due = min(self._tables.first_due, row.due)

    def enter_new(self, rows: Sequence[UrlRow]) -> None:
        """`enter` for URLs that nobody knew, all QUEUED: nearly every row that a crawl writes comes this way."""
        order, queue, queued = self._tables.order, self._queue, self.queued
        for host_id, fingerprint, _, priority, depth, score, *_ in rows:
            queue.append((host_id, *rank(order, priority, depth, score), fingerprint))
            queued[host_id] = queued.get(host_id, 0) + 1
        self._tables.counts[UrlState.QUEUED] += len(rows)

    def _place(self, row: UrlRow) -> tuple[int, int, float, float, int]:
        priority, first, second = rank(self._tables.order, row.priority, row.depth, row.score)
        return row.host_id, priority, first, second, row.fingerprint

    def write(self) -> None:
        many = self._tables.database.executemany
        if self._unqueue:
            many(
                "DELETE FROM queue WHERE host_id=? AND priority=? AND first=? AND second=? AND fingerprint=?",
                self._unqueue,
            )
        if self._unwait:
            many("DELETE FROM later WHERE due=? AND host_id=? AND fingerprint=?", self._unwait)
        if self._queue:
            many("INSERT OR IGNORE INTO queue VALUES(?,?,?,?,?)", sorted(self._queue))
        if self._wait:
            many("INSERT OR IGNORE INTO later VALUES(?,?,?)", self._wait)
        changed = [(delta, host) for host, delta in self.queued.items() if delta]
        if changed:
            many("UPDATE host SET queued = queued + ? WHERE id=?", changed)
        self._tables.write_counts()


class FrontierTables:
    """`counts` (URLs by state) and `first_due` mirror the tables; `reload` reads them again after a rollback."""

    def __init__(self, database: SqliteDatabase, order: Order) -> None:
        self.database = database
        self.order: Order = order
        self.counts: list[int] = []
        self.first_due = float("inf")
        self.reload()

    def reload(self) -> None:
        stored = self.value("counts")
        self.counts = list(array("q", stored)) if stored else [0] * len(UrlState)
        self.read_first_due()

    def read_first_due(self) -> None:
        first = self.database.execute("SELECT due FROM later ORDER BY due LIMIT 1").fetchone()
        self.first_due = first[0] if first else float("inf")

    def value(self, name: str) -> bytes | None:
        row = self.database.execute("SELECT value FROM frontier_value WHERE name=?", (name,)).fetchone()
        return row[0] if row else None

    def set_value(self, name: str, value: bytes) -> None:
        self.database.execute("INSERT OR REPLACE INTO frontier_value VALUES(?,?)", (name, value))

    def write_counts(self) -> None:
        self.set_value("counts", array("q", self.counts).tobytes())

    def host_ids(self, names: Sequence[str], *, create: bool) -> dict[str, int]:
        found: dict[str, int] = {}
        for start in range(0, len(names), 500):
            part = names[start : start + 500]
            marks = ",".join("?" * len(part))
            found.update(self.database.execute(f"SELECT name, id FROM host WHERE name IN ({marks})", part))
        missing = [name for name in names if name not in found] if create else []
        for name in missing:
            cursor = self.database.execute("INSERT INTO host(name, site) VALUES(?,?)", (name, site_of(name)))
            assert cursor.lastrowid is not None
            found[name] = cursor.lastrowid
        return found

    def host_state(self, id: int) -> HostState | None:
        row = self.database.execute(f"SELECT {_HOST} FROM host WHERE id=?", (id,)).fetchone()
        return _host_state(row) if row else None

    def hosts_with_work(self, now: float) -> Iterator[HostState]:
        """Hosts whose durable clock allows a visit, the longest free first."""
        statement = f"SELECT {_HOST} FROM host WHERE queued > 0 AND ready_at <= ? ORDER BY ready_at"
        return map(_host_state, self.database.execute(statement, (now,)))

    def waking_hosts(self, now: float) -> Iterator[tuple[int, float]]:
        """(id, time) of hosts that have work after `now`, the earliest first."""
        statement = "SELECT id, ready_at FROM host WHERE queued > 0 AND ready_at > ? ORDER BY ready_at"
        return iter(self.database.execute(statement, (now,)))

    def write_hosts(self, hosts: Iterable[HostState]) -> None:
        self.database.executemany(
            "UPDATE host SET address=?, delay=?, next_at=?, blocked_until=?, block_reason=?, ready_at=?, failures=?, "
            "pages=?, spent=?, budget=?, crawl_delay=? WHERE id=?",
            [
                (
                    h.address, h.delay, h.next_at, h.blocked_until, h.block_reason, h.free_at, h.failures, h.pages,
                    h.spent, h.budget, h.crawl_delay, h.id,
                )
                for h in hosts
            ],
        )  # fmt: skip

    def host_rows(self, where: str, values: Sequence[str | int]) -> list[HostRow]:
        columns = ", ".join("h." + column for column in _HOST.split(", ")[1:])
        cursor = self.database.execute(
            f"SELECT {columns}, r.data, r.expires FROM host h LEFT JOIN robots r ON r.host_id = h.id {where}", values
        )
        return [
            HostRow(
                host=name, site=site, address=address, delay=delay, next_at=next_at, blocked_until=blocked_until,
                block_reason=reason, failures=failures, queued=queued, pages=pages, spent=spent, budget=budget,
                crawl_delay=crawl_delay, robots=data or b"", robots_expires=expires or 0.0,
            )
            for name, site, address, delay, next_at, blocked_until, reason, failures, queued, pages, spent, budget,
            crawl_delay, data, expires in cursor
        ]  # fmt: skip

    def urls(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRow]:
        """Rows of those (host, fingerprint) that are known."""
        found: dict[int, UrlRow] = {}
        for start in range(0, len(pairs), _LOOKUP):
            part = pairs[start : start + _LOOKUP]
            size = 1 << (len(part) - 1).bit_length()
            padded = [*part, *((-1, 0) for _ in range(size - len(part)))]
            # CROSS JOIN fixes the order of loops: one key search per pair, never a scan of the table.
            statement = (
                f"WITH wanted(h, f) AS (VALUES {','.join(['(?,?)'] * size)}) SELECT {_URL} "
                "FROM wanted CROSS JOIN url ON host_id = h AND fingerprint = f"
            )
            values = [value for pair in padded for value in pair]
            found.update((row[1], UrlRow(*row)) for row in self.database.execute(statement, values))
        return found

    def insert(self, found: Sequence[tuple[UrlRow, Discovery]]) -> None:
        self.database.executemany(
            "INSERT INTO url(host_id, fingerprint, href, key, state, priority, depth, score, kind, via, anchor) "
            "VALUES(?,?,?,?,?,?,?,?,?,?,?)",
            [
                (
                    row[0], row[1], d.href, None if d.key == d.href else d.key, row[2], row[3], row[4], row[5], d.kind,
                    d.via, d.anchor,
                )
                for row, d in found
            ],
        )  # fmt: skip

    def update(self, rows: Iterable[UrlRow]) -> None:
        self.database.executemany(
            "UPDATE url SET state=?, priority=?, depth=?, due=? WHERE host_id=? AND fingerprint=?",
            [(r.state, r.priority, r.depth, r.due, r.host_id, r.fingerprint) for r in rows],
        )

    def update_settled(self, rows: Iterable[SettledRow]) -> None:
        """As `update`, with what the visit left behind. Validators change only with a page that was read."""
        plain, read = [], []
        for r, settlement in rows:
            place = (r.host_id, r.fingerprint)
            values = (r.state, r.priority, r.due, r.attempt, r.visits, str(settlement.outcome), r.token)
            if settlement.page is not None and settlement.outcome in SUCCESSES:
                read.append((*values, settlement.page.etag, settlement.page.last_modified, *place))
            else:
                plain.append((*values, *place))
        columns = "state=?, priority=?, due=?, attempt=?, visits=?, outcome=?, token=?"
        where = "WHERE host_id=? AND fingerprint=?"
        self.database.executemany(f"UPDATE url SET {columns} {where}", plain)
        self.database.executemany(f"UPDATE url SET {columns}, etag=?, last_modified=? {where}", read)

    def count_attempts(self, pairs: Iterable[tuple[int, int]]) -> None:
        self.database.executemany(
            f"UPDATE url SET attempt = attempt + 1 WHERE host_id=? AND fingerprint=? AND state={int(UrlState.QUEUED)}",
            pairs,
        )

    def count_leased_attempts(self, leased: bytes) -> None:
        numbers = array("q", leased)
        self.count_attempts(zip(numbers[::2], numbers[1::2], strict=True))

    def due(self, now: float, limit: int) -> list[UrlRow]:
        columns = ", ".join("u." + column for column in _URL.split(", "))
        cursor = self.database.execute(
            f"SELECT {columns} FROM later l CROSS JOIN url u "
            "ON u.host_id = l.host_id AND u.fingerprint = l.fingerprint WHERE l.due <= ? ORDER BY l.due LIMIT ?",
            (now, limit),
        )
        return [UrlRow(*row) for row in cursor]

    def scan_scoped(self) -> Iterator[list[tuple[UrlRow, str, str]]]:
        """All URLs that a scope decides about, with href and host name, in chunks that fit into memory."""
        columns = ", ".join("u." + column for column in _URL.split(", "))
        states = ", ".join(str(int(s)) for s in (UrlState.QUEUED, UrlState.WAITING, UrlState.OUT_OF_SCOPE))
        place = (-1, 0)
        while True:
            rows = self.database.execute(
                f"SELECT {columns}, u.href, h.name FROM url u JOIN host h ON h.id = u.host_id "
                f"WHERE (u.host_id, u.fingerprint) > (?, ?) AND u.state IN ({states}) "
                "ORDER BY u.host_id, u.fingerprint LIMIT 5000",
                place,
            ).fetchall()
            if not rows:
                return
            yield [(UrlRow(*row[:-2]), row[-2], row[-1]) for row in rows]
            place = (rows[-1][0], rows[-1][1])

    def park(self, host_id: int, held: Sequence[int]) -> int:
        """Take a spent host's URLs off the queue, but not those under way, requests and known pages. Returns the change
        of the queue's length."""
        chosen = f"host_id=? AND priority > 0 AND fingerprint NOT IN ({','.join('?' * len(held))})"
        parked = int(UrlState.OVER_BUDGET)
        cursor = self.database.execute(
            f"UPDATE url SET state={parked} WHERE host_id=? AND visits=0 AND fingerprint IN "
            f"(SELECT fingerprint FROM queue WHERE {chosen})",
            (host_id, host_id, *held),
        )
        chosen += f" AND fingerprint IN (SELECT fingerprint FROM url WHERE host_id=? AND state={parked})"
        self.database.execute(f"DELETE FROM queue WHERE {chosen}", (host_id, *held, host_id))
        return self._shift(host_id, UrlState.QUEUED, UrlState.OVER_BUDGET, cursor.rowcount)

    def unpark(self, host_id: int) -> int:
        """Queue them again. Returns the change of the queue's length."""
        cursor = self.database.execute(
            f"UPDATE url SET state={int(UrlState.QUEUED)} WHERE host_id=? AND state={int(UrlState.OVER_BUDGET)}",
            (host_id,),
        )
        if cursor.rowcount:
            self.rebuild_queue(host_id)
        return self._shift(host_id, UrlState.OVER_BUDGET, UrlState.QUEUED, cursor.rowcount)

    def _shift(self, host_id: int, before: UrlState, after: UrlState, number: int) -> int:
        """Returns the change of the queue's length."""
        change = -number if before is UrlState.QUEUED else number
        if number:
            self.counts[before] -= number
            self.counts[after] += number
            self.database.execute("UPDATE host SET queued = queued + ? WHERE id=?", (change, host_id))
            self.write_counts()
        return change

    def write_robots(self, host_id: int, data: bytes, expires: float) -> None:
        self.database.execute("INSERT OR REPLACE INTO robots VALUES(?,?,?)", (host_id, data, expires))

    def past(self, row: UrlRow) -> Past:
        statement = "SELECT outcome, kind, via FROM url WHERE host_id=? AND fingerprint=?"
        return Past(*self.database.execute(statement, (row.host_id, row.fingerprint)).fetchone())

    def ahead(self, row: UrlRow) -> int:
        """URLs of the same host that are leased first."""
        place = (*rank(self.order, row.priority, row.depth, row.score), row.fingerprint)
        statement = "SELECT count(*) FROM queue WHERE host_id=? AND (priority, first, second, fingerprint) < (?,?,?,?)"
        return int(self.database.execute(statement, (row.host_id, *place)).fetchone()[0])

    def last_host_id(self) -> int:
        return int(self.database.execute("SELECT ifnull(max(id), 0) FROM host").fetchone()[0])

    def host_counts(self, now: float) -> tuple[int, int]:
        """All hosts, and those blocked now. Hosts are never deleted, so the last id is their number."""
        blocked = self.database.execute("SELECT count(*) FROM host WHERE blocked_until > max(?, 0)", (now,)).fetchone()
        return self.last_host_id(), int(blocked[0])

    def front(self, host_id: int, limit: int, priorities: Sequence[int] = ()) -> list[Entry]:
        """The first of a host's queue, of these priorities only where any are given."""
        chosen = f" AND q.priority IN ({','.join(map(str, priorities))})" if priorities else ""
        cursor = self.database.execute(
            "SELECT q.priority, q.first, q.second, q.fingerprint, u.href, ifnull(u.key, u.href), u.depth, u.score, "
            "u.kind, u.attempt, u.etag, u.last_modified, u.visits > 0, u.via, u.anchor "
            "FROM queue q CROSS JOIN url u ON u.host_id = q.host_id AND u.fingerprint = q.fingerprint "
            f"WHERE q.host_id=?{chosen} ORDER BY q.priority, q.first, q.second, q.fingerprint LIMIT ?",
            (host_id, limit),
        )
        return cursor.fetchall()

    def rebuild_queue(self, host_id: int | None = None) -> None:
        """Fill the queue from the URLs' states: after the order changed, or (one host) after parked URLs came back."""
        where = "" if host_id is None else " AND host_id=?"
        values = () if host_id is None else (host_id,)
        self.database.execute(f"DELETE FROM queue WHERE 1=1{where}", values)
        self.database.execute(
            f"INSERT INTO queue SELECT host_id, priority, {_RANK[self.order]}, fingerprint FROM url "
            f"WHERE state={int(UrlState.QUEUED)}{where}",
            values,
        )


def after_settlement(row: UrlRow, settlement: Settlement) -> UrlRow:
    return row._replace(
        state=state_after(settlement),
        priority=priority_after(row.priority, settlement),
        due=settlement.again_at or 0.0,
        attempt=attempt_after(settlement),
        visits=row.visits + (settlement.outcome in SUCCESSES),
        token=token_of(settlement),
    )


def entry_of(found: Discovery, row: UrlRow, order: Order) -> Entry:
    kind: LinkKind = found.kind
    place = rank(order, row.priority, row.depth, row.score)
    return (*place, row.fingerprint, found.href, found.key, row.depth, row.score, kind, 1, "", "", False, found.via,
            found.anchor)  # fmt: skip


def _host_state(
    row: tuple[int, str, str, str, float, float, float, str, int, int, int, float, float, float],
) -> HostState:
    host = HostState(row[0], row[1], row[2])
    host.address, host.delay, host.next_at, host.blocked_until, host.block_reason = row[3:8]
    host.failures, host.queued, host.pages, host.spent, host.budget, host.crawl_delay = row[8:14]
    return host
