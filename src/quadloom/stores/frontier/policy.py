"""The rules that every frontier backend shares: pace of a host, order of a queue, next state of a URL.

Backends differ in where they store URLs, never in what a settlement means; so the meaning is here, once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from quadloom.model.link import Discovery, LinkKind
from quadloom.model.outcome import READ_OUTCOMES, Outcome, Settlement
from quadloom.model.url import host_matches
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom.settings.tree import OWN_PER_SITE, length_of
from quadloom.stores.protocols.frontier import Explanation, ExplanationLine, FrontierStats, HostRow

Order = Literal["breadth-first", "importance", "random"]


class UrlState(IntEnum):
    """The state of a URL. `leased` is not among them: a lease is in memory only, its URL stays QUEUED."""

    QUEUED = 0
    WAITING = 1  # due at a known time
    DONE = 2  # read, not scheduled again
    DEAD = 3  # gone, denied or given up, not scheduled again
    OUT_OF_SCOPE = 4  # parked: the scope changed
    OVER_BUDGET = 5  # parked: its host has spent its budget


class HostException(msgspec.Struct, frozen=True):
    """Values that differ for hosts matching a glob; None = as for all hosts."""

    match: str
    delay: float | None = None
    per_site: int | None = None
    budget: float | None = None
    own: bool = False  # neither its Crawl-delay nor the pace of its address count


_LONGEST_RETRY_AFTER = 7 * 86400.0  # as `quadloom.fetching.politeness` cuts it


class FrontierPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Politeness towards hosts, and the order in which a host's URLs are read. `budget` 0 = no limit. `guided_share`:
    of first reads that go by importance instead.

    `longest_delay` and `longest_block`: no rule lets a host rest for longer; `longest_wait`: or a page. A stored time
    beyond that was written when the machine's clock was ahead.
    """

    delay: float = 1.0
    ip_delay: float = 0.2
    per_site: int = 1
    budget: float = 0.0
    order: Order = "breadth-first"
    guided_share: float = 0.0
    exceptions: tuple[HostException, ...] = ()
    longest_delay: float = math.inf
    longest_block: float = math.inf
    longest_wait: float = math.inf

    @classmethod
    def from_settings(cls, settings: Settings) -> FrontierPolicy:
        rules = settings.politeness
        delays = (rules.delay, rules.ip_delay, rules.max_delay, rules.max_crawl_delay)
        longest_delay = max(*delays, *(site.delay or 0.0 for site in settings.site), 0.0)
        longest_block = max(longest_delay, rules.max_backoff, rules.robots_error_ttl, _LONGEST_RETRY_AFTER)
        return cls(
            longest_delay=longest_delay,
            longest_block=longest_block,
            longest_wait=max(longest_block, length_of("freshness.max_interval", settings.freshness.max_interval)),
            delay=settings.politeness.delay,
            ip_delay=settings.politeness.ip_delay,
            per_site=settings.politeness.per_site,
            budget=float(settings.crawl.max_pages_per_host),
            order=settings.crawl.order,
            guided_share=settings.crawl.guided_share if settings.crawl.order == "breadth-first" else 0.0,
            exceptions=tuple(
                HostException(site.match, site.delay, site.per_site, site.max_pages, site.own) for site in settings.site
            ),
        )

    def for_host(self, host: str) -> HostException:
        """The values for one host, none of them None. The first matching exception that has a value wins."""
        delay, per_site, budget, own = None, None, None, False
        for exception in self.exceptions:
            if host_matches(host, exception.match):
                delay = exception.delay if delay is None else delay
                per_site = exception.per_site if per_site is None else per_site
                budget = exception.budget if budget is None else budget
                own = own or exception.own
        return HostException(
            host,
            (0.0 if own else self.delay) if delay is None else delay,
            (OWN_PER_SITE if own else self.per_site) if per_site is None else per_site,
            self.budget if budget is None else budget,
            own,
        )


