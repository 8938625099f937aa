"""Topics that are watched: a crawl without an end looks for new pages on them, round after round.

A round asks the sites' own search for what is not in the warehouse yet; what is there is kept fresh by the schedule, as
any page. It begins with the channels and terms of the round before, so that a site without news costs one request. All
rounds together stay within `topic.share` of `freshness.bandwidth`, and their requests are taken from what the crawl
itself may read.

Rounds run in a thread of their own. All that they read and write goes through the thread that owns the stores, by
`CrawlAccess`; so politeness is that of the whole crawl, and pages take the same way as those of the queue.

On a shared database each worker asks the sites of its own shards, with their part of the budget, and `shard_times` says
which shards are done. The transaction that writes it is refused if one of the worker's shards belongs to another by
then, so what a dead or paused worker left is still due, and the next owner of the shard asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import ceil
from random import Random
from typing import NamedTuple

import msgspec

from quadloom.crawling.topical.background import BackgroundThread, CrawlAccess, OwnersFrontier, OwnHosts, RoundStopped
from quadloom.crawling.topical.crawl import TopicReport, run_strategy
from quadloom.crawling.topical.polite_access import FetchedPage, PoliteAccess
from quadloom.crawling.topical.relevance import Topic
from quadloom.crawling.topical.run import TopicalRun
from quadloom.crawling.topical.search.queries import QueryTerm
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.strategies.adaptive import Adaptive
from quadloom.crawling.topical.topic import (
    TopicScope,
    begin_until,
    known_channels,
    remember_channels,
    remember_crawl,
    state_scores,
    topic_name,
)
from quadloom.errors import ShardsLost, StoreUnavailable
from quadloom.model.url import fingerprint
from quadloom.process.clock import unix_time
from quadloom.settings import Settings, length_of
from quadloom.stores.named_values import NamedValues
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.shards import shard_of

_WIDTH = 16  # hosts that are asked at a time
_PAUSE = 1.0  # seconds between two looks for a topic that is due
_AFTER_TROUBLE = 10.0  # seconds before a round is tried again whose shards were lost or whose stores were away
_MOST_SITES = 2000
_MOST_EXAMPLES = 200
_EXAMPLE_CHARACTERS = 4000
_TERMS = 40
_MOST_TAKEN = 100_000


class WatchedTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic whose new pages are looked for every `every` seconds, with at most `budget` requests a round."""

    topic: Topic
    sites: tuple[SeedSite, ...]
    every: float
    budget: int
    next_at: float = 0.0
    rounds: int = 0
    terms: tuple[QueryTerm, ...] = ()  # those of the last round
    shard_times: dict[int, float] = {}  # many workers: when a shard's sites are asked next, if not at `next_at`

    @property
    def name(self) -> str:
        return topic_name(self.topic)

    def due(self, now: float, shards: Collection[int] | None) -> DueRound | None:
        """What a worker that owns these shards has to ask now. None as `shards`: it owns all sites."""
        if shards is None:
            return DueRound(self, self.sites, self.budget) if self.next_at <= now else None
        times, next_at = self.shard_times, self.next_at
        sites = tuple(
            site for site in self.sites if (shard := shard_of(site.host)) in shards and times.get(shard, next_at) <= now
        )
        return DueRound(self, sites, ceil(self.budget * len(sites) / len(self.sites))) if sites else None

    def served(self, done: DueRound, now: float, shards: Collection[int] | None) -> WatchedTopic:
        """After a round, at the end of which its worker owns these shards. A round of all workers is over when every
        site was asked."""
        again = now + self.every
        if shards is None:
            return msgspec.structs.replace(self, next_at=again, rounds=self.rounds + 1)
        everywhere = {shard_of(site.host) for site in self.sites}
        asked = {shard_of(site.host) for site in done.sites} & everywhere & set(shards)
        times = {**self.shard_times, **dict.fromkeys(asked, again)}
        if any(times.get(shard, 0.0) <= self.next_at for shard in everywhere):
            return msgspec.structs.replace(self, shard_times=times)
        return msgspec.structs.replace(
            self, shard_times=times, next_at=min(times[shard] for shard in everywhere), rounds=self.rounds + 1
        )


class DueRound(NamedTuple):
    """Sites of a topic that are to be asked now, with their part of its budget."""

    watched: WatchedTopic
    sites: tuple[SeedSite, ...]
    budget: int


WATCHED = NamedValues("watched-topic:", WatchedTopic)


def watch(catalog: Catalog, watched: WatchedTopic) -> None:
    """Watch a topic from now on; one of the same name is replaced. Long lists and texts are cut."""
    topic = watched.topic
    short = msgspec.structs.replace(
        topic,
        examples=tuple(
            msgspec.structs.replace(one, text=one.text[:_EXAMPLE_CHARACTERS]) for one in topic.examples[:_MOST_EXAMPLES]
        ),
        counterexamples=tuple(
            msgspec.structs.replace(one, text=one.text[:_EXAMPLE_CHARACTERS])
            for one in topic.counterexamples[:_MOST_EXAMPLES]
        ),
    )
    watched = msgspec.structs.replace(watched, topic=short, sites=watched.sites[:_MOST_SITES])
    with catalog.transaction():
        WATCHED.put(catalog, watched.name, watched)


