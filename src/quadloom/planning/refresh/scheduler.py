"""When each page is read again: the planner of a running crawl.

Every settlement passes through `plan`, which sets the time of the next visit and stores what the scheduler learned in
the page's own row. So the knowledge about a page becomes durable in the transaction that settles the visit, and costs
neither a read nor a write of its own.

A sitemap or feed says when its pages changed. What it announced since it was last read is read at once if the host's
announcements have proved true; otherwise the dates are only remembered, to be compared with what the visit finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from quadloom.model.link import Discovery
from quadloom.model.outcome import READ_OUTCOMES, Outcome, PageRow, Settlement
from quadloom.model.url import Url, site_of
from quadloom.model.wire import Value, decode, encode
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.planning.policy.planner import Decision, PageSchedule, VisitObservation
from quadloom.planning.policy.suspects import DATA_KINDS
from quadloom.planning.policy.trust import http_date
from quadloom.planning.ranking.page_ranks import PageRank
from quadloom.planning.ranking.ranker import PageRanker
from quadloom.planning.refresh.budget import ReadBudget
from quadloom.planning.refresh.dead_pages import DeadPages, PageAddress
from quadloom.planning.refresh.pacing import BandwidthPacer
from quadloom.planning.refresh.predictor import DataPredictor
from quadloom.planning.refresh.shares_change import SharesChange
from quadloom.planning.refresh.state import Schedule, load, remember, save
from quadloom.settings import Settings
from quadloom.stores.frontier.policy import distinct
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier, ScheduledPage, ScopeRules
from quadloom.stores.protocols.settlement import SettleBatch

_CHECKPOINT_SECONDS = 300.0
_ALSO_CONSIDERED = 64  # because some of the pages due next were read too recently to be read again
_PATIENCE = 4.0  # how many times longer seeds, subscribed and important pages may be gone before they are dead
_WITH_CHANGES = frozenset((Outcome.NEW, Outcome.CHANGED))
_PLANNED_FIRST = READ_OUTCOMES | {Outcome.GONE}  # first visits that the planner decides about


class RescheduledPage(NamedTuple):
    """A page's new row, and the time of its next visit if that changed. `describe`: not only that time has changed."""

    row: PageRow
    due: float | None
    describe: bool = True


class _Case(NamedTuple):
    """A visit that the planner decides about. `schedule`: as it was before the visit."""

    settlement: Settlement
    row: PageRow
    schedule: PageScheduleRow
    observation: VisitObservation
    rank: PageRank | None


