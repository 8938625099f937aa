"""The time of a process is not moved by the wall clock, and steps between two processes are noticed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec
import pytest

from quadloom.process import clock

YEAR = 365 * 86400.0


@pytest.fixture(autouse=True)
def own_origin() -> Iterator[None]:
    before = clock.origin()
    yield
    clock.adopt(before)


def test_a_step_of_the_wall_clock_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = clock.unix_time()
    assert abs(before - time.time()) < 3600.0
    monkeypatch.setattr(time, "time", lambda: before + YEAR)
    assert before <= clock.unix_time() < before + 3600.0


@pytest.mark.parametrize("step", [YEAR, -YEAR, 600.0, -600.0])
def test_a_step_is_reported_once(step: float) -> None:
    wall = [1000.0]
    watch = clock.StepWatch(lambda: 1000.0, lambda: wall[0])
    assert watch.step() == 0.0
    wall[0] += step
    assert watch.step() == step
    assert watch.step() == 0.0


def test_a_small_correction_is_not_reported() -> None:
    wall = [1000.0]
    watch = clock.StepWatch(lambda: 1000.0, lambda: wall[0])
    wall[0] += 5.0
    assert watch.step() == 0.0


@pytest.mark.parametrize("step", [YEAR, -YEAR])
def test_a_step_between_two_processes(step: float) -> None:
    stamp = clock.stamp()
    assert clock.step_since(stamp) == 0.0
    clock.adopt(clock.origin() + step)
    assert clock.step_since(stamp) == pytest.approx(step)


def test_after_a_restart_of_the_machine_only_a_clock_that_is_behind_was_certainly_set() -> None:
    stamp = msgspec.structs.replace(clock.stamp(), boot="another")
    clock.adopt(clock.origin() + YEAR)
    assert clock.step_since(stamp) == 0.0, "it may have been off for a year"
    clock.adopt(clock.origin() - 2 * YEAR)
    assert clock.step_since(stamp) == pytest.approx(-YEAR, rel=1e-3)


def test_steps_in_words() -> None:
    assert clock.described_step(2 * YEAR) == "2 years forward"
    assert clock.described_step(-7200.0) == "2 hours back"
    assert clock.described_step(61.0) == "61 seconds forward"
