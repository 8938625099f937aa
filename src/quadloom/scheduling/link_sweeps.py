"""One pass over the link matrix, whatever it rests in: compiled slices, slices by numpy, or scipy's sparse product.

A sweep hands out blocks of target pages in order. `forward` sums over a block's in-links, `both` at the same
time adds up over out-links what the block's pages are worth to those who link there, so that importance and usefulness
share one scan (section 5.4, "combined computation"). Compiled slices are the fastest from a few hundred thousand
links on; below that scipy's product wins because nothing has to be cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from quadloom.errors import UsageError
from quadloom.stores.link_kernels import Kernels, kernels
from quadloom.stores.link_slices import LinkSlice, LinkSlices, MemorySlices, slice_width

Vector = npt.NDArray[np.float64]
Csr = sparse.csr_matrix | sparse.csr_array

_WORTH_CUTTING = 500_000  # links; fewer take longer to cut into slices than to multiply
_CHUNK = 1 << 20  # links gathered at once by numpy: bounds its temporary arrays to 16 MiB


class Block(Protocol):
    low: int
    high: int

    def forward(self, values: Vector) -> Vector:
        """Σ values[source] over the in-links of each page of the block."""
        ...

    def both(self, values: Vector, worth: Vector, backwards: Vector) -> Vector:
        """`forward`, and backwards[source] += worth[target] over the same links."""
        ...


class Sweeps(Protocol):
    """`share`: 1/outdegree, 0 for dangling pages. `indegree` is counted on demand."""

    pages: int
    share: Vector
    dangling: npt.NDArray[np.intp]
    threads: int

    def blocks(self) -> Iterator[Block]:
        """All blocks in order. Up to `threads` successive ones may be worked on at once; one more, and the first of
        them must be finished, because its buffer is used again."""
        ...

    def finish(
        self,
        gathered: Vector,
        current: Vector,
        values: Vector,
        share: Vector,
        jump: Vector,
        link_part: float,
        jump_part: float,
    ) -> tuple[float, float]:
        """current = link_part·gathered + jump_part·jump; values = current·share. Returns the L1 change and the new sum.
        `gathered` is used up."""
        ...

    def indegree(self) -> Vector: ...


def sweeps_of(links: Csr | LinkSlices, *, engine: Literal["auto", "numba", "scipy"] = "auto") -> Sweeps:
    """The fastest way over `links` that is installed."""
    if not isinstance(links, sparse.csr_matrix | sparse.csr_array):
        if sparse.issparse(links):
            raise UsageError("the link matrix must be in CSR form", hint="call .tocsr() on it")
        return SliceSweeps(links)
    if links.shape[0] != links.shape[1]:
        raise UsageError(f"the link matrix must be square, not {links.shape}")
    if engine == "numba" and kernels() is None:
        raise UsageError("numba is not installed", hint="pip install 'quadloom[fast]', or engine='scipy'")
    plain = bool((links.data == 1).all()) if len(links.data) else True
    if plain and engine != "scipy" and kernels() is not None and (engine == "numba" or links.nnz >= _WORTH_CUTTING):
        return SliceSweeps(MemorySlices(links.indptr, links.indices, slice_width(links.shape[0])))
    return ScipySweeps(links)


class SliceSweeps:
    """Over `LinkSlices`, compiled where numba is installed, by `bincount` otherwise."""

    def __init__(self, slices: LinkSlices) -> None:
        self.slices = slices
        self.pages = slices.pages
        self.share = slices.outdegree.astype(np.float64)
        np.divide(1.0, self.share, out=self.share, where=self.share > 0.0)  # in place: vectors are what memory goes to
        self.dangling = np.flatnonzero(slices.outdegree == 0)
        self.threads = min(len(os.sched_getaffinity(0)), 4) if kernels() is not None else 1
        self._buffers = [np.zeros(0) for _ in range(self.threads)]

    def blocks(self) -> Iterator[Block]:
        fast = kernels()
        for number, part in enumerate(self.slices):
            if fast is None:
                yield _NumpyBlock(part)
                continue
            # Buffers serve again and again: fresh memory from the system would cost a tenth of the whole sweep.
            turn = number % self.threads
            if len(self._buffers[turn]) < part.high - part.low:
                self._buffers[turn] = np.zeros(part.high - part.low)
            yield _CompiledBlock(part, fast, self._buffers[turn][: part.high - part.low])

    def finish(
        self,
        gathered: Vector,
        current: Vector,
        values: Vector,
        share: Vector,
        jump: Vector,
        link_part: float,
        jump_part: float,
    ) -> tuple[float, float]:
        fast = kernels()
        if fast is None:
            return _finish(gathered, current, values, share, jump, link_part, jump_part)
        return fast.finish(gathered, current, values, share, jump, link_part, jump_part)

    def indegree(self) -> Vector:
        counts = [np.bincount(part.targets, minlength=part.high - part.low) for part in self.slices]
        return np.concatenate(counts).astype(np.float64) if counts else np.empty(0)


class _CompiledBlock:
    def __init__(self, part: LinkSlice, fast: Kernels, gathered: Vector) -> None:
        self.low, self.high, self._sources, self._targets = part
        self._fast = fast
        self._gathered = gathered

    def forward(self, values: Vector) -> Vector:
        self._gathered[:] = 0.0
        self._fast.forward(self._sources, self._targets, values, self._gathered)
        return self._gathered

    def both(self, values: Vector, worth: Vector, backwards: Vector) -> Vector:
        self._gathered[:] = 0.0
        useful = worth[self.low : self.high]
        self._fast.both(self._sources, self._targets, values, self._gathered, useful, backwards)
        return self._gathered


class _NumpyBlock:
    def __init__(self, part: LinkSlice) -> None:
        self.low, self.high, self._sources, self._targets = part

    def forward(self, values: Vector) -> Vector:
        gathered = np.zeros(self.high - self.low)
        for first in range(0, len(self._sources), _CHUNK):
            sources, targets = self._sources[first : first + _CHUNK], self._targets[first : first + _CHUNK]
            gathered += np.bincount(targets, weights=values[sources], minlength=len(gathered))
        return gathered

    def both(self, values: Vector, worth: Vector, backwards: Vector) -> Vector:
        for first in range(0, len(self._sources), _CHUNK):
            sources, targets = self._sources[first : first + _CHUNK], self._targets[first : first + _CHUNK]
            if len(sources):  # sources ascend within a slice, so each chunk touches one range of them
                low, high = int(sources[0]), int(sources[-1]) + 1
                backwards[low:high] += np.bincount(
                    sources - np.uint32(low), weights=worth[self.low : self.high][targets], minlength=high - low
                )
        return self.forward(values)


class ScipySweeps:
    """Over scipy's sparse product, in blocks of rows of the transposed matrix. Takes weighted links too."""

    def __init__(self, csr: Csr) -> None:
        self.pages = int(csr.shape[0])
        self.threads = 1
        matrix = csr if csr.dtype == np.float64 else csr.astype(np.float64)
        if len(matrix.data) and not (np.isfinite(matrix.data).all() and matrix.data.min() >= 0.0):
            raise UsageError("link weights must be finite and not negative")
        self._outgoing = matrix
        self._incoming = matrix.T.tocsr()
        outdegree = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
        with np.errstate(divide="ignore"):
            self.share = np.where(outdegree > 0.0, 1.0 / outdegree, 0.0)
        self.dangling = np.flatnonzero(outdegree == 0.0)
        step = max(-(-self.pages // 16), 1024)
        self._blocks = [
            _ScipyBlock(low, min(low + step, self.pages), self._incoming, self._outgoing)
            for low in range(0, self.pages, step)
        ]

    def blocks(self) -> Iterator[Block]:
        return iter(self._blocks)

    def finish(
        self,
        gathered: Vector,
        current: Vector,
        values: Vector,
        share: Vector,
        jump: Vector,
        link_part: float,
        jump_part: float,
    ) -> tuple[float, float]:
        return _finish(gathered, current, values, share, jump, link_part, jump_part)

    def indegree(self) -> Vector:
        return np.asarray(self._outgoing.sum(axis=0), dtype=np.float64).ravel()


class _ScipyBlock:
    def __init__(self, low: int, high: int, incoming: Csr, outgoing: Csr) -> None:
        self.low, self.high = low, high
        first, last = incoming.indptr[low], incoming.indptr[high]
        parts = (incoming.data[first:last], incoming.indices[first:last], incoming.indptr[low : high + 1] - first)
        self._links = sparse.csr_array(parts, shape=(high - low, incoming.shape[1]))
        self._outgoing = outgoing

    def forward(self, values: Vector) -> Vector:
        return np.asarray(self._links @ values)

    def both(self, values: Vector, worth: Vector, backwards: Vector) -> Vector:
        backwards += self._links.T @ worth[self.low : self.high]
        return self.forward(values)


def _finish(
    gathered: Vector, current: Vector, values: Vector, share: Vector, jump: Vector, link_part: float, jump_part: float
) -> tuple[float, float]:
    gathered *= link_part
    gathered += jump_part * jump
    change = float(np.abs(gathered - current).sum())
    current[:] = gathered
    np.multiply(gathered, share, out=values)
    return change, float(gathered.sum())
