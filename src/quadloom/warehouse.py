"""A warehouse: all stores of one directory as one thing, and what can be done with them.

`Warehouse.open(path)` owns it (one process at a time, may write); `Warehouse.read(path)` looks at it while another
process may be crawling. Which backends it has is decided by the URLs in `[stores]`, see `quadloom.stores.backends`.

Functions import what only some commands need. A command that looks something up would otherwise wait for parsers, the
crawler and the mathematics of the scheduler: .15 s of CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partialmethod
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from quadloom.crawling.run.scope import CrawlScope, stored_scope
from quadloom.errors import StoreError, UsageError
from quadloom.maintenance.recovery.lost_database import refuse_lost_database
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
    from quadloom.maintenance.recovery.recover import RecoveryReport
    from quadloom.maintenance.tasks import Maintenance
    from quadloom.model.event import EventKind
    from quadloom.process.bulk_tasks import Runner


class Warehouse:
    """Use as a context manager. `stores` has the seams. The parts have the verbs:

    `ask` (search, SPARQL, entities, history, statistics), `requests` (seeds, refresh, publish, why), `scope` (which
    URLs may be visited), `subscriptions` and `maintenance` (export, import, verify, rebuild).
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
        self._lock = WarehouseLock(path, _locked_parts(phases)) if writable else None
        try:
            self._compose()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Warehouse {self.path}, {'open for writing' if self._writable else 'for reading'}>"

    @classmethod
    def open(
        cls, path: str | Path, *, settings: Settings | None = None, phases: Iterable[PhaseName] = ALL_PHASES
    ) -> Warehouse:
        """Own the warehouse; create it if there is none. Raises `WarehouseLocked` if another process owns it,
        `StoreError` if its database is lost or an index is missing, and `SettingsError` for an unknown syntax.

        With fewer than all `phases`, `crawl` runs only these and other processes may run the others. One process at a
        time may fetch, and one may index."""
        return cls._own(Path(path), settings or Settings(), repairing=False, phases=frozenset(phases))

    @classmethod
    def _own(
        cls, path: Path, settings: Settings, *, repairing: bool, phases: frozenset[PhaseName] = ALL_PHASES
    ) -> Warehouse:
        from quadloom.fetching.replay import without_pauses

        if settings.transform.syntaxes:
            from quadloom.documents.syntaxes.plugins import check_syntaxes

            check_syntaxes(settings)
        _make_writable(path)
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
        """Recover a warehouse from its archive if its database is lost or damaged.
        `progress` gets the number of records read, `notice` messages for people.

        Raises `UsageError` if the database is not damaged, and `StoreError` if the archive has no page."""
        from quadloom.maintenance.recovery.recover import recover

        report = recover(Path(path), settings or Settings(), progress=progress, notice=notice)
        cls.repair(path, settings=settings).close()  # moves the new indexes to their place
        return report

    @classmethod
    def repair(cls, path: str | Path, *, settings: Settings | None = None) -> Warehouse:
        """Own a warehouse whose quads or text are missing or damaged, for `rebuild`. Damaged indexes are renamed."""
        from quadloom.maintenance.rebuild import rename_damaged

        refuse_lost_database(Path(path), settings or Settings())
        rename_damaged(Path(path), settings or Settings())
        return cls._own(Path(path), settings or Settings(), repairing=True)

    @classmethod
    def read(cls, path: str | Path, *, settings: Settings | None = None) -> Warehouse:
        """Open a warehouse for reading, also while a crawl runs on it."""
        return cls(Path(path), settings or Settings(), writable=False)

    def close(self) -> None:
        try:
            self._opened.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def is_current(self) -> bool:
        """Whether no other process has committed anything since this view was opened. Cheap enough for every
        request."""
        return self.stores.state.changed_mark() == self.stores.opened_at

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
        """Export, import, verify, rebuild, prune, forget."""
        from quadloom.maintenance.tasks import Maintenance

        return Maintenance(self.stores, self.ask, self._reopen)

    # What most programs need, without a detour over the parts.

    def search(self, text: str = "", **filters: Unpack[SearchFilters]) -> SearchAnswer:
        """Pages by words, best first; `quadloom.asking.search.search_request` describes the filters."""
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
        alone: bool = False,
        present: bool = False,
        limit: int = 1000,
    ) -> Things:
        """Things of a type and its subtypes as rows: `things("schema:Event", where="location contains Ghent").pandas()`
        has all in Ghent. The arguments are those of `quadloom table`."""
        from quadloom.asking.things.library import select

        return select(
            self.ask.tables(),
            type,
            where=where,
            columns=columns,
            sort=sort,
            sites=sites,
            alone=alone,
            present=present,
            limit=limit,
        )

    def rank(
        self,
        *,
        runner: Runner | None = None,
        resume: bool = False,
        limit: int = 20,
        progress: Callable[[int, float], None] = lambda _passes, _error: None,
    ) -> RankReport:
        """Compute the importance of all pages; see `quadloom.maintenance.importance.rank`. Crawls use the result from
        their next ranking on."""
        from quadloom.maintenance.importance import rank

        return rank(self.stores, self.settings, runner, resume=resume, limit=limit, progress=progress)

    def crawl(
        self, urls: Sequence[str] = (), *, forever: bool = False, follow: bool = False, **limits: int | float | str
    ) -> RunningCrawl:
        """A crawl, which runs while it is iterated; leaving the loop saves it. With `follow` it does not end when
        nothing is left, but waits for what other processes find or leave.

        `limits` are settings of `[crawl]`: `max_pages=500`, `scope="host"`, `max_depth=3` … They hold from now on.
        """
        return self._runs.crawl(urls, limits, forever=forever, follow=follow)

    def work(self, *, forever: bool = False, notice: Callable[[str], None] = lambda _text: None) -> ClusterMember:
        """Be one of many workers on a shared database until stopped. `notice` gets the part that it owns."""
        return self._runs.work(forever=forever, notice=notice)

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

        Its pages are pages like any other: scheduled, ranked, in the history, reported to subscribers. With `every`
        ("7d") a crawl without an end looks for new pages so often. `limits` are settings of `[topic]`: `budget=500` …
        """
        from quadloom.crawling.runs import TopicOptions
        from quadloom.crawling.topical.relevance import Topic

        topic = Topic(broad, narrow, tuple(examples), tuple(against), tuple(types))
        options = TopicOptions(strategy=strategy, judge=judge, site_search=site_search, progress=progress, every=every)
        return self._runs.topic(topic, sites, options, limits)

    def survey(self, seeds: Sequence[SeedSite], categories: Mapping[str, str] | None = None) -> list[SurveyedSite]:
        """Find out which sites have a search of their own, and of what kind. `categories`: home page → category."""
        return self._runs.survey(seeds, categories)

    # Single phases, each until nothing is left for it. The catalog and the archive have what they leave.

    def fetch(self, urls: Sequence[str] = (), *, follow: bool = False, **limits: int | float | str) -> RunningCrawl:
        """FETCH: from these URLs or the queue into the archive. Nothing is parsed, so only redirects and the sitemaps
        of robots.txt are followed."""
        return self._runs.phase("fetch", urls, limits, follow=follow)

    def _run_phase(self, phase: PhaseName, *, follow: bool = False) -> RunningCrawl:
        return self._runs.phase(phase, (), {}, follow=follow)

    detect = partialmethod(_run_phase, "detect")  # the kind of each fetched page; `transform` does it by itself
    transform = partialmethod(_run_phase, "transform")  # what each fetched page says
    index = partialmethod(_run_phase, "index")  # what transformed pages say, into quads and text

    def extract(self, *, everything: bool = False, host: str = "", follow: bool = False) -> RunningCrawl:
        """EXTRACT: links of indexed pages into the queue. `everything`: of all pages that were ever read, because a
        strategy is new or has changed; `host`: only of its pages."""
        return self._runs.extract(everything=everything, host=host, follow=follow)

    @cached_property
    def _runs(self) -> Runs:
        from quadloom.crawling.runs import Runs

        return Runs(self.stores, self.settings, self.scope, self.requests, lambda: self.ask.queries)

    def _compose(self) -> None:
        """Open everything. Before that, a writer finishes what a killed rebuild has begun."""
        may_index = self._writable and "index" in self._phases
        failpoints = Failpoints(self.settings.crawl.failpoint)
        if may_index:
            from quadloom.maintenance.swap import exchange_folders, write_marks

            exchange_folders(places_of(self.path, self.settings), failpoints, keep_unfinished=self._repairing)
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
        """Read the scope once: `scope` must use the frontier's rules, which another machine may change a moment
        later."""
        self._opened_with = stored_scope(self.settings.crawl, catalog)
        return self._opened_with

    def _reopen(self) -> Stores:
        """Open everything again without releasing the lock."""
        self._opened.close()
        for name in ("_runs", "ask"):
            self.__dict__.pop(name, None)
        self._compose()
        return self.stores


def _make_writable(path: Path) -> None:
    """Create the directory, and check that files can be created in it."""
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


def _locked_parts(phases: frozenset[PhaseName]) -> list[str] | None:
    """What these phases write; None = all of the warehouse."""
    if phases == ALL_PHASES:
        return None
    parts = {"fetch": "frontier", "index": "indexes"}
    return [part for phase, part in parts.items() if phase in phases]


def open_warehouse(path: str | Path, *, settings: Settings | None = None) -> Warehouse:
    """`quadloom.open(path)`: own a warehouse; without `settings`, with those of quadloom.toml and the environment."""
    return Warehouse.open(path, settings=settings or load().settings)
