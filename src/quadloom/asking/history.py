"""A page through time: its visits, its graph as of any moment, and what changed between two.

Only the present graph is in the quad store. Earlier ones are transformed again from the archive, which has every
version that was fetched; the transform is a pure function, so they come out as they were indexed then.
"""

from __future__ import annotations

import msgspec

from quadloom.errors import NothingFound, UsageError
from quadloom.model.outcome import PageRow
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.pipeline import process_page
from quadloom.settings import Settings
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.catalog import Catalog, VisitRow
from quadloom.stores.protocols.quads import Difference
from quadloom.stores.quads.nquads import lines_of
from quadloom.syntaxes.registry import Loader


class PageHistory(msgspec.Struct, frozen=True):
    """A page and its visits, newest first."""

    page: PageRow
    visits: tuple[VisitRow, ...]

    def at(self, moment: float) -> VisitRow:
        """The visit whose version was current at a unix time. Raises `NothingFound` before the first."""
        for visit in self.visits:
            if visit.fetched_at <= moment:
                return visit
        raise NothingFound(
            f"{self.page.href} was not known at that time", hint="`quadloom show page URL --history` lists its visits"
        )


def history(catalog: Catalog, url: str) -> PageHistory:
    """All visits of a page. Raises `NothingFound` for one that was never visited."""
    page = catalog.page(Url.parse(url).fingerprint)
    if page is None:
        raise NothingFound(f"{url} was never visited", hint=f"`quadloom why {url}` tells what is known of it")
    return PageHistory(page, tuple(catalog.history(page.fingerprint)))


class Versions:
    """Graphs of past versions, from the archive."""

    def __init__(self, archive: Archive, settings: Settings, loader: Loader | None) -> None:
        self._archive = archive
        self._settings = settings
        self._loader = loader

    def graph(self, page: PageRow, visit: VisitRow) -> Quads:
        """What the page's graph held after a visit. Raises `UsageError` where that version was not kept."""
        graph = page.final_url or page.href
        if not visit.quads_digest:
            return Quads.of(graph, b"")
        if visit.archive is None:
            raise UsageError(
                f"the version of {page.href} at {visit.fetched_at:.0f} is not in the archive",
                hint="pages marked noarchive, and versions older than index.retention, are not kept",
            )
        found = self._archive.get(visit.archive)
        if not isinstance(found, Page):
            return Quads.of(graph, b"")
        leased = Visit(page.href, page.key, page.host, page.fingerprint, page.depth, known=True)
        return process_page(found, leased, self._settings, (), self._loader).quads

    def difference(self, page: PageRow, old: VisitRow, new: VisitRow) -> Difference:
        """Statements that the newer version has more, and has less. Equal digests need no reading."""
        if old.quads_digest == new.quads_digest:
            return Difference()
        return difference(self.graph(page, old), self.graph(page, new))


def difference(old: Quads, new: Quads) -> Difference:
    before, after = set(lines_of(old.nquads)), set(lines_of(new.nquads))
    return Difference(tuple(sorted(after - before)), tuple(sorted(before - after)))
