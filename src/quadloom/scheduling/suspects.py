"""Which unread URLs are likely to be structured data: the paper's "XML suspects", with probabilities that are learned.

A URL has three witnesses: its suffix (with the kind of page it was found on), the kind of link that led to it, and the
record of its site. Each starts with the odds below and learns from first reads: every outcome moves the counts of the
suffix, of the link kind and of the site. The odds are combined as independent witnesses, log-odds against the base
rate added up. What comes out above one half goes into σ_X's share.
"""

from __future__ import annotations

import math

import msgspec

from quadloom.model.link import LinkKind

# Expected share of structured data before anything was read, and how many reads that expectation is worth.
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
DATA_KINDS = frozenset(
    {
        "xml",
        "rdfxml",
        "turtle",
        "trig",
        "ntriples",
        "nquads",
        "jsonld",
        "rss",
        "atom",
        "jsonfeed",
        "opml",
        "wsdl",
        "xsd",
    }
)
_BASE = 0.2
_FROM_DATA = 0.6  # an unknown suffix found on a data page is a suspect by the paper's rule
_WORTH = 8.0  # reads that a first guess is worth


class Suspicion(msgspec.Struct, frozen=True):
    """Probability of structured data, and (witness, its own probability) for people."""

    probability: float
    witnesses: tuple[tuple[str, float], ...]

    @property
    def suspect(self) -> bool:
        return self.probability > 0.5


class Suspects:
    """Learns while the crawl runs; `dump` and the constructor carry the counts over a restart."""

    def __init__(self, counts: dict[str, tuple[float, float]] | None = None, *, limit: int = 200_000) -> None:
        self._counts: dict[str, tuple[float, float]] = dict(counts or {})
        self._limit = limit  # names kept; hostile sites can invent suffixes without end

    def suspicion(self, href: str, site: str, kind: LinkKind = "plain", source_kind: str = "") -> Suspicion:
        base = self._rate("", _BASE)
        witnesses = [
            (f"suffix {suffix_of(href) or '(none)'}", self._rate(*_suffix_guess(href, source_kind))),
            (f"link {kind}", self._rate("kind:" + kind, _KINDS.get(kind, _BASE))),
            (f"site {site}", self._rate("site:" + site, base)),
        ]
        odds = _logit(base) + sum(_logit(rate) - _logit(base) for _, rate in witnesses)
        return Suspicion(1.0 / (1.0 + math.exp(-max(min(odds, 50.0), -50.0))), tuple(witnesses))

    def learn(self, href: str, site: str, kind: LinkKind, source_kind: str, structured: bool) -> None:
        """A first read of `href` brought structured data, or not."""
        for name in ("", _suffix_guess(href, source_kind)[0], "kind:" + kind, "site:" + site):
            found, read = self._counts.get(name, (0.0, 0.0))
            if read or len(self._counts) < self._limit:
                self._counts[name] = (found + structured, read + 1.0)

    def dump(self) -> dict[str, tuple[float, float]]:
        return dict(self._counts)

    def _rate(self, name: str, guess: float) -> float:
        found, read = self._counts.get(name, (0.0, 0.0))
        return (found + _WORTH * guess) / (read + _WORTH)


def suffix_of(href: str) -> str:
    """`.xml` of the last path segment, in lower case; empty = none or too long to be one."""
    path = href.partition("?")[0]
    name = path.rpartition("/")[2] if path.count("/") > 2 else ""
    dot = name.rfind(".")
    return name[dot:].lower() if dot >= 0 and 1 < len(name) - dot <= 8 else ""


def _suffix_guess(href: str, source_kind: str) -> tuple[str, float]:
    """Name under which the suffix is counted, and its first guess."""
    suffix = suffix_of(href)
    if suffix in _SUFFIXES:
        return "suffix:" + suffix, _SUFFIXES[suffix]
    if source_kind in DATA_KINDS:
        return "from-data:" + suffix, _FROM_DATA
    return "suffix:" + suffix, _BASE


def _logit(probability: float) -> float:
    return math.log(probability / (1.0 - probability))
