"""A topical crawl: READ THIS FIRST of this package.

::

    web searchers ─► sites ─► strategy ─► SiteRequest ─► Access (robots, pace, scope) ─► SiteResponse
                                 ▲                                                            │
                                 └────────── verdicts, new candidates, new terms ◄────────────┘

A strategy proposes request sequences, one at a time per host; the loop below carries up to `width` of them on at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Literal, Protocol

import msgspec

from quadloom.topical.access import Access, RequestSequence, SiteRequest
from quadloom.topical.run import RELEVANT, FoundDocument, TopicalRun
from quadloom.topical.search.channels import SearchChannel
from quadloom.topical.search.engines import SearchLead
from quadloom.topical.sites import SeedSite
from quadloom.topical.strategies.adaptive import Adaptive
from quadloom.topical.strategies.links import LinkCrawl
from quadloom.topical.strategies.liu_agah import LiuAgah

StrategyName = Literal["adaptive", "liu-agah", "best-first", "breadth-first", "random"]
STRATEGIES: tuple[StrategyName, ...] = ("adaptive", "liu-agah", "best-first", "breadth-first", "random")


class TopicalStrategy(Protocol):
    """Decides what to do next. `next` returns (host, sequence), or None where nothing pays whose host is free."""

    name: str

    def next(self, busy: set[str]) -> tuple[str, RequestSequence[None]] | None: ...


class TopicReport(msgspec.Struct, frozen=True):
    """The outcome. `harvest`: relevant among documents, as the paper counts; `per_request`: among all requests."""

    strategy: str
    requests: int
    documents: int
    relevant: int
    harvest: float
    per_request: float
    recall_estimate: float
    purposes: dict[str, int]
    found: tuple[FoundDocument, ...]
    refused: dict[str, int] = {}  # requests that robots.txt, scope or pace did not allow


def make_strategy(
    name: StrategyName,
    desk: TopicalRun,
    seeds: Sequence[SeedSite],
    random: Random,
    now: float,
    known: Mapping[str, SearchChannel] | None = None,
    further: Callable[[str], list[SearchLead]] = lambda _host: [],
) -> TopicalStrategy:
    """`known`: channels of earlier crawls, by host. `further`: ways into a host that offers none of its own."""
    if name == "adaptive":
        return Adaptive(desk, seeds, random, now, known, further)
    if name == "liu-agah":
        return LiuAgah(desk, seeds, random, now)
    return LinkCrawl(desk, seeds, random, name)


def run(
    strategy: TopicalStrategy,
    desk: TopicalRun,
    access: Access,
    *,
    width: int = 1,
    progress: Callable[[TopicalRun], None] = lambda _desk: None,
) -> TopicReport:
    """Carry on sequences until the budget is spent or nothing pays. `width`: sequences under way on different hosts."""
    active: dict[str, tuple[RequestSequence[None], SiteRequest]] = {}
    while desk.left > 0:
        while len(active) < min(width, desk.left):
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
        hosts = list(active)[: desk.left]
        for host in hosts:
            desk.count(active[host][1])
        answers = access.ask([active[host][1] for host in hosts])
        for host, answer in zip(hosts, answers, strict=True):
            sequence = active[host][0]
            try:
                active[host] = (sequence, sequence.send(answer))
            except StopIteration:
                del active[host]
        progress(desk)
    return report(strategy.name, desk)


def report(name: str, desk: TopicalRun) -> TopicReport:
    documents = len(desk.found)
    relevant = sum(found.verdict >= RELEVANT and not found.copy for found in desk.found)
    return TopicReport(
        strategy=name,
        requests=desk.spent,
        documents=documents,
        relevant=relevant,
        harvest=round(relevant / documents, 4) if documents else 0.0,
        per_request=round(relevant / desk.spent, 4) if desk.spent else 0.0,
        recall_estimate=round(desk.recall_estimate(), 4),
        purposes=dict(sorted(desk.purposes.items())),
        found=tuple(desk.report_found()),
    )
