"""Page ranking: the link matrix grows with the crawl, and a child process ranks all pages from time to time.

The crawl appends the links of each page (`append`, some microseconds). A thread orders a ranking every
`freshness.importance_every`, and earlier if the links grew by a third. The child (`ranking_process`) merges new links
into the matrix, computes importance and usefulness from the last vectors, promotes subscribed pages and writes the
ranks as a file, which the thread publishes by one assignment; settlements look them up (`weigh`). Between two rankings
the thread runs OPIC over the pages read since, so that a page found after the last ranking has a weight, too. It
remembers `_OPIC_PAGES` of them; pages found later have no estimate until the next ranking.

What rankings cost is bounded. One that growth asks for waits until all rankings together, with this one, take at most
`_SHARE` of the CPU time of the crawl's own process. One that the clock asks for waits ten times as long as the last
one took. If each ranking comes after a growth by a third, all of them together take four times what the last one does,
however large the web.

The ranks are in `links/standings.npy`: a restart begins with them, and `quadloom why` reads them. Only pages whose
values moved need a new schedule and a new description (`take_moved`). A ranking that fails leaves them as they are.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from quadloom.errors import ChildFailed
from quadloom.model.subscription import Subscription
from quadloom.model.url import fingerprint
from quadloom.planning.ranking import page_ranks
from quadloom.planning.ranking.link_exchange import LinkExchange
from quadloom.planning.ranking.link_matrix import LinkMatrix, packed_records
from quadloom.planning.ranking.new_pages import Ids, NewPages
from quadloom.planning.ranking.opic import Opic, PageRead
from quadloom.planning.ranking.page_ranks import Fingerprints, PageRank, PageRanks
from quadloom.planning.ranking.ranking_job import RankingOrder, RankingResult, packed
from quadloom.planning.ranking.ranking_process import RankingProcess, RankingRunner
from quadloom.planning.ranking.sorted_keys import positions
from quadloom.process.clock import unix_time
from quadloom.process.threads import start
from quadloom.settings import FreshnessSettings, length_of

_FLUSH_SECONDS = 5.0  # after which other processes, such as the web site, see the links of a page
_BATCH = 64  # pages whose links are packed into records at once
_BATCH_BYTES = 1 << 20
_OPIC_EVERY = 2.0  # seconds
_OPIC_BACKLOG = 8 << 20  # bytes of links that wait for OPIC; beyond, the oldest pages are left to the next ranking
_OPIC_BATCH = 500  # pages
_OPIC_BATCH_BYTES = 1 << 19
_OPIC_PAGES = 300_000  # pages found since the last ranking that OPIC remembers, 28 bytes each
_GROWTH = 1 / 3  # a ranking is worth its cost when the links grew by this part
_LEAST_GROWTH = 50_000  # links
_START_LINKS = 500_000  # the start of the child costs as much as ranking these
_SHARE = 0.05  # of the CPU time of the crawl's own process, for rankings that growth asks for
_LEAST, _MOST = 0.01, 100.0  # bounds of an OPIC estimate


class PageRanker:
    """Ranks the pages of one warehouse, whose link matrix is in `directory`.

    `structured` returns the fingerprints of pages with structured data, `subscriptions` all subscriptions, `published`
    the URLs that site owners announced; the ranking thread calls them. The crawl's thread calls `append`, `flush`,
    `weigh`, `take_moved`, `prefer`, `start` and `close`; the ranking thread (or a test) calls `recompute` and
    `estimate_new`. `exchange`: rank by the links that all workers have seen. `runner`: where rankings are computed.
    `notice` receives why a ranking failed.
    """

    def __init__(
        self,
        directory: Path,
        freshness: FreshnessSettings,
        structured: Callable[[], Sequence[int]],
        subscriptions: Callable[[], Sequence[Subscription]],
        published: Callable[[], Sequence[str]] = lambda: (),
        exchange: LinkExchange | None = None,
        runner: RankingRunner | None = None,
        notice: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._directory = directory
        self._freshness = freshness
        self._structured = structured
        self._subscriptions = subscriptions
        self._published = published
        self._exchange = exchange
        self._runner = runner or RankingProcess()
        self._notice = notice
        self._adopted_at = 0.0  # when the ranking that was taken last from `quadloom importance` was saved
        self._segments = LinkMatrix(directory)  # only appended to
        self._appending = threading.Lock()
        self._pending: list[tuple[int, bytes]] = []
        self._pending_bytes = 0
        self._flushed_at = time.monotonic()
        self._reading = threading.Lock()  # of what waits for OPIC
        self._read: deque[tuple[int, bytes]] = deque()
        self._read_bytes = 0
        self._data_weight = freshness.chi
        self._scales = {True: self._data_weight, False: 1.0}  # weight of a page of mean importance, data or not
        self._ranks = PageRanks.load(directory)
        self._important_from = self._ranks.weight_of_top(freshness.promotion)
        self._has_moved = True  # perhaps: a crash may have left some
        self._urgent = threading.Event()
        self._unit = max(length_of("freshness.importance_every", freshness.importance_every), 1.0)
        self._links = self._segments.manifest.links  # of the last ranking
        self._appended = 0  # links of this crawl
        self._ranked = 0  # of them, when the last ranking began
        self._cost = 0.0  # CPU seconds of the last ranking
        self.cpu_seconds = 0.0  # of all rankings
        self._opic, self._new = self._estimates(unix_time())
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def append(self, source: int, targets: bytes) -> None:
        """Add all links of a page just read. `targets`: packed int64 fingerprints. Buffered; `flush` writes them."""
        self.append_all([(source, targets)])

    def append_all(self, pages: Sequence[tuple[int, bytes]]) -> None:
        """The same for several pages."""
        size = sum(len(targets) for _, targets in pages)
        self._pending += pages
        self._pending_bytes += size
        self._appended += size // 8
        with self._reading:
            self._read.extend(pages)
            self._read_bytes += size
            while self._read_bytes > _OPIC_BACKLOG:
                self._read_bytes -= len(self._read.popleft()[1])
        is_batch = len(self._pending) >= _BATCH or self._pending_bytes >= _BATCH_BYTES
        if is_batch or time.monotonic() - self._flushed_at > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the buffered links to the edge segments, and let other processes see them every few seconds."""
        pending, self._pending, self._pending_bytes = self._pending, [], 0
        if pending:
            with self._appending:
                self._segments.append_records(packed_records(pending))
                if time.monotonic() - self._flushed_at > _FLUSH_SECONDS:
                    self._segments.flush()
                    self._flushed_at = time.monotonic()

    def sync(self) -> None:
        """Return when all appended links are on disk: before their pages are marked as indexed. A page without the mark
        is transformed again after a crash, and its links are appended again."""
        self.flush()
        with self._appending:
            self._segments.sync()
            self._flushed_at = time.monotonic()

    def weigh(self, fingerprints: Sequence[int], are_data: Sequence[bool]) -> list[PageRank | None]:
        """The rank of each page: from the last fixpoint, else OPIC's estimate, None for pages that are in neither.

        `are_data`: whether each page turned out to be structured data. If it was ranked as the other kind, its weight
        is scaled accordingly.
        """
        found = self._ranks.lookup(fingerprints)
        unknown = [place for place, known in enumerate(found) if known is None]
        estimates = iter(self._estimated(unknown, fingerprints, are_data))
        return [
            next(estimates)
            if known is None
            else known[0]
            if known[1] == is_data
            else known[0]._replace(weight=known[0].importance * self._scales[is_data])
            for known, is_data in zip(found, are_data, strict=True)
        ]

    def is_important(self, rank: PageRank) -> bool:
        """Whether a page is in the top share of all, to which subscribed pages are promoted."""
        return rank.weight >= self._important_from

    def take_moved(self) -> Fingerprints | None:
        """Pages already read whose values moved since the last call; None = there was no new ranking."""
        if not self._has_moved:
            return None
        self._has_moved = False
        return page_ranks.take_moved(self._directory)

    def prefer(self, data_weight: float) -> None:
        """Set χ, the mean weight of structured pages; a new ranking starts at once."""
        self._data_weight = data_weight
        self._urgent.set()

    def start(self, failed: Callable[[BaseException], None]) -> None:
        """Start the ranking thread; it calls `failed` with the exception that ends it."""
        self._thread = start("ranking", self._run, failed)

    def rank_last(self) -> None:
        """End the thread, and rank once more if there are new links and few in all, which takes less than a second."""
        new, links = self._appended - self._ranked, self._segments.manifest.links + self._appended
        if not new or links > _START_LINKS:
            return
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.recompute(unix_time())
        except ChildFailed as failed:
            self._notice(failed.message)

    def close(self) -> None:
        """Stop the thread, with a ranking that is in progress, and write all links to disk."""
        self._stopping.set()
        self._runner.close()
        if self._thread is not None:
            self._thread.join(timeout=30.0)
        self.flush()
        with self._appending:
            self._segments.close()

    def recompute(self, now: float) -> None:
        """Compute all ranks and publish them; if somebody else has computed them lately, only publish those. Raises
        `ChildFailed`."""
        with self._reading:
            self._read.clear()
            self._read_bytes = 0
        self._ranked = self._appended  # also if it fails: the next try waits as long
        result = self.run(max(self._adopted_at, now - self._unit))
        self._links = result.links
        self._adopted_at = result.adopted_at or self._adopted_at
        if not result.pages:
            return
        self._scales = {False: result.scales[0], True: result.scales[1]}
        self._ranks = PageRanks.load(self._directory)
        self._opic, self._new = self._estimates(now)
        self._important_from = self._ranks.weight_of_top(self._freshness.promotion)
        self._has_moved = True

    def run(self, adopt_after: float = math.inf, *, save_to: str = "") -> RankingResult:
        """Compute a ranking from all links appended so far; see `RankingOrder`. Raises `ChildFailed`."""
        with self._appending:
            self._segments.sync()
        subscriptions = self._subscriptions()
        exchange = self._exchange
        order = RankingOrder(
            directory=str(self._directory),
            freshness=self._freshness,
            data_weight=self._data_weight,
            structured=packed(self._structured()),
            wanted=tuple(map(_fingerprints, (*(item.urls for item in subscriptions), self._published()))),
            subscribed=_fingerprints([url for item in subscriptions for url in item.urls]),
            shared=str(exchange.directory) if exchange is not None else "",
            worker=exchange.worker if exchange is not None else "",
            adopt_after=adopt_after,
            save_to=save_to,
        )
        result = self._runner.run(order)
        self._cost = result.cpu_seconds
        self.cpu_seconds += result.cpu_seconds
        return result

    def estimate_new(self, now: float) -> None:
        """Run OPIC over the pages read since the last ranking. In batches, because id lookups cost the most."""
        while (batch := self._next_read()) and not self._stopping.is_set():
            counts = [len(targets) // 8 + 1 for _, targets in batch]
            ids = self._dense(b"".join(source.to_bytes(8, "little", signed=True) + links for source, links in batch))
            start = 0
            reads: list[PageRead] = []
            for count in counts:
                source, links = int(ids[start]), ids[start + 1 : start + count]
                start += count
                if source >= 0:
                    known = links[links >= 0]
                    reads.append(PageRead(source, known, len(links) - len(known)))
            self._opic.read(reads, now / self._unit)

    def _estimates(self, now: float) -> tuple[Opic, NewPages]:
        """OPIC from the published ranks on: ids are places in their table, then those of new pages."""
        # With a window of one time unit, the histories of the fixpoint weigh as much as all cash together, and a new
        # page, which has cash but no history, still counts.
        opic = Opic(window=1.0, damping=self._freshness.damping)
        pages = len(self._ranks.table)
        if pages:
            importance = np.ascontiguousarray(self._ranks.table["importance"])
            total = float(importance.sum(dtype=np.float64))
            opic.start(importance / (total or 1.0), now / self._unit)
        return opic, NewPages(pages, _OPIC_PAGES)

    def _next_read(self) -> list[tuple[int, bytes]]:
        batch: list[tuple[int, bytes]] = []
        size = 0
        with self._reading:
            while self._read and len(batch) < _OPIC_BATCH and size < _OPIC_BATCH_BYTES:
                batch.append(self._read.popleft())
                size += len(batch[-1][1])
            self._read_bytes -= size
        return batch

    def _dense(self, packed_pages: bytes) -> Ids:
        """Ids of ranked pages; pages that are not ranked yet get the next free ids, or -1 if there are too many."""
        fingerprints = np.frombuffer(packed_pages, dtype="<i8")
        places, found = positions(self._ranks.fingerprints, fingerprints)
        ids = np.where(found, places, -1)
        ids[~found] = self._new.add(fingerprints[~found])
        return ids

    def _estimated(
        self, places: Sequence[int], fingerprints: Sequence[int], are_data: Sequence[bool]
    ) -> list[PageRank | None]:
        """Estimates of OPIC for the pages at these places."""
        opic, new = self._opic, self._new
        if not places or not len(new):
            return [None] * len(places)
        ids = new.find(np.array([fingerprints[place] for place in places], dtype=np.int64))
        estimates = (opic.importance(ids) * opic.pages).tolist()
        weights = [value * self._scales[are_data[place]] for place, value in zip(places, estimates, strict=True)]
        return [
            PageRank(min(max(weight, _LEAST), _MOST), estimate) if is_known else None
            for is_known, weight, estimate in zip((ids >= 0).tolist(), weights, estimates, strict=True)
        ]

    def _has_grown(self) -> bool:
        """Whether the links grew so much that the next ranking should not wait for its time, and may be paid for."""
        new = self._appended - self._ranked
        if new < max(_LEAST_GROWTH, _GROWTH * self._links):
            return False
        expected = self._cost * (1.0 + new / max(self._links, _START_LINKS))
        return self.cpu_seconds + expected <= _SHARE * time.process_time()

    def _run(self) -> None:
        every = self._unit
        due = time.monotonic() + min(every, 60.0)  # the first ranking is soon, since a young crawl changes fastest
        while not self._stopping.wait(min(_OPIC_EVERY, every)):
            began = time.monotonic()
            if began >= due or self._urgent.is_set() or (self.cpu_seconds and self._has_grown()):
                self._urgent.clear()
                try:
                    self.recompute(unix_time())
                except ChildFailed as failed:
                    if not self._stopping.is_set():
                        self._notice(failed.message)
                now = time.monotonic()
                due = now + max(every, 10.0 * (now - began))
            else:
                self.estimate_new(unix_time())


def _fingerprints(urls: Iterable[str]) -> bytes:
    return packed([fingerprint(url) for url in urls])
