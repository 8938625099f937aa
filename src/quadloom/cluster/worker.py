"""What makes a crawl on a shared database one of many workers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from quadloom.cluster.membership import Membership, ShardCallbacks
from quadloom.stores.postgres.frontier import PostgresFrontier
from quadloom.stores.postgres.state import ClusterState


class CrawlThread(Protocol):
    """The crawl: does things in its own thread."""

    def call(self, action: Callable[[], None]) -> object: ...


class ClusterWorker:
    """Accompanies a crawl; see `quadloom.crawl.session.ClusterMember`."""

    def __init__(
        self, state: ClusterState, frontier: PostgresFrontier, duties: ShardCallbacks, *, heartbeat: float
    ) -> None:
        self._state = state
        self._frontier = frontier
        self._duties = duties
        self._heartbeat = heartbeat

    def leads(self) -> bool:
        """Of all workers just one owns shard 0."""
        return 0 in self._frontier.owned

    def beside(self, crawl: CrawlThread, tell: Callable[[str], None]) -> AbstractContextManager[object]:
        return Membership(
            self._state.url, self._frontier, self._state.leases, self._duties,
            heartbeat=self._heartbeat, call=crawl.call, tell=tell,
        )  # fmt: skip
