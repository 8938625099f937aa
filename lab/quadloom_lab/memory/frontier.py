"""The frontier as plain dictionaries: the reference of the contract suite and a test double.

Every call looks at everything, so that each rule is easy to see; `stores.frontier` does the same by index. What is
durable elsewhere is an attribute here: `reopen` stands for the end of a process.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Container, Sequence
from math import ceil

from msgspec.structs import replace

from quadloom.model.link import Discovery
from quadloom.model.outcome import READ_OUTCOMES, HostPace, Outcome, Settlement
from quadloom.model.url import fingerprint
from quadloom.model.visit import Visit
from quadloom.stores.frontier import policy as rules
from quadloom.stores.frontier.guided import gives_turn
from quadloom.stores.frontier.policy import FrontierPolicy, UrlState
from quadloom.stores.protocols.frontier import (
    AddReport,
    Explanation,
    FrontierStats,
    HostRow,
    Place,
    Quota,
    ScheduledPage,
    ScopeRules,
    ScoreUrls,
    Shares,
    VisitClass,
)
from quadloom_lab.memory.hosts import MemoryHost, MemoryHosts, MemoryLease, MemoryUrl


class MemoryFrontier:
    def __init__(self, policy: FrontierPolicy, *, now: float, scope: ScopeRules | None = None) -> None:
        self.policy = policy
        self._scope = scope
        self._urls: dict[int, MemoryUrl] = {}
        self._hosts: dict[str, MemoryHost] = {}
        self.hosts = MemoryHosts(self)
        self._leases: dict[int, MemoryLease] = {}
        self._addresses: dict[str, float] = {}
        self._site_turns: dict[str, int] = {}
        self._turn, self.clamped_hosts, self.clock_step = 0, 0, 0.0
        self._held_since, self._guided_share = float("inf"), policy.guided_share
        self._not_held: set[int] = set()
        self._shares: Shares | None = None  # of the last lease

    def guide(self, share: float) -> None:
        self._guided_share = share

    def hold_refreshes(self, since: float) -> None:
        self._held_since = since

    def _is_held(self, url: MemoryUrl) -> bool:
        """A refresh that fell due after a crawl with an end began."""
        is_refresh = url.visits > 0 and url.attempt == 1 and url.fingerprint not in self._not_held
        return is_refresh and url.due > self._held_since

    def reopen(self, now: float, scope: ScopeRules | None = None) -> None:
        """As after a kill: leases are lost, and every host waits its full delay."""
        for leased in self._leases:
            self._urls[leased].attempt += 1
        self._leases.clear()
        self._addresses = {host.row.address: now + self.policy.ip_delay for host in self._hosts.values()}
        for host in self._hosts.values():
            self._set(host, next_at=max(host.row.next_at, now + self._delay(host.row)))
        self._scope = scope or self._scope

    def clamp_clocks(self, now: float) -> None:
        """Nothing is stored that an earlier, wrong clock could have written."""

    def add(self, discoveries: Sequence[Discovery], now: float) -> AddReport:
        new = known = refused = 0
        for found in discoveries:
            url = self._urls.get(found.fingerprint)
            if url is not None:
                url.priority, url.depth = min(url.priority, found.priority), min(url.depth, found.depth)
                known += 1
            elif self._scope is not None and self._scope.verdict(found.href, found.host, found.depth):
                refused += 1
            else:
                self._insert(found)
                new += 1
        return AddReport(new, known, refused)

    def _insert(self, found: Discovery) -> MemoryUrl:
        url = self._urls[found.fingerprint] = MemoryUrl(found)
        host = self._hosts.setdefault(found.host, MemoryHost(found.host))
        if self._exhausted(host.row):
            url.state = UrlState.OVER_BUDGET
        return url

    def lease(self, limit: int, now: float, *, duration: float = 600.0, quota: Quota | None = None) -> list[Visit]:
        self._wake(now, refresh_first=quota is not None)
        self._shares = quota.shares if quota is not None else None
        visits: list[Visit] = []
        while len(visits) < limit:
            free = [url for url in self._candidates() if self._ready_at(self._hosts[url.host]) <= now]
            if quota is not None:
                free = [url for url in free if quota.allows(url.priority, url.visits > 0)]
            if not free:
                break
            chosen = min(free, key=self._turn_of)
            if quota is not None:
                if chosen.priority > 0:
                    chosen = self._of_class_in_turn([url for url in free if url.host == chosen.host], quota)
                quota.take(chosen.priority, chosen.visits > 0)
            chosen = self._guided(chosen, free)
            visits.append(self._hand_out(chosen, now, duration))
        return visits

    def _guided(self, chosen: MemoryUrl, free: list[MemoryUrl]) -> MemoryUrl:
        """The most important first read of the same host and priority, if importance has its turn."""
        if chosen.priority < 2 or chosen.visits:
            return chosen
        host = self._hosts[chosen.host]
        guided, host.guided_credit = gives_turn(host.guided_credit, self._guided_share)
        peers = (u for u in free if u.host == chosen.host and u.priority == chosen.priority and not u.visits)
        return min(peers, key=lambda url: (-url.score, url.fingerprint)) if guided else chosen

    def _of_class_in_turn(self, urls: list[MemoryUrl], quota: Quota) -> MemoryUrl:
        """One of a host's URLs that the quota allows."""
        waiting = {quota.class_of(url.priority, url.visits > 0) for url in urls}
        turns = self._hosts[urls[0].host].turns
        kind = turns.next(quota.shares, waiting)
        turns.served(kind, quota.shares, waiting)
        return min((url for url in urls if quota.class_of(url.priority, url.visits > 0) is kind), key=self._turn_of)

    def _wake(self, now: float, *, refresh_first: bool = False) -> None:
        for leased in [key for key, lease in self._leases.items() if lease.visit.deadline <= now]:
            del self._leases[leased]
            self._urls[leased].attempt += 1
        for url in self._urls.values():
            if url.state is UrlState.WAITING and url.due <= now and not self._is_held(url):
                self._not_held.discard(url.fingerprint)
                exhausted = not url.visits and self._exhausted(self._hosts[url.host].row)
                url.state = UrlState.OVER_BUDGET if exhausted else UrlState.QUEUED
                url.priority = rules.priority_due(url.priority, url.visits, refresh_first)

    def _candidates(self) -> list[MemoryUrl]:
        """Queued URLs that only politeness can delay."""
        active = Counter(lease.visit.host for lease in self._leases.values() if not lease.answered)
        queued = [url for url in self._urls.values() if url.state is UrlState.QUEUED]
        free = {u.host for u in queued if active[u.host] + self._hosts[u.host].reserved < self._room(u.host)}
        return [url for url in queued if url.host in free and url.fingerprint not in self._leases]

    def _turn_of(self, url: MemoryUrl) -> tuple[bool, int, int, tuple[int, float, float], int]:
        host = self._hosts[url.host]
        order = rules.rank(self.policy.order, url.priority, url.depth, url.score, url.due)
        return url.priority > 0, self._site_turns.get(host.row.site, 0), host.turn, order, url.fingerprint

    def _hand_out(self, url: MemoryUrl, now: float, duration: float) -> Visit:
        host = self._hosts[url.host]
        same = {name: getattr(url, name) for name in Visit.__struct_fields__ if hasattr(url, name)}
        visit = Visit(**same, known=url.visits > 0, not_before=now, deadline=now + duration)
        self._leases[url.fingerprint] = MemoryLease(visit, host.row.next_at, self._addresses.get(host.row.address, 0.0))
        self._start_clocks(host, now)
        self._turn += 1
        host.turn = self._site_turns[host.row.site] = self._turn
        return visit

    def _start_clocks(self, host: MemoryHost, at: float) -> None:
        self._set(host, next_at=at + self._delay(host.row))
        host.asked_at = at
        if host.row.address:
            self._addresses[host.row.address] = at + self.policy.ip_delay

    def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        for settlement in settlements:
            visit = settlement.visit
            asked = self._end_lease(visit, asked=settlement.pace is not None)
            url = self._urls.get(visit.fingerprint) or self._insert(rules.discovery_of(visit))
            if url.token == rules.token_of(settlement):
                continue
            host = self._hosts[url.host]
            if settlement.pace is not None and url.token < 0.0:  # each page once, however often it is read
                self._set(host, pages=host.row.pages + 1)
            url.token = rules.token_of(settlement)
            self._settle_url(url, settlement)
            self._settle_host(host, settlement, asked)
            self.add(settlement.discoveries, now)

    def _end_lease(self, visit: Visit, *, asked: bool) -> float:
        """Drop the lease if it is still this visit's; restore the clocks of a host that was not asked.
        Returns when the visit was handed out, or -infinity."""
        lease = self._leases.get(visit.fingerprint)
        if lease is None or lease.visit.deadline != visit.deadline:
            return float("-inf")
        del self._leases[visit.fingerprint]
        host = self._hosts[visit.host]
        if not asked and host.asked_at == visit.not_before:
            self._set(host, next_at=lease.next_at)
            host.asked_at = float("-inf")
            if host.row.address:
                self._addresses[host.row.address] = lease.address_clock
        return visit.not_before

    def _settle_url(self, url: MemoryUrl, settlement: Settlement) -> None:
        again = rules.is_wanted_again(url.priority, settlement)
        url.state, url.attempt = rules.state_after(settlement), rules.attempt_after(settlement)
        url.priority = rules.priority_after(url.priority, settlement)
        url.due = settlement.again_at or 0.0
        if again:
            url.state, url.priority, url.due = UrlState.QUEUED, 0, 0.0
        url.outcome = settlement.outcome
        if settlement.outcome in READ_OUTCOMES:
            url.visits += 1
            if settlement.page is not None:
                url.etag, url.last_modified = settlement.page.etag, settlement.page.last_modified

    def _settle_host(self, host: MemoryHost, settlement: Settlement, asked_at: float) -> None:
        pace, row = settlement.pace, host.row
        if pace is None:
            return
        blocked = max(row.blocked_until, pace.blocked_until)
        self._set(
            host,
            address=pace.address or row.address,
            delay=pace.delay,
            blocked_until=blocked,
            block_reason=pace.reason if pace.blocked_until and blocked == pace.blocked_until else row.block_reason,
            failures=row.failures + 1 if settlement.outcome is Outcome.FAILED else 0,
            spent=row.spent + rules.cost_of(settlement),
        )
        self._set(host, next_at=max(host.row.next_at, pace.next_at, asked_at + self._delay(host.row)))
        if pace.address:
            clock = rules.contact_time(settlement) + self.policy.ip_delay
            self._addresses[pace.address] = max(self._addresses.get(pace.address, 0.0), clock)
        self._apply_budget(host)

    def _apply_budget(self, host: MemoryHost) -> None:
        before, after = UrlState.QUEUED, UrlState.OVER_BUDGET
        if not self._exhausted(host.row):
            before, after = after, before
        for url in self._urls.values():
            mine = url.host == host.row.host and url.state is before and url.fingerprint not in self._leases
            if mine and url.priority > 0 and not url.visits:  # requested pages and refreshes cost no budget
                url.state = after

    def answered(self, visit: Visit, pace: HostPace, contacted_at: float) -> None:
        lease = self._leases.get(visit.fingerprint)
        if lease is None or lease.visit.deadline != visit.deadline:
            return
        self._leases[visit.fingerprint] = lease._replace(answered=True)
        host = self._hosts[visit.host]
        self._set(host, address=pace.address or host.row.address, delay=pace.delay)
        self._set(host, next_at=max(host.row.next_at, pace.next_at, visit.not_before + self._delay(host.row)))
        if pace.address:
            clock = max(contacted_at, visit.not_before) + self.policy.ip_delay
            self._addresses[pace.address] = max(self._addresses.get(pace.address, 0.0), clock)

    def release(self, visits: Sequence[Visit], now: float) -> None:
        for visit in visits:
            self._end_lease(visit, asked=False)

    def forget(self, is_forgotten: Callable[[str], bool], hosts: Callable[[str], bool], pages: Container[int]) -> int:
        gone = [url for url in self._urls.values() if is_forgotten(url.href) or is_forgotten(url.key)]
        for url in gone:
            del self._urls[url.fingerprint]
            host = self._hosts[url.host]
            self._set(host, pages=host.row.pages - (url.token >= 0.0))
        for url in self._urls.values():
            url.anchor = "" if url.via in pages else url.anchor
        self._hosts = {name: host for name, host in self._hosts.items() if not hosts(name)}
        return len(gone)

    def pull(self, now: float) -> bool:
        return False  # no other process sees it

    def next_due(self, now: float) -> float | None:
        times = [max(now, self._ready_at(self._hosts[url.host])) for url in self._candidates()]
        for url in self._urls.values():
            if url.state is UrlState.WAITING and not self._is_held(url):
                times.append(max(now, url.due, self._ready_at(self._hosts[url.host])))
        return min(times, default=None)

    def request(self, urls: Sequence[Discovery], now: float) -> int:
        for found in urls:
            url = self._urls.get(found.fingerprint) or self._insert(found)
            url.state, url.priority = UrlState.QUEUED, 0
        return len({found.fingerprint for found in urls})

    def set_scope(self, scope: ScopeRules) -> int:
        self._scope = scope
        moved = 0
        for url in self._urls.values():
            if url.fingerprint in self._leases:
                continue  # in progress: its settlement decides
            inside = scope.verdict(url.href, url.host, url.depth) is None
            if inside and url.state is UrlState.OUT_OF_SCOPE:
                url.state = UrlState.WAITING if url.due else UrlState.QUEUED
                moved += 1
            elif not inside and url.state in (UrlState.QUEUED, UrlState.WAITING):
                url.state = UrlState.OUT_OF_SCOPE
                moved += 1
        return moved

    def reschedule(self, pages: Sequence[ScheduledPage], now: float) -> None:
        for page in pages:
            url = self._urls.get(page.fingerprint)
            if url is not None and url.state in (UrlState.WAITING, UrlState.DONE, UrlState.DEAD):
                url.state, url.due = UrlState.WAITING, page.due
                if page.due <= now:
                    self._not_held.add(page.fingerprint)

    def rescore(self, after: Place, limit: int, scored: ScoreUrls) -> Place | None:
        unread = [url for url in self._urls.values() if url.state is UrlState.QUEUED and not url.visits]
        rest = sorted((url for url in unread if url.fingerprint > after[1]), key=lambda url: url.fingerprint)[:limit]
        scores = scored([(url.fingerprint, url.score) for url in rest])
        for url, score in zip(rest, scores, strict=True):
            if score is not None and url.fingerprint not in self._leases:
                url.score = score
        return (0, rest[-1].fingerprint) if rest else None

    def soonest(self, limit: int) -> list[ScheduledPage]:
        urls = self._urls.values()
        free = (u for u in urls if u.state is UrlState.QUEUED and u.fingerprint not in self._leases)
        busy = {u.host for u in free if not self._shares or self._shares[VisitClass.of(u.priority, u.visits > 0)]}
        waiting = [url for url in urls if url.state is UrlState.WAITING and url.host not in busy]
        known = sorted((url for url in waiting if url.visits and url.attempt == 1), key=lambda url: url.due)
        return [ScheduledPage(url.fingerprint, url.host, url.due) for url in known[:limit]]

    def explain(self, key: str, now: float) -> Explanation | None:
        url = self._urls.get(fingerprint(key))
        row = self.hosts.get(url.host) if url is not None else None
        if url is None or row is None:
            return None
        lease = self._leases.get(url.fingerprint)
        peers = [u for u in self._urls.values() if u.host == url.host and u.state is UrlState.QUEUED and u is not url]
        facts = rules.UrlFacts(
            key=url.key,
            state=url.state,
            leased_until=lease.visit.deadline if lease else 0.0,
            priority=url.priority,
            depth=url.depth,
            score=url.score,
            due=url.due,
            attempt=url.attempt,
            visits=url.visits,
            past=rules.UrlPast(url.outcome, url.kind, url.via),
            ahead=sum(self._turn_of(peer) < self._turn_of(url) for peer in peers),
        )
        return rules.explain(facts, row, self._delay(row), self._budget(row), now)

    def stats(self, now: float) -> FrontierStats:
        counts = [sum(url.state is state for url in self._urls.values()) for state in UrlState]
        leased = sum(self._urls[key].state is UrlState.QUEUED for key in self._leases)
        blocked = sum(host.row.blocked_until > now for host in self._hosts.values())
        return rules.stats_of(counts, leased, len(self._hosts), blocked)

    def close(self) -> None:
        self._leases.clear()

    def snapshot(self) -> object:
        """Everything that a rolled-back transaction must undo; leases and clocks are not durable and stay."""
        return copy.deepcopy((self._urls, self._hosts))

    def restore(self, snapshot: object) -> None:
        assert isinstance(snapshot, tuple)
        clocks = {name: host.row.next_at for name, host in self._hosts.items()}
        self._urls, self._hosts = snapshot
        for name, host in self._hosts.items():
            self._set(host, next_at=max(host.row.next_at, clocks.get(name, 0.0)))
        self._leases = {key: lease for key, lease in self._leases.items() if key in self._urls}

    def _room(self, host: str) -> int:
        """Visits at a time: `per_site`, what the budget still pays for, or one while the host fails."""
        row = self._hosts[host].row
        room = 1 if row.failures else self.policy.for_host(host).per_site or 1
        if self._budget(row) <= 0:
            return room
        answered = sum(lease.answered and lease.visit.host == host for lease in self._leases.values())
        return min(room, max(1, ceil(self._budget(row) - row.spent)) - answered)

    def _delay(self, row: HostRow) -> float:
        own = self.policy.for_host(row.host)
        return max(own.delay or 0.0, 0.0 if own.own else max(row.crawl_delay, row.delay))

    def _budget(self, row: HostRow) -> float:
        return row.budget or self.policy.for_host(row.host).budget or 0.0

    def _exhausted(self, row: HostRow) -> bool:
        return 0 < self._budget(row) <= row.spent

    def _ready_at(self, host: MemoryHost) -> float:
        return max(host.row.next_at, host.row.blocked_until, self._addresses.get(host.row.address, 0.0))

    def _set(self, host: MemoryHost, **changes: str | float | int | bytes) -> None:
        host.row = replace(host.row, **(changes | ({"address": ""} if self.policy.for_host(host.row.host).own else {})))
