"""When each page is read again: the planner beside the running crawl.

Every settlement passes through `plan`, which gives it the time of the next visit and puts what the scheduler learned
into the page's own row. So the knowledge about a page becomes durable in the very transaction that settles the visit,
and costs neither a read nor a write of its own.

The planner's sums over all pages live in memory. A clean end saves them. After a crash they are summed anew from the
rows, because sums that miss a batch could never be put right; only the trust in hosts' dates, which no row holds, is
taken from the last checkpoint.

A page that was gone `freshness.dead_after` times in a row is dead: it leaves the indexes and is not asked for again,
until a new or changed page links to it. The pause before that is granted doubles with each death, so a link nobody
mends costs little.

A sitemap or feed says when its pages changed. What it announced since it was last read is read at once where the host's
announcements have proved true; everywhere else the dates are only remembered, to be compared with what the visit sees.
"""

from __future__ import annotations

import math
from calendar import timegm
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate
from functools import lru_cache
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from quadloom.model.outcome import Outcome, PageRow, Settlement
from quadloom.model.url import site_of
from quadloom.model.wire import decode, encode
from quadloom.run.control import Value
from quadloom.run.suspecting import Suspecting, read_suspects
from quadloom.scheduling.objectives import Policy
from quadloom.scheduling.planner import PageSchedule, Planner, PlannerState, Seen
from quadloom.scheduling.shares import Reads, Shares
from quadloom.scheduling.suspects import DATA_KINDS, Suspects
from quadloom.settings import Settings
from quadloom.stores.protocols import Catalog, Frontier

T = TypeVar("T")
_SUMS = "schedule:sums"
_CHECKPOINT_SECONDS = 300.0
_REMEMBERED = 1_000_000  # dead pages and announcements held in memory; beyond, the oldest are forgotten
_READ = frozenset((Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED))
_TELLING = frozenset((Outcome.NEW, Outcome.CHANGED))


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A page's own part of the schedule. `read_at`: when its content was last seen, 0 = never."""

    plan: PageSchedule
    read_at: float = 0.0


class _Saved(msgspec.Struct, frozen=True):
    """`exact`: written by a clean end, so the sums agree with the rows."""

    exact: bool
    state: PlannerState
    dead: dict[int, tuple[float, int]] = {}


class Schedule(NamedTuple):
    """What has been learned about all pages together, for explanations."""

    planner: Planner
    suspects: Suspects


class SharesChange(msgspec.Struct, frozen=True):
    """Control request `freshness`."""

    bandwidth: float | None = None
    suspect_share: float | None = None
    discovery_share: float | None = None
    policy: Policy | None = None


