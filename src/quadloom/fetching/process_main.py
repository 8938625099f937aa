"""The fetch process: HTTP only, bodies are never parsed here.

Run as `python -m quadloom.fetching.process_main FD`. The owner sends `FetchOrder`s; each visit comes back as one
`FetchResult`.
"""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from quadloom.fetching.fetcher import Fetcher, FetchResult
from quadloom.fetching.unit import FetchOrder, Orders, open_fetcher, serve
from quadloom.model import wire
from quadloom.model.page import Page
from quadloom.process.channel import Channel, ChannelClosed, attach
from quadloom.settings import Settings

_BATCH_BYTES = 256 * 1024  # of bodies in one message, unless one alone is longer


class FetchedBatch(msgspec.Struct, frozen=True, array_like=True):
    fetched: tuple[FetchResult, ...]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = attach()
    fetcher = open_fetcher(channel.receive(Settings))
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
    fetched.reverse()
    while fetched:
        batch = [fetched.pop()]
        size = _size(batch[0])
        while fetched and (size := size + _size(fetched[-1])) <= _BATCH_BYTES:
            batch.append(fetched.pop())
        yield FetchedBatch(tuple(batch))


def _size(fetched: FetchResult) -> int:
    return len(fetched.result.body) if isinstance(fetched.result, Page) else 0


if __name__ == "__main__":
    main()
