"""Who has which URL: leases over the workbench, fed from the frontier's tables.

The part of `table_frontier` that hands out and takes back. It reads tables and never writes them, except for the
attempts of a lease that ran out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from quadloom.model.link import Discovery
from quadloom.model.visit import Visit
from quadloom.stores.frontier.host_table import HostState, HostTable, QueuedUrl
from quadloom.stores.frontier.policy import FrontierPolicy, UrlState, rank
from quadloom.stores.frontier.quota import PRIORITIES, Quota, VisitClass
from quadloom.stores.frontier.tables import FrontierTables, UrlBatch, UrlRow, queued_url_of

INFINITY = float("inf")
_FRONT = 64  # URLs of one host in memory at most
_FRONTS = 65_536  # URLs in memory at most, about 30 MB
_LOAD = 256  # hosts brought to the bench at a time


class Lease:
    __slots__ = ("address_clock", "entry", "host", "live", "next_at", "visit")

    def __init__(self, visit: Visit, host: HostState, entry: QueuedUrl, next_at: float, address_clock: float) -> None:
        self.visit, self.host, self.entry = visit, host, entry
        self.next_at, self.address_clock = next_at, address_clock  # before the lease
        self.live = True  # False: somebody whose lease had run out settled the URL nevertheless


class LeaseManager:
    def __init__(self, tables: FrontierTables, policy: FrontierPolicy, *, now: float, capacity: int) -> None:
        self.bench = HostTable(ip_delay=policy.ip_delay, opened_at=now, capacity=capacity)
        self.leases: dict[int, Lease] = {}
        # When somebody whose clocks are lost may have asked a host last; the backend knows who had it open before.
        self.suspected_at: Callable[[HostState], float] = lambda _host: -INFINITY
        self.start_before = 0.0  # of visits handed out
        self._tables = tables
        self._policy = policy
        self._deadlines: list[tuple[float, int]] = []
        self._clocks: dict[int, float] = {}  # of hosts that left the bench in a transaction that may yet be undone
        self._outside_at = 0.0  # earliest time at which a host that is not on the bench may have work

    def lease(self, limit: int, now: float, duration: float, quota: Quota | None = None) -> list[Visit]:
        self._load(now)
        visits: list[Visit] = []
        aside: list[HostState] = []  # hosts that have work, but none that the quota allows
        while len(visits) < limit:
            host = self.bench.next(now)
            if host is None:
                if self._make_room(now) and self._load(now):
                    continue
                break
            if not host.buffer:
                self.refill(host)
            if host.exhausted and any(entry[0] > 0 and not entry[12] for entry in host.buffer):
                self.apply_budget(host)
                self.refill(host)
            if host.buffer:
                entry = host.buffer.pop(0) if quota is None else self._allowed(host, quota)
                if entry is None:
                    aside.append(host)
                    if quota is not None and not quota.left:
                        break  # only requests remain, and hosts that have one come first
                    continue
                visits.append(self._hand_out(host, entry, now, duration))
            self.bench.place(host)
        for host in aside:
            self.bench.place(host)
        return visits

    def _allowed(self, host: HostState, quota: Quota) -> QueuedUrl | None:
        """What this host serves next, counted off: a request, or the first URL of the class whose turn it is among
        those that the quota allows."""
        if host.buffer[0][0] == 0:
            quota.take(0, host.buffer[0][12])
            return host.buffer.pop(0)
        places = _first_of_each(host.buffer)
        waiting = [kind for kind in VisitClass if quota.left_of[kind] > 0 and (kind in places or host.may_have(kind))]
        while waiting:
            kind = host.turns.next(quota.shares, waiting)
            entry = host.buffer.pop(places[kind]) if kind in places else self._seek(host, kind)
            if entry is not None:
                host.turns.served(kind, quota.shares, waiting)
                quota.take(entry[0], entry[12])
                return entry
            waiting.remove(kind)
        return None

    def _seek(self, host: HostState, kind: VisitClass) -> QueuedUrl | None:
        """The first URL of a class that lies behind all that is in the buffer."""
        for priorities in PRIORITIES[kind]:
            for entry in self._tables.front(host.id, 4 + host.active, priorities):
                if entry[3] not in self.leases and VisitClass.of(entry[0], entry[12]) is kind:
                    return entry
        host.lacking.add(kind)
        return None

    def _hand_out(self, host: HostState, entry: QueuedUrl, now: float, duration: float) -> Visit:
        priority, _, _, key, href, canonical, depth, score, kind, attempt, etag, modified, known, via, anchor = entry
        visit = Visit(
            href, canonical, host.name, key, depth, priority, kind, attempt, now, now + duration, etag, modified,
            bool(known), via, anchor, score, self.start_before,
        )  # fmt: skip
        next_at = host.next_at
        clock = self.bench.asked(host, now)
        self.leases[key] = Lease(visit, host, entry, next_at, clock)
        heapq.heappush(self._deadlines, (visit.deadline, key))
        return visit

    def refill(self, host: HostState) -> None:
        room = max(4, min(_FRONT, _FRONTS // (len(self.bench.hosts) + 1)))
        self._fill(host, self._tables.front(host.id, room + host.active), room + host.active)

    def _fill(self, host: HostState, entries: list[QueuedUrl], asked: int) -> None:
        host.complete = len(entries) < asked
        host.lacking.clear()
        host.buffer = [entry for entry in entries if entry[3] not in self.leases]
        self.bench.place(host)

    def _load(self, now: float) -> bool:
        """Bring hosts to the bench whose durable clock allows a visit. False = there are none."""
        if self._outside_at > now or self.bench.full:
            return False
        room = min(_LOAD, self.bench.capacity - len(self.bench.hosts))
        hosts = self._tables.hosts_with_work(now, self.bench.hosts.keys(), room)
        for host in hosts:
            self._seat(host)
        self._read_ahead(hosts)
        if len(hosts) < room:
            self._outside_at = self._tables.next_wake(now, self.bench.hosts.keys())
        return bool(hosts)

    def _read_ahead(self, hosts: Sequence[HostState]) -> None:
        """Fill the buffers of hosts that have none with one question, where each question costs a round trip."""
        room = self._tables.prefetch
        needy = [host for host in hosts if not host.buffer and host.has_work] if room else []
        if not needy:
            return
        room += max(host.active for host in needy)
        fronts = self._tables.fronts([host.id for host in needy], room)
        for host in needy:
            self._fill(host, fronts.get(host.id, []), room)

    def _seat(self, host: HostState) -> HostState:
        own = self._policy.for_host(host.name)
        host.base_delay, host.per_site = own.delay or 0.0, own.per_site or 1
        host.default_budget = own.budget or 0.0
        host.next_at = max(host.next_at, self._clocks.pop(host.id, 0.0))
        suspected = self.suspected_at(host)
        if suspected > -INFINITY:
            host.next_at = max(host.next_at, suspected + host.pause)
            self.bench.touch_address(host.address, suspected)
        self.bench.place(host)
        return host

    def _make_room(self, now: float) -> bool:
        """With others waiting outside, the hosts that sleep longest leave; their clocks are in the table."""
        if self._outside_at > now:
            return False
        if self.bench.full:
            idle = sorted(self.bench.idle(now), key=lambda host: host.free_at, reverse=True)
            for host in idle[: max(1, self.bench.capacity // 2)]:
                self.bench.drop(host)
        return not self.bench.full

    def on_bench(self, id: int) -> HostState:
        host = self.bench.hosts.get(id)
        if host is None:
            (host,) = self._tables.host_states([id])  # ids come from the table, so it is there
            self._seat(host)
        return host

    def exhausted(self, host_id: int) -> bool:
        """Whether new URLs of the host are parked at once. A host off the bench finds out when it is loaded."""
        host = self.bench.hosts.get(host_id)
        return host is not None and host.exhausted

    def end_overdue(self, now: float) -> None:
        """Leases whose deadline passed end here; their URLs are in the queue as ever, one attempt older."""
        lost: list[Lease] = []
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, key = heapq.heappop(self._deadlines)
            lease = self.leases.get(key)
            if lease is not None and lease.visit.deadline == deadline:
                lost.append(self.leases.pop(key))
        if not lost:
            return
        for lease in lost:
            self._return(lease)
        with self._tables.database.transaction():
            self._tables.count_attempts([(lease.host.id, lease.visit.fingerprint) for lease in lost])
            self._tables.write_hosts({lease.host.id: lease.host for lease in lost}.values())

    def end(self, visit: Visit, *, asked: bool) -> None:
        """The visit is over. If its lease had run out and somebody else has the URL by now, that lease goes on."""
        lease = self.leases.get(visit.fingerprint)
        if lease is None:
            return
        if lease.visit.deadline != visit.deadline:
            lease.live = False
            return
        del self.leases[visit.fingerprint]
        lease.host.active = max(0, lease.host.active - 1)
        if not asked:
            self.bench.not_asked(lease.host, visit.not_before, lease.next_at, lease.address_clock)

    def release(self, visits: Sequence[Visit]) -> None:
        for visit in visits:
            lease = self.leases.get(visit.fingerprint)
            if lease is not None and lease.visit.deadline == visit.deadline:
                del self.leases[visit.fingerprint]
                self.bench.not_asked(lease.host, visit.not_before, lease.next_at, lease.address_clock)
                self._return(lease)

    def _return(self, lease: Lease) -> None:
        host = lease.host
        host.active = max(0, host.active - 1)
        host.buffer, host.complete = [], False
        if host.id in self.bench.hosts:
            self.bench.place(host)

    def leased_pairs(self) -> list[tuple[int, int]]:
        """(host, fingerprint) of all that is under way."""
        return [(lease.host.id, key) for key, lease in self.leases.items()]

    def tell(self, batch: UrlBatch, inserted: Sequence[tuple[UrlRow, Discovery]] = ()) -> None:
        """The tables changed: hosts on the bench learn of it, others are looked for at the next lease."""
        hosts = self.bench.hosts
        changed = {id for id, delta in batch.queued.items() if delta}
        idle = {id for id in changed if id in hosts and not hosts[id].has_work}
        for row, found in inserted:
            host = hosts.get(row.host_id)
            if host is not None and row.state == UrlState.QUEUED:
                host.lacking.clear()
                if host.wants(rank(self._policy.order, row.priority, row.depth, row.score, row.due), row.fingerprint):
                    host.offer(queued_url_of(found, row, self._policy.order), _FRONT)
                if row.priority == 0:
                    idle.add(host.id)
        for id in changed:
            if id in hosts:
                hosts[id].queued += batch.queued[id]
            else:
                self._outside_at = 0.0
        for id in idle:  # the others stand where they belong already
            self.bench.place(hosts[id])

    def empty_buffer(self, host_id: int) -> None:
        host = self.bench.hosts.get(host_id)
        if host is not None:
            host.buffer, host.complete = [], False
            self.bench.place(host)

    def take_back(self) -> None:
        """After opening: the settings may allow more than when URLs over budget were parked."""
        with self._tables.database.transaction():
            for host in self._tables.host_states(self._tables.parked_hosts()):
                host.default_budget = self._policy.for_host(host.name).budget or 0.0
                if not host.exhausted:
                    self._tables.unpark(host.id)

    def apply_budget(self, host: HostState) -> None:
        """Park what a spent budget no longer allows, or bring it back after the budget was raised."""
        held = [key for key, lease in self.leases.items() if lease.host is host]
        with self._tables.database.transaction():
            host.queued += self._tables.park(host.id, held) if host.exhausted else self._tables.unpark(host.id)
        self.empty_buffer(host.id)

    def settled(self, hosts: Iterable[HostState], now: float) -> None:
        """Their clocks are durable now. Where others wait outside a full bench, those served leave it."""
        crowded = self.bench.full and self._outside_at <= now
        if len(self._clocks) > self.bench.capacity:
            self._clocks = {id: clock for id, clock in self._clocks.items() if clock > now}
        stay: list[HostState] = []
        for host in hosts:
            if (crowded or not host.queued) and host.active == 0:
                self._clocks[host.id] = host.next_at
                self.bench.drop(host)
                self._outside_at = min(self._outside_at, host.free_at)
            else:
                self.bench.place(host)
                stay.append(host)
        self._read_ahead(stay)

    def earliest(self, now: float) -> float | None:
        inside = self.bench.earliest(now)
        outside = self._tables.next_wake(now, self.bench.hosts.keys())
        if self._outside_at <= now and self._tables.hosts_with_work(now, self.bench.hosts.keys(), 1):
            return now
        earliest = min(INFINITY if inside is None else inside, outside)
        return None if earliest == INFINITY else earliest

    def drop(self, unwanted: Callable[[HostState], bool]) -> None:
        """These hosts are no longer ours: nothing of them is handed out, what is under way is not waited for."""
        for host in [host for host in self.bench.hosts.values() if unwanted(host)]:
            self.bench.drop(host)
        for key in [key for key, lease in self.leases.items() if unwanted(lease.host)]:
            del self.leases[key]

    def retire(self, unwanted: Callable[[HostState], bool]) -> None:
        """Hand out nothing more of these hosts; those of which something is under way stay until it is settled."""
        for host in [host for host in self.bench.hosts.values() if unwanted(host)]:
            host.retired = True
            if host.active == 0:
                self.bench.drop(host)
            else:
                self.bench.place(host)

    def held_back(self) -> set[str]:
        """Hosts that have URLs queued which politeness does not allow yet, as far as they are on the bench."""
        return {host.name for host in self.bench.hosts.values() if host.queued > host.active}

    def look_outside(self) -> None:
        """There may be hosts with work that are not on the bench."""
        self._outside_at = 0.0

    def forget(self) -> None:
        """A transaction was undone: read the hosts again, keep leases and clocks."""
        self._outside_at = 0.0
        before = dict(self.bench.hosts)
        for host in before.values():
            self.bench.drop(host)
        leased: dict[int, list[Lease]] = {}
        for lease in self.leases.values():
            leased.setdefault(lease.host.id, []).append(lease)
        for stored in self._tables.host_states(list(before)):
            stored.next_at = max(stored.next_at, before[stored.id].next_at)
            stored.asked_at = before[stored.id].asked_at
            for lease in leased.get(stored.id, ()):
                lease.host = stored
                stored.active += 1
            self._seat(stored)


def _first_of_each(buffer: Sequence[QueuedUrl]) -> dict[VisitClass, int]:
    """Where the first URL of each class stands."""
    places: dict[VisitClass, int] = {}
    for place, entry in enumerate(buffer):
        kind = VisitClass.of(entry[0], entry[12])
        if kind not in places:
            places[kind] = place
            if len(places) == len(VisitClass):
                break
    return places
