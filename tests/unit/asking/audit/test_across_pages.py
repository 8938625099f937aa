"""Questions across pages in a server: asked by one thread, again only after a commit and a while."""

from __future__ import annotations

import threading

import pytest

from quadloom.asking.audit.across_pages import AcrossCache, AcrossFindings
from quadloom.errors import StoreError


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_last_answer_serves_until_something_was_committed_and_a_while_has_passed() -> None:
    clock, asked = Clock(), list[str]()
    cache = AcrossCache(clock)

    def find() -> AcrossFindings:
        asked.append("once")
        clock.now += 2.0
        return AcrossFindings({str(len(asked)): []})

    def seen(mark: int) -> str:
        return next(iter(cache.get(mark, find).pages))

    assert [seen(1), seen(1)] == ["1", "1"]
    clock.now += 1000.0
    assert seen(1) == "1", "nothing was committed"
    assert seen(2) == "2"
    clock.now += 19.0
    assert seen(3) == "2", "it took two seconds: not before twenty have passed"
    clock.now += 2.0
    assert seen(3) == "3"
    assert len(asked) == 3


def test_while_one_thread_asks_the_others_take_the_last_answer() -> None:
    cache = AcrossCache()
    old, new = AcrossFindings({"old": []}), AcrossFindings({"new": []})
    cache.get(1, lambda: old)
    inside, go_on, seen = threading.Event(), threading.Event(), list[AcrossFindings]()

    def slow() -> AcrossFindings:
        inside.set()
        go_on.wait(30.0)
        return new

    cache._until = 0.0
    asking = threading.Thread(target=lambda: seen.append(cache.get(2, slow)))
    asking.start()
    assert inside.wait(30.0)
    assert cache.get(2, slow) is old
    go_on.set()
    asking.join(30.0)
    assert seen == [new] and cache.get(2, slow) is new


def test_what_fails_is_asked_again() -> None:
    cache = AcrossCache()

    def fail() -> AcrossFindings:
        raise StoreError("away")

    with pytest.raises(StoreError):
        cache.get(1, fail)
    assert cache.get(1, lambda: AcrossFindings({"found": []})).pages == {"found": []}
