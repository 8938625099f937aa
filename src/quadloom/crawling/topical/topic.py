"""A topical crawl on a warehouse: its requests, its pages, the search channels it learned, and its scores."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from random import Random

import msgspec

from quadloom.crawling.ingest.intake import Ingest
from quadloom.crawling.ingest.link_queries import without_links
from quadloom.crawling.ingest.sources import JUDGED_SCOPE
from quadloom.crawling.topical.crawl import StrategyName, TopicalStrategy, TopicReport, make_strategy, run_strategy
from quadloom.crawling.topical.polite_access import FetchedPage, PoliteAccess
from quadloom.crawling.topical.relevance import Judge, Topic
from quadloom.crawling.topical.run import RELEVANT, TopicalRun
from quadloom.crawling.topical.search.channels import MOST_REQUESTS, SearchChannel
from quadloom.crawling.topical.search.engines import SearchLead
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.strategies.adaptive import Adaptive
from quadloom.crawling.topical.survey import Survey, SurveyedSite
from quadloom.errors import StoreError
from quadloom.model.quads import Quads
from quadloom.model.url import host_matches, host_of
from quadloom.model.visit import Visit
from quadloom.planning.scope import KEPT_DEPTH, Scope, ScopeRecord
from quadloom.process.clock import unix_time
from quadloom.settings import Settings, length_of
from quadloom.stores.named_values import NamedValues
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.settlement import SettleHook

SCORE = "urn:quadloom:topicScore"
TOPIC_GRAPHS = "urn:quadloom:topic:"  # how their names begin
_WIDTH = 16  # hosts that are asked at a time
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
CHANNELS = NamedValues("channel:", SearchChannel)


class TopicCrawl(msgspec.Struct, frozen=True, kw_only=True):
    """Report of a topic's last crawl. `harvest`: share of relevant documents."""

    name: str = ""
    broad: str = ""
    narrow: str = ""
    requests: int = 0
    documents: int = 0
    harvest: float = 0.0
    finished_at: float = 0.0
    graph: str = ""


TOPICS = NamedValues("topic:", TopicCrawl)


def crawl_topic(
    stores: Stores,
    settings: Settings,
    topic: Topic,
    seeds: Sequence[SeedSite],
    *,
    strategy: StrategyName,
    hooks: Sequence[SettleHook] = (),
    judge: Judge | None = None,
    site_search: Callable[[str], list[SearchLead]] = lambda _host: [],
    random: Random | None = None,
    progress: Callable[[TopicalRun, TopicalStrategy], None] = lambda _run, _strategy: None,
    clock: Callable[[], float] = unix_time,
) -> TopicReport:
    """Crawl `topic` from `seeds` within `settings.topic.budget` requests; documents land in the warehouse.

    `hooks`: those of an ordinary crawl, so that documents are scheduled, ranked and reported like any page.
    `judge`: assesses documents instead of the built-in model.
    `site_search`: ways of the user's into a host without a search
    (`quadloom.crawling.topical.search.hosted.site_leads`)."""
    random = random or Random()
    run = TopicalRun(topic, settings.topic.budget, per_site=settings.topic.per_site, judge=judge)
    known = known_channels(stores.catalog, seeds, clock() - length_of("topic.channel_ttl", settings.topic.channel_ttl))
    chosen = make_strategy(strategy, run, seeds, random, clock(), known, site_search)
    settings = without_links(settings)  # links of documents are the strategy's business
    ingest = Ingest(stores, settings, hooks=hooks, clock=clock)
    access = PoliteAccess(
        settings,
        stores.frontier.hosts,
        TopicScope(settings, seeds, stores.catalog),
        lambda fetched: _store(ingest, stores.catalog, fetched),
        services=frozenset(host_of(lead.template) for lead in site_search("")),
        clock=clock,
        random=random,
        begin_until=begin_until(stores),
    )
    try:
        report = run_strategy(chosen, run, access, width=_WIDTH, progress=lambda now: progress(now, chosen))
    finally:
        access.close()
        ingest.drain()
        ingest.close()
        if isinstance(chosen, Adaptive):
            remember_channels(stores.catalog, [site.channel for site in chosen.sites.values() if site.channel])
        state_scores(stores.quads, topic, run)
    report = msgspec.structs.replace(report, refused=dict(access.refused))
    remember_crawl(stores.catalog, topic, report, clock())
    return report


def survey_sites(
    stores: Stores,
    settings: Settings,
    seeds: Sequence[SeedSite],
    *,
    categories: Mapping[str, str] | None = None,
    random: Random | None = None,
    progress: Callable[[TopicalRun], None] = lambda _run: None,
    clock: Callable[[], float] = unix_time,
) -> list[SurveyedSite]:
    """Which sites have a search, and of what kind. Nothing is kept but the channels. `categories`: by home page."""
    survey = Survey(seeds, random or Random(), clock(), categories)
    run = TopicalRun(Topic("", ""), budget=MOST_REQUESTS * len(seeds) + 1)
    access = PoliteAccess(
        settings,
        stores.frontier.hosts,
        TopicScope(settings, seeds, stores.catalog),
        lambda _brought: None,
        clock=clock,
        random=random,
        begin_until=begin_until(stores),
    )
    try:
        run_strategy(survey, run, access, width=_WIDTH, progress=progress)
    finally:
        access.close()
    remember_channels(stores.catalog, [line.channel for line in survey.lines])
    return survey.lines


