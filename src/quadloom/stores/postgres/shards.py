"""The shards of this worker on PostgreSQL: taking them, giving them back, and links for the shards of others.

When a worker takes over a shard that was not given back cleanly, it cannot know which of the hosts were asked a moment
ago: all of them wait their full delay from that moment. So they do if the clock of one of the two machines is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from quadloom.errors import StoreError, WarehouseLocked
from quadloom.model.link import Discovery
from quadloom.model.wire import decode, encode
from quadloom.stores.frontier.frontier import TableFrontier
from quadloom.stores.frontier.host_table import HostState
from quadloom.stores.frontier.leasing import UrlLeases
from quadloom.stores.frontier.loaded_hosts import INFINITY
from quadloom.stores.frontier.recent_urls import RecentFingerprints
from quadloom.stores.postgres.arrays import columns
from quadloom.stores.postgres.catalog import PostgresCatalog
from quadloom.stores.postgres.cluster import PostgresHeartbeat
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier_queue import PostgresQueue
from quadloom.stores.postgres.frontier_tables import PostgresHosts, PostgresUrls, host_number
from quadloom.stores.postgres.shard_leases import ShardLeases
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.cluster import ShardLoad, ShardQueue
from quadloom.stores.protocols.frontier import ScheduledPage
from quadloom.stores.shards import SHARDS, shard_of

PULLED = 200  # batches from other shards taken in one transaction
_WORK_SECONDS = 60.0  # what a host can serve within this time is its work
_LEAST_PAUSE = 0.05  # seconds that a host's requests take at least, whatever politeness allows


class OpenFrontier(NamedTuple):
    """The frontier whose hosts belong to the shards. `frontier` takes the links that others sent; the rest is what
    changes when a shard comes or goes."""

    frontier: TableFrontier
    hosts: PostgresHosts
    urls: PostgresUrls
    queue: PostgresQueue
    leasing: UrlLeases
    recent: RecentFingerprints


class PostgresShards:
    """See `quadloom.stores.protocols.cluster.Shards`. The frontier attaches itself when it opens."""

    def __init__(self, url: str, database: PostgresDatabase, leases: ShardLeases, catalog: PostgresCatalog) -> None:
        self.leases = leases
        self._url = url
        self._database = database
        self._catalog = catalog
        self._links = LinkOutbox(database, leases)
        self._attached: OpenFrontier | None = None
        self._suspected: dict[int, tuple[float, int]] = {}  # shard → time of the takeover, number of the last host then

    def attach(self, opened: OpenFrontier) -> None:
        opened.leasing.hosts.suspected_at = self._suspected_at
        self._attached = opened

    @property
    def _open(self) -> OpenFrontier:
        if self._attached is None:
            raise StoreError("shards need an open frontier", hint="open the warehouse for writing")
        return self._attached

    @property
    def owned(self) -> frozenset[int]:
        return frozenset(self.leases.epochs)

    @property
    def owner(self) -> str:
        return self.leases.owner

    @property
    def draining(self) -> frozenset[int]:
        return frozenset(self.leases.draining)

    @property
    def begin_until(self) -> float:
        return self.leases.begin_until

    @property
    def clock_error(self) -> float:
        return self.leases.clock_error

    @property
    def is_outdated(self) -> bool:
        return self.leases.is_outdated

    def queues(self) -> dict[int, ShardQueue]:
        found: dict[int, ShardQueue] = {}
        most: dict[int, float] = {}
        for host in self._open.leasing.hosts.table.loaded.values():
            if host.queued <= 0:
                continue
            shard = shard_of(host.name)
            work = min(float(host.queued), _WORK_SECONDS * host.per_site / max(host.pause, _LEAST_PAUSE))
            known = found.get(shard, ShardQueue(0.0, 0, ""))
            busiest = host.name if work > most.get(shard, 0.0) else known.busiest
            most[shard] = max(work, most.get(shard, 0.0))
            found[shard] = ShardQueue(known.work + work, known.queued + host.queued, busiest)
        return found

    def share_loads(self, queues: Mapping[int, ShardQueue]) -> list[ShardLoad]:
        rows = self._database.execute(
            "SELECT l.shard, CASE WHEN o.name IS NULL THEN '' ELSE l.owner END, "
            "CASE WHEN w.name IS NULL THEN '' ELSE l.wanted_by END, s.work FROM shard_lease l JOIN shard_load s "
            "USING (shard) LEFT JOIN worker o ON o.name = l.owner AND o.until > clock_timestamp() "
            "LEFT JOIN worker w ON w.name = l.wanted_by AND w.until > clock_timestamp() ORDER BY l.shard"
        )
        # A shard that this worker owns without knowing is free for it: otherwise nobody would read its sites.
        unknown = {row[0] for row in rows if row[1] == self.owner and row[0] not in self.leases.epochs}
        loads = [ShardLoad(row[0], "", *row[2:]) if row[0] in unknown else ShardLoad(*row) for row in rows]
        changed: list[tuple[int, float]] = []
        for place, load in enumerate(loads):
            if load.shard not in self.leases.epochs or load.shard in self.leases.draining:
                continue
            # Hosts of a shard that was just taken are not in memory yet, so what is less counts by half.
            seen = queues[load.shard].work if load.shard in queues else 0.0
            work = round(seen if seen >= load.work else (seen + load.work) / 2, 1)
            if work != load.work:
                loads[place] = load._replace(work=work)
                changed.append((load.shard, work))
        if changed:
            self._database.write(
                "UPDATE shard_load s SET work = w.work FROM unnest(%s::smallint[], %s::float8[]) AS w(shard, work) "
                "WHERE s.shard = w.shard",
                columns("hd", changed),
            )
        return loads

    def want(self, shards: Collection[int]) -> None:
        self.leases.fetches = False  # it takes these and no share
        self.leases.renew(self._database)
        self._database.write(
            "UPDATE shard_lease SET wanted_by = CASE WHEN shard = ANY(%s::smallint[]) THEN %s ELSE '' END "
            "WHERE wanted_by = %s OR shard = ANY(%s::smallint[])",
            (list(shards), self.owner, self.owner, list(shards)),
        )

    def heartbeat(self) -> PostgresHeartbeat:
        return PostgresHeartbeat(self._url, self.leases)

    def take(self, limit: int, now: float, wanted: Collection[int] | None = None) -> list[int]:
        frontier, hosts, urls, queue, leasing, recent = self._open
        self.leases.end_frozen(self._database)
        with self._database.transaction():
            claims = self.leases.claim(self._database, limit, wanted)
            if claims:
                frontier.clamp_clocks(now)
            last = hosts.last_host_number()
            urls.count_leased_attempts(claims)
        self.leases.took(claims)
        is_wrong = bool(self.leases.clock_error)  # then the clocks of hosts that others wrote mean nothing here
        self._suspected.update((claim.shard, (now, last)) for claim in claims if is_wrong or not claim.clean)
        if claims:
            recent.clear()  # it also holds what was sent to these shards and has not arrived
            queue.read_first_due()
            leasing.hosts.hosts_added()
            leasing.hosts.unpark_within_budget()
        return [claim.shard for claim in claims]

    def take_all(self, now: float) -> None:
        self.leases.renew(self._database)
        self.take(SHARDS, now)
        if len(self.owned) < SHARDS:
            raise WarehouseLocked(
                f"running workers own {SHARDS - len(self.owned)} of {SHARDS} shards",
                hint="stop them with `quadloom stop --all-workers`, and start them again afterwards",
            )

    def drain(self, shards: Iterable[int]) -> None:
        self.leases.draining.update(self.owned.intersection(shards))
        self.retire_draining()
        self._open.queue.read_first_due()

    def retire_draining(self) -> None:
        """Lease nothing more from hosts of draining shards, also from those that were loaded since `drain`."""
        self._open.leasing.retire(_in(self.leases.draining))

    def give_back(self, unfinished: frozenset[int] = frozenset()) -> list[int]:
        hosts, leasing = self._open.hosts, self._open.leasing
        busy = {shard_of(lease.host.name) for lease in leasing.leases.values()}
        loaded = leasing.hosts.table.loaded
        busy.update(shard_of(host.name) for host in loaded.values() if host.active)  # also by turns that were reserved
        ready = sorted(self.leases.draining - busy - unfinished)
        if ready:
            with self._database.transaction():
                hosts.write_hosts(filter(_in(ready), loaded.values()))
                self.leases.release(self._database, ready)
            self.lose(ready)
        return ready

    def lose(self, shards: Iterable[int]) -> None:
        gone = set(shards)
        self.leases.forget(gone)
        for shard in gone:
            self._suspected.pop(shard, None)
        self._open.leasing.drop(_in(gone))
        self._open.queue.read_first_due()

    def pull(self, now: float, prepare: Callable[[], None]) -> bool:
        frontier = self._open.frontier
        waiting = self._links.waiting(PULLED) if self.leases.epochs else []
        if not waiting:
            return False
        prepare()
        with self._database.transaction():
            batches = self._links.receive(waiting)
            offers = [item for batch in batches if not batch.urgent for item in batch.discoveries]
            requests = [item for batch in batches if batch.urgent for item in batch.discoveries]
            if offers:
                frontier.add(offers, now)
            if requests:
                frontier.request(requests, now)
            scheduled = [page for batch in batches for page in batch.scheduled]
            if scheduled:
                frontier.reschedule(scheduled, now)
        return len(batches) == PULLED

    def catalog_of(self, shards: Sequence[int]) -> Catalog:
        return self._catalog.of_shards(shards)

    def _suspected_at(self, host: HostState) -> float:
        at, last = self._suspected.get(shard_of(host.name), (-INFINITY, 0))
        return at if host_number(host.id) <= last else -INFINITY


def _in(shards: Iterable[int]) -> Callable[[HostState], bool]:
    chosen = frozenset(shards)
    return lambda host: shard_of(host.name) in chosen


class LinkBatch(msgspec.Struct, frozen=True, array_like=True):
    """A batch for another shard. `urgent`: explicit requests, not offers. `scheduled`: times of next visits."""

    discoveries: tuple[Discovery, ...]
    urgent: bool = False
    scheduled: tuple[ScheduledPage, ...] = ()


class LinkOutbox:
    """Links that one worker found for the shards of another, on their way."""

    def __init__(self, database: PostgresDatabase, leases: ShardLeases) -> None:
        self._database = database
        self._leases = leases

    def send(self, found: Iterable[Discovery], *, urgent: bool) -> None:
        """Send links to the owners of their shards: one batch for each shard."""
        by_shard: dict[int, list[Discovery]] = {}
        for item in found:
            by_shard.setdefault(shard_of(item.host), []).append(item)
        self._insert([(shard, LinkBatch(tuple(items), urgent)) for shard, items in by_shard.items()])

    def _insert(self, batches: Sequence[tuple[int, LinkBatch]]) -> None:
        if batches:
            self._database.write(
                "INSERT INTO link_outbox(shard_to, batch) SELECT * FROM unnest(%s::smallint[], %s::bytea[])",
                columns("hy", [(shard, encode(batch)) for shard, batch in batches]),
            )

    def schedule(self, pages: Iterable[ScheduledPage]) -> None:
        """Send times of next visits to the owners of the pages' shards."""
        by_shard: dict[int, list[ScheduledPage]] = {}
        for page in pages:
            by_shard.setdefault(shard_of(page.host), []).append(page)
        self._insert([(shard, LinkBatch((), scheduled=tuple(items))) for shard, items in by_shard.items()])

    def waiting(self, limit: int) -> list[tuple[int, int]]:
        """(shard, number) of the oldest batches sent to the shards of this worker."""
        return self._database.execute(
            "SELECT m.shard_to, m.seq FROM unnest(%s::smallint[]) AS s(shard) CROSS JOIN LATERAL (SELECT shard_to, seq "
            "FROM link_outbox x WHERE x.shard_to = s.shard ORDER BY seq LIMIT %s) m ORDER BY m.seq LIMIT %s",
            (self._leases.owned, limit, limit),
        )

    def receive(self, batches: Sequence[tuple[int, int]]) -> list[LinkBatch]:
        """Take these batches; they are removed by the transaction that uses them."""
        rows = self._database.execute(
            "DELETE FROM link_outbox o USING unnest(%s::smallint[], %s::bigint[]) AS w(shard, seq) "
            "WHERE o.shard_to = w.shard AND o.seq = w.seq RETURNING o.batch",
            columns("hq", batches),
        )
        return [decode(row[0], LinkBatch) for row in rows]
