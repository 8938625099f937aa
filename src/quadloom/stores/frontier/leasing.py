"""Which worker has which URL: leases over the hosts in memory (`loaded_hosts`).

The part of the frontier that hands out URLs and takes them back. It reads tables and does not write them, except for
the attempts and clocks of a lease that ran out and for what a spent budget parks.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from quadloom.model.outcome import HostPace
from quadloom.model.visit import Visit
from quadloom.stores.frontier.class_turns import ClassTurns, has_open_class
from quadloom.stores.frontier.guided import GuidedReads
from quadloom.stores.frontier.host_table import KNOWN, PRIORITY, HostState, QueuedUrl
from quadloom.stores.frontier.loaded_hosts import Lease, LoadedHosts
from quadloom.stores.protocols.frontier import Quota
from quadloom.stores.sql.hosts import SqlHosts
from quadloom.stores.sql.queue import SqlQueue
from quadloom.stores.sql.statements import SqlDatabase
from quadloom.stores.sql.urls import SqlUrls

_ENDED = 1000  # deadlines of leases that have ended, before they are dropped


class UrlLeases:
    """Hands out URLs of the hosts in `hosts`, and loads further hosts when there is room."""

    def __init__(
        self,
        database: SqlDatabase,
        hosts: LoadedHosts,
        records: SqlHosts,
        urls: SqlUrls,
        queue: SqlQueue,
    ) -> None:
        self.hosts = hosts
        self.leases = hosts.leases
        self.start_before = 0.0  # given to every visit that is handed out
        self.guided = GuidedReads(queue, self.leases)
        self._table = hosts.table
        self._turns = ClassTurns(queue, self.leases, self.guided)
        self._database = database
        self._records = records
        self._urls = urls
        self.deadlines: list[tuple[float, int]] = []  # of leases, and of some that have ended
        self._quota: Quota | None = None  # of the last lease

    def lease(self, limit: int, now: float, duration: float, quota: Quota | None = None) -> list[Visit]:
        self._quota = quota
        self.hosts.load(now)
        if quota is not None and self._table.full:
            self.hosts.load_guests(now)
        visits: list[Visit] = []
        skipped: list[HostState] = []  # hosts that have work, but none that the quota allows
        while len(visits) < limit:
            host = self._table.next(now)
            if host is None:
                if self.hosts.make_room(now) and self.hosts.load(now):
                    continue
                break
            if not host.buffer:
                self.hosts.refill(host)
            if host.exhausted and any(url[PRIORITY] > 0 and not url[KNOWN] for url in host.buffer):
                self.hosts.apply_budget(host)
                self.hosts.refill(host)
            if host.buffer:
                url = self.guided.take(host, host.buffer[0]) if quota is None else self._turns.next(host, quota)
                if url is None:
                    skipped.append(host)
                    if quota is not None and not quota.left:
                        break  # only requests remain, and hosts that have one come first
                    continue
                visits.append(self._hand_out(host, url, now, duration))
            self._table.place(host)
        if quota is not None:
            quota.passed_over = len(skipped)
        for host in skipped:
            if host.id in self._table.guests and host.leased == 0:
                self.hosts.unload(host)
            else:
                self._table.place(host)
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
        clock = self._table.start_clocks(host, now)
        self.leases[key] = Lease(visit, host, next_at, clock)
        heapq.heappush(self.deadlines, (visit.deadline, key))
        if len(self.deadlines) > 2 * len(self.leases) + _ENDED:  # those of the last ten minutes would be 30 MB
            self.deadlines = [(lease.visit.deadline, key) for key, lease in self.leases.items()]
            heapq.heapify(self.deadlines)
        return visit

    def end_overdue(self, now: float) -> None:
        """End leases whose deadline has passed; their URLs never left the queue, and count one attempt more."""
        lost: list[Lease] = []
        while self.deadlines and self.deadlines[0][0] <= now:
            deadline, key = heapq.heappop(self.deadlines)
            lease = self.leases.get(key)
            if lease is not None and lease.visit.deadline == deadline:
                lost.append(self.leases.pop(key))
        if not lost:
            return
        for lease in lost:
            self._return(lease)
        with self._database.transaction():
            self._urls.count_attempts([(lease.host.id, lease.visit.fingerprint) for lease in lost])
            self._records.write_hosts({lease.host.id: lease.host for lease in lost}.values())

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
            self._table.restore_clocks(lease.host, visit.not_before, lease.next_at, lease.address_clock)

    def answered(self, visit: Visit, pace: HostPace, contacted_at: float) -> None:
        """The host has room for the next visit; its clocks move as the settlement will move them."""
        lease = self.leases.get(visit.fingerprint)
        if lease is None or lease.visit.deadline != visit.deadline or lease.answered:
            return
        host = lease.host
        if pace.address and pace.address != host.address and not host.is_own:
            self._table.move(host, pace.address)
        self._table.touch_address(host.address, max(contacted_at, visit.not_before))
        host.delay = pace.delay
        host.next_at = max(host.next_at, pace.next_at, host.asked_at + host.pause)
        lease.answered = True
        host.active -= 1
        host.answered += 1
        if host.id in self._table.loaded:
            self._table.place(host)

    def reserve(self, host: HostState, now: float) -> float | None:
        """Take the host's next turn for a request outside of the queue; returns its time, None = it is busy."""
        at = self._table.take_turn(host, now) if host.active < host.per_site else None
        self.hosts.settled([host], now)
        return at

    def free(self, host: HostState, next_at: float, now: float) -> None:
        """End such a turn."""
        host.active = max(0, host.active - 1)
        host.next_at = max(host.next_at, next_at)
        self.hosts.settled([host], now)

    def release(self, visits: Sequence[Visit]) -> None:
        for visit in visits:
            lease = self.leases.get(visit.fingerprint)
            if lease is not None and lease.visit.deadline == visit.deadline:
                del self.leases[visit.fingerprint]
                self._table.restore_clocks(lease.host, visit.not_before, lease.next_at, lease.address_clock)
                self._return(lease)

    def _return(self, lease: Lease) -> None:
        host = lease.host
        _free(lease)
        host.clear_buffer()
        if host.id in self._table.loaded:
            self._table.place(host)

    def leased_pairs(self) -> list[tuple[int, int]]:
        """(host id, fingerprint) of all visits in progress."""
        return [(lease.host.id, key) for key, lease in self.leases.items()]

    def drop(self, unwanted: Callable[[HostState], bool]) -> None:
        """These hosts belong to another worker: hand out nothing more, and forget the visits in progress."""
        for host in self.hosts.taken_away(unwanted):
            self._table.drop(host)
        for key in [key for key, lease in self.leases.items() if unwanted(lease.host)]:
            del self.leases[key]

    def retire(self, unwanted: Callable[[HostState], bool]) -> None:
        """Hand out nothing more of these hosts; those with visits in progress stay until these are settled."""
        for host in self.hosts.taken_away(unwanted):
            host.retired = True
            if host.leased == 0:
                self._table.drop(host)
            else:
                self._table.place(host)

    def hosts_with_queue(self) -> set[str]:
        """Loaded hosts with queued URLs that politeness does not allow yet, not counting classes without a share."""
        hosts = (host for host in self._table.loaded.values() if host.queued > host.leased)
        quota = self._quota
        return {host.name for host in hosts if quota is None or has_open_class(host, quota)}


def _free(lease: Lease) -> None:
    """The visit is no longer one of its host's."""
    host = lease.host
    if lease.answered:
        host.answered = max(0, host.answered - 1)
    else:
        host.active = max(0, host.active - 1)
