"""Dead pages, and when each of them is requested once more.

A page that was gone `freshness.dead_after` times in a row, over `freshness.dead_span` at least, is dead: it leaves the
indexes. It is requested once more when a new or changed page links to it, or after `freshness.dead_retry`. Both pauses
grow with the time that the page has been gone, so a link that stays broken costs little.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from quadloom.planning.policy.planner import PageSchedule, Planner
from quadloom.planning.refresh.state import DeadVisits, gone_for, remember
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import ScheduledPage

_LOOK_SECONDS = 60.0  # between two looks for pages whose pause is over
_AT_ONCE = 1000


class PageAddress(NamedTuple):
    fingerprint: int
    host: str


class DeadPages:
    """Owned by the crawl's own thread. `visits`: see `LoadedSchedule.dead`."""

    def __init__(self, catalog: Catalog, planner: Planner, visits: DeadVisits) -> None:
        self._catalog = catalog
        self._planner = planner
        self.visits = visits
        self._looked_at = -math.inf

    def add(self, fingerprint: int, visited_at: float, plan: PageSchedule) -> None:
        """A visit found the page dead, for the first time or again."""
        remember(self.visits, fingerprint, (visited_at, gone_for(visited_at, plan)))

    def remove(self, fingerprint: int) -> None:
        self.visits.pop(fingerprint, None)

    def linked(self, page: PageAddress, now: float) -> list[ScheduledPage]:
        """A new or changed page links to `page`: the visit that this causes, if it is dead and was not seen lately."""
        dead = self.visits.get(page.fingerprint)
        if dead is None:
            return []
        visited_at, gone = dead
        if now < visited_at + max(gone, self._planner.dead_span, self._planner.min_interval):
            return []
        del self.visits[page.fingerprint]
        return [ScheduledPage(page.fingerprint, page.host, now)]

    def take(self, now: float) -> list[ScheduledPage]:
        """Visits of the pages whose long pause is over."""
        if not self.visits or 0.0 <= now - self._looked_at < _LOOK_SECONDS:
            return []
        self._looked_at = now
        over: list[int] = []
        for key, (visited_at, gone) in self.visits.items():  # in the order of their last visits
            if len(over) >= _AT_ONCE or now < visited_at + self._planner.dead_retry:
                break
            if now >= visited_at + gone:
                over.append(key)
        for key in over:
            del self.visits[key]
        return [ScheduledPage(key, row.host, now) for key, row in self._catalog.pages(over).items()] if over else []
