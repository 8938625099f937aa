"""URLs, hosts and leases of the frontier in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from quadloom.model.link import Discovery, LinkKind
from quadloom.model.url import site_of
from quadloom.model.visit import Visit
from quadloom.stores.frontier.host_table import WeightedRoundRobin
from quadloom.stores.frontier.policy import UrlState
from quadloom.stores.protocols.frontier import HostRow

if TYPE_CHECKING:
    from quadloom_lab.memory.frontier import MemoryFrontier


class MemoryUrl:
    def __init__(self, found: Discovery) -> None:
        self.href, self.key, self.host, self.fingerprint = found.href, found.key, found.host, found.fingerprint
        self.depth, self.priority, self.score = found.depth, found.priority, found.score
        self.kind: LinkKind = found.kind
        self.via, self.anchor = found.via, found.anchor
        self.state, self.due, self.attempt, self.visits, self.token = UrlState.QUEUED, 0.0, 1, 0, -1.0
        self.etag = self.last_modified = self.outcome = ""


class MemoryHost:
    def __init__(self, name: str) -> None:
        self.row = HostRow(host=name, site=site_of(name))
        self.asked_at = float("-inf")  # last lease
        self.reserved = 0  # requests in progress that were not leased
        self.turn = 0  # number of its site's last lease, for fairness
        self.turns, self.guided_credit = WeightedRoundRobin(), 0.0


class MemoryLease(NamedTuple):
    visit: Visit
    next_at: float
    address_clock: float
    answered: bool = False


class MemoryHosts:
    def __init__(self, frontier: MemoryFrontier) -> None:
        self._frontier = frontier

    def block(self, host: str, until: float, reason: str) -> None:
        entry = self._frontier._hosts.setdefault(host, MemoryHost(host))
        self._frontier._set(entry, blocked_until=until, block_reason=reason)

    def reserve(self, host: str, now: float) -> float | None:
        entry = self._frontier._hosts.setdefault(host, MemoryHost(host))
        leased = sum(lease.visit.host == host and not lease.answered for lease in self._frontier._leases.values())
        if leased + entry.reserved >= (self._frontier.policy.for_host(host).per_site or 1):
            return None
        at = max(now, self._frontier._ready_at(entry))
        entry.reserved += 1
        self._frontier._start_clocks(entry, at)
        return at

    def free(self, host: str, next_at: float, now: float) -> None:
        self._frontier._hosts[host].reserved -= 1
        self._frontier._set(self._frontier._hosts[host], next_at=max(self._frontier._hosts[host].row.next_at, next_at))

    def rows(self, *, limit: int = 1000, offset: int = 0, own: bool = False) -> list[HostRow]:
        return [row for name in sorted(self._frontier._hosts)[offset : offset + limit] if (row := self.get(name))]

    def get(self, host: str) -> HostRow | None:
        entry = self._frontier._hosts.get(host)
        queued = sum(url.host == host and url.state is UrlState.QUEUED for url in self._frontier._urls.values())
        return replace(entry.row, queued=queued) if entry is not None else None

    def put(self, row: HostRow) -> None:
        host = self._frontier._hosts.setdefault(row.host, MemoryHost(row.host))
        known = ("delay", "budget", "crawl_delay", "robots", "robots_expires")
        self._frontier._set(host, **{name: getattr(row, name) for name in known})
        self._frontier._set(host, next_at=max(host.row.next_at, host.asked_at + self._frontier._delay(host.row)))
        self._frontier._apply_budget(host)