class Refreshing:
    """Owned by the crawl's own thread. `weigh` gives the last ranking's weight of a page, None = not ranked yet."""

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        *,
        weigh: Callable[[Sequence[int]], Sequence[float | None]] | None = None,
    ) -> None:
        freshness = settings.freshness
        self._catalog = catalog
        self._delay = settings.politeness.delay
        self.shares = Shares(freshness.bandwidth, freshness.suspect_share, freshness.discovery_share)
        self.weigh = weigh
        self._guided = settings.crawl.order == "importance"
        self.planner, self._dead = _loaded(catalog, settings, self.shares.refresh_bandwidth(Reads()))
        self.suspecting = Suspecting(catalog)
        self._announced: dict[int, float] = {}
        self._wanted: list[tuple[int, str, float]] = []
        self._uncommitted = False
        self._saved_at = -math.inf

    def plan(self, settlements: Sequence[Settlement], known: Mapping[int, PageRow], now: float) -> list[Settlement]:
        """Give each settlement its next visit. Whoever calls this must settle the result and then call `committed`."""
        self._uncommitted = True
        rows = dict(known)
        weights = self._weights(settlements)
        planned = []
        for settlement, weight in zip(settlements, weights, strict=True):
            done = self._planned(settlement, rows.get(settlement.visit.fingerprint), weight)
            if done.page is not None:
                if done.outcome in _TELLING and done.discoveries:
                    self._hear(done, rows.get(done.page.fingerprint), now)
                rows[done.page.fingerprint] = done.page  # a URL may be settled twice in one batch
                if done.discoveries:
                    done = self._ordered(done, done.page.kind in DATA_KINDS, weight)
            planned.append(done)
        self.suspecting.learn(planned)
        return planned

    def write(self, frontier: Frontier, now: float) -> None:
        """Inside the transaction that settles the batch: dead pages found again, and pages announced as changed."""
        wanted, self._wanted = self._wanted, []
        if wanted:
            frontier.reschedule(wanted, now)
        if now - self._saved_at > _CHECKPOINT_SECONDS:
            self._saved_at = now
            self._save(exact=False)

    def announced(self, fingerprint: int, at: float) -> None:
        """A push said that a page changed: compared with what the visit sees, as dates in sitemaps are."""
        _remember(self._announced, fingerprint, at)

    def committed(self) -> None:
        self._uncommitted = False

    def close(self) -> None:
        """Save the sums, unless the last batch never became durable: then they are ahead of the rows."""
        if not self._uncommitted:
            self._save(exact=True)

    def change(self, change: SharesChange) -> dict[str, Value]:
        """New bandwidth, shares or policy while the crawl runs; None = as before. Returns what holds now."""
        shares, planner = self.shares, self.planner
        shares.set(
            shares.suspects if change.suspect_share is None else change.suspect_share,
            shares.pages if change.discovery_share is None else change.discovery_share,
        )
        if change.bandwidth is not None:
            shares.bandwidth = change.bandwidth
        if change.policy is not None:
            planner.set_policy(change.policy, planner.alpha)
        planner.bandwidth = shares.refresh_bandwidth(Reads())
        return {
            "bandwidth": shares.bandwidth,
            "suspect_share": shares.suspects,
            "discovery_share": shares.pages,
            "refresh_share": shares.refresh,
            "policy": planner.policy,
        }

    def _planned(self, settlement: Settlement, old: PageRow | None, weight: float | None) -> Settlement:
        row = settlement.page
        kept = decode(old.schedule, Kept) if old is not None and old.schedule else None
        if row is None or settlement.again_at is not None or (kept is None and settlement.outcome not in _READ):
            return settlement  # a retry, or a page that never was: the frontier's own rules are enough
        if old is not None and row.fetched_at <= old.fetched_at:
            # A visit whose lease had run out: the newer one has been planned already.
            again = kept.read_at + kept.plan.period if kept is not None and kept.plan.period else None
            return replace(settlement, page=replace(row, schedule=old.schedule), again_at=again)
        if row.kind == "quarantined":
            if kept is not None:
                self.planner.forget(row.host, site_of(row.host), kept.plan)
            return replace(settlement, page=replace(row, schedule=b""))
        return self._decided(settlement, row, kept or Kept(PageSchedule()), weight)

    def _decided(self, settlement: Settlement, row: PageRow, kept: Kept, weight: float | None) -> Settlement:
        pace = settlement.pace
        seen = Seen(
            host=row.host,
            site=site_of(row.host),
            outcome=settlement.outcome,
            fetched_at=row.fetched_at,
            previous_at=kept.read_at,
            modified_at=http_date(row.last_modified) if row.last_modified else 0.0,
            announced_at=self._announced.pop(row.fingerprint, 0.0),
            host_delay=max(pace.delay, self._delay) if pace is not None else self._delay,
            weight=weight,
        )
        decision = self.planner.settle(seen, kept.plan)
        read_at = row.fetched_at if settlement.outcome in _READ else kept.read_at
        row = replace(row, schedule=encode(Kept(decision.schedule, read_at)))
        if decision.again_at is not None:
            self._dead.pop(row.fingerprint, None)
        else:
            _remember(self._dead, row.fingerprint, (row.fetched_at, decision.schedule.gone))
            row = replace(row, quads_digest=b"", text_digest=b"", quads=0)
        return replace(settlement, page=row, again_at=decision.again_at)

    def _ordered(self, settlement: Settlement, is_data: bool, weight: float | None) -> Settlement:
        """New URLs in the order of discovery: suspects of structured data apart, and, where it is guided, a link is
        worth its page's weight divided by its number of links, one step of OPIC."""
        found = self.suspecting.judged(settlement.discoveries, is_data)
        if self._guided:
            score = (1.0 if weight is None else weight) / len(found)
            found = tuple(replace(item, score=score) for item in found)
        return settlement if found is settlement.discoveries else replace(settlement, discoveries=found)

    def _hear(self, settlement: Settlement, old: PageRow | None, now: float) -> None:
        """What a new or changed page says about others: a link to a dead one, a date of change."""
        dead = self._dead
        for found in [found for found in settlement.discoveries if found.fingerprint in dead] if dead else ():
            died_at, gone = dead[found.fingerprint]
            if now >= died_at + self._pause_of_death(gone):
                del dead[found.fingerprint]
                self._wanted.append((found.fingerprint, found.host, now))
        since = old.fetched_at if old is not None else math.inf
        for found in [found for found in settlement.discoveries if found.lastmod]:
            _remember(self._announced, found.fingerprint, found.lastmod)
            if since < found.lastmod <= now and self.planner.trust(found.host, "announced").trusted:
                self._wanted.append((found.fingerprint, found.host, now))

    def _pause_of_death(self, gone: int) -> float:
        return float(min(self.planner.min_interval * 24.0 * 2.0 ** min(gone, 60), self.planner.max_interval))

    def _weights(self, settlements: Sequence[Settlement]) -> Sequence[float | None]:
        if self.weigh is None:
            return [None] * len(settlements)
        return self.weigh([settlement.visit.fingerprint for settlement in settlements])

    def _save(self, *, exact: bool) -> None:
        with self._catalog.transaction():
            self._catalog.put(_SUMS, encode(_Saved(exact, self.planner.dump(), self._dead)))
            self.suspecting.save()

    @property
    def schedule(self) -> Schedule:
        """What the running crawl knows, for looking only."""
        return Schedule(self.planner, self.suspecting.suspects)


