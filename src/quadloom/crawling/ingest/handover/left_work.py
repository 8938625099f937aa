"""Which pages that others have left are begun next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from quadloom.crawling.ingest.handover.backlog import Backlog
from quadloom.crawling.ingest.handover.extraction import LinkExtraction, left_version
from quadloom.crawling.ingest.in_hand import VisitsInHand
from quadloom.crawling.ingest.index.reindex import Reindexing
from quadloom.crawling.workers.pool import WorkerPool
from quadloom.errors import ShardsLost
from quadloom.model.event import EventKind
from quadloom.model.page import Failure, Page
from quadloom.model.phase import OWED_BY_PHASE, Owed
from quadloom.model.visit import Visit
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.settlement import VisitStep

_LEFT = 64  # pages of one phase in work, before more are taken
_STEPS: dict[str, VisitStep] = {"transform": "later", "detect": "detected"}


class LeftVisit(NamedTuple):
    """A visit whose page was fetched before; a `Failure` if its record cannot be read."""

    visit: Visit
    response: Page | Failure
    step: VisitStep


class LeftWork:
    """Their number is bounded. One thread, the owner's."""

    def __init__(
        self,
        archive: Archive,
        backlog: Backlog,
        reindexing: Reindexing,
        extraction: LinkExtraction,
        notice: Callable[[EventKind, str], None],
    ) -> None:
        self._archive = archive
        self._backlog = backlog
        self._reindexing = reindexing
        self._extraction = extraction
        self._notice = notice

    def begin(self, in_hand: VisitsInHand, pool: WorkerPool, now: float) -> Iterator[LeftVisit]:
        """Begin to index and extract what waits for that; returns what waits to be transformed or detected. `in_hand`:
        visits that are in work, by their page. A worker may learn only here that its shards are lost: nothing was
        leased then, and the next turn tries again."""
        try:
            yield from self._begin(in_hand, pool, now)
        except ShardsLost as lost:
            self._notice("notice", lost.message)

    def _begin(self, in_hand: VisitsInHand, pool: WorkerPool, now: float) -> Iterator[LeftVisit]:
        backlog = self._backlog
        if "index" in backlog.phases:
            self._reindexing.add(backlog.take(Owed.INDEX, _LEFT - len(self._reindexing.waiting)), now, None)
        if "extract" in backlog.phases:
            for row in backlog.take(Owed.EXTRACT, _LEFT - len(self._extraction) - len(backlog.extracted)):
                self._extraction.begin(row, pool)
        for name, step in _STEPS.items():
            for row in backlog.take(OWED_BY_PHASE[name], _LEFT - len(in_hand)) if name in backlog.phases else ():
                if row.fetched is None or row.fingerprint in in_hand:
                    backlog.give_back([row.fingerprint])  # it was just read again
                    continue
                visit, response = left_version(self._archive, row)
                yield LeftVisit(visit, response, "lost" if isinstance(response, Failure) else step)
