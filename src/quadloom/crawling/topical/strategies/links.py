"""Baselines that only follow links: best first, breadth first, at random. They use the same relevance model."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Literal

from quadloom.crawling.topical.access import RequestSequence
from quadloom.crawling.topical.run import KnownPages, TopicalRun, article_links
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.strategies.candidates import Candidate, CandidateModel
from quadloom.model.url import canonical

LinkOrder = Literal["best-first", "breadth-first", "random"]


class LinkCrawl:
    """A focused crawler after Chakrabarti: a link is estimated by its words and the relevance of its page."""

    def __init__(self, run: TopicalRun, seeds: Sequence[SeedSite], random: Random, order: LinkOrder) -> None:
        self.name: str = order
        self.run = run
        self._random = random
        self._order = order
        self.model = CandidateModel(run.relevance)
        self._heap: list[tuple[float, int, Candidate]] = []
        self._sequence = count()
        self._seen: set[str] = set()
        self._hosts = {seed.host for seed in seeds}
        for seed in seeds:
            home = self.model.candidate(seed.home, canonical(seed.home), "", "", "link")
            self._push(home, 2.0 if order == "best-first" else 0.0)

    def next(self, busy: set[str]) -> tuple[str, RequestSequence[None]] | None:
        held: list[tuple[float, int, Candidate]] = []
        chosen: Candidate | None = None
        while self._heap and len(held) < 200:
            entry = heapq.heappop(self._heap)
            if entry[2].host in busy:
                held.append(entry)
            elif not self.run.full(entry[2].host):
                chosen = entry[2]
                break
        for entry in held:
            heapq.heappush(self._heap, entry)
        return (chosen.host, self._visit(chosen)) if chosen else None

    def waiting(self) -> KnownPages:
        open_to = [entry[2].p for entry in self._heap if not self.run.full(entry[2].host)]
        return KnownPages(len(open_to), round(sum(open_to), 1))

    def _push(self, candidate: Candidate, worth: float) -> None:
        if candidate.key in self._seen or candidate.host not in self._hosts:
            return
        self._seen.add(candidate.key)
        order = -worth if self._order == "best-first" else 0.0
        if self._order == "random":
            order = self._random.random()
        heapq.heappush(self._heap, (order, next(self._sequence), candidate))

    def _renew(self) -> None:
        """Estimate all queued links again, after the model has changed; home pages stay at the front."""
        entries = []
        for order, number, candidate in self._heap:
            candidate.p = self.model.estimate(candidate)
            entries.append((order if not candidate.example.title else -candidate.p, number, candidate))
        heapq.heapify(entries)
        self._heap = entries

    def _visit(self, candidate: Candidate) -> RequestSequence[None]:
        document = yield from self.run.read(candidate.url, candidate.p, "link")
        if document is None:
            return
        if candidate.example.title and self.model.learn(candidate, document.worth) and self._order == "best-first":
            self._renew()
        for anchor in article_links(document.outline):
            if anchor.key not in self._seen:
                link = self.model.candidate(
                    anchor.url, anchor.key, anchor.text, anchor.block, "link", parent=document.verdict
                )
                self._push(link, link.p)
