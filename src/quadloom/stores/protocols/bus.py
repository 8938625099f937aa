"""The bus: events for listeners, never at the expense of the crawl."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from quadloom.model.event import Event


class Bus(Protocol):
    """Distributes events. Guarantees: `publish` never blocks and never fails; listeners see events in order; a listener
    that is too slow misses the oldest."""

    def publish(self, events: Sequence[Event]) -> None: ...

    def follow(self, after: int = 0) -> Iterator[Event]:
        """Stored events with id > `after`, then new ones as they are published. Ends when the bus is closed."""
        ...

    def recent(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """The newest stored events with id > `after`, oldest first; returns at once."""
        ...
