"""Pages between two visits: a ranking reaches their plans and descriptions, a change of scope the planner's sums."""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.url import fingerprint, host_of
from quadloom.model.visit import Visit
from quadloom.model.wire import decode
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.planning.policy.planner import Planner
from quadloom.planning.ranking.ranker import PageRanker
from quadloom.planning.ranking.ranking_process import RankingInThread
from quadloom.planning.refresh.reschedule import Rescheduler, SlicePauses
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.planning.refresh.shares_change import SharesChange
from quadloom.planning.scope import Scope, ScopeRecord
from quadloom.settings import FreshnessSettings, Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.schema import SCHEMA

START = 1_700_000_000.0
DAY = 86_400.0
SETTINGS = Settings(freshness=FreshnessSettings(bandwidth=1e-4, dead_after=2, dead_span="1h"))
EVERYWHERE = Scope(ScopeRecord("any"))


class Crawled:
    """Catalog, frontier, ranking, scheduler and rescheduler, connected as in a crawl."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        database = SqliteDatabase.open(folder / "q.db", SCHEMA)
        self.catalog = SqliteCatalog(database)
        self.frontier = SqliteFrontier(database, FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=99), now=START)
        self.scope = EVERYWHERE
        self.guided = False
        self.described: list[PageRow] = []
        self.ranker = PageRanker(folder / "links", SETTINGS.freshness, lambda: (), lambda: (), runner=RankingInThread())
        self.start()

    def start(self, bandwidth: float = SETTINGS.freshness.bandwidth) -> None:
        crawl = replace(SETTINGS.crawl, order="importance" if self.guided else "breadth-first")
        settings = replace(SETTINGS, crawl=crawl, freshness=replace(SETTINGS.freshness, bandwidth=bandwidth))
        self.scheduler = RefreshScheduler(
            self.catalog, self.frontier, settings, ranker=self.ranker, scope=lambda: self.scope
        )
        self.rescheduler = Rescheduler(
            self.catalog,
            self.frontier,
            self.scheduler,
            self.ranker,
            lambda: self.scope,
            self.described.extend,
        )

    def read(self, *urls: str, outcome: Outcome = Outcome.NEW, at: float = START) -> list[Settlement]:
        settlements = [_settlement(url, outcome, at) for url in urls]
        known = self.catalog.pages([item.visit.fingerprint for item in settlements])
        planned = self.scheduler.plan(settlements, known, at)
        with self.catalog.transaction():
            self.frontier.settle(planned, at)
            self.catalog.record(planned, at)
        self.scheduler.committed()
        return planned

    def link(self, source: str, *targets: str) -> None:
        self.ranker.append(fingerprint(source), array("q", [fingerprint(url) for url in targets]).tobytes())

    def rank(self) -> None:
        self.ranker.flush()
        self.ranker.recompute(START)

    def reschedule(self) -> None:
        """All slices, without their pauses."""
        while True:
            self.rescheduler._pauses.skip()
            self.rescheduler.turn(START + 1.0)
            if not self.rescheduler.pending:
                return

    def change_scope(self, *excluded: str) -> None:
        self.scope = Scope(ScopeRecord("any", exclude=excluded))
        self.frontier.set_scope(self.scope)
        self.rescheduler.scope_changed()
        self.reschedule()

    def schedule(self, url: str) -> PageScheduleRow:
        row = self.catalog.page(fingerprint(url))
        assert row is not None
        return decode(row.schedule, PageScheduleRow)

    def due(self, url: str) -> float:
        explained = self.frontier.explain(url, 0.0)
        assert explained is not None
        return float({what: value for what, value, _ in explained.lines}["due in"].split()[0])


@pytest.fixture
def crawled(tmp_path: Path) -> Crawled:
    return Crawled(tmp_path)


def _settlement(url: str, outcome: Outcome, at: float) -> Settlement:
    visit = Visit(url, url, host_of(url), fingerprint(url), deadline=at + 600.0)
    row = PageRow(
        fingerprint=visit.fingerprint,
        key=url,
        href=url,
        host=visit.host,
        outcome=outcome,
        fetched_at=at,
        quads_digest=b"q",
        text_digest=b"t",
        kind="html",
    )
    return Settlement(visit, outcome, row, HostPace(visit.host, "", 1.0, at))


def found(url: str, score: float) -> Discovery:
    return Discovery(url, url, host_of(url), fingerprint(url), 1, score=score)


def urls(count: int, host: str = "a.example") -> list[str]:
    return [f"https://{host}/{number}" for number in range(count)]


def star(crawled: Crawled, pages: Sequence[str]) -> None:
    """All pages link to the first, and the first links to the second."""
    crawled.link(pages[0], pages[1])
    for page in pages[1:]:
        crawled.link(page, pages[0])


def recounted(crawled: Crawled) -> Planner:
    """The sums as a start after a crash makes them from the rows."""
    return RefreshScheduler(crawled.catalog, crawled.frontier, SETTINGS).planner


def assert_sums_are_those_of_the_rows(crawled: Crawled) -> None:
    one, other = crawled.scheduler.planner, recounted(crawled)
    assert one.demand.pages == other.demand.pages
    assert one.demand.s() == pytest.approx(other.demand.s(), rel=1e-6)
    cells = [sorted(planner.dump().demand) for planner in (one, other)]
    assert [cell[:3] for cell in cells[0]] == [cell[:3] for cell in cells[1]]


def test_a_ranking_reaches_pages_before_their_next_visit(crawled: Crawled) -> None:
    pages = urls(40)
    crawled.read(*pages)
    assert {crawled.schedule(page).plan.weight for page in pages} == {1.0}, "nothing is known about any of them"
    star(crawled, pages)
    crawled.rank()
    crawled.reschedule()
    hub, leaf = crawled.schedule(pages[0]), crawled.schedule(pages[7])
    assert hub.plan.weight > 10.0 * leaf.plan.weight
    assert hub.plan.period < leaf.plan.period
    assert crawled.due(pages[0]) == pytest.approx(START + hub.plan.period, abs=1.0)
    assert crawled.due(pages[0]) < crawled.due(pages[7])
    assert hub.importance > 10.0 and leaf.importance < 1.0
    assert {row.href for row in crawled.described} == set(pages)
    assert_sums_are_those_of_the_rows(crawled)


def test_only_what_moved_is_written_again(crawled: Crawled) -> None:
    pages = urls(40)
    crawled.read(*pages)
    star(crawled, pages)
    crawled.rank()
    crawled.reschedule()
    crawled.described.clear()
    crawled.rank()
    crawled.reschedule()
    assert crawled.described == []
    for page in pages[7:12]:
        crawled.link(page, pages[0], pages[12])
    crawled.rank()
    crawled.reschedule()
    assert pages[12] in {row.href for row in crawled.described}
    assert len(crawled.described) < 6


def test_a_page_whose_weight_moved_a_little_is_planned_again_but_not_described(crawled: Crawled) -> None:
    pages = urls(40)
    crawled.read(*pages)
    star(crawled, pages)
    crawled.rank()
    crawled.reschedule()
    before = crawled.schedule(pages[8])
    crawled.described.clear()
    crawled.link(pages[7], pages[0], pages[8])
    crawled.rank()
    crawled.reschedule()
    after = crawled.schedule(pages[8])
    assert 1.3 * before.plan.weight < after.plan.weight < 2.0 * before.plan.weight
    assert crawled.due(pages[8]) == pytest.approx(START + after.plan.period, abs=1.0)
    assert after.plan.period < before.plan.period
    assert after.importance == before.importance
    assert crawled.described == []
    assert_sums_are_those_of_the_rows(crawled)


def test_a_page_whose_row_says_about_the_same_as_the_ranking_is_not_written(crawled: Crawled) -> None:
    """Every page that was read since the last ranking counts as moved, also if its row has a rank already."""
    pages = urls(40)
    crawled.read(*pages)
    star(crawled, pages)
    crawled.rank()
    crawled.reschedule()
    crawled.rescheduler._moved = np.array([fingerprint(page) for page in pages], dtype=np.int64)
    updated = crawled.rescheduler.updated
    crawled.reschedule()
    assert crawled.rescheduler.updated == updated


def test_a_retry_keeps_its_time_but_the_page_its_new_weight(crawled: Crawled) -> None:
    pages = urls(40)
    crawled.read(*pages)
    crawled.read(pages[0], outcome=Outcome.DENIED, at=START + 10.0)
    due = crawled.due(pages[0])
    star(crawled, pages)
    crawled.rank()
    crawled.reschedule()
    assert crawled.schedule(pages[0]).plan.weight > 10.0
    assert crawled.due(pages[0]) == due
    assert_sums_are_those_of_the_rows(crawled)


def test_what_is_left_over_is_done_by_the_next_crawl(crawled: Crawled) -> None:
    pages = urls(300)
    crawled.read(*pages)
    star(crawled, pages)
    crawled.rank()
    crawled.rescheduler.turn(START + 1.0)  # a single slice
    done = crawled.rescheduler.updated
    assert crawled.rescheduler.pending or done == 300
    crawled.rescheduler.close()
    crawled.scheduler.close()
    crawled.start()
    crawled.reschedule()
    assert done + crawled.rescheduler.updated == 300
    assert_sums_are_those_of_the_rows(crawled)


def test_what_leaves_the_scope_leaves_the_demand_and_comes_back(crawled: Crawled) -> None:
    inside, outside = urls(20, "a.example"), urls(30, "b.example")
    crawled.read(*inside, *outside)
    planner = crawled.scheduler.planner
    everything = planner.demand.s()
    crawled.change_scope("https://b.example/*")
    assert planner.demand.pages == 20
    assert planner.demand.s() == pytest.approx(everything * 20 / 50)
    assert crawled.frontier.stats(START).parked == 30
    assert_sums_are_those_of_the_rows(crawled)
    assert {row.href for row in crawled.described} == set(outside)
    crawled.change_scope()
    assert planner.demand.pages == 50
    assert planner.demand.s() == pytest.approx(everything)
    assert crawled.frontier.stats(START).parked == 0
    assert crawled.due(outside[3]) == pytest.approx(START + crawled.schedule(outside[3]).plan.period, abs=1.0)
    assert_sums_are_those_of_the_rows(crawled)


def test_a_page_in_progress_while_the_scope_changes_is_not_planned(crawled: Crawled) -> None:
    inside, outside = urls(5, "a.example"), urls(5, "b.example")
    crawled.read(*inside, *outside)
    crawled.change_scope("https://b.example/*")
    (late,) = crawled.read(outside[0], outcome=Outcome.CHANGED, at=START + DAY)
    assert late.again_at is None and crawled.schedule(outside[0]).parked
    assert crawled.scheduler.planner.demand.pages == 5
    (asked,) = crawled.read("https://b.example/new", at=START + DAY)
    assert asked.again_at is None, "an explicit request: it is read once"
    crawled.change_scope()
    assert crawled.scheduler.planner.demand.pages == 11
    assert crawled.due(outside[0]) > START + DAY
    assert_sums_are_those_of_the_rows(crawled)


def test_a_scope_that_changed_between_crawls_is_noticed_at_the_start(crawled: Crawled) -> None:
    crawled.read(*urls(10, "a.example"), *urls(10, "b.example"))
    crawled.reschedule()
    crawled.rescheduler.close()
    crawled.scheduler.close()
    crawled.scope = Scope(ScopeRecord("any", exclude=("https://b.example/*",)))
    crawled.frontier.set_scope(crawled.scope)
    crawled.start()
    assert crawled.rescheduler.pending
    crawled.reschedule()
    assert crawled.scheduler.planner.demand.pages == 10
    crawled.rescheduler.close()
    crawled.start()
    assert not crawled.rescheduler.pending, "the same scope: nothing to do"


def test_importance_guides_discovery_by_all_links_that_were_seen(crawled: Crawled) -> None:
    """Unread URLs, each offered once; that nine pages link to the last one, only the ranking knows."""
    waiting = urls(10, "new.example")
    frontier = SqliteFrontier(
        crawled.frontier._database, FrontierPolicy(delay=0.0, ip_delay=0.0, order="importance"), now=START
    )
    frontier.add([found(url, score=1.0 + n / 100.0) for n, url in enumerate(reversed(waiting))], START)
    crawled.frontier, crawled.guided = frontier, True
    crawled.start()
    for number, page in enumerate(urls(9)):
        crawled.link(page, waiting[9], waiting[number])
    crawled.rank()
    crawled.reschedule()
    (first,) = frontier.lease(1, START)
    assert first.href == waiting[9] and first.score > 2.0


def test_dead_pages_are_in_no_sum(crawled: Crawled) -> None:
    pages = urls(4)
    crawled.read(*pages)
    for turn in (1, 2):
        crawled.read(pages[0], outcome=Outcome.GONE, at=START + turn * DAY)
    assert crawled.scheduler.planner.demand.pages == 3
    star(crawled, pages)
    crawled.rank()
    crawled.reschedule()
    assert crawled.scheduler.planner.demand.pages == 3
    assert crawled.frontier.stats(START).dead == 1, "a ranking does not revive a dead page"
    assert_sums_are_those_of_the_rows(crawled)


def test_a_slice_is_short(crawled: Crawled) -> None:
    """The crawl's thread waits a few milliseconds for a slice, however much remains."""
    pages = urls(2000)
    crawled.read(*pages)
    star(crawled, pages)
    crawled.rank()
    slices: list[float] = []
    while True:
        crawled.rescheduler._pauses.skip()
        began = time.thread_time()
        crawled.rescheduler.turn(START + 1.0)
        slices.append(time.thread_time() - began)
        if not crawled.rescheduler.pending:
            break
    assert crawled.rescheduler.updated == 2000
    assert np.median(slices) < 0.02, f"{np.median(slices) * 1e3:.1f} ms a slice"
    crawled.rescheduler._pauses.skip()
    crawled.link(pages[5], pages[6])
    crawled.rank()
    crawled.rescheduler.turn(START)
    crawled.rank()
    crawled.rescheduler.turn(START)
    assert not crawled.rescheduler._pauses.over, "the next slice has to wait"