def begin_until(stores: Stores) -> Callable[[], float]:
    """Until when a request may begin, for `PoliteAccess`; a function that returns 0 if no other worker shares the
    hosts."""
    shards = stores.shards
    return (lambda: 0.0) if shards is None else lambda: shards.begin_until


class TopicScope:
    """The sites themselves, the patterns that the user set, and the hosts that may answer for sites. What the scope of
    the warehouse excludes is never asked."""

    def __init__(self, settings: Settings, seeds: Sequence[SeedSite], catalog: Catalog) -> None:
        judged = JUDGED_SCOPE.get(catalog)
        excluded = Scope.decode(judged).record.exclude if judged is not None else ()
        self._excluded = Scope(ScopeRecord(reach="any", exclude=excluded))
        crawl = settings.crawl
        if crawl.scope == "page":  # a site cannot be asked without leaving its home page
            crawl = msgspec.structs.replace(crawl, scope="host")
        self._scope = Scope.from_settings(crawl, [seed.home for seed in seeds])
        self._third_parties = settings.topic.third_parties

    def verdict(self, href: str, host: str, depth: int) -> str | None:
        if refusal := self._excluded.verdict(href, host, KEPT_DEPTH):
            return refusal
        if any(host_matches(host, pattern) for pattern in self._third_parties):
            return None
        return self._scope.verdict(href, host, depth)


def known_channels(catalog: Catalog, seeds: Sequence[SeedSite], not_before: float) -> dict[str, SearchChannel]:
    """Channels of earlier crawls that have not expired."""
    found = {}
    for seed in seeds:
        channel = _stored_channel(catalog, seed.host)
        if channel is not None and channel.learned_at >= not_before:
            found[seed.host] = channel
    return found


def _stored_channel(catalog: Catalog, host: str) -> SearchChannel | None:
    """None for what another version wrote, too: the site is then examined again."""
    try:
        return CHANNELS.get(catalog, host)
    except StoreError:
        return None


def remember_channels(catalog: Catalog, channels: Sequence[SearchChannel]) -> None:
    """All but those of web searchers, which belong to the configuration and may hold its keys."""
    with catalog.transaction():
        for channel in (channel for channel in channels if channel.kind != "websearch"):
            CHANNELS.put(catalog, SeedSite(channel.home).host, channel)


def topic_graph(topic: Topic) -> str:
    """Name of the graph that holds a topic's scores."""
    return f"{TOPIC_GRAPHS}{topic_name(topic)}"


def topic_name(topic: Topic) -> str:
    """The narrow query as a name."""
    return re.sub(r"[^\w]+", "-", topic.narrow.lower()).strip("-") or "topic"


def remember_crawl(
    catalog: Catalog, topic: Topic, report: TopicReport, now: float, *, since: float | None = None
) -> None:
    """How the topic's last crawl went, as JSON for people: the web's page of topics shows it. `since`: what was stored
    after that is the part of another worker, and is added."""
    name, graph = topic_name(topic), topic_graph(topic)
    other = TOPICS.get(catalog, name) if since is not None else None
    if other is None or since is None or other.finished_at < since:
        other = TopicCrawl()
    documents = report.documents + other.documents
    relevant = report.harvest * report.documents + other.harvest * other.documents
    crawl = TopicCrawl(
        name=name,
        broad=topic.broad,
        narrow=topic.narrow,
        requests=report.requests + other.requests,
        documents=documents,
        harvest=round(relevant / documents, 4) if documents else 0.0,
        finished_at=round(now),
        graph=graph,
    )
    TOPICS.put(catalog, name, crawl)


def state_scores(quads: QuadStore, topic: Topic, run: TopicalRun) -> None:
    """One statement per relevant page; scores of earlier crawls of the topic stay unless assessed again."""
    graph = topic_graph(topic)
    kept = {line.partition(" ")[0]: line for line in quads.graph(graph).decode("utf-8").splitlines()}
    for found in run.found:
        subject = f"<{found.url}>"
        kept.pop(subject, None)
        if found.verdict >= RELEVANT and not re.search(r'[<>"{}|\\^`\s]', found.url):
            kept[subject] = f'{subject} <{SCORE}> "{found.verdict:.3f}"^^<{_DOUBLE}> <{graph}> .'
    lines = sorted(set(kept.values()))
    if lines:
        quads.replace(Quads.of(graph, ("\n".join(lines) + "\n").encode()))


def _store(ingest: Ingest, catalog: Catalog, fetched: FetchedPage) -> None:
    """A document enters the warehouse like a page of any crawl."""
    ingest.feed(as_known(fetched.visit, catalog), fetched.result, fetched.pace)


def as_known(visit: Visit, catalog: Catalog) -> Visit:
    """The visit with what the catalog knows about its page: then its graph is replaced, not filled."""
    old = catalog.page(visit.fingerprint)
    return visit if old is None else msgspec.structs.replace(visit, known=True, depth=old.depth, via=old.via)
