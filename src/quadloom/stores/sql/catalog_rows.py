"""What every catalog backend stores for a page: the record, its visit, its counts.

Backends differ in their statements, never in what a settlement means to the catalog; so the meaning is here, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from quadloom.model.outcome import ArchiveRef, Outcome, PageRow, Settlement
from quadloom.model.phase import Owed
from quadloom.stores.protocols.catalog import VisitRow
from quadloom.stores.sql.stored_records import decode, encode


class RowFacts(NamedTuple):
    """What decides whether a page's row is replaced, and under which names the row was counted."""

    fetched_at: float
    outcome: str
    kind: str
    status: int


class RowChanges(NamedTuple):
    """Rows to write, and by how much each count changes."""

    pages: list[PageRow]
    changes: dict[str, int]


def pages_of(settlements: Iterable[Settlement]) -> list[PageRow]:
    return [settlement.page for settlement in settlements if settlement.page is not None]


def visits_of(settlements: Iterable[Settlement]) -> list[PageRow]:
    """Rows that also join the history. A version that was only fetched joins it when it is transformed."""
    return [item.page for item in settlements if item.page is not None and item.outcome is not Outcome.FETCHED]


def repointed(page: PageRow, moved: Mapping[ArchiveRef, ArchiveRef]) -> PageRow:
    """The row with the new places of its records."""
    if page.archive is not None and page.archive in moved:
        page = replace(page, archive=moved[page.archive])
    if page.fetched is not None and page.fetched.archive in moved:
        page = replace(page, fetched=replace(page.fetched, archive=moved[page.fetched.archive]))
    return page


def newest_of(pages: Iterable[PageRow]) -> list[PageRow]:
    """A page may be settled twice in one batch; its row is that of the last visit."""
    return list({page.fingerprint: page for page in sorted(pages, key=lambda page: page.fetched_at)}.values())


def written(pages: Sequence[PageRow], before: Mapping[int, RowFacts], now: float) -> RowChanges:
    """An older visit that is settled late joins the history; the page's row stays as it is. A row from the future was
    written when the clock was ahead, so that it is not newer."""
    rows: list[PageRow] = []
    changes: dict[str, int] = {}
    for page in pages:
        old = before.get(page.fingerprint)
        if old is not None and old.fetched_at > page.fetched_at and not page.fetched_at <= now < old.fetched_at:
            continue
        rows.append(page)
        if old is not None:
            for name in count_names(old.outcome, old.kind, old.status):
                changes[name] = changes.get(name, 0) - 1
        for name in count_names(str(page.outcome), page.kind, page.status):
            changes[name] = changes.get(name, 0) + 1
    return RowChanges(rows, {name: change for name, change in changes.items() if change})


def record_of(page: PageRow) -> bytes:
    """The record of a page. What the indexes hold and what the page owes is in columns."""
    return encode(replace(page, indexed_quads=b"", indexed_text=b"", owed=Owed.NOTHING))


def page_of(record: bytes, indexed_quads: bytes, indexed_text: bytes, owed: int) -> PageRow:
    return replace(decode(record, PageRow), indexed_quads=indexed_quads, indexed_text=indexed_text, owed=Owed(owed))


def visit_row(page: PageRow) -> VisitRow:
    """What history stores for a visit. One that failed has its own bytes; its digests are those of the version that the
    page still has."""
    failed = page.visit_bytes is not None
    return VisitRow(
        fingerprint=page.fingerprint,
        fetched_at=page.fetched_at,
        status=page.status,
        outcome=str(page.outcome),
        body_digest=page.body_digest,
        quads_digest=page.quads_digest,
        text_digest=page.text_digest,
        body_bytes=page.visit_bytes if page.visit_bytes is not None else page.body_bytes,
        quads=0 if failed else page.quads,
        archive=None if failed else page.archive,
    )


def count_names(outcome: str, kind: str, status: int) -> tuple[str, ...]:
    """The names under which `Catalog.counts` counts a page."""
    return f"outcome:{outcome}", f"kind:{kind or 'unknown'}", f"status:{status}"


def waiting_counts(counts: Iterable[tuple[int, int]]) -> dict[Owed, int]:
    """(value of the column, pages with it) → pages that wait for each phase."""
    found: dict[Owed, int] = {}
    for value, number in counts:
        for phase in Owed:
            if value & phase:
                found[phase] = found.get(phase, 0) + number
    return found
