"""A worker among others: its heartbeat, its fair share of the shards, and the mail from theirs.

A thread of its own beside the crawl, with a connection of its own, so that a long transaction or a slow page never
delays a heartbeat. It changes nothing in the frontier itself: that is done by the crawl's thread between two steps
(`call`), as for control requests.

The share is 256 divided by the workers alive, rounded up. Who has more drains the surplus (leases nothing more from
it, waits for what is under way) and gives it back with all clocks written; who has less takes what is free. Shards of
a worker whose lease ran out are free too, but taken with suspicion: their hosts wait their full delay.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from quadloom.errors import QuadloomError, StoreUnavailable
from quadloom.stores.postgres_database import PostgresDatabase
from quadloom.stores.postgres_frontier import PULLED, PostgresFrontier
from quadloom.stores.postgres_shards import ShardLeases
from quadloom.stores.shards import SHARDS

_MAIL_SECONDS = 0.25  # between two looks for links that others found
_PATIENCE = 2.0  # seconds for a connection; the next heartbeat tries again


class Duties(Protocol):
    """What the warehouse does when shards come, and with every heartbeat; in the crawl's thread."""

    def taken(self, shards: list[int]) -> None: ...

    def tend(self) -> None: ...


class Membership:
    """Use as a context manager around the crawl. `call` has something done by the crawl's thread and waits for it;
    `tell` is for people."""

    def __init__(
        self,
        url: str,
        frontier: PostgresFrontier,
        leases: ShardLeases,
        duties: Duties,
        *,
        heartbeat: float,
        call: Callable[[Callable[[], None]], object],
        tell: Callable[[str], None],
    ) -> None:
        self._url = url
        self._frontier = frontier
        self._leases = leases
        self._duties = duties
        self._heartbeat = heartbeat
        self._call = call
        self._tell = tell
        self._database: PostgresDatabase | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="membership", daemon=True)

    def __enter__(self) -> Membership:
        self._leases.renew(self._connection())  # who cannot reach the database does not begin
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(timeout=10.0)
        if self._database is not None:
            self._database.close()

    def _connection(self) -> PostgresDatabase:
        if self._database is None:
            self._database = PostgresDatabase(self._url, writable=True, patience=_PATIENCE)
        return self._database

    def _run(self) -> None:
        beat_at = time.monotonic()
        while not self._over.is_set():
            try:
                if time.monotonic() >= beat_at:
                    beat_at = time.monotonic() + self._heartbeat
                    self._beat()
                elif self._has_mail():
                    self._call(self._pull)
            except StoreUnavailable as error:
                self._tell(error.message)
            except QuadloomError as error:  # such as ShardsLost: the frontier has forgotten them already
                self._tell(error.message)
            except TimeoutError:
                pass  # the crawl's thread is busy, or has ended
            self._over.wait(_MAIL_SECONDS)

    def _beat(self) -> None:
        database = self._connection()
        lost = self._leases.renew(database)
        workers = max(1, self._leases.workers(database))
        if lost:
            self._tell(f"lost {len(lost)} shards: the lease had run out")
        self._call(lambda: self._balance(lost, -(-SHARDS // workers), workers))

    def _balance(self, lost: frozenset[int], share: int, workers: int) -> None:
        """In the crawl's thread."""
        frontier = self._frontier
        if lost:
            frontier.lose(lost)
        surplus = len(frontier.owned) - share
        if surplus > 0:
            frontier.drain(sorted(frontier.owned)[:surplus])
        given = frontier.give_back()
        taken = frontier.take(-surplus, time.time()) if surplus < 0 else []
        if taken:
            self._duties.taken(taken)
        self._duties.tend()
        self._pull()
        if lost or given or taken:
            self._tell(f"owns {len(frontier.owned)} of {SHARDS} shards ({workers} workers)")

    def _has_mail(self) -> bool:
        rows = self._connection().execute(
            "SELECT EXISTS (SELECT FROM link_outbox WHERE shard_to = ANY(%s::smallint[]))", (self._leases.owned,)
        )
        return bool(rows[0][0])

    def _pull(self) -> None:
        while self._frontier.pull(time.time()) == PULLED:
            pass
