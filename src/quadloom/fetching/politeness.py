"""How long a host is left alone after a visit: pure functions from what happened to a `HostPace`.

The clock itself is the frontier's; this module only says what a visit taught. The pace goes into the settlement of the
visit and so survives a crash, back-off included.

- *Delay*: the largest of the configured delay, the robots' Crawl-delay and `adaptive` times the response time: a
  server that takes longer is asked less often (Heritrix' delay factor).
- *Back-off* after 429, 503 and hosts that do not answer: the server's own Retry-After where it sent one, else
  `backoff` · 2ⁿ with full jitter (a uniform draw below the ceiling spreads the returning hosts best), at least half
  of `backoff` so that a lucky draw is not a storm.
- *Cost*: what the visit takes from the host's budget. Errors and near-duplicates cost more than pages, so that a
  trap starves itself.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime

import msgspec

from quadloom.model.outcome import HostPace
from quadloom.model.page import Failure, FailureKind, Page
from quadloom.model.url import host_matches
from quadloom.settings import PolitenessSettings, Settings

# The server's explicit wish outranks our own longest pause, but a year 9999 must not lose the host for ever.
MAX_RETRY_AFTER = 7 * 86400.0
MAX_DOUBLINGS = 32

COST_PAGE = 1.0
COST_UNSENT = 0.0  # robots, scope, guard: the host was not asked
COST_ERROR = 3.0
COST_NO_ANSWER = 5.0
COST_DUPLICATE = 4.0

_UNSENT: frozenset[FailureKind] = frozenset({"robots", "scope", "guard"})
_NO_ANSWER: frozenset[FailureKind] = frozenset({"dns", "connect", "timeout", "too-slow", "tls"})
_BUSY = frozenset({429, 503})


def retry_after(value: str, now: float) -> float | None:
    """Seconds from a Retry-After header in either form (RFC 9110 10.2.3); None where it says nothing usable."""
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
    """Whether the host, not the page, was the trouble: busy, or not answering."""
    return isinstance(result, Failure) and (result.kind in _NO_ANSWER or result.status in _BUSY)


def strikes_after(result: Page | Failure, before: int) -> int:
    """Refusals in a row. What was never sent says nothing about the host."""
    if is_strike(result):
        return before + 1
    return before if isinstance(result, Failure) and result.kind in _UNSENT else 0


def delay_of(seconds: float, crawl_delay: float, rules: PolitenessSettings) -> float:
    """Pause between two requests, given the last response time and the robots' wish (0 = none)."""
    adaptive = min(rules.adaptive * seconds, rules.max_delay)
    return max(rules.delay, min(crawl_delay, rules.max_crawl_delay), adaptive)


def cost_of(result: Page | Failure, *, duplicate: bool = False) -> float:
    """Share of the host's budget. `duplicate`: the page says what another page of the host already said."""
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
    """What a visit taught about its host. `now`: when it ended; `strikes`: refusals in a row, this one included."""
    if isinstance(result, Failure) and result.kind in _UNSENT:
        delay = delay_of(0.0, crawl_delay, rules)
        return HostPace(host, result.address, delay, now, 0.0, "", cost_of(result))
    delay = delay_of(result.seconds, crawl_delay, rules)
    blocked = 0.0
    reason = ""
    if isinstance(result, Failure) and is_strike(result):
        wish = result.retry_after
        pause = wish if wish is not None else back_off(strikes, rules, random)
        pause = max(pause, delay)
        blocked = now + pause
        said = "Retry-After" if wish is not None else f"back-off, {strikes} in a row"
        reason = f"{result.message}: {pause:.0f} s ({said})"
    return HostPace(host, result.address, delay, now + delay, blocked, reason, cost_of(result))


def rules_for(host: str, settings: Settings) -> PolitenessSettings:
    """Politeness of one host. Of several `site` tables that match it, the first that names a value decides it."""
    changes: dict[str, float | str] = {}
    for site in settings.site:
        if host_matches(host, site.match):
            stated = {"delay": site.delay, "per_site": site.per_site, "robots": site.robots}
            changes = {**{name: value for name, value in stated.items() if value is not None}, **changes}
    return msgspec.structs.replace(settings.politeness, **changes) if changes else settings.politeness
