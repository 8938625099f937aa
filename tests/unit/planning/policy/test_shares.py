"""Constant slots, exact shares over time, nothing wasted while anything waits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadloom.errors import SettingsError
from quadloom.planning.policy.shares import BandwidthShares, ClassUse, ReadCounts

MANY = ReadCounts(suspects=10**6, pages=10**6, refresh=10**6)


@pytest.mark.parametrize("bandwidth", [0.37, 3.0, 100.0])
def test_slots_are_constant_and_shares_exact_in_the_long_run(bandwidth: float) -> None:
    shares = BandwidthShares(bandwidth, 0.2, 0.35)
    slots = [shares.slot(1.0, MANY) for _ in range(2000)]
    totals = np.array([slot.total for slot in slots])
    assert totals.max() - totals.min() <= 1
    assert totals.sum() == pytest.approx(2000 * bandwidth, abs=1)
    for name, share in (("suspects", 0.2), ("pages", 0.35), ("refresh", 0.45)):
        assert sum(getattr(slot, name) for slot in slots) == pytest.approx(2000 * bandwidth * share, abs=2.5)


def test_unused_shares_roll_over() -> None:
    shares = BandwidthShares(100.0, 0.2, 0.2)
    first_cycle = shares.slot(1.0, ReadCounts(suspects=1000, pages=1000))
    assert first_cycle.refresh == 0 and first_cycle.total == 100
    assert first_cycle.suspects == pytest.approx(50, abs=1)
    later = shares.slot(1.0, ReadCounts(suspects=3, refresh=10_000))
    assert (later.suspects, later.pages, later.refresh) == (3, 0, 97)


def test_a_class_that_slept_does_not_starve_the_others_afterwards() -> None:
    shares = BandwidthShares(100.0, 0.5, 0.2)
    for _ in range(50):
        shares.slot(1.0, ReadCounts(refresh=10**6))
    awake = shares.slot(1.0, MANY)
    assert awake.suspects == pytest.approx(50, abs=2) and awake.refresh == pytest.approx(30, abs=2)


def test_requests_come_first_within_the_same_bandwidth() -> None:
    shares = BandwidthShares(10.0)
    slot = shares.slot(1.0, ReadCounts(requests=4, suspects=99, pages=99, refresh=99))
    assert slot.requests == 4 and slot.total == 10
    assert shares.slot(1.0, ReadCounts(requests=400)).requests == 10


def test_everything_can_change_while_running() -> None:
    shares = BandwidthShares(100.0, 0.2, 0.4)
    shares.slot(1.0, MANY)
    shares.set(0.0, 0.1)
    shares.bandwidth = 40.0
    slot = shares.slot(1.0, MANY)
    assert (slot.suspects, slot.total) == (0, 40) and slot.refresh == pytest.approx(36, abs=1)
    with pytest.raises(SettingsError):
        shares.set(0.7, 0.4)


@given(
    st.floats(0.0, 50.0),
    st.floats(0.0, 1.0),
    st.floats(0.0, 1.0),
    st.lists(st.tuples(*[st.integers(0, 40)] * 4), min_size=1, max_size=20),
)
def test_never_more_than_waits_never_less_than_could(
    bandwidth: float, a: float, b: float, loads: list[tuple[int, int, int, int]]
) -> None:
    shares = BandwidthShares(bandwidth, a * 0.5, b * 0.5)
    carried = 0.0
    for requests, suspects, pages, refresh in loads:
        waiting = ReadCounts(requests=requests, suspects=suspects, pages=pages, refresh=refresh)
        slot = shares.slot(1.0, waiting)
        due = int(bandwidth + carried)
        carried = bandwidth + carried - due
        open_ = ReadCounts(
            requests=requests,
            suspects=suspects if shares.suspects else 0,
            pages=pages if shares.pages else 0,
            refresh=refresh if shares.refresh else 0,
        )
        assert slot.total == min(due, open_.total)
        for name in ("requests", "suspects", "pages", "refresh"):
            assert 0 <= getattr(slot, name) <= getattr(waiting, name)


def test_refresh_bandwidth_counts_idle_shares() -> None:
    shares = BandwidthShares(10.0, 0.2, 0.4)
    hungry = ClassUse(99.0, 1.0)
    assert shares.refresh_bandwidth(hungry, hungry) == pytest.approx(4.0)
    assert shares.refresh_bandwidth() == pytest.approx(10.0)
    assert shares.refresh_bandwidth(ClassUse(1.5), ClassUse(0.5)) == pytest.approx(8.0)
    assert shares.refresh_bandwidth(requests=9.0) == pytest.approx(4.0), "never less than its share"
    partly = shares.refresh_bandwidth(pages=hungry)
    got = [shares.slot(1.0, ReadCounts(pages=10**6, refresh=10**6)).refresh for _ in range(400)]
    assert partly == pytest.approx(np.mean(got), abs=0.05)


def test_a_share_of_zero_is_nothing_at_all() -> None:
    shares = BandwidthShares(10.0, 0.7, 0.3)
    assert shares.refresh == 0.0 and shares.refresh_bandwidth() == 0.0
    assert shares.slot(1.0, ReadCounts(refresh=100)) == ReadCounts(idle=10)
    shares.set(0.0, 0.0)
    assert shares.slot(1.0, ReadCounts(suspects=100, pages=100)) == ReadCounts(idle=10)
    assert shares.slot(1.0, MANY) == ReadCounts(refresh=10)
