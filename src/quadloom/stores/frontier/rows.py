"""Rows of the frontier's tables, and moves of rows: what the rules decide about, and what statements read and write.
SQLite and PostgreSQL differ in statements and never in what a settlement means.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quadloom.model.link import Discovery
from quadloom.model.outcome import READ_OUTCOMES, Settlement
from quadloom.stores.frontier.host_table import HostState, QueuedUrl
from quadloom.stores.frontier.policy import (
    Order,
    UrlState,
    attempt_after,
    is_wanted_again,
    priority_after,
    priority_due,
    rank,
    state_after,
    token_of,
)
from quadloom.stores.protocols.frontier import HostRow, ScopeRules

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


class FoundUrl(NamedTuple):
    """A URL with the link by which it was found first."""

    row: UrlRow
    href: str
    key: str
    via: int
    anchor: str


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

    def __init__(self, order: Order) -> None:
        self._order: Order = order
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

    def enter_new(self, rows: Sequence[UrlRow]) -> None:
        """`enter` for URLs that are new, all QUEUED: nearly every row that a crawl writes comes this way."""
        order, queue, queued = self._order, self.queue, self.queued
        for host_id, fingerprint, _, priority, depth, score, *_ in rows:
            queue.append((host_id, *rank(order, priority, depth, score), fingerprint))
            queued[host_id] = queued.get(host_id, 0) + 1
        self.counts[UrlState.QUEUED] += len(rows)

    def _place(self, row: UrlRow) -> QueueRow:
        priority, first, second = rank(self._order, row.priority, row.depth, row.score, row.due)
        return row.host_id, priority, first, second, row.fingerprint


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
    """A URL that was just inserted, as `SqlQueue.front` would return it."""
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
