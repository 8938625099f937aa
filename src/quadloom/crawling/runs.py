"""What reads the web for a warehouse: a crawl, a single phase, a worker of a cluster, a topical crawl.

`Warehouse` opens the stores; `Runs` starts something on them and hands it to the caller, who iterates it. It imports
all of the crawler, so a command that only looks something up never imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from quadloom.crawling.ingest.link_queries import check_strategies
from quadloom.crawling.run.requests import CrawlRequests
from quadloom.crawling.run.scope import CrawlScope
from quadloom.crawling.run.session import CrawlSession, RunningCrawl, page_ranker
from quadloom.crawling.subscriptions.notify import ChangeNotifier
from quadloom.errors import SettingsError, UsageError
from quadloom.model.phase import Owed, PhaseName
from quadloom.model.url import host_of
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.process.clock import unix_time
from quadloom.settings import AuditSettings, Settings, length_of
from quadloom.settings.loading import with_limits
from quadloom.stores.opened import Stores

if TYPE_CHECKING:  # a plain crawl needs none of the modules of topics, clusters and queries
    from quadloom.asking.sparql.service import QueryService
    from quadloom.crawling.cluster.member import ClusterMember
    from quadloom.crawling.topical.crawl import StrategyName, TopicalStrategy, TopicReport
    from quadloom.crawling.topical.relevance import Judge, Topic
    from quadloom.crawling.topical.run import TopicalRun
    from quadloom.crawling.topical.search.engines import SearchLead
    from quadloom.crawling.topical.sites import SeedSite
    from quadloom.crawling.topical.survey import SurveyedSite

_LEADING = 0  # the shard whose owner does what only one worker may do, such as sending notices
Limits = Mapping[str, int | float | str]


class TopicOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a topic is looked for. `every`: after how long a crawl without an end looks again (`7d`), empty = never."""

    strategy: StrategyName | None = None
    judge: Judge | None = None
    site_search: Callable[[str], list[SearchLead]] = lambda _host: []
    progress: Callable[[TopicalRun, TopicalStrategy], None] = lambda _run, _strategy: None
    every: str = ""


