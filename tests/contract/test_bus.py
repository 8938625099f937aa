"""The contract of `Bus`."""

from __future__ import annotations

import threading

from quadloom.model.event import Event
from quadloom.stores.memory_bus import MemoryBus
from quadloom.stores.postgres.bus import PostgresBus
from waiting import wait_until


def event(number: int) -> Event:
    return Event(number, "page", float(number), f"http://a.example/{number}")


def test_followers_get_what_is_kept_and_then_what_comes(bus: MemoryBus | PostgresBus) -> None:
    for number in range(1, 6):
        bus.publish([event(number)])
    got: list[int] = []
    reader = threading.Thread(target=lambda: got.extend(e.id for e in bus.follow(after=2)))
    reader.start()
    wait_until(lambda: got == [3, 4, 5])
    bus.publish([event(6)])
    bus.close()
    reader.join(timeout=60)
    assert got == [3, 4, 5, 6]


def test_publish_never_waits_for_a_slow_follower(bus: MemoryBus | PostgresBus) -> None:
    follower = bus.follow()
    bus.publish([event(1)])
    assert next(follower).id == 1
    for number in range(2, 30_000):
        bus.publish([event(number)])
    assert next(follower).id > 2  # the oldest are lost, the newest kept
    bus.close()
    assert [e.id for e in follower][-1] == 29_999
