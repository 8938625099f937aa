"""The outbox of notices, in the catalog's database, so that a notice and its cause are one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import msgspec

from quadloom.model.event import Notice
from quadloom.model.outcome import ArchiveRef

NOBODY: Mapping[str, int] = MappingProxyType({})


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How far a subscription's receiver is. `delivered`: id of the last notice that it acknowledged."""

    subscription: str
    delivered: int = 0
    attempts: int = 0  # failed ones for the next notice
    retry_at: float = 0.0
    error: str = ""
    lost: int = 0  # notices that were trimmed before they could be delivered


class Outbox(Protocol):
    """Notices in the order of their ids.

    Guarantees: every change joins an enclosing `Catalog.transaction()` and is undone with it; ids grow and are never
    used again, also after `trim` and a restart; a notice stays until it is trimmed, delivered or not.
    """

    def append(self, notices: Sequence[Notice]) -> None:
        """Each gets the next id; the id it has is ignored."""
        ...

    def since(self, id: int, *, limit: int = 1000, subscription: str = "") -> list[Notice]:
        """Notices with larger ids, of one subscription if it is named. Empty = none yet."""
        ...

    def last_id(self) -> int:
        """The largest id that was ever given, trimmed or not. 0 = none."""
        ...

    def skip_ids(self, until: int) -> None:
        """The next notice gets a larger id than this: a database that was lost may have given the smaller ones."""
        ...

    def trim(self, before: float, *, waiting: Mapping[str, int] = NOBODY) -> int:
        """Drop notices older than a unix time; for subscriptions in `waiting`, only up to the id given there. Returns
        how many were dropped."""
        ...

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef]) -> None:
        """Archive records were copied (old → new place): make notices name the copies."""
        ...

    def edit(self, change: Callable[[Notice], Notice | None]) -> int:
        """Replace each notice by what `change` returns for it; None removes it. Ids stay. Returns how many differ."""
        ...

    def delivery(self, subscription: str) -> Delivery:
        """What `put_delivery` stored; without that a fresh one, which starts at the first notice."""
        ...

    def put_delivery(self, delivery: Delivery) -> None: ...

    def forget_delivery(self, subscription: str) -> None:
        """An unknown subscription is no error."""
        ...


def is_trimmed(notice: Notice, before: float, waiting: Mapping[str, int] = NOBODY) -> bool:
    """Whether `Outbox.trim` with these arguments would drop the notice: the rule in one place."""
    return notice.at < before and notice.id <= waiting.get(notice.subscription, notice.id)


def moved_notice(notice: Notice, moved: Mapping[ArchiveRef, ArchiveRef]) -> Notice:
    """The notice with the new places of the records that it names."""
    before = moved.get(notice.before, notice.before) if notice.before else None
    after = moved.get(notice.after, notice.after) if notice.after else None
    return msgspec.structs.replace(notice, before=before, after=after)
