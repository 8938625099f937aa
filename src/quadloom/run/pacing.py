"""A constant bandwidth in slots of a second, divided between first reads and refresh, for a crawl without an end.

What a class has not used after three quarters of a slot is open to all for the rest of it, and lapses with it: a
class that slept does not save up, and the reads per slot stay constant. Explicit requests go at once and are taken off
the next slot.

The planner prices reads so that all pages together want the bandwidth in the long run. Where they want less for now
(rates were just learned, many pages were read at the same time), slots would stay empty; so what the planner is told is
raised while slots have room, and comes back when they have not.
"""

from __future__ import annotations

import math

from quadloom.scheduling.planner import Planner
from quadloom.scheduling.shares import Reads, Shares
from quadloom.stores.quota import Quota

SLOT = 1.0  # seconds
_OPEN_AFTER = 0.75
_LONGEST = 2.0  # a pause (a paused crawl, a sleeping machine) is not made up for beyond this
_PLENTY = 1 << 40
_RAISED_MOST = 4.0
_MEMORY = 30.0  # slots over which the use by first reads is averaged


class Pacing:
    """Asked before every lease, by the crawl's own thread."""

    def __init__(self, shares: Shares, planner: Planner) -> None:
        self._shares = shares
        self._planner = planner
        self._began = -math.inf
        self._quota = Quota()
        self._first_reads = 0.0  # per second, averaged
        self._raised = 1.0

    def quota(self, now: float) -> Quota:
        """What may still be leased in the slot of `now`."""
        passed = now - self._began
        if passed >= SLOT or passed < 0.0:
            self._turn(min(passed, _LONGEST) if math.isfinite(passed) and passed > 0.0 else SLOT)
            self._began = now
        elif passed >= _OPEN_AFTER * SLOT:
            self._quota.open()
        return self._quota

    def _turn(self, seconds: float) -> None:
        used = self._quota
        given = self._shares.slot(
            seconds, Reads(requests=used.requests, suspects=_PLENTY, pages=_PLENTY, refresh=_PLENTY)
        )
        self._quota = Quota(refresh=given.refresh, suspects=given.suspects, pages=given.pages)
        self._first_reads += (used.first_reads / seconds - self._first_reads) / _MEMORY
        unused = used.left / (seconds * self._shares.bandwidth) if self._shares.bandwidth > 0.0 else 0.0
        step = 1.0 + 0.1 * min(unused, 1.0) if unused > 0.02 else 0.99
        self._raised = min(max(self._raised * step, 1.0), _RAISED_MOST)
        self._tell_planner()

    def _tell_planner(self) -> None:
        """Refresh may count on what first reads do not use. Told when it has moved by a tenth: a price costs 1 ms."""
        shares = self._shares
        free = max(shares.bandwidth - self._first_reads, shares.bandwidth * shares.refresh) * self._raised
        if not 0.9 * self._planner.bandwidth <= free <= 1.1 * self._planner.bandwidth:
            self._planner.bandwidth = free