class Runs:
    """`settings` are those of the next run: limits that were given to one hold from then on."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        scope: CrawlScope,
        requests: CrawlRequests,
        queries: Callable[[], QueryService],
    ) -> None:
        self._stores = stores
        self.settings = settings
        self._scope = scope
        self._requests = requests
        self._queries = queries

    def crawl(self, urls: Sequence[str], limits: Limits, *, forever: bool, follow: bool) -> RunningCrawl:
        """All phases that the stores were opened for."""
        return self._crawl(self._stores, urls, limits, forever=forever, follow=follow)

    def phase(self, phase: PhaseName, urls: Sequence[str], limits: Limits, *, follow: bool) -> RunningCrawl:
        """One phase, until nothing is left for it."""
        if phase not in self._stores.phases:
            raise UsageError(
                f"this warehouse was not opened for {phase}", hint=f'add "{phase}" to the phases of Warehouse.open'
            )
        stores = msgspec.structs.replace(self._stores, phases=frozenset({phase}))
        return self._crawl(stores, urls, limits, forever=False, follow=follow)

    def extract(self, *, everything: bool, host: str, follow: bool) -> RunningCrawl:
        """The phase extract, also over pages that owe nothing."""
        if everything or host:
            self._stores.catalog.backlog.add(Owed.EXTRACT, host=host)
        return self.phase("extract", (), {}, follow=follow)

    def work(self, *, forever: bool, notice: Callable[[str], None]) -> ClusterMember:
        """A worker of a cluster."""
        if self._stores.shards is None:
            raise SettingsError(
                "a worker needs a database that others can reach",
                hint="give --cluster postgresql://user@host:5432/database, or set stores.frontier",
            )
        check_strategies(self.settings)
        _check_audit(self.settings)
        return self._member(self._session(self._stores, forever=forever, waits=True), notice)

    def topic(
        self, topic: Topic, sites: Sequence[str | SeedSite], options: TopicOptions, limits: Limits
    ) -> TopicReport:
        """A topical crawl, from its beginning to its end."""
        from quadloom.crawling.topical.sites import SeedSite
        from quadloom.crawling.topical.watched_topics import WatchedTopic, watch

        pause = length_of("every", options.every) if options.every else 0.0
        settings = replace(self.settings, topic=with_limits(self.settings.topic, limits))
        settings = self._requests.with_contact(settings)
        seeds = tuple(site if isinstance(site, SeedSite) else SeedSite(site) for site in sites)
        with self._shards_of(seeds, settings, [host_of(lead.template) for lead in options.site_search("")]):
            report = self._topic(settings, topic, seeds, options)
        if pause:
            budget = settings.topic.budget
            watched = WatchedTopic(topic=topic, sites=seeds, every=pause, budget=budget, next_at=unix_time() + pause)
            watch(self._stores.catalog, watched)
        return report

    def survey(self, seeds: Sequence[SeedSite], categories: Mapping[str, str] | None) -> list[SurveyedSite]:
        """Which sites have a search of their own, and of what kind. Nothing is kept but the channels."""
        from quadloom.crawling.topical.topic import survey_sites

        with self._shards_of(seeds, self.settings):
            return survey_sites(self._stores, self.settings, seeds, categories=categories)

    def _crawl(
        self, stores: Stores, urls: Sequence[str], limits: Limits, *, forever: bool, follow: bool
    ) -> RunningCrawl:
        settings = replace(self.settings, crawl=with_limits(self.settings.crawl, limits))
        check_strategies(settings)
        _check_audit(settings)
        self.settings = settings
        if "fetch" in stores.phases:  # only the process that owns the queue applies the scope to it
            self._scope.configure(settings.crawl)
            self._requests.add_seeds(urls)
            self._requests.retry_failed(urls)
            self._scope.reload()
        session = self._session(stores, forever=forever, waits=follow)
        return session if stores.shards is None else self._member(session)

    def _session(self, stores: Stores, *, forever: bool, waits: bool) -> CrawlSession:
        shards = stores.shards
        return CrawlSession(
            stores,
            self._requests.with_contact(self.settings),
            self._scope,
            self._queries,
            forever=forever,
            waits=waits,
            is_leader=lambda: shards is None or _LEADING in shards.owned,
        )

    def _member(self, session: CrawlSession, notice: Callable[[str], None] = lambda _text: None) -> ClusterMember:
        from quadloom.crawling.cluster.member import ClusterMember

        stores = self._stores
        assert stores.shards is not None
        heartbeat = self.settings.cluster.heartbeat
        return ClusterMember(session, stores.shards, path=stores.path, heartbeat=heartbeat, notice=notice)

    def _topic(self, settings: Settings, topic: Topic, seeds: Sequence[SeedSite], options: TopicOptions) -> TopicReport:
        from quadloom.crawling.topical.topic import crawl_topic

        stores = self._stores
        ranker = page_ranker(stores, settings)
        scheduler = RefreshScheduler(
            stores.catalog, stores.frontier, settings, ranker=ranker, scope=lambda: self._scope.current
        )
        try:
            return crawl_topic(
                stores,
                settings,
                topic,
                seeds,
                strategy=options.strategy or settings.topic.strategy,
                hooks=(scheduler, ChangeNotifier(stores.catalog, stores.outbox, stores.quads)),
                judge=options.judge,
                site_search=options.site_search,
                progress=options.progress,
            )
        finally:
            ranker.close()
            scheduler.close()

    def _shards_of(
        self, seeds: Sequence[SeedSite], settings: Settings, services: Sequence[str] = ()
    ) -> AbstractContextManager[None]:
        """On a shared database: own the shards of all hosts that a topical crawl may ask."""
        from quadloom.crawling.cluster.borrowing import borrowed, shards_of

        hosts = [*(seed.host for seed in seeds), *settings.topic.third_parties, *services]
        wanted = shards_of(hosts if settings.crawl.scope != "any" else ["*"])
        return borrowed(self._stores.shards, wanted, settings.cluster.heartbeat)


def _check_audit(settings: Settings) -> None:
    """Raises `SettingsError` for a vocabulary or profile of the user that cannot be read. The bundled ones are only
    needed by the workers."""
    audit = settings.audit
    if audit.vocabularies or audit.profiles != AuditSettings().profiles:
        from quadloom.documents.checks.page import check_audit_settings

        check_audit_settings(audit)
