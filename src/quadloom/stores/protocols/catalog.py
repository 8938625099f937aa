"""The catalog: what is known about pages and visits, and the named values of a warehouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from quadloom.model.outcome import ArchiveRef, PageRow, Settlement


class VisitRow(msgspec.Struct, frozen=True, kw_only=True):
    """One visit in a page's history."""

    fingerprint: int
    fetched_at: float
    status: int
    outcome: str
    body_digest: bytes = b""
    quads_digest: bytes = b""
    text_digest: bytes = b""
    body_bytes: int = 0
    quads: int = 0
    archive: ArchiveRef | None = None


class Catalog(Protocol):
    """What is known of pages, visits and the warehouse itself. Settled means durable.

    Frontier and Catalog of one warehouse share a database: what is done inside `transaction()` is one commit.
    """

    def transaction(self) -> AbstractContextManager[None]:
        """Everything on this catalog and its frontier inside the block becomes durable together, or not at all."""
        ...

    def record(self, settlements: Sequence[Settlement], now: float) -> None:
        """Write page rows and append to history. Idempotent by (page, fetched_at)."""
        ...

    def page(self, fingerprint: int) -> PageRow | None: ...

    def pages(self, fingerprints: Sequence[int]) -> dict[int, PageRow]: ...

    def scan(self, *, after: int = -(1 << 63), limit: int = 1000, host: str = "") -> list[PageRow]:
        """Pages in fingerprint order, for verify, export and rebuild. Empty = the end."""
        ...

    def history(self, fingerprint: int) -> list[VisitRow]:
        """Visits, newest first."""
        ...

    def forget(self, visits: Sequence[tuple[int, float]]) -> None:
        """Drop visits, (fingerprint, fetched_at), from history; pages stay. Unknown ones are no error."""
        ...

    def amend(self, pages: Sequence[PageRow]) -> None:
        """Write rows changed between visits (the schedule), not history. A page visited since, or unknown, stays."""
        ...

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef], fingerprints: Sequence[int]) -> None:
        """Archive records were copied (old → new place): make these pages and their visits name the copies."""
        ...

    def unindexed(self, limit: int, after: tuple[float, int] = (-1.0, 0)) -> list[PageRow]:
        """Pages whose quads or text in the indexes are older than what was settled: the replay list, by
        (fetched_at, fingerprint). Empty = the end."""
        ...

    def mark_indexed(self, marks: Sequence[tuple[int, bytes, bytes]]) -> None:
        """(fingerprint, quads_digest, text_digest) that the indexes have acknowledged."""
        ...

    def get(self, name: str) -> bytes | None:
        """A named value: control words, statistics, robots, subscriptions … small things that must survive."""
        ...

    def put(self, name: str, value: bytes | None) -> None:
        """Write a named value, None removes it. Durable on return."""
        ...

    def names(self, prefix: str) -> list[str]: ...

    def counts(self) -> dict[str, int]:
        """Pages by outcome, kind and status, as `outcome:new`, `kind:html`, `status:200` …"""
        ...

    def close(self) -> None: ...
