"""The outbox as a list: the reference of the contract suite and a test double."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from quadloom.model.event import Notice
from quadloom.model.outcome import ArchiveRef
from quadloom.stores.protocols.outbox import NOBODY, Delivery, is_trimmed, moved_notice
from quadloom_lab.memory.catalog import MemoryCatalog


class MemoryOutbox:
    """Joins the transactions of `catalog`, as the durable backends do."""

    def __init__(self, catalog: MemoryCatalog) -> None:
        self._notices: list[Notice] = []
        self._deliveries: dict[str, Delivery] = {}
        self._last = 0
        catalog.join(self)

    def append(self, notices: Sequence[Notice]) -> None:
        for notice in notices:
            self._last += 1
            self._notices.append(replace(notice, id=self._last))

    def since(self, id: int, *, limit: int = 1000, subscription: str = "") -> list[Notice]:
        found = (item for item in self._notices if item.id > id and subscription in ("", item.subscription))
        return [item for item, _ in zip(found, range(limit), strict=False)]

    def last_id(self) -> int:
        return self._last

    def skip_ids(self, until: int) -> None:
        self._last = max(self._last, until)

    def trim(self, before: float, *, waiting: Mapping[str, int] = NOBODY) -> int:
        kept = [item for item in self._notices if not is_trimmed(item, before, waiting)]
        dropped = len(self._notices) - len(kept)
        self._notices = kept
        return dropped

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef]) -> None:
        self._notices = [moved_notice(item, moved) for item in self._notices]

    def edit(self, change: Callable[[Notice], Notice | None]) -> int:
        after = [(item, change(item)) for item in self._notices]
        self._notices = [new for _, new in after if new is not None]
        return sum(new != old for old, new in after)

    def delivery(self, subscription: str) -> Delivery:
        return self._deliveries.get(subscription, Delivery(subscription=subscription))

    def put_delivery(self, delivery: Delivery) -> None:
        self._deliveries[delivery.subscription] = delivery

    def forget_delivery(self, subscription: str) -> None:
        self._deliveries.pop(subscription, None)

    def snapshot(self) -> object:
        return list(self._notices), dict(self._deliveries)

    def restore(self, snapshot: object) -> None:
        """The counter is not reset: an id is never used twice."""
        assert isinstance(snapshot, tuple)
        self._notices, self._deliveries = snapshot
