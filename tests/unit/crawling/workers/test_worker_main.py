"""The links that a worker remembers: bounded, and as quick to use when they are full as before."""

from __future__ import annotations

import time

from quadloom.crawling.workers.worker_main import RecentLinks


def test_only_new_links_and_shorter_paths_are_news() -> None:
    recent = RecentLinks(10)
    assert [recent.is_news(1, 3), recent.is_news(1, 3), recent.is_news(1, 4)] == [True, False, False]
    assert [recent.is_news(1, 2), recent.is_news(1, 2)] == [True, False]
    recent.clear()
    assert recent.is_news(1, 2)


def test_the_newest_stay_and_what_is_used_stays_with_them() -> None:
    recent = RecentLinks(100)
    for link in range(1000):
        recent.is_news(link, 1)
        recent.is_news(0, 1)  # on every page
    assert not any(recent.is_news(link, 1) for link in range(950, 1000)) and not recent.is_news(0, 1)
    assert all(recent.is_news(link, 1) for link in range(1, 800))


def test_a_full_memory_is_as_quick_as_an_empty_one() -> None:
    recent = RecentLinks(100_000)

    def cost(first: int) -> float:
        began = time.process_time()
        for link in range(first, first + 40_000):
            recent.is_news(link * 7919, 1)
        return time.process_time() - began

    costs = [cost(first) for first in range(0, 400_000, 40_000)]
    assert max(costs[4:]) < 8 * max(costs[:2]), costs  # was 250 times as much
