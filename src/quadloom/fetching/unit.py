"""What makes the requests of a crawl: a `Fetcher` in a process of its own, or in a thread for tests and simulations.

Both run the same loop (`serve`) on orders from the owner. The transport is chosen by URL, `crawl.transport`.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from quadloom.fetching.browser.renderer import open_renderer
from quadloom.fetching.fetcher import Fetcher, FetchResult, RequestFactory
from quadloom.fetching.in_process import InProcessTransport, Responder
from quadloom.fetching.replay import ReplayTransport, replay_source, without_pauses
from quadloom.fetching.transport import Transport
from quadloom.model.visit import Visit
from quadloom.process import threads
from quadloom.process.channel import ProcessHeartbeat
from quadloom.process.clock import unix_time
from quadloom.settings import Settings

_IDLE = 0.05  # seconds; a new order wakes the loop earlier
_PORTS = {"http": 80, "https": 443}


class HostAddress(NamedTuple):
    """Where a host has answered."""

    address: str
    port: int

    @classmethod
    def of(cls, url: str, address: str) -> HostAddress:
        parts = urlsplit(url)
        return cls(address, parts.port or _PORTS.get(parts.scheme, 80))


class FetchUnit(Protocol):
    """Fetches visits for the owner of a crawl.

    Each visit that was sent comes back exactly once: to `fetched`, or to `lost` if the unit died with it in hand
    (its lease then goes back to the frontier); after `close`, to neither. Both callbacks are called from another
    thread, as is `failed`, with the error of a defect that ends the crawl.
    """

    @property
    def in_hand(self) -> int:
        """Visits that were sent and did not come back yet."""
        ...

    def send(self, visits: Sequence[Visit], robots: dict[str, bytes], strikes: dict[str, int]) -> None:
        """Fetch these. `robots`: rows that the catalog has of their hosts; `strikes`: their failures in a row."""
        ...

    def reaches(self, endpoints: Sequence[HostAddress]) -> bool:
        """Whether one of these accepts a connection now. Nothing is sent, so nobody is asked for anything. May take
        seconds, and is called in a thread of its own."""
        ...

    def cpu_seconds(self) -> float: ...

    def heartbeat(self) -> ProcessHeartbeat: ...

    def close(self) -> None: ...


class FetchUnitFactory(Protocol):
    """Starts a unit: `FetchProcess` itself, or what `answered_in_process` returns."""

    def __call__(
        self,
        settings: Settings,
        fetched: Callable[[Sequence[FetchResult]], None],
        lost: Callable[[Sequence[Visit]], None],
        failed: Callable[[BaseException], None],
    ) -> FetchUnit: ...


class FetchOrder(msgspec.Struct, frozen=True, array_like=True):
    """Visits to make now, and what the catalog has of their hosts: robots.txt rows, failures in a row."""

    visits: tuple[Visit, ...]
    robots: Mapping[str, bytes]
    strikes: Mapping[str, int]


Orders = queue.SimpleQueue[FetchOrder | None]
"""None ends the loop."""


class FetchThread:
    """A `FetchUnit` in a thread of this process, with any transport and clock: no sockets, no child process."""

    def __init__(
        self,
        fetcher: Fetcher,
        fetched: Callable[[Sequence[FetchResult]], None],
        failed: Callable[[BaseException], None],
        reaches: Callable[[Sequence[HostAddress]], bool] = lambda _endpoints: True,
    ) -> None:
        self.reaches = reaches  # without a network there is none that could be away
        self._fetcher = fetcher
        self._fetched = fetched
        self._orders: Orders = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._in_hand: set[int] = set()
        self._closing = False
        self._spent_cpu = 0.0
        self._thread = threads.start("fetch", self._run, failed)

    @property
    def in_hand(self) -> int:
        return len(self._in_hand)

    def send(self, visits: Sequence[Visit], robots: dict[str, bytes], strikes: dict[str, int]) -> None:
        with self._lock:
            self._in_hand.update(visit.fingerprint for visit in visits)
        self._orders.put(FetchOrder(tuple(visits), robots, strikes))
        self._fetcher.wake()

    def cpu_seconds(self) -> float:
        if self._thread.ident is None or not self._thread.is_alive():
            return self._spent_cpu
        return time.clock_gettime(time.pthread_getcpuclockid(self._thread.ident))

    def heartbeat(self) -> ProcessHeartbeat:
        return ProcessHeartbeat("fetch", os.getpid(), 0, self.cpu_seconds(), self.in_hand)

    def close(self) -> None:
        self._closing = True
        self._orders.put(None)
        self._fetcher.wake()
        self._thread.join()

    def _run(self) -> None:
        try:
            serve(self._fetcher, self._orders, self._deliver)
        finally:
            self._fetcher.close()
            self._spent_cpu = time.thread_time()

    def _deliver(self, fetched: list[FetchResult]) -> None:
        with self._lock:
            self._in_hand.difference_update(item.visit.fingerprint for item in fetched)
        if not self._closing:
            self._fetched(fetched)


def answered_in_process(
    respond: Responder,
    *,
    clock: Callable[[], float] = unix_time,
    reaches: Callable[[Sequence[HostAddress]], bool] = lambda _endpoints: True,
) -> FetchUnitFactory:
    """Starts `FetchThread`s whose requests `respond` answers: a crawl without sockets and without a fetch process."""

    def start(
        settings: Settings,
        fetched: Callable[[Sequence[FetchResult]], None],
        lost: Callable[[Sequence[Visit]], None],  # a thread loses nothing
        failed: Callable[[BaseException], None],
    ) -> FetchUnit:
        transport = InProcessTransport(settings, respond, clock=clock)
        return FetchThread(Fetcher(settings, transport, clock=clock), fetched, failed, reaches)

    return start


def serve(fetcher: Fetcher, orders: Orders, deliver: Callable[[list[FetchResult]], None]) -> None:
    """Fetch what is ordered until None is; `deliver` gets the visits that ended, in lists that are never empty."""
    while True:
        while not orders.empty():
            order = orders.get()
            if order is None:
                return
            fetcher.submit(order.visits, order.robots, order.strikes)
        fetched = fetcher.step(_IDLE)
        if fetched:
            deliver(fetched)


def open_fetcher(
    settings: Settings,
    *,
    clock: Callable[[], float] = unix_time,
    random: Callable[[], float] | None = None,
    request_for: RequestFactory | None = None,
    transport: Transport | None = None,
) -> Fetcher:
    """A fetcher with `transport`, by default that of `crawl.transport`, and the browser that `crawl.browser` asks for.

    A replay asks no server and makes no pauses. Raises `SettingsError` if a part is missing.
    """
    transport = transport or open_transport(settings, clock=clock)
    return Fetcher(
        without_pauses(settings),
        transport,
        clock=clock,
        random=random,
        request_for=request_for,
        renderer=open_renderer(settings, transport.wake, clock),
    )


def open_transport(settings: Settings, *, clock: Callable[[], float] = unix_time) -> Transport:
    """The transport that `crawl.transport` names. Raises `SettingsError` if there is none, or no archive to replay."""
    source = replay_source(settings)
    if source is None:
        from quadloom.fetching.http.transport import CurlTransport  # here: the owner of a crawl never fetches

        if settings.crawl.sign == "never":
            return CurlTransport(settings, now=clock)
        from quadloom.fetching.http.signatures import RequestSigner

        return CurlTransport(settings, now=clock, signer=RequestSigner(settings, clock))
    return ReplayTransport(settings, source.archive(), until=source.until, clock=clock)
