"""Statistics of a whole warehouse."""

from __future__ import annotations

from quadloom.asking.statistics import summary
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.visit import Visit
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier
from quadloom_lab.memory.quads import MemoryQuads

DAY = 86_400.0


def test_every_page_is_in_one_class_of_change_rates() -> None:
    frontier = MemoryFrontier(FrontierPolicy(), now=0.0)
    catalog = MemoryCatalog(frontier)
    for number, changes in enumerate((0, 1, 20, 100)):  # in ten days
        url = f"http://a.example/{number}"
        row = PageRow(
            fingerprint=number, key=url, href=url, host="a.example", status=200, outcome=Outcome.CHANGED, kind="html",
            fetched_at=11 * DAY, first_seen=DAY, changed_at=10 * DAY, changes=changes,
        )  # fmt: skip
        visit = Visit(url, url, "a.example", number)
        catalog.record([Settlement(visit, Outcome.CHANGED, row, HostPace("a.example", "", 0.0, 0.0))], 11 * DAY)
    found = summary(catalog, frontier, MemoryQuads())
    assert found.sampled == 4
    assert dict(found.change_rates) == {"never seen changing": 0.25, "weekly": 0.25, "several times a day": 0.5}
