"""A worker among others: its heartbeat, its fair share of the shards, and the mail from theirs.

Two threads beside the crawl, with a connection of their own. One only renews the lease, so that neither a long
transaction nor a replay of pages that a dead worker left delays it. The other sees to shards and mail; it changes
nothing in the frontier itself: that is done by the crawl's thread between two steps (`call`), as for control requests.

The share is 256 divided by the workers alive, rounded up. Who has more drains the surplus (leases nothing more from
it, waits for what is under way) and gives it back with all clocks written and all its pages marked as indexed, so that
nobody weaves or reads them a second time; who has less takes what is free. Shards of a worker whose lease ran out are
free too, but taken with suspicion: their hosts wait their full delay.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from quadloom.errors import QuadloomError
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier import PULLED, PostgresFrontier
from quadloom.stores.postgres.shards import ShardLeases
from quadloom.stores.shards import SHARDS

_TEND_SECONDS = 0.25  # between two looks for links that others found
_PATIENCE = 2.0  # seconds for a connection; the next heartbeat tries again


class ShardCallbacks(Protocol):
    """What the warehouse does when shards come and go, and before mail is read; in the crawl's thread."""

    def taken(self, shards: list[int]) -> None:
        """May be told the same shards again, where it could not be done at once."""
        ...

    def owns(self, shards: int) -> None:
        """So many of all are ours from now on."""
        ...

    def unfinished(self) -> frozenset[int]:
        """Shards with pages that are settled, but not marked as indexed yet."""
        ...

    def tend(self) -> None: ...


class Membership:
    """Use as a context manager around the crawl. `call` has something done by the crawl's thread and waits for it;
    `tell` is for people."""

    def __init__(
        self,
        url: str,
        frontier: PostgresFrontier,
        leases: ShardLeases,
        duties: ShardCallbacks,
        *,
        heartbeat: float,
        call: Callable[[Callable[[], None]], object],
        tell: Callable[[str], None],
    ) -> None:
        self._frontier = frontier
        self._leases = leases
        self._duties = duties
        self._call = call
        self._tell = tell
        self._database = PostgresDatabase(url, writable=True, patience=_PATIENCE)
        self._lost: frozenset[int] = frozenset()
        self._untended: frozenset[int] = frozenset()  # shards that came, and whose unindexed pages were not seen to yet
        self._workers = 1
        self._beaten = threading.Event()  # a heartbeat has come back, so the share may have changed
        self._over = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=(work, pause), name=name, daemon=True)
            for name, work, pause in (("heartbeat", self._beat, heartbeat), ("membership", self._tend, _TEND_SECONDS))
        ]

    def __enter__(self) -> Membership:
        self._beat()  # who cannot reach the database does not begin
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(timeout=10.0)
        self._database.close()

    def _repeat(self, work: Callable[[], None], pause: float) -> None:
        while not self._over.wait(pause):
            try:
                work()
            except QuadloomError as error:
                # The server is away, or shards are lost, which the frontier has then forgotten already.
                self._tell(error.message)
            except TimeoutError:
                continue  # the crawl's thread is busy, or has ended

    def _beat(self) -> None:
        self._lost |= self._leases.renew(self._database)
        self._workers = max(1, self._leases.workers(self._database))
        self._beaten.set()

    def _tend(self) -> None:
        if self._beaten.is_set():
            self._beaten.clear()
            self._call(self._balance)
        elif self._has_mail():
            self._call(self._pull)

    def _balance(self) -> None:
        """In the crawl's thread."""
        frontier, workers = self._frontier, self._workers
        lost, self._lost = self._lost & frontier.owned, frozenset()
        if lost:
            self._tell(f"lost {len(lost)} shards: the lease had run out")
            frontier.lose(lost)
        surplus = len(frontier.owned) - -(-SHARDS // workers)
        if surplus > 0:
            frontier.drain(sorted(frontier.owned)[:surplus])
        given = frontier.give_back(self._duties.unfinished())
        taken = frontier.take(-surplus, time.time()) if surplus < 0 else []
        if lost or given or taken:
            self._tell(f"owns {len(frontier.owned)} of {SHARDS} shards ({workers} workers)")
        self._duties.owns(len(frontier.owned))
        self._untended = frontier.owned & {*self._untended, *taken}
        if self._untended:
            self._duties.taken(sorted(self._untended))  # raises where a store is away: the next heartbeat tries again
            self._untended = frozenset()
        self._pull()

    def _has_mail(self) -> bool:
        rows = self._database.execute(
            "SELECT EXISTS (SELECT FROM link_outbox WHERE shard_to = ANY(%s::smallint[]))", (self._leases.owned,)
        )
        return bool(rows[0][0])

    def _pull(self) -> None:
        """In the crawl's thread. Seeds come with a wider scope, which must be known before they are."""
        self._duties.tend()
        while self._frontier.pull(time.time(), self._duties.tend) == PULLED:
            pass
