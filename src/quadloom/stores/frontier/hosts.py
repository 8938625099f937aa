"""What is known about hosts, and turns for requests beside the queue."""

from __future__ import annotations

from quadloom.stores.frontier.leasing import UrlLeases
from quadloom.stores.protocols.frontier import HostRow
from quadloom.stores.sql.hosts import SqlHosts
from quadloom.stores.sql.statements import SqlDatabase


class TableFrontierHosts:
    """See `quadloom.stores.protocols.frontier.FrontierHosts`."""

    def __init__(self, database: SqlDatabase, records: SqlHosts, leases: UrlLeases) -> None:
        self._database = database
        self._records = records
        self._leases = leases
        self._loaded = leases.hosts

    def get(self, host: str) -> HostRow | None:
        return self._records.host_row(host)

    def rows(self, *, limit: int = 1000, offset: int = 0, own: bool = False) -> list[HostRow]:
        return self._records.host_rows(limit, offset, own=own)

    def put(self, row: HostRow) -> None:
        with self._database.transaction():
            host = self._loaded.named(row.host)
            was_exhausted = host.exhausted
            host.delay, host.budget, host.crawl_delay = row.delay, row.budget, row.crawl_delay
            host.next_at = max(host.next_at, host.asked_at + host.pause)
            self._records.write_hosts([host])
            self._records.write_robots(host.id, row.robots, row.robots_expires)
            if was_exhausted or host.exhausted:
                self._loaded.apply_budget(host)
        self._loaded.settled([host], host.free_at)

    def block(self, host: str, until: float, reason: str) -> None:
        with self._database.transaction():
            state = self._loaded.named(host)
            state.blocked_until, state.block_reason = until, reason
            self._records.write_hosts([state])
        self._loaded.settled([state], until)

    def reserve(self, host: str, now: float) -> float | None:
        with self._database.transaction():
            return self._leases.reserve(self._loaded.named(host), now)

    def free(self, host: str, next_at: float, now: float) -> None:
        self._leases.free(self._loaded.named(host), next_at, now)
