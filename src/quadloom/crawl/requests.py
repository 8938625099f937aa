"""Explicit wishes of people: read these again now, before anything else (`quadloom refresh`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from quadloom.model.link import Discovery
from quadloom.model.outcome import PageRow
from quadloom.model.url import site_of
from quadloom.phases.extract import seed_discoveries
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier

_CHUNK = 1000


class RefreshRequest(msgspec.Struct, frozen=True):
    """Control request `refresh`."""

    urls: list[str] = []
    site: str = ""
    read_before: float | None = None


def request_urls(frontier: Frontier, urls: Sequence[str], now: float) -> int:
    """Known or not, in scope or not: who names a URL wants it. Raises `UrlError` for what is none."""
    return frontier.request(seed_discoveries(urls, kind="seed", priority=0), now)


def request_pages(
    frontier: Frontier, catalog: Catalog, now: float, *, site: str = "", read_before: float | None = None
) -> int:
    """All pages of a site (or host), or all read last before a time, or both. Dead pages are asked for once more."""
    total = 0
    for rows in _pages(frontier, catalog, site):
        found = [_discovery(row) for row in rows if read_before is None or row.fetched_at < read_before]
        total += frontier.request(found, now) if found else 0
    return total


def _pages(frontier: Frontier, catalog: Catalog, site: str) -> Iterator[list[PageRow]]:
    for host in _hosts(frontier, site) if site else [""]:
        after = -(1 << 63)
        while rows := catalog.scan(after=after, limit=_CHUNK, host=host):
            after = rows[-1].fingerprint
            yield rows


def _hosts(frontier: Frontier, site: str) -> list[str]:
    names: list[str] = []
    offset = 0
    while rows := frontier.hosts(limit=_CHUNK, offset=offset):
        names += [row.host for row in rows if site in (row.host, row.site, site_of(row.host))]
        offset += len(rows)
    return names


def _discovery(row: PageRow) -> Discovery:
    return Discovery(row.href, row.key, row.host, row.fingerprint, row.depth, "other", 0)