def test_slices_have_a_share_of_the_cpu_time_and_a_smaller_one_of_idle_time() -> None:
    """On a busy machine the clock goes on while the thread does not run; slices must not take all that it gets."""

    def slices(cpu_per_second: float) -> tuple[int, float]:
        clock = cpu = 1000.0
        pauses = SlicePauses(lambda: clock, lambda: cpu)
        taken = 0
        while clock < 1100.0:
            if pauses.over:
                taken, cpu = taken + 1, cpu + 0.006
                pauses.begin(0.006, 0.02)
            clock, cpu = clock + 0.01, cpu + 0.01 * cpu_per_second
        return taken, taken * 0.006 / (cpu - 1000.0)

    assert slices(1.0)[1] == pytest.approx(0.02, rel=0.1)
    assert slices(0.5)[1] == pytest.approx(0.02, rel=0.1)
    taken, _ = slices(0.01)  # the crawl waits
    assert taken == pytest.approx(100.0 / 1.2, rel=0.1)


def test_a_change_of_bandwidth_or_policy_reaches_pages_before_their_next_visit(crawled: Crawled) -> None:
    urls = [f"https://a.example/{number}" for number in range(100)]
    crawled.read(*urls)
    slow = crawled.schedule(urls[-1]).plan.period
    crawled.scheduler.change(SharesChange(bandwidth=1e-3))
    crawled.reschedule()
    fast = crawled.schedule(urls[-1]).plan.period
    assert fast < slow / 5.0
    assert crawled.due(urls[-1]) == pytest.approx(START + fast, abs=1.0)
    crawled.scheduler.change(SharesChange(suspect_share=0.5, discovery_share=0.5))
    crawled.reschedule()
    assert crawled.schedule(urls[-1]).plan.period == crawled.scheduler.planner.max_interval, "no share for refresh"
    crawled.scheduler.change(SharesChange(policy="uniform", suspect_share=0.2, discovery_share=0.4))
    crawled.reschedule()
    periods = [crawled.schedule(url).plan.period for url in urls]
    assert min(periods) == pytest.approx(max(periods)) == pytest.approx(fast, rel=0.5)
    assert crawled.scheduler.planner.demand.pages == 100


def test_other_settings_reach_pages_when_the_next_crawl_starts(crawled: Crawled) -> None:
    crawled.read("https://a.example/", "https://a.example/other")
    crawled.reschedule()
    before = crawled.schedule("https://a.example/").plan.period
    crawled.scheduler.close()
    crawled.start(bandwidth=1e-5)
    crawled.reschedule()
    assert crawled.rescheduler.updated == 2
    assert crawled.schedule("https://a.example/").plan.period > 2.0 * before
    crawled.start(bandwidth=1e-5)
    crawled.reschedule()
    assert crawled.rescheduler.updated == 0, "once"


def test_a_page_that_is_gone_keeps_its_pause(crawled: Crawled) -> None:
    crawled.read("https://a.example/", "https://a.example/other")
    crawled.read("https://a.example/", outcome=Outcome.GONE, at=START + DAY)
    due = crawled.due("https://a.example/")
    crawled.scheduler.change(SharesChange(bandwidth=10.0))
    crawled.reschedule()
    assert crawled.due("https://a.example/") == due
    assert crawled.schedule("https://a.example/").plan.gone == 1