def schedule_of(catalog: Catalog, settings: Settings) -> Schedule:
    """What the warehouse's last save has, for looking only: beside a running crawl it is some minutes old, and summing
    anew over all rows for one question would take longer than anybody waits."""
    shares = Shares(settings.freshness.bandwidth, settings.freshness.suspect_share, settings.freshness.discovery_share)
    stored = catalog.get(_SUMS)
    state = decode(stored, _Saved).state if stored else None
    return Schedule(Planner(settings.freshness, shares.refresh_bandwidth(Reads()), state), read_suspects(catalog))


@lru_cache(maxsize=4096)
def http_date(text: str) -> float:
    """Unix time of a Last-Modified header, 0 = none that can be read. Cached: a host's files often share one."""
    parts = parsedate(text)
    if parts is None:
        return 0.0
    try:
        return float(timegm(parts))
    except (ValueError, OverflowError):
        return 0.0


def _loaded(catalog: Catalog, settings: Settings, bandwidth: float) -> tuple[Planner, dict[int, tuple[float, int]]]:
    """Restore, and mark the save as stale: from now on only a clean end makes it exact again."""
    planner, dead = _restored(catalog, settings, bandwidth)
    catalog.put(_SUMS, encode(_Saved(False, planner.dump(), dead)))
    return planner, dead


def _restored(catalog: Catalog, settings: Settings, bandwidth: float) -> tuple[Planner, dict[int, tuple[float, int]]]:
    stored = catalog.get(_SUMS)
    saved = decode(stored, _Saved) if stored else None
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
            kept = decode(row.schedule, Kept)
            planner.recount(row.host, site_of(row.host), kept.plan)
            if kept.plan.gone >= planner.dead_after:
                _remember(dead, row.fingerprint, (row.fetched_at, kept.plan.gone))
    return planner, dead


def _remember(place: dict[int, T], key: int, value: T) -> None:
    """Within bounds: the oldest entry makes room (a dictionary keeps the order of insertion)."""
    place.pop(key, None)
    if len(place) >= _REMEMBERED:
        del place[next(iter(place))]
    place[key] = value
