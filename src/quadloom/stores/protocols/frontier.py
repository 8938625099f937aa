"""The frontier: all URLs that were ever found, and which of them may be visited now."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from enum import IntEnum
from typing import NamedTuple, Protocol

import msgspec

from quadloom.model.link import Discovery, LinkKind
from quadloom.model.outcome import HostPace, Settlement
from quadloom.model.visit import Visit


class AddReport(msgspec.Struct, frozen=True):
    """What `add` did with the offered URLs; the three numbers add up to the number offered."""

    new: int = 0
    known: int = 0
    refused: int = 0  # out of scope


class HostRow(msgspec.Struct, frozen=True, kw_only=True):
    """The durable record of a host: pace, blocks, budget and robots."""

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
    """Numbers of URLs by state, and of hosts."""

    queued: int = 0  # may be leased as soon as politeness allows
    waiting: int = 0  # due later
    leased: int = 0
    done: int = 0  # visited, not scheduled again
    dead: int = 0
    parked: int = 0  # out of scope since the scope changed, or over budget; they stay stored
    hosts: int = 0
    blocked_hosts: int = 0

    @property
    def total(self) -> int:
        return self.queued + self.waiting + self.leased + self.done + self.dead + self.parked


class ExplanationLine(NamedTuple):
    """One number or state, and the rule that produced it."""

    what: str
    value: str
    rule: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a URL is in its state. `kind` and `via`: the link through which it was first found, and the fingerprint of
    the page with that link (0 = a seed)."""

    key: str
    state: str
    lines: tuple[ExplanationLine, ...] = ()
    kind: LinkKind = "plain"
    via: int = 0


class ScheduledPage(NamedTuple):
    """A known page and the time of its next visit (unix seconds)."""

    fingerprint: int
    host: str
    due: float


Place = tuple[int, int]  # how far `rescore` got; an order of the frontier's own, opaque to callers
FIRST_PLACE: Place = (-(1 << 63), -(1 << 63))
ScoreUrls = Callable[[Sequence[tuple[int, float]]], Sequence[float | None]]
"""(fingerprint, score) of URLs → their new scores in the same order; None = leave as it is."""


class VisitClass(IntEnum):
    """The classes that share a crawl's bandwidth. They follow from a URL's priority and history."""

    REFRESH = 0  # visited before
    SUSPECTS = 1  # first reads with priority 1 and 2: seeds, publications, suspected data
    PAGES = 2  # first reads of all other pages

    @classmethod
    def of(cls, priority: int, known: bool) -> VisitClass:
        if known:
            return cls.REFRESH
        return cls.SUSPECTS if priority <= 2 else cls.PAGES


Shares = tuple[float, float, float]  # in the order of VisitClass


class Quota:
    """How many visits of each class a lease may hand out; the lease counts them down.

    Explicit requests (priority 0) are outside all shares: they are counted, never held back. A class whose share is 0
    gets nothing, but seeds and publications (priority 1) are read all the same, since people have named them: they
    belong to the next class that has a share.
    """

    __slots__ = ("first_reads", "left_of", "passed_over", "requests", "shares")

    def __init__(
        self,
        *,
        refresh: int = 0,
        suspects: int = 0,
        pages: int = 0,
        requests: int = 0,
        shares: Shares = (1.0, 1.0, 1.0),
    ) -> None:
        self.left_of = [refresh, suspects, pages]
        self.requests = requests  # handed out in addition, including those of earlier quotas not yet made up for
        self.first_reads = 0  # handed out
        self.passed_over = 0  # hosts that could be asked, but have nothing that this quota allows
        self.shares = shares

    @property
    def refresh(self) -> int:
        return self.left_of[VisitClass.REFRESH]

    @property
    def suspects(self) -> int:
        return self.left_of[VisitClass.SUSPECTS]

    @property
    def pages(self) -> int:
        return self.left_of[VisitClass.PAGES]

    @property
    def left(self) -> int:
        return sum(self.left_of)

    @property
    def is_short(self) -> bool:
        """Whether a class has used up all it was given. One without work holds what it has."""
        return any(share > 0.0 and left <= 0 for share, left in zip(self.shares, self.left_of, strict=True))

    @property
    def is_closed(self) -> bool:
        """Whether URLs wait for nothing but a share: their class has none."""
        return self.passed_over > 0 and 0.0 in self.shares and not self.is_short

    def class_of(self, priority: int, known: bool) -> VisitClass:
        """The class from whose share a visit is taken."""
        if priority <= 1 and not known and self.shares[VisitClass.SUSPECTS] <= 0.0:
            return VisitClass.PAGES if self.shares[VisitClass.PAGES] > 0.0 else VisitClass.REFRESH
        return VisitClass.of(priority, known)

    def allows(self, priority: int, known: bool) -> bool:
        return priority == 0 or self.left_of[self.class_of(priority, known)] > 0

    def take(self, priority: int, known: bool) -> None:
        """Count a visit that is handed out."""
        self.first_reads += not known
        if priority == 0:
            self.requests += 1
        else:
            self.left_of[self.class_of(priority, known)] -= 1


class ScopeRules(Protocol):
    """Decides whether a URL may be visited; see `quadloom.planning.scope.Scope`."""

    def verdict(self, href: str, host: str, depth: int) -> str | None:
        """None = may be visited; otherwise the rule that refuses it, in words."""
        ...


