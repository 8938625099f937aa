"""Which host may be asked next: the part of a frontier that lives in memory.

Two clocks guard a visit, the host's and its address's, as in BUbiNG: a host sleeps in a heap until its own clock
allows, then queues at its address until that one does, and only then takes its place in its site's turn.
Addresses wake one host at a time, so a thousand hosts behind one address cost no more than one.

    asleep (heap by host clock) → at its address (queue) → ready (sites in turn, hosts in turn within a site) → leased

Sites take turns by a ring: the site that was served goes to its end. A host whose best URL is an explicit request
stands in a ring of its own that is served first. Entries in heap and rings are never searched: each carries the
ticket its host had when it was placed, and a newer ticket makes it void.
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections import deque
from collections.abc import Iterator
from itertools import count
from math import ceil

from quadloom.model.link import LinkKind
from quadloom.stores.frontier.quota import VisitClass, WeightedRoundRobin

INFINITY = float("inf")

# priority, first, second, fingerprint; href, key, depth, score, kind, attempt, etag, last_modified, known, via, anchor.
# A plain tuple: the queue's order is the tuple's order, since fingerprints are unique within a host.
QueuedUrl = tuple[int, float, float, int, str, str, int, float, LinkKind, int, str, str, bool, int, str]


class HostState:
    """A host on the bench: its durable row as far as leasing needs it, and what is known only in memory."""

    __slots__ = (
        "active", "address", "asked_at", "base_delay", "block_reason", "blocked_until", "budget", "buffer", "complete",
        "crawl_delay", "default_budget", "delay", "failures", "id", "lacking", "name", "next_at", "pages",
        "per_site", "queued", "retired", "site", "spent", "ticket", "turns",
    )  # fmt: skip

    def __init__(self, id: int, name: str, site: str) -> None:
        self.id, self.name, self.site = id, name, site
        self.address = self.block_reason = ""
        self.delay = self.crawl_delay = self.base_delay = 0.0
        self.next_at = self.blocked_until = 0.0
        self.spent = self.budget = self.default_budget = 0.0
        self.failures = self.pages = self.queued = self.active = self.ticket = 0
        self.per_site = 1
        self.asked_at = -INFINITY
        self.buffer: list[QueuedUrl] = []
        self.complete = False  # the buffer holds all that is queued and not leased
        self.lacking: set[VisitClass] = set()  # neither in the buffer nor, as long as that lasts, behind it
        self.turns = WeightedRoundRobin()
        self.retired = False  # nothing more is to be handed out: the host goes to another worker

    @property
    def pause(self) -> float:
        """Seconds between two requests: the largest of setting, Crawl-delay and measured pace."""
        return max(self.base_delay, self.crawl_delay, self.delay)

    @property
    def free_at(self) -> float:
        return max(self.next_at, self.blocked_until)

    @property
    def exhausted(self) -> bool:
        budget = self.budget or self.default_budget
        return 0 < budget <= self.spent

    @property
    def _affordable(self) -> int:
        """Visits at a time that the budget still pays for; one at least, since explicit requests need no budget."""
        budget = self.budget or self.default_budget
        return max(1, ceil(budget - self.spent)) if budget > 0 else self.per_site

    @property
    def has_work(self) -> bool:
        more = not self.complete and self.queued > self.active  # what is leased is still counted as queued
        # A host in trouble is asked by one visit at a time: one request per back-off window, not `per_site` of them.
        room = 1 if self.failures else min(self.per_site, self._affordable)
        return not self.retired and self.active < room and (bool(self.buffer) or more)

    def may_have(self, kind: VisitClass) -> bool:
        """Whether URLs of a class that the buffer does not hold may be queued behind it."""
        return not self.complete and kind not in self.lacking

    def wants(self, place: tuple[int, float, float], fingerprint: int) -> bool:
        """Whether the buffer's order demands a newly queued URL; the rest is read when its turn comes."""
        if self.complete:
            return True
        return bool(self.buffer) and (*place, fingerprint) < self.buffer[-1][:4]

    def offer(self, entry: QueuedUrl, room: int) -> None:
        insort(self.buffer, entry)
        if len(self.buffer) > room:
            self.buffer.pop()
            self.complete = False

    def withdraw(self, fingerprint: int) -> None:
        self.buffer = [entry for entry in self.buffer if entry[3] != fingerprint]


class _Address:
    """`holder` is the one host that may be ready or is about to be asked at this address."""

    __slots__ = ("clock", "holder", "listed", "waiting")

    def __init__(self, clock: float) -> None:
        self.clock = clock
        self.waiting: deque[tuple[HostState, int]] = deque()
        self.holder: HostState | None = None
        self.listed = False  # stands in the heap


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
                        self._sites[site] = hosts  # a dictionary keeps order of insertion: to the end of the ring
                    return host
        return None


