"""The link matrix cut into slices, so that a fixpoint needs neither random access nor memory for the whole matrix.

A slice holds all links whose target lies in one range of page ids (Haveliwala's technique, section 5.4 of the
Xyleme paper), ordered by source. A pass over a slice reads the values of the sources sequentially, and those of the
targets at random, but within a range that fits the processor's cache. The same slice serves both directions: importance
flows from source to target, usefulness from target to source. So one pass over the slices does an iteration of both,
in memory as well as from disk.

A link is one 32-bit word. Its low bits are the position of the target within the slice. Its high bits are the step from
the source id of the link before, since sources ascend. If the step does not fit into the high bits, *fillers* come
first: words with the largest step, whose target is the position after the last one of a full slice. At 20 million pages
× 10 links and 2^18 pages per slice, sources are eight apart and there are no fillers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from quadloom.planning.ranking.link_kernels import kernels

Ids = npt.NDArray[np.uint32]


def slice_width(pages: int) -> int:
    """Pages per slice. Narrow slices stay in cache, but each slice streams all source values again: 2^17 was best for 5
    million pages, 2^18 for 12 and 20 million. Twice as many gain a tenth on an idle machine and lose it on a busy one,
    where other processes use the outer cache."""
    return int(np.clip(pages // 64, 1 << 17, 1 << 18))


class LinkSlice(NamedTuple):
    """Packed links to pages `low` … `high` − 1. Fillers have the position `width`, which is no page of the slice."""

    low: int
    high: int
    width: int
    words: Ids

    @property
    def bits(self) -> int:
        """How many low bits of a word hold the position of the target."""
        return _bits(self.width)

    def chunks(self, words_at_once: int) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """The links unpacked, as (sources, positions of targets), without fillers."""
        mask, last = np.uint32((1 << self.bits) - 1), 0
        for first in range(0, len(self.words), words_at_once):
            words = self.words[first : first + words_at_once]
            sources = np.cumsum(words >> np.uint32(self.bits), dtype=np.int64)
            sources += last
            last = int(sources[-1])
            places = (words & mask).astype(np.int64)
            real = places < self.high - self.low
            yield (sources, places) if real.all() else (sources[real], places[real])


class LinkSlices(Protocol):
    """All slices of a matrix, ordered by target. Every iteration gives the same links."""

    pages: int
    links: int
    outdegree: npt.NDArray[np.int32]

    def __iter__(self) -> Iterator[LinkSlice]: ...


class MemorySlices:
    """Slices in memory: four bytes per link."""

    def __init__(self, indptr: npt.NDArray[np.integer], indices: npt.NDArray[np.integer], width: int) -> None:
        self.pages = len(indptr) - 1
        self.links = len(indices)
        self.width = width
        self.outdegree = np.diff(indptr).astype(np.int32)
        last = np.zeros(-(-self.pages // width), dtype=np.int64)
        self.offsets, self.words = _pack(indptr, indices, 0, width, last)

    def __iter__(self) -> Iterator[LinkSlice]:
        for number in range(len(self.offsets) - 1):
            low = number * self.width
            words = self.words[self.offsets[number] : self.offsets[number + 1]]
            yield LinkSlice(low, min(low + self.width, self.pages), self.width, words)


class FileSlices:
    """Slices on disk. One is mapped at a time, so a process with less memory than the matrix can use them."""

    def __init__(self, directory: Path, pages: int, width: int, outdegree: npt.NDArray[np.int32]) -> None:
        self.directory = directory
        self.pages = pages
        self.width = width
        self.outdegree = outdegree
        self.links = int(outdegree.sum(dtype=np.int64))

    def __iter__(self) -> Iterator[LinkSlice]:
        return map(self.slice, range(-(-self.pages // self.width)))

    def slice(self, number: int) -> LinkSlice:
        low = number * self.width
        words = _mapped(self.directory / f"{number:05d}.links")
        return LinkSlice(low, min(low + self.width, self.pages), self.width, words)


def write_slices(
    directory: Path,
    indptr: npt.NDArray[np.integer],
    indices: npt.NDArray[np.integer],
    width: int,
    *,
    links_at_once: int = 4_000_000,
) -> FileSlices:
    """Cut a CSR matrix, which may be memory-mapped, into slice files, reading `links_at_once` links at a time."""
    directory.mkdir(parents=True, exist_ok=True)
    pages = len(indptr) - 1
    numbers = range(-(-pages // width))
    # Every chunk opens the files again: a large matrix may have more slices than the process may have open files.
    for number in numbers:
        (directory / f"{number:05d}.links").write_bytes(b"")
    last = np.zeros(len(numbers), dtype=np.int64)
    for first, end in row_chunks(indptr, links_at_once):
        local = indptr[first : end + 1] - indptr[first]
        offsets, words = _pack(local, indices[indptr[first] : indptr[end]], first, width, last)
        for number in numbers:
            with (directory / f"{number:05d}.links").open("ab") as file:
                file.write(words[offsets[number] : offsets[number + 1]].tobytes())
    return FileSlices(directory, pages, width, np.diff(indptr).astype(np.int32))


def row_chunks(indptr: npt.NDArray[np.integer], links_at_once: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows with about `links_at_once` links each, and at least one row."""
    rows = len(indptr) - 1
    first = 0
    while first < rows:
        last = int(np.searchsorted(indptr, indptr[first] + links_at_once, side="right")) - 1
        last = min(max(last, first + 1), rows)
        yield first, last
        first = last


def _bits(width: int) -> int:
    return int(width).bit_length()  # room for `width` itself, the position of fillers


def _pack(
    indptr: npt.NDArray[np.integer],
    indices: npt.NDArray[np.integer],
    first_row: int,
    width: int,
    last: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], Ids]:
    """Counting sort of links by the slice of their target, as (offsets, words); within a slice, sources ascend.

    `last` holds the last source of every slice and is updated, so that rows can be packed in portions.
    """
    bits = _bits(width)
    fast = kernels() if len(indices) > 100_000 else None
    if fast is not None:
        return fast.pack(np.asarray(indptr, dtype=np.int64), indices, first_row, width, bits, last)
    of_slice = indices // width
    # numpy sorts 16-bit numbers by radix, in linear time.
    order = np.argsort(of_slice.astype(np.uint16 if len(last) < 65536 else np.int64), kind="stable")
    number = of_slice[order].astype(np.int64)
    sources = np.repeat(np.arange(first_row, first_row + len(indptr) - 1), np.diff(indptr))[order]
    places = indices[order] - number * width
    counts = np.bincount(number, minlength=len(last))
    begins = (np.cumsum(counts) - counts)[counts > 0]
    steps = np.diff(sources, prepend=0)
    steps[begins] = sources[begins] - last[counts > 0]
    last[counts > 0] = sources[begins + counts[counts > 0] - 1]
    most = (1 << (32 - bits)) - 1
    fillers = np.maximum(steps - 1, 0) // most
    ends = np.cumsum(fillers + 1)
    words = np.full(int(ends[-1]) if len(ends) else 0, most << bits | width, dtype=np.uint32)
    words[ends - 1] = ((steps - fillers * most) << bits | places).astype(np.uint32)
    lengths = np.bincount(number, weights=fillers + 1.0, minlength=len(last)).astype(np.int64)
    return np.concatenate([[0], np.cumsum(lengths)]), words


def _mapped(path: Path) -> Ids:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=np.uint32)
    return np.asarray(np.memmap(path, dtype=np.uint32, mode="r"))  # compiled loops accept plain arrays only
