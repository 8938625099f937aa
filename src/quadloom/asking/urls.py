"""Pages by their URLs as pages write them: a URL that cannot be visited belongs to no page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from quadloom.errors import UrlError
from quadloom.model.outcome import PageRow
from quadloom.model.url import Url


@lru_cache(maxsize=16_384)  # 15 µs for each of forty hits, and most pages are found again
def fingerprint_of(url: str) -> int | None:
    """The fingerprint of a page; None if the URL is invalid."""
    try:
        return Url.parse(url).fingerprint
    except UrlError:
        return None


class PageRows(Protocol):
    """Where the rows of pages are: a catalog, or the files of a folder."""

    def page(self, fingerprint: int) -> PageRow | None: ...

    def pages(self, fingerprints: Sequence[int]) -> dict[int, PageRow]: ...


def page_of(catalog: PageRows, url: str) -> PageRow | None:
    """The page, if it was visited."""
    fingerprint = fingerprint_of(url)
    return catalog.page(fingerprint) if fingerprint is not None else None
