"""What site owners tell us: lists of URLs, or a changed sitemap. The web layer takes them in.

Publication is an offer, not an order. It never widens the scope, it never goes round politeness, and what it can make
us fetch is bounded. A page known already is asked for again at once only where the publisher proves to be entitled, by
a token of this warehouse; the other proof, a hub that we subscribed at ourselves, is in
`quadloom.subscriptions.websub`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from quadloom.errors import UrlError, UsageError
from quadloom.model.link import Discovery
from quadloom.phases.extract import seed_discoveries
from quadloom.stores.protocols.frontier import Frontier, ScopeRules

LIST = 1000  # URLs in one publication


class PublishReport(msgspec.Struct, frozen=True):
    """What became of a publication; the numbers add up to the URLs offered."""

    new: int = 0
    refreshed: int = 0
    known: int = 0
    refused: int = 0  # out of scope
    invalid: int = 0

    def __add__(self, other: PublishReport) -> PublishReport:
        ours, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return PublishReport(*(mine + its for mine, its in zip(ours, theirs, strict=True)))


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Control request `publish`: a list of `urls`, or the address of a `sitemap`, or both."""

    urls: list[str] = []
    sitemap: str = ""
    owner: bool = False


def accept(publication: Publication, *, frontier: Frontier, scope: ScopeRules, now: float) -> PublishReport:
    """Do it, and say what became of it."""
    if not publication.urls and not publication.sitemap:
        raise UsageError("there is nothing in the publication", hint="name URLs, or a sitemap")
    done = publish(frontier, scope, publication.urls, now, owner=publication.owner)
    return done + ping_sitemap(frontier, scope, publication.sitemap, now) if publication.sitemap else done


def pushed(publication: Publication, published: PublishReport) -> list[str]:
    """Pages whose change the owner of their site vouches for. Their visits tell the schedule more than others."""
    if not publication.owner or not published.refreshed:
        return []
    return [item.href for item in _parsed(publication.urls)[0]]


def publish(
    frontier: Frontier, scope: ScopeRules, urls: Sequence[str], now: float, *, owner: bool = False
) -> PublishReport:
    """POST of a URL list: new ones are queued before ordinary links, known ones read again where the owner says so."""
    if len(urls) > LIST:
        raise UsageError(f"{len(urls)} URLs in one publication", hint=f"send {LIST} at most, or ping a sitemap")
    found, invalid = _parsed(urls)
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
        invalid=invalid,
    )


def ping_sitemap(frontier: Frontier, scope: ScopeRules, url: str, now: float) -> PublishReport:
    """A sitemap has changed. It is read as soon as politeness allows; what it lists follows by its own dates."""
    item = seed_discoveries([url], kind="sitemap", priority=1)[0]
    if scope.verdict(item.href, item.host, item.depth) is not None:
        return PublishReport(refused=1)
    if frontier.explain(item.key, now) is None:
        return PublishReport(new=frontier.add([item], now).new)
    return PublishReport(refreshed=frontier.request([item], now))


def _parsed(urls: Sequence[str]) -> tuple[list[Discovery], int]:
    """Each page once, and how many were no web address (or named twice)."""
    found: dict[str, Discovery] = {}
    for text in urls:
        try:
            item = seed_discoveries([text], kind="published", priority=1)[0]
        except UrlError:
            continue
        found.setdefault(item.key, item)
    return list(found.values()), len(urls) - len(found)
