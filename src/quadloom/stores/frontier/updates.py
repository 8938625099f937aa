"""Moves of URLs between visits: a new scope parks them or brings them back, a new plan moves their time, a new ranking
their place in the queue. The part of `table_frontier` that no visit causes."""

from __future__ import annotations

from collections.abc import Sequence

from quadloom.stores.frontier.leasing import LeaseManager
from quadloom.stores.frontier.policy import UrlState
from quadloom.stores.frontier.scoring import Place, Scored
from quadloom.stores.frontier.tables import FrontierTables, UrlBatch, UrlRow
from quadloom.stores.protocols.frontier import ScopeRules


class QueueUpdates:
    def __init__(self, tables: FrontierTables, leasing: LeaseManager) -> None:
        self._tables = tables
        self._leasing = leasing

    def move(self, batch: UrlBatch, before: UrlRow, after: UrlRow) -> None:
        batch.leave(before)
        batch.enter(after)
        self._tables.update([after])
        self._leasing.empty_buffer(after.host_id)

    def set_scope(self, scope: ScopeRules) -> int:
        moved = 0
        with self._tables.database.transaction():
            for rows in self._tables.scan_scoped():
                batch = UrlBatch(self._tables)
                for row, href, host in rows:
                    after = self._state_in(scope, row, href, host)
                    if after != row.state and row.fingerprint not in self._leasing.leases:
                        self.move(batch, row, row._replace(state=after))
                        moved += 1
                batch.write()
                self._leasing.tell(batch)
        return moved

    @staticmethod
    def _state_in(scope: ScopeRules, row: UrlRow, href: str, host: str) -> int:
        if scope.verdict(href, host, row.depth) is not None:
            return UrlState.OUT_OF_SCOPE
        if row.state != UrlState.OUT_OF_SCOPE:
            return row.state
        return UrlState.WAITING if row.due else UrlState.QUEUED

    def reschedule(self, times: Sequence[tuple[int, str, float]]) -> None:
        wanted = {key: (host, due) for key, host, due in times}
        with self._tables.database.transaction():
            ids = self._tables.host_ids(list({host for host, _ in wanted.values()}), create=False)
            pairs = [(ids[host], key) for key, (host, _) in wanted.items() if host in ids]
            batch = UrlBatch(self._tables)
            for key, row in self._tables.urls(pairs).items():
                if row.state in (UrlState.WAITING, UrlState.DONE, UrlState.DEAD):
                    self.move(batch, row, row._replace(state=UrlState.WAITING, due=wanted[key][1]))
            batch.write()
            self._tables.read_first_due()

    def rescore(self, after: Place, limit: int, scored: Scored) -> Place | None:
        rows = self._tables.unread(after, limit)
        if not rows:
            return None
        scores = scored([(row.fingerprint, row.score) for row in rows])
        moved = [
            (row, row._replace(score=score))
            for row, score in zip(rows, scores, strict=True)
            if score is not None and row.fingerprint not in self._leasing.leases
        ]
        if moved:
            with self._tables.database.transaction():
                batch = UrlBatch(self._tables)
                for before, now in moved:
                    batch.leave(before)
                    batch.enter(now)
                    self._leasing.empty_buffer(now.host_id)
                self._tables.update_scores([now for _, now in moved])
                batch.write()
        return rows[-1].host_id, rows[-1].fingerprint
