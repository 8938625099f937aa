"""What the refresh schedule keeps: a page's own part in its row, the sums over all pages in one catalog value.

The sums are exact only when a clean end wrote them. After a crash they are summed anew from the rows, because sums that
miss a batch could never be put right; only the trust in hosts' dates, which no row holds, is taken from the last save.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import msgspec

from quadloom.model.url import site_of
from quadloom.model.wire import decode
from quadloom.refresh.predictor import read_suspects
from quadloom.scheduling.page_row import PageScheduleRow
from quadloom.scheduling.planner import Planner, PlannerState
from quadloom.scheduling.shares import BandwidthShares, ReadCounts
from quadloom.scheduling.suspects import SuspectModel
from quadloom.settings import Settings
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog

T = TypeVar("T")
_REMEMBERED = 1_000_000  # dead pages and announcements held in memory; beyond, the oldest are forgotten


class _Saved(msgspec.Struct, frozen=True):
    """`exact`: written by a clean end, so the sums agree with the rows."""

    exact: bool
    state: PlannerState
    dead: dict[int, tuple[float, int]] = {}


_SUMS = NamedValue("schedule:sums", _Saved)


class Schedule(NamedTuple):
    """What has been learned about all pages together, for explanations."""

    planner: Planner
    suspects: SuspectModel
    chi: float


def save(catalog: Catalog, planner: Planner, dead: dict[int, tuple[float, int]], *, exact: bool) -> None:
    _SUMS.put(catalog, _Saved(exact, planner.dump(), dead))


def loaded(catalog: Catalog, settings: Settings, bandwidth: float) -> tuple[Planner, dict[int, tuple[float, int]]]:
    """Restore, and mark the save as stale: from now on only a clean end makes it exact again."""
    planner, dead = _restored(catalog, settings, bandwidth)
    save(catalog, planner, dead, exact=False)
    return planner, dead


def _restored(catalog: Catalog, settings: Settings, bandwidth: float) -> tuple[Planner, dict[int, tuple[float, int]]]:
    saved = _SUMS.get(catalog)
    if saved is not None and saved.exact:
        return Planner(settings.freshness, bandwidth, saved.state), dict(saved.dead)
    trusts = saved.state.trusts if saved is not None else {}
    planner = Planner(settings.freshness, bandwidth, PlannerState({}, trusts, {}, []))
    dead: dict[int, tuple[float, int]] = {}
    after = -(1 << 63)
    while rows := catalog.scan(after=after, limit=1000):
        after = rows[-1].fingerprint
        for row in rows:
            if not row.schedule:
                continue
            kept = decode(row.schedule, PageScheduleRow)
            if not kept.parked:
                planner.recount(row.host, site_of(row.host), kept.plan)
            if kept.plan.gone >= planner.dead_after:
                remember(dead, row.fingerprint, (row.fetched_at, kept.plan.gone))
    return planner, dead


def remember(place: dict[int, T], key: int, value: T) -> None:
    """Within bounds: the oldest entry makes room (a dictionary keeps the order of insertion)."""
    place.pop(key, None)
    if len(place) >= _REMEMBERED:
        del place[next(iter(place))]
    place[key] = value


def schedule_of(catalog: Catalog, settings: Settings) -> Schedule:
    """What the warehouse's last save has, for looking only: beside a running crawl it is some minutes old, and summing
    anew over all rows for one question would take longer than anybody waits."""
    shares = BandwidthShares(
        settings.freshness.bandwidth, settings.freshness.suspect_share, settings.freshness.discovery_share
    )
    saved = _SUMS.get(catalog)
    state = saved.state if saved is not None else None
    return Schedule(
        Planner(settings.freshness, shares.refresh_bandwidth(ReadCounts()), state),
        read_suspects(catalog),
        settings.freshness.chi,
    )
