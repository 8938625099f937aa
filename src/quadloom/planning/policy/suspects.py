"""Which unread URLs are likely to be structured data: the paper's "XML suspects", with learned probabilities.

Three features of a URL count: its suffix (with the kind of page it was found on), the kind of link that led to it, and
its site. Each starts with the odds below and learns from first reads: every outcome changes the counts of the suffix,
of the link kind and of the site. The odds are combined as independent evidence: log-odds against the base rate are
added. URLs above one half go into the share σ_X.

The crawl classifies every URL it finds, so a decision must cost less than a microsecond: URLs with the same features
share a decision, which is cached until enough has been learned to change it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

from quadloom.model.link import Discovery, LinkKind
from quadloom.model.url import site_of

# Expected share of structured data before anything was read; `_WORTH` says how many reads this counts.
_SUFFIXES: dict[str, float] = {
    ".xml": 0.95, ".rdf": 0.97, ".owl": 0.97, ".ttl": 0.97, ".nt": 0.97, ".nq": 0.97, ".n3": 0.95, ".trig": 0.97,
    ".jsonld": 0.97, ".rss": 0.95, ".atom": 0.95, ".opml": 0.9, ".wml": 0.8, ".xsd": 0.9, ".wsdl": 0.9, ".svg": 0.5,
    ".json": 0.6, ".xhtml": 0.4, ".foaf": 0.95, ".skos": 0.95, ".jpg": 0.01, ".jpeg": 0.01, ".png": 0.01, ".gif": 0.01,
    ".css": 0.01, ".js": 0.01, ".zip": 0.01, ".pdf": 0.02, ".html": 0.2, ".htm": 0.15, ".txt": 0.03,
}  # fmt: skip
_KINDS: dict[str, float] = {
    "feed": 0.95, "describedby": 0.9, "seealso": 0.75, "vocabulary": 0.7, "alternate": 0.5, "sitemap": 0.3,
    "published": 0.5, "search": 0.9, "item": 0.35, "image": 0.01, "stylesheet": 0.1, "other": 0.4,
}  # fmt: skip
DATA_KINDS = frozenset((
    "xml", "rdfxml", "turtle", "trig", "ntriples", "nquads", "jsonld", "rss", "atom", "jsonfeed", "opml", "wsdl", "xsd",
))  # fmt: skip
# A sitemap is not data for users, but it confirms the suspicion that its URL leads to XML.
_CONFIRMING = DATA_KINDS | {"sitemap", "sitemapindex", "opensearch"}
_BASE = 0.2
_FROM_DATA = 0.6  # an unknown suffix found on a data page is a suspect by the paper's rule
_WORTH = 8.0  # reads that a first guess is worth
_ENOUGH = 1000.0  # reads after which counts are halved, so that estimates follow a site that changes
_MAX_CACHED = 65_536
_CACHE_READS = 64  # first reads after which the cache is cleared


class Suspicion(msgspec.Struct, frozen=True):
    """Probability of structured data, and (feature, its own probability) for people."""

    probability: float
    witnesses: tuple[tuple[str, float], ...]

    @property
    def suspect(self) -> bool:
        return self.probability > 0.5


class FirstRead(NamedTuple):
    """`from_data`: the page that linked to it is structured data. `found_kind`: the kind of the page that was read."""

    href: str
    site: str
    kind: LinkKind
    from_data: bool
    found_kind: str


class SuspectModel:
    """Learns while the crawl runs. `dump` returns the counts, which the constructor takes after a restart."""

    def __init__(self, counts: dict[str, tuple[float, float]] | None = None, *, limit: int = 50_000) -> None:
        self._counts: dict[str, tuple[float, float]] = dict(counts or {})
        self._limit = limit  # names stored; hostile sites can invent any number of suffixes
        self._cache: dict[tuple[str, LinkKind, bool], dict[str, bool]] = {}  # by host, link and source; then suffix
        self._cached = 0
        self._learned = 0  # reads since the cache was cleared

    def classify(self, found: Sequence[Discovery], from_data: bool) -> list[bool]:
        """Which links of one page lead to suspects. `from_data`: the page is structured data."""
        cached: dict[str, bool] = {}
        decisions: list[bool] = []
        host, kind = "", ""
        for item in found:
            if item.host != host or item.kind != kind:  # most links of a page are like the one before
                host, kind = item.host, item.kind
                cached = self._cache.setdefault((host, item.kind, from_data), {})
            suffix = suffix_of(item.href)
            decision = cached.get(suffix)
            if decision is None:
                decision = cached[suffix] = self.suspicion(item.href, site_of(host), item.kind, from_data).suspect
                self._cached += 1
            decisions.append(decision)
        if self._cached > _MAX_CACHED:
            self._clear_cache()
        return decisions

    def _clear_cache(self) -> None:
        self._cache.clear()
        self._cached = self._learned = 0

    def suspicion(self, href: str, site: str, kind: LinkKind = "plain", from_data: bool = False) -> Suspicion:
        """The probability that a URL is structured data, with the evidence."""
        base = self._rate("", _BASE)
        suffix = suffix_of(href)
        where = ", found in data" if from_data and suffix not in _SUFFIXES else ""
        witnesses = [
            (f"suffix {suffix or '(none)'}{where}", self._rate(*_suffix_guess(suffix, from_data))),
            (f"link {kind}", self._rate("kind:" + kind, _KINDS.get(kind, _BASE))),
            (f"site {site}", self._rate("site:" + site, base)),
        ]
        odds = _logit(base) + sum(_logit(rate) - _logit(base) for _, rate in witnesses)
        return Suspicion(1.0 / (1.0 + math.exp(-max(min(odds, 50.0), -50.0))), tuple(witnesses))

    def learn(self, reads: Sequence[FirstRead]) -> None:
        """Record what first reads gave."""
        counts = self._counts
        for href, site, kind, from_data, found_kind in reads:
            structured = float(found_kind in _CONFIRMING)
            for name in ("", _suffix_guess(suffix_of(href), from_data)[0], "kind:" + kind, "site:" + site):
                found, read = counts.get(name, (0.0, 0.0))
                if read >= _ENOUGH:
                    found, read = found / 2.0, read / 2.0
                counts[name] = (found + structured, read + 1.0)
        if len(counts) > self._limit:
            self._shrink()
        self._learned += len(reads)
        if self._learned >= _CACHE_READS:
            self._clear_cache()

    def dump(self) -> dict[str, tuple[float, float]]:
        return dict(self._counts)

    def _shrink(self) -> None:
        """Drop the half with the fewest reads."""
        most_read = sorted(self._counts.items(), key=lambda item: -item[1][1])[: self._limit // 2]
        self._counts = dict(most_read)

    def _rate(self, name: str, guess: float) -> float:
        found, read = self._counts.get(name, (0.0, 0.0))
        return (found + _WORTH * guess) / (read + _WORTH)


def suffix_of(href: str) -> str:
    """The suffix of the last path segment in lower case, such as `.xml`; empty = none, or too long to be one."""
    if href[-5:] == ".html":
        return ".html"  # every third URL: half a microsecond less
    path = href.partition("?")[0] if "?" in href else href
    if "." not in path[-8:]:
        return ""
    slash = path.rfind("/")
    dot = path.rfind(".", slash)
    if dot < 0 or not 1 < len(path) - dot <= 8 or path[slash - 1] == "/":  # the last: a bare host, https://a.org
        return ""
    return path[dot:].lower()


def knows_suffix(href: str) -> bool:
    """Whether the suffix is in the table, so that the page of the link does not matter."""
    return suffix_of(href) in _SUFFIXES


@lru_cache(maxsize=4096)
def _suffix_guess(suffix: str, from_data: bool) -> tuple[str, float]:
    """The name under which the suffix is counted, and its first guess."""
    guess = _SUFFIXES.get(suffix)
    if guess is not None:
        return "suffix:" + suffix, guess
    return ("from-data:" + suffix, _FROM_DATA) if from_data else ("suffix:" + suffix, _BASE)


def _logit(probability: float) -> float:
    return math.log(probability / (1.0 - probability))
