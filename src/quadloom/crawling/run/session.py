"""A crawl on a warehouse, as other processes see it: it answers control commands and publishes what happens.

The session builds what a crawl consists of and owns all of it:

::

    CrawlSession ── Crawl ── Ingest ── hooks: RefreshScheduler, ChangeNotifier, HubSubscriptions
                 ├─ PageRanker (a thread)        ├─ CrawlCommands (what a ControlServer asks)
                 ├─ Rescheduler                  ├─ NotificationSender (a thread)
                 └─ BackgroundRounds: TopicRounds (a thread, in a crawl without an end),
                                      SiteSearches (a thread, if `crawl.site_search` is set)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from quadloom.crawling.ingest.inbox import Inbox
from quadloom.crawling.ingest.intake import Ingest
from quadloom.crawling.run.background import BackgroundAccess, BackgroundRounds
from quadloom.crawling.run.commands import CrawlCommands
from quadloom.crawling.run.control import ControlRequest, ControlServer
from quadloom.crawling.run.loop import Crawl
from quadloom.crawling.run.publication import PUBLISHED
from quadloom.crawling.run.report import CrawlReport
from quadloom.crawling.run.requests import CrawlRequests
from quadloom.crawling.run.run_history import RunHistory
from quadloom.crawling.run.scope import CrawlScope
from quadloom.crawling.subscriptions.notify import ChangeNotifier
from quadloom.crawling.subscriptions.pages import subscribed_pages
from quadloom.crawling.subscriptions.sender import NotificationSender
from quadloom.crawling.subscriptions.service import Subscriptions
from quadloom.crawling.subscriptions.websub import HubSubscriptions
from quadloom.errors import ShardsLost
from quadloom.fetching.process import FetchProcess
from quadloom.fetching.unit import FetchUnitFactory
from quadloom.model.event import Event, EventKind
from quadloom.model.outcome import PageRow, Settlement
from quadloom.model.phase import ALL_PHASES
from quadloom.model.wire import Value
from quadloom.planning.policy.suspects import DATA_KINDS
from quadloom.planning.ranking.link_exchange import LinkExchange
from quadloom.planning.ranking.ranker import PageRanker
from quadloom.planning.ranking.ranking_process import RankingRunner
from quadloom.planning.refresh.reschedule import Rescheduler
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.planning.scope import Scope
from quadloom.process.clock import described_step, unix_time
from quadloom.process.threads import close_all
from quadloom.settings import Settings
from quadloom.stores.opened import Stores
from quadloom.stores.shards import worker_name

if TYPE_CHECKING:  # lazy: most crawls run no queries
    from quadloom.asking.sparql.service import QueryService

T = TypeVar("T")
EventData = dict[str, str | int | float | bool | list[str]]
News = tuple[EventKind, str, EventData]
"""Kind, subject and data of an event."""
_MOST_NOTICES = 20  # of one report
_OUTAGE = 5.0  # seconds for which the database is away before it is worth a notice


class RunningCrawl(Protocol):
    """A crawl that runs while it is iterated: a `CrawlSession`, or a `ClusterMember` around one."""

    @property
    def replayed(self) -> int: ...

    def __iter__(self) -> Iterator[Settlement]: ...

    def stop(self) -> None:
        """Lease nothing more; what is in progress is finished and saved."""
        ...

    def report(self) -> CrawlReport: ...

    def close(self) -> None:
        """End a crawl that was not iterated to its end."""
        ...


class CrawlSession:
    """Iterate to run the crawl. `forever`: refresh pages without an end, within `freshness.bandwidth`. `waits`: do not
    end when nothing is due, because other machines may send work. `is_leader`: of many workers one sends notices.

    `fetch` starts what brings the pages, and `clock` gives unix time: with a transport in the same process and another
    clock a crawl needs neither sockets nor waiting.

    Which phases it runs is what the stores were opened for; the others are left to other processes or later commands.

    `replayed`: pages that an earlier crash had left out of the indexes, and that are in them now.
    """

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        scope: CrawlScope,
        queries: Callable[[], QueryService],
        *,
        forever: bool = False,
        waits: bool = False,
        is_leader: Callable[[], bool] = lambda: True,
        fetch: FetchUnitFactory = FetchProcess,
        clock: Callable[[], float] = unix_time,
    ) -> None:
        self._stores = stores
        self.phases = phases = stores.phases
        self._fetches, self._indexes = "fetch" in phases, "index" in phases
        self._scope = scope
        self._clock = clock
        self._events = 0
        self._notices: dict[str, None] = {}
        self._closed = False
        self._stopped = False
        self._ends_by_itself = not forever and not waits
        # Retry during an outage, but not after `stop()`.
        stores.state.wait_while(lambda: not self._stopped and not self._closed)
        self._inbox = Inbox()
        self._notifier = ChangeNotifier(stores.catalog, stores.outbox, stores.quads)
        self._hubs = HubSubscriptions(stores.catalog, stores.frontier, settings)
        self._background: BackgroundRounds | None = None  # of a process that runs all phases
        with ExitStack() as started:  # closes what the earlier steps have started if a later one fails
            # The link matrix is derived, as the indexes are, and written by the process that writes them.
            self._ranker = (
                page_ranker(stores, settings, notice=lambda text: self.notice("notice", text))
                if self._indexes
                else None
            )
            if self._ranker is not None:
                started.callback(self._ranker.close)
            self._scheduler = RefreshScheduler(
                stores.catalog, stores.frontier, settings, ranker=self._ranker, scope=self._current_scope
            )
            self._ingest = self._make_ingest(settings)
            started.callback(self._ingest.close)
            # Without shards of its own, a worker cannot tell which pages are on their way through another's indexer.
            self.replayed = self._ingest.replay() if stores.shards is None or self._fetches else 0
            self._ingest.open_backlog()
            self._rescheduler = self._make_rescheduler() if self._fetches and self._indexes else None
            self._crawl = self._make_crawl(settings, forever=forever, waits=waits, fetch=fetch)
            started.callback(self._crawl.close)
            if phases == ALL_PHASES:
                self._background = self._make_background(settings, forever=forever)
            self._commands = self._make_commands(queries)
            self._sender = self._make_sender(settings, queries, is_leader)
            if forever and self._fetches:
                self.notice("notice", self._scheduler.budget.in_words())
            started.pop_all()

    def __iter__(self) -> Iterator[Settlement]:
        if step := self._stores.frontier.clock_step:
            self.notice(
                "notice",
                f"the clock of this machine was set {described_step(step)} since this warehouse was last used."
                " The times of hosts and visits that are still to come have moved as far.",
            )
        if clamped := self._stores.frontier.clamped_hosts:
            self.notice(
                "notice",
                f"{clamped} hosts had a back-off above the maximum; the clock of this machine was probably ahead. Their"
                " back-off is now the maximum.",
            )
        with ExitStack() as running:
            running.callback(self.close)  # if anything below cannot start
            running.callback(self._sender.close)
            # The process that fetches is the crawl to most commands; the others can be stopped and asked how they are.
            process = "" if self._fetches else str(os.getpid())
            control = ControlServer(self._stores.path, self.answer, process)
            running.callback(control.close)
            if self._indexes:
                self._sender.start()
            if self._ranker is not None:
                self._ranker.start(self._inbox.fail)
            history = RunHistory(self._stores.catalog, self._clock())
            if self._fetches:
                running.callback(lambda: history.end(self._crawl.report(), self._clock()))
            if self._background is not None:
                self._background.start(self._inbox.fail)
            running.callback(self.close)  # runs first: the crawl is reported and answers until all is saved
            for batch in self._crawl.batches():
                if not batch:
                    continue
                self._publish_settlements(batch)
                self._report_outage()
                if self._fetches and history.is_due(now := self._clock()):
                    history.write(self._crawl.report(), now)
                yield from batch
            if self._ends_by_itself and not self._stopped:
                self._rank_last()  # it would end before its first ranking is due
        if self._indexes:
            self._sender.flush()

    def close(self) -> None:
        """Save everything and end the processes. Iterating to the end does it, too."""
        if self._closed:
            return
        self._closed = True
        close_all(
            (
                *((self._background.stop,) if self._background is not None else ()),
                self._crawl.close,
                *((self._ranker.close,) if self._ranker is not None else ()),
                self._ingest.close,
                *((self._background.join,) if self._background is not None else ()),
                self._save_schedule,
            )
        )

    def _rank_last(self) -> None:
        """The next crawl describes and schedules the pages by it, as after any ranking."""
        if self._ranker is not None and self._stores.shards is None:
            self._ranker.rank_last()

    def _report_outage(self) -> None:
        """Events live in the database, so an outage is reported once it is over."""
        if (seconds := self._stores.state.take_outage()) >= _OUTAGE:
            self.notice("notice", f"the database was away for {seconds:.0f} s")

    def _save_schedule(self) -> None:
        rescheduled = self._rescheduler.close if self._rescheduler is not None else lambda: None
        for save in (rescheduled, lambda: self._scheduler.close(exact=self.phases == ALL_PHASES)):
            try:
                save()
            except ShardsLost as lost:
                self.notice("notice", lost.message)

    def stop(self) -> None:
        self._stopped = True
        self._crawl.stop()
        if self._background is not None:
            self._background.stop()

    def report(self) -> CrawlReport:
        report = self._crawl.report()
        ranking = self.ranking_seconds
        return msgspec.structs.replace(
            report,
            notices=list(self._notices),
            cpu={**report.cpu, "index": round(report.cpu["index"] + ranking, 3)},
            cpu_seconds=round(report.cpu_seconds + ranking, 3),
        )

    @property
    def ranking_seconds(self) -> float:
        """CPU time of all rankings so far; they run in processes of their own."""
        return self._ranker.cpu_seconds if self._ranker is not None else 0.0

    def call(self, action: Callable[[], T]) -> T:
        """Run `action` in the crawl's own thread between two steps, from another thread; returns its result."""
        return self._inbox.call(action)

    def fail(self, error: BaseException) -> None:
        """End the crawl with this error, from another thread."""
        self._inbox.fail(error)

    def answer(self, request: ControlRequest) -> Value:
        """Do what a person asks, from another thread. Raises `QuadloomError` if it is refused."""
        return self._commands.answer(request, self.call)

    # What a cluster member asks, in the crawl's own thread.

    def reload(self) -> None:
        """Scope and subscriptions may have been changed by a command on another machine."""
        self.reload_scope()
        self._notifier.reload_if_changed()

    def reload_scope(self) -> None:
        """Seeds and rules may have been changed by a command on another machine."""
        if self._scope.reload():
            self._crawl.scope_changed()

    def acquired(self, rows: Sequence[PageRow]) -> None:
        """After taking over shards: index pages that the previous owner settled but did not index."""
        self._ingest.indexing.reindexing.add(rows, self._clock())

    def set_part(self, owned: float, wanted: float) -> None:
        """Set this worker's part of all shards, and of what all workers could read now."""
        self._scheduler.set_part(owned, wanted)

    def stuck(self) -> dict[str, float]:
        """What the crawl's own thread waits for, so that it can neither report nor answer → since when. From any
        thread."""
        return self._ingest.waits()

    def unfinished_shards(self) -> frozenset[int]:
        """Shards with pages that are on their way through the indexer."""
        return self._ingest.indexing.unfinished_shards()

    # The steps of the constructor.

    def _make_ingest(self, settings: Settings) -> Ingest:
        return Ingest(
            self._stores,
            settings,
            hooks=(self._scheduler, self._notifier, self._hubs),
            inbox=self._inbox,
            workers=settings.crawl.workers or max(1, (os.cpu_count() or 2) - 1),
            links_of=self._ranker.append if self._ranker is not None else lambda _page, _edges: None,
            clock=self._clock,
            notice=self.notice,
        )

    def _make_rescheduler(self) -> Rescheduler:
        return Rescheduler(
            self._stores.catalog,
            self._stores.frontier,
            self._scheduler,
            self._ranker,
            self._current_scope,
            self._ingest.indexing.jobs.describe,
        )

    def _make_crawl(self, settings: Settings, *, forever: bool, waits: bool, fetch: FetchUnitFactory) -> Crawl:
        return Crawl(
            self._stores.frontier,
            settings,
            self._ingest,
            self._rescheduler,
            fetch=fetch if self._fetches else None,
            pacer=self._scheduler.pacer() if forever and self._fetches else None,
            may_end=lambda: not waits and not (self._background is not None and self._background.pending()),
            shared=self.phases != ALL_PHASES,
            clock=self._clock,
            notice=self.notice,
        )

    def _make_background(self, settings: Settings, *, forever: bool) -> BackgroundRounds:
        access = BackgroundAccess(self._crawl, self._scheduler, self._ingest.traps, self._stores, self._inbox)
        return BackgroundRounds(self._stores, settings, self._current_scope, access, forever=forever, clock=self._clock)

    def _make_commands(self, queries: Callable[[], QueryService]) -> CrawlCommands:
        return CrawlCommands(
            self._crawl,
            self._scheduler,
            self._scope,
            CrawlRequests(self._stores, self._scope),
            Subscriptions(self._stores, queries),
            self._notifier,
            self._hubs,
            self._stores,
            notice=self.notice,
        )

    def _make_sender(
        self, settings: Settings, queries: Callable[[], QueryService], is_leader: Callable[[], bool]
    ) -> NotificationSender:
        return NotificationSender(
            self._stores,
            settings,
            self._inbox,
            self._notifier,
            self._hubs,
            queries,
            indexed=lambda: self._ingest.counts.indexed,
            notice=self.notice,
            is_leader=is_leader,
        )

    def _current_scope(self) -> Scope:
        return self._scope.current

    def notice(self, kind: EventKind, text: str) -> None:
        """Publish something that a person should see. In the crawl's own thread."""
        if kind == "notice" and len(self._notices) < _MOST_NOTICES:
            self._notices[text] = None
        self._publish([(kind, text, {})])

    def _publish_settlements(self, settlements: Sequence[Settlement]) -> None:
        news: list[News] = []
        for settlement in settlements:
            page = settlement.page
            data: EventData = {"outcome": str(settlement.outcome)}
            if page is not None:
                data |= {"status": page.status, "kind": page.kind, "quads": page.quads, "title": page.title}
                if page.reason:
                    data["reason"] = page.reason
            news.append(("settled", settlement.visit.href, data))
        self._publish(news)

    def _publish(self, news: Sequence[News]) -> None:
        now = unix_time()
        # Milliseconds, so that ids go on growing when the next crawl begins: listeners resume by them.
        first = max(self._events + 1, int(now * 1000))
        self._events = first + len(news) - 1
        shards = self._stores.shards
        mark: EventData = {"worker": shards.owner.partition(":")[0]} if shards is not None else {}  # for all machines
        self._stores.bus.publish(
            [Event(first + n, kind, now, subject, {**data, **mark}) for n, (kind, subject, data) in enumerate(news)]
        )


def page_ranker(
    stores: Stores,
    settings: Settings,
    *,
    directory: Path | None = None,
    runner: RankingRunner | None = None,
    notice: Callable[[str], None] = lambda _text: None,
) -> PageRanker:
    """The ranker of a warehouse. Its thread reads the catalog over connections of its own. `directory`: of a matrix
    that has the links of all workers and none of its own."""
    look = stores.state.with_read_connection
    shared = settings.cluster.links
    worker = worker_name(stores.path) if directory is None else directory.name
    return PageRanker(
        directory or stores.places.links,
        settings.freshness,
        lambda: look(lambda catalog: catalog.fingerprints_of(sorted(DATA_KINDS))),
        lambda: look(lambda catalog: subscribed_pages(catalog, stores.quads)),
        lambda: look(lambda catalog: PUBLISHED.get(catalog) or []),
        LinkExchange(Path(shared), worker) if shared else None,
        runner,
        notice,
    )
