"""What share of sites can be searched, and how: the paper's table 1, for any list of sites."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import msgspec

from quadloom.topical.access import RequestSequence
from quadloom.topical.search.channels import SearchChannel, open_site
from quadloom.topical.sites import SeedSite


class SurveyedSite(msgspec.Struct, frozen=True):
    """A site and its search channel. `reached`: its home page could be fetched."""

    home: str
    channel: SearchChannel
    reached: bool
    tried: tuple[str, ...] = ()


class Survey:
    """A strategy that opens every site once."""

    name = "survey"

    def __init__(self, seeds: Sequence[SeedSite], random: Random, now: float) -> None:
        self._waiting = list(seeds)
        self._nonsense = f"zq{random.getrandbits(40):x}x"
        self._now = now
        self.lines: list[SurveyedSite] = []

    def next(self, busy: set[str]) -> tuple[str, RequestSequence[None]] | None:
        seed = next((seed for seed in self._waiting if seed.host not in busy), None)
        if seed is None:
            return None
        self._waiting.remove(seed)
        return seed.host, self._open(seed)

    def _open(self, seed: SeedSite) -> RequestSequence[None]:
        opening = yield from open_site(seed.home, "information", self._nonsense, self._now)
        self.lines.append(SurveyedSite(seed.home, opening.channel, opening.home is not None, opening.tried))


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
