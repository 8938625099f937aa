"""The fetcher process: HTTP only, bodies are never looked into.

Run as `python -m quadloom.fetching.process_main FD`. The owner sends `FetchOrder`s; each visit comes back as one
`FetchResult`.
"""

from __future__ import annotations

import queue
import signal
import threading
import time
from collections.abc import Iterator

import msgspec

from quadloom.fetching.fetcher import Fetcher, FetchResult
from quadloom.model import wire
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.process.channel import Channel, ChannelClosed, attach
from quadloom.settings import Settings

_IDLE = 0.05  # seconds; a new order wakes the loop earlier
_BATCH_BYTES = 256 * 1024  # of bodies in one message, unless one alone is longer


class FetchOrder(msgspec.Struct, frozen=True, array_like=True):
    """Visits to make now; what the catalog has of their hosts: robots.txt rows, failures in a row."""

    visits: tuple[Visit, ...]
    robots: dict[str, bytes]
    strikes: dict[str, int]


class FetchedBatch(msgspec.Struct, frozen=True, array_like=True):
    fetched: tuple[FetchResult, ...]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = attach()
    settings = channel.receive(Settings)
    fetcher = Fetcher(settings, clock=time.time)
    orders: queue.SimpleQueue[FetchOrder | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(channel, orders, fetcher), daemon=True)
    reader.start()
    try:
        _serve(channel, orders, fetcher)
    except ChannelClosed:
        return
    finally:
        fetcher.close()


def _read(channel: Channel, orders: queue.SimpleQueue[FetchOrder | None], fetcher: Fetcher) -> None:
    """A thread, so that orders are taken even while the loop is sending: neither side can wait for the other."""
    try:
        while True:
            orders.put(wire.decode(channel.receive_bytes(), FetchOrder))
            fetcher.wake()
    except ChannelClosed:
        orders.put(None)
        fetcher.wake()


def _serve(channel: Channel, orders: queue.SimpleQueue[FetchOrder | None], fetcher: Fetcher) -> None:
    while True:
        while not orders.empty():
            order = orders.get()
            if order is None:
                return
            fetcher.submit(list(order.visits), order.robots, order.strikes)
        for batch in _batches(fetcher.step(_IDLE)):
            channel.send(batch)


def _batches(fetched: list[FetchResult]) -> Iterator[FetchedBatch]:
    """A message is a copy of all its bodies, so what a busy step brought goes out in several."""
    fetched.reverse()
    while fetched:
        taken = [fetched.pop()]
        size = _size(taken[0])
        while fetched and (size := size + _size(fetched[-1])) <= _BATCH_BYTES:
            taken.append(fetched.pop())
        yield FetchedBatch(tuple(taken))


def _size(fetched: FetchResult) -> int:
    return len(fetched.result.body) if isinstance(fetched.result, Page) else 0


if __name__ == "__main__":
    main()
