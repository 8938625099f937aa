"""What servers see of a crawl without an end, in simulated time: χ, the bandwidth, policies changed live, the floor.

Each test reads the log of requests only, as a person who doubts the scheduler would. The shares of first reads are
judged in the same way by `tests/quality/test_simulated_month.py`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

from fakeweb.simulated_crawl import START, Answer, LoggedRequest, SimulatedCrawl
from quadloom.refresh.shares_change import SharesChange
from quadloom.scheduling.objectives import Policy
from quadloom.settings import CrawlSettings, FreshnessSettings, Settings

SEED = "http://seed.example/"


def settings(**freshness: object) -> Settings:
    rules = {"min_interval": "5s", "max_interval": "2h", "prior_interval": "60s", **freshness}
    return Settings(crawl=CrawlSettings(scope="any"), freshness=FreshnessSettings(**rules))  # type: ignore[arg-type]


def part(crawl: SimulatedCrawl, since: float) -> list[LoggedRequest]:
    return [item for item in crawl.log if item.at >= since - START]


def changing(url: str, now: float) -> Answer:
    """Forty pages, half of them data; they change every 20, 60 or 300 seconds, or never."""
    if url == SEED:
        return Answer(links=tuple(f"http://a.example/{n}{'.xml' if n % 2 else '.html'}" for n in range(80)))
    number = int(url.rpartition("/")[2].partition(".")[0])
    period = (20.0, 60.0, 300.0, 1e9)[number // 2 % 4]
    return Answer(version=int((now + number) / period), kind="xml" if url.endswith(".xml") else "html")


def share_of_data(folder: Path, chi: float) -> float:
    folder.mkdir()
    crawl = SimulatedCrawl(folder, settings(bandwidth=2.0, chi=chi), changing, step=0.5)
    crawl.add([SEED])
    crawl.run(300.0)
    since = crawl.now
    crawl.run(300.0)
    log = part(crawl, since)
    crawl.close()
    assert len(log) == pytest.approx(600.0, rel=0.02)
    return sum(item.url.endswith(".xml") for item in log) / len(log)


def test_chi_moves_refreshes_to_data(tmp_path: Path) -> None:
    even = share_of_data(tmp_path / "even", 1.0)
    assert even == pytest.approx(0.5, abs=0.06)
    assert share_of_data(tmp_path / "data", 20.0) > even + 0.15


def test_the_bandwidth_is_the_same_whatever_the_policy_and_no_page_is_read_below_the_floor(tmp_path: Path) -> None:
    crawl = SimulatedCrawl(tmp_path, settings(bandwidth=2.0, max_interval="100s"), changing, step=0.5)
    crawl.add([SEED])
    crawl.run(100.0)
    reads: dict[str, Counter[int]] = {}
    policies: tuple[Policy, ...] = ("xyleme", "uniform", "freshness")
    for policy in policies:
        crawl.scheduler.change(SharesChange(policy=policy))
        crawl.run(150.0)
        since = crawl.now
        crawl.run(150.0)
        log = part(crawl, since)
        assert len(log) == pytest.approx(300.0, rel=0.02), policy
        reads[policy] = Counter(
            int(item.url.rpartition("/")[2].partition(".")[0]) // 2 % 4 for item in log if item.url != SEED
        )
    assert max(reads["uniform"].values()) < 1.25 * min(reads["uniform"].values()), "all alike"
    for url in {item.url for item in crawl.log}:
        times = crawl.times(url, 0.0)
        assert all(after - before >= 5.0 for before, after in itertools.pairwise(times)), url
    crawl.close()
