"""The load test of the site: what a crawl loses while clients ask."""

from __future__ import annotations

from quadloom_lab.benchmarks.web import crawl_loss, missed


def test_the_loss_is_against_the_mean_of_the_periods_without_clients() -> None:
    assert crawl_loss({"alone": 120.0, "with clients": 88.0, "alone again": 100.0}) == 0.2
    assert crawl_loss({"alone": 50.0, "with clients": 60.0}) == -0.2
    assert crawl_loss({}) is None and crawl_loss({"alone": 0.0, "with clients": 0.0}) is None


def test_what_of_the_promise_is_missed_is_named() -> None:
    kept = {"by_kind": {"search": {"answers": 9, "p50_ms": 300.0, "p99_ms": 999.0}}, "refused": {}, "crawl_loss": 0.19}
    assert missed(kept) == [] and missed({**kept, "crawl_loss": None}) == []
    slow = {"by_kind": {"search": {"answers": 9, "p50_ms": 300.0, "p99_ms": 1001.0}}}
    worse = missed({**slow, "refused": {"sparql 503": 2}, "crawl_loss": 0.2})
    assert [line.partition(":")[0] for line in worse] == ["search", "refused", "the crawl lost 20%, not less than 20%"]