def rank(order: Order, priority: int, depth: int, score: float, due: float = 0.0) -> tuple[int, float, float]:
    """Sort key within a host, before the fingerprint. The fingerprint is a hash, so that no listing is read in its
    own order; for `random` it decides alone. Refreshes (priority 1, with the time `due`) are in the order in which
    they fell due: if a host cannot serve them all, each is late, and none is passed over for ever."""
    if priority == 1 and due > 0.0:
        return priority, due, 0.0
    if order == "breadth-first":
        return priority, float(depth), -score
    if order == "importance":
        return priority, -score, float(depth)
    return priority, 0.0, 0.0


def _rank_sql(first: str, second: str) -> str:
    refresh = "priority = 1 AND due > 0"
    return f"CASE WHEN {refresh} THEN due ELSE {first} END, CASE WHEN {refresh} THEN 0.0 ELSE {second} END"


# `rank` over the columns of the table of URLs.
RANK_SQL: dict[Order, str] = {
    "breadth-first": _rank_sql("depth", "-score"),
    "importance": _rank_sql("-score", "depth"),
    "random": _rank_sql("0.0", "0.0"),
}


# Condition of the index by importance, which serves only queries that repeat it: explicit requests, seeds and refreshes
# have an order of their own. `second` is the negative score if the order is breadth-first.
GUIDED = "priority > 1"


def order_mark(order: Order) -> bytes:
    """Stored with a queue: a queue with another mark is rebuilt. The number is the version of `rank`."""
    return f"{order} 2".encode()


def is_wanted_again(priority: int, settlement: Settlement) -> bool:
    """A request that came while the page was being read is for its present content, so the page is read again."""
    return priority == 0 < settlement.visit.priority and settlement.outcome in READ_OUTCOMES


def state_after(settlement: Settlement) -> UrlState:
    if settlement.again_at is not None:
        return UrlState.WAITING
    return UrlState.DONE if settlement.outcome in READ_OUTCOMES else UrlState.DEAD


def attempt_after(settlement: Settlement) -> int:
    """A failure that will be retried counts; everything else starts again at 1."""
    return settlement.visit.attempt + 1 if settlement.outcome is Outcome.FAILED else 1


def priority_after(priority: int, settlement: Settlement) -> int:
    """Requests, seeds and refreshes (0, 1) are served once: after a success the page is an ordinary one."""
    return 3 if priority <= 1 and settlement.outcome in READ_OUTCOMES else priority


def cost_of(settlement: Settlement) -> float:
    """What a visit costs of the host's budget, which is for pages: reading a known one again is free, otherwise an
    endless crawl would spend it on refreshes."""
    if settlement.pace is None or (settlement.visit.known and settlement.outcome in READ_OUTCOMES):
        return 0.0
    return settlement.pace.cost


def priority_due(priority: int, visits: int, refresh_first: bool) -> int:
    """Priority of a URL that has become due. In a queue leased by quota, refreshes come before most first reads."""
    return min(priority, 1) if refresh_first and visits else priority


def token_of(settlement: Settlement) -> float:
    """Identifies a settlement among those of one URL: no two leases of a URL share a deadline. Imported pages have no
    deadline; their fetch time is used."""
    return settlement.visit.deadline or (settlement.page.fetched_at if settlement.page else 0.0)


def contact_time(settlement: Settlement) -> float:
    """Latest time at which the request can have been sent."""
    fetched = settlement.page.fetched_at if settlement.page else 0.0
    return max(fetched, settlement.visit.not_before)


def better(one: Discovery, other: Discovery) -> Discovery:
    """Two links to one URL: the higher priority and the smaller depth."""
    return replace(one, priority=min(one.priority, other.priority), depth=min(one.depth, other.depth))


def discovery_of(visit: Visit) -> Discovery:
    return Discovery(
        href=visit.href,
        key=visit.key,
        host=visit.host,
        fingerprint=visit.fingerprint,
        depth=visit.depth,
        kind=visit.kind,
        priority=visit.priority,
        via=visit.via,
        anchor=visit.anchor,
    )


