"""The bus within one process: a ring of the newest events.

`publish` appends to a bounded ring and wakes listeners; it never waits for them. A listener that is too slow misses the
oldest events and continues with those still in the ring.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence

from quadloom.model.event import Event


class MemoryBus:
    """See `quadloom.stores.protocols.bus.Bus`."""

    def __init__(self, *, kept: int = 10_000) -> None:
        self._events: deque[Event] = deque(maxlen=kept)
        self._news = threading.Condition()
        self._closed = False

    def publish(self, events: Sequence[Event]) -> None:
        with self._news:
            self._events.extend(events)
            self._news.notify_all()

    def follow(self, after: int = 0) -> Iterator[Event]:
        while True:
            with self._news:
                fresh = self._fresh(after)
                while not fresh and not self._closed:
                    self._news.wait()
                    fresh = self._fresh(after)
            if not fresh:
                return
            for event in fresh:
                after = event.id
                yield event

    def recent(self, after: int = 0, limit: int = 1000) -> list[Event]:
        with self._news:
            return self._fresh(after)[-limit:]

    def _fresh(self, last: int) -> list[Event]:
        """Searched from the newest backwards, so that a listener that keeps up costs nothing."""
        fresh: list[Event] = []
        for event in reversed(self._events):
            if event.id <= last:
                break
            fresh.append(event)
        fresh.reverse()
        return fresh

    def close(self) -> None:
        """Listeners get what is still in the ring and then end."""
        with self._news:
            self._closed = True
            self._news.notify_all()
