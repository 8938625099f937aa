"""A warehouse: all stores of one directory as one thing, and what can be done with them.

`Warehouse.open(path)` owns it (one process at a time, may write); `Warehouse.read(path)` looks at it while another
process may be crawling. Which backends it has is decided by the URLs in `[stores]`, see `quadloom.stores.backends`.

What only some commands need is imported where it is used: a command that looks something up does not wait for parsers,
the scheduler's mathematics and a crawler (.9 of 1.1 s).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from quadloom.crawling.run.scope import CrawlScope, stored_scope
from quadloom.errors import StoreError, UsageError
from quadloom.maintenance.lost_database import refuse_lost_database
from quadloom.model.phase import ALL_PHASES, PhaseName
from quadloom.planning.scope import Scope
from quadloom.process.clock import unix_time
from quadloom.process.durable import make_folder
from quadloom.process.failpoints import Failpoints
from quadloom.settings import Settings
from quadloom.settings.loading import load
from quadloom.stores.lock import WarehouseLock
from quadloom.stores.opened import Stores, open_stores, places_of
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.text import SearchAnswer

if TYPE_CHECKING:
    from quadloom.asking.questions import WarehouseQueries
    from quadloom.asking.search import SearchFilters
    from quadloom.asking.sparql.service import QueryResult
    from quadloom.asking.things.library import Things
    from quadloom.crawling.cluster.member import ClusterMember
    from quadloom.crawling.run.requests import CrawlRequests
    from quadloom.crawling.run.session import RunningCrawl
    from quadloom.crawling.runs import Runs
    from quadloom.crawling.subscriptions.service import Subscriptions
    from quadloom.crawling.topical.crawl import StrategyName, TopicalStrategy, TopicReport
    from quadloom.crawling.topical.relevance import Example, Judge
    from quadloom.crawling.topical.run import TopicalRun
    from quadloom.crawling.topical.search.engines import SearchLead
    from quadloom.crawling.topical.sites import SeedSite
    from quadloom.crawling.topical.survey import SurveyedSite
    from quadloom.maintenance.importance import RankReport
    from quadloom.maintenance.recovery import RecoveryReport
    from quadloom.maintenance.tasks import Maintenance
    from quadloom.model.event import EventKind
    from quadloom.process.bulk_tasks import Runner


class Warehouse:
    """Use as a context manager. `stores` has the seams; the other attributes say what can be done:

    `ask` (search, SPARQL, entities, history, statistics), `requests` (seeds, refresh, publish, why), `scope` (which
    URLs may be visited), `subscriptions`, `maintenance` (export, import, verify, rebuild), `crawl()` and `topic()`.
    """

    stores: Stores
    scope: CrawlScope
    _opened_with: Scope

    def __init__(
        self,
        path: Path,
        settings: Settings,
        *,
        writable: bool,
        repairing: bool = False,
        phases: frozenset[PhaseName] = ALL_PHASES,
    ) -> None:
        self.path = path
        self.settings = settings
        self._writable = writable
        self._repairing = repairing
        self._phases = phases
        self._opened = ExitStack()
        refuse_lost_database(path, settings)
        self._lock = WarehouseLock(path, _parts(phases, settings)) if writable else None
        try:
            self._compose()
        except BaseException:
            self.close()
            raise

    @classmethod
    def open(
        cls, path: str | Path, *, settings: Settings | None = None, phases: Iterable[PhaseName] = ALL_PHASES
    ) -> Warehouse:
        """Own the warehouse, creating it if there is none. Raises `WarehouseLocked` if another process owns it, and
        `StoreError` if its database is lost or an index is missing. Raises `SettingsError` if a syntax to read is
        not known.

        With fewer than all `phases` it is shared with processes that run the others: `crawl` runs only these, and what
        they leave is done by the others or later. One process at a time may fetch, and one may index."""
        return cls._own(Path(path), settings or Settings(), repairing=False, phases=frozenset(phases))

    @classmethod
    def _own(
        cls, path: Path, settings: Settings, *, repairing: bool, phases: frozenset[PhaseName] = ALL_PHASES
    ) -> Warehouse:
        if settings.transform.syntaxes:
            from quadloom.documents.syntaxes.plugins import check_syntaxes

            check_syntaxes(settings)
        try:
            make_folder(path)
            probe = path / ".writable"
            probe.touch()
            probe.unlink()
        except FileExistsError:
            raise UsageError(f"{path} is a file, not a directory", hint="name a directory with -w") from None
        except OSError as error:
            raise StoreError(
                f"cannot write to {path}: {error.strerror}",
                hint="choose another directory with -w, or change its permissions",
            ) from None
        from quadloom.fetching.replay import without_pauses

        return cls(path, without_pauses(settings), writable=True, repairing=repairing, phases=phases)

    @classmethod
    def recover(
        cls,
        path: str | Path,
        *,
        settings: Settings | None = None,
        progress: Callable[[int], None] = lambda _records: None,
        notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    ) -> RecoveryReport:
        """Recover a warehouse whose database is lost or damaged, from its archive; see `quadloom.maintenance.recovery`.
        `progress` receives how many records were read, `notice` what a person should see.

        Raises `UsageError` if the database is whole, and `StoreError` if the archive has no page."""
        from quadloom.maintenance.recovery import recover

        settings = settings or Settings()
        report = recover(Path(path), settings, progress=progress, notice=notice)
        cls.repair(path, settings=settings).close()  # which puts the new indexes in their place
        return report

    @classmethod
    def repair(cls, path: str | Path, *, settings: Settings | None = None) -> Warehouse:
        """Own a warehouse even if its quads or text are missing or cannot be opened, for `rebuild`: these are set
        aside."""
        from quadloom.maintenance.rebuild import rename_damaged

        refuse_lost_database(Path(path), settings or Settings())
        rename_damaged(Path(path), settings or Settings())
        return cls._own(Path(path), settings or Settings(), repairing=True)

    @classmethod
    def read(cls, path: str | Path, *, settings: Settings | None = None) -> Warehouse:
        """Look at a warehouse, also while a crawl runs on it."""
        return cls(Path(path), settings or Settings(), writable=False)

    @cached_property
    def ask(self) -> WarehouseQueries:
        """Search, SPARQL, entities, history, statistics."""
        from quadloom.asking.questions import WarehouseQueries
        from quadloom.crawling.workers.version_reader import ArchivedVersions

        ask = WarehouseQueries(self.stores, ArchivedVersions(self.stores.archive, self.settings))
        self._opened.callback(ask.close)
        return ask

    @property
    def requests(self) -> CrawlRequests:
        """Seeds, refresh, publish, why."""
        from quadloom.crawling.run.requests import CrawlRequests

        return CrawlRequests(self.stores, self.scope)

    @property
    def subscriptions(self) -> Subscriptions:
        from quadloom.crawling.subscriptions.service import Subscriptions

        return Subscriptions(self.stores, lambda: self.ask.queries)

    @property
    def maintenance(self) -> Maintenance:
        """Export, import, verify, rebuild, prune."""
        from quadloom.maintenance.tasks import Maintenance

        return Maintenance(self.stores, self.ask, self._reopen)

    def is_current(self) -> bool:
        """Whether nothing was committed by others since this view was opened. Cheap enough to ask at every request."""
        return self.stores.state.changed_mark() == self.stores.opened_at

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._opened.close()
        if self._lock is not None:
            self._lock.release()

    def search(self, text: str = "", **filters: Unpack[SearchFilters]) -> SearchAnswer:
        """Pages by words, best first. Filters: `type`, `vocabulary`, `site`, `language`, `kind`, `since`, `until`; also
        `limit`, `offset`, `facets`, `exact`, `gone` and `explain`, see `quadloom.asking.search.search_request`."""
        return self.ask.search(text, **filters)

    def sparql(self, query: str, *, format: str = "") -> QueryResult:
        """Ask in SPARQL; see `WarehouseQueries.sparql`."""
        return self.ask.sparql(query, format=format)

    def things(
        self,
        type: str,
        *,
        where: str | Sequence[str] = (),
        columns: str | Sequence[str] = (),
        sort: str = "",
        sites: int = 0,
        limit: int = 1000,
    ) -> Things:
        """Things of a type, one row each: `things("schema:Event", where="location contains Ghent").pandas()`.

        `where` and `columns` are written as for `quadloom table`; without `columns`, the commonest properties. `sort`:
        a property, with a minus before it the largest first. `sites`: only things that as many sites describe."""
        from quadloom.asking.things.library import select

        return select(self.ask.tables(), type, where=where, columns=columns, sort=sort, sites=sites, limit=limit)

    def crawl(
        self, urls: Sequence[str] = (), *, forever: bool = False, follow: bool = False, **limits: int | float | str
    ) -> RunningCrawl:
        """A crawl that runs while it is iterated; leaving the loop pauses it safely. `follow`: when nothing is left, it
        waits for what other processes find or leave.

        `limits` are settings of `[crawl]`: `max_pages=500`, `scope="host"`, `max_depth=3` … They hold from now on.
        """
        return self._runs.crawl(urls, limits, forever=forever, follow=follow)

    def topic(
        self,
        broad: str,
        narrow: str,
        sites: Sequence[str | SeedSite],
        *,
        examples: Sequence[Example] = (),
        against: Sequence[Example] = (),
        types: Sequence[str] = (),
        strategy: StrategyName | None = None,
        judge: Judge | None = None,
        site_search: Callable[[str], list[SearchLead]] = lambda _host: [],
        progress: Callable[[TopicalRun, TopicalStrategy], None] = lambda _run, _strategy: None,
        every: str = "",
        **limits: int | float | str,
    ) -> TopicReport:
        """Collect pages on a topic from `sites` (home pages, or `SeedSite`s of a web searcher) with their own search.

        What it reads is a page like any other: scheduled, ranked, in the history, reported to subscribers; a crawl
        without an end keeps it fresh. `every` ("7d"): such a crawl also looks for new pages so often. `limits` are
        settings of `[topic]`: `budget=500`, `per_site=20` …
        """
        from quadloom.crawling.runs import TopicOptions
        from quadloom.crawling.topical.relevance import Topic

        topic = Topic(broad, narrow, tuple(examples), tuple(against), tuple(types))
        options = TopicOptions(strategy=strategy, judge=judge, site_search=site_search, progress=progress, every=every)
        return self._runs.topic(topic, sites, options, limits)

    def survey(self, seeds: Sequence[SeedSite], categories: Mapping[str, str] | None = None) -> list[SurveyedSite]:
        """Which sites have a search of their own, and of what kind. `categories`: of the home pages, for shares by
        category."""
        return self._runs.survey(seeds, categories)

    def work(self, *, forever: bool = False, notice: Callable[[str], None] = lambda _text: None) -> ClusterMember:
        """Be one of many workers on a shared database until stopped. `notice` receives which part it owns."""
        return self._runs.work(forever=forever, notice=notice)

    def rank(
        self,
        *,
        runner: Runner | None = None,
        resume: bool = False,
        limit: int = 20,
        progress: Callable[[int, float], None] = lambda _passes, _error: None,
    ) -> RankReport:
        """Compute the importance of all pages now; crawls of this warehouse take it up with their next ranking.
        `runner`: does so in several processes or on several machines; `resume` continues after an interruption.
        `progress` gets the passes over the links that are complete, and the estimated error."""
        from quadloom.maintenance.importance import rank

        return rank(self.stores, self.settings, runner, resume=resume, limit=limit, progress=progress)

    # Single phases, each until nothing is left for it. What they leave is in the catalog and the archive.

    def fetch(self, urls: Sequence[str] = (), *, follow: bool = False, **limits: int | float | str) -> RunningCrawl:
        """FETCH: pages into the archive, from these URLs or the queue. Nothing is parsed, so no link is followed but
        redirects and the sitemaps that robots.txt names."""
        return self._runs.phase("fetch", urls, limits, follow=follow)

    def detect(self, *, follow: bool = False) -> RunningCrawl:
        """DETECT: which kind of document each fetched page is. `transform` does it by itself."""
        return self._runs.phase("detect", (), {}, follow=follow)

    def transform(self, *, follow: bool = False) -> RunningCrawl:
        """TRANSFORM: what each fetched page says."""
        return self._runs.phase("transform", (), {}, follow=follow)

    def index(self, *, follow: bool = False) -> RunningCrawl:
        """INDEX: what transformed pages say, into quads and text."""
        return self._runs.phase("index", (), {}, follow=follow)

    def extract(self, *, everything: bool = False, host: str = "", follow: bool = False) -> RunningCrawl:
        """EXTRACT: links of indexed pages into the queue. `everything`: of all pages that were ever read, because a
        strategy is new or has changed; `host`: only of its pages."""
        return self._runs.extract(everything=everything, host=host, follow=follow)

    @cached_property
    def _runs(self) -> Runs:
        """Imported when something is started: looking something up needs no crawler."""
        from quadloom.crawling.runs import Runs

        return Runs(self.stores, self.settings, self.scope, self.requests, lambda: self.ask.queries)

    def _compose(self) -> None:
        """Open everything. To write, finish what a killed rebuild has begun."""
        may_index = self._writable and "index" in self._phases
        failpoints = Failpoints(self.settings.crawl.failpoint)
        if may_index:
            from quadloom.maintenance.swap import exchange_folders, write_marks

            exchange_folders(places_of(self.path, self.settings), failpoints)
        opened = open_stores(
            self.path,
            self.settings,
            self._read_scope,
            unix_time(),
            writable=self._writable,
            repairing=self._repairing,
            phases=self._phases,
        )
        self.stores = self._opened.enter_context(opened)
        if may_index:
            write_marks(self.stores, failpoints)
        self.scope = CrawlScope(self.settings.crawl, self.stores.catalog, self.stores.frontier, self._opened_with)

    def _read_scope(self, catalog: Catalog) -> Scope:
        """Read once for the frontier and for `scope`: a command on another machine may change it a moment later, and
        `scope` must know by which rules the frontier judges."""
        self._opened_with = stored_scope(self.settings.crawl, catalog)
        return self._opened_with

    def _reopen(self) -> None:
        """The lock is held throughout."""
        self._opened.close()
        for made in ("_runs", "ask"):  # of what was open before
            self.__dict__.pop(made, None)
        self._compose()


def _parts(phases: frozenset[PhaseName], settings: Settings) -> list[str] | None:
    """What is locked: all of the warehouse, or what these phases write."""
    if phases == ALL_PHASES:
        return None
    parts = {"fetch": "frontier", "index": "indexes"}
    return [part for phase, part in parts.items() if phase in phases]


def open_warehouse(path: str | Path, *, settings: Settings | None = None) -> Warehouse:
    """`quadloom.open(path)`: own a warehouse; settings come from quadloom.toml and the environment if not given."""
    return Warehouse.open(path, settings=settings or load().settings)
