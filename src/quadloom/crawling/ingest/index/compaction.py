"""When the quad store compacts its files: while nothing is to be written, and much has been replaced.

RocksDB merges its files by itself as they grow, but leaves the markers of deleted statements. `QuadStore.optimize`
merges everything. Measured with 900,000 quads, a fifth of the pages replaced three times: 520 MB became 471 MB,
scanning all quads took 383 instead of 422 CPU-ms, looking up one graph took the same time; it cost 2.2 CPU-seconds,
2.9 s of wall time. A replacement at the same time waited 5 ms at most (300,000 quads).

What was loaded in bulk does not count. Its files are compressed, and those that a merge writes are not: 262,000 quads
of first reads took 225 bytes each, and 380 after 2.3 µs of merging for each of them. Looking up graphs and predicates
took the same time, counting all quads 37 CPU-ms before and 31 after.

It cannot be interrupted, and closing the store waits for its end. So it starts only if it is expected to be short, and
never because of a small change: as much as a fifth of the store must have changed since the last time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from quadloom.errors import StoreError
from quadloom.stores.protocols.quads import QuadStore

ENOUGH = 100_000  # quads added or removed: with fewer, the files are in memory or few
_IDLE_SECONDS = 3.0
_SHARE = 0.2  # of the store that must have changed
_SECONDS_PER_QUAD = 3.5e-6  # first estimate, in wall time; later the rate of the last run
_LONGEST = 30.0  # seconds that it may be expected to take


class StoreCompactor:
    """Compacts the store in a thread of its own. The indexer calls `wrote` after each write, with the number of
    statements that were not loaded in bulk, and `idle` when it has nothing to do.

    Writing continues meanwhile. `error` is what stopped a compaction, for the indexer to raise: a store that cannot be
    compacted cannot be trusted with the next batch either.
    """

    def __init__(
        self, quads: QuadStore, total: Callable[[], int], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._quads = quads
        self._total = total
        self._monotonic = monotonic
        self._written = 0
        self._written_at = monotonic()
        self._seconds_per_quad = _SECONDS_PER_QUAD
        self._thread: threading.Thread | None = None
        self.error: StoreError | None = None
        self.runs = 0

    def wrote(self, quads: int) -> None:
        self._written += quads
        self._written_at = self._monotonic()

    def idle(self) -> None:
        """Nothing waits to be written: start a compaction if one is due. Returns at once."""
        if self._written < ENOUGH or self._monotonic() - self._written_at < _IDLE_SECONDS or self._is_busy():
            return
        total = self._total()
        if self._written >= _SHARE * total and total * self._seconds_per_quad <= _LONGEST:
            self._written = 0
            self._thread = threading.Thread(target=self._run, args=(max(1, total),), name="compaction", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Wait for a running compaction: its files must not be removed meanwhile."""
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
