"""Which worker has which URL: leases over the host table, which is filled from the frontier's tables.

The part of the frontier that hands out URLs and takes them back. It reads tables and does not write them, except for
the attempts and clocks of a lease that ran out and for what a spent budget parks.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace
from quadloom.model.visit import Visit
from quadloom.stores.frontier.class_turns import ClassTurns, has_open_class
from quadloom.stores.frontier.guided import GuidedReads
from quadloom.stores.frontier.host_table import (
    FINGERPRINT,
    KNOWN,
    PRIORITY,
    HostState,
    HostTable,
    QueuedUrl,
    RefreshHosts,
)
from quadloom.stores.frontier.policy import FrontierPolicy, UrlState, rank
from quadloom.stores.frontier.tables import FrontierDatabase, HostRecords, UrlBatch, UrlQueue, UrlRow, queued_url_of
from quadloom.stores.protocols.frontier import Quota, VisitClass

INFINITY = float("inf")
_FRONT = 64  # URLs of one host in memory at most
_FRONTS = 65_536  # URLs in memory at most, about 30 MB
_ENDED = 1000  # deadlines of leases that have ended, before they are dropped
_LOAD = 256  # hosts loaded at a time
# URLs that are read ahead for a host just loaded. If there are more hosts than fit into memory, each gives one URL and
# makes room for another, so only one is read: in a large frontier each is a block of the table that is not in memory.
_FIRST_FRONT = 2


class Lease:
    """A URL that was handed out, and both clocks of its host as they were before."""

    __slots__ = ("address_clock", "answered", "host", "live", "next_at", "visit")

    def __init__(self, visit: Visit, host: HostState, next_at: float, address_clock: float) -> None:
        self.visit, self.host = visit, host
        self.next_at, self.address_clock = next_at, address_clock
        self.answered = False  # the server has answered; the visit waits for its settlement
        self.live = True  # False: an earlier lease of this URL, which had run out, was settled meanwhile


class LeaseManager:
    """Hands out URLs of the hosts in `hosts` and loads further hosts when there is room."""

    def __init__(
        self,
        database: FrontierDatabase,
        hosts: HostRecords,
        queue: UrlQueue,
        policy: FrontierPolicy,
        *,
        now: float,
        capacity: int,
    ) -> None:
        self.hosts = HostTable(ip_delay=policy.ip_delay, opened_at=now, capacity=capacity)
        self.leases: dict[int, Lease] = {}
        # Latest time at which a process whose clocks are lost may have asked a host. The backend sets this function:
        # it knows which process had the host before.
        self.suspected_at: Callable[[HostState], float] = lambda _host: -INFINITY
        self.start_before = 0.0  # given to every visit that is handed out
        self.guided = GuidedReads(queue, self.leases)
        self._turns = ClassTurns(queue, self.leases, self.guided)
        self._database = database
        self._host_records = hosts
        self._queue = queue
        self._policy = policy
        self._deadlines: list[tuple[float, int]] = []
        self._clocks: dict[int, float] = {}  # of hosts unloaded within a transaction that may yet be undone
        self._unloaded_at = 0.0  # earliest time at which a host that is not loaded may have work
        self._quota: Quota | None = None  # of the last lease
        self._refreshes = RefreshHosts(hosts.hosts_with_refreshes)

    def lease(self, limit: int, now: float, duration: float, quota: Quota | None = None) -> list[Visit]:
        self._quota = quota
        self._load(now)
        if quota is not None and self.hosts.full:
            self._load_guests(now)
        visits: list[Visit] = []
        skipped: list[HostState] = []  # hosts that have work, but none that the quota allows
        while len(visits) < limit:
            host = self.hosts.next(now)
            if host is None:
                if self._make_room(now) and self._load(now):
                    continue
                break
            if not host.buffer:
                self.refill(host)
            if host.exhausted and any(url[PRIORITY] > 0 and not url[KNOWN] for url in host.buffer):
                self.apply_budget(host)
                self.refill(host)
            if host.buffer:
                url = self.guided.take(host, host.buffer[0]) if quota is None else self._turns.next(host, quota)
                if url is None:
                    skipped.append(host)
                    if quota is not None and not quota.left:
                        break  # only requests remain, and hosts that have one come first
                    continue
                visits.append(self._hand_out(host, url, now, duration))
            self.hosts.place(host)
        if quota is not None:
            quota.passed_over = len(skipped)
        for host in skipped:
            if host.id in self.hosts.guests and host.leased == 0:
                self._unload(host)
            else:
                self.hosts.place(host)
        return visits

    def _hand_out(self, host: HostState, url: QueuedUrl, now: float, duration: float) -> Visit:
        # Unpacked and by position, since this runs for every visit: names would cost 3 µs.
        priority, _, _, key, href, canonical, depth, score, kind, attempt, etag, modified, known, via, anchor = url
        name, deadline, start_before = host.name, now + duration, self.start_before
        visit = Visit(
            href,
            canonical,
            name,
            key,
            depth,
            priority,
            kind,
            attempt,
            now,
            deadline,
            etag,
            modified,
            bool(known),
            via,
            anchor,
            score,
            start_before,
        )
        next_at = host.next_at
        clock = self.hosts.start_clocks(host, now)
        self.leases[key] = Lease(visit, host, next_at, clock)
        heapq.heappush(self._deadlines, (visit.deadline, key))
        if len(self._deadlines) > 2 * len(self.leases) + _ENDED:  # those of the last ten minutes would be 30 MB
            self._deadlines = [(lease.visit.deadline, key) for key, lease in self.leases.items()]
            heapq.heapify(self._deadlines)
        return visit

    def refill(self, host: HostState) -> None:
        room = max(4, min(_FRONT, _FRONTS // (len(self.hosts.loaded) + 1)))
        self._fill(host, self._queue.front(host.id, room + host.leased), room + host.leased)

    def _fill(self, host: HostState, urls: list[QueuedUrl], asked: int) -> None:
        host.complete = len(urls) < asked
        host.absent.clear()
        host.buffer = [url for url in urls if url[FINGERPRINT] not in self.leases]
        host.important = []
        self.hosts.place(host)

    def _load(self, now: float) -> bool:
        """Load hosts whose durable clock allows a visit. False = there are none."""
        if self._unloaded_at > now or self.hosts.full:
            return False
        room = min(_LOAD, self.hosts.room)
        hosts = self._host_records.hosts_with_work(now, self.hosts.loaded.keys(), room)
        for host in hosts:
            self._insert(host)
        self._read_ahead(hosts, min(1 if self.hosts.full else _FIRST_FRONT, self._queue.prefetch))
        if len(hosts) < room:
            self._unloaded_at = self._host_records.next_wake(now, self.hosts.loaded.keys())
        return bool(hosts)

    def _load_guests(self, now: float) -> None:
        """Load hosts that have refreshes beyond the capacity, which others have used up."""
        taken = self._refreshes.take(now, min(_LOAD, self.hosts.capacity // 2 - len(self.hosts.guests)))
        taken = [id for id in taken if id not in self.hosts.loaded]
        for host in self._host_records.host_states(taken) if taken else ():
            if host.free_at > now:
                self._refreshes.add(host.id, host.free_at)
            elif host.queued:
                self.hosts.guests.add(host.id)
                self._insert(host)

    def _unload(self, host: HostState) -> None:
        """Drop a host without visits in progress; its clocks are durable."""
        self.hosts.drop(host)
        self._unloaded_at = min(self._unloaded_at, host.free_at)
        if host.queued and (host.buffer[0][PRIORITY] <= 1 if host.buffer else host.may_have(VisitClass.REFRESH)):
            self._refreshes.add(host.id, host.free_at)

    def _read_ahead(self, hosts: Sequence[HostState], room: int) -> None:
        """Fill the empty buffers of these hosts with one question for `room` URLs each; 0 = `refill` does it."""
        needy = [host for host in hosts if not host.buffer and host.has_work] if room else []
        if not needy:
            return
        room += max(host.leased for host in needy)
        fronts = self._queue.fronts([host.id for host in needy], room)
        for host in needy:
            self._fill(host, fronts.get(host.id, []), room)

    def _insert(self, host: HostState) -> None:
        """Apply settings and clocks to a host that was just read from its table, and place it."""
        own = self._policy.for_host(host.name)
        host.base_delay, host.per_site = own.delay or 0.0, own.per_site or 1
        host.default_budget, host.is_own = own.budget or 0.0, own.own
        if own.own:
            host.address = ""  # the pace of an address is for hosts that share it with others
        host.next_at = max(host.next_at, self._clocks.pop(host.id, 0.0))
        suspected = self.suspected_at(host)
        if suspected > -INFINITY:
            host.next_at = max(host.next_at, suspected + host.pause)
            self.hosts.touch_address(host.address, suspected)
        self.hosts.place(host)

    def _make_room(self, now: float) -> bool:
        """If hosts that are not loaded may have work, unload those that sleep longest; their clocks are durable.
        True = there is room."""
        if self._unloaded_at > now:
            return False
        if self.hosts.full:
            idle = sorted(self.hosts.idle(now), key=lambda host: host.free_at, reverse=True)
            for host in idle[: max(1, self.hosts.capacity // 2)]:
                self._unload(host)
        return not self.hosts.full

    def load_host(self, id: int) -> HostState:
        """The host in memory, read from its table if necessary."""
        host = self.hosts.loaded.get(id)
        if host is None:
            (host,) = self._host_records.host_states([id])  # ids come from the table, so it exists
            self._insert(host)
        return host

    def exhausted(self, host_id: int) -> bool:
        """Whether new URLs of the host are parked at once. For a host that is not loaded this is decided on loading."""
        host = self.hosts.loaded.get(host_id)
        return host is not None and host.exhausted

    def end_overdue(self, now: float) -> None:
        """End leases whose deadline has passed; their URLs never left the queue, and count one attempt more."""
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
        with self._database.transaction():
            self._queue.count_attempts([(lease.host.id, lease.visit.fingerprint) for lease in lost])
            self._host_records.write_hosts({lease.host.id: lease.host for lease in lost}.values())

    def end(self, visit: Visit, *, asked: bool) -> None:
        """The visit is over. If its lease had run out and the URL was leased again, the new lease goes on."""
        lease = self.leases.get(visit.fingerprint)
        if lease is None:
            return
        if lease.visit.deadline != visit.deadline:
            lease.live = False
            return
        del self.leases[visit.fingerprint]
        _free(lease)
        if not asked:
            self.hosts.restore_clocks(lease.host, visit.not_before, lease.next_at, lease.address_clock)

    def answered(self, visit: Visit, pace: HostPace, contacted_at: float) -> None:
        """The host has room for the next visit; its clocks move as the settlement will move them."""
        lease = self.leases.get(visit.fingerprint)
        if lease is None or lease.visit.deadline != visit.deadline or lease.answered:
            return
        host = lease.host
        if pace.address and pace.address != host.address and not host.is_own:
            self.hosts.move(host, pace.address)
        self.hosts.touch_address(host.address, max(contacted_at, visit.not_before))
        host.delay = pace.delay
        host.next_at = max(host.next_at, pace.next_at, host.asked_at + host.pause)
        lease.answered = True
        host.active -= 1
        host.answered += 1
        if host.id in self.hosts.loaded:
            self.hosts.place(host)

    def reserve(self, host: HostState, now: float) -> float | None:
        """Take the host's next turn for a request outside of the queue; returns its time, None = it is busy."""
        at = self.hosts.take_turn(host, now) if host.active < host.per_site else None
        self.settled([host], now)
        return at

    def free(self, host: HostState, next_at: float, now: float) -> None:
        """End such a turn."""
        host.active = max(0, host.active - 1)
        host.next_at = max(host.next_at, next_at)
        self.settled([host], now)

    def release(self, visits: Sequence[Visit]) -> None:
        for visit in visits:
            lease = self.leases.get(visit.fingerprint)
            if lease is not None and lease.visit.deadline == visit.deadline:
                del self.leases[visit.fingerprint]
                self.hosts.restore_clocks(lease.host, visit.not_before, lease.next_at, lease.address_clock)
                self._return(lease)

    def _return(self, lease: Lease) -> None:
        host = lease.host
        _free(lease)
        host.clear_buffer()
        if host.id in self.hosts.loaded:
            self.hosts.place(host)

    def leased_pairs(self) -> list[tuple[int, int]]:
        """(host id, fingerprint) of all visits in progress."""
        return [(lease.host.id, key) for key, lease in self.leases.items()]

    def queue_changed(self, batch: UrlBatch, inserted: Sequence[tuple[UrlRow, Discovery]] = ()) -> None:
        """Apply changes of the tables to the hosts in memory; other hosts with work are found by the next lease."""
        hosts = self.hosts.loaded
        changed = {id for id, delta in batch.queued.items() if delta}
        idle = {id for id in changed if id in hosts and not hosts[id].has_work}
        for row, found in inserted:
            host = hosts.get(row.host_id)
            if host is not None and row.state == UrlState.QUEUED:
                host.absent.clear()
                place = rank(self._policy.order, row.priority, row.depth, row.score, row.due)
                if host.belongs_in_buffer(place, row.fingerprint):
                    host.insert(queued_url_of(found, row, self._policy.order), _FRONT)
                if row.priority == 0:
                    idle.add(host.id)
        for id in changed:
            if id in hosts:
                hosts[id].queued += batch.queued[id]
            else:
                self._unloaded_at = 0.0
        for id in idle:  # the others are in their places already
            self.hosts.place(hosts[id])
        for id in {row[0] for row in batch.queue if row[1] <= 1} - hosts.keys():
            self._refreshes.add(id)

    def empty_buffer(self, host_id: int) -> None:
        host = self.hosts.loaded.get(host_id)
        if host is not None:
            host.clear_buffer()
            self.hosts.place(host)

    def moved(self, row: UrlRow) -> None:
        """A queued URL has another place. Most are far behind the next ones of their host, which then stay."""
        host = self.hosts.loaded.get(row.host_id)
        if host is not None:
            place = rank(self._policy.order, row.priority, row.depth, row.score, row.due)
            host.move(place, row.fingerprint, row.depth, row.score)

    def unpark_within_budget(self) -> None:
        """For an opening: settings may allow more than when URLs over budget were parked."""
        with self._database.transaction():
            for host in self._host_records.host_states(self._queue.parked_hosts()):
                host.default_budget = self._policy.for_host(host.name).budget or 0.0
                if not host.exhausted:
                    self._queue.unpark(host.id)

    def apply_budget(self, host: HostState) -> None:
        """Park what a spent budget no longer allows, or queue it again after the budget was raised."""
        held = [key for key, lease in self.leases.items() if lease.host is host]
        with self._database.transaction():
            host.queued += self._queue.park(host.id, held) if host.exhausted else self._queue.unpark(host.id)
        self.empty_buffer(host.id)

    def settled(self, hosts: Iterable[HostState], now: float) -> None:
        """The clocks of these hosts are durable now. If the table is full and others wait, unload those served."""
        crowded = self.hosts.full and self._unloaded_at <= now
        if len(self._clocks) > self.hosts.capacity:
            self._clocks = {id: clock for id, clock in self._clocks.items() if clock > now}
        stay: list[HostState] = []
        for host in hosts:
            if (crowded or not host.queued or host.id in self.hosts.guests) and host.leased == 0:
                self._clocks[host.id] = host.next_at
                self._unload(host)
            else:
                self.hosts.place(host)
                stay.append(host)
        self._read_ahead(stay, self._queue.prefetch)

    def earliest(self, now: float) -> float | None:
        """Earliest time at which `lease` could hand out a URL; None = no host has work."""
        loaded = self.hosts.earliest(now)
        unloaded = self._host_records.next_wake(now, self.hosts.loaded.keys())
        if self._unloaded_at <= now and self._host_records.hosts_with_work(now, self.hosts.loaded.keys(), 1):
            return now
        earliest = min(INFINITY if loaded is None else loaded, unloaded)
        return None if earliest == INFINITY else earliest

    def drop(self, unwanted: Callable[[HostState], bool]) -> None:
        """These hosts belong to another worker: hand out nothing more, and forget the visits in progress."""
        self._refreshes.forget()
        for host in [host for host in self.hosts.loaded.values() if unwanted(host)]:
            self.hosts.drop(host)
        for key in [key for key, lease in self.leases.items() if unwanted(lease.host)]:
            del self.leases[key]

    def retire(self, unwanted: Callable[[HostState], bool]) -> None:
        """Hand out nothing more of these hosts; those with visits in progress stay until these are settled."""
        self._refreshes.forget()
        for host in [host for host in self.hosts.loaded.values() if unwanted(host)]:
            host.retired = True
            if host.leased == 0:
                self.hosts.drop(host)
            else:
                self.hosts.place(host)

    def hosts_with_queue(self) -> set[str]:
        """Loaded hosts with queued URLs that politeness does not allow yet, not counting classes without a share."""
        hosts = (host for host in self.hosts.loaded.values() if host.queued > host.leased)
        quota = self._quota
        return {host.name for host in hosts if quota is None or has_open_class(host, quota)}

    def hosts_added(self) -> None:
        """There may be hosts with work that are not loaded."""
        self._unloaded_at = 0.0
        self._refreshes.forget()

    def reload(self) -> None:
        """A transaction was undone: read the hosts again, but keep leases and clocks."""
        self._unloaded_at = 0.0
        before = dict(self.hosts.loaded)
        for host in before.values():
            self.hosts.drop(host)
        leased: dict[int, list[Lease]] = {}
        for lease in self.leases.values():
            leased.setdefault(lease.host.id, []).append(lease)
        for stored in self._host_records.host_states(list(before)):
            stored.next_at = max(stored.next_at, before[stored.id].next_at)
            stored.asked_at = before[stored.id].asked_at
            for lease in leased.get(stored.id, ()):
                lease.host = stored
                stored.active += not lease.answered
                stored.answered += lease.answered
            self._insert(stored)


def _free(lease: Lease) -> None:
    """The visit is no longer one of its host's."""
    host = lease.host
    if lease.answered:
        host.answered = max(0, host.answered - 1)
    else:
        host.active = max(0, host.active - 1)
