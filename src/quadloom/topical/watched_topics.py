"""Topics that are watched: a crawl without an end looks for new pages on them, round after round.

A round asks the sites' own search for what is not in the warehouse yet; what is there is kept fresh by the schedule, as
any page. It begins with the channels and terms of the round before, so that a site without news costs one request. All
rounds together stay within `topic.share` of `freshness.bandwidth`, and their requests are taken from what the crawl
itself may read.

Rounds run in a thread of their own. All that they read and write goes through the thread that owns the stores, by
`CrawlAccess`; so politeness is that of the whole crawl, and pages take the same way as those of the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import msgspec

from quadloom.model.url import fingerprint
from quadloom.process.clock import unix_time
from quadloom.settings import Settings, length_of
from quadloom.stores.named_values import NamedValues
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.stores import Stores
from quadloom.topical.background import BackgroundThread, CrawlAccess, OwnersFrontier
from quadloom.topical.crawl import run_strategy
from quadloom.topical.polite_access import FetchedPage, PoliteAccess
from quadloom.topical.relevance import Topic
from quadloom.topical.run import TopicalRun
from quadloom.topical.search.queries import QueryTerm
from quadloom.topical.sites import SeedSite
from quadloom.topical.strategies.adaptive import Adaptive
from quadloom.topical.topic import (
    TopicScope,
    known_channels,
    remember_channels,
    remember_crawl,
    state_scores,
    topic_name,
)

_WIDTH = 16  # hosts that are asked at a time
_PAUSE = 1.0  # seconds between two looks for a topic that is due
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

    @property
    def name(self) -> str:
        return topic_name(self.topic)


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
        while not self._background.wait(_PAUSE):
            due = self._due()
            if due is not None:
                self._round(due)

    def _due(self) -> WatchedTopic | None:
        look = self._stores.state.with_read_connection
        watched = look(lambda catalog: [topic for _, topic in WATCHED.items(catalog)])
        now = self._clock()
        return min((one for one in watched if one.next_at <= now), key=lambda one: one.next_at, default=None)

    def _round(self, watched: WatchedTopic) -> None:
        settings, look = self._settings, self._stores.state.with_read_connection
        run = TopicalRun(watched.topic, watched.budget, per_site=settings.topic.per_site)
        not_before = self._clock() - length_of("topic.channel_ttl", settings.topic.channel_ttl)
        channels = look(lambda catalog: known_channels(catalog, watched.sites, not_before))
        random = Random()
        strategy = Adaptive(
            run, watched.sites, random, self._clock(), channels, terms=watched.terms, is_known=self._is_known
        )
        access = PoliteAccess(
            settings,
            OwnersFrontier(self._stores.frontier, self._background),
            TopicScope(settings, watched.sites),
            self._take,
            throttle=self._background.throttle,
            clock=self._clock,
            random=random,
        )
        try:
            report = run_strategy(strategy, run, access, width=_WIDTH)
        finally:
            access.close()
        terms = tuple(strategy.terms.ranked(_TERMS)) or watched.terms
        now = self._clock()
        served = msgspec.structs.replace(watched, next_at=now + watched.every, rounds=watched.rounds + 1, terms=terms)

        def finish() -> None:
            catalog = self._stores.catalog
            if WATCHED.get(catalog, watched.name) is None:
                return  # forgotten meanwhile
            remember_channels(catalog, [site.channel for site in strategy.sites.values() if site.channel])
            state_scores(self._stores.quads, watched.topic, run)
            remember_crawl(catalog, watched.topic, report, now)
            watch(catalog, served)

        self._background.call(finish)
        self._notice(
            f"topic {watched.name}: {report.relevant} new relevant pages of {report.documents} in {report.requests}"
            " requests"
        )

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
