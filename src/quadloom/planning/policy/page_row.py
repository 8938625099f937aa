"""A page's own part of the refresh schedule, as its row in the catalog holds it, and the sum over all pages.

Records only: who reads them does not need the mathematics of the planner.
"""

from __future__ import annotations

import msgspec

from quadloom.model.outcome import READ_OUTCOMES, Outcome, PageRow
from quadloom.model.wire import decode

_SAME_RATE = 2.0  # a rate that has not moved by this factor is not described again


class ExpectedFreshness(msgspec.Struct, frozen=True):
    """The state that a continuous crawl keeps all pages in, by their learned change rates and planned visits.

    `freshness`: share of time that a copy is up to date, weighted by page. `cost`: COST of the Xyleme paper (section
    4), Σ w (λ/f)^α / (α + 1) over Σ w: 0 = nothing is ever obsolete. `reads`: visits a second that this needs.
    """

    pages: int
    freshness: float
    cost: float
    reads: float


class PageSchedule(msgspec.Struct, frozen=True, array_like=True):
    """What the scheduler stores of a page. `rate`: encoded `ChangeRate`. `period` 0 = not scheduled."""

    rate: bytes = b""
    weight: float = 1.0
    changes_per_second: float = 0.0
    log_mean: float = 0.0
    log_variance: float = 0.0
    period: float = 0.0
    gone: int = 0
    host_counted: bool = False  # whether the page is also in the demand of its host
    gone_since: float = 0.0  # first of the visits in a row that found it gone; 0 = it is there
    dead: bool = False
    rhythm: float = 0.0  # seconds between changes that the owner states; 0 = nothing is stated


class PageScheduleRow(msgspec.Struct, frozen=True, array_like=True):
    """`read_at`: when the page's content was last seen, 0 = never. `parked`: outside the scope, and so not in the
    planner's sums. `importance`, `usefulness`: from the last ranking, 0 = not ranked. `described_rate`: changes per
    second when the page was last described in the graph of pages, 0 = it was not."""

    plan: PageSchedule
    read_at: float = 0.0
    parked: bool = False
    importance: float = 0.0
    usefulness: float = 0.0
    described_rate: float = 0.0

    @property
    def next_visit(self) -> float | None:
        """By the schedule; a retry or a request may come first."""
        return self.read_at + self.plan.period if self.plan.period and not self.parked else None

    @property
    def is_described(self) -> bool:
        """The graph of pages has about the rate that is known now. An unchanged visit moves it a little, and so does
        not make the description wrong."""
        rate, described = self.plan.changes_per_second, self.described_rate
        return described / _SAME_RATE < rate < described * _SAME_RATE or rate == described

    @property
    def is_dead(self) -> bool:
        """Older versions stored no mark, but took the period of a dead page away."""
        plan = self.plan
        return plan.dead or (plan.gone > 0 and not plan.period and not plan.gone_since)


def gone_since(row: PageRow) -> float:
    """Since when a page that was read is not found; 0 = it is there, as far as is known. It counts as not found from
    the first visit that says so (404, 410). Its statements stay until it is dead (`freshness.dead_after`), marked as
    `ql:gone`: a server may answer 404 for a night."""
    if row.outcome in READ_OUTCOMES or not row.changed_at:
        return 0.0
    plan = decode(row.schedule, PageScheduleRow).plan if row.schedule else None
    if plan is None or not plan.gone:
        return row.fetched_at if row.outcome is Outcome.GONE else 0.0
    return plan.gone_since or row.fetched_at


def gone_visits(row: PageRow) -> int:
    """How many visits in a row found the page gone; failures in between do not count. 0 = it is there, as far as is
    known."""
    if row.outcome in READ_OUTCOMES or not row.schedule:
        return 0
    return decode(row.schedule, PageScheduleRow).plan.gone