class RefreshScheduler:
    """A `SettleHook`, owned by the crawl's own thread. `ranker` weighs pages; `scope` returns the current rules.

    `guided`: whether importance decides about first reads, about all of them or a share. `plan_basis`: what all plans
    depend on; when it has changed, pages that were planned before are planned again.
    """

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
        self.budget = ReadBudget(freshness)
        self.shares = self.budget.shares
        self._ranker = ranker
        self._scope = scope
        self._data_weight = freshness.chi
        self._damping = freshness.damping
        self._order = settings.crawl.order
        self._guided_share = settings.crawl.guided_share
        self.guided = self._is_guided()
        self.planner, dead = load(catalog, settings, self.shares.refresh_bandwidth())
        self._dead = DeadPages(catalog, self.planner, dead)
        self.predictor = DataPredictor(catalog)
        self._announced: dict[int, float] = {}
        self._rhythms: dict[int, float] = {}
        self._pushed: dict[int, bool] = {}
        self._due_now: list[ScheduledPage] = []
        self._announced_now: dict[int, float] = {}  # pages to read soon, and not before
        self._uncommitted = False
        self._saved_at = -math.inf
        self.plan_basis = self._plan_basis()

    def prepare(self, batch: SettleBatch) -> None:
        if self._ranker is not None:
            self._ranker.append_all(
                [(item.visit.fingerprint, item.result.edges) for item in batch.visits if item.result is not None]
            )
            if batch.indexed:
                self._ranker.sync()
        batch.settlements = self.plan(batch.settlements, batch.known, batch.now)
        if batch.links:  # found after their pages were settled, so no settlement has them
            batch.links = self.predictor.prioritize(tuple(batch.links), from_data=False)

    def plan(self, settlements: Sequence[Settlement], known: Mapping[int, PageRow], now: float) -> list[Settlement]:
        """Set the next visit of each settlement. The caller must settle the result and then call `committed`."""
        self._uncommitted = True
        rows = dict(known)
        planned: list[Settlement] = []
        for part in distinct(settlements):  # a URL may be settled twice in one batch
            done = self._plan_part(part, rows, now)
            rows.update((item.page.fingerprint, item.page) for item in done if item.page is not None)
            planned += done
        self.predictor.learn(planned)
        self._due_now += self._dead.take(now)
        return planned

    def _plan_part(self, part: Sequence[Settlement], rows: Mapping[int, PageRow], now: float) -> list[Settlement]:
        ranks = self._ranks(part)
        cases = [
            self._case(settlement, rows.get(settlement.visit.fingerprint), rank, now)
            for settlement, rank in zip(part, ranks, strict=True)
        ]
        undecided = [case for case in cases if isinstance(case, _Case)]
        decisions = iter(self.planner.settle_all([(case.observation, case.schedule.plan) for case in undecided]))
        scope = self._scope()
        planned = []
        for case, rank in zip(cases, ranks, strict=True):
            done = self._decided(case, next(decisions), scope) if isinstance(case, _Case) else case
            if done.page is not None and done.discoveries:
                if done.outcome in _WITH_CHANGES:
                    old = rows.get(done.page.fingerprint)
                    self._note_links(done.discoveries, old.fetched_at if old is not None else math.inf, now)
                done = self._prioritized(done, done.page.kind in DATA_KINDS, rank)
            planned.append(done)
        return planned

    def write(self, now: float) -> None:
        """Schedule dead pages that were linked again and pages announced as changed; at times save the sums."""
        due = [*self._due_now, *self._announced_visits(now)]
        if due:
            self._frontier.reschedule(due, now)
        if now - self._saved_at > _CHECKPOINT_SECONDS:
            self._saved_at = now
            self._save(exact=False)

    def pacer(self) -> BandwidthPacer:
        """Divides the bandwidth tick by tick, for a crawl without an end."""
        return BandwidthPacer(
            self.shares, advance=self.advance, report_free=lambda rate: self.budget.use_free(rate, self.planner)
        )

    def advance(self, count: int, now: float) -> int:
        """Use idle bandwidth: schedule up to `count` pages before their time, those nearest to the end of their periods
        first, but none sooner than `freshness.min_interval` after it was read. Returns how many."""
        soonest = self._frontier.soonest(4 * count + _ALSO_CONSIDERED)
        rows = self._catalog.pages([page.fingerprint for page in soonest])
        schedules = {key: decode(row.schedule, PageScheduleRow) for key, row in rows.items() if row.schedule}
        rested: list[tuple[float, ScheduledPage]] = []
        for page in soonest:
            schedule = schedules.get(page.fingerprint)
            if schedule is None or not schedule.plan.period or not self._may_advance(rows[page.fingerprint], now):
                continue
            rested.append(((schedule.read_at - now) / schedule.plan.period, page))
        rested.sort(key=lambda item: item[0])
        chosen = [ScheduledPage(page.fingerprint, page.host, now) for _, page in rested[:count]]
        chosen += self._dead.take(now)
        if chosen:
            self._frontier.reschedule(chosen, now)
        return len(chosen)

    def _may_advance(self, row: PageRow, now: float) -> bool:
        """Not soon after any visit, and not a page that was gone or failed: its pause is meant to be long."""
        return row.outcome in READ_OUTCOMES and row.fetched_at + self.planner.min_interval <= now

    def _announced_visits(self, now: float) -> list[ScheduledPage]:
        """Pages announced as changed, none sooner than `freshness.min_interval` after its last visit."""
        rows = self._catalog.pages(list(self._announced_now)) if self._announced_now else {}
        return [
            ScheduledPage(key, row.host, max(now, min(now, row.fetched_at) + self.planner.min_interval))
            for key, row in rows.items()
            if row.outcome in READ_OUTCOMES and row.fetched_at < self._announced_now[key]
        ]

    def committed(self) -> None:
        self._uncommitted = False
        self._due_now.clear()
        self._announced_now.clear()

    def close(self, *, exact: bool = True) -> None:
        """Save the sums, unless the last batch never became durable: then they include more than the rows. `exact`:
        no other process has settled pages meanwhile."""
        if not self._uncommitted:
            self._save(exact=exact)

    def set_part(self, owned: float, wanted: float) -> None:
        """Set this worker's part of all shards, and of what all workers could read now (`ReadBudget`)."""
        if self.budget.set_part(owned, wanted):
            self.budget.divide(self.planner)

    def change(self, change: SharesChange) -> dict[str, Value]:
        """Set bandwidth, shares or policy while the crawl runs; None = as before. Returns the values in effect.

        Raises `UsageError` or `SettingsError` for a wrong value, and then changes nothing."""
        change.check(self._order)
        shares, planner = self.shares, self.planner
        shares.set(
            shares.suspects if change.suspect_share is None else change.suspect_share,
            shares.pages if change.discovery_share is None else change.discovery_share,
        )
        if change.guided_share is not None:
            self._guided_share = change.guided_share
            self.guided = self._is_guided()
            self._frontier.guide(change.guided_share)
        if change.bandwidth is not None:
            self.budget.setting = change.bandwidth
        if change.chi is not None:
            self._data_weight = change.chi
            if self._ranker is not None:
                self._ranker.prefer(change.chi)
        if change.policy is not None or change.alpha is not None:
            planner.set_policy(change.policy or planner.policy, change.alpha or planner.alpha)
        self.budget.divide(self.planner)
        self.plan_basis = self._plan_basis()
        return {
            "bandwidth": self.budget.setting,
            "suspect_share": shares.suspects,
            "discovery_share": shares.pages,
            "refresh_share": shares.refresh,
            "policy": planner.policy,
            "alpha": planner.alpha,
            "chi": self._data_weight,
            "guided_share": 1.0 if self._order == "importance" else self._guided_share if self.guided else 0.0,
        }

    def state_rhythm(self, urls: Sequence[str], rhythm: float) -> None:
        """Remember how often the pages change, as their owner says: seconds between two changes."""
        for url in urls:
            remember(self._rhythms, Url.parse(url).fingerprint, rhythm)

    def mark_pushed(self, urls: Sequence[str]) -> None:
        """Mark pages as changed because an entitled publisher said so; they are already queued."""
        for url in urls:
            self.mark_page_pushed(Url.parse(url).fingerprint)

    def mark_page_pushed(self, fingerprint: int) -> None:
        """Mark one page as changed, on a signed WebSub push."""
        remember(self._pushed, fingerprint, True)

    def reschedule(self, row: PageRow, rank: PageRank | None = None) -> RescheduledPage | None:
        """Update a page between two visits, after a ranking or a change of scope; None = nothing changes.

        The caller must write the result and then call `committed`, as with `plan`."""
        if not row.schedule:
            return None
        self._uncommitted = True
        before = decode(row.schedule, PageScheduleRow)
        schedule = self._in_scope(row, before)
        if rank is not None:
            plan = schedule.plan
            if rank.has_weight_moved(plan.weight):
                if plan.period and not schedule.parked:
                    plan = self.planner.reweigh(row.host, plan, rank.weight, schedule.read_at, self._delay).schedule
                else:
                    plan = replace(plan, weight=rank.weight)
                schedule = replace(schedule, plan=plan)
            if rank.has_moved(schedule.importance, schedule.usefulness):
                schedule = replace(schedule, importance=rank.importance, usefulness=rank.usefulness)
        describe = schedule != replace(before, plan=schedule.plan)
        return None if schedule == before else _rescheduled(row, before, schedule, describe=describe)

    def replan(self, row: PageRow) -> RescheduledPage | None:
        """The same after a change of anything in `plan_basis`, and perhaps of the scope."""
        before = decode(row.schedule, PageScheduleRow) if row.schedule else None
        if before is None or row.outcome not in READ_OUTCOMES:
            return self.reschedule(row)
        self._uncommitted = True
        schedule = self._in_scope(row, before)
        if not schedule.parked:
            plan = self.planner.replan(row.host, site_of(row.host), schedule.plan, schedule.read_at, self._delay)
            schedule = replace(schedule, plan=plan)
        return None if schedule == before else _rescheduled(row, before, schedule, describe=True)

    def _is_guided(self) -> bool:
        return self._order == "importance" or (self._order == "breadth-first" and self._guided_share > 0.0)

    def _plan_basis(self) -> bytes:
        planner, shares = self.planner, self.shares
        return encode((planner.policy, planner.alpha, self.budget.setting, shares.suspects, shares.pages))

    def _in_scope(self, row: PageRow, schedule: PageScheduleRow) -> PageScheduleRow:
        """Remove a page from the sums when it has left the scope, and add it again when it has come back."""
        scope = self._scope()
        outside = scope is not None and scope.verdict(row.href, row.host, row.depth) is not None
        if outside == schedule.parked:
            return schedule
        (self.planner.forget if outside else self.planner.recount)(row.host, site_of(row.host), schedule.plan)
        return replace(schedule, parked=outside)

    def _case(
        self, settlement: Settlement, old: PageRow | None, rank: PageRank | None, now: float
    ) -> _Case | Settlement:
        """What the planner has to decide; the settlement itself if there is nothing to decide."""
        row = settlement.page
        schedule = decode(old.schedule, PageScheduleRow) if old is not None and old.schedule else None
        if (
            row is None
            or settlement.outcome is Outcome.FETCHED  # decided when it is transformed
            or settlement.again_at is not None
            or (schedule is None and settlement.outcome not in _PLANNED_FIRST)
        ):
            return settlement  # a retry, or a page that was never read: the frontier's own rules are enough
        if old is not None and row.fetched_at <= old.fetched_at <= now:
            # The lease of this visit had expired, and the newer visit is already planned.
            again = schedule.next_visit if schedule is not None else None
            return replace(settlement, page=replace(row, schedule=old.schedule), again_at=again)
        if schedule is not None and schedule.parked:
            if settlement.outcome not in READ_OUTCOMES:
                return settlement  # an explicit request; the page stays parked as it was
            schedule = replace(schedule, plan=replace(schedule.plan, period=0.0, host_counted=False), parked=False)
        if row.kind == "quarantined":
            if schedule is not None:
                self.planner.forget(row.host, site_of(row.host), schedule.plan)
            return replace(settlement, page=replace(row, schedule=b""))
        if schedule is None:
            schedule = PageScheduleRow(PageSchedule(weight=self._data_weight if row.kind in DATA_KINDS else 1.0))
        pace = settlement.pace
        observation = VisitObservation(
            row.host,
            site_of(row.host),
            settlement.outcome,
            row.fetched_at,
            schedule.read_at,
            http_date(row.last_modified) if row.last_modified else 0.0,
            self._announced.pop(row.fingerprint, 0.0) if self._announced else 0.0,
            self._delay if pace is None or pace.delay < self._delay else pace.delay,
            None if rank is None else rank.weight,
            self._pushed.pop(row.fingerprint, False) if self._pushed else False,
            self._patience(row, rank) if settlement.outcome is Outcome.GONE else 1.0,
            self._rhythms.pop(row.fingerprint, 0.0) if self._rhythms else 0.0,
        )
        return _Case(settlement, row, schedule, observation, rank)

    def _decided(self, case: _Case, decision: Decision, scope: ScopeRules | None) -> Settlement:
        settlement, row, old, _, rank = case
        read_at = row.fetched_at if settlement.outcome in READ_OUTCOMES else old.read_at
        _, importance, usefulness = rank or (0.0, old.importance, old.usefulness)
        new = PageScheduleRow(decision.schedule, read_at, False, importance, usefulness, old.described_rate)
        if settlement.outcome in _WITH_CHANGES or not new.is_described:
            new = replace(new, described_rate=decision.schedule.changes_per_second)
        if scope is not None and scope.verdict(row.href, row.host, row.depth) is not None:
            self.planner.forget(row.host, case.observation.site, decision.schedule)
            new = replace(new, parked=True)
        if decision.again_at is None:
            self._dead.add(row.fingerprint, row.fetched_at, decision.schedule)
            row = replace(row, schedule=encode(new), quads_digest=b"", text_digest=b"", quads=0)
            return replace(settlement, page=row, again_at=None)
        if self._dead.visits:
            self._dead.remove(row.fingerprint)
        return replace(
            settlement,
            page=replace(row, schedule=encode(new)),
            again_at=None if new.parked else decision.again_at,
        )

    def _patience(self, row: PageRow, rank: PageRank | None) -> float:
        is_seed = row.depth == 0 and row.via == 0
        is_important = rank is not None and self._ranker is not None and self._ranker.is_important(rank)
        return _PATIENCE if is_seed or is_important else 1.0

    def _prioritized(self, settlement: Settlement, is_data: bool, rank: PageRank | None) -> Settlement:
        """Mark suspects among the new URLs. If importance guides discovery, also score each link with what the page
        passes on, one step of the fixpoint; `Rescheduler` adds what other pages pass on."""
        found = self.predictor.prioritize(settlement.discoveries, is_data)
        if self.guided:
            passed = ((rank.importance if rank is not None else 0.0) or 1.0) / len(found)
            score = self._damping * passed + 1.0 - self._damping
            found = tuple(replace(item, score=score) for item in found)
        return settlement if found is settlement.discoveries else replace(settlement, discoveries=found)

    def _note_links(self, discoveries: Sequence[Discovery], since: float, now: float) -> None:
        """What a new or changed page says about others: links to dead pages, dates of change and rhythms. `since`: its
        last visit."""
        if self._dead.visits:
            for found in discoveries:
                self._due_now += self._dead.linked(PageAddress(found.fingerprint, found.host), now)
        for found in [found for found in discoveries if found.lastmod or found.rhythm]:
            if found.rhythm:
                remember(self._rhythms, found.fingerprint, found.rhythm)
            if not found.lastmod:
                continue
            remember(self._announced, found.fingerprint, found.lastmod)
            if since < found.lastmod <= now and self.planner.trust(found.host, "announced").trusted:
                self._announced_now[found.fingerprint] = found.lastmod

    def _ranks(self, settlements: Sequence[Settlement]) -> Sequence[PageRank | None]:
        if self._ranker is None:
            return [None] * len(settlements)
        return self._ranker.weigh(
            [settlement.visit.fingerprint for settlement in settlements],
            [settlement.page is not None and settlement.page.kind in DATA_KINDS for settlement in settlements],
        )

    def _save(self, *, exact: bool) -> None:
        with self._catalog.transaction():
            save(self._catalog, self.planner, self._dead.visits, exact=exact)
            self.predictor.save()

    @property
    def schedule(self) -> Schedule:
        """What the running crawl has learned, to read only."""
        return Schedule(self.planner, self.predictor.suspects, self._data_weight, self.shares)


def _rescheduled(row: PageRow, before: PageScheduleRow, now: PageScheduleRow, *, describe: bool) -> RescheduledPage:
    if describe:
        now = replace(now, described_rate=now.plan.changes_per_second)
    # After a failure the page waits for a retry, whose time must stay.
    is_moved = row.outcome in READ_OUTCOMES and now.next_visit != before.next_visit
    return RescheduledPage(replace(row, schedule=encode(now)), now.next_visit if is_moved else None, describe)
