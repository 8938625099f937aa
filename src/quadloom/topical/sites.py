"""What a topical crawl knows of a site: seed, channel, questions asked, what they brought."""

from __future__ import annotations

import msgspec

from quadloom.model.url import host_of
from quadloom.topical.search.channels import SearchChannel
from quadloom.topical.search.queries import Mode, QueryTerm


class SeedSite(msgspec.Struct, frozen=True):
    """A site to look into, with the score that web search gave it."""

    home: str
    score: float = 1.0

    @property
    def host(self) -> str:
        return host_of(self.home)


class Ratio:
    """What came against what was expected, with imagined observations that pull it towards their own ratio."""

    __slots__ = ("came", "expected")

    def __init__(self, came: float, expected: float) -> None:
        self.came = came
        self.expected = expected

    def add(self, came: float, expected: float) -> None:
        self.came += came
        self.expected += expected

    @property
    def value(self) -> float:
        return self.came / self.expected if self.expected else 1.0


class Arm:
    """One query on one site. `terms` are those it was made of, none for the topic's own words."""

    __slots__ = ("done", "last_mass", "next_url", "pages", "query", "shown", "terms", "total")

    def __init__(self, query: str, terms: tuple[QueryTerm, ...]) -> None:
        self.query = query
        self.terms = terms
        self.pages = 0
        self.shown = 0
        self.total = -1
        self.next_url = ""
        self.last_mass = 0.0
        self.done = False


class TopicalSite:
    """State of one site; `version` grows with every change, so that choices can be remembered."""

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
        self.first_mass = 0.0  # estimated relevant documents that opening showed
        self.ratio = Ratio(2.0, 2.0)
        self.furniture: frozenset[str] = frozenset()
        self.hubs: list[str] = []
        self.hubs_read = 0
        self.version = 0
        self.cached_key: tuple[int, int] = (-1, -1)
        self.cached: tuple[float, Arm | None, str] | None = None
