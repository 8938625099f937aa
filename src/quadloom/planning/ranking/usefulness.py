"""Usefulness: what a page is worth for the structured data it leads to, and the weights that scheduling uses.

A page of plain HTML matters because reading it again may lead to new data. Its usefulness J is the importance of the
structured pages it leads to, carried backwards over links: on the transposed graph, with E'_i = I_i for structured
pages and 0 for others,

* ``variant="mean"`` is the paper's: J_i = c · mean of J over out(i) + (1 − c) E'_i. The text of the paper asks for
  pages that lead to *many* structured pages, but a mean does not count them: a hub with 50 data links among 100 gets
  half of what a page with a single data link gets.
* ``variant="many"`` is the reversed walk: each page passes its J back in equal parts to the pages that link to it, so
  J_i = c · Σ J_j / indeg(j) over out(i) + (1 − c) E'_i, which grows with the number of paths to data.

Both contract by c, so the fixpoint exists and is unique. χ is the mean weight of a structured page if that of an
ordinary page is 1; both kinds compete for the same bandwidth.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from quadloom.planning.ranking.importance import Dangling, ImportanceIteration, Personalization
from quadloom.planning.ranking.link_slices import LinkSlices
from quadloom.planning.ranking.sweeps import Csr, Sweeps, sweeps_of

Variant = Literal["mean", "many"]
Vector = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
# Share of usefulness in the weight of an ordinary page. The paper stored nothing of an HTML page but its links; here
# its words and statements are stored, so a page that leads to no data still has a little worth by its own importance.
_USEFUL = 0.95


class RankVectors(msgspec.Struct, frozen=True):
    """Both fixpoints of one matrix. `error`: the larger of their estimated L1 errors."""

    importance: Vector
    usefulness: Vector
    iterations: int
    error: float


class RankingRules(msgspec.Struct, frozen=True, kw_only=True):
    """What both fixpoints are by. `tol`: the largest estimated L1 error of either."""

    variant: Variant = "mean"
    damping: float = 0.85
    personalization: Personalization = None
    dangling: Dangling = "personalize"
    tol: float = 1e-9


_DEFAULTS = RankingRules()
_SWEEPS = 10_000


def usefulness(
    csr: Csr,
    importance: Vector,
    structured: Mask,
    *,
    variant: Variant = "mean",
    damping: float = 0.85,
    tol: float = 1e-9,
) -> Vector:
    """J for a given importance. Row i of `csr` holds the out-links of page i, as for importance."""
    sweeps = sweeps_of(csr)
    iteration = UsefulnessIteration(sweeps, structured, variant, damping)
    for _ in range(_SWEEPS):
        for block in sweeps.blocks():
            block.both(iteration.worth, iteration.worth, iteration.backwards)
        if iteration.end(importance) <= tol:
            break
    return iteration.current


def rank(
    links: Csr | LinkSlices,
    structured: Mask,
    rules: RankingRules = _DEFAULTS,
    start: RankVectors | None = None,
) -> RankVectors:
    """Importance and usefulness together: one scan of the matrix is an iteration of both.

    `start`: the result of the last run, perhaps of a smaller web. After every scan, usefulness uses the improved
    importance.
    """
    sweeps = sweeps_of(links)
    known = None if start is None else start.importance
    forward = ImportanceIteration(sweeps, rules.damping, rules.personalization, rules.dangling, known)
    useful = None if start is None else _padded(start.usefulness, sweeps.pages)
    backward = UsefulnessIteration(sweeps, structured, rules.variant, rules.damping, useful)
    count, error = 0, float("inf")
    while error > rules.tol and count < _SWEEPS:
        count += 1
        for block in sweeps.blocks():
            gathered = block.both(forward.values, backward.worth, backward.backwards)
            forward.settle(block.low, block.high, gathered)
        error = max(forward.end(), backward.end(forward.current, forward.total))
    return RankVectors(forward.result(), backward.current, count, error)


def weights(
    importance: Vector, usefulness: Vector, structured: Mask, data_weight: float = 1.0, read: Mask | None = None
) -> Vector:
    """The weights of pages for refresh: mean 1 over ordinary pages (by usefulness), mean `data_weight` (χ) over
    structured pages.

    `read`: which pages have been read (None = all). Only these compete for refresh, so the mean is over these alone.
    Unread pages have no usefulness yet; if they counted, they would raise the weight of every ordinary page that was
    read, relative to χ. Unread pages are weighed by importance, which guides discovery.

    If nothing leads to structured data, usefulness is 0 everywhere, and ordinary pages are weighed by importance.
    """
    ordinary = ~structured if read is None else read & ~structured
    mean = float(importance[ordinary].mean()) if ordinary.any() else float(importance.mean() if len(importance) else 1)
    result = importance / mean if mean > 0.0 else np.ones(len(importance))
    useful = usefulness[ordinary]
    if useful.sum() > 0.0:
        result[ordinary] = _USEFUL * _to_mean_one(useful) + (1.0 - _USEFUL) * result[ordinary]
    result[structured] = data_weight * _to_mean_one(importance[structured])
    return result


def promoted(weights: Vector, pages: npt.NDArray[np.intp], top_share: float) -> Vector:
    """Raise `pages` (those with a subscription) into the top share of all, as the paper's promotion to the top x %.

    max(w, quantile) is exact in one step. Shifting personalisation until the fixpoint agrees is not, because every
    increase takes from all others.
    """
    if not len(pages):
        return weights
    result = weights.copy()
    result[pages] = np.maximum(result[pages], np.quantile(weights, 1.0 - top_share, method="higher"))
    return result


class UsefulnessIteration:
    """State of one fixpoint between sweeps. `start`: where an interrupted one was."""

    def __init__(
        self, sweeps: Sweeps, structured: Mask, variant: Variant, damping: float, start: Vector | None = None
    ) -> None:
        self._damping = damping
        self._structured = np.flatnonzero(structured)
        self._mean = variant == "mean"
        # Divisor of what a page collects from its links (mean), or of what it passes back to its in-links (many).
        self._degrees = sweeps.degrees if self._mean else sweeps.indegree()
        self._linked = self._degrees > 0
        self.current = np.zeros(sweeps.pages) if start is None else start.copy()
        self.worth = np.zeros(sweeps.pages)
        self.backwards = np.zeros(sweeps.pages)
        if start is not None:
            self._pass_on()

    def end(self, importance: Vector, total: float = 1.0) -> float:
        """End a sweep; return the estimated L1 distance to the fixpoint. `importance` sums to `total`."""
        new, old = self.backwards, self.current
        if self._mean:
            np.divide(new, self._degrees, out=new, where=self._linked)
        new *= self._damping
        new[self._structured] += (1.0 - self._damping) / total * importance[self._structured]
        old -= new
        np.abs(old, out=old)
        change = float(old.sum())
        old[:] = 0.0
        self.current, self.backwards = new, old  # in place throughout: at 20 million pages each temporary costs 0.1 s
        self._pass_on()
        return change * self._damping / (1.0 - self._damping)

    def _pass_on(self) -> None:
        if self._mean:
            self.worth = self.current
        else:
            np.divide(self.current, self._degrees, out=self.worth, where=self._linked)


def _padded(vector: Vector, pages: int) -> Vector:
    return np.pad(vector[:pages], (0, max(0, pages - len(vector))))


def _to_mean_one(vector: Vector) -> Vector:
    mean = float(vector.mean()) if len(vector) else 0.0
    return np.asarray(vector / mean) if mean > 0.0 else np.ones(len(vector))
