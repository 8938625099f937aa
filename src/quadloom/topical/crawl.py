"""A topical crawl: READ THIS FIRST of this package.

::

    web searchers ─► sites ─► strategy ─► errand: yields Ask ─► Access (robots, pace, scope) ─► Answer ─► errand goes on
                                 ▲                                                                         │
                                 └────────── verdicts, new candidates, new terms ◄─────────────────────────┘

A strategy proposes errands, one at a time per host; the loop below carries up to `width` of them on at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Literal, Protocol

import msgspec

from quadloom.topical.access import Access, Ask, Errand
from quadloom.topical.channels import Channel
from quadloom.topical.desk import RELEVANT, Desk, Found
from quadloom.topical.fingerprints import Lead
from quadloom.topical.sites import Seed
from quadloom.topical.strategy_adaptive import Adaptive
from quadloom.topical.strategy_links import LinkCrawl
from quadloom.topical.strategy_liu_agah import LiuAgah

StrategyName = Literal["adaptive", "liu-agah", "best-first", "breadth-first", "random"]
STRATEGIES: tuple[StrategyName, ...] = ("adaptive", "liu-agah", "best-first", "breadth-first", "random")


class Strategy(Protocol):
    """Decides what to do next. `next` returns (host, errand), or None where nothing pays whose host is free."""

    name: str

    def next(self, busy: set[str]) -> tuple[str, Errand[None]] | None: ...


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
    found: tuple[Found, ...]
    refused: dict[str, int] = {}  # requests that robots.txt, scope or pace did not allow


def make_strategy(
    name: StrategyName,
    desk: Desk,
    seeds: Sequence[Seed],
    random: Random,
    now: float,
    known: Mapping[str, Channel] | None = None,
    further: Callable[[str], list[Lead]] = lambda _host: [],
) -> Strategy:
    """`known`: channels of earlier crawls, by host. `further`: ways into a host that offers none of its own."""
    if name == "adaptive":
        return Adaptive(desk, seeds, random, now, known, further)
    if name == "liu-agah":
        return LiuAgah(desk, seeds, random, now)
    return LinkCrawl(desk, seeds, random, name)


def run(
    strategy: Strategy,
    desk: Desk,
    access: Access,
    *,
    width: int = 1,
    progress: Callable[[Desk], None] = lambda _desk: None,
) -> TopicReport:
    """Carry on errands until the budget is spent or nothing pays. `width`: errands under way on different hosts."""
    active: dict[str, tuple[Errand[None], Ask]] = {}
    while desk.left > 0:
        while len(active) < min(width, desk.left):
            proposal = strategy.next(set(active))
            if proposal is None:
                break
            host, errand = proposal
            try:
                active[host] = (errand, next(errand))
            except StopIteration:
                continue
        if not active:
            break
        hosts = list(active)[: desk.left]
        for host in hosts:
            desk.count(active[host][1])
        answers = access.ask([active[host][1] for host in hosts])
        for host, answer in zip(hosts, answers, strict=True):
            errand = active[host][0]
            try:
                active[host] = (errand, errand.send(answer))
            except StopIteration:
                del active[host]
        progress(desk)
    return report(strategy.name, desk)


def report(name: str, desk: Desk) -> TopicReport:
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
