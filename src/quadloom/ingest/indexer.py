"""The indexer: quads and text follow the settled truth, in a thread of their own.

Everything here is derived. A page enters after its settlement is durable, and is marked as indexed after both
stores have said so; between the two, a crash only means that the page is replayed from the archive at the next start.

Pages are gathered and indexed at once when a commit is due. Written batch by batch as they settle, each batch is
too small for a bulk load, and RocksDB then spends more on compaction (.46 ms a page) than all the rest of indexing.
Larger commits go on paying, since each leaves sorted files and a segment of words to be merged later; CPU-ms a page

    pages a commit   300   500  1000  2000
    quads            .47   .46   .32   .25
    text             .39   .36   .33   .31

While nothing comes, the store may put its files in order (`quadloom.ingest.compaction`).
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence

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
from quadloom.stores.protocols.quads import Difference, QuadStore
from quadloom.stores.protocols.text import TextDocument, TextIndex

_MOST_BYTES = 32 << 20  # of quads and text gathered before they are indexed


class IndexJob(msgspec.Struct, frozen=True):
    """`fresh`: the graph cannot hold anything yet. `text` None: the page has no words to keep."""

    fingerprint: int
    quads: Quads
    text: TextDocument | None
    text_digest: bytes
    fresh: bool
    write_quads: bool = True
    write_text: bool = True
    about: bytes = b""  # description of the page, N-Quads in the graph `PAGES`
    links: bytes = b""  # all its links as N-Quads, where user queries want them
    depth: int = 0
    known: bytes = b""  # fingerprints of the lines that the graph holds now, where that is sure
    host: str = ""  # of the page, which says whose it is


class Descriptions(msgspec.Struct, frozen=True):
    """(graph, what the graph `PAGES` says of it) of pages whose own statements and words stay as they are."""

    abouts: Sequence[tuple[str, bytes]]


class IndexAcks(msgspec.Struct, frozen=True):
    """What both indexes have acknowledged, to be written with the next settlement."""

    marks: tuple[IndexedPage, ...]
    statistics: bytes = b""  # counts of all that is marked, these included
    discoveries: tuple[Discovery, ...] = ()  # by the user's own link strategies


class Indexer:
    """`put` batches; `report` receives `IndexAcks`; `changed` hears what each replacement added and removed."""

    def __init__(
        self,
        quads: QuadStore,
        text: TextIndex,
        settings: IndexSettings,
        report: Callable[[IndexAcks], None],
        changed: Callable[[str, Difference], None],
        failpoints: Failpoints,
        statistics: Statistics,
        extract: Callable[[Sequence[IndexJob]], tuple[Discovery, ...]] = lambda _entries: (),
    ) -> None:
        self._extract = extract
        self._quads = quads
        self._statistics = statistics
        self._text = text
        self._settings = settings
        self._report = report
        self._changed = changed
        self._failpoints = failpoints
        self._queue: queue.Queue[Sequence[IndexJob] | Descriptions | None] = queue.Queue(maxsize=16)
        self._gathered: list[IndexJob] = []
        self._abouts: dict[str, bytes] = {}  # of graphs that hold something already; the newest wins
        self._gathered_bytes = 0
        self._since = 0.0  # when the oldest of them came
        self.error: StoreError | None = None
        self.indexed = 0
        self.added = 0
        self.removed = 0
        self.cpu_seconds = 0.0
        self.tidying = StoreCompactor(quads, lambda: statistics.properties.total())
        self._thread = threading.Thread(target=self._run, name="indexer", daemon=True)
        self._thread.start()

    def describe(self, abouts: Sequence[tuple[str, bytes]]) -> None:
        """Only the descriptions of pages. As `put`."""
        if abouts:
            self.put(Descriptions(abouts))

    def put(self, entries: Sequence[IndexJob] | Descriptions) -> None:
        """Waits while the queue is full: back-pressure. Raises the error that stopped the indexer, if one did."""
        while True:
            if self.error is not None:
                raise self.error
            try:
                self._queue.put(entries, timeout=0.5)
                return
            except queue.Full:
                continue

    def close(self) -> None:
        """Finish what is queued, commit, report the last marks."""
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join()
        self.tidying.close()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            while True:
                try:
                    entries = self._queue.get(timeout=0.2)
                except queue.Empty:
                    entries = ()
                if entries:
                    self._gather(entries)
                elif entries is not None and not self._gathered and not self._abouts:
                    self._rest()
                if (self._gathered or self._abouts) and (entries is None or self._is_due()):
                    started = time.thread_time()
                    self._index(self._gathered)
                    self._commit()
                    self.cpu_seconds += time.thread_time() - started
                if entries is None:
                    return
        except StoreError as error:
            self.error = error

    def _rest(self) -> None:
        if self.tidying.error is not None:
            raise self.tidying.error
        self.tidying.rest()

    def _gather(self, entries: Sequence[IndexJob] | Descriptions) -> None:
        if not self._gathered and not self._abouts:
            self._since = time.monotonic()
        if isinstance(entries, Descriptions):
            self._abouts.update(entries.abouts)
            return
        self._gathered.extend(entries)
        self._abouts.update((entry.quads.graph, entry.about) for entry in entries if not entry.fresh)
        self._gathered_bytes += sum(
            len(entry.quads.nquads) + (len(entry.text.body) if entry.text else 0) for entry in entries
        )

    def _is_due(self) -> bool:
        return (
            len(self._gathered) + len(self._abouts) >= self._settings.text_commit_pages
            or self._gathered_bytes >= _MOST_BYTES
            or time.monotonic() - self._since >= self._settings.text_commit_seconds
        )

    def _index(self, entries: Sequence[IndexJob]) -> None:
        before = self.added + self.removed
        fresh = [entry for entry in entries if entry.fresh]
        self._quads.insert_new(
            [entry.quads for entry in fresh if entry.write_quads], b"".join(entry.about for entry in fresh)
        )
        for entry in entries:
            if entry.fresh:
                self.added += entry.quads.count
                self._statistics.count(entry.quads.nquads)
            elif entry.write_quads:
                difference = self._quads.replace(entry.quads, entry.known)
                self._statistics.apply(difference)
                self.added += len(difference.added)
                self.removed += len(difference.removed)
                if difference:
                    self._changed(entry.quads.graph, difference)
        if self._abouts:
            self._quads.describe(PAGES, list(self._abouts.items()))
            self._abouts = {}
        self._failpoints.reach("after-quads")
        newest = {entry.quads.graph: entry for entry in entries}.values()  # a page may have been read twice meanwhile
        self._text.put([entry.text for entry in newest if entry.text is not None and entry.write_text])
        without = [entry.quads.graph for entry in newest if entry.text is None and not entry.fresh]
        if without:
            self._text.remove(without)
        self.indexed += len(entries)
        self.tidying.wrote(self.added + self.removed - before)

    def _commit(self) -> None:
        self._quads.flush()
        if not self._gathered:
            return  # only descriptions, which the catalog does not mark
        self._text.commit()
        self._failpoints.reach("after-text")
        marks = tuple(IndexedPage(entry.fingerprint, entry.quads.digest, entry.text_digest) for entry in self._gathered)
        found = self._extract(self._gathered)
        self._gathered = []
        self._gathered_bytes = 0
        self._report(IndexAcks(marks, self._statistics.encode(), found))
