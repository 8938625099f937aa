"""What share of sites can be searched, and how: the paper's table 1, for any list of sites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import NamedTuple

import msgspec

from quadloom.crawling.topical.access import RequestSequence
from quadloom.crawling.topical.run import KnownPages
from quadloom.crawling.topical.search.channels import SearchChannel, open_site
from quadloom.crawling.topical.sites import SeedSite


class SurveyedSite(msgspec.Struct, frozen=True):
    """A site and its search channel. `reached`: its home page could be fetched."""

    home: str
    channel: SearchChannel
    reached: bool
    tried: tuple[str, ...] = ()
    category: str = ""


class Survey:
    """A strategy that opens every site once."""

    name = "survey"

    def __init__(
        self, seeds: Sequence[SeedSite], random: Random, now: float, categories: Mapping[str, str] | None = None
    ) -> None:
        """`categories`: by home page."""
        self._waiting = list(seeds)
        self._categories = categories or {}
        self._nonsense = f"zq{random.getrandbits(40):x}x"
        self._now = now
        self.lines: list[SurveyedSite] = []

    def next(self, busy: set[str]) -> tuple[str, RequestSequence[None]] | None:
        seed = next((seed for seed in self._waiting if seed.host not in busy), None)
        if seed is None:
            return None
        self._waiting.remove(seed)
        return seed.host, self._open(seed)

    def waiting(self) -> KnownPages:
        return KnownPages()

    def _open(self, seed: SeedSite) -> RequestSequence[None]:
        opening = yield from open_site(seed.home, "information", self._nonsense, self._now)
        reached = opening.home is not None
        category = self._categories.get(seed.home, "")
        self.lines.append(SurveyedSite(seed.home, opening.channel, reached, opening.tried, category))


class KindShare(NamedTuple):
    """How many sites have a channel of this kind; `share`: of the sites that were reached."""

    kind: str
    sites: int
    share: float


def shares(lines: Sequence[SurveyedSite]) -> list[KindShare]:
    """The kinds of channels, most common first."""
    reached = [line for line in lines if line.reached]
    counts = Counter(line.channel.kind for line in reached)
    return [KindShare(kind, count, count / len(reached)) for kind, count in counts.most_common()]


class CategoryShare(NamedTuple):
    """A row of the paper's table 1: sites of a category that were reached, and those that can be searched."""

    category: str
    sites: int
    searchable: int
    share: float


def by_category(lines: Sequence[SurveyedSite]) -> list[CategoryShare]:
    """One row per category in the order of the sites, and one for all together if there are several."""
    groups: dict[str, list[SurveyedSite]] = {}
    for line in lines:
        if line.reached:
            groups.setdefault(line.category, []).append(line)
    if len(groups) > 1:
        groups["all"] = [line for group in groups.values() for line in group]
    rows = []
    for category, group in groups.items():
        searchable = sum(line.channel.searchable for line in group)
        rows.append(CategoryShare(category, len(group), searchable, searchable / len(group)))
    return rows
