"""The link matrix cut into slices, so that a fixpoint needs neither random access nor room for the whole matrix.

A slice holds all links whose target lies in one range of page ids (Haveliwala's technique, section 5.4 of the
Xyleme paper), ordered by source. Working through it, values of the sources are read in order, as a stream, and values
of the targets at random, but only within a range that fits the processor's cache. The same slice serves both
directions: importance flows from source to target, usefulness from target to source. So one pass over the slices does
an iteration of both, in memory and from disk alike.

Per link a slice has two unsigned 32-bit numbers: the source's id and the target's place within the slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from quadloom.stores.link_kernels import kernels

Ids = npt.NDArray[np.uint32]


def slice_width(pages: int) -> int:
    """Pages per slice. Narrow slices stay in cache, but each one streams all source values again: a sixteenth of the
    web between 2^17 and 2^20 was best or within 10 % of it for 3 and for 20 million pages."""
    return int(np.clip(pages // 16, 1 << 17, 1 << 20))


class LinkSlice(NamedTuple):
    """Links into pages `low` … `high` − 1; `targets` count from `low`."""

    low: int
    high: int
    sources: Ids
    targets: Ids


class LinkSlices(Protocol):
    """All slices of a matrix in order of their targets. Iterating again gives the same links."""

    pages: int
    links: int
    outdegree: npt.NDArray[np.int32]

    def __iter__(self) -> Iterator[LinkSlice]: ...


class MemorySlices:
    """Slices of a matrix that fits: three arrays."""

    def __init__(self, indptr: npt.NDArray[np.integer], indices: npt.NDArray[np.integer], width: int) -> None:
        self.pages = len(indptr) - 1
        self.links = len(indices)
        self.width = width
        self.outdegree = np.diff(indptr).astype(np.int32)
        self.offsets, self.sources, self.targets = _partition(indptr, indices, width, self.pages)

    def __iter__(self) -> Iterator[LinkSlice]:
        for number in range(len(self.offsets) - 1):
            first, last = self.offsets[number], self.offsets[number + 1]
            low = number * self.width
            yield LinkSlice(low, min(low + self.width, self.pages), self.sources[first:last], self.targets[first:last])


class FileSlices:
    """Slices on disk, one mapped at a time, so that a memory limit below the matrix's size is enough."""

    def __init__(self, directory: Path, pages: int, width: int, outdegree: npt.NDArray[np.int32]) -> None:
        self.directory = directory
        self.pages = pages
        self.width = width
        self.outdegree = outdegree
        self.links = int(outdegree.sum(dtype=np.int64))

    def __iter__(self) -> Iterator[LinkSlice]:
        for number in range(-(-self.pages // self.width)):
            low = number * self.width
            yield LinkSlice(
                low,
                min(low + self.width, self.pages),
                _mapped(self.directory / f"{number:05d}.sources"),
                _mapped(self.directory / f"{number:05d}.targets"),
            )


def write_slices(
    directory: Path,
    indptr: npt.NDArray[np.integer],
    indices: npt.NDArray[np.integer],
    width: int,
    *,
    links_at_once: int = 4_000_000,
) -> FileSlices:
    """Cut a (memory-mapped) CSR matrix into slice files, reading `links_at_once` links at a time."""
    directory.mkdir(parents=True, exist_ok=True)
    pages = len(indptr) - 1
    numbers = range(-(-pages // width))
    # Files are opened by name for every chunk: a large matrix may have more slices than the process may have files.
    for number in numbers:
        for name in ("sources", "targets"):
            (directory / f"{number:05d}.{name}").write_bytes(b"")
    for first, last in row_chunks(indptr, links_at_once):
        local = indptr[first : last + 1] - indptr[first]
        offsets, sources, targets = _partition(local, indices[indptr[first] : indptr[last]], width, pages)
        sources += np.uint32(first)
        for number in range(len(offsets) - 1):
            part = slice(offsets[number], offsets[number + 1])
            with (directory / f"{number:05d}.sources").open("ab") as file:
                file.write(sources[part].tobytes())
            with (directory / f"{number:05d}.targets").open("ab") as file:
                file.write(targets[part].tobytes())
    return FileSlices(directory, pages, width, np.diff(indptr).astype(np.int32))


def row_chunks(indptr: npt.NDArray[np.integer], links_at_once: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows that hold about `links_at_once` links each (one row at least)."""
    rows = len(indptr) - 1
    first = 0
    while first < rows:
        last = int(np.searchsorted(indptr, indptr[first] + links_at_once, side="right")) - 1
        last = min(max(last, first + 1), rows)
        yield first, last
        first = last


def _partition(
    indptr: npt.NDArray[np.integer], indices: npt.NDArray[np.integer], width: int, pages: int
) -> tuple[npt.NDArray[np.int64], Ids, Ids]:
    """Counting sort of links by the slice of their target; the order of sources stays within each slice."""
    count = -(-pages // width)
    fast = kernels()
    if fast is not None and len(indices) > 100_000:
        return fast.partition(np.asarray(indptr, dtype=np.int64), indices, width, count)
    number = (indices // width).astype(np.uint16 if count < 65536 else np.int64)
    order = np.argsort(number, kind="stable")
    sources = np.repeat(np.arange(len(indptr) - 1, dtype=np.uint32), np.diff(indptr))[order]
    targets = (indices - number.astype(np.int64) * width).astype(np.uint32)[order]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=count))]).astype(np.int64)
    return offsets, sources, targets


def _mapped(path: Path) -> Ids:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=np.uint32)
    return np.asarray(np.memmap(path, dtype=np.uint32, mode="r"))  # a plain view: compiled loops know no subclasses
