"""Usefulness: what a page is worth for the structured data it leads to, and the weights that scheduling works with.

A page of plain HTML matters here because reading it again may lead to new data. Its usefulness J is the importance of
the structured pages it reaches, carried backwards over links: on the transposed graph, with E'_i = I_i for
structured pages and 0 for others,

* ``variant="mean"`` is the paper's: J_i = c · mean of J over out(i) + (1 − c) E'_i. Its own text asks for pages that
  lead to *many* structured pages, but a mean does not count: a hub with 50 data links among 100 gets half of what a
  page with a single data link gets.
* ``variant="many"`` is the reversed walk: each page passes its J back to those who link to it, in equal parts, so
  J_i = c · Σ J_j / indeg(j) over out(i) + (1 − c) E'_i, which grows with the number of ways to data.

Both contract by c, so the fixpoint exists and is unique. χ then says how much a structured page weighs beside an
ordinary one on average; both kinds compete for the same bandwidth.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from quadloom.ranking.importance import Dangling, ImportanceIteration, Personalization
from quadloom.ranking.link_slices import LinkSlices
from quadloom.ranking.sweeps import Csr, Sweeps, sweeps_of

Variant = Literal["mean", "many"]
Vector = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
# Part of an ordinary page's weight that comes from usefulness. The paper kept nothing of an HTML page but its links;
# here its words and statements are kept, so one that leads to no data is worth a little by its own importance.
_USEFUL = 0.95


class Ranking(msgspec.Struct, frozen=True):
    """Both fixpoints of one matrix. `error`: the larger of their L1 error bounds."""

    importance: Vector
    usefulness: Vector
    iterations: int
    error: float


def usefulness(
    csr: Csr,
    importance: Vector,
    structured: Mask,
    *,
    variant: Variant = "mean",
    damping: float = 0.85,
    tol: float = 1e-9,
    max_iterations: int = 10_000,
) -> Vector:
    """J for a known importance. Row i of `csr` holds the out-links of page i, as for importance."""
    sweeps = sweeps_of(csr)
    iteration = _UsefulnessIteration(sweeps, structured, variant, damping)
    for _ in range(max_iterations):
        for block in sweeps.blocks():
            block.both(iteration.worth, iteration.worth, iteration.backwards)
        if iteration.end(importance) <= tol:
            break
    return iteration.current


def rank(
    links: Csr | LinkSlices,
    structured: Mask,
    *,
    variant: Variant = "mean",
    damping: float = 0.85,
    personalization: Personalization = None,
    dangling: Dangling = "normalize",
    tol: float = 1e-9,
    start: Ranking | None = None,
    max_iterations: int = 10_000,
) -> Ranking:
    """Importance and usefulness together, one scan of the matrix per iteration of both.

    Usefulness starts from the importance of the last run (`start`) and uses the better one after every scan.
    """
    sweeps = sweeps_of(links)
    forward = ImportanceIteration(
        sweeps, damping, personalization, dangling, None if start is None else start.importance
    )
    backward = _UsefulnessIteration(sweeps, structured, variant, damping)
    count, error = 0, float("inf")
    while error > tol and count < max_iterations:
        count += 1
        for block in sweeps.blocks():
            gathered = block.both(forward.values, backward.worth, backward.backwards)
            forward.settle(block.low, block.high, gathered)
        error = max(forward.end(), backward.end(forward.current, forward.total))
    return Ranking(forward.result(), backward.current, count, error)


def weights(
    importance: Vector, usefulness: Vector, structured: Mask, chi: float = 1.0, read: Mask | None = None
) -> Vector:
    """What refresh weighs pages by: mean 1 over ordinary pages (by usefulness), mean χ over structured ones.

    `read` says which pages have been read (None = all). Only they compete for refresh, so only they make the mean:
    counted among the others, unread pages, which are useful to nobody yet, would lift every page that was read and
    with it the ordinary ones against χ. They weigh by importance, which is what guides discovery.

    Where nothing leads to structured data, usefulness says nothing, and ordinary pages weigh by importance.
    """
    ordinary = ~structured if read is None else read & ~structured
    mean = float(importance[ordinary].mean()) if ordinary.any() else float(importance.mean() if len(importance) else 1)
    result = importance / mean if mean > 0.0 else np.ones(len(importance))
    useful = usefulness[ordinary]
    if useful.sum() > 0.0:
        result[ordinary] = _USEFUL * _to_mean_one(useful) + (1.0 - _USEFUL) * result[ordinary]
    result[structured] = chi * _to_mean_one(importance[structured])
    return result


def promoted(weights: Vector, pages: npt.NDArray[np.intp], top_share: float) -> Vector:
    """Lift `pages` (subscribed ones) into the top share of all, as the paper's promotion to the top x %.

    Setting max(w, quantile) is exact at once; moving personalisation mass until the fixpoint agrees is not, because
    every increase takes from all others.
    """
    if not len(pages):
        return weights
    result = weights.copy()
    result[pages] = np.maximum(result[pages], np.quantile(weights, 1.0 - top_share, method="higher"))
    return result


class _UsefulnessIteration:
    def __init__(self, sweeps: Sweeps, structured: Mask, variant: Variant, damping: float) -> None:
        self._damping = damping
        self._structured = np.flatnonzero(structured)
        self._mean = variant == "mean"
        # Divides what a page collects (mean of its links), or what it hands back (to all who link to it).
        self._degrees = sweeps.degrees if self._mean else sweeps.indegree()
        self._linked = self._degrees > 0
        self.current = np.zeros(sweeps.pages)
        self.worth = np.zeros(sweeps.pages)
        self.backwards = np.zeros(sweeps.pages)

    def end(self, importance: Vector, total: float = 1.0) -> float:
        """End a sweep; returns an estimate of the L1 distance to the fixpoint. `importance` sums to `total`."""
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
        if self._mean:
            self.worth = new
        else:
            np.divide(new, self._degrees, out=self.worth, where=self._linked)
        return change * self._damping / (1.0 - self._damping)


def _to_mean_one(vector: Vector) -> Vector:
    mean = float(vector.mean()) if len(vector) else 0.0
    return np.asarray(vector / mean) if mean > 0.0 else np.ones(len(vector))
