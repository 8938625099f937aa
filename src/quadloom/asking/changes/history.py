"""A page through time: its visits, its graph as of any moment, and what changed between two.

Old versions are transformed again by a `VersionReader`.
"""

from __future__ import annotations

import msgspec

from quadloom.asking.changes.versions import VersionDifference, VersionGraph, VersionReader, difference
from quadloom.errors import NothingFound, UsageError
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.quads import Quads
from quadloom.model.url import Url
from quadloom.stores.protocols.catalog import Catalog, VisitRow

_FAILED = frozenset(map(str, (Outcome.GONE, Outcome.FAILED, Outcome.DENIED)))


class PageHistory(msgspec.Struct, frozen=True):
    """A page and its visits, newest first."""

    page: PageRow
    visits: tuple[VisitRow, ...]

    def at(self, moment: float) -> VisitRow:
        """The visit whose version was current at a unix time, though later ones may have failed. Raises `NothingFound`
        for a time before the first."""
        visits = [visit for visit in self.visits if visit.fetched_at <= moment]
        for visit in visits:
            if visit.archive is not None or visit.outcome not in _FAILED:
                return visit
        if visits:
            return visits[0]
        raise NothingFound(
            f"{self.page.href} was not known at that time", hint="`quadloom show page URL --history` lists its visits"
        )


def history(catalog: Catalog, url: str) -> PageHistory:
    """All visits of a page. Raises `NothingFound` for one that was never visited."""
    page = catalog.page(Url.parse(url).fingerprint)
    if page is None:
        raise NothingFound(f"{url} was never visited", hint=f"`quadloom why {url}` shows what is known about it")
    return PageHistory(page, tuple(catalog.visits.of(page.fingerprint)))


def graph_after(versions: VersionReader, page: PageRow, visit: VisitRow) -> Quads:
    """What the page's graph held after a visit. Raises `UsageError` if that version was not kept, and `NothingFound` if
    it can no longer be transformed."""
    found = version_of(versions, page, visit)
    if found.failure:
        raise NothingFound(
            f"the version of {page.href} at {visit.fetched_at:.0f} cannot be read: {found.failure}",
            hint="the limits are limits.transform_seconds and limits.transform_bytes",
        )
    return found.quads


def difference_between(versions: VersionReader, page: PageRow, old: VisitRow, new: VisitRow) -> VersionDifference:
    """What was added and removed between two visits. Versions with equal digests are not read."""
    if (old.quads_digest, old.text_digest) == (new.quads_digest, new.text_digest):
        return VersionDifference()
    return difference(version_of(versions, page, old), version_of(versions, page, new))


def version_of(versions: VersionReader, page: PageRow, visit: VisitRow) -> VersionGraph:
    """What the page stated and said after a visit. Raises `UsageError` if that version was not kept."""
    if not visit.quads_digest:
        return VersionGraph(Quads.of(page.graph, b""))
    if visit.archive is None:
        raise UsageError(
            f"the version of {page.href} at {visit.fetched_at:.0f} is not in the archive",
            hint="pages marked noarchive, and versions older than index.retention, are not kept",
        )
    return versions.graph(visit.archive)
