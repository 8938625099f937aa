"""When each page is read again: the planner beside the running crawl.

Every settlement passes through `plan`, which gives it the time of the next visit and puts what the scheduler learned
into the page's own row. So the knowledge about a page becomes durable in the very transaction that settles the visit,
and costs neither a read nor a write of its own.

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
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from quadloom.errors import UsageError
from quadloom.ingest.hooks import SettleBatch
from quadloom.model.outcome import READ_OUTCOMES, Outcome, PageRow, Settlement
from quadloom.model.url import Url, site_of
from quadloom.model.wire import Value, decode, encode
from quadloom.ranking.page_ranks import PageRank
from quadloom.ranking.ranker import PageRanker
from quadloom.refresh.pacing import BandwidthPacer
from quadloom.refresh.predictor import DataPredictor
from quadloom.refresh.state import Schedule, loaded, remember, save
from quadloom.scheduling.objectives import Policy
from quadloom.scheduling.page_row import PageScheduleRow
from quadloom.scheduling.planner import Decision, PageSchedule, VisitObservation
from quadloom.scheduling.shares import BandwidthShares, ReadCounts
from quadloom.scheduling.suspects import DATA_KINDS
from quadloom.settings import Settings
from quadloom.stores.frontier.policy import distinct
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier, ScheduledPage, ScopeRules

_CHECKPOINT_SECONDS = 300.0
_SAME_WEIGHT = 0.01
_ALSO_LOOKED_AT = 64  # soon due are also pages read a moment ago that must rest
_TELLING = frozenset((Outcome.NEW, Outcome.CHANGED))


class SharesChange(msgspec.Struct, frozen=True):
    """Control request `freshness`."""

    bandwidth: float | None = None
    suspect_share: float | None = None
    discovery_share: float | None = None
    policy: Policy | None = None
    alpha: float | None = None
    chi: float | None = None


class _Case(NamedTuple):
    """A visit that the planner decides about."""

    settlement: Settlement
    row: PageRow
    kept: PageScheduleRow
    seen: VisitObservation
    standing: PageRank | None


class RefreshScheduler:
    """A `SettleHook`, owned by the crawl's own thread. `ranker` weighs pages; `scope` gives the rules that hold now."""

    def __init__(
        self,
        catalog: Catalog,
        frontier: Frontier,
        settings: Settings,
        *,
        ranker: PageRanker | None = None,
        scope: Callable[[], ScopeRules | None] = lambda: None,
    ) -> None:
        freshness = settings.freshness
        self._catalog = catalog
        self._frontier = frontier
        self._delay = settings.politeness.delay
        self._bandwidth = freshness.bandwidth  # of the whole crawl
        self._part = 1.0  # of it that is ours
        self.shares = BandwidthShares(freshness.bandwidth, freshness.suspect_share, freshness.discovery_share)
        self._ranker = ranker
        self._scope = scope
        self.chi = freshness.chi
        self._damping = freshness.damping
        self.guided = settings.crawl.order == "importance"
        self.planner, self._dead = loaded(catalog, settings, self.shares.refresh_bandwidth(ReadCounts()))
        self.predictor = DataPredictor(catalog)
        self._announced: dict[int, float] = {}
        self._pushed: dict[int, bool] = {}
        self._wanted: list[ScheduledPage] = []
        self._uncommitted = False
        self._saved_at = -math.inf

    def prepare(self, batch: SettleBatch) -> None:
        if self._ranker is not None:
            for item in batch.visits:
                if item.result is not None:
                    self._ranker.append(item.visit.fingerprint, item.result.edges)
        batch.settlements = self.plan(batch.settlements, batch.known, batch.now)
        if batch.links:  # these come after their pages were settled, so they are assessed apart
            batch.links = self.predictor.assessed(tuple(batch.links), from_data=False)

    def plan(self, settlements: Sequence[Settlement], known: Mapping[int, PageRow], now: float) -> list[Settlement]:
        """Give each settlement its next visit. The caller must settle the result and then call `committed`."""
        self._uncommitted = True
        rows = dict(known)
        planned: list[Settlement] = []
        for part in distinct(settlements):  # a URL may be settled twice in one batch
            done = self._plan_part(part, rows, now)
            rows.update((item.page.fingerprint, item.page) for item in done if item.page is not None)
            planned += done
        self.predictor.learn(planned)
        return planned

    def _plan_part(self, part: Sequence[Settlement], rows: Mapping[int, PageRow], now: float) -> list[Settlement]:
        standings = self._standings(part)
        cases = [
            self._case(settlement, rows.get(settlement.visit.fingerprint), standing)
            for settlement, standing in zip(part, standings, strict=True)
        ]
        open_cases = [case for case in cases if isinstance(case, _Case)]
        decisions = iter(self.planner.settle_all([(case.seen, case.kept.plan) for case in open_cases]))
        planned = []
        for case, standing in zip(cases, standings, strict=True):
            done = self._decided(case, next(decisions)) if isinstance(case, _Case) else case
            if done.page is not None and done.discoveries:
                if done.outcome in _TELLING:
                    self._hear(done, rows.get(done.page.fingerprint), now)
                done = self._ordered(done, done.page.kind in DATA_KINDS, standing)
            planned.append(done)
        return planned

    def write(self, now: float) -> None:
        """Dead pages that were found again, pages announced as changed, and from time to time the sums."""
        if self._wanted:
            self._frontier.reschedule(self._wanted, now)
        if now - self._saved_at > _CHECKPOINT_SECONDS:
            self._saved_at = now
            self._save(exact=False)

    def pacer(self) -> BandwidthPacer:
        """The bandwidth in ticks, for a crawl without an end."""
        return BandwidthPacer(self.shares, self.planner, self.advance)

    def advance(self, count: int, now: float) -> int:
        """Bandwidth lies idle: read so many pages before their time, the nearest to the end of their periods first, but
        none sooner than `freshness.min_interval` after it was read. Returns how many."""
        waiting = self._frontier.soonest(4 * count + _ALSO_LOOKED_AT)
        rows = self._catalog.pages([key for key, _, _ in waiting])
        kept = {key: decode(row.schedule, PageScheduleRow) for key, row in rows.items() if row.schedule}
        rested = [
            (key, host)
            for key, host, _ in waiting
            if key in kept and kept[key].plan.period and kept[key].read_at + self.planner.min_interval <= now
        ]
        rested.sort(key=lambda item: (kept[item[0]].read_at - now) / kept[item[0]].plan.period)
        chosen = rested[:count]
        if chosen:
            self._frontier.reschedule([ScheduledPage(key, host, now) for key, host in chosen], now)
        return len(chosen)

    def committed(self) -> None:
        self._uncommitted = False
        self._wanted.clear()

    def close(self) -> None:
        """Save the sums, unless the last batch never became durable: then they are ahead of the rows."""
        if not self._uncommitted:
            self._save(exact=True)

    def set_share(self, part: float) -> None:
        """Set this worker's share of the shards; its bandwidth scales with it. 0 is ignored."""
        if part > 0.0 and part != self._part:
            self._part = part
            self._spread()

    def _spread(self) -> None:
        self.shares.bandwidth = self._bandwidth * self._part
        self.planner.bandwidth = self.shares.refresh_bandwidth(ReadCounts())

    def change(self, change: SharesChange) -> dict[str, Value]:
        """New bandwidth, shares or policy while the crawl runs; None = as before. Returns what holds now.

        What is refused changes nothing."""
        for name, value, hint in (
            ("χ", change.chi, "1 weighs both kinds alike"),
            ("α", change.alpha, "0.95 is the paper's; smaller values care more for whether a copy is old than how old"),
        ):
            if value is not None and not 0.0 < value < math.inf:
                raise UsageError(f"{name} must be positive, not {value:g}", hint=hint)
        shares, planner = self.shares, self.planner
        shares.set(
            shares.suspects if change.suspect_share is None else change.suspect_share,
            shares.pages if change.discovery_share is None else change.discovery_share,
        )
        if change.bandwidth is not None:
            self._bandwidth = change.bandwidth
        if change.chi is not None:
            self.chi = change.chi
            if self._ranker is not None:
                self._ranker.prefer(change.chi)
        if change.policy is not None or change.alpha is not None:
            planner.set_policy(change.policy or planner.policy, change.alpha or planner.alpha)
        self._spread()
        return {
            "bandwidth": self._bandwidth,
            "suspect_share": shares.suspects,
            "discovery_share": shares.pages,
            "refresh_share": shares.refresh,
            "policy": planner.policy,
            "alpha": planner.alpha,
            "chi": self.chi,
        }

    def hear_push(self, urls: Sequence[str]) -> None:
        """An entitled publisher says that these pages have changed; they are being read."""
        for url in urls:
            self.announced(Url.parse(url).fingerprint)

    def announced(self, fingerprint: int) -> None:
        """Mark one page as changed, on a signed WebSub push."""
        remember(self._pushed, fingerprint, True)

    def review(self, row: PageRow, standing: PageRank | None) -> tuple[PageRow, float | None] | None:
        """A page between two visits, after a ranking or a change of the scope: its row as it should be now, and its
        next visit where that moved; None = nothing to do. What it returns must be written, as with `plan`."""
        if not row.schedule:
            return None
        self._uncommitted = True
        before = decode(row.schedule, PageScheduleRow)
        kept = self._rescoped(row, before)
        if standing is not None:
            plan = kept.plan
            if abs(standing.weight - plan.weight) > _SAME_WEIGHT * plan.weight:
                counted = plan.period and not kept.parked
                plan = (
                    self.planner.reweigh(row.host, plan, standing.weight, kept.read_at, self._delay).schedule
                    if counted
                    else replace(plan, weight=standing.weight)
                )
            kept = replace(kept, plan=plan, importance=standing.importance, usefulness=standing.usefulness)
        if kept == before:
            return None
        # After a failure the page waits for a retry, whose time is not ours to change.
        due = kept.next_visit if row.outcome in READ_OUTCOMES and kept.next_visit != before.next_visit else None
        return replace(row, schedule=encode(kept)), due

    def _rescoped(self, row: PageRow, kept: PageScheduleRow) -> PageScheduleRow:
        """Out of the sums when it left the scope, into them again when it came back."""
        outside = self._is_outside(row)
        if outside == kept.parked:
            return kept
        (self.planner.forget if outside else self.planner.recount)(row.host, site_of(row.host), kept.plan)
        return replace(kept, parked=outside)

    def _is_outside(self, row: PageRow) -> bool:
        scope = self._scope()
        return scope is not None and scope.verdict(row.href, row.host, row.depth) is not None

    def _case(self, settlement: Settlement, old: PageRow | None, standing: PageRank | None) -> _Case | Settlement:
        """What the planner has to decide; a settlement where there is nothing."""
        row = settlement.page
        kept = decode(old.schedule, PageScheduleRow) if old is not None and old.schedule else None
        if row is None or settlement.again_at is not None or (kept is None and settlement.outcome not in READ_OUTCOMES):
            return settlement  # a retry, or a page that never was: the frontier's own rules are enough
        if old is not None and row.fetched_at <= old.fetched_at:
            # A visit whose lease had run out: the newer one has been planned already.
            again = kept.next_visit if kept is not None else None
            return replace(settlement, page=replace(row, schedule=old.schedule), again_at=again)
        if kept is not None and kept.parked:
            if settlement.outcome not in READ_OUTCOMES:
                return settlement  # somebody asked for it; it stays parked as it was
            kept = replace(kept, plan=replace(kept.plan, period=0.0, host_counted=False), parked=False)
        if row.kind == "quarantined":
            if kept is not None:
                self.planner.forget(row.host, site_of(row.host), kept.plan)
            return replace(settlement, page=replace(row, schedule=b""))
        if kept is None:
            kept = PageScheduleRow(PageSchedule(weight=self.chi if row.kind in DATA_KINDS else 1.0))
        pace = settlement.pace
        seen = VisitObservation(
            row.host,
            site_of(row.host),
            settlement.outcome,
            row.fetched_at,
            kept.read_at,
            http_date(row.last_modified) if row.last_modified else 0.0,
            self._announced.pop(row.fingerprint, 0.0) if self._announced else 0.0,
            self._delay if pace is None or pace.delay < self._delay else pace.delay,
            None if standing is None else standing.weight,
            self._pushed.pop(row.fingerprint, False) if self._pushed else False,
        )
        return _Case(settlement, row, kept, seen, standing)

    def _decided(self, case: _Case, decision: Decision) -> Settlement:
        settlement, row, kept, _, standing = case
        read_at = row.fetched_at if settlement.outcome in READ_OUTCOMES else kept.read_at
        _, importance, usefulness = standing or (0.0, kept.importance, kept.usefulness)
        new = self._rescoped(row, PageScheduleRow(decision.schedule, read_at, False, importance, usefulness))
        if decision.again_at is None:
            remember(self._dead, row.fingerprint, (row.fetched_at, decision.schedule.gone))
            row = replace(row, schedule=encode(new), quads_digest=b"", text_digest=b"", quads=0)
            return replace(settlement, page=row, again_at=None)
        if self._dead:
            self._dead.pop(row.fingerprint, None)
        return replace(
            settlement,
            page=replace(row, schedule=encode(new)),
            again_at=None if new.parked else decision.again_at,
        )

    def _ordered(self, settlement: Settlement, is_data: bool, standing: PageRank | None) -> Settlement:
        """New URLs in the order of discovery: suspects of structured data apart, and, where it is guided, a link is
        worth what the page passes on, one step of the fixpoint; `reviewing` adds what other pages do."""
        found = self.predictor.assessed(settlement.discoveries, is_data)
        if self.guided:
            passed = ((standing.importance if standing is not None else 0.0) or 1.0) / len(found)
            score = self._damping * passed + 1.0 - self._damping
            found = tuple(replace(item, score=score) for item in found)
        return settlement if found is settlement.discoveries else replace(settlement, discoveries=found)

    def _hear(self, settlement: Settlement, old: PageRow | None, now: float) -> None:
        """What a new or changed page says about others: a link to a dead one, a date of change."""
        dead = self._dead
        for found in [found for found in settlement.discoveries if found.fingerprint in dead] if dead else ():
            died_at, gone = dead[found.fingerprint]
            if now >= died_at + self._pause_of_death(gone):
                del dead[found.fingerprint]
                self._wanted.append(ScheduledPage(found.fingerprint, found.host, now))
        since = old.fetched_at if old is not None else math.inf
        for found in [found for found in settlement.discoveries if found.lastmod]:
            remember(self._announced, found.fingerprint, found.lastmod)
            if since < found.lastmod <= now and self.planner.trust(found.host, "announced").trusted:
                self._wanted.append(ScheduledPage(found.fingerprint, found.host, now))

    def _pause_of_death(self, gone: int) -> float:
        return float(min(self.planner.min_interval * 24.0 * 2.0 ** min(gone, 60), self.planner.max_interval))

    def _standings(self, settlements: Sequence[Settlement]) -> Sequence[PageRank | None]:
        if self._ranker is None:
            return [None] * len(settlements)
        return self._ranker.weigh(
            [settlement.visit.fingerprint for settlement in settlements],
            [settlement.page is not None and settlement.page.kind in DATA_KINDS for settlement in settlements],
        )

    def _save(self, *, exact: bool) -> None:
        with self._catalog.transaction():
            save(self._catalog, self.planner, self._dead, exact=exact)
            self.predictor.save()

    @property
    def schedule(self) -> Schedule:
        """What the running crawl knows, for looking only."""
        return Schedule(self.planner, self.predictor.suspects, self.chi)


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
