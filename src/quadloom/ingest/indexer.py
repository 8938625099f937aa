"""The indexer: writes settled pages to the quad store and the text index, in a thread of its own.

Everything here is derived data. A page enters after its settlement is durable, and is marked as indexed after both
stores have committed it; a crash in between only means that the page is replayed from the archive at the next start.

Pages are collected and indexed together when a commit is due. If each batch were written when it is settled, it would
be too small for a bulk load, and RocksDB would spend more on compaction (.46 ms a page) than all the rest of indexing
costs. Larger commits cost less, since each leaves sorted files and a text segment to be merged later; CPU-ms a page:

    pages a commit   300   500  1000  2000
    quads            .47   .46   .32   .25
    text             .39   .36   .33   .31

While no pages arrive, the quad store may compact its files (`quadloom.ingest.compaction`).
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from quadloom.asking.statistics import Statistics
from quadloom.errors import StoreError
from quadloom.ingest.compaction import StoreCompactor
from quadloom.ingest.failpoints import Failpoints
from quadloom.model.link import Discovery
from quadloom.model.quads import Quads
from quadloom.phases.index import PAGES
from quadloom.settings import IndexSettings
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import TextDocument, TextIndex

_MAX_BYTES = 32 << 20  # of quads and text collected before they are indexed


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
    """(graph, its description in the graph `PAGES`) of pages whose own statements and text do not change."""

    descriptions: Sequence[tuple[str, bytes]]


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
        text: TextIndex,
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
        self._queue: queue.Queue[Sequence[IndexJob] | Descriptions | None] = queue.Queue(maxsize=16)
        self._collected: list[IndexJob] = []
        self._descriptions: dict[str, bytes] = {}  # of graphs that are not empty; the newest wins
        self._collected_bytes = 0
        self._since = 0.0  # when the oldest collected page arrived
        self._hurried = False
        self.error: StoreError | None = None
        self.indexed = 0
        self.added = 0
        self.removed = 0
        self.compactor = StoreCompactor(quads, lambda: statistics.properties.total())
        self._thread = threading.Thread(target=self._run, name="indexer", daemon=True)
        self._thread.start()

    def describe(self, descriptions: Sequence[tuple[str, bytes]]) -> None:
        """Like `put`, for descriptions only."""
        if descriptions:
            self.put(Descriptions(descriptions))

    def put(self, jobs: Sequence[IndexJob] | Descriptions) -> None:
        """Add a batch; waits while the queue is full (back-pressure). Raises the error that stopped the indexer."""
        while True:
            if self.error is not None:
                raise self.error
            try:
                self._queue.put(jobs, timeout=0.5)
                return
            except queue.Full:
                continue

    def hurry(self) -> None:
        """Commit what was collected without waiting for more."""
        self._hurried = True

    def close(self) -> None:
        """Index what is queued, commit, and report the last marks."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self.compactor.close()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            while True:
                try:
                    jobs = self._queue.get(timeout=0.2)
                except queue.Empty:
                    jobs = ()
                if jobs:
                    self._collect(jobs)
                elif jobs is not None and not self._collected and not self._descriptions:
                    self._idle()
                if (self._collected or self._descriptions) and (jobs is None or self._is_due()):
                    self._index(self._collected)
                    self._commit()
                if jobs is None:
                    return
        except StoreError as error:
            self.error = error

    def _idle(self) -> None:
        if self.compactor.error is not None:
            raise self.compactor.error
        self.compactor.idle()

    def _collect(self, jobs: Sequence[IndexJob] | Descriptions) -> None:
        if not self._collected and not self._descriptions:
            self._since = time.monotonic()
        if isinstance(jobs, Descriptions):
            self._descriptions.update(jobs.descriptions)
            return
        self._collected.extend(jobs)
        found = self._queries.ask_pages(jobs) if self._queries is not None else ()
        if found:
            self._report(LinksFound(found))
        self._descriptions.update((job.quads.graph, job.description) for job in jobs if not job.fresh)
        self._collected_bytes += sum(len(job.quads.nquads) + (len(job.text.body) if job.text else 0) for job in jobs)

    def _is_due(self) -> bool:
        return (
            self._hurried
            or len(self._collected) + len(self._descriptions) >= self._settings.text_commit_pages
            or self._collected_bytes >= _MAX_BYTES
            or time.monotonic() - self._since >= self._settings.text_commit_seconds
        )

    def _index(self, jobs: Sequence[IndexJob]) -> None:
        before = self.added + self.removed
        fresh = [job for job in jobs if job.fresh]
        self._quads.insert_new(
            [job.quads for job in fresh if job.write_quads], b"".join(job.description for job in fresh)
        )
        for job in jobs:
            if job.fresh:
                self.added += job.quads.count
                self._statistics.count(job.quads.nquads)
            elif job.write_quads:
                difference = self._quads.replace(job.quads, job.stored_lines)
                self._statistics.apply(difference, job.kind)
                self.added += len(difference.added)
                self.removed += len(difference.removed)
        if self._descriptions:
            self._quads.describe(PAGES, list(self._descriptions.items()))
            self._descriptions = {}
        self._failpoints.reach("after-quads")
        newest = {job.quads.graph: job for job in jobs}.values()  # a page may have been read twice meanwhile
        self._text.put([job.text for job in newest if job.text is not None and job.write_text])
        without_text = [job.quads.graph for job in newest if job.text is None and not job.fresh]
        if without_text:
            self._text.remove(without_text)
        self.indexed += len(jobs)
        self.compactor.wrote(self.added + self.removed - before)

    def _commit(self) -> None:
        self._quads.flush()
        if not self._collected:
            return  # only descriptions, which have no marks
        self._text.commit()
        self._failpoints.reach("after-text")
        marks = tuple(IndexedPage(job.fingerprint, job.quads.digest, job.text_digest) for job in self._collected)
        found = self._queries.ask_index(self._collected) if self._queries is not None else ()
        self._collected = []
        self._collected_bytes = 0
        self._hurried = False
        self._report(IndexAcks(marks, self._statistics.encode(), found))
