"""One visit for `inspect`: as the crawl would make it, robots.txt and redirects included, but nothing is kept."""

from __future__ import annotations

import msgspec

from quadloom.fetching.fetcher import Fetcher, FetchResult
from quadloom.fetching.http.transport import CurlTransport
from quadloom.model.page import Failure, Hop, Page
from quadloom.model.url import Url, host_of, resolve
from quadloom.model.visit import Visit
from quadloom.settings import Settings


class InspectVisit(msgspec.Struct, frozen=True):
    """What the site answered, by which way, and what its robots.txt says."""

    result: Page | Failure
    hops: tuple[Hop, ...]
    robots: str


def visit(href: str, settings: Settings) -> InspectVisit:
    """Fetch a page politely, following redirects as visits of their own. Raises `UrlError` for what is no URL."""
    hops: tuple[Hop, ...] = ()
    fetcher = Fetcher(settings, CurlTransport(settings))
    try:
        fetched = _fetch(fetcher, href, 0.0)
        while isinstance(fetched.result, Page) and fetched.result.hops and len(hops) < settings.limits.redirects:
            hop = fetched.result.hops[-1]
            hops = (*hops, hop)
            target = resolve(hop.location)
            if target is None:
                break
            same_host = host_of(target) == host_of(hop.url)
            fetched = _fetch(fetcher, target, fetched.pace.next_at if same_host else 0.0)
    finally:
        fetcher.close()
    return InspectVisit(fetched.result, hops, _robots(fetched.result, settings))


def _fetch(fetcher: Fetcher, href: str, not_before: float) -> FetchResult:
    url = Url.parse(href)
    fetcher.submit([Visit(url.href, url.key, url.host, url.fingerprint, priority=0, not_before=not_before)])
    while not (fetched := fetcher.step(1.0)):
        pass
    return fetched[0]


def _robots(result: Page | Failure, settings: Settings) -> str:
    if settings.politeness.robots == "ignore":
        return "ignored"
    if isinstance(result, Page) or result.status:
        return "allowed"
    if result.kind == "robots":
        return "disallowed"
    return "unavailable" if result.message.startswith("robots.txt") else "unknown"
