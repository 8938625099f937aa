"""What a failed visit means for its URL: tried again soon, later, or given up."""

from __future__ import annotations

import pytest

from quadloom.crawling.ingest.settle import settle_failure
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.page import Failure, FailureKind
from quadloom.model.visit import Visit
from quadloom.settings import FreshnessSettings, PolitenessSettings, Settings

URL = "http://a.example/p"
START, HOUR, DAY = 1e9, 3600.0, 86_400.0
SETTINGS = Settings(politeness=PolitenessSettings(retries=2, backoff=10.0), freshness=FreshnessSettings(dead_span="3d"))
VISIT = Visit(URL, URL, "a.example", 1)


def _attempts(old: PageRow | None, kind: FailureKind = "connect", *, transient: bool = True) -> list[float]:
    """Seconds from each failed visit to the next, until the URL is given up."""
    at = START
    pauses: list[float] = []
    while True:
        failure = Failure(URL, kind, "no answer", transient, at)
        settlement = settle_failure(VISIT, failure, None, old, SETTINGS)
        assert settlement.outcome is Outcome.FAILED
        if settlement.again_at is None:
            return pauses
        pauses.append(settlement.again_at - at)
        assert len(pauses) < 100
        old, at = settlement.page, settlement.again_at


def test_a_url_that_was_never_read_is_given_up_after_days_not_after_a_minute() -> None:
    pauses = _attempts(None)
    assert pauses[:2] == [10.0, 20.0], "quick retries first"
    assert pauses[2:7] == [HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 16 * HOUR]
    assert set(pauses[7:]) == {DAY}
    assert 3 * DAY <= sum(pauses) <= 4 * DAY


def test_a_page_that_was_read_before_has_a_schedule_of_its_own() -> None:
    row = PageRow(fingerprint=1, key=URL, href=URL, host="a.example", changed_at=START - DAY, first_seen=START - DAY)
    assert _attempts(row) == [10.0, 20.0]


@pytest.mark.parametrize("kind", ["too-large", "bomb", "protocol"])
def test_what_will_not_change_is_not_tried_again(kind: FailureKind) -> None:
    assert _attempts(None, kind, transient=False) == []
