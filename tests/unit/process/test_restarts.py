"""A child that cannot work: pauses grow, and after a few failed starts the run ends with a reason."""

from __future__ import annotations

import pytest

from quadloom.errors import ChildFailed
from quadloom.process.restarts import Restarts


def test_a_child_that_worked_is_replaced_at_once() -> None:
    restarts = Restarts("fetch")
    for _ in range(1000):
        restarts.ready()
        restarts.worked()
        assert restarts.died(was_ready=True, cause="crashed with signal 9") == 0.0


def test_a_child_that_never_starts_ends_the_run() -> None:
    restarts = Restarts("fetch")
    pauses = []
    with pytest.raises(ChildFailed, match="fetch process could not be started 6 times in a row; the last one ended"):
        for _ in range(100):
            pauses.append(restarts.died(was_ready=False, cause="ended with exit code 1"))
    assert pauses == sorted(pauses) and pauses[0] > 0 and sum(pauses) < 10


def test_a_child_that_starts_and_dies_is_restarted_ever_more_slowly_and_not_for_ever() -> None:
    restarts = Restarts("fetch")
    pauses = []
    with pytest.raises(ChildFailed, match="without doing anything"):
        for _ in range(100):
            restarts.ready()
            pauses.append(restarts.died(was_ready=True, cause="crashed with signal 9"))
    assert len(pauses) > 20 and max(pauses) == 5.0