def forget(catalog: Catalog, name: str) -> bool:
    """Watch a topic no longer; its pages stay. False = it was not watched."""
    if WATCHED.get(catalog, name) is None:
        return False
    with catalog.transaction():
        WATCHED.put(catalog, name, None)
    return True


class TopicRounds:
    """Serves watched topics, one round at a time, from `start` to `close`. `notice` receives what a person should
    see."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        crawl: CrawlAccess,
        *,
        notice: Callable[[str], None] = lambda _text: None,
        clock: Callable[[], float] = unix_time,
    ) -> None:
        self._stores = stores
        self._settings = settings
        self._crawl = crawl
        self._notice = notice
        self._clock = clock
        self._background = BackgroundThread(crawl, settings.topic.share)
        self._taken: set[int] = set()  # pages that may not be settled yet

    def start(self, failed: Callable[[BaseException], None]) -> None:
        """Start the thread; it calls `failed` with the exception that ends it."""
        self._background.start("topics", self._run, failed)

    def close(self) -> None:
        """End the round in progress; the pages that it has read are stored. The owner must go on taking calls."""
        self._background.stop()

    def join(self) -> None:
        self._background.join()

    def _run(self) -> None:
        pause = _PAUSE
        while not self._background.wait(pause):
            pause = _PAUSE
            try:
                due = self._due()
                if due is not None:
                    self._round(due)
            except RoundStopped:
                continue  # it goes on if the crawl does
            except (ShardsLost, StoreUnavailable):
                pause = _AFTER_TROUBLE  # what was not served is still due, here or at the next owner of the shard

    def _shards(self) -> frozenset[int] | None:
        shards = self._stores.shards
        return None if shards is None else shards.owned - shards.draining

    def _due(self) -> DueRound | None:
        look = self._stores.state.with_read_connection
        watched = look(lambda catalog: [topic for _, topic in WATCHED.items(catalog)])
        now, shards = self._clock(), self._shards()
        rounds = (due for one in watched if (due := one.due(now, shards)) is not None)
        return min(rounds, key=lambda due: due.watched.next_at, default=None)

    def _round(self, due: DueRound) -> None:
        settings, look, topic = self._settings, self._stores.state.with_read_connection, due.watched.topic
        run = TopicalRun(topic, due.budget, per_site=settings.topic.per_site)
        not_before = self._clock() - length_of("topic.channel_ttl", settings.topic.channel_ttl)
        channels = look(lambda catalog: known_channels(catalog, due.sites, not_before))
        random = Random()
        strategy = Adaptive(
            run, due.sites, random, self._clock(), channels, terms=due.watched.terms, is_known=self._is_known
        )
        access = PoliteAccess(
            settings,
            OwnersFrontier(self._stores.frontier.hosts, self._background),
            OwnHosts(TopicScope(settings, due.sites, self._stores.catalog), self._stores.shards),
            self._take,
            throttle=self._background.throttle,
            clock=self._clock,
            random=random,
            begin_until=begin_until(self._stores),
        )
        try:
            report = run_strategy(strategy, run, access, width=_WIDTH)
        finally:
            access.close()
        self._background.call(lambda: self._finish(due, strategy, report))
        self._notice(
            f"topic {due.watched.name}: {report.relevant} new relevant pages of {report.documents} in"
            f" {report.requests} requests"
        )

    def _finish(self, due: DueRound, strategy: Adaptive, report: TopicReport) -> None:
        """In the thread that owns the stores. Other workers may finish their sites at the same time, so all is read
        and written under the lock of the topic's value."""
        catalog, now = self._stores.catalog, self._clock()
        with catalog.transaction():
            watched = WATCHED.get(catalog, due.watched.name, lock=True)
            if watched is None:
                return  # forgotten meanwhile
            remember_channels(catalog, [site.channel for site in strategy.sites.values() if site.channel])
            state_scores(self._stores.quads, watched.topic, strategy.run)
            since = watched.next_at if self._stores.shards is not None else None
            remember_crawl(catalog, watched.topic, report, now, since=since)
            terms = tuple(strategy.terms.ranked(_TERMS)) or watched.terms
            watch(catalog, msgspec.structs.replace(watched.served(due, now, self._shards()), terms=terms))

    def _is_known(self, keys: Sequence[str]) -> set[str]:
        found = self._stores.state.with_read_connection(
            lambda catalog: catalog.pages([fingerprint(key) for key in keys])
        )
        return {key for key in keys if fingerprint(key) in found or fingerprint(key) in self._taken}

    def _take(self, fetched: FetchedPage) -> None:
        if len(self._taken) > _MOST_TAKEN:
            self._taken.clear()  # the first of them have been settled
        self._taken.add(fetched.visit.fingerprint)
        self._background.call(lambda: self._crawl.take(fetched))
