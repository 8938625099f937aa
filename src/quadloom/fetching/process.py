"""The fetch unit of a real crawl: a child process. HTTP only, bodies are never parsed there.

`FetchProcess` is the owner's end. It restarts the child when it dies, and returns what it had in hand. The child runs
`python -m quadloom.fetching.process FD`: it says that it is ready by an empty batch, orders come in, and each visit
goes back as one `FetchResult`.
"""

from __future__ import annotations

import queue
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import msgspec

from quadloom.fetching.browser.renderer import find_browser
from quadloom.fetching.crashing_visits import CrashingVisits
from quadloom.fetching.fetcher import Fetcher, FetchResult
from quadloom.fetching.guard import Guard
from quadloom.fetching.replay import replay_source
from quadloom.fetching.unit import FetchOrder, HostAddress, Orders, open_fetcher, serve
from quadloom.model import wire
from quadloom.model.outcome import HostPace
from quadloom.model.page import Failure, Page
from quadloom.model.visit import Visit
from quadloom.process import threads
from quadloom.process.channel import Channel, ChannelClosed, ChildProcess, ProcessHeartbeat, attach, start
from quadloom.process.clock import unix_time
from quadloom.process.restarts import Restarts
from quadloom.settings import Settings

_CONNECT_SECONDS = 5.0
_BATCH_BYTES = 256 * 1024  # of bodies in one message, unless one alone is longer


class FetchedBatch(msgspec.Struct, frozen=True, array_like=True):
    fetched: tuple[FetchResult, ...]


