"""A site in the web of links: which sites link to it, which it links to, and which of its pages are linked most.

Pages that were never read are known by their fingerprint alone, so links to them are counted but not named. For a large
site a sample of its pages is used; it is a fair one, since the catalog lists pages by a hash of their URL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from quadloom.model.outcome import PageRow
from quadloom.model.url import site_of
from quadloom.planning.ranking.link_lookup import AdjacentLinks, links_touching
from quadloom.stores.protocols.catalog import Catalog

_MAX_LOOKED_UP = 3000  # pages of other sites that are looked up, the most linked first
_MAX_LISTED = 15


class LinkingSite(msgspec.Struct, frozen=True):
    """Another site, the number of links, and one of its pages at the other end."""

    site: str
    links: int
    example: str


class PopularPage(msgspec.Struct, frozen=True):
    """A page of the site and the number of pages that link to it, including those of the site itself."""

    url: str
    title: str
    links: int


class SiteLinks(msgspec.Struct, frozen=True, kw_only=True):
    """`unread`: links to pages that were never read. `partial`: pages or older links were left out."""

    inward: tuple[LinkingSite, ...] = ()
    outward: tuple[LinkingSite, ...] = ()
    popular: tuple[PopularPage, ...] = ()
    inside: int = 0
    unread: int = 0
    partial: bool = False


def site_links(directory: Path, catalog: Catalog, site: str, pages: Sequence[PageRow], *, all_pages: bool) -> SiteLinks:
    """Links from and to these pages of a site. `directory`: the link matrix. `all_pages`: the site has no others."""
    own = {page.fingerprint: page for page in pages}
    links = links_touching(directory, list(own))
    known = _known(links, own, catalog)
    inward, outward, popular = _Ends(), _Ends(), Counter[int]()
    inside = unread = 0
    for source, target in zip(links.sources.tolist(), links.targets.tolist(), strict=True):
        if target in own:
            popular[target] += source != target
            if source in own:
                inside += 1
            elif (page := known.get(source)) is not None and site_of(page.host) != site:
                inward.add(page)
        elif (page := known.get(target)) is None:
            unread += 1
        elif site_of(page.host) != site:
            outward.add(page)
    return SiteLinks(
        inward=inward.top(),
        outward=outward.top(),
        popular=tuple(
            PopularPage(own[fingerprint].href, own[fingerprint].title, number)
            for fingerprint, number in popular.most_common(_MAX_LISTED)
        ),
        inside=inside,
        unread=unread,
        partial=links.partial or not all_pages,
    )


class _Ends:
    """Links counted by site, each with the first page found."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, page: PageRow) -> None:
        site = site_of(page.host)
        self._counts[site] += 1
        self._examples.setdefault(site, page.href)

    def top(self) -> tuple[LinkingSite, ...]:
        return tuple(
            LinkingSite(site, number, self._examples[site]) for site, number in self._counts.most_common(_MAX_LISTED)
        )


def _known(links: AdjacentLinks, own: Mapping[int, PageRow], catalog: Catalog) -> dict[int, PageRow]:
    """Catalog rows of the pages at the other ends."""
    ends, numbers = np.unique(np.concatenate([links.sources, links.targets]), return_counts=True)
    others = [int(end) for end in ends[np.argsort(-numbers, kind="stable")] if int(end) not in own]
    return catalog.pages(others[:_MAX_LOOKED_UP])
