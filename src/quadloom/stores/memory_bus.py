"""The bus within one process: a ring of the newest events.

`publish` appends to a bounded ring and wakes listeners; it never waits for one. A listener that is slower than the ring
turns over misses the oldest events and goes on with those still kept.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator

from quadloom.model.event import Event


class MemoryBus:
    """See `quadloom.stores.protocols.Bus`."""

    def __init__(self, *, kept: int = 10_000) -> None:
        self._events: deque[Event] = deque(maxlen=kept)
        self._news = threading.Condition()
        self._closed = False

    def publish(self, event: Event) -> None:
        with self._news:
            self._events.append(event)
            self._news.notify_all()

    def follow(self, after: int = 0) -> Iterator[Event]:
        """Waits for new events; ends when the bus is closed."""
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
        """From the newest backwards, so that a listener that keeps up costs nothing."""
        fresh: list[Event] = []
        for event in reversed(self._events):
            if event.id <= last:
                break
            fresh.append(event)
        fresh.reverse()
        return fresh

    def close(self) -> None:
        """Listeners get what is still kept and then end."""
        with self._news:
            self._closed = True
            self._news.notify_all()
