"""Forget pages and sites on request: of their owners, or by law. Nothing of their words is left in any file.

1. One transaction stores the request and excludes its addresses from the scope: nothing of it is visited from then on.
2. Graphs, descriptions and documents leave the indexes, which are committed: answers are clean.
3. URLs, hosts, notices, named values and pages leave the database, in transactions of bounded size; counts stay true.
4. Files of the archive are written again without the records (`removal.archived`).
5. What engines keep of deleted data until they merge files goes too: the lake is synced, indexes in folders are
   rebuilt, the database is written again.
6. The request becomes a report without addresses.

Every step may be repeated, so a request that was interrupted is finished by doing all of them again. Only the owner of
the warehouse may forget.
"""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from quadloom.crawling.ingest.handover.spool import ResultSpool
from quadloom.crawling.ingest.traps.filter import TRAPS, read_traps
from quadloom.crawling.run.publication import PUBLISHED
from quadloom.crawling.run.scope import SEEDS, CrawlScope, ScopeEdits, stored_scope
from quadloom.crawling.subscriptions.registry import read_subscriptions
from quadloom.crawling.subscriptions.standing_queries import ask_again
from quadloom.crawling.subscriptions.websub import TOPICS as HUB_TOPICS
from quadloom.crawling.topical.site_search import SEARCHED
from quadloom.crawling.topical.topic import CHANNELS, TOPIC_GRAPHS
from quadloom.documents.descriptions import PAGES
from quadloom.errors import UsageError
from quadloom.maintenance.archive_order import all_pages
from quadloom.maintenance.batches import batches
from quadloom.maintenance.removal.archived import SortedFile, affected_files, rewrite
from quadloom.maintenance.removal.requests import REQUESTS, ForgetReport, Forgetting, Forgotten
from quadloom.model.event import Notice
from quadloom.model.outcome import PageRow
from quadloom.model.url import canonical, fingerprint, host_of
from quadloom.process.clock import unix_time
from quadloom.stores.opened import INDEXES, Stores

FORGET_POINTS = (
    "forget-asked",
    "forget-unindexed",
    "forget-urls",
    "forget-pages",
    "forget-copied",
    "forget-repointed",
    "forget-removed",
    "forget-archived",
    "forget-derived",
    "forget-rebuilt",
    "forget-compacted",
)
_PAGES = 500  # in one transaction
_LEFT_BEHIND = ("*.tasks", "rebuild.spool", "*.db.damaged*")  # of interrupted commands, in the folder of the warehouse


def plan(stores: Stores, rules: Sequence[str]) -> ForgetReport:
    """What forgetting would remove. Reads catalog and archive once; writes nothing."""
    forgotten = Forgotten(rules)
    pages = sum(1 for _ in _pages(stores, forgotten))
    files = list(affected_files(stores, forgotten))
    return _with_files(ForgetReport(pages=pages), files)


