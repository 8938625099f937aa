"""One pass over the link matrix: compiled loops over slices, or scipy's sparse product.

A sweep consists of blocks of target pages, in order. `forward` sums over the in-links of a block. `both` also adds the
worth of the block's pages to the pages that link to them, so that importance and usefulness share one scan (section
5.4, "combined computation"). Compiled slices are the fastest from a few hundred thousand links on, but a crawl ranks
once an hour, so numba is imported for some millions. Without numba, and for weighted links, scipy does everything.

What a page passes on to each of its links (`values`) may be in single precision (`coarse`) while a fixpoint is far from
its end: slices stream these values many times, so their size is half of the cost. Sums are always double.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy  # its parts load on first use: half a second that most commands need not wait

from quadloom.errors import InputError, UsageError
from quadloom.planning.ranking.link_kernels import Degrees, Finish, Kernels, Values, kernels
from quadloom.planning.ranking.link_slices import LinkSlice, LinkSlices, MemorySlices, row_chunks, slice_width

Vector = npt.NDArray[np.float64]
Csr: TypeAlias = "scipy.sparse.csr_matrix | scipy.sparse.csr_array"
Kind = type[np.float32] | type[np.float64]

# Links. Fewer are not worth numba, whose import takes 100 MB and half a second; its gain is .05 s a million links.
_WORTH_CUTTING = 2_000_000
_CHUNK = 1 << 20  # links unpacked at once, which limits temporary arrays to 16 MiB


class Block(Protocol):
    low: int
    high: int

    def forward(self, values: Values) -> Vector:
        """Σ values[source] over the in-links of each page of the block."""
        ...

    def both(self, values: Values, worth: Vector, backwards: Vector) -> Vector:
        """`forward`, and backwards[source] += worth[target] over the same links."""
        ...


class Sweeps(Protocol):
    """`degrees`: out-degree of every page, or the sum of its link weights. `indegree` is counted on demand.
    `coarse`: the type of values while they may be coarse. `finish`: writes the sums of a block into the vector."""

    pages: int
    degrees: Degrees
    dangling: npt.NDArray[np.intp]
    threads: int
    coarse: Kind
    finish: Finish

    def blocks(self) -> Iterator[Block]:
        """All blocks in order. Up to `threads` successive blocks may be processed at once. Before the next one is
        taken, the first of them must be finished, because its buffer is reused."""
        ...

    def indegree(self) -> Vector: ...


def sweeps_of(links: Csr | LinkSlices, *, engine: Literal["auto", "numba", "scipy"] = "auto") -> Sweeps:
    """The fastest sweeps over `links` with what is installed."""
    if not isinstance(links, scipy.sparse.csr_matrix | scipy.sparse.csr_array):
        if scipy.sparse.issparse(links) or not hasattr(links, "outdegree"):
            raise InputError("the link matrix must be in CSR form", hint="scipy.sparse.csr_array(matrix) makes one")
        return SliceSweeps(links) if kernels() is not None else ScipySweeps(_csr_of(links))
    if links.shape[0] != links.shape[1]:
        raise InputError(f"the link matrix must be square, not {links.shape}")
    if engine == "numba" and kernels() is None:
        raise UsageError("numba is not installed", hint="pip install 'quadloom[fast]', or engine='scipy'")
    plain = bool((links.data == 1).all()) if len(links.data) else True
    worth_cutting = engine == "numba" or (engine == "auto" and links.nnz >= _WORTH_CUTTING)
    if plain and worth_cutting and kernels() is not None:  # last, since the first call imports numba
        return SliceSweeps(MemorySlices(links.indptr, links.indices, slice_width(links.shape[0])))
    return ScipySweeps(links)


class SliceSweeps:
    """Compiled loops over `LinkSlices`; needs numba."""

    def __init__(self, slices: LinkSlices) -> None:
        fast = kernels()
        if fast is None:
            raise UsageError("numba is not installed", hint="pip install 'quadloom[fast]', or engine='scipy'")
        self.slices = slices
        self.pages = slices.pages
        self.degrees: Degrees = slices.outdegree
        self.dangling = np.flatnonzero(slices.outdegree == 0)
        self.threads = min(len(os.sched_getaffinity(0)), 4)
        self.finish: Finish = fast.finish
        self.coarse: Kind = np.float32
        self._fast = fast
        self._buffers = [np.zeros(0) for _ in range(self.threads)]

    def blocks(self) -> Iterator[Block]:
        for number, part in enumerate(self.slices):
            # Buffers are reused: fresh memory from the system would cost a tenth of the whole sweep.
            turn = number % self.threads
            if len(self._buffers[turn]) <= part.width:
                self._buffers[turn] = np.zeros(part.width + 1)  # the last element is for fillers
            yield _CompiledBlock(part, self._fast, self._buffers[turn])

    def indegree(self) -> Vector:
        counts = np.zeros(self.pages)
        for part in self.slices:
            for _, targets in part.chunks(_CHUNK):
                counts[part.low : part.high] += np.bincount(targets, minlength=part.high - part.low)
        return counts


class _CompiledBlock:
    def __init__(self, part: LinkSlice, fast: Kernels, buffer: Vector) -> None:
        self.low, self.high = part.low, part.high
        self._words, self._bits = part.words, part.bits
        self._fast = fast
        self._buffer = buffer
        self._gathered = buffer[: part.high - part.low]

    def forward(self, values: Values) -> Vector:
        self._gathered[:] = 0.0
        self._fast.forward(self._words, self._bits, values, self._buffer)
        return self._gathered

    def both(self, values: Values, worth: Vector, backwards: Vector) -> Vector:
        self._gathered[:] = 0.0
        useful = worth[self.low : self.high]
        self._fast.both(self._words, self._bits, values, self._gathered, useful, backwards)
        return self._gathered


class ScipySweeps:
    """Sweeps by scipy's product, for weighted links too. The matrix is cut by target here as well, into blocks of plain
    coordinates ordered by source. They have no index of rows, which would be longer than the links of a narrow block.
    The product over such blocks takes half the time of a product over rows of the whole matrix, which reads values from
    all over memory."""

    def __init__(self, csr: Csr) -> None:
        self.pages = int(csr.shape[0])
        self.threads = 1
        self.finish: Finish = finish
        self.coarse: Kind = np.float64  # scipy would convert a single-precision vector for every product
        if len(csr.data) and not (np.isfinite(csr.data).all() and csr.data.min() >= 0):
            raise InputError("link weights must be finite and not negative")
        self._csr = csr
        self.degrees: Degrees = np.asarray(csr.sum(axis=1, dtype=np.float64), dtype=np.float64).ravel()
        self.dangling = np.flatnonzero(self.degrees == 0.0)
        self._blocks = [_ScipyBlock(low, links, self._outgoing) for low, links in _cut(csr)]

    def blocks(self) -> Iterator[Block]:
        return iter(self._blocks)

    def indegree(self) -> Vector:
        return np.asarray(self._csr.sum(axis=0, dtype=np.float64), dtype=np.float64).ravel()

    def _outgoing(self, worth: Vector) -> Vector:
        if self._csr.dtype != np.float64:
            self._csr = self._csr.astype(np.float64)  # once; scipy would do it for every product
        return np.asarray(self._csr @ worth)


class _ScipyBlock:
    def __init__(self, low: int, links: scipy.sparse.coo_array, outgoing: Callable[[Vector], Vector]) -> None:
        self.low, self.high = low, low + links.shape[0]
        self._links = links
        self._outgoing = outgoing

    def forward(self, values: Values) -> Vector:
        return np.asarray(self._links @ values).reshape(-1)  # scipy returns a scalar for one page times one page

    def both(self, values: Values, worth: Vector, backwards: Vector) -> Vector:
        if self.low == 0:  # `worth` does not change within a sweep: one product is enough for all blocks
            backwards += self._outgoing(worth)
        return self.forward(values)


def _cut(csr: Csr) -> Iterator[tuple[int, scipy.sparse.coo_array]]:
    """(first target, links from all pages) of every block; sources ascend."""
    pages, indptr, indices = int(csr.shape[0]), csr.indptr, csr.indices
    width = int(np.clip(-(-pages // 16), 1 << 10, 1 << 17))
    count = -(-pages // width)
    kind = np.uint16 if count < 65536 else np.int64  # numpy sorts 16-bit numbers by radix, in linear time
    lengths = np.zeros(count, dtype=np.int64)
    for first in range(0, len(indices), _CHUNK):
        lengths += np.bincount(indices[first : first + _CHUNK] // width, minlength=count)
    ends = np.cumsum(lengths)
    place = ends - lengths
    sources, targets = np.empty(len(indices), dtype=np.int32), np.empty(len(indices), dtype=np.int32)
    ones = np.ones(int(lengths.max(initial=0)))
    weights = None if (csr.data == 1).all() else np.empty(len(indices))
    for first, last in row_chunks(indptr, _CHUNK):
        part = slice(indptr[first], indptr[last])
        number = (indices[part] // width).astype(kind)
        order = np.argsort(number, kind="stable")
        counts = np.bincount(number, minlength=count)
        at = np.arange(len(order)) + np.repeat(place - (np.cumsum(counts) - counts), counts)
        sources[at] = np.repeat(np.arange(first, last, dtype=np.int32), np.diff(indptr[first : last + 1]))[order]
        targets[at] = indices[part][order] - number[order].astype(np.int64) * width
        if weights is not None:
            weights[at] = csr.data[part][order]
        place += counts
    for low, begin, end in zip(range(0, pages, width), ends - lengths, ends, strict=True):
        data = ones[: end - begin] if weights is None else weights[begin:end]
        shape = (min(width, pages - low), pages)
        yield low, scipy.sparse.coo_array((data, (targets[begin:end], sources[begin:end])), shape=shape)


def _csr_of(slices: LinkSlices) -> scipy.sparse.csr_array:
    """The whole matrix in memory, with sorted rows."""
    parts = [(sources, part.low + targets) for part in slices for sources, targets in part.chunks(_CHUNK)]
    if not parts:
        return scipy.sparse.csr_array((slices.pages, slices.pages))
    sources, targets = (np.concatenate(column) for column in zip(*parts, strict=True))
    return scipy.sparse.coo_array(
        (np.ones(len(sources)), (sources, targets)), shape=(slices.pages, slices.pages)
    ).tocsr()


def finish(
    gathered: Vector,
    current: Vector,
    values: Values,
    degrees: Degrees,
    jump: Vector,
    link_part: float,
    jump_part: float,
) -> tuple[float, float]:
    """The same as the compiled `finish`, by numpy."""
    gathered *= link_part
    gathered += jump_part * jump
    change = float(np.abs(gathered - current).sum())
    current[:] = gathered
    np.divide(gathered, degrees, out=values, where=degrees > 0)
    return change, float(gathered.sum())
