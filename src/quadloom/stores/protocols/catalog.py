"""The catalog: what is known about pages and visits, and the named values of a warehouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import msgspec

from quadloom.model.outcome import ArchiveRef, Outcome, PageRow, Settlement
from quadloom.model.phase import Owed


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


class PageSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a `PageRow` on which the order of search results depends, under their names there."""

    fingerprint: int
    outcome: Outcome = Outcome.NEW
    kind: str = ""
    text_digest: bytes = b""
    schedule: bytes = b""


class VisitKey(NamedTuple):
    """One visit in a page's history."""

    fingerprint: int
    fetched_at: float


class IndexedPage(NamedTuple):
    """What both indexes have acknowledged for a page."""

    fingerprint: int
    quads_digest: bytes
    text_digest: bytes


class UnindexedPlace(NamedTuple):
    """A place in the list of pages that wait for the indexes."""

    fetched_at: float
    fingerprint: int


FIRST_UNINDEXED = UnindexedPlace(-1.0, 0)


class Catalog(Protocol):
    """What is known about pages, visits and the warehouse itself.

    Frontier, catalog and outbox of one warehouse share a database: what is done inside `transaction()` is one commit.
    Outside of it every method that writes is a transaction of its own, durable on return.
    """

    def transaction(self) -> AbstractContextManager[None]:
        """Everything on this catalog, its frontier and its outbox inside the block becomes durable together, or not at
        all. Blocks may be nested: inner ones join the outer one."""
        ...

    def record(self, settlements: Sequence[Settlement], now: float) -> None:
        """Write page rows and append to history. Idempotent by (page, fetched_at). An older visit that is settled late
        joins the history and leaves the page's row as it is."""
        ...

    def page(self, fingerprint: int) -> PageRow | None:
        """None = the page was never read."""
        ...

    def pages(self, fingerprints: Sequence[int], *, lock: bool = False) -> dict[int, PageRow]:
        """Rows of those that were read; the others are missing. `lock`: no other process changes them before the end
        of the enclosing transaction."""
        ...

    def summaries(self, fingerprints: Sequence[int]) -> dict[int, PageSummary]:
        """As `pages`, a third of the cost: a search reads forty rows and needs four fields of each."""
        ...

    def scan(self, *, after: int = -(1 << 63), limit: int = 1000, host: str = "") -> list[PageRow]:
        """Pages in fingerprint order, for verify, export and rebuild. Empty = the end."""
        ...

    def history(self, fingerprint: int) -> list[VisitRow]:
        """Visits, newest first. Empty = none is stored."""
        ...

    def forget(self, visits: Sequence[VisitKey]) -> None:
        """Drop visits from history; pages stay. Unknown visits are no error."""
        ...

    def amend(self, pages: Sequence[PageRow]) -> None:
        """Write rows that changed between visits (the schedule), not history. A page that is unknown, or was visited
        since, stays as it is."""
        ...

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef], fingerprints: Sequence[int]) -> None:
        """Archive records were copied (old → new place): make these pages and their visits name the copies."""
        ...

    def unindexed(self, limit: int, after: UnindexedPlace = FIRST_UNINDEXED) -> list[PageRow]:
        """Pages whose quads or text in the indexes are older than what was settled: the replay list, by
        (fetched_at, fingerprint). Empty = the end."""
        ...

    def mark_indexed(self, pages: Sequence[IndexedPage]) -> None:
        """The indexes have acknowledged these digests: what a page with these digests owed to index is paid. A page
        settled with other digests since stays unindexed."""
        ...

    def owe(self, phase: Owed, *, host: str = "") -> int:
        """Make every page that was read owe this phase (once more). Returns how many owe it now. `host`: only its
        pages."""
        ...

    def pay(self, phase: Owed, visits: Sequence[VisitKey]) -> None:
        """These pages no longer owe the phase. A page that was visited since stays as it is."""
        ...

    def owing(self) -> dict[Owed, int]:
        """How many pages wait for each phase; without those that nothing waits for."""
        ...

    def lease_pages(self, phase: Owed, limit: int, owner: str) -> list[PageRow]:
        """Pages that are ready for a phase and that no process works on, the longest waiting first. They stay leased
        until `end_leases`, also when the owner has died: see `lease_owners`."""
        ...

    def end_leases(self, owner: str, fingerprints: Sequence[int] | None = None) -> None:
        """End these leases of an owner, or all of them. Leases of others stay."""
        ...

    def lease_owners(self) -> list[str]:
        """All owners of leases. A process that finds that one of them has died ends its leases."""
        ...

    def get(self, name: str, *, lock: bool = False) -> bytes | None:
        """A named value, None = there is none. Only `quadloom.stores.named_values` calls this: it knows all names.
        `lock`: no other process changes it before the end of the transaction."""
        ...

    def put(self, name: str, value: bytes | None) -> None:
        """Write a named value; None removes it."""
        ...

    def names(self, prefix: str) -> list[str]:
        """Names of all values that begin so, sorted."""
        ...

    def counts(self) -> dict[str, int]:
        """Pages by outcome, kind and status, as `outcome:new`, `kind:html`, `status:200` …"""
        ...

    def close(self) -> None: ...