class HostClocks(Protocol):
    """What is known about hosts, and whose turn it is: all that a request beside the queue needs."""

    def get(self, host: str) -> HostRow | None:
        """None = no URL of this host was ever offered."""
        ...

    def put(self, row: HostRow) -> None:
        """Write robots, delay and budget of a host; counters and clocks in `row` are ignored. Durable on return."""
        ...

    def block(self, host: str, until: float, reason: str) -> None:
        """Do not visit `host` before `until`. Durable on return."""
        ...

    def reserve(self, host: str, now: float) -> float | None:
        """Take the next turn of a host for a request that is not in the queue, such as one to a site's search. Returns
        when it may be sent; the clocks of the host and of its address count from there, for leases too. None = as many
        requests as it may have are in progress. `free` ends the turn. Not durable."""
        ...

    def free(self, host: str, next_at: float, now: float) -> None:
        """The request of a reserved turn has ended; the host may be asked again at `next_at`, or later."""
        ...


class FrontierHosts(HostClocks, Protocol):
    """All hosts of which a URL was offered."""

    def rows(self, *, limit: int = 1000, offset: int = 0, own: bool = False) -> list[HostRow]:
        """Hosts by name. Empty = the end. `own`: only those that this process may ask, if others share the frontier."""
        ...


class Frontier(Protocol):
    """All URLs that were ever found, and which of them may be visited now.

    Guarantees: a URL is leased to one worker at a time; a lease writes nothing, so a crash returns it; `add` and
    `settle` are idempotent and durable on return (or with the enclosing `Catalog.transaction()`); no host and no
    address is handed out before its clock allows, also after a restart; sites take turns, and within a site
    the order is priority, then depth, then score, then a hash of the URL, so never the order of a listing.
    """

    @property
    def hosts(self) -> FrontierHosts: ...

    def add(self, discoveries: Sequence[Discovery], now: float) -> AddReport:
        """Offer URLs. A known URL is not queued again, but takes over a higher priority or a smaller depth."""
        ...

    def lease(self, limit: int, now: float, *, duration: float = 600.0, quota: Quota | None = None) -> list[Visit]:
        """Up to `limit` visits whose hosts and addresses are free. Empty = nothing may be fetched at `now`. A visit
        that is neither settled nor released within `duration` seconds returns to the queue, one attempt older.

        With a `quota`, only what it allows; it is counted down. A host then serves its classes in turns, and its
        refreshes in the order in which they fell due."""
        ...

    def settle(self, settlements: Sequence[Settlement], now: float) -> None:
        """End visits: next state, host clock and new links, in one transaction. Settling a visit again changes
        nothing."""
        ...

    def answered(self, visit: Visit, pace: HostPace, contacted_at: float) -> None:
        """The server has answered, and the visit will be settled soon: its host may serve the next one as soon as its
        clocks allow, without waiting for that. The URL itself stays leased. Writes nothing, so a crash returns the
        visit as any other. Only for answers that are no sign of trouble: a failure frees its host when it is settled.
        """
        ...

    def release(self, visits: Sequence[Visit], now: float) -> None:
        """Give back leases that were not used (a drain, a full queue). Writes nothing."""
        ...

    def pull(self, now: float) -> bool:
        """Queue what processes that do not fetch have found for this warehouse, exactly once. True = there may be
        more. On a database that many workers share, `Shards.pull` does it."""
        ...

    def next_due(self, now: float) -> float | None:
        """Earliest time at which a lease could succeed. None = nothing is left to visit except what is leased now."""
        ...

    def request(self, urls: Sequence[Discovery], now: float) -> int:
        """Visit these as soon as politeness allows, known or not, before anything else. Returns how many different
        URLs these are."""
        ...

    def set_scope(self, scope: ScopeRules) -> int:
        """Apply new rules to everything queued: what is now outside is parked, what is inside again is queued.
        Returns the number of URLs that moved."""
        ...

    def reschedule(self, pages: Sequence[ScheduledPage], now: float) -> None:
        """Set the time of the next visit of known pages. Queued, parked and unknown pages stay as they are."""
        ...

    def rescore(self, after: Place, limit: int, scored: ScoreUrls) -> Place | None:
        """Give the next `limit` URLs that wait for a first read the scores that `scored` returns. Begin with
        `FIRST_PLACE`; the result is where to continue. None = that was the end."""
        ...

    def guide(self, share: float) -> None:
        """Let this share of first reads go by score, the highest of a host first, and only the others in the order of
        the queue. Seeds and requests stay first. Only if that order is breadth-first. The first time takes a moment for
        each queued URL."""
        ...

    def hold_refreshes(self, since: float) -> None:
        """For a crawl with an end that began at `since`: refreshes that fall due later wait for the next crawl, so that
        no page is read twice. Retries, and pages rescheduled to the present, are leased as ever. Infinity = hold none.
        Writes nothing."""
        ...

    def soonest(self, limit: int) -> list[ScheduledPage]:
        """Refreshes by due time, the soonest first, without retries. Hosts that already have URLs waiting are left
        out: politeness would not allow more of them."""
        ...

    def explain(self, key: str, now: float) -> Explanation | None:
        """None = the URL was never found."""
        ...

    def stats(self, now: float) -> FrontierStats: ...

    @property
    def clock_step(self) -> float:
        """By how many seconds the clock of this machine was set between the last process and this opening; the times of
        hosts and visits have moved as far. 0 = not, as far as is known."""
        ...

    @property
    def clamped_hosts(self) -> int:
        """Hosts whose stored clock was later at opening than any rule allows, and was set back."""
        ...

    def forget(self, is_forgotten: Callable[[str], bool], hosts: Callable[[str], bool], pages: Container[int]) -> int:
        """Remove the URLs for which `is_forgotten` is true, the hosts that `hosts` chooses with their robots.txt, and
        the texts of links that were found on `pages` (fingerprints). In several transactions; to be repeated after a
        crash. Returns the number of URLs. No visit may be leased."""
        ...

    def close(self) -> None:
        """Make all clocks durable, so that the next opening need not let every host wait."""
        ...
