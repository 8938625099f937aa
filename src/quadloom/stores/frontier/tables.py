"""What a frontier over tables asks of them: rows, moves of rows, and the statements as a seam.

`table_frontier` decides, `frontier_leasing` hands out, and both speak to a database only through `FrontierTables`, so
that SQLite and PostgreSQL differ in statements and never in what a settlement means.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from quadloom.model.link import Discovery, LinkKind
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
from quadloom.stores.frontier.scoring import Place
from quadloom.stores.protocols.frontier import HostRow

QueueRow = tuple[int, int, float, float, int]  # host id, priority, first, second, fingerprint: a row of the queue
WaitingRow = tuple[float, int, int]  # due, host id, fingerprint


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


class UrlBatch:
    """Moves of URLs, gathered and then written table by table: one statement for many rows costs a third of many.

    A URL may move once per batch.
    """

    def __init__(self, tables: FrontierTables) -> None:
        self._tables = tables
        self.left_queue: list[QueueRow] = []
        self.queue: list[QueueRow] = []
        self.left_later: list[WaitingRow] = []
        self.later: list[WaitingRow] = []
        self.queued: dict[int, int] = {}  # host id to change of its queue's length
        self.counts = [0] * len(UrlState)  # change of the number of URLs by state

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
            self._tables.first_due = min(self._tables.first_due, row.due)

    def enter_new(self, rows: Sequence[UrlRow]) -> None:
        """`enter` for URLs that nobody knew, all QUEUED: nearly every row that a crawl writes comes this way."""
        order, queue, queued = self._tables.order, self.queue, self.queued
        for host_id, fingerprint, _, priority, depth, score, *_ in rows:
            queue.append((host_id, *rank(order, priority, depth, score), fingerprint))
            queued[host_id] = queued.get(host_id, 0) + 1
        self.counts[UrlState.QUEUED] += len(rows)

    def _place(self, row: UrlRow) -> QueueRow:
        priority, first, second = rank(self._tables.order, row.priority, row.depth, row.score, row.due)
        return row.host_id, priority, first, second, row.fingerprint

    def write(self) -> None:
        self._tables.write_moves(self)


class FrontierDatabase(Protocol):
    """The database as the frontier sees it."""

    @property
    def writable(self) -> bool: ...

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing; inner blocks join the outer one."""
        ...


