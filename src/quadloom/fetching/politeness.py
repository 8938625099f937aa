"""How long a host is left alone after a visit: pure functions from a result to a `HostPace`, and the addresses' clock.

The frontier keeps the clock of each host; this module computes what a visit adds to it. The pace is part of the
visit's settlement and so survives a crash, back-off included.

- *Delay*: the largest of the configured delay, the Crawl-delay of robots.txt and `adaptive` times the response time: a
  server that takes longer is asked less often (Heritrix' delay factor).
- *Back-off* after 429, 503 and hosts that do not answer: the server's own Retry-After if it sent one, else
  `backoff` · 2ⁿ with full jitter (a uniform draw below the ceiling spreads the returning hosts best), at least half
  of `backoff` so that a lucky draw is not a storm.
- *Cost*: what the visit takes from the host's budget. Errors and near-duplicates cost more than pages, so that a
  trap uses up its own budget.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime

from quadloom.model.outcome import HostPace
from quadloom.model.page import Failure, FailureKind, Page
from quadloom.settings import PolitenessSettings

# The server's explicit wish outranks `max_backoff`, but a year 9999 must not lose the host for ever.
MAX_RETRY_AFTER = 7 * 86400.0
MAX_DOUBLINGS = 32

COST_PAGE = 1.0
COST_UNSENT = 0.0  # robots, scope, guard, a replay: the host was not asked
COST_ERROR = 3.0
COST_NO_ANSWER = 5.0
COST_DUPLICATE = 4.0

_UNSENT: frozenset[FailureKind] = frozenset({"robots", "scope", "guard", "not-archived"})
_NO_ANSWER: frozenset[FailureKind] = frozenset({"dns", "connect", "timeout", "too-slow", "tls"})
_BUSY = frozenset({429, 503})
_ADDRESSES = 65536  # that an `AddressClock` remembers


def retry_after(value: str, now: float) -> float | None:
    """Seconds from a Retry-After header in either form (RFC 9110 10.2.3); None if it says nothing usable."""
    value = value.strip()
    if not value:
        return None
    if value.isascii() and value.isdigit():
        return min(float(value[:12]), MAX_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, at - now), MAX_RETRY_AFTER)


def back_off(strikes: int, rules: PolitenessSettings, random: Callable[[], float]) -> float:
    """Seconds to stay away after the `strikes`-th refusal in a row (1 = the first)."""
    ceiling = min(rules.max_backoff, rules.backoff * 2.0 ** min(max(0, strikes - 1), MAX_DOUBLINGS))
    return max(rules.backoff / 2, ceiling * random())


def is_strike(result: Page | Failure) -> bool:
    """Whether the host, not the page, failed: busy, or not answering."""
    return isinstance(result, Failure) and (result.kind in _NO_ANSWER or result.status in _BUSY)


def strikes_after(result: Page | Failure, before: int) -> int:
    """Refusals in a row. A request that was never sent says nothing about the host."""
    if is_strike(result):
        return before + 1
    return before if isinstance(result, Failure) and result.kind in _UNSENT else 0


def delay_of(seconds: float, crawl_delay: float, rules: PolitenessSettings) -> float:
    """Pause between two requests, given the last response time and the Crawl-delay of robots.txt (0 = none)."""
    adaptive = min(rules.adaptive * seconds, rules.max_delay)
    return max(rules.delay, min(crawl_delay, rules.max_crawl_delay), adaptive)


def cost_of(result: Page | Failure, *, duplicate: bool = False) -> float:
    """Share of the host's budget. `duplicate`: another page of the host has the same text."""
    if isinstance(result, Page):
        return COST_DUPLICATE if duplicate else COST_PAGE
    if result.kind in _UNSENT:
        return COST_UNSENT
    return COST_NO_ANSWER if result.kind in _NO_ANSWER else COST_ERROR


def pace(
    host: str,
    result: Page | Failure,
    *,
    now: float,
    rules: PolitenessSettings,
    crawl_delay: float = 0.0,
    strikes: int = 0,
    random: Callable[[], float],
) -> HostPace:
    """When the host may be asked again. `now`: when the visit ended; `strikes`: refusals in a row with this one."""
    if isinstance(result, Page):
        delay = delay_of(result.seconds, crawl_delay, rules)
        return HostPace(host, result.address, delay, now + delay, cost=COST_PAGE)
    if result.kind in _UNSENT:
        delay = delay_of(0.0, crawl_delay, rules)
        return HostPace(host, result.address, delay, now, cost=COST_UNSENT)
    delay = delay_of(result.seconds, crawl_delay, rules)
    blocked = 0.0
    reason = ""
    if is_strike(result):
        asked = result.retry_after
        pause = asked if asked is not None else back_off(strikes, rules, random)
        pause = max(pause, delay)
        blocked = now + pause
        rule = "Retry-After" if asked is not None else f"back-off, {strikes} in a row"
        reason = f"{result.message}: {pause:.0f} s ({rule})"
    return HostPace(host, result.address, delay, now + delay, blocked, reason, cost_of(result))


class AddressClock:
    """Hands out turns `delay` seconds apart per IP address, from start to start; `delay` 0 switches it off.

    The frontier spaces the visits of a host, and of addresses it has seen. On first contact it knows no address, so
    200 hosts of one hoster would be asked at once. Every request, robots.txt included, therefore takes a turn here
    after resolution. A new clock treats every address as if it had just been asked, so a restart is never early.
    """

    def __init__(self, delay: float, now: float) -> None:
        self._delay = delay
        self._floor = now + delay
        self._free: dict[str, float] = {}

    def reserve(self, address: str, now: float) -> float:
        """The time at which one request to `address` may start; each call is one turn."""
        if self._delay <= 0:
            return now
        at = max(now, self._free.get(address, self._floor))
        self._free[address] = at + self._delay
        if len(self._free) > _ADDRESSES:
            self._free = {key: free for key, free in self._free.items() if free > now}
            self._floor = max(self._floor, now)
        return at
