"""Importance of pages: the fixpoint of "a page passes its importance on to the pages it links to".

Orientation: row i of the matrix holds the out-links of page i. A stored value is the weight of a link (1 in an ordinary
link matrix); parallel links that were summed count as often as they occur, and 0 is no link.

With c = damping, E = personalisation (uniform unless given, scaled to sum 1) and M_ij = 1/outdeg(j) for j → i:

* ``dangling="personalize"`` is PageRank as usually defined: pages without out-links pass their importance to E.
  Its solution is proportional to that of the linear system (1 − cM) x = (1 − c)E, which is what is solved.
* ``dangling="normalize"`` is equations (10)–(12) of the Xyleme paper: what dangling pages lose is made up for by
  scaling everything with r = 1/(1 − c·d), d being the importance of dangling pages. That equals damping r·c > c,
  so rankings differ slightly from PageRank's.

The result sums to 1. Slices of targets are finished one after another and later ones use the new values already
(block Gauss–Seidel, section 5.4), which saves iterations. The end is decided in L1, because L2 shrinks with the number
of pages: the last change times c/(1 − c) bounds the distance to the fixpoint, and that bound is held below `tol`.
A warm start (`start`) from the last vector saves iterations the more, the less importance has moved since.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import sparse

from quadloom.errors import UsageError
from quadloom.scheduling.link_sweeps import Sweeps, sweeps_of
from quadloom.stores.link_slices import LinkSlices

Dangling = Literal["normalize", "personalize"]
Engine = Literal["auto", "numba", "scipy"]
Vector = npt.NDArray[np.float64]


class Fixpoint(msgspec.Struct, frozen=True):
    """`error`: bound of the L1 distance to the true vector; above the tolerance only if iterations ran out."""

    vector: Vector
    iterations: int
    error: float


def importance(
    csr: sparse.csr_matrix | sparse.csr_array,
    *,
    damping: float = 0.85,
    personalization: npt.ArrayLike | None = None,
    dangling: Dangling = "normalize",
    tol: float = 1e-9,
    start: npt.ArrayLike | None = None,
    engine: Engine = "auto",
    max_iterations: int = 1000,
) -> Vector:
    """Importance of every page; sums to 1. Row i of `csr` holds the out-links of page i."""
    return fixpoint(
        sweeps_of(csr, engine=engine), damping=damping, personalization=personalization, dangling=dangling, tol=tol,
        start=start, max_iterations=max_iterations,
    ).vector  # fmt: skip


def importance_of_slices(
    slices: LinkSlices,
    *,
    damping: float = 0.85,
    personalization: npt.ArrayLike | None = None,
    dangling: Dangling = "normalize",
    tol: float = 1e-9,
    start: npt.ArrayLike | None = None,
    max_iterations: int = 1000,
) -> Fixpoint:
    """The same over slices, in memory or on disk; needs three vectors and one slice of memory."""
    return fixpoint(
        sweeps_of(slices), damping=damping, personalization=personalization, dangling=dangling, tol=tol, start=start,
        max_iterations=max_iterations,
    )  # fmt: skip


def fixpoint(
    sweeps: Sweeps,
    *,
    damping: float = 0.85,
    personalization: npt.ArrayLike | None = None,
    dangling: Dangling = "normalize",
    tol: float = 1e-9,
    start: npt.ArrayLike | None = None,
    max_iterations: int = 1000,
) -> Fixpoint:
    iteration = ImportanceIteration(sweeps, damping, personalization, dangling, start)
    if not sweeps.pages:
        return Fixpoint(np.empty(0), 0, 0.0)
    count = 0
    with ThreadPoolExecutor(sweeps.threads) as pool:
        while iteration.error > tol and count < max_iterations:
            count += 1
            blocks = sweeps.blocks()
            # Blocks of one group see the same values, whichever thread is faster: the result does not depend on luck.
            while group := list(islice(blocks, sweeps.threads)):
                others = [pool.submit(block.forward, iteration.values) for block in group[1:]]
                gathered = [group[0].forward(iteration.values), *(other.result() for other in others)]
                for block, sums in zip(group, gathered, strict=True):
                    iteration.settle(block.low, block.high, sums)
            iteration.end()
    vector = iteration.current
    vector /= vector.sum()  # in place: with a matrix on disk, vectors are what memory goes to
    return Fixpoint(vector, count, iteration.error)


class ImportanceIteration:
    """State of one fixpoint between sweeps; `usefulness` runs it side by side with its own."""

    def __init__(
        self,
        sweeps: Sweeps,
        damping: float,
        personalization: npt.ArrayLike | None,
        dangling: Dangling,
        start: npt.ArrayLike | None,
    ) -> None:
        if not 0.0 < damping < 1.0:
            raise UsageError(f"damping must lie between 0 and 1, not {damping}", hint="0.85 is usual")
        if dangling not in ("normalize", "personalize"):
            raise UsageError(f"dangling must be 'normalize' or 'personalize', not {dangling!r}")
        self.damping = damping
        self.normalizing = dangling == "normalize"
        self.sweeps = sweeps
        self.jump = (1.0 - damping) * _personalization(personalization, sweeps.pages)
        self.current = _start(start, sweeps.pages)
        self.values = self.current * sweeps.share
        self.error = float("inf")
        self.total = 1.0  # sum of `current`
        self._change = self._new_total = 0.0
        self._scale = self._loss_factor()

    def settle(self, low: int, high: int, gathered: Vector) -> None:
        """Take over what links brought to pages `low` … `high` − 1, for all blocks that follow."""
        jump = self.jump if len(self.jump) == 1 else self.jump[low:high]
        part = slice(low, high)
        # The paper normalises the vector after every step; scaling the jump by the vector's sum is the same
        # without another pass over it.
        link_part = self._scale * self.damping
        jump_part = self._scale * self.total if self.normalizing else 1.0
        change, total = self.sweeps.finish(
            gathered, self.current[part], self.values[part], self.sweeps.share[part], jump, link_part, jump_part
        )
        self._change += change
        self._new_total += total

    def end(self) -> float:
        """End a sweep; returns the bound of the L1 distance to the fixpoint."""
        self.total, self._new_total = self._new_total, 0.0
        change, self._change = self._change / self.total, 0.0
        self._scale = self._loss_factor()
        contraction = min(self.damping * self._scale, 0.999)
        self.error = change * contraction / (1.0 - contraction)
        return self.error

    def result(self) -> Vector:
        return np.asarray(self.current / self.total)

    def _loss_factor(self) -> float:
        """r of equation (11); the linear system of "personalize" needs none."""
        if not self.normalizing:
            return 1.0
        lost = float(self.current[self.sweeps.dangling].sum()) / self.total
        return 1.0 / (1.0 - self.damping * min(lost, 1.0))


def _personalization(given: npt.ArrayLike | None, pages: int) -> Vector:
    """E as a vector of sum 1; one element stands for the uniform one, which saves a vector."""
    if given is None:
        return np.full(1, 1.0 / max(pages, 1))
    vector = np.asarray(given, dtype=np.float64)
    if vector.shape != (pages,):
        raise UsageError(f"personalization has shape {vector.shape}, the web has {pages} pages")
    total = vector.sum()
    if not (np.isfinite(total) and total > 0.0 and (vector >= 0.0).all()):
        raise UsageError("personalization must be finite, not negative and not all zero")
    return np.asarray(vector / total)


def _start(given: npt.ArrayLike | None, pages: int) -> Vector:
    """The starting vector, of sum 1. A shorter one is from a smaller web: new pages start at its mean."""
    if given is None:
        return np.full(pages, 1.0 / max(pages, 1))
    vector = np.asarray(given, dtype=np.float64)[:pages]
    if len(vector) < pages:
        vector = np.concatenate([vector, np.full(pages - len(vector), vector.mean() if len(vector) else 1.0)])
    total = vector.sum()
    if not (np.isfinite(total) and total > 0.0 and (vector >= 0.0).all()):
        raise UsageError("start must be finite, not negative and not all zero")
    return np.asarray(vector / total)
