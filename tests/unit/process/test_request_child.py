"""A child that answers one request at a time: deadlines, deaths, a new child for the next request."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from quadloom.process.channel import ChildProcess, start
from quadloom.process.request_child import ChildEnded, RequestChild

SAMPLE = "unit.process.sample_child"


@pytest.fixture
def child() -> Iterator[RequestChild]:
    made = RequestChild(lambda: start(SAMPLE, "ready"), ready_seconds=60.0)
    yield made
    made.close()
    made.end()


def test_one_child_answers_many_requests(child: RequestChild) -> None:
    assert child.ask(("pid", 0), int) == child.ask(("pid", 0), int)


@pytest.mark.parametrize(("word", "size", "cause"), [("sleep", 60, "deadline"), ("crash", 0, "signal")])
def test_the_next_request_has_another_child(child: RequestChild, word: str, size: int, cause: str) -> None:
    first = child.ask(("pid", 0), int)
    with pytest.raises(ChildEnded) as caught:
        child.ask((word, size), bytes, seconds=0.2 if word == "sleep" else 60.0)
    assert caught.value.exit is not None and caught.value.exit.cause == cause
    assert child.ask(("pid", 0), int) != first


def test_a_deadline_ends_with_its_request(child: RequestChild) -> None:
    first = child.ask(("pid", 0), int, seconds=60.0)
    child.ask(("echo", 3), bytes, seconds=60.0)
    assert child.ask(("pid", 0), int) == first


def test_an_ended_child_is_started_again_when_it_is_needed(child: RequestChild) -> None:
    first = child.ask(("pid", 0), int)
    child.end()
    assert child.ask(("pid", 0), int) != first


def test_closing_ends_a_request_in_progress_and_all_later_ones(child: RequestChild) -> None:
    child.ask(("pid", 0), int)
    closer = threading.Timer(0.1, child.close)
    closer.start()
    with pytest.raises(ChildEnded) as caught:
        child.ask(("sleep", 600), bytes)
    assert caught.value.describe(0.0, 0) == "crashed with signal 9"
    with pytest.raises(ChildEnded, match="was stopped"):
        child.ask(("pid", 0), int)


def test_a_child_that_does_not_start_is_named(child: RequestChild) -> None:
    def fail() -> ChildProcess:
        raise OSError("no process left")

    with pytest.raises(ChildEnded) as caught:
        RequestChild(fail).ask("anything", str)
    assert (caught.value.exit, caught.value.describe(0.0, 0)) == (None, "did not start")
    silent = RequestChild(lambda: start("json.tool", "no such module can be a child"), ready_seconds=60.0)
    with pytest.raises(ChildEnded, match="did not start"):
        silent.ask("anything", str)
