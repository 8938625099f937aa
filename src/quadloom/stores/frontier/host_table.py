"""Which host may be asked next: the part of a frontier that is in memory.

Two clocks guard a visit, the host's and its address's, as in BUbiNG: a host sleeps in a heap until its own clock
allows, then queues at its address until that one does, and only then takes its place in its site's turn.
Addresses wake one host at a time, so a thousand hosts behind one address cost no more than one.

    asleep (heap by host clock) → at its address (queue) → ready (sites in turn, hosts in turn within a site) → leased

Sites take turns in a ring: the site that was served goes to its end. A host whose best URL is an explicit request
is in a ring of its own that is served first. Entries in heap and rings are never searched: each carries the ticket
that its host had when it was placed, and a newer ticket makes it void.

A quota (`protocols.frontier.Quota`) alone does not divide the visits of a host that politeness holds back: the class
that is first in its queue would take all of them, and the reads of the others would lapse. So a host serves its
classes in turns (`WeightedRoundRobin`).
"""

from __future__ import annotations

import heapq
from bisect import bisect, insort
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from math import ceil
from typing import Final

from quadloom.model.link import LinkKind
from quadloom.stores.protocols.frontier import Shares, VisitClass

INFINITY = float("inf")


# A URL of a host's queue with everything that a visit needs: priority, first, second, fingerprint, href, key, depth,
# score, kind, attempt, etag, last_modified, known (visited before), via, anchor. The queue's order is the order of the
# tuples: priority, first and second as `policy.rank` gives them, then the fingerprint, which is unique within a host.
# Plain tuples, as a database returns them: a buffer holds dozens for each that is handed out, so naming them all
# would cost 5 µs per page.
QueuedUrl = tuple[int, float, float, int, str, str, int, float, LinkKind, int, str, str, bool, int, str]
PRIORITY: Final = 0  # columns of a `QueuedUrl` that are read before it is handed out
FINGERPRINT: Final = 3
SCORE: Final = 7
KNOWN: Final = 12


