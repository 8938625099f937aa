"""Dates are trusted once they have been right, and only as long as they are."""

from __future__ import annotations

import numpy as np
import pytest

from quadloom.planning.policy.trust import Trust, announced_age, http_date


def test_a_newcomer_is_not_believed() -> None:
    assert not Trust().trusted


def test_consistent_dates_earn_trust_and_lies_lose_it() -> None:
    trust = Trust()
    for _ in range(8):
        trust.observe(changed=True, announced=True)
        trust.observe(changed=False, announced=False)
    assert trust.trusted
    for _ in range(6):
        trust.observe(changed=False, announced=True)
    assert not trust.trusted


def test_a_source_that_misses_changes_is_not_believed() -> None:
    trust = Trust()
    for visit in range(60):
        trust.observe(changed=True, announced=visit % 2 == 0)
    assert not trust.trusted and trust.recall < 0.6 < trust.precision


def test_build_stamped_dates_are_not_believed() -> None:
    rng = np.random.default_rng(1)
    trust = Trust()
    for changed in rng.random(200) < 0.2:
        trust.observe(changed=bool(changed), announced=True)
    assert not trust.trusted and trust.precision < 0.3


def test_state_survives_the_journey() -> None:
    trust = Trust(7.0, 1.0, 0.5)
    again = Trust.decode(trust.encode())
    assert (again.confirmed, again.missed, again.false) == (7.0, 1.0, 0.5)
    assert not Trust.decode(b"").trusted


@pytest.mark.parametrize(
    ("modified", "age"),
    [(0.0, None), (-5.0, None), (900.0, None), (1000.0, None), (1500.0, 500.0), (1999.0, None), (2500.0, None)],
)
def test_only_dates_between_two_visits_announce_a_change(modified: float, age: float | None) -> None:
    assert announced_age(modified, fetched_at=2000.0, previous_at=1000.0) == age


def test_dates_of_headers() -> None:
    assert http_date("Sun, 06 Nov 1994 08:49:37 GMT") == 784_111_777.0
    for text in ("", "yesterday", "Sun, 99 Nov 99999 99:99:99 GMT"):
        assert http_date(text) == 0.0 or text.startswith("Sun, 99")
