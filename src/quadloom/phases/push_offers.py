"""Which hub a page names (WebSub, section 4): in its `Link` headers, else in its own head.

Headers go before the body, as the Recommendation has it. A feed's own links stand before its entries', which have
names of their own; so nothing after the first entry counts. JSON Feed has no `self`; the page's address stands in.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from quadloom.fetching.link_headers import of_headers
from quadloom.model.document import Transformed
from quadloom.model.page import Page
from quadloom.model.push import PushOffer

_LONGEST = 2000  # characters of an address that is sent to a hub


def push_offer(page: Page, transformed: Transformed) -> PushOffer | None:
    """None = the page names no hub."""
    headers = of_headers(page.headers, page.final_url)
    offer = _offer(((link.rel, link.target) for link in headers if not link.anchor), page.final_url)
    if offer is None:
        elsewhere = {link.target for link in headers}  # among the page's links, too, but said of another page
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
