"""Settles pages that were fetched before and are detected or transformed now. The one write path is
`quadloom.crawling.ingest.writer`; this one stands beside it: the archive has the pages, and the frontier has settled
their visits already, so it gets links and the time of the next visit only.
"""

from __future__ import annotations

from collections.abc import Sequence

from quadloom.crawling.ingest.handover.backlog import Backlog
from quadloom.crawling.ingest.handover.settle_later import settle_detected, settle_later, settle_lost
from quadloom.crawling.workers.messages import unpacked
from quadloom.model.outcome import PageRow, Settlement
from quadloom.model.page import Failure
from quadloom.process.failpoints import Failpoints
from quadloom.process.retry import retry_when_unavailable
from quadloom.settings import Settings
from quadloom.stores.frontier.policy import discovery_of
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.frontier import ScheduledPage
from quadloom.stores.protocols.settlement import FinishedVisit, SettleBatch, SettleHook


class LaterWriter:
    """Writes batches of visits whose `is_later` is true, in one transaction with what the hooks add. One thread."""

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        hooks: Sequence[SettleHook],
        backlog: Backlog,
        failpoints: Failpoints,
    ) -> None:
        self._stores = stores
        self._settings = settings
        self._hooks = hooks
        self._backlog = backlog
        self._failpoints = failpoints

    def settle(self, visits: Sequence[FinishedVisit], now: float) -> SettleBatch:
        """Make a batch durable. Raises `DiskFull` and `ShardsLost`; then nothing was written."""
        batch = retry_when_unavailable(lambda: self._together(visits, now))
        for hook in self._hooks:
            hook.committed()
        self._backlog.forget([item.visit.fingerprint for item in visits])
        self._failpoints.reach("after-catalog")
        return batch

    def _together(self, visits: Sequence[FinishedVisit], now: float) -> SettleBatch:
        """Read rows and write them in one transaction, because other processes write, too."""
        catalog = self._stores.catalog
        with catalog.transaction():
            known = catalog.pages([item.visit.fingerprint for item in visits], lock=True)
            batch = SettleBatch(
                visits=visits,
                settlements=[self._settlement(item, known.get(item.visit.fingerprint)) for item in visits],
                known={key: row for key, row in known.items() if row.visits},
                links=[],
                now=now,
            )
            for hook in self._hooks:
                hook.prepare(batch)
            self._write(batch)
            for hook in self._hooks:
                hook.write(now)
        return batch

    def _write(self, batch: SettleBatch) -> None:
        frontier, now = self._stores.frontier, batch.now
        found = [link for settlement in batch.settlements for link in settlement.discoveries]
        if found or batch.links:
            frontier.add([*found, *batch.links], now)
        again = [(s.visit, s.again_at) for s in batch.settlements if s.again_at is not None]
        frontier.reschedule([ScheduledPage(visit.fingerprint, visit.host, at) for visit, at in again], now)
        lost = [item.visit for item in batch.visits if item.step == "lost"]
        if lost:
            frontier.request([discovery_of(visit) for visit in lost], now)
        self._stores.catalog.record(batch.settlements, now)
        self._backlog.end_leases([item.visit.fingerprint for item in batch.visits])

    def _settlement(self, item: FinishedVisit, old: PageRow | None) -> Settlement:
        visit, page = item.visit, item.response
        if item.step == "lost" or isinstance(page, Failure):
            return settle_lost(visit, page, old)
        if item.facts is not None:
            return settle_detected(visit, page, item.facts, old)
        result = unpacked(item.result, item.links) if item.result is not None else None
        return settle_later(visit, page, result, item.reason, old, self._settings.index.only_data)
