"""Pages that wait for a worker: hosts take turns, and slow hosts have a lane of their own.

The next page is one of the host whose pages have taken least CPU so far, so a host of expensive pages cannot hold up
the others. A host one of whose pages took longer than `SLOW_SECONDS` is slow until one of them is quick again. Pages of
slow hosts are taken only if the workers have room for slow pages, which at most half of them ever have.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque

import msgspec
from isal import isal_zlib

from quadloom.crawling.workers.pool import SLOW_SECONDS
from quadloom.model.lru import LruCache
from quadloom.model.page import Page
from quadloom.model.visit import Visit

_LARGE_BODY = 1 << 20  # bytes; such bodies are packed while they wait behind others, 2 ms a megabyte
_TURN = 0.001  # CPU-seconds that a page is assumed to take, until it has
_HOSTS = 1 << 14  # whose CPU is remembered


class WaitingPage(msgspec.Struct, frozen=True):
    """`unpacked`: bytes of its body, if that is packed. `number`: of its first task, if it has had one."""

    visit: Visit
    page: Page
    unpacked: int = 0
    number: int | None = None

    @property
    def size(self) -> int:
        return len(self.page.body)

    def packed(self) -> WaitingPage:
        if self.unpacked or self.size < _LARGE_BODY:
            return self
        body = isal_zlib.compress(self.page.body, 1)
        page = msgspec.structs.replace(self.page, body=body)
        return msgspec.structs.replace(self, page=page, unpacked=self.size)

    def whole(self) -> Page:
        if not self.unpacked:
            return self.page
        body = isal_zlib.decompress(self.page.body, bufsize=self.unpacked)
        return msgspec.structs.replace(self.page, body=body)


class WaitingPages:
    """One thread. Its length counts pages, `slow` those of slow hosts."""

    def __init__(self) -> None:
        self._lanes = {False: _HostTurns(), True: _HostTurns()}
        self._slow_hosts: LruCache[str, bool] = LruCache(_HOSTS)

    def __len__(self) -> int:
        return len(self._lanes[False]) + len(self._lanes[True])

    @property
    def slow(self) -> int:
        return len(self._lanes[True])

    def put(self, waiting: WaitingPage) -> None:
        host = waiting.visit.host
        self._lanes[self._slow_hosts.get(host) is not None].put(host, waiting)

    def take(self, *, slow: bool) -> WaitingPage | None:
        """The next page of a slow host, or of another one."""
        return self._lanes[slow].take()

    def charge(self, host: str, seconds: float) -> None:
        """A page of this host has taken so much CPU."""
        for lane in self._lanes.values():
            lane.charge(host, seconds)
        is_slow = seconds > SLOW_SECONDS
        if is_slow == (self._slow_hosts.get(host) is not None):
            return
        if is_slow:
            self._slow_hosts.put(host, True)
        else:
            self._slow_hosts.pop(host)
        for waiting in self._lanes[not is_slow].remove(host):
            self._lanes[is_slow].put(host, waiting)


class _HostTurns:
    """A queue by host. The host with the least CPU is next; one that waits again begins with as much as the last that
    had a turn, so that it gets its share from now on and no more."""

    def __init__(self) -> None:
        self._pages: dict[str, deque[WaitingPage]] = {}
        self._turns: list[tuple[float, int, str]] = []  # a heap with one entry for each host that waits
        self._numbers = itertools.count()
        self._spent: LruCache[str, float] = LruCache(_HOSTS)
        self._latest = 0.0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, host: str, waiting: WaitingPage) -> None:
        self._size += 1
        pages = self._pages.get(host)
        if pages is not None:
            pages.append(waiting)
            return
        self._pages[host] = deque((waiting,))
        self._wait(host, max(self._spent.get(host) or 0.0, self._latest))

    def take(self) -> WaitingPage | None:
        while self._turns:
            spent, _, host = heapq.heappop(self._turns)
            pages = self._pages.get(host)
            if pages is None:
                continue
            charged = self._spent.get(host) or 0.0
            if charged > spent:
                self._wait(host, charged)
                continue
            self._latest = spent
            self._size -= 1
            waiting = pages.popleft()
            if pages:
                self._wait(host, spent + _TURN)
            else:
                del self._pages[host]
            return waiting
        return None

    def charge(self, host: str, seconds: float) -> None:
        self._spent.put(host, max(self._spent.get(host) or 0.0, self._latest) + seconds)

    def remove(self, host: str) -> deque[WaitingPage]:
        """All pages of a host. Its entry in the heap has none then, and is skipped."""
        pages = self._pages.pop(host, deque())
        self._size -= len(pages)
        return pages

    def _wait(self, host: str, spent: float) -> None:
        heapq.heappush(self._turns, (spent, next(self._numbers), host))
