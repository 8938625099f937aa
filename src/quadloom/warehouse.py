"""A warehouse: all stores of one directory as one thing.

`Warehouse.open(path)` owns it (one process at a time, may write); `Warehouse.read(path)` looks at it while another
process may be crawling. Which backends it has is decided by the URLs in `[stores]`, see `quadloom.stores.backends`.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from quadloom.cluster.worker import ClusterWorker
from quadloom.crawl.control import Value
from quadloom.crawl.explain import Why, why
from quadloom.crawl.publication import Publication, PublishReport, accept
from quadloom.crawl.requests import request_pages, request_urls
from quadloom.crawl.scope import ScopeEdits, is_judged_by, judge, read_edits, scope_of, write_edits
from quadloom.crawl.session import CrawlSession
from quadloom.errors import SettingsError, StoreError, UsageError
from quadloom.export.dump import DumpReport, export_to, parse_format
from quadloom.export.reading import read_pages
from quadloom.export.selection import Selection
from quadloom.fetching.guard import is_opened
from quadloom.maintenance.import_ import ImportReport, import_pages
from quadloom.maintenance.replay import replay_taken
from quadloom.maintenance.upkeep import VerifyReport, rebuild, set_damaged_aside, verify
from quadloom.model.event import EventKind
from quadloom.model.url import Url
from quadloom.phases.loaders import document_loader
from quadloom.phases.seeds import seed_discoveries
from quadloom.ranking.page_ranks import page_rank_of
from quadloom.ranking.ranker import PageRanker
from quadloom.refresh.state import Schedule, schedule_of
from quadloom.scheduling.scope import Scope
from quadloom.scheduling.suspects import DATA_KINDS
from quadloom.settings import Settings
from quadloom.settings.loading import load, with_limits
from quadloom.stores.backends import fresh_quads, open_archive, open_quads, open_state, open_text, query_source
from quadloom.stores.postgres.frontier import PostgresFrontier
from quadloom.stores.postgres.state import ClusterState
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.shards import SHARDS
from quadloom.stores.sqlite.database import WarehouseLock
from quadloom.stores.state import DATABASE as DATABASE
from quadloom.stores.stores import LinkRanking, Stores
from quadloom.subscriptions.notice_board import NoticeBoard
from quadloom.subscriptions.pages import subscribed_pages


class Warehouse(NoticeBoard):
    """Use as a context manager. Attributes are the seams: `frontier`, `catalog`, `archive`, `quads`, `text`, `bus`."""

    def __init__(self, path: Path, settings: Settings, *, writable: bool) -> None:
        self.path = path
        self.settings = settings
        self.writable = writable
        self.loader = document_loader(settings)
        self._closing = contextlib.ExitStack()
        if writable:
            self._lock = WarehouseLock(path)
            self._closing.callback(self._lock.release)
        try:
            self._open()
        except BaseException:
            self._closing.close()
            raise

    @classmethod
    def open(cls, path: str | Path, *, settings: Settings | None = None) -> Warehouse:
        """Own the warehouse, creating it where there is none. Raises `WarehouseLocked` where another process does."""
        path = Path(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
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
        return cls(path, settings or Settings(), writable=True)

    @classmethod
    def mend(cls, path: str | Path, *, settings: Settings | None = None) -> Warehouse:
        """Own a warehouse even where its quads or text cannot be opened: these are set aside, for `rebuild`."""
        set_damaged_aside(Path(path), settings or Settings())
        return cls.open(path, settings=settings)

    @classmethod
    def read(cls, path: str | Path, *, settings: Settings | None = None) -> Warehouse:
        """Look at a warehouse, also while a crawl runs on it."""
        return cls(Path(path), settings or Settings(), writable=False)

    def __enter__(self) -> Warehouse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._closing.close()

    def _open(self) -> None:
        now = time.time()
        self._state = open_state(self.path, self.settings, writable=self.writable)
        self._closing.callback(self._state.close)
        self.catalog: Catalog = self._state.catalog
        self.outbox: Outbox = self._state.outbox
        self.bus: Bus = self._state.bus
        self.scope = self._scope([])
        self.frontier: Frontier = self._state.frontier(self.scope, now)
        self.archive: Archive = open_archive(self.path / "archive", self.settings, writable=self.writable)
        self._open_indexes()
        self._closing.callback(self.frontier.close)
        self._closing.callback(self.archive.close)
        self._closing.callback(lambda: self.quads.close())
        self._closing.callback(lambda: self.text.close())

    def _open_indexes(self) -> None:
        self.quads: QuadStore = open_quads(self.path / "quads", self.settings, writable=self.writable)
        self.text: TextIndex = open_text(self.path / "text", self.settings, writable=self.writable)

    def crawl(self, urls: Sequence[str] = (), *, forever: bool = False, **limits: int | float | str) -> CrawlSession:
        """A crawl that runs while it is iterated; leaving the loop pauses it safely.

        `limits` are settings of `[crawl]`: `max_pages=500`, `scope="host"`, `max_depth=3` … They hold from now on.
        """
        crawl = with_limits(self.settings.crawl, limits)
        self.settings = msgspec.structs.replace(self.settings, crawl=crawl)
        return self.start(urls, forever=forever)

    def start(self, seeds: Sequence[str], *, forever: bool = False) -> CrawlSession:
        """Queue the seeds, bring the indexes up to date, and return a crawl that runs while it is iterated."""
        self.add_seeds(seeds)
        self._rescope()
        self._running = CrawlSession(self, forever=forever, companion=self._worker())
        return self._running

    def work(self, *, forever: bool = False, tell: Callable[[str], None] = lambda _text: None) -> CrawlSession:
        """Be one of many workers on a shared database until stopped. `tell` hears which part it owns."""
        worker = self._worker()
        if worker is None:
            raise SettingsError(
                "a worker needs a database that others can reach",
                hint="give --cluster postgresql://user@host:5432/database, or set stores.frontier",
            )
        self._running = CrawlSession(self, forever=forever, waits=True, companion=worker, tell=tell)
        return self._running

    def _worker(self) -> ClusterWorker | None:
        if isinstance(self._state, ClusterState) and isinstance(self.frontier, PostgresFrontier):
            return ClusterWorker(self._state, self.frontier, self, heartbeat=self.settings.cluster.heartbeat)
        return None

    def taken(self, shards: list[int]) -> None:
        """A worker's shards have come from another: what he settled and did not index is now ours to index."""
        if isinstance(self._state, ClusterState):
            stores = self.opened()
            stores.catalog = self._state.catalog_of(shards)
            replay_taken(stores, self.settings, time.time(), self._running.crawl.writer.index)

    def owns(self, shards: int) -> None:
        """`freshness.bandwidth` is that of all workers together."""
        self._running.crawl.refreshing.own(shards / SHARDS)

    def unfinished(self) -> frozenset[int]:
        """Shards of which pages are on their way through our indexer."""
        return self._running.crawl.writer.unmarked.shards()

    def tend(self) -> None:
        """Seeds and scope may have been changed by a command on another machine."""
        if self._rescope():
            self._running.crawl.scope_changed()

    def _rescope(self) -> bool:
        """Where seeds, settings and rules are others than those by which the queue was judged last, also by an earlier
        process, judge it by these. False = they are the same."""
        scope = self._scope([])
        if self.scope.record == scope.record and is_judged_by(scope, self.catalog):
            return False
        self._set_scope(scope)
        return True

    def _set_scope(self, scope: Scope) -> int:
        """Judge by it from now on, and all that is queued, too. Returns how many URLs moved."""
        moved = judge(scope, self.frontier, self.catalog)
        self.scope = scope
        return moved

    def add_seeds(self, urls: Sequence[str]) -> dict[str, Value]:
        """Widen the scope to these URLs and queue them."""
        found = seed_discoveries(urls)
        known = self.seeds()
        fresh = [item.href for item in found if item.href not in known]
        if fresh:
            self.catalog.put("seeds", msgspec.json.encode([*known, *fresh]))
            self._set_scope(self._scope([*known, *fresh]))
        report = self.frontier.add(found, time.time())
        return {"new": report.new, "known": report.known, "refused": report.refused}

    def refresh(self, urls: Sequence[str] = (), *, site: str = "", read_before: float | None = None) -> int:
        """Read these again before anything else: named URLs, a site's pages, pages last read before a time."""
        now = time.time()
        count = request_urls(self.frontier, urls, now) if urls else 0
        if site or read_before is not None:
            count += request_pages(self.frontier, self.catalog, now, site=site, read_before=read_before)
        return count

    def why(self, url: str, schedule: Schedule | None = None) -> Why:
        """Every number that decides about a URL, with its rule. `schedule`: of the running crawl, else as saved."""
        return why(
            url,
            frontier=self.frontier,
            catalog=self.catalog,
            scope=self.scope,
            schedule=schedule or schedule_of(self.catalog, self.settings),
            settings=self.settings,
            now=time.time(),
            standing=page_rank_of(self.path / "links", Url.parse(url).fingerprint),
        )

    def publish(self, publication: Publication) -> PublishReport:
        """What a site owner announces: URLs, or a sitemap that has changed."""
        return accept(publication, frontier=self.frontier, scope=self.scope, now=time.time())

    def scope_edits(self) -> ScopeEdits:
        """Rules that were added to those of the configuration."""
        return read_edits(self.catalog)

    def change_scope(self, rules: ScopeEdits, *, remove: bool = False) -> int:
        """Add rules to the scope or take them away; durable. Returns how many queued URLs moved."""
        edits = self.scope_edits().without(rules) if remove else self.scope_edits().with_(rules)
        scope = scope_of(self.settings.crawl, self.seeds(), edits)
        with self.catalog.transaction():
            write_edits(self.catalog, edits)
            return self._set_scope(scope)

    def seeds(self) -> list[str]:
        return msgspec.json.decode(self.catalog.get("seeds") or b"[]", type=list[str])

    def ranking(self) -> PageRanker:
        """Links and weights of pages, for one crawl. Its thread looks at the catalog through connections of its own."""
        look = self._state.look
        return PageRanker(
            self.path / "links",
            self.settings.freshness,
            lambda: look(lambda catalog: catalog.of_kinds(sorted(DATA_KINDS))),
            lambda: look(lambda catalog: subscribed_pages(catalog, self.quads)),
        )

    def opened(self, links: LinkRanking | None = None) -> Stores:
        return Stores(
            links=links,
            frontier=self.frontier,
            catalog=self.catalog,
            archive=self.archive,
            quads=self.quads,
            text=self.text,
            bus=self.bus,
            query_source=query_source(self.path / "quads", self.settings),
            outbox=self.outbox,
            scope=lambda: self.scope,
        )

    def verify(self) -> VerifyReport:
        """Compare archive, quads and text with the catalog, page by page."""
        return verify(self.opened(), self.settings)

    def export(
        self,
        target: str | Path | BinaryIO,
        *,
        format: str = "",
        selection: Selection | None = None,
        progress: Callable[[int], None] = lambda _pages: None,
    ) -> DumpReport:
        """Write the warehouse, or a part of it, to a file (format by suffix: `out.nq.gz`) or a binary stream."""
        chosen = selection or Selection()
        if not isinstance(target, str | Path):
            return export_to(self, target, format or "nq", chosen, time.time(), progress)
        name = Path(target).name
        parse_format(format or name.partition(".")[2] or "nq")
        with Path(target).open("wb") as stream:
            return export_to(self, stream, format or name.partition(".")[2] or "nq", chosen, time.time(), progress)

    def import_(
        self,
        *paths: str | Path,
        graph: str = "",
        progress: Callable[[int], None] = lambda _pages: None,
        notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
    ) -> ImportReport:
        """Read WARC files and RDF dumps through the same phases as a crawl. `graph`: for statements without one.
        `notice` hears which pages were quarantined, and why."""
        if isinstance(self.frontier, PostgresFrontier):
            self.frontier.take_all(time.time())
        pages = (
            page
            for path in paths
            for page in read_pages(Path(path), self.settings.limits, default_graph=graph, now=time.time())
        )
        return import_pages(self.opened(), self.settings, pages, time.time, progress, notice)

    def rebuild(self, *, progress: Callable[[int], None] = lambda _done: None) -> int:
        """Make quads and text anew from the archive; swapped in when complete. Returns the number of pages."""
        fresh = {name: self.path / f"{name}.new" for name in ("quads", "text")}
        for folder in fresh.values():
            shutil.rmtree(folder, ignore_errors=True)
        with fresh_quads(fresh["quads"], self.settings) as quads:
            text = open_text(fresh["text"], self.settings, writable=True)
            try:
                pages = rebuild(self.opened(), self.settings, quads, text, now=time.time(), progress=progress)
            finally:
                text.close()
        self.quads.close()
        self.text.close()
        del quads, text
        for name, folder in fresh.items():
            if folder.is_dir():
                shutil.rmtree(self.path / name, ignore_errors=True)
                folder.rename(self.path / name)
        self._open_indexes()
        return pages

    def summary(self) -> dict[str, Value]:
        """Frontier states, pages by outcome, sizes: what `status` prints of a warehouse at rest."""
        stats = self.frontier.stats(time.time())
        counts = self.catalog.counts()
        by = {
            kind: {name.partition(":")[2]: count for name, count in counts.items() if name.startswith(f"{kind}:")}
            for kind in ("outcome", "kind", "status")
        }
        return {
            "warehouse": str(self.path),
            "running": False,
            "state": "stopped",
            "frontier": {**msgspec.structs.asdict(stats), "total": stats.total},
            "outcomes": {**by["outcome"]},
            "kinds": {**by["kind"]},
            "statuses": {**by["status"]},
            "quads": len(self.quads),
            "documents": len(self.text),
            "rates": {},
            "sizes": {
                "database": self._state.size(),
                "archive": self.archive.size(),
                "quads": _size(self.path / "quads"),
                "text": _size(self.path / "text"),
            },
        }

    @property
    def contact(self) -> str:
        return (self.catalog.get("contact") or b"").decode()

    def remember_contact(self, contact: str) -> None:
        self.catalog.put("contact", contact.encode())

    def is_private(self, urls: Sequence[str]) -> bool:
        """Whether all these are inside what `guard.allow` opens: then no stranger is visited."""
        starts = urls or self.seeds()
        return bool(starts) and all(is_opened(Url.parse(url).host, self.settings.guard) for url in starts)

    def _scope(self, seeds: list[str]) -> Scope:
        return scope_of(self.settings.crawl, seeds or self.seeds(), read_edits(self.catalog))


def open_warehouse(path: str | Path, *, settings: Settings | None = None) -> Warehouse:
    """`quadloom.open(path)`: own a warehouse; settings come from quadloom.toml and the environment where not given."""
    return Warehouse.open(path, settings=settings or load().settings)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else 0
