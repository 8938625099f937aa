"""When the quad store puts its files in order: while nothing is to be written, or at the end of a large load.

RocksDB merges its files by itself as they grow; what it leaves lying are the layers of the last loads and the
graves of removed statements. `QuadStore.optimize` merges everything. Measured with 900,000 quads, a fifth of the pages
replaced three times: 520 MB became 471 MB, scanning all quads took 383 instead of 422 CPU-ms, looking up one graph the
same; it cost 2.2 CPU-seconds, 2.9 s by the clock. A replacement beside it waited 5 ms at most (300,000 quads).

It cannot be interrupted, and whoever closes the store waits for its end. So it starts only where it is expected to be
short, and never because of a small change: a fifth of the store must be new since the last time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from quadloom.errors import StoreError
from quadloom.stores.protocols.quads import QuadStore

ENOUGH = 100_000  # quads written: below, the files are in memory or few
_IDLE_SECONDS = 3.0
_SHARE = 0.2
_SECONDS_PER_QUAD = 3.5e-6  # expected at first, by the clock; then as the last time
_LONGEST = 30.0  # seconds it may be expected to take


class StoreCompactor:
    """The indexer tells what it `wrote`, and calls `idle` while it has nothing to do; the work is another thread's.

    Writing goes on beside it. `error` is what stopped it, for the indexer to raise: a store that cannot be merged
    cannot be trusted with the next batch either.
    """

    def __init__(
        self, quads: QuadStore, total: Callable[[], int], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._quads = quads
        self._total = total
        self._monotonic = monotonic
        self._written = 0
        self._last = monotonic()
        self._seconds_per_quad = _SECONDS_PER_QUAD
        self._thread: threading.Thread | None = None
        self.error: StoreError | None = None
        self.runs = 0

    def wrote(self, quads: int) -> None:
        self._written += quads
        self._last = self._monotonic()

    def idle(self) -> None:
        """Nothing waits to be written. Starts the work where it is due; returns at once."""
        if self._written < ENOUGH or self._monotonic() - self._last < _IDLE_SECONDS or self._is_busy():
            return
        total = self._total()
        if self._written >= _SHARE * total and total * self._seconds_per_quad <= _LONGEST:
            self._written = 0
            self._thread = threading.Thread(target=self._run, args=(max(1, total),), name="compaction", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait for the end of what is under way: the engine must not lose its files meanwhile."""
        if self._thread is not None:
            self._thread.join()

    def _is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self, total: int) -> None:
        started = self._monotonic()
        try:
            self._quads.optimize()
        except StoreError as error:
            self.error = error
        self._seconds_per_quad = (self._monotonic() - started) / total
        self.runs += 1
