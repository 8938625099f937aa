"""The seam between the frontier's rules and a database: rows, moves of rows, and the statements about hosts
(`HostRecords`), URLs (`UrlRecords`) and their order (`UrlQueue`).

`frontier` decides and `leasing` hands out. Both use a database only through these, so that SQLite and PostgreSQL differ
in statements and never in what a settlement means.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from quadloom.model.link import Discovery
from quadloom.model.outcome import READ_OUTCOMES, Settlement
from quadloom.stores.frontier.host_table import HostState, QueuedUrl
from quadloom.stores.frontier.policy import (
    Order,
    UrlPast,
    UrlState,
    attempt_after,
    is_wanted_again,
    priority_after,
    priority_due,
    rank,
    state_after,
    token_of,
)
from quadloom.stores.protocols.frontier import HostRow, Place, ScheduledPage, ScopeRules

# Rows as the statements take them. Plain tuples: nearly every link that a crawl writes makes one of the first kind.
QueueRow = tuple[int, int, float, float, int]  # host id, priority, first, second, fingerprint
WaitingRow = tuple[float, int, int]  # due, host id, fingerprint


class UrlRow(NamedTuple):
    """The columns of `url` that decide about a URL."""

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
    """A URL after its visit was settled, and the settlement."""

    row: UrlRow
    settlement: Settlement


class UrlRank(NamedTuple):
    """What a link that is found again could improve."""

    priority: int
    depth: int

    def is_worse_than(self, found: Discovery) -> bool:
        return found.priority < self.priority or found.depth < self.depth


class ScopedUrl(NamedTuple):
    """A URL with what a scope needs to decide about it."""

    row: UrlRow
    href: str
    host: str


class HostColumns(NamedTuple):
    """The columns of `host` that `HostState` and `HostRow` are made of."""

    id: int
    name: str
    site: str
    address: str
    delay: float
    next_at: float
    blocked_until: float
    block_reason: str
    failures: int
    queued: int
    pages: int
    spent: float
    budget: float
    crawl_delay: float

    def state(self) -> HostState:
        host = HostState(self.id, self.name, self.site)
        host.address, host.delay, host.next_at, host.blocked_until, host.block_reason = self[3:8]
        host.failures, host.queued, host.pages, host.spent, host.budget, host.crawl_delay = self[8:]
        return host

    def row(self, robots: bytes | None, expires: float | None) -> HostRow:
        """`robots` and `expires`: the host's row in `robots`, None if it has none."""
        return HostRow(
            host=self.name,
            site=self.site,
            address=self.address,
            delay=self.delay,
            next_at=self.next_at,
            blocked_until=self.blocked_until,
            block_reason=self.block_reason,
            failures=self.failures,
            queued=self.queued,
            pages=self.pages,
            spent=self.spent,
            budget=self.budget,
            crawl_delay=self.crawl_delay,
            robots=robots or b"",
            robots_expires=expires or 0.0,
        )


HOST_COLUMNS = ", ".join(HostColumns._fields)
URL_COLUMNS = ", ".join(UrlRow._fields)


def qualified(table: str, columns: str) -> str:
    """The columns with the table's name in front, for a join."""
    return ", ".join(f"{table}.{column}" for column in columns.split(", "))


class UrlBatch:
    """Moves of URLs, collected and then written table by table: one statement for many rows costs a third of many.

    A URL may move once per batch.
    """

    def __init__(self, queue: UrlQueue) -> None:
        self._stored = queue
        self.left_queue: list[QueueRow] = []
        self.queue: list[QueueRow] = []
        self.left_later: list[WaitingRow] = []
        self.later: list[WaitingRow] = []
        self.queued: dict[int, int] = {}  # host id to change of its queue's length
        self.counts = [0] * len(UrlState)  # change of the number of URLs by state

    def move(self, before: UrlRow, after: UrlRow) -> None:
        self.leave(before)
        self.enter(after)

    def leave(self, row: UrlRow) -> None:
        self.counts[row.state] -= 1
        if row.state == UrlState.QUEUED:
            self.left_queue.append(self._place(row))
            self.queued[row.host_id] = self.queued.get(row.host_id, 0) - 1
        elif row.state == UrlState.WAITING:
            self.left_later.append((row.due, row.host_id, row.fingerprint))

    def enter(self, row: UrlRow) -> None:
        self.counts[row.state] += 1
        if row.state == UrlState.QUEUED:
            self.queue.append(self._place(row))
            self.queued[row.host_id] = self.queued.get(row.host_id, 0) + 1
        elif row.state == UrlState.WAITING:
            self.later.append((row.due, row.host_id, row.fingerprint))
            self._stored.first_due = min(self._stored.first_due, row.due)

    def enter_new(self, rows: Sequence[UrlRow]) -> None:
        """`enter` for URLs that are new, all QUEUED: nearly every row that a crawl writes comes this way."""
        order, queue, queued = self._stored.order, self.queue, self.queued
        for host_id, fingerprint, _, priority, depth, score, *_ in rows:
            queue.append((host_id, *rank(order, priority, depth, score), fingerprint))
            queued[host_id] = queued.get(host_id, 0) + 1
        self.counts[UrlState.QUEUED] += len(rows)

    def _place(self, row: UrlRow) -> QueueRow:
        priority, first, second = rank(self._stored.order, row.priority, row.depth, row.score, row.due)
        return row.host_id, priority, first, second, row.fingerprint

    def write(self) -> None:
        self._stored.write_moves(self)


