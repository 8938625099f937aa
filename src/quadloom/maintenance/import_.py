"""Pages from files instead of the web: transformed, archived, settled and indexed as a crawl would do it.

The write order is the crawl's own (`quadloom.ingest.ingest`), so an import can be killed and run again: what was
settled is replayed, what was not is read again, and reading a page twice changes nothing. Links are kept in the page's
graph, but nobody is visited because of an import: discoveries are left out. Workers weave the pages
(`quadloom.workers.batch`), so one that crashes, hangs or bloats its transformation is quarantined as in a crawl, and
the rest is imported.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable

import msgspec

from quadloom.asking.statistics import Statistics, ended
from quadloom.export.reading import ImportedPage
from quadloom.ingest.compaction import ENOUGH
from quadloom.ingest.failpoints import Failpoints
from quadloom.ingest.indexer import IndexAcks, Indexer
from quadloom.ingest.ingest import FinishedVisit, VisitWriter
from quadloom.ingest.traps import TrapFilter, read_traps
from quadloom.maintenance.replay import replay_unindexed
from quadloom.model.event import EventKind
from quadloom.model.outcome import Outcome
from quadloom.model.page import Page
from quadloom.model.url import canonical, fingerprint, host_of
from quadloom.model.visit import Visit
from quadloom.pipeline import PageResult
from quadloom.settings import Settings
from quadloom.stores.stores import Stores
from quadloom.workers.batch import TransformPool
from quadloom.workers.pool import TransformResult

_BATCH = 128


class ImportReport(msgspec.Struct, frozen=True):
    """Pages by what became of them."""

    pages: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    quarantined: int = 0


def import_pages(
    stores: Stores,
    settings: Settings,
    pages: Iterable[ImportedPage],
    now: Callable[[], float],
    progress: Callable[[int], None] = lambda _pages: None,
    notice: Callable[[EventKind, str], None] = lambda _kind, _text: None,
) -> ImportReport:
    """Read all pages into the warehouse; durable and searchable on return. `notice` hears what was quarantined."""
    replay_unindexed(stores, settings, now())
    settings = _without_links(settings)
    inbox: queue.Queue[IndexAcks] = queue.Queue()
    failpoints = Failpoints(settings.crawl.failpoint)
    statistics = Statistics.resume(stores.catalog, stores.quads)
    indexer = Indexer(stores.quads, stores.text, settings.index, inbox.put, stores.changed, failpoints, statistics)
    admission = TrapFilter(lambda _text: None, read_traps(stores.catalog))
    writer = VisitWriter(stores.frontier, stores.catalog, stores.archive, indexer, settings, failpoints, admission)
    counts = dict.fromkeys(Outcome, 0)
    batch: list[FinishedVisit] = []
    written: set[int] = set()

    def write() -> None:
        while not inbox.empty():
            writer.acknowledge(inbox.get())
        for settlement in writer.write(batch, now()):
            counts[settlement.outcome] += 1
        batch.clear()
        written.clear()
        progress(sum(counts.values()))

    try:
        with TransformPool(settings, notice=notice) as pool:
            for item, done in pool.each(pages, _task):
                number = fingerprint(canonical(item.page.url))
                if len(batch) >= _BATCH or number in written:
                    write()
                batch.append(_ready(item, _visit(stores, item), done))
                if item.source:
                    writer.sources.learn(batch[-1].visit.via, item.source)
                written.add(number)
        write()
    finally:
        indexer.close()
        write()
    if indexer.added >= ENOUGH:
        stores.quads.optimize()
    ended(stores.catalog)
    return ImportReport(
        pages=sum(counts.values()),
        new=counts[Outcome.NEW],
        changed=counts[Outcome.CHANGED],
        unchanged=counts[Outcome.UNCHANGED],
        quarantined=counts[Outcome.FAILED],
    )


def _task(item: ImportedPage) -> tuple[Visit, Page]:
    """For the workers, to whom it is all one whether the page is known."""
    key = canonical(item.page.url)
    return Visit(item.page.url, key, host_of(item.page.url), fingerprint(key), kind="other"), item.page


def _visit(stores: Stores, item: ImportedPage) -> Visit:
    key = canonical(item.page.url)
    number = fingerprint(key)
    known = stores.catalog.page(number)
    via = fingerprint(canonical(item.source)) if item.source else known.via if known else 0
    return Visit(
        item.page.url, key, host_of(item.page.url), number, known.depth if known else 0, kind="other",
        known=known is not None, via=via,
    )  # fmt: skip


def _ready(item: ImportedPage, visit: Visit, done: TransformResult | None) -> FinishedVisit:
    if done is None or done.answer is None:
        return FinishedVisit(visit, item.page, None, reason=done.reason if done is not None else "")
    woven = _as_described(done.answer.woven, item) if item.kind else done.answer.woven
    return FinishedVisit(visit, item.page, None, woven, done.answer.record)


def _as_described(woven: PageResult, item: ImportedPage) -> PageResult:
    """The dump's own digest is kept: it is that of the words the site used (`01.0` for `1`), so that a later visit
    which finds the same page knows it for unchanged."""
    quads = msgspec.structs.replace(woven.quads, digest=item.digest) if item.digest else woven.quads
    facts = msgspec.structs.replace(woven.facts, kind=item.kind, title=item.title, language=item.language)
    return msgspec.structs.replace(woven, facts=facts, quads=quads)


def _without_links(settings: Settings) -> Settings:
    return msgspec.structs.replace(settings, crawl=msgspec.structs.replace(settings.crawl, strategies=[]))
