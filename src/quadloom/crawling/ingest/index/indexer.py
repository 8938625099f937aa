"""The indexer: writes settled pages to the quad store and the text index, in a thread of its own.

Everything here is derived data. A page enters after its settlement is durable, and is marked as indexed after both
stores have committed it; a crash in between only means that the page is replayed from the archive at the next start.

Pages are collected and indexed together when a commit is due. If each batch were written when it is settled, it would
be too small for a bulk load, and RocksDB would spend more on compaction (.46 ms a page) than all the rest of indexing
costs. Larger commits cost less, since each leaves sorted files and a text segment to be merged later; CPU-ms a page:

    pages a commit   300   500  1000  2000
    quads            .47   .46   .32   .25
    text             .39   .36   .33   .31

In a large store each commit costs more, because the engine merges it with what is there. So the larger the store, the
longer pages are collected: 15,000 pages of 107 quads took 1.36 CPU-ms a page in commits of 1,000, of which .58 were
merging, and 1.12 in commits of 3,400. In a store of three million statements, merging alone took .39 to .54 ms a small
page in commits of at most 12,000 pages, and .25 in larger ones.

While no pages arrive, the quad store may compact its files (`quadloom.crawling.ingest.index.compaction`).
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from quadloom.crawling.ingest.index.compaction import StoreCompactor
from quadloom.documents.descriptions import PAGES, VISITS
from quadloom.errors import StoreUnavailable
from quadloom.model.link import Discovery
from quadloom.model.quads import Quads
from quadloom.model.text import TextDocument
from quadloom.process import threads
from quadloom.process.failpoints import Failpoints
from quadloom.process.waiting import Waiting
from quadloom.settings import IndexSettings
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.protocols.quads import BULK_QUADS, QuadStore
from quadloom.stores.protocols.text import TextWriter
from quadloom.stores.statistics import Statistics

_BATCHES = 16  # that wait; more of them make the crawl wait
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0  # seconds between two tries while a store is away
_QUEUED_BYTES = 8 << 20  # of quads and text that wait to be collected; more of them make the crawl wait
_MAX_BYTES = 32 << 20  # of quads and text collected before they are indexed
_SMALL_STORE = 100_000  # statements of pages; in a store of twice as many, commits are twice as large, and so on
_MOST_PATIENCE = 12.0  # for the time; the number of pages has no limit but that of their bytes
_MOST_BYTES = 48 << 20  # the same as `_MAX_BYTES`, however large the store is


class IndexJob(msgspec.Struct, frozen=True):
    """One page for both indexes. `fresh`: its graph is still empty. `text`: None = the page has no text to search."""

    fingerprint: int
    quads: Quads
    text: TextDocument | None
    text_digest: bytes
    fresh: bool
    write_quads: bool = True
    write_text: bool = True
    description: bytes = b""  # of the page, N-Quads in the graph `PAGES`
    links: bytes = b""  # all its links as N-Quads, if user queries want them
    depth: int = 0
    stored_lines: bytes = b""  # fingerprints of the lines in the graph now, if they are certain
    host: str = ""  # of the page; decides to which shard it belongs
    kind: str = ""  # of the document, if the job is a new version of it; for the statistics


class Descriptions(msgspec.Struct, frozen=True):
    """(subject, its description in `graph`) of pages whose own statements and text do not change."""

    descriptions: Sequence[tuple[str, bytes]]
    graph: str = PAGES


class IndexAcks(msgspec.Struct, frozen=True):
    """What both indexes have acknowledged, to be written with the next settlement."""

    marks: tuple[IndexedPage, ...]
    statistics: bytes = b""  # counts of all indexed pages, including these
    discoveries: tuple[Discovery, ...] = ()  # found by the user's own link queries


class LinksFound(msgspec.Struct, frozen=True):
    """Links that the user's own queries have found on pages which are not indexed yet. They are written first: the
    page stays unindexed until then, so that a crash repeats the queries."""

    discoveries: tuple[Discovery, ...]


class LinkQuestions(Protocol):
    """The user's own link queries, asked in the indexer's thread."""

    def ask_pages(self, jobs: Sequence[IndexJob]) -> tuple[Discovery, ...]:
        """Of the pages' own graphs, as soon as they are settled."""
        ...

    def ask_index(self, jobs: Sequence[IndexJob]) -> tuple[Discovery, ...]:
        """Of the whole index, which has these pages now."""
        ...