def begin(stores: Stores, rules: Sequence[str]) -> str:
    """Store a request and exclude its addresses, in one transaction. Returns its name. Raises `UsageError` if it means
    every page."""
    forgotten = Forgotten(rules)
    if stores.catalog.scan(limit=1) and all(forgotten.page(row) for row in all_pages(stores.catalog)):
        raise UsageError(
            "that is every page of the warehouse; nothing was changed", hint=f"remove the whole folder {stores.path}"
        )
    now = unix_time()
    name = dt.datetime.fromtimestamp(now, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    catalog, crawl = stores.catalog, stores.settings.crawl
    with catalog.transaction():
        REQUESTS.put(catalog, name, Forgetting(rules=tuple(rules), report=ForgetReport(asked_at=now)))
        scope = CrawlScope(crawl, catalog, stores.frontier, stored_scope(crawl, catalog))
        scope.change(ScopeEdits(exclude=tuple(rules)))
    return name


class Removal:
    """The work on one stored request. `ask` answers a standing query; `reached` is called with the name of each
    step."""

    def __init__(
        self,
        stores: Stores,
        name: str,
        *,
        ask: Callable[[str], list[str]],
        reached: Callable[[str], None],
    ) -> None:
        found = REQUESTS.get(stores.catalog, name)
        assert found is not None, "the request is stored"
        self.request: Forgetting = found
        self._stores = stores
        self._name = name
        self._ask = ask
        self._reached = reached
        self._forgotten = Forgotten(found.rules)

    def remove(self) -> None:
        """Steps 2 to 4, and the lake and folders of step 5."""
        self._reached("forget-asked")
        self._remove_from_indexes()
        self._reached("forget-unindexed")
        self._remove_urls()
        self._remove_values_and_notices()
        self._reached("forget-urls")
        for rows in batches(_pages(self._stores, self._forgotten), _PAGES):
            with self._stores.catalog.transaction():
                self._stores.catalog.forget([row.fingerprint for row in rows])
                self._count(pages=len(rows))
        self._reached("forget-pages")
        self._remove_from_archive()
        self._reached("forget-archived")
        self._remove_derived()
        self._reached("forget-derived")

    def _remove_from_indexes(self) -> None:
        stores, forgotten = self._stores, self._forgotten
        names = {graph for graph in stores.quads.graphs() if forgotten.url(graph)}
        names.update(id for id in stores.text.ids() if forgotten.url(id))
        topics = [graph for graph in stores.quads.graphs() if graph.startswith(TOPIC_GRAPHS)]
        for rows in batches(_pages(stores, forgotten), _PAGES):
            names.update(self._own_graphs(rows))
        for group in batches(sorted(names), _PAGES):
            for name in group:
                stores.quads.remove(name)
            for graph in (PAGES, *topics):
                stores.quads.describe(graph, [(name, b"") for name in group])
            stores.text.remove(group)
        stores.quads.flush()
        stores.text.commit()

    def _own_graphs(self, rows: Sequence[PageRow]) -> Iterator[str]:
        """Graphs that no page has that stays: several pages may have been redirected to one."""
        others = self._stores.catalog.pages([fingerprint(canonical(row.graph)) for row in rows])
        staying = {row.graph for row in others.values() if not self._forgotten.page(row)}
        return (row.graph for row in rows if row.graph not in staying)

    def _remove_urls(self) -> None:
        stores, forgotten = self._stores, self._forgotten
        now = unix_time()
        while stores.frontier.pull(now):
            pass
        while stores.shards is not None and stores.shards.pull(now, lambda: None):
            pass
        pages = {row.fingerprint for row in _pages(stores, forgotten)}
        hosts = stores.frontier.stats(now).hosts
        urls = stores.frontier.forget(forgotten.url, forgotten.host, pages)
        self._count(urls=urls, hosts=hosts - stores.frontier.stats(now).hosts)

    def _remove_values_and_notices(self) -> None:
        catalog, outbox, forgotten = self._stores.catalog, self._stores.outbox, self._forgotten
        ask_again(catalog, [item for item in read_subscriptions(catalog) if item.query], self._ask)
        with catalog.transaction():
            for values in (CHANNELS, SEARCHED):
                for host in filter(forgotten.host, values.keys(catalog)):
                    values.put(catalog, host, None)
            for id, hub in HUB_TOPICS.items(catalog):
                if forgotten.url(hub.href) or forgotten.url(hub.topic):
                    HUB_TOPICS.put(catalog, id, None)
            SEEDS.put(catalog, [url for url in SEEDS.get(catalog) or [] if not forgotten.host(host_of(url))])
            PUBLISHED.put(catalog, [url for url in PUBLISHED.get(catalog) or [] if not forgotten.url(url)])
            traps = [trap for trap in read_traps(catalog) if not forgotten.url(trap.example)]
            TRAPS.put_encoded_for_all(catalog, TRAPS.encode(traps))
            self._count(notices=outbox.edit(self._edited))

    def _edited(self, notice: Notice) -> Notice | None:
        """Rows of a query's answer do not say which page they are from: they are counted, and not shown any more."""
        if notice.kind == "result":
            rows = len(notice.added) + len(notice.removed)
            return replace(notice, added=(), removed=(), more=notice.more + rows)
        return None if self._forgotten.url(notice.url) else notice

    def _remove_from_archive(self) -> None:
        archive = self._stores.archive
        archive.seal()
        for file in self.request.replaced:
            archive.remove(file)
        self._update(replaced=())

        def note(group: list[SortedFile]) -> None:
            self._update(replaced=tuple(file.name for file in group), report=_with_files(self.request.report, group))

        files = affected_files(self._stores, self._forgotten)
        rewrite(self._stores, files, note, lambda step: self._reached(f"forget-{step}"))

    def _remove_derived(self) -> None:
        from quadloom.maintenance.lake.place import place_of, read_layout

        stores = self._stores
        ResultSpool(stores.path, stores.settings).clear()
        for pattern in _LEFT_BEHIND:
            for path in stores.path.glob(pattern):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        for index in INDEXES:
            shutil.rmtree(stores.places.damaged(index), ignore_errors=True)
        if read_layout(place_of(stores.path, stores.settings)) is not None:
            from quadloom.maintenance.lake.sync import sync

            sync(stores)

    def finish(self) -> ForgetReport:
        """The rest of step 5, and step 6; after the indexes were rebuilt."""
        self._reached("forget-rebuilt")
        self._update(rules=())
        self._stores.state.compact()
        self._reached("forget-compacted")
        self._update(report=replace(self.request.report, done_at=unix_time()))
        return self.request.report

    def _count(self, **more: int) -> None:
        report = self.request.report
        self._update(report=replace(report, **{name: getattr(report, name) + n for name, n in more.items()}))

    def _update(self, **changes: object) -> None:
        self.request = replace(self.request, **changes)
        REQUESTS.put(self._stores.catalog, self._name, self.request)


def _pages(stores: Stores, forgotten: Forgotten) -> Iterator[PageRow]:
    return filter(forgotten.page, all_pages(stores.catalog))


def _with_files(report: ForgetReport, files: Iterable[SortedFile]) -> ForgetReport:
    for file in files:
        report = replace(
            report,
            files=report.files + 1,
            records=report.records + len(file.gone),
            bytes=report.bytes + file.bytes_gone,
        )
    return report
