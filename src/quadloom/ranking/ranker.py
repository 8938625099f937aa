"""What pages weigh: the link matrix grows with the crawl, and a thread beside it computes importance from time to time.

The crawl appends each page's links (`append`, some microseconds). Every `freshness.importance_every` the thread merges
them into the matrix, computes importance and usefulness from the last vectors on, lifts subscribed pages, and puts the
new weights in place by one assignment; settlements look them up. Between two fixpoints the same thread runs OPIC over
what was read since, so that a page met after the last fixpoint has a weight, too.

Where pages stand rests in `links/standings.npy` as well: a restart begins with it, and `quadloom why` can read it.
Only pages whose numbers moved need to be planned and described anew (`take_moved`).
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quadloom.model.subscription import Subscription, personalization
from quadloom.model.url import fingerprint
from quadloom.process.threads import start
from quadloom.ranking.link_matrix import ANEW, RECORD, LinkMatrix
from quadloom.ranking.opic import Opic
from quadloom.ranking.page_ranks import Fingerprints, Mask, PageRank, PageRanks, Vector
from quadloom.ranking.usefulness import Ranking as Fixpoints
from quadloom.ranking.usefulness import promoted, rank, weights
from quadloom.settings import FreshnessSettings, length_of

_SHOWN_SECONDS = 5.0  # after which others, such as the web site, see the links of a page
_TOGETHER = 64  # pages whose links are packed into records at once
_OPIC_EVERY = 2.0  # seconds
_OPIC_BACKLOG = 200_000  # readings that wait for OPIC; beyond, the oldest are left to the next fixpoint
_OPIC_TOGETHER = 500
_LEAST, _MOST = 0.01, 100.0  # bounds of an estimate that no fixpoint has confirmed
_TOLERANCE = 1e-6  # of a fixpoint: weights are estimates, and each further digit costs a fifth more scans


class PageRanker:
    """`structured` gives the fingerprints of pages that hold structured data, `subscriptions` who wants which pages.

    `append`, `weigh`, `take_moved` and `flush` belong to the crawl's thread; `turn` to the ranking thread, or a test.
    """

    def __init__(
        self,
        directory: Path,
        freshness: FreshnessSettings,
        structured: Callable[[], Sequence[int]],
        subscriptions: Callable[[], Sequence[Subscription]],
    ) -> None:
        self._directory = directory
        self._freshness = freshness
        self._structured = structured
        self._subscriptions = subscriptions
        self._log = LinkMatrix(directory)  # appends only
        self._matrix = LinkMatrix(directory)  # merges and reads only
        self._appending = threading.Lock()
        self._pending: list[tuple[int, bytes]] = []
        self._shown_at = time.monotonic()
        self._read: deque[tuple[int, bytes]] = deque(maxlen=_OPIC_BACKLOG)
        self._last: Fixpoints | None = None
        self.chi = freshness.chi
        self._scales = {True: self.chi, False: 1.0}  # weight of a page of mean importance, data or not
        self.standings = PageRanks.load(directory)
        self._moved: Fingerprints | None = None
        self._urgent = threading.Event()
        # A window of one unit of time: then the fixpoint's histories weigh as much as all cash together, and a new
        # page, which has cash but no history, is not drowned by them.
        self._unit = max(length_of("freshness.importance_every", freshness.importance_every), 1.0)
        self._opic = Opic(window=1.0, damping=freshness.damping)
        self._fresh: dict[int, int] = {}  # pages that only OPIC knows
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def append(self, source: int, targets: bytes) -> None:
        """All links of a page just read: packed int64 fingerprints."""
        self._pending.append((source, targets))
        self._read.append((source, targets))
        if len(self._pending) >= _TOGETHER or time.monotonic() - self._shown_at > _SHOWN_SECONDS:
            self.flush()

    def flush(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            with self._appending:
                self._log.append_records(_records(pending))
                if time.monotonic() - self._shown_at > _SHOWN_SECONDS:
                    self._log.show()
                    self._shown_at = time.monotonic()

    def weigh(self, fingerprints: Sequence[int], are_data: Sequence[bool]) -> list[PageRank | None]:
        """From the last fixpoint, OPIC's estimate for pages it did not know, None for the rest.

        `are_data`: what each page turned out to be, where the ranking took it for something else or did not know it.
        """
        found: list[PageRank | None] = []
        for key, is_data, known in zip(fingerprints, are_data, self.standings.of(fingerprints), strict=True):
            if known is None:
                found.append(self._estimate(key, is_data) if self._fresh else None)
            elif known[1] == is_data:
                found.append(known[0])
            else:
                found.append(known[0]._replace(weight=known[0].importance * self._scales[is_data]))
        return found

    def take_moved(self) -> Fingerprints | None:
        """Pages read before whose numbers moved since the last call; None = no ranking since."""
        moved, self._moved = self._moved, None
        return moved

    def prefer(self, chi: float) -> None:
        """Another χ: a new ranking begins at once."""
        self.chi = chi
        self._urgent.set()

    def start(self, failed: Callable[[BaseException], None]) -> None:
        """Begin the thread; `failed` hears what it dies of."""
        self._thread = start("ranking", self._run, failed)

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=30.0)
        self.flush()
        with self._appending:
            self._log.close()

    def turn(self, now: float) -> None:
        """Merge what was linked since, and compute all weights anew."""
        with self._appending:
            self._log.sync()
        self._read.clear()
        self._matrix.rebuild()
        pages = self._matrix.manifest.pages
        if not pages:
            return
        fingerprints = self._matrix.fingerprints()
        structured = np.zeros(pages, dtype=bool)
        ids = self._matrix.ids(np.fromiter(self._structured(), dtype=np.int64))
        structured[ids[ids >= 0]] = True
        wanted = self._subscribed()
        csr = self._matrix.csr()
        self._last = rank(
            csr,
            structured,
            variant=self._freshness.usefulness,
            damping=self._freshness.damping,
            personalization=personalization(pages, wanted),
            dangling=self._freshness.dangling,
            tol=_TOLERANCE,
            start=self._last,
        )
        # A page without a link was read, too, but the matrix cannot tell it from one that was not; it is the rare case.
        read = (np.diff(csr.indptr) > 0) | structured
        self._tell(np.array(fingerprints), self._last, structured, read, wanted)
        self._opic.start(self._last.importance, now / self._unit)
        self._fresh = {}

    def _tell(
        self, fingerprints: Fingerprints, last: Fixpoints, structured: Mask, read: Mask,
        wanted: Sequence[npt.NDArray[np.intp]],
    ) -> None:  # fmt: skip
        """Put the new numbers in place, and say which pages that were read have moved."""
        chi, ordinary = self.chi, read & ~structured
        values = weights(last.importance, last.usefulness, structured, chi, read)
        if wanted:
            values = promoted(values, np.concatenate(wanted), self._freshness.promotion)
        importance = last.importance * len(fingerprints)
        self._scales = {True: chi / _mean(importance[structured]), False: 1.0 / _mean(importance[ordinary])}
        useful = last.usefulness / _mean(last.usefulness[ordinary])
        new = PageRanks.make(fingerprints, values, importance, useful, structured)
        told, moved = new.settled(self.standings)
        self.standings = told
        told.save(self._directory)
        news = told.fingerprints[moved & read[np.argsort(fingerprints, kind="stable")]]
        earlier = self._moved
        self._moved = news if earlier is None else np.union1d(earlier, news)

    def estimate_new(self, now: float) -> None:
        """OPIC over the readings since the last turn, many at a time: looking ids up costs more than the arithmetic."""
        while self._read and not self._stopping.is_set():
            batch = [self._read.popleft() for _ in range(min(len(self._read), _OPIC_TOGETHER))]
            counts = [len(targets) // 8 + 1 for _, targets in batch]
            ids = self._dense(b"".join(source.to_bytes(8, "little", signed=True) + links for source, links in batch))
            start = 0
            for count in counts:
                self._opic.read(ids[start], ids[start + 1 : start + count], now / self._unit)
                start += count

    def _subscribed(self) -> list[npt.NDArray[np.intp]]:
        """Pages of each subscription that the matrix knows: its virtual page's links."""
        groups = []
        for item in self._subscriptions():
            ids = self._matrix.ids(np.fromiter(map(fingerprint, item.urls), dtype=np.int64))
            if (ids >= 0).any():
                groups.append(ids[ids >= 0].astype(np.intp))
        return groups

    def _dense(self, packed: bytes) -> list[int]:
        """Ids as in the matrix; pages it does not know yet get the next ones."""
        fingerprints = np.frombuffer(packed, dtype="<i8")
        ids = self._matrix.ids(fingerprints)
        for place in np.flatnonzero(ids < 0):
            key = int(fingerprints[place])
            ids[place] = self._fresh.setdefault(key, self._matrix.manifest.pages + len(self._fresh))
        dense: list[int] = ids.tolist()
        return dense

    def _estimate(self, key: int, is_data: bool) -> PageRank | None:
        id = self._fresh.get(key)
        if id is None:
            return None
        importance = self._opic.importance(id) * self._opic.pages
        return PageRank(min(max(importance * self._scales[is_data], _LEAST), _MOST), importance)

    def _run(self) -> None:
        every = self._unit
        due = time.monotonic() + min(every, 60.0)  # a first ranking soon, since a young crawl learns fastest
        while not self._stopping.wait(min(_OPIC_EVERY, every)):
            if time.monotonic() >= due or self._urgent.is_set():
                self._urgent.clear()
                began = time.monotonic()
                self.turn(time.time())
                due = time.monotonic() + max(every, 10.0 * (time.monotonic() - began))
            else:
                self.estimate_new(time.time())


def _mean(values: Vector) -> float:
    """1 where there is nothing to average."""
    return (float(values.mean()) if len(values) else 0.0) or 1.0


def _records(pending: Sequence[tuple[int, bytes]]) -> npt.NDArray[np.void]:
    """Each page's `ANEW` mark, then its links."""
    counts = np.array([len(targets) // 8 + 1 for _, targets in pending])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    records = np.zeros(int(counts.sum()), dtype=RECORD)
    records["source"] = np.repeat(np.array([source for source, _ in pending], dtype=np.int64), counts)
    links = np.ones(len(records), dtype=bool)
    links[starts] = False
    records["target"][links] = np.frombuffer(b"".join(targets for _, targets in pending), dtype=np.int64)
    records["kind"][starts] = ANEW
    return records