class Indexer:
    """`put` takes batches; `report` receives `IndexAcks` and `LinksFound`."""

    def __init__(
        self,
        quads: QuadStore,
        text: TextWriter,
        settings: IndexSettings,
        report: Callable[[IndexAcks | LinksFound], None],
        failpoints: Failpoints,
        statistics: Statistics,
        queries: LinkQuestions | None = None,
    ) -> None:
        self._queries = queries
        self._quads = quads
        self._statistics = statistics
        self._text = text
        self._settings = settings
        self._report = report
        self._failpoints = failpoints
        self._queue: queue.Queue[Sequence[IndexJob] | Descriptions | None] = queue.Queue()
        self.waiting = Waiting()  # why a store cannot be written now
        self._closing = False
        self._inserted = False  # of the collected pages, those without a predecessor are in the quad store
        self._replaced = 0  # of the collected pages, so many are done; a second try goes on after them
        self._collected: list[IndexJob] = []
        self._descriptions: dict[str, bytes] = {}  # of graphs that are not empty; the newest wins
        self._visits: dict[str, bytes] = {}  # descriptions for the graph of visits
        self._collected_bytes = 0
        self._since = 0.0  # when the oldest collected page arrived
        self._hurried = False
        self._patience = _patience(statistics)
        self._queued_bytes = 0
        self._counting = threading.Lock()
        self.error: BaseException | None = None  # what ended the thread
        self.indexed = 0
        self.added = 0
        self.removed = 0
        self.compactor = StoreCompactor(quads, lambda: statistics.properties.total())
        self._thread = threads.start("indexer", self._run, self._failed)

    def describe(self, descriptions: Sequence[tuple[str, bytes]], graph: str = PAGES) -> None:
        """Like `put`, for descriptions only."""
        if descriptions:
            self.put(Descriptions(descriptions, graph))

    @property
    def _has_work(self) -> bool:
        return bool(self._collected or self._descriptions or self._visits)

    def put(self, jobs: Sequence[IndexJob] | Descriptions) -> None:
        """Add a batch; waits while the queue is full (back-pressure). Raises the error that stopped the indexer. While
        a store is away nobody waits: the caller sees `waiting`, and begins nothing more."""
        while (self._queue.qsize() >= _BATCHES or self._queued_bytes >= _QUEUED_BYTES) and not self.waiting.reason:
            self.check()
            time.sleep(0.02)
        self.check()
        with self._counting:
            self._queued_bytes += _size(jobs)
        self._queue.put(jobs)

    def hurry(self) -> None:
        """Commit what was collected without waiting for more."""
        self._hurried = True

    def close(self) -> None:
        """Index what is queued, commit, and report the last marks. Does not wait for a store that is away: what is not
        indexed then is so after the next start."""
        self._closing = True
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self.compactor.close()
        self.check()

    def check(self) -> None:
        """Raise the error that stopped the indexer, if one did: nothing that waits for it would ever be indexed."""
        if self.error is not None:
            raise self.error

    def _failed(self, error: BaseException) -> None:
        self.error = error

    def _run(self) -> None:
        while True:
            try:
                jobs = self._queue.get(timeout=0.2)
            except queue.Empty:
                jobs = ()
            if jobs:
                with self._counting:
                    self._queued_bytes -= _size(jobs)
                self._collect(jobs)
            elif jobs is not None and not self._has_work:
                self._idle()
            if self._has_work and (jobs is None or self._is_due()):
                self._write()
            if jobs is None:
                return

    def _write(self) -> None:
        """Write what was collected, as soon as the stores can be reached. Statements are sets, so writing them twice
        does no harm; only what was counted must not be counted again."""
        pause = _FIRST_PAUSE
        while True:
            try:
                self._index(self._collected)
                self._commit()
            except StoreUnavailable as error:
                if self._closing:
                    raise
                self.waiting.on(error.message)
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
            else:
                self.waiting.off()
                self._quads.release_memory()
                return

    def _idle(self) -> None:
        if self.compactor.error is not None:
            raise self.compactor.error
        self.compactor.idle()

    def _collect(self, jobs: Sequence[IndexJob] | Descriptions) -> None:
        if not self._has_work:
            self._since = time.monotonic()
        if isinstance(jobs, Descriptions):
            (self._descriptions if jobs.graph == PAGES else self._visits).update(jobs.descriptions)
            return
        self._collected.extend(jobs)
        found = self._queries.ask_pages(jobs) if self._queries is not None else ()
        if found:
            self._report(LinksFound(found))
        self._descriptions.update((job.quads.graph, job.description) for job in jobs if not job.fresh)
        self._collected_bytes += _size(jobs)

    def _is_due(self) -> bool:
        waiting = len(self._collected) + len(self._descriptions) + len(self._visits)
        seconds = self._settings.text_commit_seconds * min(self._patience, _MOST_PATIENCE)
        return (
            self._hurried
            or waiting >= self._settings.text_commit_pages * self._patience
            or self._collected_bytes >= min(_MAX_BYTES * self._patience, _MOST_BYTES)
            or time.monotonic() - self._since >= seconds
        )

    def _index(self, jobs: Sequence[IndexJob]) -> None:
        changed = 0  # statements that the quad store has written otherwise than in bulk
        if not self._inserted:
            fresh = [job for job in jobs if job.fresh]
            new = [job.quads for job in fresh if job.write_quads]
            self._quads.insert_new(new, b"".join(job.description for job in fresh))
            self._inserted = True
            count = sum(quads.count for quads in new)
            changed = count if count < BULK_QUADS else 0
        for job in jobs[self._replaced :]:
            if job.fresh:
                self.added += job.quads.count
                for lines in job.quads.blocks():
                    self._statistics.count(lines)
            elif job.write_quads:
                difference = self._quads.replace(job.quads, job.stored_lines)
                self._statistics.apply(difference, job.kind)
                self.added += len(difference.added)
                self.removed += len(difference.removed)
                changed += len(difference.added) + len(difference.removed)
            self._replaced += 1
        if self._descriptions:
            self._quads.describe(PAGES, list(self._descriptions.items()))
            self._descriptions = {}
        if self._visits:
            self._quads.describe(VISITS, list(self._visits.items()))
            self._visits = {}
        self._failpoints.reach("after-quads")
        newest = {job.quads.graph: job for job in jobs}.values()  # a page may have been read twice meanwhile
        self._text.put([job.text for job in newest if job.text is not None and job.write_text])
        without_text = [job.quads.graph for job in newest if job.text is None and not job.fresh]
        if without_text:
            self._text.remove(without_text)
        self.compactor.wrote(changed)

    def _commit(self) -> None:
        self._quads.flush()
        if not self._collected:
            self._inserted, self._replaced = False, 0
            return  # only descriptions, which have no marks
        self._text.commit()
        self._failpoints.reach("after-text")
        marks = tuple(IndexedPage(job.fingerprint, job.quads.digest, job.text_digest) for job in self._collected)
        found = self._queries.ask_index(self._collected) if self._queries is not None else ()
        self.indexed += len(self._collected)
        self._collected = []
        self._inserted, self._replaced = False, 0
        self._collected_bytes = 0
        self._hurried = False
        self._patience = _patience(self._statistics)
        self._report(IndexAcks(marks, self._statistics.encode(), found))


def _patience(statistics: Statistics) -> float:
    """By how much the commits of a store of this size are larger than the settings say."""
    return max(statistics.properties.total() / _SMALL_STORE, 1.0)


def _size(jobs: Sequence[IndexJob] | Descriptions) -> int:
    """Bytes of their statements and words, however they are packed: what it takes to write them counts."""
    if isinstance(jobs, Descriptions):
        return 0
    return sum(job.quads.size + len(job.description) + (len(job.text.body) if job.text else 0) for job in jobs)
