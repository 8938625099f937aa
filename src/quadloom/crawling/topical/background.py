"""Requests that are made beside a running crawl, in a thread of their own: rounds of watched topics and site searches.

All that such a thread reads and writes goes through the thread that owns the stores, so politeness is that of the whole
crawl, and pages take the same way as those of the queue.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from quadloom.crawling.topical.polite_access import FetchedPage
from quadloom.model.link import Discovery
from quadloom.process import threads
from quadloom.stores.protocols.cluster import Shards
from quadloom.stores.protocols.frontier import HostClocks, HostRow, ScopeRules
from quadloom.stores.shards import shard_of

T = TypeVar("T")
_LAST_CALLS = 60.0  # seconds for a round in progress to end
_PAUSED = 1.0  # seconds between two looks whether a paused crawl goes on


class OwnerThread(Protocol):
    """The thread that owns the stores, for other threads."""

    def call(self, action: Callable[[], T]) -> T:
        """Run `action` there, between two steps, and return its result."""
        ...


class CrawlAccess(OwnerThread, Protocol):
    """What rounds need of a running crawl."""

    def take(self, fetched: FetchedPage) -> None:
        """Settle a page that was fetched outside of the queue. Called in the thread that owns the stores."""
        ...

    def admit(self, found: Sequence[Discovery]) -> Sequence[Discovery]:
        """What may enter the queue: no crawler traps; suspects of data are marked. Called in the thread that owns the
        stores."""
        ...

    def charge(self, requests: int) -> None:
        """Take requests from the crawl's bandwidth. Called in the thread that owns the stores."""
        ...

    def bandwidth(self) -> float:
        """Reads per second that the whole crawl may make at present; 0 = it is paused."""
        ...


class RoundStopped(Exception):
    """The round ends, because the crawl does, or waits for its database for longer than a call may take."""


class BackgroundThread:
    """A thread beside a running crawl, and what it may do to it. `share`: of the crawl's bandwidth, for all its
    requests together."""

    def __init__(self, crawl: CrawlAccess, share: float) -> None:
        self._crawl = crawl
        self._share = share
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._next_request = 0.0  # by the monotonic clock

    def start(self, name: str, work: Callable[[], None], failed: Callable[[BaseException], None]) -> None:
        """Run `work` in it. An exception that ends it goes to `failed`; `RoundStopped` is for `work` to catch."""
        self._thread = threads.start(name, work, failed)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def stop(self) -> None:
        """From any thread: `wait` returns at once, and the next call or request raises `RoundStopped`. The owner must
        go on taking calls until `join`."""
        self._stopping.set()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join(timeout=_LAST_CALLS)

    def wait(self, seconds: float) -> bool:
        """True = the crawl ends."""
        return self._stopping.wait(seconds)

    def throttle(self) -> None:
        """Wait until the share of the bandwidth allows one request more, and charge the crawl for it."""
        while (rate := self._crawl.bandwidth() * self._share) <= 0.0:
            if self._stopping.wait(_PAUSED):
                raise RoundStopped
        now = time.monotonic()
        self._next_request = max(self._next_request, now) + 1.0 / rate
        if self._stopping.wait(max(0.0, self._next_request - 1.0 / rate - now)):
            raise RoundStopped
        self.call(lambda: self._crawl.charge(1))

    def call(self, action: Callable[[], T]) -> T:
        """Run `action` in the thread that owns the stores, and return its result."""
        if self._stopping.is_set():
            raise RoundStopped
        try:
            return self._crawl.call(action)
        except TimeoutError:
            raise RoundStopped from None


class OwnHosts:
    """A scope without the hosts of other workers: their clocks are not here. `shards`: None = there are no others."""

    def __init__(self, scope: ScopeRules, shards: Shards | None) -> None:
        self._scope = scope
        self._shards = shards

    def verdict(self, href: str, host: str, depth: int) -> str | None:
        if self._shards is not None and shard_of(host) not in self._shards.owned - self._shards.draining:
            return "the host of another worker"
        return self._scope.verdict(href, host, depth)


class OwnersFrontier:
    """The clocks and robots.txt of hosts, asked for in the thread that owns the frontier."""

    def __init__(self, frontier: HostClocks, owner: OwnerThread) -> None:
        self._frontier = frontier
        self._owner = owner

    def get(self, host: str) -> HostRow | None:
        return self._owner.call(lambda: self._frontier.get(host))

    def put(self, row: HostRow) -> None:
        self._owner.call(lambda: self._frontier.put(row))

    def block(self, host: str, until: float, reason: str) -> None:
        self._owner.call(lambda: self._frontier.block(host, until, reason))

    def reserve(self, host: str, now: float) -> float | None:
        return self._owner.call(lambda: self._frontier.reserve(host, now))

    def free(self, host: str, next_at: float, now: float) -> None:
        self._owner.call(lambda: self._frontier.free(host, next_at, now))
