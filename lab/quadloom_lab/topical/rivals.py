"""Our readings of two published rivals that follow links; neither has been checked against its authors' program.

* `SleepingBandits`, after SB-CLASSIFIER (arXiv 2602.11874): links are grouped by the path of tags to them. A group is
  an arm, asleep while it has no unread link. The arm with the highest upper bound of its mean reward gives a link at
  random; the reward is how many targets its page leads to. A classifier of URLs, learned on the way, has probable
  targets fetched at once.
* `Intelligent`, after Aggarwal, Al-Garawi and Yu (2001): the priority of a URL is the product of interest ratios, how
  much more often pages are relevant given its evidence: words of the pages that link to it, parts of its address,
  relevance of the pages that link to it, and relevance of its siblings.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from random import Random

from quadloom.crawling.topical.access import RequestSequence
from quadloom.crawling.topical.anchors import Anchor
from quadloom.crawling.topical.run import RELEVANT, AssessedDocument, KnownPages, TopicalRun, article_links
from quadloom.crawling.topical.sites import SeedSite
from quadloom.documents.words.written_words import words_of
from quadloom.model.url import canonical, host_of

_TOKENS = re.compile(r"[^\W\d_]{2,}|\d+")


class _Rival:
    """What both share: each URL once, only on the hosts of the seeds, one request sequence at a time."""

    def __init__(self, run: TopicalRun, seeds: Sequence[SeedSite], random: Random) -> None:
        self.run = run
        self.random = random
        self.homes = [seed.home for seed in seeds]
        self.hosts = {seed.host for seed in seeds}
        self.seen = {canonical(home) for home in self.homes}

    def waiting(self) -> KnownPages:
        return KnownPages()

    def fresh(self, document: AssessedDocument) -> list[Anchor]:
        """The links of a page that were not seen before; they count as seen from now on."""
        links = [a for a in article_links(document.outline) if a.key not in self.seen and host_of(a.url) in self.hosts]
        self.seen.update(link.key for link in links)
        return links


class SleepingBandits(_Rival):
    name = "sleeping-bandits"
    _EXPLORATION = 2.0 * math.sqrt(2.0)

    def __init__(self, run: TopicalRun, seeds: Sequence[SeedSite], random: Random) -> None:
        super().__init__(run, seeds, random)
        self._arms: defaultdict[str, list[Anchor]] = defaultdict(list)
        self._pulls: defaultdict[str, int] = defaultdict(int)
        self._rewards: defaultdict[str, float] = defaultdict(float)
        self._turns = 0
        self._targets: list[Anchor] = []  # by the classifier
        self._words = _TokenOdds()

    def next(self, busy: set[str]) -> tuple[str, RequestSequence[None]] | None:
        if self.homes:
            home = self.homes.pop()
            return host_of(home), self._read(home, "", ())
        if self._targets:
            link = self._targets.pop()
            return host_of(link.url), self._read(link.url, link.signature, _tokens(link))
        awake = [arm for arm, links in self._arms.items() if links]
        if not awake:
            return None
        arm = max(awake, key=self._bound)
        links = self._arms[arm]
        link = links.pop(self.random.randrange(len(links)))
        return host_of(link.url), self._read(link.url, arm, _tokens(link))

    def _bound(self, arm: str) -> float:
        pulls = self._pulls[arm]
        if not pulls:
            return math.inf
        return self._rewards[arm] / pulls + self._EXPLORATION * math.sqrt(math.log(self._turns + 1) / pulls) / 10.0

    def _read(self, url: str, arm: str, tokens: Sequence[str]) -> RequestSequence[None]:
        document = yield from self.run.read(url, 0.0, "link")
        relevant = document is not None and document.worth >= RELEVANT
        self._words.learn(tokens, relevant)
        targets = 0
        for link in self.fresh(document) if document is not None else ():
            if self._words.probability(_tokens(link)) > 0.5:
                self._targets.append(link)
                targets += 1
            else:
                self._arms[f"{host_of(link.url)} {link.signature}"].append(link)
        self._turns += 1
        if arm:
            self._pulls[arm] += 1
            self._rewards[arm] += min(targets, 10) / 10.0 + float(relevant)


class Intelligent(_Rival):
    name = "intelligent"

    def __init__(self, run: TopicalRun, seeds: Sequence[SeedSite], random: Random) -> None:
        super().__init__(run, seeds, random)
        self._waiting: dict[str, tuple[str, list[str]]] = {canonical(home): (home, []) for home in self.homes}
        self._ratios = _TokenOdds()

    def next(self, busy: set[str]) -> tuple[str, RequestSequence[None]] | None:
        if not self._waiting:
            return None
        some = list(self._waiting) if len(self._waiting) < 300 else self.random.sample(list(self._waiting), 300)
        key = max(some, key=lambda key: self._ratios.log_ratio(self._waiting[key][1]))
        url, evidence = self._waiting.pop(key)
        return host_of(url), self._read(url, evidence)

    def _read(self, url: str, evidence: list[str]) -> RequestSequence[None]:
        document = yield from self.run.read(url, 0.0, "link")
        if document is None:
            return
        relevant = document.worth >= RELEVANT
        self._ratios.learn(evidence, relevant)
        words = [
            f"word {word}" for word in sorted(set(words_of(document.example.title + document.example.text[:2000])))
        ]
        from_it = [*words, f"parent {relevant}"]
        for other, known in self._waiting.values():  # siblings: what was found on the same page as this
            if evidence and known and other != url and known[0] == evidence[0]:
                known.append(f"sibling {relevant}")
        for link in self.fresh(document):
            tokens = [f"url {token}" for token in _tokens(link)]
            self._waiting[link.key] = (link.url, [f"page {document.url}", *from_it, *tokens])


class _TokenOdds:
    """How much more often pages are relevant, given that a token is present."""

    def __init__(self) -> None:
        self._all = [1.0, 5.0]
        self._tokens: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])

    def learn(self, tokens: Iterable[str], relevant: bool) -> None:
        for counts in (self._all, *(self._tokens[token] for token in set(tokens))):
            counts[0] += relevant
            counts[1] += 1.0

    def log_ratio(self, tokens: Iterable[str]) -> float:
        base = self._all[0] / self._all[1]
        total = 0.0
        for token in set(tokens):
            if token in self._tokens:
                relevant, count = self._tokens[token]
                if count >= 2.0:
                    total += math.log((relevant + 4.0 * base) / (count + 4.0) / base)
        return total

    def probability(self, tokens: Sequence[str]) -> float:
        base = min(max(self._all[0] / self._all[1], 0.01), 0.99)
        odds = math.log(base / (1.0 - base)) + self.log_ratio(tokens)
        return 1.0 / (1.0 + math.exp(-max(-20.0, min(20.0, odds))))


def _tokens(link: Anchor) -> list[str]:
    found = _TOKENS.findall(link.url.partition("://")[2].partition("/")[2].lower())
    return ["#" if token.isdigit() else token for token in found] + words_of(link.text)
