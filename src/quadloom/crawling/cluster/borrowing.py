"""Shards for a command that writes pages of some sites while workers run: they give these back, and get them again."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from quadloom.errors import StoreUnavailable, WarehouseLocked
from quadloom.process.clock import unix_time
from quadloom.stores.protocols.cluster import Shards
from quadloom.stores.shards import SHARDS, shard_of

_PATIENCE = 120.0  # seconds; a worker gives a shard back when its last page is indexed
_POLL = 0.2


def shards_of(hosts: Collection[str]) -> frozenset[int]:
    """The shards of these hosts; `*.example.org` names all hosts of a site. Other patterns may mean any site."""
    names = [host.removeprefix("*.") for host in hosts]
    if any("*" in name or "?" in name or "[" in name for name in names):
        return frozenset(range(SHARDS))
    return frozenset(shard_of(name) for name in names)


@contextmanager
def borrowed(shards: Shards | None, wanted: frozenset[int], heartbeat: float) -> Iterator[None]:
    """Own these inside the block. None = one process owns all sites anyway. Raises `WarehouseLocked` if workers do not
    give them back in time."""
    if shards is None:
        yield
        return
    shards.want(wanted)
    ended = threading.Event()
    sign = shards.heartbeat()

    def beat() -> None:
        while not ended.wait(heartbeat):
            with suppress(StoreUnavailable):  # the next one tries again
                sign.renew()

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        _take(shards, wanted)
        yield
    finally:
        shards.drain(wanted)
        shards.give_back(frozenset())
        ended.set()
        thread.join()
        shards.want(())
        sign.close()


def _take(shards: Shards, wanted: frozenset[int]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while missing := wanted - shards.owned:
        shards.take(len(missing), unix_time(), missing)
        if not wanted - shards.owned:
            return
        if time.monotonic() > deadline:
            raise WarehouseLocked(
                f"workers did not give back {len(missing)} of {len(wanted)} shards within {_PATIENCE:g} s",
                hint="`quadloom status` shows the workers; pause or stop them, and try again",
            )
        time.sleep(_POLL)
