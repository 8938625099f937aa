"""A topical crawl: READ THIS FIRST of this package.

::

    web searchers ─► sites ─► strategy ─► SiteRequest ─► Access (robots, pace, scope) ─► SiteResponse
                                 ▲                                                            │
                                 └───────── relevance, new candidates, new terms ◄────────────┘

A strategy proposes request sequences, one at a time per host; the loop below advances up to `width` of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Literal, Protocol

import msgspec

from quadloom.crawling.topical.access import Access, RequestSequence, SiteRequest
from quadloom.crawling.topical.run import RELEVANT, FoundDocument, KnownPages, TopicalRun
from quadloom.crawling.topical.search.channels import SearchChannel
from quadloom.crawling.topical.search.engines import SearchLead
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.strategies.adaptive import Adaptive
from quadloom.crawling.topical.strategies.links import LinkCrawl
from quadloom.crawling.topical.strategies.liu_agah import LiuAgah

StrategyName = Literal["adaptive", "liu-agah", "best-first", "breadth-first", "random"]
STRATEGIES: tuple[StrategyName, ...] = ("adaptive", "liu-agah", "best-first", "breadth-first", "random")


class TopicalStrategy(Protocol):
    """Decides what to request next. `next` returns (host, sequence), or None if nothing on a free host is worth it."""

    name: str

    def waiting(self) -> KnownPages:
        """Pages that it knows and has not fetched."""
        ...

    def next(self, busy: set[str]) -> tuple[str, RequestSequence[None]] | None: ...


class TopicReport(msgspec.Struct, frozen=True):
    """The outcome. `harvest`: relevant among fetched documents, as in the paper; `per_request`: among all requests.
    `waiting`: what was known and not fetched. How many relevant pages nobody has shown cannot be told from within a
    crawl: results of searches are no random sample, so there is no estimate of recall."""

    strategy: str
    requests: int
    documents: int
    relevant: int
    harvest: float
    per_request: float
    waiting: KnownPages
    purposes: dict[str, int]
    found: tuple[FoundDocument, ...]
    refused: dict[str, int] = {}  # requests that robots.txt, scope or pace did not allow


def make_strategy(
    name: StrategyName,
    run: TopicalRun,
    seeds: Sequence[SeedSite],
    random: Random,
    now: float,
    known: Mapping[str, SearchChannel] | None = None,
    further: Callable[[str], list[SearchLead]] = lambda _host: [],
) -> TopicalStrategy:
    """`known`: channels of earlier crawls, by host. `further`: search leads for a host without a search of its own."""
    if name == "adaptive":
        return Adaptive(run, seeds, random, now, known, further)
    if name == "liu-agah":
        return LiuAgah(run, seeds, random, now)
    return LinkCrawl(run, seeds, random, name)


def run_strategy(
    strategy: TopicalStrategy,
    run: TopicalRun,
    access: Access,
    *,
    width: int = 1,
    progress: Callable[[TopicalRun], None] = lambda _run: None,
) -> TopicReport:
    """Run sequences until the budget is spent or nothing is worth a request. `width`: most hosts at a time."""
    active: dict[str, tuple[RequestSequence[None], SiteRequest]] = {}
    while run.left > 0:
        while len(active) < min(width, run.left):
            proposal = strategy.next(set(active))
            if proposal is None:
                break
            host, sequence = proposal
            try:
                active[host] = (sequence, next(sequence))
            except StopIteration:
                continue
        if not active:
            break
        hosts = list(active)[: run.left]
        for host in hosts:
            run.count(active[host][1])
        answers = access.ask([active[host][1] for host in hosts])
        for host, answer in zip(hosts, answers, strict=True):
            sequence = active[host][0]
            try:
                active[host] = (sequence, sequence.send(answer))
            except StopIteration:
                del active[host]
        progress(run)
    return report(strategy.name, run, strategy.waiting())


def report(name: str, run: TopicalRun, waiting: KnownPages) -> TopicReport:
    """The report of a finished run."""
    documents = len(run.found)
    relevant = sum(found.verdict >= RELEVANT and not found.copy for found in run.found)
    return TopicReport(
        strategy=name,
        requests=run.spent,
        documents=documents,
        relevant=relevant,
        harvest=round(relevant / documents, 4) if documents else 0.0,
        per_request=round(relevant / run.spent, 4) if run.spent else 0.0,
        waiting=waiting,
        purposes=dict(sorted(run.purposes.items())),
        found=tuple(run.report_found()),
    )
