"""What a topical crawl knows about a site: seed, channel, queries sent, results."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from quadloom.crawling.topical.search.channels import SearchChannel
from quadloom.crawling.topical.search.queries import Mode, QueryTerm
from quadloom.model.url import host_of


class SeedSite(msgspec.Struct, frozen=True):
    """A site to crawl, with its score from web search."""

    home: str
    score: float = 1.0

    @property
    def host(self) -> str:
        return host_of(self.home)


class Ratio:
    """Observed over expected results. It starts with imagined observations, which pull it towards their own ratio."""

    __slots__ = ("expected", "observed")

    def __init__(self, observed: float, expected: float) -> None:
        self.observed = observed
        self.expected = expected

    def add(self, observed: float, expected: float) -> None:
        self.observed += observed
        self.expected += expected

    @property
    def value(self) -> float:
        return self.observed / self.expected if self.expected else 1.0


class Arm:
    """One query on one site, an arm in the sense of bandits. `terms`: its learned terms, none for the topic's words."""

    __slots__ = ("done", "last_mass", "next_fields", "next_url", "pages", "query", "shown", "terms", "total")

    def __init__(self, query: str, terms: tuple[QueryTerm, ...]) -> None:
        self.query = query
        self.terms = terms
        self.pages = 0
        self.shown = 0
        self.total = -1
        self.next_url = ""
        self.next_fields: tuple[tuple[str, str], ...] = ()
        self.last_mass = 0.0
        self.done = False


class SiteAction(NamedTuple):
    """The best next request to a site's search. `value`: documents per request."""

    value: float
    arm: Arm


class TopicalSite:
    """The state of one site. `version` grows with every change, so that a choice can be cached."""

    def __init__(self, seed: SeedSite) -> None:
        self.seed = seed
        self.host = seed.host
        self.channel: SearchChannel | None = None
        self.opened = False
        self.arms: dict[str, Arm] = {}
        self.bundled: set[str] = set()
        self.mode: Mode = "unknown"
        self.page_size = 0
        self.relevant = 0
        self.pending = 0.0  # estimated relevant documents among queued candidates
        self.requests = 0
        self.opening_cost = 0
        self.first_mass = 0.0  # estimated relevant documents found by opening
        self.ratio = Ratio(2.0, 2.0)
        self.boilerplate: frozenset[str] = frozenset()
        self.version = 0
        self.cached_key: tuple[int, int] = (-1, -1)
        self.cached: SiteAction | None = None
