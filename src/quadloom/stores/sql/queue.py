"""The frontier's queues on a database: `queue` holds what may be leased, in the order of leasing, and only ever sees
inserts and deletes; `later` does the same for what is due at a known time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from quadloom.stores.frontier.host_table import QueuedUrl
from quadloom.stores.frontier.policy import RANK_SQL, Order, UrlState, rank
from quadloom.stores.frontier.rows import UrlBatch, UrlRow
from quadloom.stores.protocols.frontier import ScheduledPage
from quadloom.stores.sql.statements import EVERYTHING, SqlCondition, SqlDatabase, delete, first, insert, update, upsert

_QUEUED, _SPENT = int(UrlState.QUEUED), int(UrlState.OVER_BUDGET)
QUEUED_URL = (
    "q.priority, q.first, q.second, q.fingerprint, u.href, coalesce(u.key, u.href), u.depth, u.score, u.kind, "
    "u.attempt, u.etag, u.last_modified, u.visits > 0, u.via, u.anchor"
)
ITS_URL = "url u ON u.host_id = q.host_id AND u.fingerprint = q.fingerprint"
IN_ORDER = "q.priority, q.first, q.second, q.fingerprint"
_LEAVE_QUEUE = delete("queue", "host_id priority first second fingerprint")
_ENTER_QUEUE = insert("queue", "host_id priority first second fingerprint", "ON CONFLICT DO NOTHING")
_LENGTHEN = update("host", "queued", "id", {"queued": "host.queued + {queued}"})
_WRITE_VALUE = upsert("frontier_value", "name value", "name")


class SqlQueue(ABC):
    """What is visited next: `queue` in the order in which a lease reads it, and `later` by due time. In addition the
    number of URLs by state.

    Guarantees: every statement joins an enclosing transaction; a move writes the queues, the hosts' `queued` and the
    counts together, so that they agree after every commit. `order` is fixed while the queue is open. `first_due`
    mirrors `later`; `reload` reads it again after a rollback.

    `prefetch`: URLs per host that are read for many hosts at once; 0 = a question costs no round trip, so each host is
    read when its turn comes.
    """

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
            self.first_due = min([self.first_due, *(due for due, _, _ in batch.later)])
        if batch.queue:
            self._database.write_many(_ENTER_QUEUE, sorted(batch.queue))
        lengths = sorted((host, change) for host, change in batch.queued.items() if change)
        self._database.write_many(_LENGTHEN, [(change, host) for host, change in lengths])
        self._count(batch.counts)

    def front(self, host_id: int, limit: int, priorities: Sequence[int] = ()) -> list[QueuedUrl]:
        """The first URLs of a host's queue; only of these priorities, if any are given."""
        chosen = f" AND q.priority IN ({','.join(map(str, priorities))})" if priorities else ""
        return self._queued(f"q.host_id = ?{chosen} ORDER BY {IN_ORDER} LIMIT ?", (host_id, limit))

    def most_important(self, host_id: int, priority: int, limit: int) -> list[QueuedUrl]:
        """The URLs of a host's queue with this priority (2 or more) and the highest scores. Only if `order` is
        breadth-first, and after `index_importance`."""
        where = f"q.host_id = ? AND q.priority = ? AND {self.guided} ORDER BY q.second, q.fingerprint LIMIT ?"
        return self._queued(where, (host_id, priority, limit))

    def _queued(self, where: str, values: Sequence[int]) -> list[QueuedUrl]:
        join = self._database.dialect.nested_join
        return list(self._database.execute(f"SELECT {QUEUED_URL} FROM queue q {join} {ITS_URL} WHERE {where}", values))

    def ahead(self, row: UrlRow) -> int:
        """URLs of the same host that are leased first."""
        place = (*rank(self.order, row.priority, row.depth, row.score, row.due), row.fingerprint)
        statement = (
            "SELECT count(*) FROM queue WHERE host_id = ? AND (priority, first, second, fingerprint) < (?,?,?,?)"
        )
        found = first(self._database.execute(statement, (row.host_id, *place)))
        return found[0] if found else 0

    def parked_hosts(self) -> list[int]:
        """Hosts that have URLs over their budget."""
        if not self.counts()[UrlState.OVER_BUDGET]:
            return []
        own = self._own()
        statement = f"SELECT DISTINCT u.host_id FROM url u WHERE u.state = {_SPENT}{own.sql}"
        return [row[0] for row in self._database.execute(statement, own.values)]

    def park(self, host_id: int, held: Sequence[int]) -> int:
        """Take a spent host's URLs off the queue, except those in `held`, requests and known pages. Returns the change
        of the queue's length."""
        others = f" AND fingerprint NOT IN ({','.join(map(str, held))})" if held else ""
        chosen = f"host_id = ? AND priority > 0{others}"
        number = self._database.change(
            f"UPDATE url SET state = {_SPENT} WHERE host_id = ? AND visits = 0 AND fingerprint IN "
            f"(SELECT fingerprint FROM queue WHERE {chosen})",
            (host_id, host_id),
        )
        parked = f"fingerprint IN (SELECT fingerprint FROM url WHERE host_id = ? AND state = {_SPENT})"
        self._database.write(f"DELETE FROM queue WHERE {chosen} AND {parked}", (host_id, host_id))
        return self._shift(host_id, UrlState.QUEUED, UrlState.OVER_BUDGET, number)

    def unpark(self, host_id: int) -> int:
        """Queue them again. Returns the change of the queue's length."""
        number = self._database.change(
            f"UPDATE url SET state = {_QUEUED} WHERE host_id = ? AND state = {_SPENT}", (host_id,)
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
            f"WHERE state = {_QUEUED}{where}",
            values,
        )

    def _own(self) -> SqlCondition:
        """Narrows a query over `url u` to the hosts of this process."""
        return EVERYTHING

    def _clear(self) -> None:
        self._database.write("DELETE FROM queue")

    @abstractmethod
    def counts(self) -> Sequence[int]:
        """URLs by state."""

    @abstractmethod
    def _count(self, changes: Sequence[int]) -> None:
        """Add to the numbers of URLs by state."""

    @abstractmethod
    def _write_later(self, batch: UrlBatch) -> None:
        """Write what waits for a later time, and remove what no longer does."""

    @abstractmethod
    def read_first_due(self) -> None: ...

    @abstractmethod
    def index_importance(self) -> None:
        """Make `most_important` quick. Every URL that is queued costs more from then on. Idempotent."""

    @abstractmethod
    def fronts(self, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]:
        """`front` of many hosts; those without a queue are missing."""

    @abstractmethod
    def due(self, now: float, limit: int) -> list[UrlRow]:
        """Waiting URLs whose time has come, the longest due first."""

    @abstractmethod
    def retries(self, after: float) -> list[UrlRow]:
        """Waiting URLs that are due after `after` and are no refreshes."""

    @abstractmethod
    def soonest(self, limit: int) -> list[ScheduledPage]:
        """Pages that wait for a refresh, the soonest due first."""


class SqlFrontierValues:
    """Named values of the frontier as a whole."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    def get(self, name: str) -> bytes | None:
        row = first(self._database.execute("SELECT value FROM frontier_value WHERE name = ?", (name,)))
        return row[0] if row else None

    def put(self, name: str, value: bytes) -> None:
        self._database.write_many(_WRITE_VALUE, [(name, value)])
