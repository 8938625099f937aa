"""What site owners publish: lists of URLs, or a changed sitemap. The web layer receives them.

A publication is an offer. It never widens the scope or bypasses politeness, and the number of fetches it can cause is
bounded. A known page is read again at once only if the publisher proves to be entitled, by a token of this warehouse;
the other proof, a hub at which this warehouse subscribed, is in `quadloom.crawling.subscriptions.websub`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.documents.extract import seed_discoveries
from quadloom.errors import UrlError, UsageError
from quadloom.model.link import CHANGE_FREQUENCIES, Discovery, stated_rhythm
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier, ScopeRules

MAX_URLS = 1000  # in one publication
_REMEMBERED = 10_000  # published URLs, the newest
PUBLISHED = NamedValue("published", list[str])
"""Keys of pages that entitled owners published. A publication links to them, as a virtual page of the web: a page that
nobody links to has its importance from there (Xyleme's paper, on publication)."""


class PublishReport(msgspec.Struct, frozen=True):
    """What was done with the URLs of a publication; the numbers add up to those offered."""

    new: int = 0
    refreshed: int = 0
    known: int = 0
    refused: int = 0  # out of scope
    invalid: int = 0  # not a URL, or named twice

    def __add__(self, other: PublishReport) -> PublishReport:
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return PublishReport(*(one + another for one, another in pairs))


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Control request `publish`: a list of `urls`, or the address of a `sitemap`, or both. `changefreq`: how often
    these pages change, as their owner says; a word of sitemaps.org, or "7 days"."""

    urls: list[str] = []
    sitemap: str = ""
    owner: bool = False
    changefreq: str = ""


def accept(publication: Publication, *, frontier: Frontier, scope: ScopeRules, now: float) -> PublishReport:
    """Queue the published URLs and the sitemap. Raises `UsageError` if there are none, or too many."""
    if not publication.urls and not publication.sitemap:
        raise UsageError("the publication is empty", hint="name URLs, or a sitemap")
    if publication.changefreq and not stated_rhythm(publication.changefreq):
        raise UsageError(
            f"there is no changefreq {publication.changefreq[:30]!r}",
            hint=f"known are {', '.join(CHANGE_FREQUENCIES)}, and numbers with a unit: 7 days",
        )
    done = publish(frontier, scope, publication.urls, now, owner=publication.owner)
    return done + ping_sitemap(frontier, scope, publication.sitemap, now) if publication.sitemap else done


def remember_published(catalog: Catalog, scope: ScopeRules, publication: Publication) -> None:
    """Let the pages of an entitled owner gain importance from their publication."""
    if not publication.owner:
        return
    inside = [item.key for item in _parsed(publication.urls) if scope.verdict(item.href, item.host, item.depth) is None]
    if inside:
        both = dict.fromkeys([*reversed(inside), *(PUBLISHED.get(catalog) or ())])
        with catalog.transaction():
            PUBLISHED.put(catalog, list(both)[:_REMEMBERED])


def pushed(publication: Publication, published: PublishReport) -> list[str]:
    """Pages that an entitled owner announced as changed; their visits are better evidence for the schedule."""
    if not publication.owner or not published.refreshed:
        return []
    return [item.href for item in _parsed(publication.urls)]


def rhythm_of(publication: Publication) -> tuple[list[str], float]:
    """The pages whose rhythm an entitled owner states, and the seconds between two of their changes."""
    rhythm = stated_rhythm(publication.changefreq) if publication.owner else 0.0
    return ([item.href for item in _parsed(publication.urls)] if rhythm else []), rhythm


def publish(
    frontier: Frontier, scope: ScopeRules, urls: Sequence[str], now: float, *, owner: bool = False
) -> PublishReport:
    """Queue new URLs before ordinary links; read known ones again if the publisher is the owner."""
    if len(urls) > MAX_URLS:
        raise UsageError(
            f"the publication has {len(urls)} URLs; at most {MAX_URLS} are allowed",
            hint="divide it, or ping a sitemap",
        )
    found = _parsed(urls)
    inside = [item for item in found if scope.verdict(item.href, item.host, item.depth) is None]
    known = [item for item in inside if frontier.explain(item.key, now) is not None]
    keys = {item.key for item in known}
    added = frontier.add([item for item in inside if item.key not in keys], now)
    refreshed = frontier.request(known, now) if owner and known else 0
    return PublishReport(
        new=added.new,
        refreshed=refreshed,
        known=added.known + len(known) - refreshed,
        refused=added.refused + len(found) - len(inside),
        invalid=len(urls) - len(found),
    )


def ping_sitemap(frontier: Frontier, scope: ScopeRules, url: str, now: float) -> PublishReport:
    """Queue a changed sitemap. It is read as soon as politeness allows; its pages follow by their own dates."""
    item = seed_discoveries([url], kind="sitemap", priority=1)[0]
    if scope.verdict(item.href, item.host, item.depth) is not None:
        return PublishReport(refused=1)
    if frontier.explain(item.key, now) is None:
        return PublishReport(new=frontier.add([item], now).new)
    return PublishReport(refreshed=frontier.request([item], now))


def _parsed(urls: Sequence[str]) -> list[Discovery]:
    """Each page once, without invalid URLs."""
    found: dict[str, Discovery] = {}
    for text in urls:
        try:
            item = seed_discoveries([text], kind="published", priority=1)[0]
        except UrlError:
            continue
        found.setdefault(item.key, item)
    return list(found.values())