class FrontierDatabase(Protocol):
    """What the frontier needs of a database."""

    @property
    def writable(self) -> bool: ...

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing; inner blocks join the outer one."""
        ...


class HostRecords(Protocol):
    """The tables of hosts: `host` with the durable clocks and counters, and `robots`.

    Guarantees: every statement joins an enclosing transaction; a host's id never changes and is never given to another
    host. Searches (`hosts_with_work`, `hosts_with_refreshes`, `next_wake`) find only hosts whose URLs this process may
    lease; reads by name or id find all.
    """

    def host_ids(self, names: Sequence[str], *, create: bool) -> dict[str, int]:
        """Ids by name. Unknown hosts are inserted with `create`, and missing without."""
        ...

    def host_states(self, ids: Sequence[int]) -> list[HostState]:
        """Those that exist."""
        ...

    def hosts_with_work(self, now: float, loaded: Collection[int], limit: int) -> list[HostState]:
        """Hosts whose durable clock allows a visit, the longest free first, without those `loaded` already."""
        ...

    def hosts_with_refreshes(self) -> list[int]:
        """Ids of hosts that have URLs of priority 0 or 1 in their queues, whatever their clocks say."""
        ...

    def next_wake(self, now: float, loaded: Collection[int]) -> float:
        """Time after `now` at which the first host that is not `loaded` has work; infinity = never."""
        ...

    def write_hosts(self, hosts: Iterable[HostState]) -> None: ...

    def clamp_clocks(self, next_at: float, blocked_until: float) -> int:
        """Lower stored clocks that are later than these times. Returns how many hosts had one."""
        ...

    def host_row(self, name: str) -> HostRow | None: ...

    def host_rows(self, limit: int, offset: int, *, own: bool = False) -> list[HostRow]:
        """By name. `own`: only hosts whose URLs this process may lease."""
        ...

    def host_counts(self, now: float) -> tuple[int, int]:
        """All hosts, and those blocked now."""
        ...

    def write_robots(self, host_id: int, data: bytes, expires: float) -> None: ...


class UrlRecords(Protocol):
    """The table `url`: all that is known about every URL ever found.

    Guarantees: every statement joins an enclosing transaction. Nothing here touches the queue: a caller that writes
    another state, priority, depth, score or due time also writes the move (`UrlBatch`), in the same transaction.
    """

    def urls(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRow]:
        """Rows of those (host id, fingerprint) that are known."""
        ...

    def ranks(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRank]:
        """The same, without what most links that were found again do not need: they change nothing."""
        ...

    def insert(self, found: Sequence[tuple[UrlRow, Discovery]]) -> None: ...

    def update(self, rows: Iterable[UrlRow]) -> None: ...

    def update_scores(self, rows: Sequence[UrlRow]) -> None: ...

    def update_settled(self, rows: Iterable[SettledRow]) -> None:
        """As `update`, with outcome and validators of the visit. Only a page that was read changes its validators."""
        ...

    def unread(self, after: Place, limit: int) -> list[UrlRow]:
        """URLs queued for a first read, in the order of the key."""
        ...

    def scan_scoped(self) -> Iterator[list[ScopedUrl]]:
        """All URLs that a scope decides about, in chunks that fit into memory."""
        ...

    def past(self, row: UrlRow) -> UrlPast: ...

    def note_leased(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Store (host id, fingerprint) of all visits in progress, for the attempt count after a crash."""
        ...

    def count_attempts(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Count one attempt more for those (host id, fingerprint) that are queued."""
        ...


class UrlQueue(Protocol):
    """What is visited next: `queue` in the order in which a lease reads it, and `later` by due time. In addition the
    number of URLs by state.

    Guarantees: every statement joins an enclosing transaction; a move writes the queues, the hosts' `queued` and the
    counts together, so that they agree after every commit. `order` is fixed while the queue is open. `first_due`
    mirrors `later`; `reload` reads it again after a rollback.

    `prefetch`: URLs per host that are read for many hosts at once; 0 = a question costs no round trip, so each host is
    read when its turn comes.
    """

    order: Order
    first_due: float
    prefetch: int

    def reload(self) -> None: ...

    def read_first_due(self) -> None: ...

    def counts(self) -> Sequence[int]:
        """URLs by state."""
        ...

    def write_moves(self, batch: UrlBatch) -> None: ...

    def front(self, host_id: int, limit: int, priorities: Sequence[int] = ()) -> list[QueuedUrl]:
        """The first URLs of a host's queue; only of these priorities, if any are given."""
        ...

    def index_importance(self) -> None:
        """Make `most_important` quick. Every URL that is queued costs more from then on. Idempotent."""
        ...

    def most_important(self, host_id: int, priority: int, limit: int) -> list[QueuedUrl]:
        """The URLs of a host's queue with this priority (2 or more) and the highest scores. Only if `order` is
        breadth-first, and after `index_importance`."""
        ...

    def fronts(self, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]:
        """`front` of many hosts; those without a queue are missing."""
        ...

    def ahead(self, row: UrlRow) -> int:
        """URLs of the same host that are leased first."""
        ...

    def due(self, now: float, limit: int) -> list[UrlRow]:
        """Waiting URLs whose time has come, the longest due first."""
        ...

    def retries(self, after: float) -> list[UrlRow]:
        """Waiting URLs that are due after `after` and are no refreshes."""
        ...

    def soonest(self, limit: int) -> list[ScheduledPage]:
        """Pages that wait for a refresh, the soonest due first."""
        ...

    def parked_hosts(self) -> list[int]:
        """Hosts that have URLs over their budget."""
        ...

    def park(self, host_id: int, held: Sequence[int]) -> int:
        """Take a spent host's URLs off the queue, except those in `held`, requests and known pages. Returns the change
        of the queue's length."""
        ...

    def unpark(self, host_id: int) -> int:
        """Queue them again. Returns the change of the queue's length."""
        ...


def after_settlement(row: UrlRow, settlement: Settlement) -> UrlRow:
    """The row of a URL after its visit."""
    again = is_wanted_again(row.priority, settlement)
    return row._replace(
        state=UrlState.QUEUED if again else state_after(settlement),
        priority=0 if again else priority_after(row.priority, settlement),
        due=0.0 if again else settlement.again_at or 0.0,
        attempt=attempt_after(settlement),
        visits=row.visits + (settlement.outcome in READ_OUTCOMES),
        token=token_of(settlement),
    )


def queued_url_of(found: Discovery, row: UrlRow, order: Order) -> QueuedUrl:
    """A URL that was just inserted, as `UrlQueue.front` would return it."""
    place = rank(order, row.priority, row.depth, row.score, row.due)
    fresh = (1, "", "", False)  # attempt, etag, last_modified, known
    about = (row.fingerprint, found.href, found.key, row.depth, row.score, found.kind)
    return (*place, *about, *fresh, found.via, found.anchor)


def state_in(scope: ScopeRules, row: UrlRow, href: str, host: str) -> int:
    """The state of a URL under a new scope."""
    if scope.verdict(href, host, row.depth) is not None:
        return UrlState.OUT_OF_SCOPE
    if row.state != UrlState.OUT_OF_SCOPE:
        return row.state
    return UrlState.WAITING if row.due else UrlState.QUEUED


class HeldRefreshes:
    """Refreshes that a crawl with an end leaves to the next one, so that it reads no page twice and does end.

    What falls due after `since` waits, except for the URLs noted here: retries, and what is wanted now."""

    def __init__(self, since: float = math.inf, retries: Iterable[UrlRow] = ()) -> None:
        self.since = since
        self._free = [(row.due, row.host_id, row.fingerprint) for row in retries]
        heapq.heapify(self._free)

    def free(self, row: UrlRow) -> None:
        """This URL need not wait for the next crawl."""
        if self.since < math.inf and row.state == UrlState.WAITING:
            heapq.heappush(self._free, (row.due, row.host_id, row.fingerprint))

    def take(self, now: float, limit: int) -> list[tuple[int, int]]:
        """(host id, fingerprint) of noted URLs that are due; each is returned once."""
        found: list[tuple[int, int]] = []
        while self._free and self._free[0][0] <= now and len(found) < limit:
            found.append(heapq.heappop(self._free)[1:])
        return found

    def first_due(self, first: float) -> float:
        """When something falls due that is not held; `first`: of all that waits."""
        if first <= self.since:
            return first
        return self._free[0][0] if self._free else math.inf
