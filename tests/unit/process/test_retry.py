"""Pauses between tries, and the loop that waits for them; no test waits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, repeat

import pytest

from quadloom.errors import StoreUnavailable
from quadloom.process.retry import backoff, doubling, jittered, retry, retry_when_unavailable, within


class Clock:
    """Time that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def failing(times: int, failure: Exception) -> Callable[[], str]:
    left = iter(range(times))

    def action() -> str:
        if next(left, None) is not None:
            raise failure
        return "done"

    return action


def test_pauses_double_up_to_the_longest() -> None:
    assert list(islice(doubling(0.1, 1.0), 6)) == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    assert backoff(10_000, 0.1, 5.0) == 5.0


def test_jitter_halves_a_pause_or_makes_it_half_as_long_again() -> None:
    chances = iter((0.0, 0.5, 1.0))
    assert list(jittered([2.0, 2.0, 2.0], lambda: next(chances))) == [1.0, 2.0, 3.0]


def test_the_first_success_ends_the_tries() -> None:
    clock = Clock()
    assert retry(failing(2, OSError("away")), doubling(1.0), OSError, sleep=clock.sleep) == "done"
    assert clock.pauses == [1.0, 2.0]


def test_the_last_failure_is_raised_when_no_pause_is_left() -> None:
    clock = Clock()
    with pytest.raises(OSError, match="away"):
        retry(failing(9, OSError("away")), repeat(1.0, 3), OSError, sleep=clock.sleep)
    assert clock.pauses == [1.0, 1.0, 1.0]


def test_other_failures_are_not_tried_again() -> None:
    with pytest.raises(ValueError, match="wrong"):
        retry(failing(1, ValueError("wrong")), repeat(1.0), OSError, sleep=Clock().sleep)


def test_patience_counts_from_the_beginning() -> None:
    clock = Clock()
    with pytest.raises(OSError, match="away"):
        retry(failing(9, OSError("away")), within(5.0, doubling(1.0), clock=clock), OSError, sleep=clock.sleep)
    assert clock.pauses == [1.0, 2.0], "the next one would end after seven seconds"


def test_patience_has_no_end_while_somebody_wants_to_wait() -> None:
    clock = Clock()
    pauses = within(0.0, repeat(1.0), clock=clock, unless=lambda: clock.now < 50.0)
    with pytest.raises(OSError, match="away"):
        retry(failing(99, OSError("away")), pauses, OSError, sleep=clock.sleep)
    assert clock.now == 50.0


def test_a_transaction_is_repeated_when_its_server_is_back() -> None:
    assert retry_when_unavailable(failing(1, StoreUnavailable("restarting"))) == "done"
