"""A frontier over the tables of a database: every URL ever found, and which of them may be visited now.

The states of a URL
-------------------
::

    add ──► QUEUED ──lease──► (leased) ──settle──► WAITING ──due──► QUEUED …      retry or refresh
              ▲                   │                DONE                            read, not scheduled again
              │  deadline, crash  │                DEAD                            gone, denied, given up
              └───────────────────┘
    QUEUED, WAITING ◄──set_scope──► OUT_OF_SCOPE       QUEUED ◄──budget──► OVER_BUDGET

A URL is in exactly one state, its column `url.state`; `queue` has a row for each QUEUED one and `later` for each
WAITING one, and every move writes both tables in one transaction. `leased` is not a state on disk: a lease is in memory
only, and its URL is still QUEUED.

Why nothing is lost
-------------------
A URL leaves QUEUED only in the transaction that settles its visit, and that same transaction writes the links found
on the page. A crash before it leaves the URL queued, a crash after it leaves its links queued: there is no moment at
which a URL is neither queued nor settled with its links known. So kill -9 costs at most a second visit to the pages
that were in progress. Settling twice is harmless: the row keeps the token of its last settlement (the lease's
deadline).

Why no host is asked early, also after a crash
----------------------------------------------
A host's clock starts in memory at the lease and becomes durable with the settlement. What a killed process leased
after its last commit is unknown. Therefore, unless the frontier was closed cleanly (then all clocks were written),
every host that existed at opening waits its full delay from the moment of opening, and every address its own.
Hosts found later have no past. The rule costs one delay per crash and not one write per lease.

Each settlement also writes the list of what is leased. After a crash the URLs on it count one attempt more,
so a page that ends the process again and again can be distinguished from its neighbours.

What is in memory
-----------------
Some thousand hosts, each with the first URLs of its queue (`host_table`); leases (`leasing`); recent fingerprints.
All bounded, all rebuilt from the tables. After a rolled-back transaction memory is ahead of the tables; `_reload` then
reads it again and keeps only leases and clocks, which are at worst later than necessary.

One thread at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence

from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, Settlement
from quadloom.model.url import fingerprint, host_of
from quadloom.model.visit import Visit
from quadloom.stores.frontier import policy as rules
from quadloom.stores.frontier.host_table import HostState
from quadloom.stores.frontier.hosts import TableFrontierHosts
from quadloom.stores.frontier.leasing import UrlLeases
from quadloom.stores.frontier.loaded_hosts import INFINITY, LoadedHosts
from quadloom.stores.frontier.policy import FrontierPolicy, UrlState
from quadloom.stores.frontier.recent_urls import RecentFingerprints
from quadloom.stores.frontier.rows import HeldRefreshes, SettledRow, UrlBatch, UrlRow, after_settlement, state_in
from quadloom.stores.protocols.frontier import (
    AddReport,
    Explanation,
    FrontierStats,
    Place,
    Quota,
    ScheduledPage,
    ScopeRules,
    ScoreUrls,
)
from quadloom.stores.sql.hosts import SqlHosts
from quadloom.stores.sql.queue import SqlQueue
from quadloom.stores.sql.statements import SqlDatabase
from quadloom.stores.sql.urls import SqlUrls

_ADDED = 5000  # links written at once: rows of all would take as much memory as the links
_PROMOTE = 2000  # due URLs queued in one transaction
_ALSO_SOON = 1000  # read in addition, to find pages of hosts that are free


class TableFrontier:
    """See `quadloom.stores.protocols.frontier.Frontier`. On a read-only database only reading methods may be used. A
    backend supplies the tables, and makes its opening and closing durable."""

    def __init__(
        self,
        database: SqlDatabase,
        hosts: SqlHosts,
        urls: SqlUrls,
        queue: SqlQueue,
        policy: FrontierPolicy,
        *,
        now: float,
        scope: ScopeRules | None = None,
        capacity: int = 2048,
    ) -> None:
        self.policy = policy
        self._database = database
        self._host_records = hosts
        self._url_records = urls
        self._queue = queue
        self._scope = scope
        self.loaded = LoadedHosts(database, hosts, queue, policy, now=now, capacity=capacity)
        self.leases = UrlLeases(database, self.loaded, hosts, urls, queue)
        self.hosts = TableFrontierHosts(database, hosts, self.leases)
        self._recent = RecentFingerprints()
        self.clamped_hosts, self.clock_step = 0, 0.0
        self._held = HeldRefreshes()

    def add(self, discoveries: Sequence[Discovery], now: float) -> AddReport:
        with self._database.transaction():
            return self._add(discoveries)

    def _add(self, discoveries: Sequence[Discovery]) -> AddReport:
        unknown = self._recent.unknown(discoveries)
        known, refused = len(discoveries) - len(unknown), 0
        verdict = self._scope.verdict if self._scope is not None else None
        fresh: dict[int, Discovery] = {}
        for found in unknown:
            if verdict is not None and verdict(found.href, found.host, found.depth) is not None:
                refused += 1
            elif found.fingerprint in fresh:
                known += 1
                fresh[found.fingerprint] = rules.better(fresh[found.fingerprint], found)
            else:
                fresh[found.fingerprint] = found
        if not fresh:
            return AddReport(0, known, refused)
        new = self._write_fresh(fresh)
        return AddReport(new, known + len(fresh) - new, refused)

    def _write_fresh(self, fresh: dict[int, Discovery]) -> int:
        ids = self.loaded.ids({found.host for found in fresh.values()})
        known = self._url_records.ranks(sorted((ids[found.host], key) for key, found in fresh.items()))
        improved = [(ids[fresh[key].host], key) for key, rank in known.items() if rank.is_worse_than(fresh[key])]
        stored = self._url_records.urls(improved)
        spent = {name for name, id in ids.items() if self.loaded.exhausted(id)}
        batch = UrlBatch(self._queue.order)
        inserted: list[tuple[UrlRow, Discovery]] = []
        for key, found in fresh.items():
            if key in stored:
                self._improve(batch, stored[key], found)
            elif key in known:
                self._recent.learn(key, *known[key])
            else:
                state = UrlState.OVER_BUDGET if found.host in spent else UrlState.QUEUED
                inserted.append((UrlRow(ids[found.host], key, state, found.priority, found.depth, found.score), found))
        inserted.sort(key=lambda new: new[0][:2])  # as the table's key: inserts walk the tree once
        batch.enter_new([row for row, _ in inserted if row.state == UrlState.QUEUED])
        for row, found in inserted:
            if row.state != UrlState.QUEUED:
                batch.enter(row)
            self._recent.learn(row.fingerprint, found.priority, found.depth)
        self._url_records.insert(inserted)
        self._queue.write_moves(batch)
        self.loaded.queue_changed(batch, inserted)
        return len(inserted)

    def _improve(self, batch: UrlBatch, row: UrlRow, found: Discovery) -> None:
        """Take over a smaller depth or a higher priority for a known URL."""
        better = row._replace(priority=min(row.priority, found.priority), depth=min(row.depth, found.depth))
        self._recent.learn(row.fingerprint, better.priority, better.depth)
        self._move(batch, row, better)

    def request(self, urls: Sequence[Discovery], now: float) -> int:
        wanted = {found.fingerprint: found for found in urls}
        with self._database.transaction():
            ids = self.loaded.ids({found.host for found in wanted.values()})
            stored = self._url_records.urls([(ids[found.host], key) for key, found in wanted.items()])
            batch = UrlBatch(self._queue.order)
            inserted: list[tuple[UrlRow, Discovery]] = []
            for key, found in wanted.items():
                row = stored.get(key)
                if row is not None:
                    self._move(batch, row, row._replace(state=UrlState.QUEUED, priority=0, due=0.0))
                    continue
                row = UrlRow(ids[found.host], key, UrlState.QUEUED, 0, found.depth, found.score)
                batch.enter(row)
                inserted.append((row, found))
            self._url_records.insert(inserted)
            self._queue.write_moves(batch)
            self.loaded.queue_changed(batch, inserted)
            for id in batch.queued:
                self.loaded.refill(self.loaded.host(id))  # so that the host's best URL is the request
        return len(wanted)

    def lease(self, limit: int, now: float, *, duration: float = 600.0, quota: Quota | None = None) -> list[Visit]:
        self.leases.end_overdue(now)
        until = min(now, self._held.since)
        while self._queue.first_due <= until:
            self._promote(self._queue.due(until, _PROMOTE), refresh_first=quota is not None)
        if free := self._held.take(now, _PROMOTE):
            rows = [row for row in self._url_records.urls(free).values() if row.state == UrlState.WAITING]
            self._promote([row for row in rows if row.due <= now], refresh_first=quota is not None)
        return self.leases.lease(limit, now, duration, quota)

    def guide(self, share: float) -> None:
        if share > 0.0:
            with self._database.transaction():
                self._queue.index_importance()
        self.leases.guided.share = share

    def hold_refreshes(self, since: float) -> None:
        self._held = HeldRefreshes(since, self._queue.retries(since) if since < INFINITY else ())

    def _promote(self, rows: Sequence[UrlRow], *, refresh_first: bool) -> None:
        """Queue what has become due. The only write that a lease may cause, and only if something is due."""
        with self._database.transaction():
            batch = UrlBatch(self._queue.order)
            for row in rows:
                batch.move(row, row.due_now(refresh_first))
            self._url_records.update([row.due_now(refresh_first) for row in rows])
            self._queue.write_moves(batch)
            self._queue.read_first_due()
        for id in batch.queued:
            self.loaded.empty_buffer(id)
        self.loaded.queue_changed(batch)

    def answered(self, visit: Visit, pace: HostPace, contacted_at: float) -> None:
        self.leases.answered(visit, pace, contacted_at)

    def release(self, visits: Sequence[Visit], now: float) -> None:
        self.leases.release(visits)

    def next_due(self, now: float) -> float | None:
        first = self._held.first_due(self._queue.first_due)
        times = [time for time in (self.loaded.earliest(now), first) if time not in (None, INFINITY)]
        return max(now, min(times)) if times else None

    def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        with self._database.transaction():
            hosts: dict[int, HostState] = {}
            for part in rules.distinct(settlements):
                hosts |= self._settle_part(part)
            self._host_records.write_hosts(hosts.values())
            self._url_records.note_leased(self.leases.leased_pairs())
        self.loaded.settled(hosts.values(), now)

    def _settle_part(self, settlements: Sequence[Settlement]) -> dict[int, HostState]:
        """Settle visits of distinct URLs."""
        ids = self.loaded.ids({settlement.visit.host for settlement in settlements})
        stored = self._url_records.urls([(ids[s.visit.host], s.visit.fingerprint) for s in settlements])
        batch = UrlBatch(self._queue.order)
        settled: list[SettledRow] = []
        unknown: list[tuple[UrlRow, Discovery]] = []
        hosts: dict[int, HostState] = {}
        found: list[Discovery] = []
        for settlement in settlements:
            visit = settlement.visit
            self.leases.end(visit, asked=settlement.pace is not None)
            host = hosts[ids[visit.host]] = self.loaded.host(ids[visit.host])
            row = stored.get(visit.fingerprint)
            if row is None:  # imported, or leased from a database that was lost
                row = UrlRow(host.id, visit.fingerprint, UrlState.DONE, visit.priority, visit.depth, visit.score)
                unknown.append((row, rules.discovery_of(visit)))
                batch.counts[row.state] += 1
            elif row.token == rules.token_of(settlement):
                continue
            after = after_settlement(row, settlement)
            batch.move(row, after)
            settled.append(SettledRow(after, settlement))
            host.remove(visit.fingerprint)
            if after.state == UrlState.QUEUED:
                self.loaded.empty_buffer(host.id)  # requested again, before everything in the buffer
            elif after.attempt > 1 or not after.visits or after.due <= rules.contact_time(settlement):
                self._held.free(after)
            self._recent.learn(visit.fingerprint, after.priority, after.depth)
            self._pace(host, settlement)
            host.pages += settlement.pace is not None and row.token < 0.0  # each page once, however often it is read
            found += settlement.discoveries
        self._url_records.insert(unknown)
        self._url_records.update_settled(settled)
        self._queue.write_moves(batch)
        self.loaded.queue_changed(batch)
        for start in range(0, len(found), _ADDED):
            self._add(found[start : start + _ADDED])
        for host in hosts.values():
            if host.exhausted and host.queued > host.leased:
                self.loaded.apply_budget(host)
        return hosts

    def _pace(self, host: HostState, settlement: Settlement) -> None:
        """Apply what the visit showed about its host. No pace = the host was not asked, so its clocks did not move."""
        pace = settlement.pace
        if pace is None:
            return
        if pace.address and pace.address != host.address and not host.is_own:
            self.loaded.table.move(host, pace.address)
        self.loaded.table.touch_address(host.address, rules.contact_time(settlement))
        host.delay = pace.delay
        host.next_at = max(host.next_at, pace.next_at, host.asked_at + host.pause)
        if pace.blocked_until > host.blocked_until:
            host.blocked_until, host.block_reason = pace.blocked_until, pace.reason
        host.failures = host.failures + 1 if settlement.outcome is Outcome.FAILED else 0
        host.spent += rules.cost_of(settlement)

    def clamp_clocks(self, now: float) -> None:
        """Part of opening: the clock may have been ahead when the hosts' clocks were stored."""
        policy = self.policy
        self.clamped_hosts += self._host_records.clamp_clocks(now + policy.longest_delay, now + policy.longest_block)

    def set_scope(self, scope: ScopeRules) -> int:
        self._scope = scope
        moved = 0
        with self._database.transaction():
            for chunk in self._url_records.scan_scoped():
                batch = UrlBatch(self._queue.order)
                for row, href, host in chunk:
                    after = state_in(scope, row, href, host)
                    if after != row.state and row.fingerprint not in self.loaded.leases:
                        self._move(batch, row, row._replace(state=after))
                        moved += 1
                self._queue.write_moves(batch)
                self.loaded.queue_changed(batch)
        return moved

    def forget(self, is_forgotten: Callable[[str], bool], hosts: Callable[[str], bool], pages: Container[int]) -> int:
        removed = 0
        for chunk in self._url_records.scan():
            gone = [url.row for url in chunk if is_forgotten(url.href) or is_forgotten(url.key)]
            left = {row.fingerprint for row in gone}
            silent = [url.row for url in chunk if url.anchor and url.via in pages and url.row.fingerprint not in left]
            if not gone and not silent:
                continue
            with self._database.transaction():
                batch = UrlBatch(self._queue.order)
                for row in gone:
                    batch.leave(row)
                self._queue.write_moves(batch)
                self._host_records.subtract_pages(Counter(row.host_id for row in gone if row.token >= 0.0))
                self._url_records.remove(gone)
                self._url_records.clear_anchors(silent)
            removed += len(gone)
        with self._database.transaction():
            self._host_records.remove([id for id, name in self._host_records.names() if hosts(name)])
        self._reload()
        return removed

    def reschedule(self, pages: Sequence[ScheduledPage], now: float) -> None:
        wanted = {page.fingerprint: page for page in pages}
        with self._database.transaction():
            ids = self._host_records.host_ids(list({page.host for page in wanted.values()}), create=False)
            pairs = [(ids[page.host], key) for key, page in wanted.items() if page.host in ids]
            batch = UrlBatch(self._queue.order)
            for key, row in self._url_records.urls(pairs).items():
                if row.state in (UrlState.WAITING, UrlState.DONE, UrlState.DEAD):
                    due = min(wanted[key].due, now + self.policy.longest_wait)
                    after = row._replace(state=UrlState.WAITING, due=due)
                    self._move(batch, row, after)
                    if after.due <= now:
                        self._held.free(after)
            self._queue.write_moves(batch)
            self._queue.read_first_due()

    def soonest(self, limit: int) -> list[ScheduledPage]:
        busy = self.leases.hosts_with_queue()
        if not busy:
            return self._queue.soonest(limit)
        pages = self._queue.soonest(limit + _ALSO_SOON)
        return [page for page in pages if page.host not in busy][:limit]

    def rescore(self, after: Place, limit: int, scored: ScoreUrls) -> Place | None:
        rows = self._url_records.unread(after, limit)
        if not rows:
            return None
        scores = scored([(row.fingerprint, row.score) for row in rows])
        moved = [
            (row, row._replace(score=score))
            for row, score in zip(rows, scores, strict=True)
            if score is not None and row.fingerprint not in self.loaded.leases
        ]
        if moved:
            with self._database.transaction():
                batch = UrlBatch(self._queue.order)
                for before, now in moved:
                    batch.move(before, now)
                    self.loaded.moved(now)
                self._url_records.update_scores([now for _, now in moved])
                self._queue.write_moves(batch)
        return rows[-1].host_id, rows[-1].fingerprint

    def _move(self, batch: UrlBatch, before: UrlRow, after: UrlRow) -> None:
        batch.move(before, after)
        self._url_records.update([after])
        if before.state == after.state == UrlState.QUEUED:
            self.loaded.moved(after)
        elif UrlState.QUEUED in (before.state, after.state):  # else the host's queue is what it was
            self.loaded.empty_buffer(after.host_id)

    def explain(self, key: str, now: float) -> Explanation | None:
        name, url = host_of(key), fingerprint(key)
        id = self._host_records.host_ids([name], create=False).get(name)
        row = self._url_records.urls([(id, url)]).get(url) if id is not None else None
        host = self.hosts.get(name)
        if row is None or host is None:
            return None
        lease = self.loaded.leases.get(url)
        facts = rules.UrlFacts(
            key=key,
            state=UrlState(row.state),
            leased_until=lease.visit.deadline if lease else 0.0,
            priority=row.priority,
            depth=row.depth,
            score=row.score,
            due=row.due,
            attempt=row.attempt,
            visits=row.visits,
            past=self._url_records.past(row),
            ahead=self._queue.ahead(row),
        )
        own = self.policy.for_host(name)
        delay = max(own.delay or 0.0, 0.0 if own.own else max(host.crawl_delay, host.delay))
        return rules.explain(facts, host, delay, host.budget or own.budget or 0.0, now)

    def stats(self, now: float) -> FrontierStats:
        leased = sum(lease.live for lease in self.loaded.leases.values())
        return rules.stats_of(self._queue.counts(), leased, *self._host_records.host_counts(now))

    def _reload(self) -> None:
        """A transaction was rolled back: read what is in memory again."""
        self._recent.clear()
        self._queue.reload()
        self.loaded.reload()
