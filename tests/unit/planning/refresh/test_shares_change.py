"""What servers see of a crawl without an end, in simulated time: shares, χ, the bandwidth, policies, the floor.

Each test reads the log of requests only, as a person who doubts the scheduler would.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from fakeweb.simulated_crawl import START, Answer, LoggedRequest, SimulatedCrawl
from quadloom.planning.policy.objectives import Policy
from quadloom.planning.refresh.shares_change import SharesChange
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


def endless(url: str, now: float) -> Answer:
    """More new URLs than the crawl can read, half of them data. A third of the pages changes every minute."""
    if url == SEED:
        names = (f"http://h{n % 20}.example/{n}{'.xml' if n % 2 else '.html'}" for n in range(3000))
        return Answer(links=tuple(names))
    number = int(url.rpartition("/")[2].partition(".")[0])
    return Answer(version=0 if number % 3 else int(now / 60.0), kind="xml" if url.endswith(".xml") else "html")


class Shares(NamedTuple):
    suspects: float
    pages: float
    refresh: float


def shares_seen(log: list[LoggedRequest]) -> tuple[float, ...]:
    first = Counter(item.url.endswith(".xml") for item in log if not item.known)
    return first[True] / len(log), first[False] / len(log), sum(item.known for item in log) / len(log)


def start(folder: Path, suspects: float, pages: float) -> SimulatedCrawl:
    """A crawl that has read its seed."""
    rules = settings(bandwidth=5.0, suspect_share=suspects, discovery_share=pages)
    crawl = SimulatedCrawl(folder, rules, endless, step=0.2)
    crawl.add([SEED])
    crawl.run(1.0)
    assert [item.url for item in crawl.log][:1] == [SEED], "a seed is read, whatever the shares are"
    return crawl


@pytest.mark.parametrize(
    "asked",
    [
        Shares(0.2, 0.2, 0.6),
        Shares(0.6, 0.1, 0.3),
        Shares(0.7, 0.3, 0.0),
        Shares(0.3, 0.0, 0.7),
    ],
)
def test_shares_hold_in_the_log(tmp_path: Path, asked: Shares) -> None:
    crawl = start(tmp_path, asked.suspects, asked.pages)
    crawl.run(90.0)
    since = crawl.now
    crawl.run(90.0)
    log = part(crawl, since)
    assert len(log) == pytest.approx(450, rel=0.02), "the bandwidth is the same"
    assert shares_seen(log) == pytest.approx(tuple(asked), abs=0.05)
    everything = [item for item in crawl.log if item.url != SEED]
    for share, seen in zip(asked, shares_seen(everything), strict=True):
        assert share or not seen, "nothing at all from the first read on"
    crawl.close()


def test_without_a_share_for_first_reads_a_young_crawl_reads_its_seeds_only(tmp_path: Path) -> None:
    crawl = start(tmp_path, 0.0, 0.0)
    crawl.run(60.0)
    assert {item.url for item in crawl.log} == {SEED}
    times = crawl.times(SEED, 0.0)
    assert len(times) == pytest.approx(12, abs=2), "idle bandwidth refreshes it as often as the floor allows"
    crawl.find(["http://h0.example/never.html"])
    crawl.add(["http://h1.example/99998.html"])
    crawl.run(30.0)
    assert {item.url for item in crawl.log} == {SEED, "http://h1.example/99998.html"}, "a new seed is read"
    crawl.close()


def test_shares_changed_live_hold_and_a_share_of_zero_at_once(tmp_path: Path) -> None:
    crawl = start(tmp_path, 0.3, 0.3)
    crawl.run(60.0)
    for asked in (Shares(0.0, 0.0, 1.0), Shares(0.0, 0.3, 0.7), Shares(0.5, 0.5, 0.0)):
        crawl.scheduler.change(SharesChange(suspect_share=asked.suspects, discovery_share=asked.pages))
        since = crawl.now
        crawl.run(140.0)
        for share, seen in zip(asked, shares_seen(part(crawl, since)), strict=True):
            assert share or not seen, asked
        log = part(crawl, since + 70.0)  # before, what was read early is not due, and its share goes to the others
        assert shares_seen(log) == pytest.approx(tuple(asked), abs=0.05)
        assert len(log) == pytest.approx(350, rel=0.02)
    crawl.close()


def test_an_unused_share_goes_to_the_others_and_comes_back(tmp_path: Path) -> None:
    """No data is known for a minute: first reads of pages and refreshes divide the bandwidth as 1 to 3."""
    rules = settings(bandwidth=5.0, suspect_share=0.6, discovery_share=0.1)
    crawl = SimulatedCrawl(tmp_path, rules, lambda url, now: endless(url, now)._replace(links=()), step=0.2)
    crawl.find([f"http://h{n % 20}.example/{n}.html" for n in range(0, 3000, 2)])
    crawl.run(120.0)
    since = crawl.now
    crawl.run(60.0)
    assert shares_seen(part(crawl, since)) == pytest.approx((0.0, 0.25, 0.75), abs=0.05)
    crawl.find([f"http://h{n % 20}.example/{n}.xml" for n in range(1, 3000, 2)])
    since = crawl.now
    crawl.run(60.0)
    assert shares_seen(part(crawl, since)) == pytest.approx((0.6, 0.1, 0.3), abs=0.05)
    crawl.close()


def test_shares_hold_with_more_hosts_than_places_in_memory(tmp_path: Path) -> None:
    """A broad crawl: 1,500 hosts of one page each wait for their first read, and memory has 64 places."""

    def broad(url: str, now: float) -> Answer:
        if url == SEED:
            return Answer(links=tuple(f"http://h{n}.example/{n}{'.xml' if n % 2 else '.html'}" for n in range(1500)))
        return Answer(version=int(now / 60.0), kind="xml" if url.endswith(".xml") else "html")

    rules = settings(bandwidth=5.0, suspect_share=0.2, discovery_share=0.2)
    crawl = SimulatedCrawl(tmp_path, rules, broad, step=0.2, places=64)
    crawl.add([SEED])
    crawl.run(80.0)
    since = crawl.now
    crawl.run(60.0)
    assert shares_seen(part(crawl, since)) == pytest.approx((0.2, 0.2, 0.6), abs=0.05)
    crawl.scheduler.change(SharesChange(suspect_share=0.0, discovery_share=0.0))
    since = crawl.now
    crawl.run(30.0)
    log = part(crawl, since)
    assert all(item.known for item in log) and len(log) == pytest.approx(150, rel=0.03)
    crawl.close()
