"""The link matrix cut into blocks by target, so that a pass over all links reads memory in order.

A block has the links whose target lies in one range of page ids (Haveliwala's technique, section 5.4 of the Xyleme
paper), as plain coordinates ordered by source: eight bytes a link. A pass over a block reads the values of the sources
in order, and those of the targets at random, but within a range that fits the processor's cache. The product over such
blocks takes half the time of a product over rows of the whole matrix, which reads values from all over memory.

The coordinates are in memory, or in two files that are mapped. A process with less memory than the matrix can use the
files.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy  # its parts load on first use: half a second that most commands need not wait

from quadloom.process.durable import sync_tree

Vector = npt.NDArray[np.float64]
Integers = npt.NDArray[np.integer]
Ids = npt.NDArray[np.int32]

_CHUNK = 1 << 20  # links handled at once while cutting, which limits temporary arrays to 16 MiB
_PIECE = 1 << 22  # links of a product: each has a weight of 1 in an array of doubles that all products share


def block_width(pages: int) -> int:
    """Pages per block. Narrow blocks stay in cache, but each reads all source values again."""
    return int(np.clip(-(-pages // 16), 1 << 10, 1 << 17))


class LinkRows(NamedTuple):
    """Links by source: page i links to `targets[starts[i]:starts[i + 1]]`. The arrays may be mapped from disk."""

    starts: Integers
    targets: Integers

    @property
    def pages(self) -> int:
        return len(self.starts) - 1

    def of(self, page: int) -> Integers:
        """The pages that `page` links to."""
        return self.targets[self.starts[page] : self.starts[page + 1]]


class Block(NamedTuple):
    """Links to pages `low` … `high` − 1."""

    low: int
    high: int
    pieces: list[scipy.sparse.coo_array]

    def incoming(self, values: Vector) -> Vector:
        """Σ values[source] over the in-links of each page of the block."""
        sums = np.zeros(self.high - self.low)
        for piece in self.pieces:
            sums += np.asarray(piece @ values).reshape(-1)  # scipy returns a scalar for one page times one page
        return sums


class LinkBlocks:
    """The links of a matrix by source and by target. `folder`: where the blocks are on disk, and are written if they
    are not there; None = in memory."""

    def __init__(self, rows: LinkRows, *, width: int = 0, folder: Path | None = None) -> None:
        self.pages = rows.pages
        self.outdegree = np.diff(rows.starts).astype(np.int32)
        self.dangling = np.flatnonzero(self.outdegree == 0)
        self.width = width or block_width(rows.pages)
        self._rows = rows
        links = len(rows.targets)
        if folder is None:
            self._sources, self._targets = np.empty(links, dtype=np.int32), np.empty(links, dtype=np.int32)
            self._ends = _cut(rows, self.width, self._sources, self._targets)
        else:
            if not folder.is_dir():
                _cut_to(folder, rows, self.width)
            self._sources = np.asarray(np.load(folder / "sources.npy", mmap_mode="r"))
            self._targets = np.asarray(np.load(folder / "targets.npy", mmap_mode="r"))
            self._ends = np.load(folder / "ends.npy")

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[Block]:
        """All blocks, in the order of their targets."""
        return iter(self._blocks)

    def block(self, number: int) -> Block:
        low = number * self.width
        high = min(low + self.width, self.pages)
        begin, end = int(self._ends[number - 1]) if number else 0, int(self._ends[number])
        pieces = []
        for first in range(begin, end, _PIECE):
            part = slice(first, min(first + _PIECE, end))
            coordinates = (self._ones[: part.stop - first], (self._targets[part], self._sources[part]))
            pieces.append(scipy.sparse.coo_array(coordinates, shape=(high - low, self.pages)))
        return Block(low, high, pieces)

    def outgoing(self, worth: Vector, low: int = 0, high: int | None = None) -> Vector:
        """Σ worth[target] over the out-links of each page from `low` to `high` − 1."""
        high = self.pages if high is None else high
        starts, targets = self._rows
        sums = np.empty(high - low)
        for first, last in row_chunks(starts[low : high + 1], _PIECE):
            begin, end = int(starts[low + first]), int(starts[low + last])
            # A row with more links than a piece makes a chunk of its own.
            ones = self._ones[: end - begin] if end - begin <= len(self._ones) else np.ones(end - begin)
            links = (ones, targets[begin:end], starts[low + first : low + last + 1] - begin)
            sums[first:last] = np.asarray(scipy.sparse.csr_array(links, shape=(last - first, self.pages)) @ worth)
        return sums

    def indegree(self) -> Vector:
        counts = np.zeros(self.pages)
        for number, end in enumerate(self._ends):
            begin = self._ends[number - 1] if number else 0
            low = number * self.width
            high = min(low + self.width, self.pages)
            counts[low:high] = np.bincount(self._targets[begin:end], minlength=high - low)
        return counts

    @cached_property
    def _blocks(self) -> list[Block]:
        return [self.block(number) for number in range(len(self))]

    @cached_property
    def _ones(self) -> Vector:
        return np.ones(min(len(self._rows.targets), _PIECE))


def row_chunks(starts: Integers, links_at_once: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about `links_at_once` links each, and at least one row."""
    rows = len(starts) - 1
    first = 0
    while first < rows:
        last = int(np.searchsorted(starts, starts[first] + links_at_once, side="right")) - 1
        last = min(max(last, first + 1), rows)
        yield first, last
        first = last


def _cut(rows: LinkRows, width: int, sources: Ids, targets: Ids) -> npt.NDArray[np.int64]:
    """Counting sort of the links by the block of their target, into `sources` and `targets` (within the block); returns
    where each block ends. Sources ascend within a block."""
    count = -(-rows.pages // width)
    kind = np.uint16 if count < 65536 else np.int64  # numpy sorts 16-bit numbers by radix, in linear time
    lengths = np.zeros(count, dtype=np.int64)
    for first in range(0, len(rows.targets), _CHUNK):
        lengths += np.bincount(rows.targets[first : first + _CHUNK] // width, minlength=count)
    ends = np.cumsum(lengths)
    place = ends - lengths
    for first, last in row_chunks(rows.starts, _CHUNK):
        linked = rows.targets[rows.starts[first] : rows.starts[last]]
        number = (linked // width).astype(kind)
        order = np.argsort(number, kind="stable")
        counts = np.bincount(number, minlength=count)
        at = np.arange(len(order)) + np.repeat(place - (np.cumsum(counts) - counts), counts)
        degrees = np.diff(rows.starts[first : last + 1])
        sources[at] = np.repeat(np.arange(first, last, dtype=np.int32), degrees)[order]
        targets[at] = (linked - number.astype(np.int64) * width)[order]
        place += counts
    return ends


def _cut_to(folder: Path, rows: LinkRows, width: int) -> None:
    """Write the blocks as files. The folder takes its name when they are on disk."""
    unfinished = folder.with_name(folder.name + ".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    sources, targets = (
        np.lib.format.open_memmap(unfinished / f"{name}.npy", "w+", np.int32, (len(rows.targets),))
        for name in ("sources", "targets")
    )
    np.save(unfinished / "ends.npy", _cut(rows, width, sources, targets))
    del sources, targets
    sync_tree(unfinished)
    unfinished.rename(folder)
