"""What a correct crawler must find, computed from the plan of the web, not from its bytes.

`reachable` holds every page that a polite crawler has to ask for: through links, redirects, feed entries and
sitemaps, within scope, as robots.txt, nofollow and X-Robots-Tag allow. It excludes what a crawler may skip
(traps, session ids, facets, searches, images, stylesheets, IRIs in data), robots.txt and the sitemap files themselves.
So a crawl is right if it asked for all of these, and for nothing that `FakeWeb.allowed` denies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from quadloom_lab.fakeweb.content.bodies import body_of, latest, neighbours, redirect_target
from quadloom_lab.fakeweb.content.site_files import SiteSearch, allowed, sitemap_refs
from quadloom_lab.fakeweb.exchange import FakeRequest, FakeResponse
from quadloom_lab.fakeweb.sites.hosts import HostPlan
from quadloom_lab.fakeweb.sites.layout import Layout, PageRef
from quadloom_lab.fakeweb.sites.links import OPTIONAL, links_of
from quadloom_lab.fakeweb.sites.traits import traits_of, vanished

Scope = Literal["page", "host", "site", "any"]


class ExpectedResponse(msgspec.Struct, frozen=True):
    """What a GET of one URL must return. `items`: things per syntax, entries of a list, nodes and triples of RDF."""

    url: str
    status: int
    kind: str = ""  # a word of `quadloom.model.document.Kind`, by content; empty unless the status is 200
    media_type: str = ""  # as labelled, which may be wrong
    title: str = ""
    location: str = ""
    items: dict[str, int] = {}
    trap: bool = False


def expected(
    layout: Layout, answer: Callable[[FakeRequest], FakeResponse], revision: int, url: str
) -> ExpectedResponse:
    parts = urlsplit(url)
    given = answer(FakeRequest(parts.netloc, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")))
    ref = layout.locate(url)
    media_type = given.header("Content-Type").partition(";")[0]
    if given.status != 200 or ref is None:
        return ExpectedResponse(url, given.status, media_type=media_type, location=given.header("Location"))
    body = body_of(layout, SiteSearch(layout), ref, revision)
    if body is None:
        raise AssertionError(f"an answer of 200 without a body: {url}")
    trap = ref.area in ("calendar", "facet") or "PHPSESSID" in url
    return ExpectedResponse(url, 200, body.kind, media_type, body.title, "", dict(body.items), trap)


def reachable(layout: Layout, revision: int, seeds: list[str], scope: Scope, sitemaps: bool, agent: str) -> set[str]:
    inside = _scope(layout, seeds, scope)
    found: set[str] = set()
    entered: set[int] = set()
    queue = deque(seeds)
    while queue:
        url = queue.popleft()
        ref_host = _host(layout, url)
        if url in found or ref_host is None or not inside(url, ref_host):
            continue
        if not allowed(ref_host, url[len(layout.bases[ref_host.index]) :] or "/", agent):
            continue
        found.add(url)
        ref = layout.locate(url)
        if ref is not None and not vanished(layout, ref, revision):
            queue.extend(target for target in _leads(layout, ref, revision) if target not in found)
        if sitemaps and ref_host.index not in entered and ref_host.robots != "none" and scope != "page":
            entered.add(ref_host.index)
            queue.extend(_listed(layout, ref_host, revision))
    return found


def _host(layout: Layout, url: str) -> HostPlan | None:
    return layout.host_of(urlsplit(url).netloc)


def _scope(layout: Layout, seeds: list[str], scope: Scope) -> Callable[[str, HostPlan], bool]:
    starts = [host for host in (_host(layout, seed) for seed in seeds) if host is not None]
    hosts = {host.index for host in starts}
    domains = {host.domain for host in starts}
    match scope:
        case "any":
            return lambda url, host: True
        case "page":
            return lambda url, host: url in seeds
        case "site" if layout.spec.addressing == "names":
            return lambda url, host: host.domain in domains
        case _:  # an address or a port stands for a site of its own
            return lambda url, host: host.index in hosts


def _leads(layout: Layout, ref: PageRef, revision: int) -> Iterator[str]:
    """URLs that the page gives a crawler to follow."""
    if ref.area == "special" and (target := redirect_target(layout, ref)):
        yield target
    elif ref.area == "special" and layout.special(layout.hosts[ref.host], ref.number) not in ("slow", "flaky"):
        return
    elif ref.area == "id":
        yield layout.url(PageRef(ref.host, "page", ref.number))
    elif ref.area == "feed":
        yield from (entry.url for entry in latest(layout, ref, revision).entries)
    elif ref.area == "item" and layout.form(ref.host, ref.number) != "html":
        if layout.form(ref.host, ref.number) in ("rss", "atom", "rss1", "jsonfeed"):
            yield from (entry.url for entry in neighbours(layout, ref, revision).entries)
    elif ref.area in ("data", "photo", "style", "opensearch", "robots", "sitemap"):
        return
    elif ref.area != "item" or "nofollow" not in traits_of(layout, ref).robots:
        for link in links_of(layout, ref, revision):
            if link.role not in OPTIONAL and not link.nofollow:
                yield link.url


def _listed(layout: Layout, host: HostPlan, revision: int) -> Iterator[str]:
    if host.sitemap == "none":
        return
    for ref in sitemap_refs(layout, host, 0, revision):
        if ref.area == "sitemap":
            yield from (layout.url(page) for page in sitemap_refs(layout, host, ref.number, revision))
        else:
            yield layout.url(ref)
