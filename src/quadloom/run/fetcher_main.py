"""The fetcher process: HTTP only, bodies are never looked into.

Run as `python -m quadloom.run.fetcher_main FD`. The owner sends `Order`s; each visit comes back as one `Fetched`.
"""

from __future__ import annotations

import queue
import signal
import threading
import time

import msgspec

from quadloom.fetching.fetcher import Fetched, Fetcher
from quadloom.model import wire
from quadloom.model.visit import Visit
from quadloom.run.channel import Channel, Closed, attach
from quadloom.settings import Settings

_IDLE = 0.05  # seconds; a new order wakes the loop earlier


class Order(msgspec.Struct, frozen=True, array_like=True):
    """Visits to make now; what the catalog has of their hosts: robots.txt rows, failures in a row."""

    visits: tuple[Visit, ...]
    robots: dict[str, bytes]
    strikes: dict[str, int]


class Batch(msgspec.Struct, frozen=True, array_like=True):
    fetched: tuple[Fetched, ...]


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = attach()
    settings = channel.receive(Settings)
    fetcher = Fetcher(settings, clock=time.time)
    orders: queue.SimpleQueue[Order | None] = queue.SimpleQueue()
    reader = threading.Thread(target=_read, args=(channel, orders, fetcher), daemon=True)
    reader.start()
    try:
        _serve(channel, orders, fetcher)
    except Closed:
        return
    finally:
        fetcher.close()


def _read(channel: Channel, orders: queue.SimpleQueue[Order | None], fetcher: Fetcher) -> None:
    """A thread, so that orders are taken even while the loop is sending: neither side can wait for the other."""
    try:
        while True:
            orders.put(wire.decode(channel.receive_bytes(), Order))
            fetcher.wake()
    except Closed:
        orders.put(None)
        fetcher.wake()


def _serve(channel: Channel, orders: queue.SimpleQueue[Order | None], fetcher: Fetcher) -> None:
    while True:
        while not orders.empty():
            order = orders.get()
            if order is None:
                return
            fetcher.submit(list(order.visits), order.robots, order.strikes)
        fetched = fetcher.step(_IDLE)
        if fetched:
            channel.send(Batch(tuple(fetched)))


if __name__ == "__main__":
    main()