class HostState:
    """A host in memory: its durable row as far as leasing needs it, and what is known only in memory."""

    __slots__ = (
        "absent", "active", "address", "answered", "asked_at", "base_delay", "block_reason", "blocked_until", "budget",
        "buffer", "complete", "crawl_delay", "default_budget", "delay", "failures", "guided_credit", "id", "important",
        "is_own", "name", "next_at", "pages", "per_site", "queued", "retired", "site", "spent", "ticket", "turns",
    )  # fmt: skip

    def __init__(self, id: int, name: str, site: str) -> None:
        self.id, self.name, self.site = id, name, site
        self.address = self.block_reason = ""
        self.delay = self.crawl_delay = self.base_delay = 0.0
        self.is_own = False
        self.next_at = self.blocked_until = 0.0
        self.spent = self.budget = self.default_budget = 0.0
        self.failures = self.pages = self.queued = self.active = self.answered = self.ticket = 0
        self.per_site = 1
        self.asked_at = -INFINITY
        self.buffer: list[QueuedUrl] = []
        self.complete = False  # the buffer holds everything that is queued and not leased
        self.absent: set[VisitClass] = set()  # classes known to have no queued URL until the next refill
        self.turns = WeightedRoundRobin()
        self.guided_credit = 0.0  # see `guided.GuidedReads`
        self.important: list[QueuedUrl] = []  # the most important URLs of one priority, not all of them in the buffer
        self.retired = False  # nothing more is handed out: the host goes to another worker

    @property
    def pause(self) -> float:
        """Seconds between two requests: the largest of setting, Crawl-delay and measured pace."""
        return self.base_delay if self.is_own else max(self.base_delay, self.crawl_delay, self.delay)

    @property
    def free_at(self) -> float:
        return max(self.next_at, self.blocked_until)

    @property
    def exhausted(self) -> bool:
        budget = self.budget or self.default_budget
        return 0 < budget <= self.spent

    @property
    def leased(self) -> int:
        """URLs that were handed out and are not settled: `active` ones are being fetched, the others have answered."""
        return self.active + self.answered

    @property
    def _affordable(self) -> int:
        """Concurrent visits that the budget still pays for; at least one, since explicit requests need no budget."""
        budget = self.budget or self.default_budget
        return max(1, ceil(budget - self.spent)) - self.answered if budget > 0 else self.per_site

    @property
    def has_work(self) -> bool:
        more = not self.complete and self.queued > self.leased  # leased URLs still count as queued
        # A failing host gets one visit at a time: one request per back-off window, not `per_site` of them.
        room = 1 if self.failures else min(self.per_site, self._affordable)
        return not self.retired and self.active < room and (bool(self.buffer) or more)

    def may_have(self, kind: VisitClass) -> bool:
        """Whether URLs of a class that the buffer does not hold may be queued behind it."""
        return not self.complete and kind not in self.absent

    def belongs_in_buffer(self, place: tuple[int, float, float], fingerprint: int) -> bool:
        """Whether a newly queued URL comes before the buffer's last one; the others are read when their turn comes."""
        if self.complete:
            return True
        return bool(self.buffer) and (*place, fingerprint) < self.buffer[-1][:4]

    def insert(self, url: QueuedUrl, room: int) -> None:
        insort(self.buffer, url)
        if len(self.buffer) > room:
            self.buffer.pop()
            self.complete = False

    def remove(self, fingerprint: int) -> None:
        for urls in (self.buffer, self.important):
            for index, url in enumerate(urls):  # rarely there: a leased URL has left the buffer
                if url[FINGERPRINT] == fingerprint:
                    del urls[index]
                    break

    def move(self, place: tuple[int, float, float], fingerprint: int, depth: int, score: float) -> None:
        """A queued URL has another place. If it is among the next ones, it moves within them or leaves them. If it
        comes there, those behind it are read again when it is their turn. The others stay: each that is read again is a
        block of the table."""
        held = next((url for url in self.buffer if url[FINGERPRINT] == fingerprint), None)
        if held is not None:
            self.buffer.remove(held)
            _, _, _, _, href, key, _, _, kind, attempt, etag, modified, known, via, anchor = held
            about = (href, key, depth, score, kind, attempt, etag, modified, known, via, anchor)
            moved = (*place, fingerprint, *about)
            if self.complete or (self.buffer and moved < self.buffer[-1]):
                insort(self.buffer, moved)
        elif not self.complete and self.belongs_in_buffer(place, fingerprint):
            del self.buffer[bisect(self.buffer, (*place, fingerprint), key=lambda url: url[:4]) :]
        if any(url[FINGERPRINT] == fingerprint or url[SCORE] < score for url in self.important):
            self.important = []

    def clear_buffer(self) -> None:
        """What is queued may have changed: read it again when it is the host's turn."""
        self.buffer, self.important, self.complete = [], [], False


class WeightedRoundRobin:
    """Which class a host serves next: every waiting class gets its share, evenly mixed (smooth weighted round robin).
    A class with nothing waiting accumulates no credit."""

    __slots__ = ("_credit",)

    def __init__(self) -> None:
        self._credit = [0.0] * len(VisitClass)

    def next(self, shares: Shares, waiting: Collection[VisitClass]) -> VisitClass:
        """One of those `waiting`, at least one of which exists. Changes nothing: the class may turn out to be empty."""
        owed = self._owed(shares, waiting)
        return max(waiting, key=lambda kind: (owed[kind], -kind))

    def served(self, chosen: VisitClass, shares: Shares, waiting: Collection[VisitClass]) -> None:
        self._credit = self._owed(shares, waiting)
        self._credit[chosen] -= 1.0

    def _owed(self, shares: Shares, waiting: Collection[VisitClass]) -> list[float]:
        total = sum(shares[kind] for kind in waiting)
        parts = [shares[kind] / total if total > 0.0 else 1.0 / len(waiting) for kind in VisitClass]
        return [self._credit[kind] + parts[kind] if kind in waiting else 0.0 for kind in VisitClass]


class _Address:
    """`holder`: the one host at this address that is ready, or about to be asked."""

    __slots__ = ("clock", "holder", "listed", "waiting")

    def __init__(self, clock: float) -> None:
        self.clock = clock
        self.waiting: deque[tuple[HostState, int]] = deque()
        self.holder: HostState | None = None
        self.listed = False  # is in the heap


