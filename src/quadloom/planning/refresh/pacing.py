"""A constant bandwidth, tick by tick, divided between first reads and refresh, for a crawl without an end.

Each tick, a few hundredths of a second, hands out the reads that have become due since the last tick. A class may hold
what it has not used for a fraction of a second; when it holds that much, its share goes to the others at once. So an
idle class does not accumulate reads, a class that gets work can start at once, and any period of a second or more uses
its full bandwidth. A class whose share is 0 gets nothing and loses what it held. Explicit requests are leased at once
and subtracted from the reads that follow, up to one second of bandwidth: a request for a whole site does not stop
everything else. A visit that ended before any server was asked
(robots.txt forbids it) is given back.

Reads that no class can hold are idle. The planner prices reads so that all pages together need the bandwidth in the
long run, but at a given moment they may need less (rates were just learned, or many pages were read at the same time).
Then the pages that are due next are read earlier (`RefreshScheduler.advance`), which agrees with the index policy: the
largest value first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from quadloom.model.outcome import Outcome, Settlement
from quadloom.planning.policy.shares import BandwidthShares, ClassUse, ReadCounts
from quadloom.stores.protocols.frontier import Quota, VisitClass

_TICK = 0.05  # seconds
_HOLD = 0.2  # seconds of its share that a class may hold
_UNLIMITED = 1 << 40
_IDLE = 0.5  # seconds after which idle reads expire
_ADVANCE_PAUSE = 0.1  # seconds between two uses of idle reads …
_ADVANCE_REST = 0.25  # … or after one that found no page
_LONGEST_TICK = 2.0  # seconds: a longer gap (a paused crawl, a sleeping machine) is not made up for
_DEBT = 1.0  # seconds of bandwidth that requests can take from the other classes
_AVERAGED_OVER = 30.0  # seconds, for what first reads use


class BandwidthPacer:
    """Says how much may be leased; owned by the crawl's own thread, which asks before every lease.

    `advance(count, now)` schedules up to `count` pages before their time and returns how many it found.
    `report_free(rate)` receives, at every tick, the reads per second that refresh may use.
    """

    def __init__(
        self,
        shares: BandwidthShares,
        *,
        advance: Callable[[int, float], int] = lambda _count, _now: 0,
        report_free: Callable[[float], None] = lambda _rate: None,
    ) -> None:
        self._shares = shares
        self._advance = advance
        self._report_free = report_free
        self._advance_at = -math.inf
        self._ticked_at = -math.inf
        self._quota = Quota()
        self._held = (0, 0)  # reads of suspects and pages with which the present quota began
        self._use = (ClassUse(), ClassUse())  # of suspects and pages, averaged
        self._idle = 0
        self._unasked = 0
        self._requests = 0.0  # first reads asked for, per second, averaged

    def quota(self, now: float) -> Quota:
        """What may be leased at `now`."""
        passed = now - self._ticked_at
        if passed >= _TICK or passed < 0.0:
            self._tick(min(passed, _LONGEST_TICK) if math.isfinite(passed) and passed > 0.0 else _TICK)
            self._ticked_at = now
            if self._idle and (now >= self._advance_at or passed < 0.0):
                self._use_idle(now)
        return self._quota

    def settled(self, settlement: Settlement) -> None:
        """A visit has ended. If robots.txt or the guard denied it, no server was asked, so its read is given back."""
        if settlement.outcome is Outcome.DENIED and not (settlement.page and settlement.page.status):
            self._unasked += 1

    def charge(self, requests: int) -> None:
        """Requests were made outside of the queue: subtract them from the reads that follow, as explicit ones."""
        self._quota.requests += requests

    def _tick(self, seconds: float) -> None:
        quota, shares = self._quota, self._shares
        if shares.bandwidth > 0.0:
            seconds = min(seconds + self._unasked / shares.bandwidth, _LONGEST_TICK)
        self._unasked = 0
        self._average(quota, seconds)
        if shares.only_refresh:
            return self._tick_of_refresh(seconds)
        given = shares.slot(
            seconds,
            ReadCounts(
                requests=quota.requests,
                suspects=self._room(shares.suspects, quota.suspects),
                pages=self._room(shares.pages, quota.pages),
                refresh=self._room(shares.refresh, quota.refresh),
            ),
        )
        debt = min(quota.requests - given.requests, math.ceil(_DEBT * shares.bandwidth))
        self._quota = Quota(
            refresh=quota.refresh + given.refresh if shares.refresh else 0,
            suspects=quota.suspects + given.suspects if shares.suspects else 0,
            pages=quota.pages + given.pages if shares.pages else 0,
            requests=debt,
            shares=(shares.refresh, shares.suspects, shares.pages),
        )
        self._idle = min(self._idle + given.idle, math.ceil(shares.bandwidth * _IDLE))
        self._held = (self._quota.suspects, self._quota.pages)
        return self._report_free(shares.refresh_bandwidth(*self._use, self._requests))

    def _tick_of_refresh(self, seconds: float) -> None:
        """First reads and requests are limited by politeness alone."""
        shares = self._shares
        given = shares.slot(seconds, ReadCounts(refresh=self._room(1.0, self._quota.refresh)))
        self._quota = Quota(
            refresh=self._quota.refresh + given.refresh if shares.refresh else 0,
            suspects=_UNLIMITED if shares.suspects else 0,
            pages=_UNLIMITED if shares.pages else 0,
            shares=(shares.refresh, shares.suspects, shares.pages),
        )
        self._idle = min(self._idle + given.idle, math.ceil(shares.bandwidth * _IDLE))
        self._held = (self._quota.suspects, self._quota.pages)
        self._report_free(shares.refresh_bandwidth())

    def _average(self, quota: Quota, seconds: float) -> None:
        """Add what first reads used since the last tick to the averages. A class that holds reads is not hungry."""
        part = min(seconds / _AVERAGED_OVER, 1.0)
        left = (quota.suspects, quota.pages)
        used = [max(held - rest, 0) for held, rest in zip(self._held, left, strict=True)]
        suspects, pages = (
            ClassUse(use.reads + (reads / seconds - use.reads) * part, use.hunger + ((rest <= 0) - use.hunger) * part)
            for use, reads, rest in zip(self._use, used, left, strict=True)
        )
        self._use = (suspects, pages)
        requests = max(quota.first_reads - sum(used), 0)
        self._requests += (requests / seconds - self._requests) * part

    def _use_idle(self, now: float) -> None:
        """Schedule pages early. Not at every tick, because each call costs a transaction."""
        found = self._advance(self._idle, now) if self._shares.refresh else 0
        self._quota.left_of[VisitClass.REFRESH] += found
        self._idle = 0
        self._advance_at = now + (_ADVANCE_PAUSE if found else _ADVANCE_REST)

    def _room(self, share: float, held: int) -> int:
        """How many reads a class may be given: any number if it used all it had, else up to `_HOLD` of its share."""
        return max(math.ceil(self._shares.bandwidth * share * _HOLD) - held, 0) if held else _UNLIMITED
