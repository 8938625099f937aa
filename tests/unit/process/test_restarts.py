"""A child that cannot work: pauses grow, and after a few failed starts the run ends with a reason."""

from __future__ import annotations

import threading

import pytest

from quadloom.errors import ChildFailed
from quadloom.process.channel import ChannelClosed
from quadloom.process.restarts import Restarts


def test_a_child_that_worked_is_replaced_at_once() -> None:
    restarts = Restarts("fetch")
    for _ in range(1000):
        restarts.ready()
        restarts.worked()
        assert restarts._pause(was_ready=True, cause="crashed with signal 9") == 0.0


def test_a_child_that_never_starts_ends_the_run() -> None:
    restarts = Restarts("fetch")
    pauses = []
    with pytest.raises(ChildFailed, match="fetch process could not be started 6 times in a row; the last one ended"):
        for _ in range(100):
            pauses.append(restarts._pause(was_ready=False, cause="ended with exit code 1"))
    assert pauses == sorted(pauses) and pauses[0] > 0 and sum(pauses) < 10


def test_a_child_that_starts_and_dies_is_restarted_ever_more_slowly_and_not_for_ever() -> None:
    restarts = Restarts("fetch")
    pauses = []
    with pytest.raises(ChildFailed, match="without doing anything"):
        for _ in range(100):
            restarts.ready()
            pauses.append(restarts._pause(was_ready=True, cause="crashed with signal 9"))
    assert len(pauses) > 20 and max(pauses) == 5.0


def test_a_start_that_fails_is_tried_again_and_its_reason_is_told() -> None:
    restarts = Restarts("services")
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
        Restarts("services").start_again(never, was_ready=True, cause="crashed with signal 9")


def test_closing_ends_a_pause_and_nothing_is_started_afterwards() -> None:
    restarts = Restarts("transform")
    started: list[str] = []
    for _ in range(30):  # the next pause would take five seconds
        restarts.ready()
        restarts._pause(was_ready=True, cause="crashed")
    answers: list[object] = ["none yet"]

    def replace() -> None:
        answers[0] = restarts.start_again(lambda: started.append("child"), was_ready=True, cause="crashed")

    waiting = threading.Thread(target=replace)
    waiting.start()
    restarts.close()
    waiting.join(4.0)
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
