"""Pages looked at again between two visits: after a ranking those whose numbers moved, after a change of scope all.

A new weight would otherwise reach a page only with its next visit, which the old weight may have put months away; and
what left the scope would go on counting in the demand that the price of a read is made from. So each such page's row,
its place in the queue and its description are brought up to date, in slices between the steps of the owner: a slice
takes some milliseconds of its thread, and slices together a twentieth of it. What is left over when a crawl ends is
kept in the catalog for the next one, and so is the scope that all pages were last compared with.

Where importance guides discovery, URLs that wait for their first read are looked at, too: a URL is offered once, by the
page that links to it first, and what the others add is known only to the ranking, or to OPIC before it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np

from quadloom.model.outcome import PageRow
from quadloom.ranking.page_ranks import MOVED, Fingerprints, PageRank
from quadloom.ranking.ranker import PageRanker
from quadloom.refresh.scheduler import RefreshScheduler
from quadloom.scheduling.scope import Scope
from quadloom.scheduling.suspects import DATA_KINDS
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import FIRST_PLACE, Frontier, Place, ScheduledPage

_LEFT_OVER = NamedValue("schedule:moved", bytes)  # packed fingerprints
_SCOPE = NamedValue("schedule:scope", bytes)  # the scope that all pages were compared with
_MOST_LEFT_OVER = 1_000_000  # beyond, pages take the ranking over with their next visit
_CHUNK = 32  # pages read at once
_UNREAD_CHUNK = 128
_UNREAD_EVERY = 5.0  # seconds between two looks at all unread URLs, at least
_SLICE = 0.004  # seconds of the owner's thread, the last chunk and the commit not counted
_PART = 0.05  # of the owner's time
_PAUSE = 0.1  # seconds between slices at least: each ends with a commit
_FIRST = -(1 << 63)
_NOTHING: Fingerprints = np.empty(0, dtype=np.int64)


class Rescheduler:
    """Owned by the crawl's own thread. `describe` is given every row that changed; `scope` gives the rules that hold
    now, None = there are none."""

    def __init__(
        self,
        catalog: Catalog,
        frontier: Frontier,
        scheduler: RefreshScheduler,
        ranker: PageRanker | None,
        scope: Callable[[], Scope | None],
        describe: Callable[[Sequence[PageRow]], None],
    ) -> None:
        self._catalog = catalog
        self._frontier = frontier
        self._scheduler = scheduler
        self._ranker = ranker
        self._scope = scope
        self._unread: Place | None = None  # where the look at unread URLs has got to
        self._unread_again = 0.0 if scheduler.guided else math.inf
        self._describe = describe
        self._moved: Fingerprints = np.frombuffer(_LEFT_OVER.get(self._catalog) or b"", dtype=np.int64)
        self._after: int | None = None  # where the look at all pages has got to
        self._not_before = 0.0
        self.reviewed = 0
        self.longest = 0.0  # seconds of one slice
        self.rescoped()

    def rescoped(self) -> None:
        """The scope may have changed: look at all pages if it has."""
        scope = self._scope()
        if scope is not None and (self._after is not None or _SCOPE.get(self._catalog) != scope.encode()):
            self._after = _FIRST

    @property
    def pending(self) -> bool:
        return self._after is not None or len(self._moved) > 0 or self._unread is not None

    def turn(self, now: float) -> None:
        """The next slice, where there is one and the last was long enough ago."""
        moved = self._ranker.take_moved() if self._ranker is not None else None
        if moved is not None:
            self._moved = np.union1d(self._moved, moved)
        if self._unread is None and time.monotonic() >= self._unread_again:
            self._unread, self._unread_again = FIRST_PLACE, time.monotonic() + _UNREAD_EVERY
        if not self.pending or time.monotonic() < self._not_before:
            return
        began = time.thread_time()
        rows: list[PageRow] = []
        times: list[ScheduledPage] = []
        while self.pending and time.thread_time() - began < _SLICE:
            for row, standing in self._next():
                reviewed = self._scheduler.review(row, standing)
                if reviewed is not None:
                    rows.append(reviewed[0])
                    if reviewed[1] is not None:
                        times.append(ScheduledPage(row.fingerprint, row.host, reviewed[1]))
        if rows:
            self._write(rows, times, now)
        spent = time.thread_time() - began
        self.longest = max(self.longest, spent)
        self._not_before = time.monotonic() + max(_PAUSE, spent / _PART)

    def _next(self) -> list[tuple[PageRow, PageRank | None]]:
        """The next pages to look at, each with where it stands if that moved."""
        if self._after is not None:
            rows = self._catalog.scan(after=self._after, limit=_CHUNK)
            self._after = rows[-1].fingerprint if rows else None
            scope = self._scope()
            if not rows and scope is not None:
                _SCOPE.put(self._catalog, scope.encode())
            return [(row, None) for row in rows]
        if not len(self._moved):
            self._rescore()
            return []
        keys, self._moved = self._moved[:_CHUNK].tolist(), self._moved[_CHUNK:]
        found = list(self._catalog.pages(keys).values())
        if self._ranker is None:
            return [(row, None) for row in found]
        standings = self._ranker.weigh([row.fingerprint for row in found], [row.kind in DATA_KINDS for row in found])
        return list(zip(found, standings, strict=True))

    def _rescore(self) -> None:
        if self._unread is not None:
            self._unread = self._frontier.rescore(self._unread, _UNREAD_CHUNK, self._scores)

    def _scores(self, unread: Sequence[tuple[int, float]]) -> list[float | None]:
        """Importance of those whose score is another by a part that matters."""
        if self._ranker is None:
            return [None] * len(unread)
        found = self._ranker.weigh([key for key, _ in unread], [False] * len(unread))
        return [
            standing.importance
            if standing is not None and abs(standing.importance - score) > MOVED * min(standing.importance, score)
            else None
            for standing, (_, score) in zip(found, unread, strict=True)
        ]

    def _write(self, rows: list[PageRow], times: list[ScheduledPage], now: float) -> None:
        with self._catalog.transaction():
            self._catalog.amend(rows)
            self._frontier.reschedule(times, now)
        self._scheduler.committed()
        self._describe(rows)
        self.reviewed += len(rows)

    def close(self) -> None:
        """Keep what is left over."""
        left = self._moved[:_MOST_LEFT_OVER]
        _LEFT_OVER.put(self._catalog, left.tobytes() if len(left) else None)
