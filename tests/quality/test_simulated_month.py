"""A month of a crawl without an end, in simulated time: real frontier, catalog, schedule and bandwidth.

The web has pages of every rate, pages that answer 404 or 500 for minutes to a day, pages that are gone for good, pages
that a topical crawl has brought, and in the last third more new URLs than the crawl can read. The log of requests is
the judge.
"""

from __future__ import annotations

import bisect
import itertools
import math
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pytest

from fakeweb.simulated_crawl import START, Answer, SimulatedCrawl
from quadloom.model.outcome import READ_OUTCOMES
from quadloom.planning.policy.objectives import freshness
from quadloom.settings import CrawlSettings, FreshnessSettings, Settings
from quadloom_lab.scheduling.optimal_refresh import optimal_rates

CHI = 4.0
HUB = "http://hub.example/"
NEW = 7.0  # URLs per page that appear at the end: a third of them look like data
SUSPECTS, PAGES = 0.2, 0.4


class Page(NamedTuple):
    url: str
    rate: float  # changes per day
    changes: list[float]  # in days
    away: tuple[float, float, int]  # answers this status from a day to a day
    topical: bool

    @property
    def weight(self) -> float:
        return CHI if self.url.endswith(".xml") else 1.0

    @property
    def dies(self) -> bool:
        return math.isinf(self.away[1])


class MonthlyWeb:
    """`day`: seconds that a day takes. `days` of `pages` whose rates are known."""

    def __init__(self, pages: int, day: float, days: float = 30.0) -> None:
        rng = np.random.default_rng(9)
        self.day, self.days = day, days
        self.pages: dict[str, Page] = {}
        for number in range(pages):
            rate = float(np.exp(rng.normal(math.log(0.5), 1.2)))
            times = sorted(rng.uniform(0.0, days, rng.poisson(rate * days)).tolist())
            away = (0.0, 0.0, 200)
            if number % 10 == 0:  # a hiccup
                begin = float(rng.uniform(3.0, 18.0))
                away = (begin, begin + float(rng.uniform(0.007, 1.0)), 404 if number % 20 else 500)
            elif number % 50 == 1:
                away = (float(rng.uniform(3.0, 6.0)), math.inf, 410)
            url = f"http://site{number % 25}.example/{number}{'.xml' if number % 4 == 0 else '.html'}"
            self.pages[url] = Page(url, rate, times, away, number % 15 == 2)
        self.new: tuple[str, ...] = tuple(
            f"http://new{n % 40}.example/{n}{'.html' if n % 3 else '.xml'}" for n in range(int(NEW * pages))
        )
        self.new_from = days * 2.0 / 3.0

    def answer(self, url: str, now: float) -> Answer:
        at = (now - START) / self.day
        if url == HUB:
            found = tuple(page.url for page in self.pages.values() if not page.topical)
            return Answer(version=int(at >= self.new_from), links=found + (self.new if at >= self.new_from else ()))
        page = self.pages.get(url)
        if page is None:
            return Answer(kind=_kind(url))
        begin, end, status = page.away
        if begin <= at < end:
            return Answer(status)
        return Answer(version=bisect.bisect_right(page.changes, at), kind=_kind(url))


def _kind(url: str) -> str:
    return "xml" if url.endswith(".xml") else "html"


class Month(NamedTuple):
    crawl: SimulatedCrawl
    web: MonthlyWeb
    bandwidth: float  # reads a day


def run(
    folder: Path, web: MonthlyWeb, policy: Literal["harmonic", "freshness"], *, known: bool, per_page: float = 1.0
) -> Month:
    day = web.day
    bandwidth = per_page * len(web.pages)
    rules = FreshnessSettings(
        policy=policy, bandwidth=bandwidth / day, chi=CHI, min_interval=f"{day / 24:.0f}s", max_interval="90d",
        prior_interval=f"{2 * day:.0f}s", dead_span=f"{3 * day:.0f}s", suspect_share=SUSPECTS, discovery_share=PAGES,
    )  # fmt: skip
    crawl = SimulatedCrawl(
        folder, Settings(crawl=CrawlSettings(scope="any"), freshness=rules), web.answer, step=1.9,
        rate_of=(lambda url: web.pages[url].rate / day if url in web.pages else 0.1 / day) if known else None,
    )  # fmt: skip
    crawl.add([HUB])
    crawl.take([page.url for page in web.pages.values() if page.topical])
    crawl.run(web.days * day)
    return Month(crawl, web, bandwidth)


