"""A child that cannot work: pauses grow, and after a few failed starts the run ends with a reason."""

from __future__ import annotations

import threading

import pytest

from quadloom.errors import ChildFailed
from quadloom.process.channel import ChannelClosed
from quadloom.process.restarts import Restarts


class Pauses(list[float]):
    """Waits that end at once, and how long they would have been."""

    def __call__(self, closed: threading.Event, seconds: float) -> bool:
        self.append(seconds)
        return closed.is_set()


def test_a_child_that_worked_is_replaced_at_once() -> None:
    pauses = Pauses()
    restarts = Restarts("fetch", pauses)
    for _ in range(1000):
        restarts.ready()
        restarts.worked()
        assert restarts.start_again(lambda: "child", was_ready=True, cause="crashed with signal 9") == "child"
    assert set(pauses) == {0.0}


def test_a_child_that_never_starts_ends_the_run() -> None:
    pauses = Pauses()
    restarts = Restarts("fetch", pauses)
    with pytest.raises(ChildFailed, match="fetch process could not be started 6 times in a row; the last one ended"):
        for _ in range(100):
            restarts.start_again(lambda: "child", was_ready=False, cause="ended with exit code 1")
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6]


def test_a_child_that_starts_and_dies_is_restarted_ever_more_slowly_and_not_for_ever() -> None:
    pauses = Pauses()
    restarts = Restarts("fetch", pauses)
    with pytest.raises(ChildFailed, match="without doing anything"):
        for _ in range(100):
            restarts.ready()
            restarts.start_again(lambda: "child", was_ready=True, cause="crashed with signal 9")
    assert len(pauses) > 20 and pauses == sorted(pauses) and max(pauses) == 5.0


def test_a_start_that_fails_is_tried_again_and_its_reason_is_told() -> None:
    restarts = Restarts("services", Pauses())
    tries = iter([OSError("no memory"), ChannelClosed("gone"), None])

    def start() -> str:
        failure = next(tries)
        if failure is not None:
            raise failure
        return "child"

    assert restarts.start_again(start, was_ready=True, cause="crashed with signal 9") == "child"

    def never() -> str:
        raise OSError("no processes left")

    with pytest.raises(ChildFailed, match="could not be started 6 times in a row; the last one did not start: no proc"):
        Restarts("services", Pauses()).start_again(never, was_ready=True, cause="crashed with signal 9")


def test_closing_ends_a_pause_and_nothing_is_started_afterwards() -> None:
    paused = threading.Event()

    def wait(closed: threading.Event, seconds: float) -> bool:
        paused.set()
        return closed.wait(60.0)  # longer than the test may take

    restarts = Restarts("transform", wait)
    started: list[str] = []
    answers: list[object] = ["none yet"]

    def replace() -> None:
        answers[0] = restarts.start_again(lambda: started.append("child"), was_ready=True, cause="crashed")

    waiting = threading.Thread(target=replace)
    waiting.start()
    assert paused.wait(30.0)
    restarts.close()
    waiting.join(30.0)
    assert not waiting.is_alive(), "the pause was not ended"
    assert answers == [None] and not started and restarts.is_closed
    assert restarts.start_again(lambda: started.append("child"), was_ready=True, cause="crashed") is None
    assert not started


def test_close_waits_for_a_start_that_is_in_progress() -> None:
    """So that the caller finds the new child and can end it."""
    restarts = Restarts("fetch")
    inside, go_on, order = threading.Event(), threading.Event(), list[str]()

    def start() -> str:
        inside.set()
        go_on.wait(30.0)
        order.append("started")
        return "child"

    def close() -> None:
        restarts.close()
        order.append("closed")

    threads = [
        threading.Thread(target=lambda: restarts.start_again(start, was_ready=True, cause="crashed")),
        threading.Thread(target=close),
    ]
    threads[0].start()
    assert inside.wait(30.0)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(30.0)
    assert order == ["started", "closed"]
