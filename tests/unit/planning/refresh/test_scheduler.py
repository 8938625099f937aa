"""The schedule of a running crawl: what is stored, what survives a crash, how pages die and come back."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from quadloom.errors import UsageError
from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.url import fingerprint, host_of
from quadloom.model.visit import Visit
from quadloom.model.wire import decode
from quadloom.planning.policy.facts import schedule_facts
from quadloom.planning.policy.page_row import PageScheduleRow
from quadloom.planning.policy.planner import Planner
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.planning.refresh.shares_change import SharesChange
from quadloom.settings import FreshnessSettings, Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.protocols.frontier import VisitClass
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.schema import SCHEMA

START = 1_700_000_000.0
HOUR, DAY = 3600.0, 86400.0
SETTINGS = Settings(freshness=FreshnessSettings(bandwidth=1e-5, dead_after=2, dead_span="30m"))


class Crawled:
    """A catalog, a frontier and the schedule over them: settles visits as `Ingest` does."""

    def __init__(self, folder: Path, settings: Settings = SETTINGS) -> None:
        self.database = SqliteDatabase.open(folder / "q.db", SCHEMA)
        self.catalog = SqliteCatalog(self.database)
        self.frontier = SqliteFrontier(self.database, FrontierPolicy(delay=0.0, ip_delay=0.0), now=START)
        self.scheduler = RefreshScheduler(self.catalog, self.frontier, settings)

    def visit(
        self, url: str, outcome: Outcome, at: float, links: tuple[Discovery, ...] = (), modified: str = ""
    ) -> Settlement:
        return self.settle([settlement(url, outcome, at, links, modified)], at)[0]

    def settle(self, settlements: list[Settlement], now: float) -> list[Settlement]:
        known = self.catalog.pages([item.visit.fingerprint for item in settlements])
        planned = self.scheduler.plan([_carried(item, known) for item in settlements], known, now)
        with self.catalog.transaction():
            self.frontier.settle(planned, now)
            self.catalog.record(planned, now)
            self.scheduler.write(now)
        self.scheduler.committed()
        return planned


def _carried(item: Settlement, known: dict[int, PageRow]) -> Settlement:
    """As `ingest.settle` does for visits without content."""
    old = known.get(item.visit.fingerprint)
    return item if old is None or item.page is None else replace(item, page=replace(item.page, schedule=old.schedule))


def settlement(
    url: str, outcome: Outcome, at: float, links: tuple[Discovery, ...] = (), modified: str = ""
) -> Settlement:
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
        last_modified=modified,
    )
    return Settlement(visit, outcome, row, HostPace(visit.host, "", 1.0, at), links)


def link(url: str, lastmod: float = 0.0) -> Discovery:
    return Discovery(url, url, host_of(url), fingerprint(url), 1, lastmod=lastmod)


@pytest.fixture
def crawled(tmp_path: Path) -> Crawled:
    return Crawled(tmp_path)


def test_a_page_is_read_again_and_its_schedule_is_durable(crawled: Crawled) -> None:
    done = crawled.visit("https://a.example/", Outcome.NEW, START)
    assert done.again_at is not None and done.again_at >= START + HOUR
    stored = crawled.catalog.page(fingerprint("https://a.example/"))
    assert stored is not None
    schedule = decode(stored.schedule, PageScheduleRow)
    assert schedule.read_at == START and done.again_at == START + schedule.plan.period
    assert len(stored.schedule) < 200


def test_what_changes_often_is_read_more_often(crawled: Crawled) -> None:
    for day in range(12):
        at = START + day * DAY
        first = Outcome.NEW if day == 0 else None
        changing = crawled.visit("https://a.example/changing", first or Outcome.CHANGED, at)
        constant = crawled.visit("https://a.example/constant", first or Outcome.UNCHANGED, at)
    assert changing.again_at is not None and constant.again_at is not None
    assert changing.again_at < constant.again_at


def test_a_failure_says_nothing_about_change(crawled: Crawled) -> None:
    crawled.visit("https://a.example/", Outcome.NEW, START)
    before = crawled.catalog.page(fingerprint("https://a.example/"))
    crawled.visit("https://a.example/", Outcome.FAILED, START + DAY)
    after = crawled.catalog.page(fingerprint("https://a.example/"))
    assert before is not None and after is not None
    assert decode(after.schedule, PageScheduleRow) == decode(before.schedule, PageScheduleRow), (
        "the gap goes on from the last reading"
    )


def test_retries_and_pages_never_read_are_left_to_the_frontier(crawled: Crawled) -> None:
    retry = replace(settlement("https://a.example/", Outcome.FAILED, START), again_at=START + 10.0)
    assert crawled.settle([retry], START)[0].again_at == START + 10.0
    assert crawled.visit("https://a.example/none", Outcome.DENIED, START).again_at is None


def test_a_late_settlement_does_not_count_twice(crawled: Crawled) -> None:
    crawled.visit("https://a.example/", Outcome.NEW, START + 100.0)
    planned = crawled.visit("https://a.example/", Outcome.CHANGED, START)
    assert planned.again_at is not None and planned.again_at > START + 100.0
    assert crawled.scheduler.planner.demand.pages == 1
    twice = [settlement("https://b.example/", Outcome.NEW, START), settlement("https://b.example/", Outcome.NEW, START)]
    crawled.settle(twice, START)
    assert crawled.scheduler.planner.demand.pages == 2


def test_a_page_dies_and_lives_again_when_it_is_found_again(crawled: Crawled) -> None:
    url = "https://a.example/gone"
    crawled.visit(url, Outcome.NEW, START)
    first = crawled.visit(url, Outcome.GONE, START + DAY)
    assert first.again_at is not None and first.page is not None and first.page.quads_digest
    second = crawled.visit(url, Outcome.GONE, first.again_at)
    assert second.again_at is None and second.page is not None and not second.page.quads_digest
    assert crawled.scheduler.planner.demand.pages == 0
    stats = crawled.frontier.stats(START)
    assert (stats.dead, stats.waiting) == (1, 0)
    crawled.visit("https://a.example/", Outcome.NEW, first.again_at + 1.0, (link(url),))
    assert crawled.frontier.stats(START).dead == 1, "too soon: a dead link on many pages must not be tried for each"
    later = first.again_at + 60 * DAY
    crawled.visit("https://a.example/", Outcome.UNCHANGED, later, (link(url),))
    assert crawled.frontier.stats(START).dead == 1, "an unchanged page says nothing new"
    crawled.visit("https://a.example/", Outcome.CHANGED, later + 1.0, (link(url),))
    assert crawled.frontier.stats(START).dead == 0
    back = crawled.visit(url, Outcome.CHANGED, later + 2.0)
    assert back.again_at is not None
    assert crawled.scheduler.planner.demand.pages == 2


def test_what_a_trusted_sitemap_announces_is_read_at_once(crawled: Crawled) -> None:
    page, sitemap = "https://a.example/page", "https://a.example/sitemap.xml"
    trust = crawled.scheduler.planner.trust("a.example", "announced")
    crawled.visit(page, Outcome.NEW, START)
    crawled.visit(sitemap, Outcome.NEW, START)
    crawled.visit(sitemap, Outcome.CHANGED, START + DAY, (link(page, START + DAY - 60.0),))
    due = crawled.frontier.next_due(START + DAY)
    assert due is not None and due > START + DAY, "not trusted yet"
    for _ in range(10):
        trust.observe(changed=True, announced=True)
    crawled.visit(sitemap, Outcome.CHANGED, START + 2 * DAY, (link(page, START + 2 * DAY - 60.0),))
    assert crawled.frontier.next_due(START + 2 * DAY) == START + 2 * DAY


def test_what_a_sitemap_says_of_rhythms_is_stored_with_the_pages(crawled: Crawled) -> None:
    page, sitemap = "https://a.example/page", "https://a.example/sitemap.xml"
    crawled.visit(sitemap, Outcome.NEW, START, (replace(link(page), rhythm=7 * DAY),))
    crawled.visit(page, Outcome.NEW, START + 1.0)
    crawled.visit(page, Outcome.UNCHANGED, START + DAY)
    row = crawled.catalog.page(fingerprint(page))
    assert row is not None and decode(row.schedule, PageScheduleRow).plan.rhythm == 7 * DAY
    facts = {fact.what: fact.value for fact in schedule_facts(crawled.scheduler.planner, row)}
    assert facts["stated rhythm"] == "every 7 d, honesty 0"
    crawled.scheduler.state_rhythm([page], DAY)
    crawled.visit(page, Outcome.UNCHANGED, START + 2 * DAY)
    row = crawled.catalog.page(fingerprint(page))
    assert row is not None and decode(row.schedule, PageScheduleRow).plan.rhythm == DAY, "the owner said so later"


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_has_the_same_sums(tmp_path: Path, clean: bool) -> None:
    generator = random.Random(7)
    crawled = Crawled(tmp_path)
    outcomes = [Outcome.CHANGED, Outcome.UNCHANGED, Outcome.UNCHANGED, Outcome.GONE, Outcome.FAILED]
    for step in range(400):
        number = generator.randrange(60)
        url = f"https://host{number % 5}.example/{number}"
        known = crawled.catalog.page(fingerprint(url)) is not None
        crawled.visit(url, generator.choice(outcomes) if known else Outcome.NEW, START + step * HOUR)
    before = crawled.scheduler.planner
    if clean:
        crawled.scheduler.close()
    after = RefreshScheduler(crawled.catalog, crawled.frontier, SETTINGS)
    assert after.planner.demand.pages == before.demand.pages > 0
    assert _cells(after.planner) == pytest.approx(_cells(before), rel=1e-6, abs=1e-6)
    assert after._dead.visits == crawled.scheduler._dead.visits
    again = RefreshScheduler(crawled.catalog, crawled.frontier, SETTINGS)
    assert again.planner.demand.pages == before.demand.pages, "a crash right after the start loses nothing"


def _cells(planner: Planner) -> list[float]:
    return [number for cell in sorted(planner.dump().demand) for number in cell]


def test_bandwidth_and_shares_change_while_running(crawled: Crawled) -> None:
    now = crawled.scheduler.change(SharesChange(bandwidth=5.0, suspect_share=0.1, policy="xyleme"))
    assert now == {
        "bandwidth": 5.0,
        "suspect_share": 0.1,
        "discovery_share": 0.4,
        "refresh_share": pytest.approx(0.5),
        "policy": "xyleme",
        "alpha": 0.95,
        "chi": 1.0,
        "guided_share": SETTINGS.crawl.guided_share,
    }
    assert crawled.scheduler.planner.bandwidth == 5.0
    assert crawled.scheduler.change(SharesChange(alpha=0.5))["alpha"] == crawled.scheduler.planner.alpha == 0.5
    assert crawled.scheduler.planner.policy == "xyleme"


def test_the_bandwidth_is_that_of_all_workers_together(crawled: Crawled) -> None:
    scheduler = crawled.scheduler
    scheduler.change(SharesChange(bandwidth=8.0))
    scheduler.set_part(64 / 256, 64 / 256)
    assert scheduler.shares.bandwidth == scheduler.planner.bandwidth == 2.0
    assert scheduler.change(SharesChange(bandwidth=40.0))["bandwidth"] == 40.0, "that of the whole crawl"
    assert scheduler.shares.bandwidth == 10.0
    scheduler.set_part(0.0, 0.0)
    assert scheduler.planner.bandwidth == 10.0, "0 is ignored: there is no price without bandwidth"
    scheduler.set_part(1.0, 1.0)
    assert scheduler.shares.bandwidth == 40.0


def test_a_worker_reads_by_its_queues_and_prices_by_its_shards(crawled: Crawled) -> None:
    scheduler = crawled.scheduler
    scheduler.change(SharesChange(bandwidth=8.0))
    scheduler.set_part(64 / 256, 0.5)
    assert scheduler.shares.bandwidth == 4.0 and scheduler.planner.bandwidth == 2.0


def test_without_a_bandwidth_first_reads_are_free_and_refreshes_grow_with_the_pages(crawled: Crawled) -> None:
    scheduler = crawled.scheduler
    scheduler.change(SharesChange(bandwidth=0.0, suspect_share=0.0, discovery_share=0.4))
    quota = scheduler.pacer().quota(START)
    assert quota.pages > 1_000_000 and quota.suspects == 0, "a share of 0 means none all the same"
    assert quota.refresh <= 1
    assert scheduler.planner.bandwidth == 10.0, "the least"
    scheduler.planner.demand.pages = 8_640_000
    pacer = scheduler.pacer()
    pacer.quota(START)
    assert scheduler.planner.bandwidth == pytest.approx(100.0), "each once a day"
    given = 0
    for second in range(1, 6):
        quota = pacer.quota(START + second)
        given += quota.refresh
        quota.left_of[VisitClass.REFRESH] = 0
    assert 400 <= given <= 500, "the first slot holds a little"
    scheduler.change(SharesChange(bandwidth=5.0))
    assert scheduler.pacer().quota(START).pages < 10


def test_refresh_counts_on_what_first_reads_leave(crawled: Crawled) -> None:
    scheduler = crawled.scheduler
    scheduler.change(SharesChange(bandwidth=10.0))
    pacer = scheduler.pacer()
    for second in range(300):
        pacer.quota(START + second).first_reads = 3
    assert scheduler.planner.bandwidth == pytest.approx(7.0, abs=0.7)
    scheduler.set_part(0.5, 0.5)
    assert scheduler.planner.bandwidth == 5.0, "all of it, until the pacer reports again"


@pytest.mark.parametrize(
    "refused",
    [
        SharesChange(bandwidth=9.0, chi=0.0),
        SharesChange(bandwidth=9.0, alpha=-1.0),
        SharesChange(bandwidth=-1.0),
        SharesChange(bandwidth=9.0, guided_share=1.5),
        SharesChange(bandwidth=9.0, guided_share=float("nan")),
    ],
)
def test_what_is_refused_changes_nothing(crawled: Crawled, refused: SharesChange) -> None:
    before = crawled.scheduler.change(SharesChange())
    with pytest.raises(UsageError, match=r"must be (positive|between 0 and)"):
        crawled.scheduler.change(refused)
    assert crawled.scheduler.change(SharesChange()) == before


def test_idle_bandwidth_reads_the_pages_nearest_to_the_end_of_their_periods(tmp_path: Path) -> None:
    crawled = Crawled(tmp_path, Settings(freshness=FreshnessSettings(bandwidth=1e-5, min_interval="1h")))
    for number in range(6):
        crawled.visit(f"https://a.example/{number}", Outcome.NEW, START + number * HOUR)
    now = START + 5.5 * HOUR
    assert crawled.scheduler.advance(2, now) == 2
    due = {key for key, _, at in crawled.frontier.soonest(9) if at == now}
    parts = {
        row.fingerprint: (now - row.fetched_at) / decode(row.schedule, PageScheduleRow).plan.period
        for row in crawled.catalog.scan()
    }
    assert due == set(sorted(parts, key=lambda key: -parts[key])[:2])
    assert crawled.scheduler.advance(9, now) == 5, "the last was read half an hour ago and may not be read again yet"


def test_a_pushed_change_does_not_look_like_a_change_at_every_moment(crawled: Crawled) -> None:
    """Pages that change every ten days: one is pushed and read a second later, one is read once a day."""
    pushed, polled = "https://a.example/pushed", "https://b.example/polled"
    crawled.visit(pushed, Outcome.NEW, START)
    crawled.visit(polled, Outcome.NEW, START)
    for day in range(1, 301):
        at = START + day * DAY
        crawled.visit(polled, Outcome.CHANGED if day % 10 == 0 else Outcome.UNCHANGED, at)
        if day % 10 == 0:
            crawled.scheduler.mark_pushed([pushed])
            crawled.visit(pushed, Outcome.CHANGED, at)
    rates = []
    for url in (pushed, polled):
        row = crawled.catalog.page(fingerprint(url))
        assert row is not None
        rates.append(decode(row.schedule, PageScheduleRow).plan.changes_per_second * DAY)
    assert rates[0] == pytest.approx(0.1, rel=0.25) and rates[1] == pytest.approx(0.1, rel=0.35), rates


@pytest.mark.slow
def test_planning_costs_little(crawled: Crawled) -> None:
    """At most 50 µs of CPU per settled page with forty new links. The best of many parts counts, because other
    processes use the caches and the cores, too; each part is long enough to include a new price."""
    urls = [f"https://host{n % 20}.example/{n}" for n in range(2048)]
    links = tuple(link(f"https://host.example/{n}") for n in range(40))
    known: dict[int, PageRow] = {}
    best = float("inf")
    for turn in range(10):
        at = START + turn * DAY
        outcome = Outcome.CHANGED if turn else Outcome.NEW
        for part in range(0, len(urls), 512):
            spent = 0.0
            for start in range(part, part + 512, 128):
                batch = [settlement(url, outcome, at, links) for url in urls[start : start + 128]]
                began = time.process_time()
                planned = crawled.scheduler.plan(batch, known, at)
                spent += time.process_time() - began
                known.update((item.page.fingerprint, item.page) for item in planned if item.page is not None)
            best = min(best, spent / 512)
    assert best < 50e-6, f"{best * 1e6:.1f} µs a page"
