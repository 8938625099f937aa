"""Page ranking: the link matrix grows with the crawl, and a background thread recomputes importance from time to time.

The crawl appends the links of each page (`append`, some microseconds). Every `freshness.importance_every` the thread
merges them into the matrix, computes importance and usefulness with a warm start, promotes subscribed pages, and
replaces the published ranks by one assignment; settlements look them up (`weigh`). Between two fixpoints the same
thread runs OPIC over the pages read since, so that a page found after the last fixpoint has a weight, too. It remembers
`_OPIC_PAGES` of them. Pages found later have no estimate until the next fixpoint, which then comes early if those
that OPIC remembers are at least half as many as the matrix has.

The ranks are also stored in `links/standings.npy`: a restart begins with them, and `quadloom why` reads them. Only
pages whose values moved need a new schedule and a new description (`take_moved`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from quadloom.errors import StoreError
from quadloom.model.subscription import Subscription, personalization
from quadloom.model.url import fingerprint
from quadloom.process.clock import unix_time
from quadloom.process.limits import trim_memory
from quadloom.process.threads import start
from quadloom.ranking.importance import Dangling, Personalization
from quadloom.ranking.link_exchange import LinkExchange
from quadloom.ranking.link_matrix import LinkMatrix, packed_records
from quadloom.ranking.link_slices import FileSlices
from quadloom.ranking.opic import Opic
from quadloom.ranking.page_ranks import (
    Fingerprints,
    Mask,
    PageRank,
    PageRanks,
    Ranking,
    RankMasks,
    Scaled,
    Vector,
)
from quadloom.ranking.sweeps import Csr
from quadloom.ranking.usefulness import RankVectors, Variant, promoted, rank, weights
from quadloom.settings import FreshnessSettings, length_of

_FLUSH_SECONDS = 5.0  # after which other processes, such as the web site, see the links of a page
_BATCH = 64  # pages whose links are packed into records at once
_OPIC_EVERY = 2.0  # seconds
_OPIC_BACKLOG = 200_000  # pages that wait for OPIC; beyond, the oldest are left to the next fixpoint
_OPIC_BATCH = 500
_OPIC_PAGES = 300_000  # pages found since the last fixpoint that OPIC remembers, 160 bytes each
_EARLY = 0.5  # of the matrix: with as many new pages that OPIC cannot remember, a fixpoint is worth its cost
_LEAST, _MOST = 0.01, 100.0  # bounds of an OPIC estimate
_LINK_BYTES = 9  # of a link in memory: its target, its weight, and its word in a slice
_TOLERANCE = 1e-6  # of a fixpoint: weights are estimates, and each further digit costs a fifth more sweeps


class Solver(Protocol):
    """Computes both fixpoints; see `usefulness.rank`."""

    def __call__(
        self,
        links: Csr | FileSlices,
        structured: Mask,
        *,
        variant: Variant,
        damping: float,
        personalization: Personalization,
        dangling: Dangling,
        tol: float,
        start: RankVectors | None,
    ) -> RankVectors: ...


class PageRanker:
    """Ranks the pages of one warehouse, whose link matrix is in `directory`.

    `structured` returns the fingerprints of pages with structured data, `subscriptions` all subscriptions, `published`
    the URLs that site owners announced; the ranking thread calls them. The crawl's thread calls `append`, `flush`,
    `weigh`, `take_moved`, `prefer`, `start` and `close`; the ranking thread (or a test) calls `recompute` and
    `estimate_new`. `exchange`: rank by the links that all workers have seen.
    """

    def __init__(
        self,
        directory: Path,
        freshness: FreshnessSettings,
        structured: Callable[[], Sequence[int]],
        subscriptions: Callable[[], Sequence[Subscription]],
        published: Callable[[], Sequence[str]] = lambda: (),
        exchange: LinkExchange | None = None,
        solve: Solver = rank,
    ) -> None:
        self._directory = directory
        self._freshness = freshness
        self._structured = structured
        self._subscriptions = subscriptions
        self._published = published
        self._solve = solve
        # Where `quadloom importance` leaves a ranking for all workers, and for the next crawl on one machine.
        self._shared = directory if exchange is None else exchange.directory
        self._adopted_at = 0.0  # when the ranking that was taken last from there was saved
        self._segments = LinkMatrix(directory)  # only appended to
        self._matrix = LinkMatrix(directory, exchange=exchange)  # only merged and read
        self._appending = threading.Lock()
        self._pending: list[tuple[int, bytes]] = []
        self._flushed_at = time.monotonic()
        self._read: deque[tuple[int, bytes]] = deque(maxlen=_OPIC_BACKLOG)
        self._last: RankVectors | None = None
        self._data_weight = freshness.chi
        self._scales = {True: self._data_weight, False: 1.0}  # weight of a page of mean importance, data or not
        self._ranks = PageRanks.load(directory)
        self._important_from = self._ranks.weight_of_top(freshness.promotion)
        self._moved: Fingerprints | None = None
        self._urgent = threading.Event()
        # With a window of one time unit, the histories of the fixpoint weigh as much as all cash together, and a new
        # page, which has cash but no history, still counts.
        self._unit = max(length_of("freshness.importance_every", freshness.importance_every), 1.0)
        self._opic = Opic(window=1.0, damping=freshness.damping)
        self._fresh: dict[int, int] = {}  # id by fingerprint, of pages that are not in the matrix yet
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def append(self, source: int, targets: bytes) -> None:
        """Add all links of a page just read. `targets`: packed int64 fingerprints. Buffered; `flush` writes them."""
        self._pending.append((source, targets))
        self._read.append((source, targets))
        if len(self._pending) >= _BATCH or time.monotonic() - self._flushed_at > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the buffered links to the edge segments, and let other processes see them every few seconds."""
        pending, self._pending = self._pending, []
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
        found: list[PageRank | None] = []
        for key, is_data, known in zip(fingerprints, are_data, self._ranks.lookup(fingerprints), strict=True):
            if known is None:
                found.append(self._estimate(key, is_data) if self._fresh else None)
            elif known[1] == is_data:
                found.append(known[0])
            else:
                found.append(known[0]._replace(weight=known[0].importance * self._scales[is_data]))
        return found

    def is_important(self, rank: PageRank) -> bool:
        """Whether a page is in the top share of all, to which subscribed pages are promoted."""
        return rank.weight >= self._important_from

    def take_moved(self) -> Fingerprints | None:
        """Pages already read whose values moved since the last call; None = there was no new ranking."""
        moved, self._moved = self._moved, None
        return moved

    def prefer(self, data_weight: float) -> None:
        """Set χ, the mean weight of structured pages; a new ranking starts at once."""
        self._data_weight = data_weight
        self._urgent.set()

    def start(self, failed: Callable[[BaseException], None]) -> None:
        """Start the ranking thread; it calls `failed` with the exception that ends it."""
        self._thread = start("ranking", self._run, failed)

    def close(self) -> None:
        """Stop the thread and write all links to disk."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=30.0)
        self.flush()
        with self._appending:
            self._segments.close()

    def recompute(self, now: float) -> None:
        """Compute all ranks and publish them; if somebody else has computed them lately, only publish those."""
        saved = Ranking.saved(self._shared, max(self._adopted_at, now - self._unit))
        if saved is None:
            ranking = self.compute()
        else:
            ranking, self._adopted_at = saved
            self.merge()
        if ranking is None:
            return
        self._publish(ranking)
        self._opic.start(self._of_matrix(ranking), now / self._unit)
        self._fresh = {}
        del ranking, saved
        trim_memory()

    def merge(self) -> None:
        """Merge the links appended since into the matrix."""
        with self._appending:
            self._segments.sync()
        self._read.clear()
        with suppress(StoreError):  # the shared directory is away: the links it has wait for the next time
            self._matrix.publish()
        self._matrix.rebuild()

    def compute(self) -> Ranking | None:
        """Merge the links appended since and compute the ranks of all pages. None = there are no links."""
        self.merge()
        pages = self._matrix.manifest.pages
        if not pages:
            return None
        structured = np.zeros(pages, dtype=bool)
        ids = self._matrix.ids(np.fromiter(self._structured(), dtype=np.int64))
        structured[ids[ids >= 0]] = True
        wanted = [ids for urls in self._groups() if len(ids := self._known(self._matrix.ids(_fingerprints(urls))))]
        links = self._links()
        self._last = self._solve(
            links,
            structured,
            variant=self._freshness.usefulness,
            damping=self._freshness.damping,
            personalization=personalization(pages, wanted),
            dangling=self._freshness.dangling,
            tol=_TOLERANCE,
            start=self._last,
        )
        # The matrix cannot tell a page without links from one that was not read; such pages are rare.
        degrees = links.outdegree if isinstance(links, FileSlices) else np.diff(links.indptr)
        read = np.asarray((degrees > 0) | structured)
        return Ranking(self._matrix.fingerprints(), self._last.importance, self._last.usefulness, structured, read)

    def _is_of_matrix(self, ranking: Ranking) -> bool:
        """Whether a ranking is of the matrix's own pages, in their order."""
        return np.array_equal(self._matrix.fingerprints(), ranking.fingerprints)

    def _of_matrix(self, ranking: Ranking) -> Vector:
        """The importance of the matrix's own pages, which may be others than those of the ranking."""
        if self._is_of_matrix(ranking):
            return ranking.importance
        own = self._matrix.fingerprints()
        known, ids = ranking.sorted_pages()
        place = np.minimum(np.searchsorted(known, own), len(known) - 1)
        found = known[place] == own
        values = np.where(found, ranking.importance[ids[place]], ranking.importance.mean())
        return np.asarray(values / (values.sum() or 1.0))

    def _links(self) -> Csr | FileSlices:
        """The matrix in memory, or slices on disk if it would take more than `freshness.importance_memory`."""
        if self._matrix.manifest.links * _LINK_BYTES > self._freshness.importance_memory:
            return self._matrix.slices()
        return self._matrix.csr()

    def _publish(self, ranking: Ranking) -> None:
        """Replace the ranks, and note which of the pages that were read have moved."""
        data_weight, structured = self._data_weight, ranking.structured
        ordinary = ranking.read & ~structured
        values = weights(ranking.importance, ranking.usefulness, structured, data_weight, ranking.read)
        pages = self._matrix.sorted_pages() if self._is_of_matrix(ranking) else ranking.sorted_pages()
        wanted = [url for item in self._subscriptions() for url in item.urls]
        if wanted:
            values = promoted(values, pages.ids_of(_fingerprints(wanted)), self._freshness.promotion)
        count = len(ranking.fingerprints)
        means = {
            is_data: _mean(ranking.importance[mask] * count)
            for is_data, mask in ((True, structured), (False, ordinary))
        }
        vectors: dict[str, Scaled] = {
            "weight": (values, 1.0),
            "importance": (ranking.importance, count),
            "usefulness": (ranking.usefulness, 1.0 / _mean(ranking.usefulness[ordinary])),
        }
        masks = RankMasks(structured, ranking.read)
        ranks, moved = PageRanks.publish(self._directory, pages, vectors, masks, self._ranks)
        self._scales = {True: data_weight / means[True], False: 1.0 / means[False]}
        self._ranks = ranks
        self._important_from = ranks.weight_of_top(self._freshness.promotion)
        earlier = self._moved
        self._moved = moved if earlier is None else np.union1d(earlier, moved)

    def estimate_new(self, now: float) -> None:
        """Run OPIC over the pages read since the last fixpoint. In batches, because id lookups cost the most."""
        while self._read and not self._stopping.is_set():
            batch = [self._read.popleft() for _ in range(min(len(self._read), _OPIC_BATCH))]
            counts = [len(targets) // 8 + 1 for _, targets in batch]
            ids = self._dense(b"".join(source.to_bytes(8, "little", signed=True) + links for source, links in batch))
            start = 0
            for count in counts:
                source, links = ids[start], ids[start + 1 : start + count]
                start += count
                if source >= 0:
                    known = [id for id in links if id >= 0] if self._is_full else links
                    self._opic.read(source, known, now / self._unit, len(links) - len(known))

    def _groups(self) -> list[Sequence[str]]:
        """Pages that people want: of each subscription, which are the links of its virtual page, and published ones."""
        return [*(item.urls for item in self._subscriptions()), self._published()]

    def _known(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        return ids[ids >= 0].astype(np.intp)

    def _dense(self, packed: bytes) -> list[int]:
        """Ids as in the matrix; pages that are not in it yet get the next free ids, or -1 if there are too many."""
        fingerprints = np.frombuffer(packed, dtype="<i8")
        ids = self._matrix.ids(fingerprints)
        fresh, first = self._fresh, self._matrix.manifest.pages
        for place in np.flatnonzero(ids < 0):
            key = int(fingerprints[place])
            if self._is_full:
                ids[place] = fresh.get(key, -1)
            else:
                ids[place] = fresh.setdefault(key, first + len(fresh))
        dense: list[int] = ids.tolist()
        return dense

    def _estimate(self, key: int, is_data: bool) -> PageRank | None:
        id = self._fresh.get(key)
        if id is None:
            return None
        importance = self._opic.importance(id) * self._opic.pages
        return PageRank(min(max(importance * self._scales[is_data], _LEAST), _MOST), importance)

    @property
    def _is_full(self) -> bool:
        return len(self._fresh) >= _OPIC_PAGES

    def _is_worth_ranking(self) -> bool:
        """Whether so many pages were found that the next ranking should not wait for its time."""
        return self._is_full and len(self._fresh) >= _EARLY * self._matrix.manifest.pages

    def _run(self) -> None:
        every = self._unit
        due = time.monotonic() + min(every, 60.0)  # the first ranking is soon, since a young crawl changes fastest
        earliest = 0.0
        while not self._stopping.wait(min(_OPIC_EVERY, every)):
            now = time.monotonic()
            if now >= due or self._urgent.is_set() or (now >= earliest and self._is_worth_ranking()):
                self._urgent.clear()
                self.recompute(unix_time())
                earliest = time.monotonic() + 10.0 * (time.monotonic() - now)
                due = max(time.monotonic() + every, earliest)
            else:
                self.estimate_new(unix_time())


def _fingerprints(urls: Iterable[str]) -> Fingerprints:
    return np.fromiter(map(fingerprint, urls), dtype=np.int64)


def _mean(values: Vector) -> float:
    """The mean; 1 if there is nothing to average, or the mean is 0."""
    return (float(values.mean()) if len(values) else 0.0) or 1.0
