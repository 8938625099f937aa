"""The seam of notices: an outbox in the catalog's database, so that a notice and its cause are one commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from quadloom.model.notice import Notice
from quadloom.model.outcome import ArchiveRef


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """How far a subscription's receiver is. `delivered`: id of the last notice it acknowledged."""

    subscription: str
    delivered: int = 0
    attempts: int = 0  # of the next one, without success
    retry_at: float = 0.0
    error: str = ""


class Outbox(Protocol):
    """Notices in the order of their ids.

    Guarantees: `append` joins an enclosing `Catalog.transaction()`; ids grow and are never used again, also after
    `trim`; a notice stays until it is trimmed, whoever has received it.
    """

    def append(self, notices: Sequence[Notice]) -> None: ...

    def since(self, id: int, *, limit: int = 1000, subscription: str = "") -> list[Notice]:
        """Notices with larger ids, of one subscription where it is named. Empty = none yet."""
        ...

    def last_id(self) -> int: ...

    def trim(self, before: float) -> int:
        """Drop notices older than a unix time. Returns how many."""
        ...

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef]) -> None:
        """Archive records were copied (old → new place): make notices name the copies."""
        ...

    def delivery(self, subscription: str) -> Delivery: ...

    def put_delivery(self, delivery: Delivery) -> None: ...
