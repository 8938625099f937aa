"""What a response says in its `Link` headers (RFC 8288): further links, and the hub that announces its changes.

Linked data servers name alternates, descriptions and canonical URLs there, also for bodies that carry no links. A hub
(WebSub, section 4) is named in the headers or else in the page's own head; headers take precedence, as the
Recommendation says. A feed's own links precede those of its entries, which have names of their own, so nothing after
the first entry counts. JSON Feed has no `self`; the page's address stands in.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

import msgspec

from quadloom.documents.link_headers import HeaderLink, of_headers
from quadloom.model.document import PushOffer, Transformed
from quadloom.model.link import Link, LinkKind
from quadloom.model.page import Page
from quadloom.model.url import resolve

_KINDS: dict[str, LinkKind] = {
    "alternate": "alternate", "describedby": "describedby", "canonical": "canonical", "next": "next", "prev": "next",
    "first": "next", "last": "next", "search": "search", "item": "item",
}  # fmt: skip
_FEEDS = frozenset(("application/rss+xml", "application/atom+xml", "application/feed+json"))
# Hints for browsers, not documents to read.
_IGNORED = frozenset(("preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "stylesheet", "icon"))


def with_header_links(transformed: Transformed, page: Page) -> Transformed:
    """The page with its header links added; a canonical name in the body takes precedence."""
    stated = of_headers(page.headers, page.final_url)
    if not stated:
        return transformed
    links = [link for item in stated if (link := _link(item, page.final_url)) is not None]
    canonical = next((link.target for link in links if link.kind == "canonical"), "")
    facts = transformed.facts
    if canonical and not facts.canonical:
        facts = msgspec.structs.replace(facts, canonical=canonical)
    return msgspec.structs.replace(transformed, facts=facts, links=transformed.links + tuple(links))


def _link(item: HeaderLink, source: str) -> Link | None:
    words = item.rel.split()
    target = resolve(item.target, source)
    if target is None or not words or _IGNORED.intersection(words):
        return None
    kind: LinkKind = next((_KINDS[word] for word in words if word in _KINDS), "typed")
    if kind == "alternate" and item.type in _FEEDS:
        kind = "feed"
    return Link(target, source, kind, "", item.rel)


_LONGEST = 2000  # characters of an address that is sent to a hub


def push_offer(page: Page, transformed: Transformed) -> PushOffer | None:
    """The hub and topic that a page names; None = it names no hub."""
    headers = of_headers(page.headers, page.final_url)
    offer = _offer(((link.rel, link.target) for link in headers if not link.anchor), page.final_url)
    if offer is None:
        elsewhere = {link.target for link in headers}  # also among the page's links, but about another page
        own = takewhile(lambda link: link.kind != "item", transformed.links)
        stated = ((link.rel, link.target) for link in own if link.rel and link.target not in elsewhere)
        offer = _offer(stated, page.final_url)
    return offer


def _offer(links: Iterable[tuple[str, str]], url: str) -> PushOffer | None:
    hub = topic = ""
    for rel, target in links:
        words = rel.split()
        if "hub" in words:
            hub = hub or target
        elif "self" in words:
            topic = topic or target
    if not hub or max(len(hub), len(topic or url)) > _LONGEST:
        return None
    return PushOffer(topic or url, hub)
