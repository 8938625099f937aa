"""A link as a page states it, a discovery as the frontier receives it, and what owners say about its rhythm."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

LinkKind = Literal[
    "plain",  # <a href>, <area href> without a telling rel
    "typed",  # any rel that is not listed below (author, license, tag, …); the words are in `rel`
    "next",  # rel=next, rel=prev, first, last: paging within one listing
    "alternate",  # another representation: hreflang, AMP, RDF, print
    "feed",  # RSS, Atom, JSON Feed
    "canonical",  # the page's own name for itself
    "describedby",  # metadata about the page: RDF, POWDER, JSON-LD
    "search",  # OpenSearch description
    "seealso",  # rdfs:seeAlso, owl:sameAs: linked data's hyperlinks
    "vocabulary",  # a class or property IRI that could be dereferenced
    "sitemap",  # listed in a sitemap, or a sitemap itself
    "item",  # entry of a feed
    "embed",  # frame, iframe, object
    "image",
    "redirect",
    "stylesheet",  # GRDDL transformation, XSLT: needed by the loader
    "seed",  # asked for by the user
    "published",  # announced by a site owner (ping, WebSub, POST /publish)
    "result",  # found on a site's own search page
    "other",  # an IRI in the data that could be visited
]


_DAY = 86_400.0
# The words of sitemaps.org. "always" and "never" are not rhythms; these stand for what they mean to a scheduler.
CHANGE_FREQUENCIES: dict[str, float] = {
    "always": 900.0,
    "hourly": 3600.0,
    "daily": _DAY,
    "weekly": 7.0 * _DAY,
    "monthly": 30.4 * _DAY,
    "yearly": 365.25 * _DAY,
    "never": 3652.5 * _DAY,
}
_UNITS = {"minute": 60.0, "hour": 3600.0, "day": _DAY, "week": 7.0 * _DAY, "month": 30.4 * _DAY, "year": 365.25 * _DAY}
_NUMBER_AND_UNIT = re.compile(r"(\d{1,4}) ?(minute|hour|day|week|month|year)s?", re.ASCII)


class Link(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """`source` says of `target`: this `kind`, with these words. `nofollow` links are seen but not followed."""

    target: str
    source: str
    kind: LinkKind = "plain"
    anchor: str = ""
    rel: str = ""
    nofollow: bool = False


class Discovery(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A URL offered to the frontier, with its source, depth and urgency.

    `priority`: 0 the loader's needs and explicit requests, 1 seeds and publications, 2 suspects of structured data,
    3 ordinary, 4 unlikely. Within one priority the frontier goes breadth-first by `depth`.
    `lastmod`: unix time from a sitemap or feed, 0 = unknown. `rhythm`: seconds between changes that the owner states.
    """

    href: str
    key: str
    host: str
    fingerprint: int
    depth: int
    kind: LinkKind = "plain"
    priority: int = 3
    via: int = 0  # fingerprint of the source page, 0 for seeds
    anchor: str = ""
    lastmod: float = 0.0
    score: float = 0.0  # larger goes first within priority and depth; scheduling and topics write it
    rhythm: float = 0.0


def stated_rhythm(text: str) -> float:
    """Seconds between two changes, from a word of sitemaps.org or a number with a unit ("7 days"); 0 = neither."""
    word = text.strip().lower()[:40]
    if word in CHANGE_FREQUENCIES:
        return CHANGE_FREQUENCIES[word]
    found = _NUMBER_AND_UNIT.fullmatch(word)
    return int(found[1]) * _UNITS[found[2]] if found else 0.0
