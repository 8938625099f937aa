"""The bus: events for whoever listens, never at the expense of the crawl."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from quadloom.model.event import Event


class Bus(Protocol):
    """Tells listeners what happens. `publish` never blocks and never fails; a slow listener loses the oldest."""

    def publish(self, event: Event) -> None: ...

    def follow(self, after: int = 0) -> Iterator[Event]:
        """Events with id > `after` that are still kept, then new ones as they come."""
        ...

    def recent(self, after: int = 0, limit: int = 1000) -> list[Event]:
        """The newest events with id > `after` that are still kept, oldest first; returns at once."""
        ...
