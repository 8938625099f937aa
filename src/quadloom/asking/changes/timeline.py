"""What changed on a page or about a thing, in time: before → after, with the visits that saw each.

The quad store has the present only. The archive has every version of a page that was fetched, so earlier graphs are
made again from it, in a process that can be killed. That takes some milliseconds a version, so the number of pages and
versions is limited, and only who asks for the history pays for it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import msgspec

from quadloom.asking.changes.described import DescribedVersion, changes_between
from quadloom.asking.changes.history import version_of
from quadloom.asking.changes.readable_changes import PropertyChange, text_changes
from quadloom.asking.changes.versions import VersionGraph, VersionReader
from quadloom.asking.entity import Entity
from quadloom.asking.urls import page_of
from quadloom.errors import ArchiveDamaged, StoreError, UsageError
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.quads import Quads
from quadloom.stores.protocols.catalog import Catalog, VisitRow

PAGES = 8
VERSIONS = 8
MOST_SENTENCES = 20  # of one change


class DatedChange(PropertyChange, frozen=True, kw_only=True):
    """`at`: the visit that saw what is new; `before_at`: the last one that saw what was there before. `text`: a change
    of the page's words, in sentences. `page`: its URL."""

    at: float
    before_at: float
    page: str
    text: bool = False


class Timeline(msgspec.Struct, frozen=True):
    """Newest first. `first_seen`: the first visit of the versions that were compared; 0 = none can be read. `partial`:
    pages or versions were left out, or could not be read."""

    changes: tuple[DatedChange, ...] = ()
    first_seen: float = 0.0
    partial: bool = False


def entity_timeline(catalog: Catalog, reader: VersionReader, entity: Entity) -> Timeline:
    """What its pages stated about a thing, then and now."""
    rows = [page_of(catalog, source) for source in entity.sources[:PAGES]]
    found = [page_timeline(catalog, reader, row, frozenset(entity.names)) for row in rows if row is not None]
    return Timeline(
        tuple(sorted((change for one in found for change in one.changes), key=lambda change: -change.at)),
        min((one.first_seen for one in found if one.first_seen), default=0.0),
        len(entity.sources) > PAGES or None in rows or any(one.partial for one in found),
    )


def page_timeline(
    catalog: Catalog, reader: VersionReader, row: PageRow, only: Container[str] | None = None
) -> Timeline:
    """What changed on a page; `only`: about these things, and not in its text."""
    visits = catalog.visits.of(row.fingerprint)[::-1]
    versions = _versions(visits)
    changes: list[DatedChange] = []
    read: list[tuple[VersionGraph, VisitRow]] = []
    partial = len(versions) > VERSIONS
    before_at = 0.0
    for visit, until in versions[-VERSIONS:]:
        try:
            found = version_of(reader, row, visit)
        except (UsageError, StoreError, ArchiveDamaged):
            found = VersionGraph(Quads.of(row.graph, b""), "it is not in the archive")
        if found.failure:
            partial = True
            continue
        if read:
            for change in version_changes(read[-1][0], found, only):
                changes.append(
                    DatedChange(
                        **msgspec.structs.asdict(change),
                        at=visit.fetched_at,
                        before_at=before_at,
                        page=row.href,
                        text=not change.thing,
                    )
                )
        read.append((found, visit))
        before_at = until
    gone = next((visit for visit in visits if visit.fetched_at > before_at and visit.outcome == Outcome.GONE), None)
    if gone is not None and read:
        changes.append(
            DatedChange(
                row.title or row.href,
                "",
                "the page",
                ("it was there",),
                (f"not found (HTTP {gone.status})",),
                at=gone.fetched_at,
                before_at=before_at,
                page=row.href,
            )
        )
    return Timeline(tuple(changes[::-1]), read[0][1].fetched_at if read else 0.0, partial)


def version_changes(
    old: VersionGraph, new: VersionGraph, only: Container[str] | None = None
) -> tuple[PropertyChange, ...]:
    """What one version of a page says and the other does not: values, and sentences as a property `text`."""
    found = changes_between(DescribedVersion(old.quads.nquads, only), DescribedVersion(new.quads.nquads, only))
    gone, come = text_changes(old.text, new.text) if only is None else ((), ())
    if gone or come:
        found = (*found, PropertyChange("", "", "text", gone[:MOST_SENTENCES], come[:MOST_SENTENCES]))
    return found


def _versions(visits: Sequence[VisitRow]) -> list[tuple[VisitRow, float]]:
    """The first visit of each version, oldest first, with the time of the last visit that saw it."""
    found: list[tuple[VisitRow, float]] = []
    for visit in visits:
        if not 200 <= visit.status < 400:
            continue
        digests = (visit.quads_digest, visit.text_digest)
        last = found[-1][0] if found else None
        if last is not None and (digests == (last.quads_digest, last.text_digest) or visit.archive is None):
            found[-1] = (last, visit.fetched_at)
        elif visit.archive is not None:
            found.append((visit, visit.fetched_at))
    return found