class HostTable:
    """Holds at most about `capacity` hosts; what does not fit stays in the store and is loaded when its time comes."""

    def __init__(self, *, ip_delay: float, opened_at: float, capacity: int = 2048) -> None:
        self.capacity = capacity
        self.hosts: dict[int, HostState] = {}
        self._ip_delay = ip_delay
        self._opened_at = self._now = opened_at
        self._addresses: dict[str, _Address] = {}
        self._heap: list[tuple[float, int, HostState | _Address, int]] = []
        self._serial = count()
        self._urgent, self._ordinary = _Ring(), _Ring()

    @property
    def full(self) -> bool:
        return len(self.hosts) >= self.capacity

    def place(self, host: HostState) -> None:
        """(Re)insert a host after anything about it changed. A host without work waits for nothing."""
        self.hosts[host.id] = host
        self._void(host)
        if host.has_work:
            heapq.heappush(self._heap, (host.free_at, next(self._serial), host, host.ticket))

    def drop(self, host: HostState) -> None:
        self.hosts.pop(host.id, None)
        self._void(host)

    def _void(self, host: HostState) -> None:
        """Every place the host stands in becomes void, and its address is free for the next in line."""
        host.ticket += 1
        address = self._addresses.get(host.address)
        if address is not None and address.holder is host:
            address.holder = None
            self._list(address)

    def move(self, host: HostState, address: str) -> None:
        """The host was found at another address; the caller places it afterwards."""
        self._void(host)
        host.address = address

    def next(self, now: float) -> HostState | None:
        """The host whose turn it is; the caller hands out one of its URLs (`asked`) or places or drops it."""
        self._now = now
        self._wake(now)
        while (host := self._urgent.pop() or self._ordinary.pop()) is not None:
            address = self._addresses.get(host.address)
            if address is None or address.clock <= now:
                return host
            # A request under way has meanwhile shown that its host shares this address.
            address.holder = None
            address.waiting.appendleft((host, host.ticket))
            self._list(address)
        return None

    def _wake(self, now: float) -> None:
        while self._heap and self._heap[0][0] <= now:
            _, _, sleeper, ticket = heapq.heappop(self._heap)
            if isinstance(sleeper, _Address):
                sleeper.listed = False
                self._let_pass(sleeper, now)
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
        self._let_pass(address, now)

    def _let_pass(self, address: _Address, now: float) -> None:
        """Make one waiting host ready if the clock allows and none holds the address."""
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

    def asked(self, host: HostState, now: float) -> float:
        """A URL of this host is handed out: both clocks start. Returns the address's clock before."""
        host.active += 1
        host.asked_at = now
        host.next_at = now + host.pause
        before = self._address_clock(host)
        self.touch_address(host.address, now)
        return before

    def not_asked(self, host: HostState, at: float, next_at: float, address_clock: float) -> None:
        """The visit handed out at `at` did not reach the host: give both clocks back, if nobody moved them since."""
        if host.asked_at == at and host.next_at == at + host.pause:
            host.next_at = next_at
        address = self._addresses.get(host.address)
        if address is not None and address.clock == at + self._ip_delay:
            address.clock = address_clock

    def touch_address(self, name: str, at: float) -> None:
        """The address was asked at `at`."""
        if name and self._ip_delay > 0:
            address = self._address(name)
            address.clock = max(address.clock, at + self._ip_delay)

    def _address(self, name: str) -> _Address:
        found = self._addresses.get(name)
        if found is None:
            if len(self._addresses) > 4 * self.capacity:
                self._forget_addresses()
            # Whoever had this frontier open before may have asked the address a moment ago.
            found = self._addresses[name] = _Address(self._opened_at + self._ip_delay)
        return found

    def _forget_addresses(self) -> None:
        for name, address in list(self._addresses.items()):
            if address.clock <= self._now and not address.waiting and address.holder is None:
                del self._addresses[name]

    def earliest(self, now: float) -> float | None:
        """When `next` could give a host; `now` where it could at once; None = no host on the bench has work."""
        times = [max(host.free_at, self._address_clock(host)) for host in self.hosts.values() if host.has_work]
        return max(now, min(times)) if times else None

    def _address_clock(self, host: HostState) -> float:
        if not host.address or self._ip_delay <= 0:
            return 0.0
        return self._address(host.address).clock

    def idle(self, now: float) -> Iterator[HostState]:
        """Hosts that may leave: nothing under way, and nothing to do before `now`."""
        for host in list(self.hosts.values()):
            if host.active == 0 and (host.free_at > now or not host.has_work):
                yield host


def _urgent(host: HostState) -> bool:
    return bool(host.buffer) and host.buffer[0][0] == 0
