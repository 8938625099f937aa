"""The link matrix during maintenance: import and rebuild append to it, verify compares it with the pages.

Appending is enough to repair it: the links of a page replace those of its earlier readings, so appending them twice
changes nothing. A warehouse whose state many workers share has no link matrix of its own: each worker has the links of
the pages that it read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from quadloom.model.outcome import PageRow
from quadloom.planning.ranking.link_lookup import link_chunks, while_segments_stay
from quadloom.planning.ranking.link_matrix import LinkMatrix, last_readings, packed_records
from quadloom.settings import Settings
from quadloom.stores.protocols.settlement import SettleBatch

_BUFFERED = 500  # pages


def has_links(settings: Settings) -> bool:
    """Whether this directory has the links of all pages."""
    return not settings.stores.is_shared


class LinkRecorder:
    """A `SettleHook` that appends the links of pages, without ranking them. They are on disk before the transaction
    that marks their pages as indexed; a page without that mark is transformed again after a crash."""

    def __init__(self, directory: Path) -> None:
        self._matrix = LinkMatrix(directory)
        self._pending: list[tuple[int, bytes]] = []

    def append(self, page: int, targets: bytes) -> None:
        """`targets`: packed int64 fingerprints."""
        self._pending.append((page, targets))
        if len(self._pending) >= _BUFFERED:
            self._write()

    def sync(self) -> None:
        """Return when all that was appended is on disk."""
        self._write()
        self._matrix.sync()

    def close(self) -> None:
        self._write()
        self._matrix.close()

    def _write(self) -> None:
        if self._pending:
            self._matrix.append_records(packed_records(self._pending))
            self._pending = []

    def prepare(self, batch: SettleBatch) -> None:
        for item in batch.visits:
            if item.result is not None:
                self.append(item.visit.fingerprint, item.result.edges)
        if batch.indexed:
            self.sync()

    def write(self, now: float) -> None:
        """The matrix is no part of the transaction."""

    def committed(self) -> None:
        """Nothing to forget."""


class StoredLinks:
    """How many links the edge segments have of every page, as of its last reading: 16 bytes per page.

    Versions of Quadloom differ in which links they count, so more links than expected are no difference."""

    def __init__(self, directory: Path) -> None:
        while_segments_stay(lambda: self._count(directory))

    def _count(self, directory: Path) -> None:
        marked = [last_readings(records)[1] for records in _chunks(directory)]
        self._pages = np.unique(np.concatenate(marked)) if marked else np.empty(0, dtype=np.int64)
        self._counts = np.zeros(len(self._pages), dtype=np.int64)
        for records in _chunks(directory):
            links, reset = last_readings(records)
            self._counts[np.searchsorted(self._pages, reset)] = 0
            places = np.searchsorted(self._pages, links["source"])
            known = places < len(self._pages)
            known[known] = self._pages[places[known]] == links["source"][known]
            np.add.at(self._counts, places[known], 1)

    def difference(self, row: PageRow, targets: bytes) -> str:
        """What is missing of the links of a page; empty = nothing. `targets`: packed int64 fingerprints."""
        place = int(np.searchsorted(self._pages, row.fingerprint))
        known = place < len(self._pages) and int(self._pages[place]) == row.fingerprint
        stored, wanted = int(self._counts[place]) if known else 0, len(targets) // 8
        return f"the link matrix has {stored} of the {wanted} links of the page" if stored < wanted else ""


def _chunks(directory: Path) -> Iterator[npt.NDArray[np.void]]:
    for _, records in link_chunks([(path, 0) for path in sorted(directory.glob("*.edges"))]):
        yield records
