"""The crawl of all workers: every field of a report is in the whole."""

from __future__ import annotations

from typing import Any

import pytest

from quadloom.crawling.cluster.merging import merged
from quadloom.crawling.run.report import CrawlReport, VisitProblem
from quadloom.fetching.browser.renderer import RenderingTotals
from quadloom.model.service import InstanceLoad
from quadloom.planning.policy.page_row import ExpectedFreshness
from quadloom.process.channel import ProcessHeartbeat
from quadloom.stores.protocols.archive import DiskState

_FILLED: dict[str, Any] = {
    "state": "paused",
    "expected": ExpectedFreshness(pages=9, reads=1.0, freshness=0.5, cost=0.1),
    "workers": [ProcessHeartbeat("fetch", 1, 2, 3.0, 4)],
    "rendering": RenderingTotals(1, 2, 3, 4.0, 5.0),
    "services": [InstanceLoad("http://one", 4, 1, 2, 0.5, 1)],
    "disks": [DiskState("/archive", "no room left")],
    "hosts": ["a.example", "b.example"],
    "problems": [VisitProblem("denied", "robots: no", 3, "http://a.example/")],
    "notices": ["a notice"],
    "frontier": {"queued": 5, "total": 7},
    "queues": {"fetch": 5, "transform": 2},
}


def filled() -> CrawlReport:
    """A report in which no field has its default, new fields included."""
    fields = {}
    for name in CrawlReport.__struct_fields__:
        default = getattr(CrawlReport(), name)
        if name in _FILLED:
            fields[name] = _FILLED[name]
        elif isinstance(default, dict):
            fields[name] = {"one": 2}
        else:
            assert isinstance(default, int | float), f"{name}: say here what it may be, and how it is merged"
            fields[name] = type(default)(3)
    return CrawlReport(**fields)


def test_every_field_of_a_report_is_in_the_whole() -> None:
    one, empty = filled(), CrawlReport()
    whole = merged([one, empty])
    for name in CrawlReport.__struct_fields__:
        found = getattr(whole, name)
        assert found != getattr(empty, name) or name == "state", name


def test_numbers_are_sums_and_figures_of_the_whole_are_not() -> None:
    whole = merged([filled(), filled()])
    assert whole.pages == 6 and whole.denied == 6 and whole.phases == {"one": 4}
    assert whole.bandwidth == 3.0 and whole.seconds == 3.0 and whole.waits == {"one": 2}
    assert whole.frontier == {"queued": 5, "total": 7} and whole.queues == {"fetch": 5, "transform": 4}
    assert whole.problems == [VisitProblem("denied", "robots: no", 6, "http://a.example/")]
    assert whole.rendering == RenderingTotals(2, 4, 6, 8.0, 10.0)
    assert whole.services == [InstanceLoad("http://one", 8, 2, 4, 0.5, 2)]
    assert whole.hosts == ["a.example", "b.example"] and whole.notices == ["a notice"]
    assert whole.waits_for == {"one": 2}


def test_a_field_without_a_rule_is_an_error() -> None:
    from quadloom.crawling.cluster.merging import _joined

    with pytest.raises(TypeError, match="no rule"):
        _joined(["a word", "another"])
