"""The frontier's tables on a database: statements, no scheduling.

`url` has the key (host, fingerprint): links stay mostly within a host, so a page's new links fall on few leaves of
the tree. `queue` holds what may be leased, in the order of leasing, and only ever sees inserts and deletes; `later`
does the same for what is due at a known time. `host` has the durable clocks; robots files are in a table of their own,
because a host row is rewritten with every batch.

`own` is the condition under which this process may lease the URLs of a host: if many workers share the tables, each has
a part of the hosts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from quadloom.model.link import Discovery
from quadloom.model.outcome import READ_OUTCOMES, Settlement
from quadloom.stores.frontier.host_table import HostState, QueuedUrl
from quadloom.stores.frontier.policy import RANK_SQL, Order, UrlPast, UrlState, rank
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
from quadloom.stores.sql.statements import (
    EVERYTHING,
    Row,
    SqlCondition,
    SqlDatabase,
    delete,
    first,
    insert,
    update,
    upsert,
)

QUEUED, SPENT, WAITING = int(UrlState.QUEUED), int(UrlState.OVER_BUDGET), int(UrlState.WAITING)
_SCOPED = ", ".join(str(int(state)) for state in (UrlState.QUEUED, UrlState.WAITING, UrlState.OUT_OF_SCOPE))
_SCANNED = 5000  # URLs in a chunk
QUEUED_URL = (
    "q.priority, q.first, q.second, q.fingerprint, u.href, coalesce(u.key, u.href), u.depth, u.score, u.kind, "
    "u.attempt, u.etag, u.last_modified, u.visits > 0, u.via, u.anchor"
)
ITS_URL = "url u ON u.host_id = q.host_id AND u.fingerprint = q.fingerprint"
IN_ORDER = "q.priority, q.first, q.second, q.fingerprint"

_WRITE_HOSTS = update(
    "host",
    "address delay next_at blocked_until block_reason ready_at failures pages spent budget crawl_delay",
    "id",
)
_WRITE_ROBOTS = upsert("robots", "host_id data expires", "host_id")
_INSERT_URLS = insert("url", "host_id fingerprint href key state priority depth score kind via anchor")
_UPDATE_URLS = update("url", "state priority depth due", "host_id fingerprint")
_UPDATE_SCORES = update("url", "score", "host_id fingerprint")
_SETTLE_URLS = update(
    "url",
    "state priority due attempt visits outcome token etag last_modified",
    "host_id fingerprint",
    {"etag": "coalesce({etag}, url.etag)", "last_modified": "coalesce({last_modified}, url.last_modified)"},
)
_COUNT_ATTEMPTS = update("url", "", "host_id fingerprint state", {"attempt": "url.attempt + 1"})
_LEAVE_QUEUE = delete("queue", "host_id priority first second fingerprint")
_ENTER_QUEUE = insert("queue", "host_id priority first second fingerprint", "ON CONFLICT DO NOTHING")
_LENGTHEN = update("host", "queued", "id", {"queued": "host.queued + {queued}"})
_WRITE_VALUE = upsert("frontier_value", "name value", "name")


class SqlHosts(ABC):
    """See `quadloom.stores.frontier.tables.HostRecords`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    def host_ids(self, names: Sequence[str], *, create: bool) -> dict[str, int]:
        rows = self._database.among("SELECT name, id FROM host WHERE name {keys}", names)
        found: dict[str, int] = dict(rows)
        missing = [name for name in names if name not in found] if create else []
        if missing:
            found.update(self._create(missing))
        return found

    def host_states(self, ids: Sequence[int]) -> list[HostState]:
        rows = self._database.among(f"SELECT {HOST_COLUMNS} FROM host WHERE id {{keys}}", ids)
        return [HostColumns(*row).state() for row in rows]

    def hosts_with_refreshes(self) -> list[int]:
        own = self._own()
        rows = self._database.execute(
            "SELECT host.id FROM host WHERE host.queued > 0 AND EXISTS (SELECT 1 FROM queue q "
            f"WHERE q.host_id = host.id AND q.priority <= 1){own.sql}",
            own.values,
        )
        return [id for (id,) in rows]

    def write_hosts(self, hosts: Iterable[HostState]) -> None:
        self._database.write_many(
            _WRITE_HOSTS,
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

    def clamp_clocks(self, next_at: float, blocked_until: float) -> int:
        """Of all hosts: another worker has the clocks of its own hosts in memory, and writes them again."""
        *_, least, greatest = self._database.dialect
        clocks = f"{least}(next_at, ?), blocked_until = {least}(blocked_until, ?)"
        free_at = f"{greatest}({least}(next_at, ?), {least}(blocked_until, ?))"
        return self._database.change(
            f"UPDATE host SET next_at = {clocks}, ready_at = {free_at} WHERE next_at > ? OR blocked_until > ?",
            (next_at, blocked_until) * 3,
        )

    def host_row(self, name: str) -> HostRow | None:
        return next(iter(self._host_rows("WHERE h.name = ?", (name,))), None)

    def host_rows(self, limit: int, offset: int, *, own: bool = False) -> list[HostRow]:
        chosen = self._own("h") if own else EVERYTHING
        order = f"WHERE true{chosen.sql} ORDER BY {self._database.dialect.by_name} LIMIT ? OFFSET ?"
        return self._host_rows(order, (*chosen.values, limit, offset))

    def _host_rows(self, where: str, values: Sequence[object]) -> list[HostRow]:
        names = qualified("h", HOST_COLUMNS)
        rows = self._database.execute(
            f"SELECT {names}, r.data, r.expires FROM host h LEFT JOIN robots r ON r.host_id = h.id {where}", values
        )
        return [HostColumns(*columns).row(robots, expires) for *columns, robots, expires in rows]

    def host_counts(self, now: float) -> tuple[int, int]:
        blocked = first(self._database.execute("SELECT count(*) FROM host WHERE blocked_until > ?", (max(now, 0.0),)))
        return self._number(), blocked[0] if blocked else 0

    def write_robots(self, host_id: int, data: bytes, expires: float) -> None:
        self._database.write_many(_WRITE_ROBOTS, [(host_id, data, expires)])

    def _own(self, table: str = "host") -> SqlCondition:
        """Narrows a query to hosts whose URLs this process may lease."""
        return EVERYTHING

    @abstractmethod
    def _create(self, names: Sequence[str]) -> dict[str, int]:
        """Insert hosts. Returns their ids by name."""

    @abstractmethod
    def _number(self) -> int:
        """Of all hosts."""

    @abstractmethod
    def hosts_with_work(self, now: float, loaded: Collection[int], limit: int) -> list[HostState]: ...

    @abstractmethod
    def next_wake(self, now: float, loaded: Collection[int]) -> float: ...


class SqlUrls(ABC):
    """See `quadloom.stores.frontier.tables.UrlRecords`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    def urls(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRow]:
        return {row[1]: UrlRow(*row) for row in self._look_up(pairs, URL_COLUMNS)}

    def ranks(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRank]:
        return {row[0]: UrlRank(*row[1:]) for row in self._look_up(pairs, "fingerprint, priority, depth")}

    def insert(self, found: Sequence[tuple[UrlRow, Discovery]]) -> None:
        self._database.write_many(
            _INSERT_URLS,
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
        changed = [(r.state, r.priority, r.depth, r.due, r.host_id, r.fingerprint) for r in rows]
        self._database.write_many(_UPDATE_URLS, changed)

    def update_scores(self, rows: Sequence[UrlRow]) -> None:
        self._database.write_many(_UPDATE_SCORES, [(row.score, row.host_id, row.fingerprint) for row in rows])

    def update_settled(self, rows: Iterable[SettledRow]) -> None:
        changed = [
            (
                r.state,
                r.priority,
                r.due,
                r.attempt,
                r.visits,
                str(s.outcome),
                r.token,
                *_validators(s),
                r.host_id,
                r.fingerprint,
            )
            for r, s in rows
        ]
        self._database.write_many(_SETTLE_URLS, changed)

    def count_attempts(self, pairs: Iterable[tuple[int, int]]) -> None:
        self._database.write_many(_COUNT_ATTEMPTS, [(*pair, QUEUED) for pair in pairs])

    def unread(self, after: Place, limit: int) -> list[UrlRow]:
        own = self._own()
        rows = self._database.execute(
            f"SELECT {URL_COLUMNS} FROM url u WHERE (host_id, fingerprint) > (?, ?) AND visits = 0 "
            f"AND state = {QUEUED}{own.sql} ORDER BY host_id, fingerprint LIMIT ?",
            (*after, *own.values, limit),
        )
        return [UrlRow(*row) for row in rows]

    def scan_scoped(self) -> Iterator[list[ScopedUrl]]:
        names = qualified("u", URL_COLUMNS)
        place = (-1, 0)
        while True:
            own = self._own()
            rows = list(
                self._database.execute(
                    f"SELECT {names}, u.href, h.name FROM url u JOIN host h ON h.id = u.host_id "
                    f"WHERE (u.host_id, u.fingerprint) > (?, ?) AND u.state IN ({_SCOPED}){own.sql} "
                    f"ORDER BY u.host_id, u.fingerprint LIMIT {_SCANNED}",
                    (*place, *own.values),
                )
            )
            if not rows:
                return
            yield [ScopedUrl(UrlRow(*columns), href, host) for *columns, href, host in rows]
            place = (rows[-1][0], rows[-1][1])

    def past(self, row: UrlRow) -> UrlPast:
        statement = "SELECT outcome, kind, via FROM url WHERE host_id = ? AND fingerprint = ?"
        found = first(self._database.execute(statement, (row.host_id, row.fingerprint)))
        assert found is not None, "the row comes from this table"
        return UrlPast(*found)

    def _own(self) -> SqlCondition:
        """Narrows a query over `url u` to the hosts of this process."""
        return EVERYTHING

    @abstractmethod
    def _look_up(self, pairs: Sequence[tuple[int, int]], columns: str) -> Iterable[Row]:
        """Columns of the URLs with these (host id, fingerprint) that are known."""

    @abstractmethod
    def note_leased(self, pairs: Sequence[tuple[int, int]]) -> None: ...


class SqlQueue(ABC):
    """See `quadloom.stores.frontier.tables.UrlQueue`."""

    prefetch: int
    guided: str  # the condition of the index by importance, for the queue `q`

    def __init__(self, database: SqlDatabase, order: Order) -> None:
        self.order: Order = order
        self.first_due = float("inf")
        self._database = database
        self.reload()

    def reload(self) -> None:
        self.read_first_due()

    def write_moves(self, batch: UrlBatch) -> None:
        if batch.left_queue:
            self._database.write_many(_LEAVE_QUEUE, batch.left_queue)
        if batch.left_later or batch.later:
            self._write_later(batch)
        if batch.queue:
            self._database.write_many(_ENTER_QUEUE, sorted(batch.queue))
        lengths = sorted((host, change) for host, change in batch.queued.items() if change)
        self._database.write_many(_LENGTHEN, [(change, host) for host, change in lengths])
        self._count(batch.counts)

    def front(self, host_id: int, limit: int, priorities: Sequence[int] = ()) -> list[QueuedUrl]:
        chosen = f" AND q.priority IN ({','.join(map(str, priorities))})" if priorities else ""
        return self._queued(f"q.host_id = ?{chosen} ORDER BY {IN_ORDER} LIMIT ?", (host_id, limit))

    def most_important(self, host_id: int, priority: int, limit: int) -> list[QueuedUrl]:
        where = f"q.host_id = ? AND q.priority = ? AND {self.guided} ORDER BY q.second, q.fingerprint LIMIT ?"
        return self._queued(where, (host_id, priority, limit))

    def _queued(self, where: str, values: Sequence[int]) -> list[QueuedUrl]:
        join = self._database.dialect.nested_join
        return list(self._database.execute(f"SELECT {QUEUED_URL} FROM queue q {join} {ITS_URL} WHERE {where}", values))

    def ahead(self, row: UrlRow) -> int:
        place = (*rank(self.order, row.priority, row.depth, row.score, row.due), row.fingerprint)
        statement = (
            "SELECT count(*) FROM queue WHERE host_id = ? AND (priority, first, second, fingerprint) < (?,?,?,?)"
        )
        found = first(self._database.execute(statement, (row.host_id, *place)))
        return found[0] if found else 0

    def parked_hosts(self) -> list[int]:
        if not self.counts()[UrlState.OVER_BUDGET]:
            return []
        own = self._own()
        statement = f"SELECT DISTINCT u.host_id FROM url u WHERE u.state = {SPENT}{own.sql}"
        return [row[0] for row in self._database.execute(statement, own.values)]

    def park(self, host_id: int, held: Sequence[int]) -> int:
        others = f" AND fingerprint NOT IN ({','.join(map(str, held))})" if held else ""
        chosen = f"host_id = ? AND priority > 0{others}"
        number = self._database.change(
            f"UPDATE url SET state = {SPENT} WHERE host_id = ? AND visits = 0 AND fingerprint IN "
            f"(SELECT fingerprint FROM queue WHERE {chosen})",
            (host_id, host_id),
        )
        parked = f"fingerprint IN (SELECT fingerprint FROM url WHERE host_id = ? AND state = {SPENT})"
        self._database.write(f"DELETE FROM queue WHERE {chosen} AND {parked}", (host_id, host_id))
        return self._shift(host_id, UrlState.QUEUED, UrlState.OVER_BUDGET, number)

    def unpark(self, host_id: int) -> int:
        number = self._database.change(
            f"UPDATE url SET state = {QUEUED} WHERE host_id = ? AND state = {SPENT}", (host_id,)
        )
        if number:
            self._database.write("DELETE FROM queue WHERE host_id = ?", (host_id,))
            self._fill(" AND host_id = ?", (host_id,))
        return self._shift(host_id, UrlState.OVER_BUDGET, UrlState.QUEUED, number)

    def _shift(self, host_id: int, before: UrlState, after: UrlState, number: int) -> int:
        """Returns the change of the queue's length."""
        change = -number if before is UrlState.QUEUED else number
        if number:
            self._database.write_many(_LENGTHEN, [(change, host_id)])
            counts = [0] * len(UrlState)
            counts[before], counts[after] = -number, number
            self._count(counts)
        return change

    def rebuild(self) -> None:
        """Fill the queue from the URLs' states, after the order changed."""
        self._clear()
        self._fill()

    def _fill(self, where: str = "", values: Sequence[int] = ()) -> None:
        self._database.write(
            f"INSERT INTO queue SELECT host_id, priority, {RANK_SQL[self.order]}, fingerprint FROM url "
            f"WHERE state = {QUEUED}{where}",
            values,
        )

    def _own(self) -> SqlCondition:
        """Narrows a query over `url u` to the hosts of this process."""
        return EVERYTHING

    def _clear(self) -> None:
        self._database.write("DELETE FROM queue")

    @abstractmethod
    def counts(self) -> Sequence[int]: ...

    @abstractmethod
    def _count(self, changes: Sequence[int]) -> None:
        """Add to the numbers of URLs by state."""

    @abstractmethod
    def _write_later(self, batch: UrlBatch) -> None:
        """Write what waits for a later time, and remove what no longer does."""

    @abstractmethod
    def read_first_due(self) -> None: ...

    @abstractmethod
    def index_importance(self) -> None: ...

    @abstractmethod
    def fronts(self, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]: ...

    @abstractmethod
    def due(self, now: float, limit: int) -> list[UrlRow]: ...

    @abstractmethod
    def retries(self, after: float) -> list[UrlRow]: ...

    @abstractmethod
    def soonest(self, limit: int) -> list[ScheduledPage]: ...


class SqlFrontierValues:
    """Named values of the frontier as a whole."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    def get(self, name: str) -> bytes | None:
        row = first(self._database.execute("SELECT value FROM frontier_value WHERE name = ?", (name,)))
        return row[0] if row else None

    def put(self, name: str, value: bytes) -> None:
        self._database.write_many(_WRITE_VALUE, [(name, value)])


def _validators(settlement: Settlement) -> tuple[str | None, str | None]:
    """ETag and Last-Modified of a page that was read; None = as before."""
    page = settlement.page
    if page is None or settlement.outcome not in READ_OUTCOMES:
        return None, None
    return page.etag, page.last_modified
