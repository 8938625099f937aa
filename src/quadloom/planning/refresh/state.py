"""What the refresh schedule stores: each page's own part in its row, the sums over all pages in one catalog value.

The sums are exact only if a clean end wrote them. After a crash they are computed again from the rows, because sums
that lack a batch could never be corrected; only the trust in hosts' dates, which no row has, comes from the last save.
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple, TypeVar

import msgspec

from quadloom.model.url import site_of
from quadloom.model.wire import decode
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.planning.policy.planner import PageSchedule, Planner, PlannerState
from quadloom.planning.policy.shares import BandwidthShares
from quadloom.planning.policy.suspects import SuspectModel
from quadloom.planning.refresh.budget import ReadBudget
from quadloom.planning.refresh.predictor import read_suspects
from quadloom.settings import Settings
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog

T = TypeVar("T")
DeadVisits = dict[int, tuple[float, float]]
"""fingerprint → (when the page was last visited, how long it had been gone then)"""
_REMEMBERED = 200_000  # dead pages and announcements in memory; beyond that the oldest are dropped


class _SavedSums(msgspec.Struct, frozen=True):
    """`exact`: written by a clean end, so the sums agree with the rows."""

    exact: bool
    state: PlannerState
    dead: DeadVisits = {}


_SUMS = NamedValue("schedule:sums", _SavedSums)


class Schedule(NamedTuple):
    """What has been learned about all pages together, and how the bandwidth is divided, for explanations.
    `data_weight`: χ."""

    planner: Planner
    suspects: SuspectModel
    data_weight: float
    shares: BandwidthShares


class LoadedSchedule(NamedTuple):
    planner: Planner
    dead: DeadVisits


def save(catalog: Catalog, planner: Planner, dead: DeadVisits, *, exact: bool) -> None:
    """Write the sums. `exact`: no settlement is missing in them."""
    _SUMS.put(catalog, _SavedSums(exact, planner.dump(), dead))


def load(catalog: Catalog, settings: Settings, bandwidth: float) -> LoadedSchedule:
    """Restore the sums, and mark the save as stale: from now on only a clean end makes it exact again."""
    loaded = _restore(catalog, settings, bandwidth)
    save(catalog, loaded.planner, loaded.dead, exact=False)
    return loaded


def _restore(catalog: Catalog, settings: Settings, bandwidth: float) -> LoadedSchedule:
    saved = _SUMS.get(catalog)
    if saved is not None and saved.exact:
        return LoadedSchedule(Planner(settings.freshness, bandwidth, saved.state), dict(saved.dead))
    trusts = saved.state.trusts if saved is not None else {}
    planner = Planner(settings.freshness, bandwidth, PlannerState({}, trusts, {}, []))
    dead: DeadVisits = {}
    after = -(1 << 63)
    while rows := catalog.scan(after=after, limit=1000):
        after = rows[-1].fingerprint
        for row in rows:
            if not row.schedule:
                continue
            schedule = decode(row.schedule, PageScheduleRow)
            if not schedule.parked:
                planner.recount(row.host, site_of(row.host), schedule.plan)
            if schedule.is_dead:
                remember(dead, row.fingerprint, (row.fetched_at, gone_for(row.fetched_at, schedule.plan)))
    return LoadedSchedule(planner, dead)


def gone_for(visited_at: float, plan: PageSchedule) -> float:
    """Seconds that a page had been gone at its last visit."""
    return visited_at - plan.gone_since if plan.gone_since else 0.0


def remember(entries: dict[int, T], key: int, value: T) -> None:
    """Add an entry as the newest; if there are too many, the oldest tenth goes (a dict keeps the order of insertion).

    Not one for each new one: to find the oldest, a dict walks over all that were removed before it."""
    entries.pop(key, None)
    if len(entries) >= _REMEMBERED:
        for oldest in list(islice(entries, max(1, _REMEMBERED // 10))):
            del entries[oldest]
    entries[key] = value


def schedule_of(catalog: Catalog, settings: Settings) -> Schedule:
    """The schedule as of the last save, to read only. While a crawl runs it is some minutes old; computing the sums
    from all rows for one question would take too long."""
    budget = ReadBudget(settings.freshness)
    saved = _SUMS.get(catalog)
    planner = Planner(settings.freshness, budget.shares.refresh_bandwidth(), saved.state if saved is not None else None)
    budget.divide(planner)
    return Schedule(
        planner,
        read_suspects(catalog),
        settings.freshness.chi,
        budget.shares,
    )
