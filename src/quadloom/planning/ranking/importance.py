"""Importance of pages: the fixpoint of "a page passes its importance on to the pages it links to".

Orientation: row i of the matrix holds the out-links of page i. A stored value is the weight of a link (1 in an ordinary
link matrix). Parallel links that were summed count as often as they occur; 0 is no link.

With c = damping, E = personalisation (uniform unless given, scaled to sum 1) and M_ij = 1/outdeg(j) for j → i:

* ``dangling="personalize"`` is PageRank as usually defined: pages without out-links pass their importance to E.
  Its solution is proportional to that of the linear system (1 − cM) x = (1 − c)E, which is what is solved.
* ``dangling="normalize"`` is equations (10)–(12) of the Xyleme paper: it compensates for what dangling pages lose by
  scaling everything with r = 1/(1 − c·d), where d is the importance of dangling pages. That equals damping r·c > c.
  URLs that were not read yet are dangling, so in a crawl d is large, and above (1 − c)/c = .18 the damping r·c would
  exceed 1. Pages that link only to each other then gather importance until d is down to .18: a site of 20 such pages
  among 20,000, of which 14,000 are unread, has 75 % of all importance (0.6 % with "personalize"), and just above that
  limit it takes hundreds of sweeps. So this is not the default.

The result sums to 1. Slices of targets are finished one after another, and later slices already use the new values
(block Gauss–Seidel, section 5.4), which saves iterations. The stopping rule uses L1, because L2 shrinks with the number
of pages: if q is the contraction of a sweep, the last change times q/(1 − q) estimates the distance to the fixpoint,
and the iteration stops when that is at most `tol`. q is c, a bound, except for "normalize" with dangling pages. There
the true rate depends on where these pages are (it may exceed c, since r·c does), so q is the slowest rate of the last
sweeps, plus half of its distance to 1 for slower modes that do not show yet. A warm start (`start`) from the last
vector saves iterations: the less importance has changed since, the more.

Over slices, the values that pages pass on are in single precision at first, which halves the memory traffic of a sweep.
Their rounding (2^−24 of every value, so of the sum) counts as part of the change. If only rounding is left and `tol`
asks for more, the last sweeps are in double precision.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt
import scipy  # its parts load on first use: half a second that most commands need not wait

from quadloom.errors import InputError
from quadloom.planning.ranking.link_kernels import Values
from quadloom.planning.ranking.link_slices import LinkSlices
from quadloom.planning.ranking.sweeps import Kind, Sweeps, sweeps_of

Dangling = Literal["normalize", "personalize"]
Engine = Literal["auto", "numba", "scipy"]
Vector = npt.NDArray[np.float64]
Personalization = npt.ArrayLike | Mapping[int, float] | None

_SINGLE_ROUNDING = 2.0**-24
_SWEEPS = 10_000  # damping 0.99 needs 2,100 to 1e-9, 0.999 some 21,000: beyond that `Fixpoint.error` reports it


class Fixpoint(msgspec.Struct, frozen=True):
    """`error`: estimated L1 distance to the true vector; above the tolerance only if `max_iterations` was reached."""

    vector: Vector
    iterations: int
    error: float


def importance(
    csr: scipy.sparse.csr_matrix | scipy.sparse.csr_array | LinkSlices,
    *,
    damping: float = 0.85,
    personalization: Personalization = None,
    dangling: Dangling = "personalize",
    tol: float = 1e-9,
    start: npt.ArrayLike | None = None,
    engine: Engine = "auto",
    max_iterations: int = _SWEEPS,
) -> Vector:
    """Importance of every page; sums to 1. Row i of `csr` holds the out-links of page i.

    `personalization`: a weight per page, as a vector or as {page: weight} with 0 for the rest; any scale.
    """
    found = fixpoint(
        sweeps_of(csr, engine=engine),
        damping=damping,
        personalization=personalization,
        dangling=dangling,
        tol=tol,
        start=start,
        max_iterations=max_iterations,
    )
    return found.vector


def fixpoint(
    sweeps: Sweeps,
    *,
    damping: float = 0.85,
    personalization: Personalization = None,
    dangling: Dangling = "personalize",
    tol: float = 1e-9,
    start: npt.ArrayLike | None = None,
    max_iterations: int = _SWEEPS,
) -> Fixpoint:
    """Sweep until the estimated error is at most `tol`. Over slices, in memory or on disk, it needs 16 to 20 bytes per
    page and, for each thread, the memory of one slice; without numba, the whole matrix."""
    if not tol >= 0.0:
        raise InputError(f"tol must be 0 or positive, not {tol}", hint="1e-9 is the default")
    iteration = ImportanceIteration(sweeps, damping, personalization, dangling, start)
    if not sweeps.pages:
        return Fixpoint(np.empty(0), 0, 0.0)
    count = 0
    with ThreadPoolExecutor(sweeps.threads) as pool:
        while iteration.error > tol and count < max_iterations:
            count += 1
            sweep(iteration, pool)
    vector = iteration.current
    vector /= vector.sum()  # in place: with a matrix on disk, vectors take most of the memory
    return Fixpoint(vector, count, iteration.error)


def sweep(iteration: ImportanceIteration, pool: ThreadPoolExecutor) -> None:
    """One pass over all links. The blocks of one group see the same values, whichever thread is faster, so the result
    is deterministic."""
    blocks = iteration.sweeps.blocks()
    while group := list(islice(blocks, iteration.sweeps.threads)):
        others = [pool.submit(block.forward, iteration.values) for block in group[1:]]
        gathered = [group[0].forward(iteration.values), *(other.result() for other in others)]
        for block, sums in zip(group, gathered, strict=True):
            iteration.settle(block.low, block.high, sums)
    iteration.end()


class ImportanceIteration:
    """State of one fixpoint between sweeps. `usefulness.rank` runs it together with its own iteration."""

    def __init__(
        self,
        sweeps: Sweeps,
        damping: float,
        personalization: Personalization,
        dangling: Dangling,
        start: npt.ArrayLike | None,
    ) -> None:
        if not 0.0 <= damping < 1.0:
            raise InputError(f"damping must lie between 0 and 1, not {damping}", hint="0.85 is usual")
        if dangling not in ("normalize", "personalize"):
            raise InputError(f"dangling must be 'normalize' or 'personalize', not {dangling!r}")
        self.damping = damping
        self.normalizing = dangling == "normalize"
        self.sweeps = sweeps
        self.jump = (1.0 - damping) * _personalization(personalization, sweeps.pages)
        self.current = _start(start, sweeps.pages)
        self.total = 1.0  # sum of `current`
        if not self.normalizing:
            # The solution of the linear system sums to (1 − c)/(1 − c(1 − d)), so a warm start must be scaled to it.
            lost = float(self.current[sweeps.dangling].sum())
            self.total = (1.0 - damping) / (1.0 - damping * (1.0 - lost))
            self.current *= self.total
        self.coarse = sweeps.coarse is np.float32
        self.values = self._values(sweeps.coarse)
        self.error = float("inf")
        self._change = self._new_total = 0.0
        self._changes: deque[float] = deque(maxlen=4)
        self._scale = self._loss_factor()

    def settle(self, low: int, high: int, gathered: Vector) -> None:
        """Store the new values of pages `low` … `high` − 1; the following blocks use them."""
        jump = self.jump if len(self.jump) == 1 else self.jump[low:high]
        part = slice(low, high)
        # The paper normalises the vector after every step. Scaling the jump by the sum of the vector is the same,
        # without another pass.
        link_part = self._scale * self.damping
        jump_part = self._scale * self.total if self.normalizing else 1.0
        change, total = self.sweeps.finish(
            gathered, self.current[part], self.values[part], self.sweeps.degrees[part], jump, link_part, jump_part
        )
        self._change += change
        self._new_total += total

    def end(self) -> float:
        """End a sweep; return the estimated L1 distance to the fixpoint."""
        self.total, self._new_total = self._new_total, 0.0
        change, self._change = self._change / self.total, 0.0
        self._changes.append(change)
        self._scale = self._loss_factor()
        contraction = self._contraction()
        rounding = _SINGLE_ROUNDING if self.coarse else 0.0
        self.error = (change + rounding) * contraction / (1.0 - contraction)
        if change <= rounding:
            self.refine()
        return self.error

    def refine(self) -> None:
        """Switch `values` to double precision."""
        if self.coarse:
            self.coarse = False
            self.values = np.empty(0)  # frees the single-precision values first
            self.values = self._values(np.float64)

    def result(self) -> Vector:
        return np.asarray(self.current / self.total)

    def _values(self, kind: Kind) -> Values:
        """What each page passes on to each of its links."""
        degrees = self.sweeps.degrees
        values: Values = np.zeros(self.sweeps.pages, dtype=kind)
        return np.divide(self.current, degrees, out=values, where=degrees > 0, casting="same_kind")

    def _loss_factor(self) -> float:
        """r of equation (11); 1 for "personalize", whose linear system needs no scaling."""
        if not self.normalizing:
            return 1.0
        lost = float(self.current[self.sweeps.dangling].sum()) / self.total
        return 1.0 / (1.0 - self.damping * min(lost, 1.0))

    def _contraction(self) -> float:
        if not self.normalizing or not len(self.sweeps.dangling):
            return self.damping
        seen = [new / old for old, new in pairwise(self._changes) if old > 0.0]
        # Without hidden modes the rate is c(1 − d)/(1 − cd), the share of importance that links pass on: 1 − r(1 − c).
        slowest = max(1.0 - self._scale * (1.0 - self.damping), *seen, 0.0)
        return min((1.0 + slowest) / 2.0, 0.999)


def _personalization(given: Personalization, pages: int) -> Vector:
    """E as a vector of sum 1. A uniform E has one element only, which saves a vector."""
    if given is None:
        return np.full(1, 1.0 / max(pages, 1))
    if isinstance(given, Mapping):
        vector = np.zeros(pages)
        for page, weight in given.items():
            if not 0 <= page < pages:
                raise InputError(f"personalization names page {page}, the web has pages 0 to {pages - 1}")
            vector[page] = weight
    else:
        vector = np.asarray(given, dtype=np.float64)
    if vector.shape != (pages,):
        raise InputError(f"personalization has shape {vector.shape}, the web has {pages} pages")
    return _distribution(vector, "personalization")


def _start(given: npt.ArrayLike | None, pages: int) -> Vector:
    """The starting vector, of sum 1. A shorter `given` is from a smaller web; new pages start at its mean."""
    if given is None:
        return np.full(pages, 1.0 / max(pages, 1))
    vector = np.asarray(given, dtype=np.float64)[:pages]
    if len(vector) < pages:
        vector = np.concatenate([vector, np.full(pages - len(vector), vector.mean() if len(vector) else 1.0)])
    return _distribution(vector, "start")


def _distribution(vector: Vector, name: str) -> Vector:
    """Scaled to sum 1, first by the largest element: the sum of very large elements would not be finite."""
    largest = float(vector.max()) if len(vector) else 1.0
    if not (0.0 < largest < np.inf and (vector >= 0.0).all()):
        raise InputError(f"{name} must be finite, not negative and not all zero")
    scaled = vector / largest
    return np.asarray(scaled / scaled.sum())
