"""Hosts in memory: filled from the frontier's tables, and dropped when others need their place.

The part of a frontier that reads hosts and the first URLs of their queues. What it holds follows every change of the
tables (`queue_changed`); after a rollback it is read again (`reload`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from quadloom.model.link import Discovery
from quadloom.model.visit import Visit
from quadloom.stores.frontier.host_table import FINGERPRINT, PRIORITY, HostState, HostTable, QueuedUrl, RefreshHosts
from quadloom.stores.frontier.policy import FrontierPolicy, UrlState, rank
from quadloom.stores.frontier.rows import UrlBatch, UrlRow, queued_url_of
from quadloom.stores.protocols.frontier import VisitClass
from quadloom.stores.sql.hosts import SqlHosts
from quadloom.stores.sql.queue import SqlQueue
from quadloom.stores.sql.statements import SqlDatabase

INFINITY = float("inf")
_FRONT = 64  # URLs of one host in memory at most
_FRONTS = 65_536  # URLs in memory at most, about 30 MB
_LOAD = 256  # hosts loaded at a time
_HOST_IDS = 200_000  # ids of hosts in memory
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


class LoadedHosts:
    """Loads hosts when there is room in `table`."""

    def __init__(
        self,
        database: SqlDatabase,
        records: SqlHosts,
        queue: SqlQueue,
        policy: FrontierPolicy,
        *,
        now: float,
        capacity: int,
    ) -> None:
        self.table = HostTable(ip_delay=policy.ip_delay, opened_at=now, capacity=capacity)
        # Latest time at which a process whose clocks are lost may have asked a host. The backend sets this function:
        # it knows which process had the host before.
        self.suspected_at: Callable[[HostState], float] = lambda _host: -INFINITY
        self.leases: dict[int, Lease] = {}  # URLs that are handed out, by fingerprint; `UrlLeases` changes it
        self._database = database
        self._records = records
        self._queue = queue
        self._policy = policy
        self._ids: dict[str, int] = {}
        self._clocks: dict[int, float] = {}  # of hosts unloaded within a transaction that may yet be undone
        self._unloaded_at = 0.0  # earliest time at which a host that is not loaded may have work
        self._refreshes = RefreshHosts(records.hosts_with_refreshes)

    def ids(self, names: set[str]) -> dict[str, int]:
        """Ids by name. Unknown hosts are inserted."""
        missing = [name for name in names if name not in self._ids]
        if missing:
            if len(self._ids) > _HOST_IDS:
                self._ids.clear()
                missing = list(names)
            self._ids.update(self._records.host_ids(sorted(missing), create=True))
        return {name: self._ids[name] for name in names}

    def named(self, name: str) -> HostState:
        """The host in memory; an unknown one is inserted."""
        return self.host(self.ids({name})[name])

    def host(self, id: int) -> HostState:
        """The host in memory, read from its table if necessary."""
        host = self.table.loaded.get(id)
        if host is None:
            (host,) = self._records.host_states([id])  # ids come from the table, so it exists
            self._insert(host)
        return host

    def exhausted(self, host_id: int) -> bool:
        """Whether new URLs of the host are parked at once. For a host that is not loaded this is decided on loading."""
        host = self.table.loaded.get(host_id)
        return host is not None and host.exhausted

    def load(self, now: float) -> bool:
        """Load hosts whose durable clock allows a visit. False = there are none."""
        if self._unloaded_at > now or self.table.full:
            return False
        room = min(_LOAD, self.table.room)
        hosts = self._records.hosts_with_work(now, self.table.loaded.keys(), room)
        for host in hosts:
            self._insert(host)
        self._read_ahead(hosts, min(1 if self.table.full else _FIRST_FRONT, self._queue.prefetch))
        if len(hosts) < room:
            self._unloaded_at = self._records.next_wake(now, self.table.loaded.keys())
        return bool(hosts)

    def load_guests(self, now: float) -> None:
        """Load hosts that have refreshes beyond the capacity, which others have used up."""
        taken = self._refreshes.take(now, min(_LOAD, self.table.capacity // 2 - len(self.table.guests)))
        taken = [id for id in taken if id not in self.table.loaded]
        for host in self._records.host_states(taken) if taken else ():
            if host.free_at > now:
                self._refreshes.add(host.id, host.free_at)
            elif host.queued:
                self.table.guests.add(host.id)
                self._insert(host)

    def unload(self, host: HostState) -> None:
        """Drop a host without visits in progress; its clocks are durable."""
        self.table.drop(host)
        self._unloaded_at = min(self._unloaded_at, host.free_at)
        if host.queued and (host.buffer[0][PRIORITY] <= 1 if host.buffer else host.may_have(VisitClass.REFRESH)):
            self._refreshes.add(host.id, host.free_at)

    def make_room(self, now: float) -> bool:
        """If hosts that are not loaded may have work, unload those that sleep longest; their clocks are durable.
        True = there is room."""
        if self._unloaded_at > now:
            return False
        if self.table.full:
            idle = sorted(self.table.idle(now), key=lambda host: host.free_at, reverse=True)
            for host in idle[: max(1, self.table.capacity // 2)]:
                self.unload(host)
        return not self.table.full

    def refill(self, host: HostState) -> None:
        room = max(4, min(_FRONT, _FRONTS // (len(self.table.loaded) + 1)))
        self._fill(host, self._queue.front(host.id, room + host.leased), room + host.leased)

    def _fill(self, host: HostState, urls: list[QueuedUrl], asked: int) -> None:
        host.complete = len(urls) < asked
        host.absent.clear()
        host.buffer = [url for url in urls if url[FINGERPRINT] not in self.leases]
        host.important = []
        self.table.place(host)

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
            self.table.touch_address(host.address, suspected)
        self.table.place(host)

    def queue_changed(self, batch: UrlBatch, inserted: Sequence[tuple[UrlRow, Discovery]] = ()) -> None:
        """Apply changes of the tables to the hosts in memory; other hosts with work are found by the next lease."""
        hosts = self.table.loaded
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
            self.table.place(hosts[id])
        for id in {row[0] for row in batch.queue if row[1] <= 1} - hosts.keys():
            self._refreshes.add(id)

    def empty_buffer(self, host_id: int) -> None:
        host = self.table.loaded.get(host_id)
        if host is not None:
            host.clear_buffer()
            self.table.place(host)

    def moved(self, row: UrlRow) -> None:
        """A queued URL has another place. Most are far behind the next ones of their host, which then stay."""
        host = self.table.loaded.get(row.host_id)
        if host is not None:
            place = rank(self._policy.order, row.priority, row.depth, row.score, row.due)
            host.move(place, row.fingerprint, row.depth, row.score)

    def unpark_within_budget(self) -> None:
        """For an opening: settings may allow more than when URLs over budget were parked."""
        with self._database.transaction():
            for host in self._records.host_states(self._queue.parked_hosts()):
                host.default_budget = self._policy.for_host(host.name).budget or 0.0
                if not host.exhausted:
                    self._queue.unpark(host.id)

    def apply_budget(self, host: HostState) -> None:
        """Park what a spent budget no longer allows, or queue it again after the budget was raised."""
        leased = [key for key, lease in self.leases.items() if lease.host is host]
        with self._database.transaction():
            host.queued += self._queue.park(host.id, leased) if host.exhausted else self._queue.unpark(host.id)
        self.empty_buffer(host.id)

    def settled(self, hosts: Iterable[HostState], now: float) -> None:
        """The clocks of these hosts are durable now. If the table is full and others wait, unload those served."""
        crowded = self.table.full and self._unloaded_at <= now
        if len(self._clocks) > self.table.capacity:
            self._clocks = {id: clock for id, clock in self._clocks.items() if clock > now}
        stay: list[HostState] = []
        for host in hosts:
            if (crowded or not host.queued or host.id in self.table.guests) and host.leased == 0:
                self._clocks[host.id] = host.next_at
                self.unload(host)
            else:
                self.table.place(host)
                stay.append(host)
        self._read_ahead(stay, self._queue.prefetch)

    def earliest(self, now: float) -> float | None:
        """Earliest time at which a URL could be leased; None = no host has work."""
        loaded = self.table.earliest(now)
        unloaded = self._records.next_wake(now, self.table.loaded.keys())
        if self._unloaded_at <= now and self._records.hosts_with_work(now, self.table.loaded.keys(), 1):
            return now
        earliest = min(INFINITY if loaded is None else loaded, unloaded)
        return None if earliest == INFINITY else earliest

    def taken_away(self, unwanted: Callable[[HostState], bool]) -> Iterator[HostState]:
        """Hosts that belong to another worker now, or soon; the caller drops them."""
        self._refreshes.forget()
        return iter([host for host in self.table.loaded.values() if unwanted(host)])

    def hosts_added(self) -> None:
        """There may be hosts with work that are not loaded."""
        self._unloaded_at = 0.0
        self._refreshes.forget()

    def reload(self) -> None:
        """A transaction was undone: read the hosts again, but keep leases and clocks."""
        self._ids.clear()
        self._unloaded_at = 0.0
        before = dict(self.table.loaded)
        for host in before.values():
            self.table.drop(host)
        leased: dict[int, list[Lease]] = {}
        for lease in self.leases.values():
            leased.setdefault(lease.host.id, []).append(lease)
        for stored in self._records.host_states(list(before)):
            stored.next_at = max(stored.next_at, before[stored.id].next_at)
            stored.asked_at = before[stored.id].asked_at
            for lease in leased.get(stored.id, ()):
                lease.host = stored
                stored.active += not lease.answered
                stored.answered += lease.answered
            self._insert(stored)
