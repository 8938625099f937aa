"""A worker's membership in a cluster: its heartbeat, its fair share of the shards, and links found by other workers.

Two threads beside the crawl, with a connection of their own. One only renews the lease, so that neither a long
transaction nor a replay of pages that a dead worker left delays it. The other looks after shards and links; it changes
nothing in the frontier itself: the crawl's thread does that between two steps (`session.call`), as for control
commands.

The share is 256 divided by the number of live workers, rounded up. A worker with more drains the surplus (leases
nothing more from it, waits for what is in progress) and gives it back with all clocks written and all its pages marked
as indexed, so that no page is transformed or read twice; a worker with less takes what is free. Shards of a worker
whose lease ran out are free too, but their hosts wait their full delay, because they may have been asked a moment ago.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from quadloom.crawl.session import CrawlSession
from quadloom.errors import QuadloomError
from quadloom.model.outcome import PageRow
from quadloom.stores.protocols.catalog import FIRST_UNINDEXED, UnindexedPlace
from quadloom.stores.protocols.state import Shards
from quadloom.stores.shards import SHARDS

_POLL_SECONDS = 0.25  # between two looks for links that others found
_ROWS = 200  # of pages read from the catalog at once


class Membership:
    """Use as a context manager around the crawl. `notice` receives what a person should know. `fetches`: otherwise the
    worker takes no shards; it works on pages of any shard, which it leases one by one, and only shows that it lives."""

    def __init__(
        self,
        session: CrawlSession,
        shards: Shards,
        *,
        heartbeat: float,
        notice: Callable[[str], None],
        fetches: bool = True,
    ) -> None:
        self._session = session
        self._shards = shards
        self._notice = notice
        self._heartbeat = shards.heartbeat()
        self._lost: frozenset[int] = frozenset()
        self._unindexed: frozenset[int] = frozenset()  # shards taken whose unindexed pages were not queued yet
        self._workers = 1
        self._beaten = threading.Event()  # a heartbeat has come back, so the share may have changed
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(work, pause), name=name, daemon=True)
            for name, work, pause in (("heartbeat", self._beat, heartbeat), ("membership", self._poll, _POLL_SECONDS))
            if fetches or name == "heartbeat"
        ]

    def __enter__(self) -> Membership:
        self._beat()  # a worker that cannot reach the database does not begin
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(timeout=10.0)
        self._heartbeat.close()

    def _repeat(self, work: Callable[[], None], pause: float) -> None:
        while not self._over.wait(pause):
            try:
                work()
            except QuadloomError as error:
                # The server is away, or shards are lost, which the frontier has then forgotten already.
                self._notice(error.message)
            except TimeoutError:
                continue  # the crawl's thread is busy, or has ended

    def _beat(self) -> None:
        self._lost |= self._heartbeat.renew()
        self._workers = max(1, self._heartbeat.workers())
        self._beaten.set()

    def _poll(self) -> None:
        if self._beaten.is_set():
            self._beaten.clear()
            self._session.call(self._balance)
        elif self._heartbeat.has_links():
            self._session.call(self._pull)

    def _balance(self) -> None:
        """In the crawl's thread."""
        shards, workers = self._shards, self._workers
        lost, self._lost = self._lost & shards.owned, frozenset()
        if lost:
            self._notice(f"lost {len(lost)} shards: the lease had run out")
            shards.lose(lost)
        surplus = len(shards.owned) - -(-SHARDS // workers)
        if surplus > 0:
            shards.drain(sorted(shards.owned)[:surplus])
        given = shards.give_back(self._session.unfinished_shards())
        taken = shards.take(-surplus, time.time()) if surplus < 0 else []
        if lost or given or taken:
            self._notice(f"owns {len(shards.owned)} of {SHARDS} shards ({workers} workers)")
        self._session.set_share(len(shards.owned) / SHARDS)
        self._unindexed = shards.owned & {*self._unindexed, *taken}
        if self._unindexed:
            # Raises if a store is away: the next heartbeat tries again.
            self._session.acquired(self._unindexed_rows(sorted(self._unindexed)))
            self._unindexed = frozenset()
        self._pull()

    def _unindexed_rows(self, shards: list[int]) -> list[PageRow]:
        """Pages of these shards that their previous owner settled and did not index."""
        catalog = self._shards.catalog_of(shards)
        found: list[PageRow] = []
        while rows := catalog.unindexed(_ROWS, _place_after(found)):
            found += rows
        return found

    def _pull(self) -> None:
        """In the crawl's thread. Seeds come with a wider scope, which must be known before they are queued."""
        reload_scope = self._session.reload_scope
        reload_scope()
        while self._shards.pull(time.time(), reload_scope):
            pass


def _place_after(rows: list[PageRow]) -> UnindexedPlace:
    return UnindexedPlace(rows[-1].fetched_at, rows[-1].fingerprint) if rows else FIRST_UNINDEXED