class FrontierTables(Protocol):
    """Statements of one database. `first_due` mirrors the table; `reload` reads it again after a rollback.

    `prefetch`: URLs of a host that are read ahead for many hosts at once; 0 where a question costs no round trip.
    """

    order: Order
    first_due: float
    prefetch: int

    @property
    def database(self) -> FrontierDatabase: ...

    def reload(self) -> None: ...

    def read_first_due(self) -> None: ...

    def counts(self) -> Sequence[int]:
        """URLs by state."""
        ...

    def host_counts(self, now: float) -> tuple[int, int]:
        """All hosts, and those blocked now."""
        ...

    def host_ids(self, names: Sequence[str], *, create: bool) -> dict[str, int]: ...

    def host_states(self, ids: Sequence[int]) -> list[HostState]:
        """Of those that exist."""
        ...

    def hosts_with_work(self, now: float, seated: Collection[int], limit: int) -> list[HostState]:
        """Hosts whose durable clock allows a visit, the longest free first, without those `seated` already."""
        ...

    def next_wake(self, now: float, seated: Collection[int]) -> float:
        """When the first host that is not `seated` has work, after `now`; infinity = never."""
        ...

    def write_hosts(self, hosts: Iterable[HostState]) -> None: ...

    def host_row(self, name: str) -> HostRow | None: ...

    def host_rows(self, limit: int, offset: int) -> list[HostRow]:
        """By name."""
        ...

    def write_robots(self, host_id: int, data: bytes, expires: float) -> None: ...

    def urls(self, pairs: Sequence[tuple[int, int]]) -> dict[int, UrlRow]:
        """Rows of those (host, fingerprint) that are known."""
        ...

    def insert(self, found: Sequence[tuple[UrlRow, Discovery]]) -> None: ...

    def update(self, rows: Iterable[UrlRow]) -> None: ...

    def update_scores(self, rows: Sequence[UrlRow]) -> None: ...

    def update_settled(self, rows: Iterable[SettledRow]) -> None:
        """As `update`, with what the visit left behind. Validators change only with a page that was read."""
        ...

    def write_moves(self, batch: UrlBatch) -> None: ...

    def note_leased(self, pairs: Sequence[tuple[int, int]]) -> None:
        """(host, fingerprint) of all that is under way, for the attempt count after a crash."""
        ...

    def count_attempts(self, pairs: Sequence[tuple[int, int]]) -> None:
        """One attempt more for those that are queued."""
        ...

    def due(self, now: float, limit: int) -> list[UrlRow]: ...

    def soonest(self, limit: int) -> list[tuple[int, str, float]]:
        """Fingerprint, host name and time of the pages that wait for a refresh, the soonest due first."""
        ...

    def unread(self, after: Place, limit: int) -> list[UrlRow]:
        """URLs queued for a first read, in the order of the key."""
        ...

    def scan_scoped(self) -> Iterator[list[tuple[UrlRow, str, str]]]:
        """All URLs that a scope decides about, with href and host name, in chunks that fit into memory."""
        ...

    def parked_hosts(self) -> list[int]:
        """Hosts that have URLs over their budget."""
        ...

    def park(self, host_id: int, held: Sequence[int]) -> int:
        """Take a spent host's URLs off the queue, but not those under way, requests and known pages. Returns the change
        of the queue's length."""
        ...

    def unpark(self, host_id: int) -> int:
        """Queue them again. Returns the change of the queue's length."""
        ...

    def past(self, row: UrlRow) -> UrlPast: ...

    def ahead(self, row: UrlRow) -> int:
        """URLs of the same host that are leased first."""
        ...

    def front(self, host_id: int, limit: int, priorities: Sequence[int] = ()) -> list[QueuedUrl]:
        """The first of a host's queue, of these priorities only where any are given."""
        ...

    def fronts(self, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]:
        """`front` of many hosts; those without a queue are missing."""
        ...


def after_settlement(row: UrlRow, settlement: Settlement) -> UrlRow:
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
    kind: LinkKind = found.kind
    place = rank(order, row.priority, row.depth, row.score, row.due)
    return (*place, row.fingerprint, found.href, found.key, row.depth, row.score, kind, 1, "", "", False, found.via,
            found.anchor)  # fmt: skip


def host_state(
    row: tuple[int, str, str, str, float, float, float, str, int, int, int, float, float, float],
) -> HostState:
    """From the columns id, name, site, address, delay, next_at, blocked_until, block_reason, failures, queued, pages,
    spent, budget, crawl_delay."""
    host = HostState(row[0], row[1], row[2])
    host.address, host.delay, host.next_at, host.blocked_until, host.block_reason = row[3:8]
    host.failures, host.queued, host.pages, host.spent, host.budget, host.crawl_delay = row[8:14]
    return host


def host_record(
    row: tuple[str, str, str, float, float, float, str, int, int, int, float, float, float, bytes | None, float | None],
) -> HostRow:
    """From the columns of `host_state` without the id, then robots.txt and its expiry, None where there is none."""
    (
        name, site, address, delay, next_at, blocked_until, reason, failures, queued, pages, spent, budget, crawl_delay,
        robots, expires,
    ) = row  # fmt: skip
    return HostRow(
        host=name, site=site, address=address, delay=delay, next_at=next_at, blocked_until=blocked_until,
        block_reason=reason, failures=failures, queued=queued, pages=pages, spent=spent, budget=budget,
        crawl_delay=crawl_delay, robots=robots or b"", robots_expires=expires or 0.0,
    )  # fmt: skip
