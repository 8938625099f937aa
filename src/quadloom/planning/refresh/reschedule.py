"""Pages updated between two visits: after a ranking those whose ranks moved, after a change of scope or policy all.

Otherwise a new weight, policy or bandwidth would reach a page only with its next visit, which the old one may have put
months away; and pages that left the scope would still count in the demand, from which the price of a read is computed.
So the row of each such page, its place in the queue and its description are updated, in slices between the steps of the
crawl's own thread: a slice takes a few milliseconds, and all slices together a fiftieth of that thread's CPU time. What
remains when a crawl ends is stored in the catalog for the next one, and so are the scope and the basis of plans that
all pages have.

If importance guides discovery, the URLs that wait for their first read are scored again, too: a URL is offered once, by
the first page that links to it, and what other links add is known only to the ranking, or to OPIC before it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from quadloom.model.outcome import PageRow
from quadloom.planning.policy.suspects import DATA_KINDS
from quadloom.planning.ranking.page_ranks import Fingerprints, PageRank
from quadloom.planning.ranking.ranker import PageRanker
from quadloom.planning.refresh.scheduler import RefreshScheduler, RescheduledPage
from quadloom.planning.scope import Scope
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import FIRST_PLACE, Frontier, Place, ScheduledPage

_REMAINING = NamedValue("schedule:moved", bytes)  # packed fingerprints
_SCOPE = NamedValue("schedule:scope", bytes)  # the scope that all pages were compared with
_BASIS = NamedValue("schedule:basis", bytes)  # `RefreshScheduler.plan_basis` of all plans
_MOST_REMAINING = 1_000_000  # beyond that, pages get their new rank with their next visit
_CHUNK = 32  # pages read at once
_UNREAD_CHUNK = 512  # one slice: each chunk is a commit, which costs as much as fifty rows
_UNREAD_EVERY = 5.0  # seconds between the starts of two passes over all unread URLs, at least
_SLICE = 0.004  # seconds of the crawl's thread, not counting the last chunk and the commit
_TIME_SHARE = 0.02  # of the crawl's thread; the indexer spends twice as much again on the descriptions
_UNREAD_SHARE = 0.03  # the same for unread URLs, whose order changes until they are read
_OUTDATED = 1.0  # a score that differs by this part of the smaller one is replaced: a nearer one hardly moves a place
_PAUSE = 0.1  # seconds between slices, at least: each ends with a commit
_LOOK_SECONDS = 0.02  # between two turns
_IDLE = 4.0  # times as long is the pause of a thread that has nothing else to do
_FIRST = -(1 << 63)


class SlicePauses:
    """When the next slice may begin, so that all of them take their share of the thread's time.

    That is a share of its CPU time: by the clock, on a busy machine, it could be most of what the thread gets. A thread
    that mostly waits for polite pauses uses little, so it goes on after four times as long by the clock.
    """

    def __init__(self, clock: Callable[[], float], cpu: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._cpu = cpu
        self.skip()

    def skip(self) -> None:
        self._earliest = self._latest = self._cpu_time = 0.0

    @property
    def over(self) -> bool:
        now = self._clock()
        return now >= self._earliest and (now >= self._latest or self._cpu() >= self._cpu_time)

    def begin(self, spent: float, share: float) -> None:
        """A slice has ended that took `spent` seconds of CPU time."""
        now, pause = self._clock(), spent / share
        self._earliest = now + _PAUSE
        self._latest = now + max(_PAUSE, _IDLE * pause)
        self._cpu_time = self._cpu() + pause


class Rescheduler:
    """Owned by the crawl's own thread, which calls `turn` when `clock` has reached `turn_at`. `describe` receives the
    rows whose descriptions changed; `scope` returns the current rules, None = there are none."""

    def __init__(
        self,
        catalog: Catalog,
        frontier: Frontier,
        scheduler: RefreshScheduler,
        ranker: PageRanker | None,
        scope: Callable[[], Scope | None],
        describe: Callable[[Sequence[PageRow]], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._catalog = catalog
        self._frontier = frontier
        self._scheduler = scheduler
        self._ranker = ranker
        self._scope = scope
        self._unread: Place | None = None  # where the pass over unread URLs continues; None = none is running
        self._next_unread_pass = 0.0
        self._describe = describe
        self._clock = clock
        self._moved: Fingerprints = np.frombuffer(_REMAINING.get(self._catalog) or b"", dtype=np.int64)
        self._after: int | None = None  # where the pass over all pages continues; None = none is running
        self._replans = False  # whether that pass plans all pages again, or only compares them with the scope
        self._pauses = SlicePauses(clock)
        self.updated = 0
        self.turn_at = 0.0
        self._basis = _BASIS.get(self._catalog) or b""
        if not self._basis:  # of an older version, or new
            self._basis = self._scheduler.plan_basis
            _BASIS.put(self._catalog, self._basis)
        self.scope_changed()

    def scope_changed(self) -> None:
        """The scope may have changed: start a pass over all pages if it has."""
        scope = self._scope()
        if scope is not None and (self._after is not None or _SCOPE.get(self._catalog) != scope.encode()):
            self._after = _FIRST

    @property
    def pending(self) -> bool:
        return self._after is not None or len(self._moved) > 0 or self._unread is not None

    def turn(self, now: float) -> None:
        """Do the next slice, if there is one and the last one was long enough ago."""
        self.turn_at = self._clock() + _LOOK_SECONDS
        moved = self._ranker.take_moved() if self._ranker is not None else None
        if moved is not None:
            self._moved = np.union1d(self._moved, moved)
        if self._basis != self._scheduler.plan_basis:
            self._basis, self._after, self._replans = self._scheduler.plan_basis, _FIRST, True
        if self._unread is None and self._scheduler.guided and self._clock() >= self._next_unread_pass:
            self._unread, self._next_unread_pass = FIRST_PLACE, self._clock() + _UNREAD_EVERY
        if not self.pending or not self._pauses.over:
            return
        began = time.thread_time()
        rows: list[PageRow] = []
        described: list[PageRow] = []
        times: list[ScheduledPage] = []
        with self._catalog.transaction():  # one for the slice: each waits for the disk
            while self.pending and time.thread_time() - began < _SLICE:
                for updated in self._next():
                    row = updated.row
                    rows.append(row)
                    if updated.describe:
                        described.append(row)
                    if updated.due is not None:
                        times.append(ScheduledPage(row.fingerprint, row.host, updated.due))
            if rows:
                self._catalog.amend(rows)
                self._frontier.reschedule(times, now)
        if rows:
            self._scheduler.committed()
            self._describe(described)
            self.updated += len(rows)
        spent = time.thread_time() - began
        self._pauses.begin(spent, _TIME_SHARE if rows else _UNREAD_SHARE)

    def _next(self) -> list[RescheduledPage]:
        """The next pages that need an update."""
        if self._after is not None:
            rows = self._catalog.scan(after=self._after, limit=_CHUNK)
            self._after = rows[-1].fingerprint if rows else None
            scope = self._scope()
            plan = self._scheduler.replan if self._replans else self._scheduler.reschedule
            if not rows:
                self._replans = False
                _BASIS.put(self._catalog, self._basis)
                if scope is not None:
                    _SCOPE.put(self._catalog, scope.encode())
            return [updated for row in rows if (updated := plan(row)) is not None]
        if not len(self._moved):
            self._rescore()
            return []
        keys, self._moved = self._moved[:_CHUNK].tolist(), self._moved[_CHUNK:]
        rows = list(self._catalog.pages(keys).values())
        ranks: Sequence[PageRank | None] = [None] * len(rows)
        if self._ranker is not None:
            ranks = self._ranker.weigh([row.fingerprint for row in rows], [row.kind in DATA_KINDS for row in rows])
        updates = map(self._scheduler.reschedule, rows, ranks)
        return [updated for updated in updates if updated is not None]

    def _rescore(self) -> None:
        if self._unread is not None:
            ranker = self._ranker
            self._unread = (
                self._frontier.rescore(self._unread, _UNREAD_CHUNK, lambda unread: new_scores(ranker, unread))
                if ranker is not None
                else None
            )

    def close(self) -> None:
        """Store the pages that remain, for the next crawl."""
        remaining = self._moved[:_MOST_REMAINING]
        _REMAINING.put(self._catalog, remaining.tobytes() if len(remaining) else None)


def new_scores(ranker: PageRanker, unread: Sequence[tuple[int, float]]) -> list[float | None]:
    """The importance of each URL if it differs enough from its (fingerprint, score), else None."""
    ranks = ranker.weigh([key for key, _ in unread], [False] * len(unread))
    return [
        rank.importance
        if rank is not None and abs(rank.importance - score) > _OUTDATED * min(rank.importance, score)
        else None
        for rank, (_, score) in zip(ranks, unread, strict=True)
    ]
