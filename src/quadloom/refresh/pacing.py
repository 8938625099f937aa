"""A constant bandwidth, tick by tick, divided between first reads and refresh, for a crawl without an end.

Each tick of some hundredths of a second hands out the reads that have fallen due since the last one. A class holds what
it has not used yet for a moment; where that is full, its share goes to the others at once. So a class that sleeps
saves nothing up, one that wakes can begin at once, and any slot of a second or more has its bandwidth. Explicit
requests go at once and are taken off what follows, up to a second's reads: whoever asks for a whole site does not stop
all else. A visit that ended before anybody was asked (robots.txt forbids it) is given back.

What no class can hold is idle. The planner prices reads so that all pages together want the bandwidth in the long run;
for now they may want less (rates were just learned, many pages were read at the same time). Then whoever would be due
next is read earlier (`RefreshScheduler.advance`), which is what the index policy says: the largest value first.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from quadloom.model.outcome import Outcome, Settlement
from quadloom.scheduling.planner import Planner
from quadloom.scheduling.shares import BandwidthShares, ReadCounts
from quadloom.stores.protocols.frontier import Quota, VisitClass

_TICK = 0.05  # seconds
_HOLD = 0.2  # seconds of its share that a class may hold
_PLENTY = 1 << 40
_IDLE = 0.5  # seconds after which what was idle has lapsed
_ADVANCE_PAUSE = 0.1  # seconds between two uses of idle reads …
_ADVANCE_REST = 0.25  # … or after one that found nothing
_LONGEST = 2.0  # a pause (a paused crawl, a sleeping machine) is not made up for beyond this
_DEBT = 1.0  # seconds of reads that requests can take from the others
_MEMORY = 30.0  # seconds over which the use by first reads is averaged


class BandwidthPacer:
    """Asked before every lease, by the crawl's own thread. `advance` has so many pages read before their time, and says
    how many it found."""

    def __init__(
        self, shares: BandwidthShares, planner: Planner, advance: Callable[[int, float], int] = lambda _reads, _now: 0
    ) -> None:
        self._shares = shares
        self._planner = planner
        self._advance = advance
        self._advance_at = -math.inf
        self._ticked_at = -math.inf
        self._quota = Quota()
        self._idle = 0
        self._unasked = 0
        self._first_reads = 0.0  # per second, averaged

    def quota(self, now: float) -> Quota:
        """What may be leased at `now`."""
        passed = now - self._ticked_at
        if passed >= _TICK or passed < 0.0:
            self._tick(min(passed, _LONGEST) if math.isfinite(passed) and passed > 0.0 else _TICK)
            self._ticked_at = now
            if self._idle and (now >= self._advance_at or passed < 0.0):
                self._use_idle(now)
        return self._quota

    def settled(self, settlement: Settlement) -> None:
        """A visit has ended. By robots.txt or a guard: no server saw it."""
        if settlement.outcome is Outcome.DENIED and not (settlement.page and settlement.page.status):
            self._unasked += 1

    def _tick(self, seconds: float) -> None:
        quota, shares = self._quota, self._shares
        if shares.bandwidth > 0.0:
            seconds = min(seconds + self._unasked / shares.bandwidth, _LONGEST)
        self._unasked = 0
        self._first_reads += (quota.first_reads / seconds - self._first_reads) * min(seconds / _MEMORY, 1.0)
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
            refresh=quota.refresh + given.refresh,
            suspects=quota.suspects + given.suspects,
            pages=quota.pages + given.pages,
            requests=debt,
            shares=(shares.refresh, shares.suspects, shares.pages),
        )
        self._idle = min(self._idle + given.idle, math.ceil(shares.bandwidth * _IDLE))
        self._tell_planner()

    def _use_idle(self, now: float) -> None:
        """Not at every tick: each use costs a transaction."""
        found = self._advance(self._idle, now)
        self._quota.left_of[VisitClass.REFRESH] += found
        self._idle = 0
        self._advance_at = now + (_ADVANCE_PAUSE if found else _ADVANCE_REST)

    def _room(self, share: float, held: int) -> int:
        """What a class may take in: anything if it used all it had, a moment of its share if it did not."""
        return max(math.ceil(self._shares.bandwidth * share * _HOLD) - held, 0) if held else _PLENTY

    def _tell_planner(self) -> None:
        """Refresh may count on what first reads do not use. Told when it has moved by a tenth: a price costs 1 ms."""
        shares = self._shares
        free = max(shares.bandwidth - self._first_reads, shares.bandwidth * shares.refresh)
        if not 0.9 * self._planner.bandwidth <= free <= 1.1 * self._planner.bandwidth:
            self._planner.bandwidth = free