class FetchProcess:
    """See `quadloom.fetching.unit.FetchUnit`; the transport is that of `settings.crawl.transport`.

    Raises `SettingsError` if that names none, if a part of the browser is missing, or for a block of `guard.allow` that
    is none. A child that cannot start is tried again a few times; then `failed` gets `ChildFailed`. A visit that kills
    the child again and again is given up (`quadloom.fetching.crashing_visits`).
    """

    def __init__(
        self,
        settings: Settings,
        fetched: Callable[[Sequence[FetchResult]], None],
        lost: Callable[[Sequence[Visit]], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        # What cannot work raises here, not in a child that would be restarted for ever.
        Guard(settings.guard)
        if settings.crawl.browser != "never":
            find_browser(settings)
        source = replay_source(settings)
        if source is not None:
            source.archive().close()
        self._settings = settings
        self._fetched = fetched
        self._lost = lost
        self._failed = failed
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._in_hand: dict[int, Visit] = {}
        self._crashing = CrashingVisits()
        self._restarts = Restarts("fetch")
        self._spent_cpu = 0.0
        self._child = self._start()

    @property
    def in_hand(self) -> int:
        return len(self._in_hand)

    def send(self, visits: Sequence[Visit], robots: dict[str, bytes], strikes: dict[str, int]) -> None:
        with self._lock:
            child = self._child
            self._in_hand.update((visit.fingerprint, visit) for visit in visits)
            now = self._crashing.admit(visits)
        self._order(child, FetchOrder(tuple(now), robots, strikes))

    def reaches(self, endpoints: Sequence[HostAddress]) -> bool:
        if self._settings.fetch.proxy:
            from quadloom.fetching.http.proxy import proxy_of  # here: the owner of a crawl needs no libcurl

            if (proxy := proxy_of(self._settings.fetch)) is not None:
                endpoints = [HostAddress(address, proxy.port) for address in proxy.addresses]
        for endpoint in endpoints:
            with suppress(OSError), socket.create_connection(endpoint, timeout=_CONNECT_SECONDS):
                return True
        return False

    def cpu_seconds(self) -> float:
        return self._spent_cpu + self._child.cpu_seconds()

    def heartbeat(self) -> ProcessHeartbeat:
        child = self._child
        return ProcessHeartbeat("fetch", child.process.pid, child.resident_bytes(), child.cpu_seconds(), self.in_hand)

    def close(self) -> None:
        self._restarts.close()
        with self._lock:
            self._spent_cpu = self.cpu_seconds()
            self._child.kill()
            self._child.channel.close()

    def _start(self) -> ChildProcess:
        child = start(__name__, self._settings, from_template=True)
        threads.start("fetch-receiver", lambda: self._receive(child), self._failed)
        return child

    def _order(self, child: ChildProcess, order: FetchOrder) -> None:
        try:
            with self._sending:
                child.channel.send(order)
        except ChannelClosed:
            return  # the receiving thread gets the same error and gives the visits back

    def _receive(self, child: ChildProcess) -> None:
        ready = False
        try:
            while True:
                batch = wire.decode(child.channel.receive_bytes(), FetchedBatch)
                if not ready:
                    ready = True
                    self._restarts.ready()
                    continue
                self._restarts.worked()
                with self._lock:
                    for item in batch.fetched:
                        self._in_hand.pop(item.visit.fingerprint, None)
                    more = self._crashing.ended([item.visit.fingerprint for item in batch.fetched])
                if more:
                    self._order(child, FetchOrder(tuple(more), {}, {}))
                self._fetched(batch.fetched)
        except ChannelClosed:
            if not self._restarts.is_closed:
                self._replace(child, ready)

    def _replace(self, dead: ChildProcess, ready: bool) -> None:
        self._spent_cpu += dead.cpu_seconds()
        cause = dead.wait().describe(0.0, 0)
        with self._lock:
            guilty = self._crashing.died(list(self._in_hand.values())) if ready else []
            for visit in guilty:
                del self._in_hand[visit.fingerprint]
        lost = self._restarts.start_again(self._start_another, was_ready=ready, cause=cause)
        if lost is None:
            return
        self._lost(lost)
        if guilty:
            self._fetched([_given_up(visit, cause) for visit in guilty])

    def _start_another(self) -> list[Visit]:
        """The visits that the dead child had in hand, with those that were sent to it meanwhile."""
        with self._lock:
            self._child = self._start()
            lost = list(self._in_hand.values())
            self._in_hand.clear()
            return lost


def _given_up(visit: Visit, cause: str) -> FetchResult:
    now = unix_time()
    message = f"the fetch process died three times with this page in hand; the last one {cause}"
    failure = Failure(visit.href, "internal", message, transient=True, fetched_at=now)
    return FetchResult(visit, failure, HostPace(visit.host, "", 0.0, now))


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = attach()
    fetcher = open_fetcher(channel.receive(Settings))
    channel.send(FetchedBatch(()))
    orders: Orders = queue.SimpleQueue()
    threading.Thread(target=_read, args=(channel, orders, fetcher), daemon=True).start()

    def deliver(fetched: list[FetchResult]) -> None:
        for batch in _batches(fetched):
            channel.send(batch)

    try:
        with suppress(ChannelClosed):
            serve(fetcher, orders, deliver)
    finally:
        fetcher.close()


def _read(channel: Channel, orders: Orders, fetcher: Fetcher) -> None:
    """Runs in a thread, so that orders are read even while the loop is sending: neither side waits for the other."""
    try:
        while True:
            orders.put(wire.decode(channel.receive_bytes(), FetchOrder))
            fetcher.wake()
    except ChannelClosed:
        orders.put(None)
        fetcher.wake()


def _batches(fetched: list[FetchResult]) -> Iterator[FetchedBatch]:
    """A message is a copy of all its bodies, so the results of a busy step go out in several."""
    batch: list[FetchResult] = []
    size = 0
    for item in fetched:
        length = len(item.result.body) if isinstance(item.result, Page) else 0
        if batch and size + length > _BATCH_BYTES:
            yield FetchedBatch(tuple(batch))
            batch, size = [], 0
        batch.append(item)
        size += length
    if batch:
        yield FetchedBatch(tuple(batch))


if __name__ == "__main__":
    main()
