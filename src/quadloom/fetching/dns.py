"""Names to addresses, without ever blocking the loop.

`getaddrinfo` is the only resolver that honours the machine's own configuration (hosts file, search list, NSS), but it
blocks and cannot be cancelled. So it runs in a few daemon threads. A name without an answer fails at its deadline while
its thread is still stuck; when all threads are stuck, further names fail the same way and the crawl of names in the
cache continues. Answers and failures are cached, and both expire: a negative entry without an end turns one lost
packet into a lost site.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

THREADS = 16  # at 5 s a stalled name this still gives 3 names/s; live names take a few ms each
CACHE_NAMES = 50_000
MAX_ADDRESSES = 8


class DnsAnswer(msgspec.Struct, frozen=True):
    """`addresses` in the order in which they should be tried; `error` in words if there are none."""

    addresses: tuple[str, ...] = ()
    error: str = ""


class DnsLookup(Protocol):
    """Resolves a name. May block; raises OSError if the name has no address."""

    def __call__(self, name: str) -> Sequence[str]: ...


def system_lookup(name: str) -> list[str]:
    """Addresses by the system's resolver, in its order (RFC 6724: unreachable families last)."""
    try:
        rows = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, flags=socket.AI_ADDRCONFIG)
    except UnicodeError as error:  # labels over 63 characters fail in the codec, before any resolver sees them
        raise OSError(f"not a host name: {error}") from None
    return list(dict.fromkeys(str(row[4][0]) for row in rows))


class _Question(msgspec.Struct):
    name: str
    deadline: float
    callbacks: list[Callable[[DnsAnswer], None]]


class DnsResolver:
    """Cache and threads around a `DnsLookup`. All methods but `ring` are called from one thread.

    `fileno` becomes readable when answers are waiting for `collect`, which runs the callbacks.
    """

    def __init__(
        self,
        *,
        seconds: float,
        ttl: float,
        negative_ttl: float,
        monotonic: Callable[[], float],
        lookup: DnsLookup = system_lookup,
        threads: int = THREADS,
    ) -> None:
        self._seconds = seconds
        self._ttl = ttl
        self._negative_ttl = negative_ttl
        self._monotonic = monotonic
        self._lookup = lookup
        self._max_threads = threads
        self._threads: list[threading.Thread] = []
        self._questions: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._answers: deque[tuple[str, DnsAnswer]] = deque()
        self._open: OrderedDict[str, _Question] = OrderedDict()  # by deadline, because all wait equally long
        self._cache: OrderedDict[str, tuple[float, DnsAnswer]] = OrderedDict()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._closed = False

    def fileno(self) -> int:
        return self._bell

    def cached(self, name: str) -> DnsAnswer | None:
        """The answer in the cache, unless it has expired."""
        entry = self._cache.get(name)
        if entry is None:
            return None
        if entry[0] <= self._monotonic():
            del self._cache[name]
            return None
        return entry[1]

    def ask(self, name: str, callback: Callable[[DnsAnswer], None]) -> None:
        """Call `callback` once: from `collect` with the answer, or from `expire` with an error at the deadline."""
        question = self._open.get(name)
        if question is not None:
            question.callbacks.append(callback)
            return
        self._open[name] = _Question(name, self._monotonic() + self._seconds, [callback])
        if len(self._threads) < min(self._max_threads, len(self._open)):
            thread = threading.Thread(target=self._serve, name=f"dns-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        self._questions.put(name)

    def next_deadline(self) -> float | None:
        """Monotonic time at which the oldest open question gives up."""
        for question in self._open.values():
            return question.deadline
        return None

    def collect(self) -> None:
        """Deliver the answers of the threads."""
        with suppress(BlockingIOError):
            os.eventfd_read(self._bell)
        while self._answers:
            name, answer = self._answers.popleft()
            self._remember(name, answer)
            self._deliver(name, answer)

    def expire(self) -> None:
        """Give up on questions that are overdue."""
        if not self._open:
            return
        now = self._monotonic()
        overdue = []
        for question in self._open.values():
            if question.deadline > now:
                break
            overdue.append(question.name)
        for name in overdue:
            answer = DnsAnswer(error=f"no answer from DNS within {self._seconds:g} s")
            self._remember(name, answer)
            self._deliver(name, answer)

    def ring(self) -> None:
        """Make `fileno` readable; may be called from any thread."""
        if not self._closed:
            os.eventfd_write(self._bell, 1)

    def demote(self, name: str, address: str) -> None:
        """Try this address of a name last in future: no connection to it was possible."""
        entry = self._cache.get(name)
        if entry is not None and address in entry[1].addresses:
            others = tuple(other for other in entry[1].addresses if other != address)
            self._cache[name] = (entry[0], DnsAnswer((*others, address)))

    def close(self) -> None:
        """End idle threads; stuck ones end with the process (they are daemons)."""
        if not self._closed:
            self._closed = True
            for _ in self._threads:
                self._questions.put(None)
            if not any(thread.is_alive() for thread in self._join()):
                os.close(self._bell)

    def _join(self) -> list[threading.Thread]:
        for thread in self._threads:
            thread.join(timeout=0.05)
        return self._threads

    def _remember(self, name: str, answer: DnsAnswer) -> None:
        expires = self._monotonic() + (self._ttl if answer.addresses else self._negative_ttl)
        self._cache[name] = (expires, answer)
        self._cache.move_to_end(name)
        if len(self._cache) > CACHE_NAMES:
            self._cache.popitem(last=False)

    def _deliver(self, name: str, answer: DnsAnswer) -> None:
        question = self._open.pop(name, None)
        if question is not None:
            for callback in question.callbacks:
                callback(answer)

    def _serve(self) -> None:
        while True:
            name = self._questions.get()
            if name is None or self._closed:
                return
            if name not in self._open:  # it has expired while all threads were busy
                continue
            try:
                addresses = tuple(self._lookup(name))[:MAX_ADDRESSES]
                answer = DnsAnswer(addresses) if addresses else DnsAnswer(error="no address")
            except OSError as error:
                answer = DnsAnswer(error=str(error.strerror or error))
            self._answers.append((name, answer))
            self.ring()
