"""Death needs time: a page that is missing for a while lives, and the shortest interval holds whatever it answers."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from fakeweb.simulated_crawl import START, Answer, SimulatedCrawl
from quadloom.model.outcome import Outcome
from quadloom.model.subscription import Subscription
from quadloom.planning.refresh.state import remember
from quadloom.settings import CrawlSettings, FreshnessSettings, Settings

SEED = "http://a.example/"
PAGES = tuple(f"http://a.example/{n}" for n in range(6))
DAY = 86_400.0


def settings(**freshness: object) -> Settings:
    rules = {"bandwidth": 5.0, "min_interval": "20s", "max_interval": "10m", "prior_interval": "5m", **freshness}
    return Settings(crawl=CrawlSettings(scope="any"), freshness=FreshnessSettings(**rules))  # type: ignore[arg-type]


def _gaps(times: list[float]) -> list[float]:
    return [after - before for before, after in itertools.pairwise(times)]


def test_a_page_that_is_missing_for_seconds_lives_and_is_asked_no_sooner_than_the_floor(tmp_path: Path) -> None:
    """Idle bandwidth must not shorten the pause after a 404: min_interval 20 s, missing from 21 s to 35 s."""
    missing = PAGES[1]

    def web(url: str, now: float) -> Answer:
        if url == SEED:
            return Answer(links=PAGES)
        return Answer(404) if url == missing and START + 20.0 < now < START + 35.0 else Answer()

    crawl = SimulatedCrawl(tmp_path, settings(), web)
    crawl.add([SEED])
    crawl.run(300.0)
    statuses = [item.status for item in crawl.log if item.url == missing]
    assert 404 in statuses and statuses[-1] == 200, "it was seen missing, and again when it was back"
    for url in (SEED, *PAGES):
        assert min(_gaps(crawl.times(url, 0.0))) >= 20.0, url
    assert crawl.frontier.stats(crawl.now).dead == 0
    assert crawl.row(missing).outcome in (Outcome.UNCHANGED, Outcome.CHANGED)
    crawl.close()


def test_pauses_grow_and_death_needs_visits_and_days(tmp_path: Path) -> None:
    """The seed may be gone four times as long; what was never read is looked at once more."""
    broken = "http://a.example/never"

    def web(url: str, now: float) -> Answer:
        if now > START + 100.0 or url == broken:
            return Answer(410)
        return Answer(links=(*PAGES, broken))

    crawl = SimulatedCrawl(tmp_path, settings(dead_span="2000s", max_interval="1h"), web, step=1.0)
    crawl.add([SEED])
    crawl.run(3000.0)
    first = PAGES[0]
    gone = [item.at for item in crawl.log if item.url == first and item.status == 410]
    gaps = _gaps(gone)
    assert gaps == sorted(gaps) and gaps[0] >= 40.0 and gaps[-1] > 8 * gaps[0], gaps
    assert len(gone) >= 3 and gone[-1] - gone[0] >= 2000.0
    times = crawl.times(broken, 0.0)
    assert len(times) == 2 and times[1] - times[0] >= 2000.0
    dead = {url for url in (SEED, broken, *PAGES) if _state(crawl, url) == "dead"}
    assert dead == {broken, *PAGES}, "the seed lives longer"
    assert not crawl.row(first).quads_digest
    crawl.run(9000.0)
    assert _state(crawl, SEED) == "dead"
    crawl.close()


def _state(crawl: SimulatedCrawl, url: str) -> str:
    explained = crawl.frontier.explain(crawl.row(url).key, crawl.now)
    assert explained is not None
    return explained.state


def test_the_dead_are_asked_again_after_a_long_while(tmp_path: Path) -> None:
    page = PAGES[0]

    def web(url: str, now: float) -> Answer:
        if url == page and START + 50.0 < now < START + 2400.0:
            return Answer(404)
        return Answer(links=(page,))

    crawl = SimulatedCrawl(tmp_path, settings(dead_span="300s", dead_retry="2000s"), web, step=0.5)
    crawl.add([SEED])
    crawl.run(1500.0)
    assert _state(crawl, page) == "dead"
    asked = len(crawl.times(page, 0.0))
    crawl.run(800.0)
    assert len(crawl.times(page, 0.0)) == asked, "not before the long pause is over"
    crawl.run(3000.0)
    assert _state(crawl, page) == "waiting" and crawl.row(page).outcome in (Outcome.CHANGED, Outcome.UNCHANGED)
    crawl.close()


def test_subscribers_learn_that_a_page_is_gone_and_that_it_is_back(tmp_path: Path) -> None:
    page = PAGES[0]

    def web(url: str, now: float) -> Answer:
        if url == page and START + 50.0 < now < START + 150.0:
            return Answer(404)
        return Answer(links=(page,))

    crawl = SimulatedCrawl(tmp_path, settings(), web)
    crawl.add([SEED])
    crawl.notifier.interests = type(crawl.notifier.interests)([Subscription(id="one", urls=(page,))])
    crawl.run(600.0)
    assert [notice.kind for notice in crawl.outbox.since(0)] == ["new", "gone", "back"]
    crawl.close()


@pytest.mark.parametrize("dies", [False, True])
def test_the_default_span_is_days(tmp_path: Path, dies: bool) -> None:
    until = START + DAY * (30.0 if dies else 2.0)

    def web(url: str, now: float) -> Answer:
        return Answer(404) if url == PAGES[0] and START + 10.0 < now < until else Answer(links=PAGES)

    rules = settings(min_interval="1h", max_interval="90d", prior_interval="14d", bandwidth=0.01)
    crawl = SimulatedCrawl(tmp_path, rules, web, step=1.0)
    crawl.add([SEED])
    crawl.run(700.0)
    for _ in range(14):  # two weeks, day by day: what falls due is visited when the day begins
        crawl.now += DAY - 600.0
        crawl.run(600.0)
    assert (_state(crawl, PAGES[0]) == "dead") is dies
    crawl.close()


def test_what_is_remembered_is_bounded_and_adding_to_it_stays_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadloom.planning.refresh.state._REMEMBERED", 100_000)
    entries: dict[int, bool] = {}

    def cost(first: int) -> float:
        began = time.process_time()
        for key in range(first, first + 40_000):
            remember(entries, key * 7919, True)
        return time.process_time() - began

    costs = [cost(first) for first in range(0, 400_000, 40_000)]
    assert max(costs[4:]) < 8 * max(costs[:2]), costs  # a sitemap's dates took 100 times as much
    assert 90_000 <= len(entries) <= 100_000 and all(key * 7919 in entries for key in range(310_000, 400_000))
