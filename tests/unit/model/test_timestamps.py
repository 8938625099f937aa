"""Unix time as text."""

from __future__ import annotations

from quadloom.model.timestamps import day, iso_time, readable_time


def test_a_time_is_cut_to_the_second_in_utc() -> None:
    assert iso_time(1_769_903_998.99) == "2026-01-31T23:59:58Z"
    assert readable_time(1_769_903_998.5) == "2026-01-31 23:59:58 UTC"
    assert day(1_769_903_998.5) == "2026-01-31"


def test_the_first_second_is_a_time() -> None:
    assert iso_time(0.0) == "1970-01-01T00:00:00Z"
