"""Slots are given in the order in which threads asked for them."""

from __future__ import annotations

import threading

from quadloom.process.threads import FairSlots
from waiting import wait_until


def _wait_until_waiting(slots: FairSlots, count: int) -> None:
    wait_until(lambda: len(slots._waiting) >= count)


def test_a_newcomer_does_not_pass_those_who_wait() -> None:
    slots, order = FairSlots(1), list[str]()
    assert slots.acquire(0.0)

    def use(name: str) -> None:
        assert slots.acquire(60.0)
        order.append(name)
        slots.release()

    threads = []
    for place, name in enumerate(("first", "second", "third"), 1):
        threads.append(threading.Thread(target=use, args=(name,)))
        threads[-1].start()
        _wait_until_waiting(slots, place)
    slots.release()
    use("newcomer")  # asks before the first of those who wait has run, most of the time
    for thread in threads:
        thread.join()
    assert order == ["first", "second", "third", "newcomer"]


def test_who_gives_up_costs_no_slot() -> None:
    slots = FairSlots(2)
    assert slots.acquire(0.0) and slots.acquire(0.0)
    assert not slots.acquire(0.01)
    slots.release()
    assert slots.acquire(0.0)
    assert not slots.acquire(0.0)
    slots.release()
    slots.release()
    assert slots.acquire(0.0) and slots.acquire(0.0) and not slots.acquire(0.0)


def test_many_threads_never_hold_more_than_there_are() -> None:
    slots, inside, most = FairSlots(3), set[int](), list[int]()

    def use(number: int) -> None:
        for _ in range(20):
            if slots.acquire(0.002 if number % 3 else 60.0):
                inside.add(number)
                most.append(len(inside))
                inside.discard(number)
                slots.release()

    threads = [threading.Thread(target=use, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) <= 3 and slots._free == 3 and not slots._waiting
