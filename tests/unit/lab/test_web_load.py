"""The load test of the site: what a crawl loses while clients ask."""

from __future__ import annotations

from quadloom_lab.benchmarks.web import crawl_loss


def test_the_loss_is_against_the_mean_of_the_periods_without_clients() -> None:
    assert crawl_loss({"alone": 120.0, "with clients": 88.0, "alone again": 100.0}) == 0.2
    assert crawl_loss({"alone": 50.0, "with clients": 60.0}) == -0.2
    assert crawl_loss({}) is None and crawl_loss({"alone": 0.0, "with clients": 0.0}) is None
