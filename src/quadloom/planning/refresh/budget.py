"""What one worker may read: `freshness.bandwidth` of all workers together, and the part of it that this one has.

There are two parts. `owned` is the worker's part of all shards; it follows the pages that the worker keeps fresh, and
prices of reads are computed from it. `wanted` is its part of what all workers could read now under politeness. It
follows the queues from heartbeat to heartbeat, so a worker with few shards and a long queue reads while others rest.

Without a bandwidth in the settings first reads are limited by politeness alone, and refreshes have a budget that grows
with the pages: each is read once a day on average, but never fewer than `_LEAST` in all.
"""

from __future__ import annotations

from quadloom.planning.policy.planner import Planner
from quadloom.planning.policy.shares import BandwidthShares
from quadloom.settings import FreshnessSettings

_LEAST = 10.0  # refreshes per second, of all workers together
_ONCE = 86_400.0  # seconds in which each page is read once on average


class ReadBudget:
    """Owned by the crawl's own thread. `setting`: of the whole crawl, in reads per second; 0 = automatic."""

    def __init__(self, freshness: FreshnessSettings) -> None:
        self.setting = freshness.bandwidth
        self._owned = self._wanted = 1.0
        self.shares = BandwidthShares(self._whole(0), freshness.suspect_share, freshness.discovery_share)
        self.shares.only_refresh = not self.setting

    def in_words(self) -> str:
        """For people, when a continuous crawl begins."""
        if self.setting:
            return f"reads at most {self.setting:g} pages a second in all (freshness.bandwidth)"
        return (
            f"reads new pages as fast as politeness allows, and refreshes about {self.shares.bandwidth:.3g} pages a "
            "second; freshness.bandwidth would limit both"
        )

    def set_part(self, owned: float, wanted: float) -> bool:
        """Set this worker's parts; 0 is ignored. Returns whether something has changed."""
        before = self._owned, self._wanted
        self._owned, self._wanted = owned or self._owned, wanted or self._wanted
        return before != (self._owned, self._wanted)

    def divide(self, planner: Planner) -> None:
        """After a change of bandwidth or parts. All of it is for refresh until the pacer reports what is free."""
        self.shares.only_refresh = not self.setting
        self.shares.bandwidth = self._whole(_pages(planner)) * self._wanted
        planner.bandwidth = self._priced(self.shares.refresh_bandwidth())

    def use_free(self, rate: float, planner: Planner) -> None:
        """Let refresh count on what first reads leave. Small differences are ignored: a new price costs 1 ms."""
        if not self.setting:
            due = self._whole(_pages(planner)) * self._wanted
            if not 0.9 * self.shares.bandwidth <= due <= 1.1 * self.shares.bandwidth:
                return self.divide(planner)
        rate = self._priced(rate)
        if not 0.9 * planner.bandwidth <= rate <= 1.1 * planner.bandwidth:
            planner.bandwidth = rate
        return None

    def _whole(self, pages: int) -> float:
        """Of all workers together. Those of this worker tell how many pages all of them have."""
        return self.setting or max(_LEAST, pages / self._owned / _ONCE)

    def _priced(self, rate: float) -> float:
        return rate * self._owned / self._wanted


def _pages(planner: Planner) -> int:
    return planner.demand.pages
