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


class NamedValueTable(Protocol):
    """Named values of a warehouse. Only `quadloom.stores.named_values` uses it: it knows all names."""

    def get(self, name: str, *, lock: bool = False) -> bytes | None:
        """None = there is no value of this name. `lock`: no other process changes it before the end of the
        transaction."""
        ...

    def put(self, name: str, value: bytes | None) -> None:
        """Write a value; None removes it."""
        ...

    def names(self, prefix: str) -> list[str]:
        """Names of all values that begin so, sorted."""
        ...


class VisitHistory(Protocol):
    """The visits of pages. `Catalog.record` adds them."""

    def of(self, fingerprint: int) -> list[VisitRow]:
        """Visits of a page, newest first. Empty = none is stored."""
        ...

    def forget(self, visits: Sequence[VisitKey]) -> None:
        """Drop visits; pages stay. Unknown visits are no error."""
        ...


class PhaseBacklog(Protocol):
    """Pages that wait for a phase, and which process works on each of them.

    Guarantee: one process at a time works on a leased page. A lease lasts until `release`, also after its owner has
    died.
    """

    def add(self, phase: Owed, *, host: str = "") -> int:
        """Make every page that was read wait for this phase (once more). Returns how many wait for it now. `host`:
        only its pages."""
        ...

    def remove(self, phase: Owed, visits: Sequence[VisitKey]) -> None:
        """The phase is done for these pages. A page that was visited since stays as it is."""
        ...

    def counts(self) -> dict[Owed, int]:
        """How many pages wait for each phase; phases without any are missing."""
        ...

    def lease(self, phase: Owed, limit: int, owner: str) -> list[PageRow]:
        """Pages that are ready for a phase and that no process works on, the longest waiting first."""
        ...

    def release(self, owner: str, fingerprints: Sequence[int] | None = None) -> None:
        """End these leases of an owner, or all of them. Leases of others stay."""
        ...

    def owners(self) -> list[str]:
        """All owners of leases. A process that finds that one of them has died releases its leases."""
        ...


class Catalog(Protocol):
    """What is known about pages, visits and the warehouse itself.

    Frontier, catalog and outbox of one warehouse share a database: what is done inside `transaction()` is one commit.
    Outside of it every method that writes is a transaction of its own, durable on return.
    """

    @property
    def values(self) -> NamedValueTable: ...

    @property
    def visits(self) -> VisitHistory: ...

    @property
    def backlog(self) -> PhaseBacklog: ...

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

    def fingerprints_of(self, kinds: Sequence[str]) -> list[int]:
        """Fingerprints of all pages of these kinds."""
        ...

    def hosts(self) -> list[str]:
        """Hosts of all pages."""
        ...

    def check(self) -> None:
        """Read everything in the database that can be compared with itself. Raises `StoreError` if something is not
        what was written."""
        ...

    def counts(self) -> dict[str, int]:
        """Pages by outcome, kind and status, as `outcome:new`, `kind:html`, `status:200` …"""
        ...

    def amend(self, pages: Sequence[PageRow]) -> None:
        """Write rows that changed between visits (the schedule), not history. A page that is unknown, or was visited
        since, stays as it is."""
        ...

    def repoint(self, moved: Mapping[ArchiveRef, ArchiveRef], fingerprints: Sequence[int]) -> None:
        """Archive records were copied (old → new place): make these pages and their visits name the copies."""
        ...

    def forget(self, fingerprints: Sequence[int]) -> None:
        """Remove these pages, with their visits and leases. Unknown ones are no error."""
        ...

    def unindexed(self, limit: int, after: UnindexedPlace = FIRST_UNINDEXED) -> list[PageRow]:
        """Pages whose quads or text in the indexes are older than what was settled: the replay list, by
        (fetched_at, fingerprint). Empty = the end."""
        ...

    def mark_indexed(self, pages: Sequence[IndexedPage]) -> None:
        """The indexes have acknowledged these digests: a page with these digests no longer waits for the index phase.
        A page settled with other digests since stays unindexed."""
        ...