def distinct(settlements: Sequence[Settlement]) -> Iterator[Sequence[Settlement]]:
    """Split a batch so that no part settles a URL twice."""
    part: dict[int, Settlement] = {}
    for settlement in settlements:
        if settlement.visit.fingerprint in part:
            yield list(part.values())
            part = {}
        part[settlement.visit.fingerprint] = settlement
    yield list(part.values())


def stats_of(counts: Sequence[int], leased: int, hosts: int, blocked: int) -> FrontierStats:
    """`counts`: numbers of URLs by state."""
    return FrontierStats(
        queued=counts[UrlState.QUEUED] - leased,
        waiting=counts[UrlState.WAITING],
        leased=leased,
        done=counts[UrlState.DONE],
        dead=counts[UrlState.DEAD],
        parked=counts[UrlState.OUT_OF_SCOPE] + counts[UrlState.OVER_BUDGET],
        hosts=hosts,
        blocked_hosts=blocked,
    )


class UrlPast(NamedTuple):
    """A URL's history in its row: outcome of its last visit (empty = none), and the link where it was first found."""

    outcome: str
    kind: LinkKind
    via: int


class UrlFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an explanation needs to know about a URL."""

    key: str
    state: UrlState
    leased_until: float
    priority: int
    depth: int
    score: float
    due: float
    attempt: int
    visits: int
    past: UrlPast
    ahead: int  # URLs of the same host that go first


_RULES = {
    UrlState.QUEUED: "waits for its host's turn",
    UrlState.WAITING: "is due later: a refresh or a retry",
    UrlState.DONE: "was read and is not scheduled again",
    UrlState.DEAD: "is gone, denied or given up",
    UrlState.OUT_OF_SCOPE: "is outside the present scope; widening the scope queues it again",
    UrlState.OVER_BUDGET: "its host has spent its budget; raising the budget queues it again",
}
_NAMES = {UrlState.OUT_OF_SCOPE: "parked", UrlState.OVER_BUDGET: "parked"}


def _due(due: float, now: float) -> ExplanationLine:
    if due > now:
        return ExplanationLine("due in", f"{due - now:.1f} s", "set by the refresh schedule or by a retry")
    since = f"now, since {now - due:.1f} s" if due else "now"
    return ExplanationLine("due", since, "read when a crawl has a turn of its host and bandwidth for it")


def explain(url: UrlFacts, host: HostRow, delay: float, budget: float, now: float) -> Explanation:
    line = ExplanationLine
    leased = url.leased_until > 0
    state = "leased" if leased else _NAMES.get(url.state, url.state.name.lower())
    lines = [line("state", state, "handed to a fetcher" if leased else _RULES[url.state])]
    if leased:
        lines.append(line("lease ends in", f"{url.leased_until - now:.1f} s", "then the URL returns to the queue"))
    if url.state is UrlState.QUEUED:
        first = "URLs of its host that come first: by priority, then depth and score, refreshes by when they fell due"
        lines.append(line("ahead of it", str(url.ahead), first))
    if url.state is UrlState.WAITING:
        lines.append(_due(url.due, now))
    priorities = "0 requested, 1 seed, published or due again, 2 suspected data, 3 ordinary, 4 unlikely"
    lines += [
        line("priority", str(url.priority), priorities),
        line("depth", str(url.depth), "links away from a seed, shortest known"),
        line("score", f"{url.score:g}", "larger goes first within priority and depth"),
        line("attempt", str(url.attempt), "tries since the last success"),
        line("reads", str(url.visits), f"visits that read it; last outcome: {url.past.outcome or 'none'}"),
        line("host delay", f"{delay:g} s", "largest of the setting, Crawl-delay and the measured pace"),
        line("host free in", f"{max(0.0, host.next_at - now):.1f} s", "one request per delay"),
    ]
    if host.blocked_until > now:
        lines.append(line("host blocked for", f"{host.blocked_until - now:.1f} s", host.block_reason or "blocked"))
    if budget > 0:
        lines.append(line("host budget", f"{host.spent:g} of {budget:g}", "errors and near-duplicates spend it faster"))
    return Explanation(key=url.key, state=state, lines=tuple(lines), kind=url.past.kind, via=url.past.via)
