"""A page's own part of the refresh schedule, as its row in the catalog holds it."""

from __future__ import annotations

import msgspec

from quadloom.scheduling.planner import PageSchedule


class PageScheduleRow(msgspec.Struct, frozen=True, array_like=True):
    """`read_at`: when the page's content was last seen, 0 = never. `parked`: outside the scope, and so not in the
    planner's sums. `importance`, `usefulness`: from the last ranking, 0 = not ranked."""

    plan: PageSchedule
    read_at: float = 0.0
    parked: bool = False
    importance: float = 0.0
    usefulness: float = 0.0

    @property
    def next_visit(self) -> float | None:
        """By the schedule; a retry or a request may come first."""
        return self.read_at + self.plan.period if self.plan.period and not self.parked else None