def measured(month: Month, pages: list[Page], begin: float, end: float) -> float:
    """Weighted share of time in which the copies of `pages` were those of the web, by the log."""
    reads: dict[str, list[float]] = {}
    for item in month.crawl.log:
        if item.status == 200:
            reads.setdefault(item.url, []).append(item.at / month.web.day)
    fresh = total = 0.0
    for page in pages:
        times = [*reads.get(page.url, []), month.web.days]
        for read, following in itertools.pairwise(times):
            place = bisect.bisect_right(page.changes, read)
            stale = page.changes[place] if place < len(page.changes) else math.inf
            fresh += page.weight * max(0.0, min(stale, following, end) - max(read, begin))
        total += page.weight * (end - begin)
    return fresh / total


def optimum(month: Month, policy: Literal["harmonic", "freshness"], pages: list[Page]) -> float:
    """The closed form for the same pages, rates and bandwidth."""
    everything = [page for page in month.web.pages.values() if not page.dies]
    weights = np.array([page.weight for page in everything])
    rates = np.array([page.rate for page in everything])
    reads = optimal_rates(weights, rates, month.bandwidth, policy=policy, max_rate=24.0, min_rate=1 / 90)
    chosen = np.array([page in pages for page in everything])
    return freshness(weights[chosen], rates[chosen], reads[chosen])


def judge(month: Month, policy: Literal["harmonic", "freshness"], within: float) -> None:
    web, crawl = month.web, month.crawl
    steady = [page for page in web.pages.values() if page.away[2] == 200]
    begin, end = web.days / 3.0, web.new_from
    ratio = measured(month, steady, begin, end) / optimum(month, policy, steady)
    assert ratio >= 1.0 - within, f"{ratio:.4f} of the optimum"

    topical = [page for page in steady if page.topical]
    ratio = measured(month, topical, begin, end) / optimum(month, policy, topical)
    assert ratio >= 1.0 - 3.0 * within, f"{ratio:.4f} of the optimum for pages of a topic"

    dead = {page.url for page in web.pages.values() if not _lives(crawl, page.url)}
    assert dead == {page.url for page in web.pages.values() if page.dies}, "nothing is dead that lives"

    floor = web.day / 24.0
    for page in steady[:200]:
        times = crawl.times(page.url, 0.0)
        assert min(after - before for before, after in itertools.pairwise(times)) >= floor

    new = set(web.new)
    found = next(item.at for item in crawl.log if item.url in new)
    crowded = [item for item in crawl.log if item.at > found + 0.1 * web.day]
    days = (crowded[-1].at - crowded[0].at) / web.day
    assert len(crowded) == pytest.approx(month.bandwidth * days, rel=0.02), "the bandwidth is used, and no more"
    first = [item for item in crowded if not item.known and item.url in new]
    suspects = sum(item.url.endswith(".xml") for item in first)
    assert suspects / len(crowded) == pytest.approx(SUSPECTS, abs=0.02)
    assert (len(first) - suspects) / len(crowded) == pytest.approx(PAGES, abs=0.02)


def _lives(crawl: SimulatedCrawl, url: str) -> bool:
    explained = crawl.frontier.explain(crawl.row(url).key, crawl.now)
    assert explained is not None
    return explained.state != "dead" and crawl.row(url).outcome in READ_OUTCOMES


def test_a_month_whose_days_are_minutes(tmp_path: Path) -> None:
    """The same month with fewer pages and shorter days, for every run of the tests."""
    month = run(tmp_path, MonthlyWeb(120, 600.0), "harmonic", known=False)
    judge(month, "harmonic", 0.04)
    month.crawl.close()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("policy", ["harmonic", "freshness"])
@pytest.mark.parametrize(("known", "within"), [(True, 0.02), (False, 0.04)])
def test_a_month(tmp_path: Path, policy: Literal["harmonic", "freshness"], known: bool, within: float) -> None:
    month = run(tmp_path, MonthlyWeb(600, 86_400.0), policy, known=known)
    judge(month, policy, within)
    month.crawl.close()