class _Ring:
    """Sites in turn, hosts in turn within each."""

    def __init__(self) -> None:
        self._sites: dict[str, deque[tuple[HostState, int]]] = {}

    def push(self, host: HostState) -> None:
        self._sites.setdefault(host.site, deque()).append((host, host.ticket))

    def pop(self) -> HostState | None:
        while self._sites:
            site = next(iter(self._sites))
            hosts = self._sites.pop(site)
            while hosts:
                host, ticket = hosts.popleft()
                if ticket == host.ticket:
                    if hosts:
                        self._sites[site] = hosts  # a dictionary keeps the order of insertion: to the end of the ring
                    return host
        return None


class HostTable:
    """Holds about `capacity` hosts at most; the others stay in the database and are loaded when they are due."""

    def __init__(self, *, ip_delay: float, opened_at: float, capacity: int = 2048) -> None:
        self.capacity = capacity
        self.loaded: dict[int, HostState] = {}
        self.guests: set[int] = set()  # of these, the ones that were loaded for a refresh, beyond the capacity
        self._ip_delay = ip_delay
        self._opened_at = self._now = opened_at
        self._addresses: dict[str, _Address] = {}
        self._heap: list[tuple[float, int, HostState | _Address, int]] = []
        self._serial = count()
        self._urgent, self._ordinary = _Ring(), _Ring()

    @property
    def full(self) -> bool:
        return self.room <= 0

    @property
    def room(self) -> int:
        """How many more hosts may be loaded, not counting guests."""
        return self.capacity - len(self.loaded) + len(self.guests)

    def place(self, host: HostState) -> None:
        """Insert a host, or insert it again after anything about it changed. A host without work is not scheduled."""
        self.loaded[host.id] = host
        self._void(host)
        if host.has_work:
            heapq.heappush(self._heap, (host.free_at, next(self._serial), host, host.ticket))

    def drop(self, host: HostState) -> None:
        self.loaded.pop(host.id, None)
        self.guests.discard(host.id)
        self._void(host)

    def _void(self, host: HostState) -> None:
        """Make the host's places in heap and rings void, and free its address for the next host."""
        host.ticket += 1
        address = self._addresses.get(host.address)
        if address is not None and address.holder is host:
            address.holder = None
            self._list(address)

    def move(self, host: HostState, address: str) -> None:
        """The host has another address now; the caller places it afterwards."""
        self._void(host)
        host.address = address

    def next(self, now: float) -> HostState | None:
        """The host whose turn it is, None = no host is free. The caller hands out one of its URLs (`start_clocks`), or
        places or drops it."""
        self._now = now
        self._wake(now)
        while (host := self._urgent.pop() or self._ordinary.pop()) is not None:
            address = self._addresses.get(host.address)
            if address is None or address.clock <= now:
                return host
            # A request in progress has shown meanwhile that its host shares this address.
            address.holder = None
            address.waiting.appendleft((host, host.ticket))
            self._list(address)
        return None

    def _wake(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            _, _, sleeper, ticket = heapq.heappop(self._heap)
            if isinstance(sleeper, _Address):
                sleeper.listed = False
                self._wake_next(sleeper, now)
            elif ticket == sleeper.ticket:
                self._queue_at_address(sleeper, now)

    def _queue_at_address(self, host: HostState, now: float) -> None:
        if self._ip_delay <= 0 or not host.address:
            self._make_ready(host)
            return
        address = self._address(host.address)
        if _urgent(host):
            address.waiting.appendleft((host, host.ticket))
        else:
            address.waiting.append((host, host.ticket))
        self._wake_next(address, now)

    def _wake_next(self, address: _Address, now: float) -> None:
        """Make one waiting host ready if the clock allows and no host holds the address."""
        while address.waiting and address.waiting[0][1] != address.waiting[0][0].ticket:
            address.waiting.popleft()
        if not address.waiting or address.holder is not None:
            return
        if address.clock > now:
            self._list(address)
            return
        address.holder = address.waiting.popleft()[0]
        self._make_ready(address.holder)

    def _list(self, address: _Address) -> None:
        if address.waiting and not address.listed:
            address.listed = True
            heapq.heappush(self._heap, (address.clock, next(self._serial), address, 0))

    def _make_ready(self, host: HostState) -> None:
        (self._urgent if _urgent(host) else self._ordinary).push(host)

    def start_clocks(self, host: HostState, now: float) -> float:
        """A URL of this host is handed out: start the clocks of host and address. Returns the address's former one."""
        host.active += 1
        host.asked_at = now
        host.next_at = now + host.pause
        before = self._address_clock(host)
        self.touch_address(host.address, now)
        return before

    def take_turn(self, host: HostState, now: float) -> float:
        """Start both clocks for a request outside of the queue, at the earliest time that they allow: the result."""
        at = max(now, host.free_at, self._address_clock(host))
        host.active += 1
        host.asked_at = at
        host.next_at = at + host.pause
        self.touch_address(host.address, at)
        return at

    def restore_clocks(self, host: HostState, at: float, next_at: float, address_clock: float) -> None:
        """The visit handed out at `at` did not reach the host: restore both clocks, unless they moved since."""
        if host.asked_at == at and host.next_at == at + host.pause:
            host.next_at = next_at
        address = self._addresses.get(host.address)
        if address is not None and address.clock == at + self._ip_delay:
            address.clock = address_clock

    def touch_address(self, name: str, at: float) -> None:
        """A request to this address began at `at`."""
        if name and self._ip_delay > 0:
            address = self._address(name)
            address.clock = max(address.clock, at + self._ip_delay)

    def _address(self, name: str) -> _Address:
        found = self._addresses.get(name)
        if found is None:
            if len(self._addresses) > 4 * self.capacity:
                self._forget_addresses()
            # The process that had this frontier open before may have asked the address a moment ago.
            found = self._addresses[name] = _Address(self._opened_at + self._ip_delay)
        return found

    def _forget_addresses(self) -> None:
        for name, address in list(self._addresses.items()):
            if address.clock <= self._now and not address.waiting and address.holder is None:
                del self._addresses[name]

    def earliest(self, now: float) -> float | None:
        """Earliest time at which `next` could return a host, not before `now`; None = no host in memory has work."""
        times = [max(host.free_at, self._address_clock(host)) for host in self.loaded.values() if host.has_work]
        return max(now, min(times)) if times else None

    def _address_clock(self, host: HostState) -> float:
        if not host.address or self._ip_delay <= 0:
            return 0.0
        return self._address(host.address).clock

    def idle(self, now: float) -> Iterator[HostState]:
        """Hosts that may be unloaded: no visit in progress, and nothing to do before `now`."""
        for host in list(self.loaded.values()):
            if host.leased == 0 and (host.free_at > now or not host.has_work):
                yield host


def _urgent(host: HostState) -> bool:
    return bool(host.buffer) and host.buffer[0][PRIORITY] == 0


class RefreshHosts:
    """Hosts that have refreshes in their queues and no place in memory, each once, the longest free first.

    In a broad crawl there are always more hosts that wait for their first read than the table has places. They would
    take all of them: a host that was read before would never come back, whatever the share of refresh is. So hosts with
    refreshes have places of their own, half as many again (`HostTable.guests`), and wait for them here. `stored` reads
    the ids of all such hosts; it is called for the first `take`, and again after `forget`.
    """

    def __init__(self, stored: Callable[[], Sequence[int]]) -> None:
        self._stored = stored
        self._heap: list[tuple[float, int]] = []
        self._ids: set[int] = set()
        self._is_read = False

    def add(self, host_id: int, free_at: float = 0.0) -> None:
        """`free_at`: the host's clock, if it is known."""
        if self._is_read and host_id not in self._ids:
            self._ids.add(host_id)
            heapq.heappush(self._heap, (free_at, host_id))

    def take(self, now: float, limit: int) -> list[int]:
        """Hosts whose clocks allow a visit; the caller loads them, or adds them again."""
        if not self._is_read:
            self._is_read = True
            for host_id in self._stored():
                self.add(host_id)
        taken: list[int] = []
        while self._heap and self._heap[0][0] <= now and len(taken) < limit:
            taken.append(heapq.heappop(self._heap)[1])
        self._ids.difference_update(taken)
        return taken

    def forget(self) -> None:
        """Which hosts belong to this process has changed."""
        self._heap, self._ids, self._is_read = [], set(), False
