"""The frontier: all URLs that were ever found, and which of them may be visited now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from quadloom.model.link import Discovery, LinkKind
from quadloom.model.outcome import Settlement
from quadloom.model.visit import Visit
from quadloom.stores.frontier.quota import Quota
from quadloom.stores.frontier.scoring import Place, Scored


class AddReport(msgspec.Struct, frozen=True):
    """What became of offered URLs; the three numbers add up to the number offered."""

    new: int = 0
    known: int = 0
    refused: int = 0  # out of scope


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """A host as the frontier knows it: pace, blocks, budget and robots, all durable."""

    host: str
    site: str
    address: str = ""
    delay: float = 0.0
    next_at: float = 0.0
    blocked_until: float = 0.0
    block_reason: str = ""
    failures: int = 0  # in a row
    queued: int = 0
    pages: int = 0
    spent: float = 0.0  # of `budget`
    budget: float = 0.0  # 0 = no limit
    crawl_delay: float = 0.0
    robots: bytes = b""  # encoded `quadloom.fetching.robots.RobotsRow`
    robots_expires: float = 0.0


class FrontierStats(msgspec.Struct, frozen=True, kw_only=True):
    queued: int = 0  # could be leased now, were it not for politeness
    waiting: int = 0  # due later
    leased: int = 0
    done: int = 0  # visited, not scheduled again
    dead: int = 0
    parked: int = 0  # out of scope since the scope changed, or over budget; never dropped silently
    hosts: int = 0
    blocked_hosts: int = 0

    @property
    def total(self) -> int:
        return self.queued + self.waiting + self.leased + self.done + self.dead + self.parked


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a URL is where it is: each line a number or state and the rule that made it.

    `kind` of the link through which it was met first, on the page `via` (0 = a seed)."""

    key: str
    state: str
    lines: tuple[tuple[str, str, str], ...] = ()  # (what, value, rule)
    kind: LinkKind = "plain"
    via: int = 0


class ScopeRules(Protocol):
    """Decides whether a URL may be visited; see `quadloom.scheduling.scope.Scope`."""

    def verdict(self, href: str, host: str, depth: int) -> str | None:
        """None = may be visited; else the rule that refuses it, in words."""
        ...


class Frontier(Protocol):
    """All URLs ever met, and which may be visited now.

    Guarantees: a URL is leased to one worker at a time; a lease writes nothing, so a crash returns it; `add` and
    `settle` are idempotent and durable on return (or with the enclosing `Catalog.transaction()`); no host and no
    address is handed out before its clock allows, also after a restart; sites take turns, and within a site
    the order is priority, then depth, then score, then a hash of the URL, so never the order of a listing.
    """

    def add(self, discoveries: Sequence[Discovery], now: float) -> AddReport:
        """Offer URLs. Known ones are not queued again, but a higher priority or smaller depth is taken over."""
        ...

    def lease(self, limit: int, now: float, *, duration: float = 600.0, quota: Quota | None = None) -> list[Visit]:
        """Up to `limit` visits whose hosts and addresses are free. Empty = nothing may be fetched at `now`. With a
        `quota` only what it allows, counted off; a host serves its classes in turns, refreshes as they fell due."""
        ...

    def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        """End visits: next state, host clock, new links, in one transaction."""
        ...

    def release(self, visits: Sequence[Visit], now: float) -> None:
        """Give back leases that were not used (a drain, a full queue). Writes nothing."""
        ...

    def next_due(self, now: float) -> float | None:
        """Earliest time at which a lease could succeed; None = nothing left to visit but what is leased now."""
        ...

    def block(self, host: str, until: float, reason: str) -> None:
        """Visit `host` not before `until`. Durable on return."""
        ...

    def hosts(self, *, limit: int = 1000, offset: int = 0) -> list[HostRow]: ...

    def host(self, host: str) -> HostRow | None: ...

    def put_host(self, row: HostRow) -> None:
        """Write robots, delay or budget of a host; counters and clocks in `row` are ignored."""
        ...

    def request(self, urls: Sequence[Discovery], now: float) -> int:
        """Visit these as soon as politeness allows, known or not, before anything else. Returns how many."""
        ...

    def set_scope(self, scope: ScopeRules) -> int:
        """Apply new rules to all that is queued: what fell out is parked, what came back in is queued again.
        Returns the number of URLs that moved."""
        ...

    def reschedule(self, times: Sequence[tuple[int, str, float]], now: float) -> None:
        """Set the next visit of known pages: (fingerprint, host, unix time)."""
        ...

    def rescore(self, after: Place, limit: int, scored: Scored) -> Place | None:
        """Give the next URLs that wait for a first read new scores, where `scored` has one. Returns where to go on;
        None = that was the end. Begin with `FIRST_PLACE`."""
        ...

    def soonest(self, limit: int) -> list[tuple[int, str, float]]:
        """Refreshes, the soonest due first: (fingerprint, host, unix time). None of hosts that are behind already."""
        ...

    def explain(self, key: str, now: float) -> Explanation | None:
        """None = never met."""
        ...

    def stats(self, now: float) -> FrontierStats: ...

    def close(self) -> None: ...
