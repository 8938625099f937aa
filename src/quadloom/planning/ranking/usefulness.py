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
from quadloom.planning.ranking.link_blocks import LinkBlocks, Vector

Variant = Literal["mean", "many"]
Mask = npt.NDArray[np.bool_]
# Share of usefulness in the weight of an ordinary page. The paper stored nothing of an HTML page but its links; here
# its words and statements are stored, so a page that leads to no data still has a little worth by its own importance.
_USEFUL = 0.95


class RankVectors(msgspec.Struct, frozen=True):
    """Both fixpoints of one matrix. `error`: the larger of their estimated L1 errors; above the tolerance only if there
    were too many iterations."""

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
_SWEEPS = 10_000  # damping 0.99 needs 2,100 to 1e-9, 0.999 some 21,000: beyond that `RankVectors.error` reports it


def rank(
    links: LinkBlocks,
    structured: Mask,
    rules: RankingRules = _DEFAULTS,
    start: RankVectors | None = None,
) -> RankVectors:
    """Importance and usefulness together.

    `start`: the result of the last run, perhaps of a smaller web. After every pass, usefulness uses the improved
    importance.
    """
    known = None if start is None else start.importance
    forward = ImportanceIteration(links, rules.damping, rules.personalization, rules.dangling, known)
    useful = None if start is None else _padded(start.usefulness, links.pages)
    backward = UsefulnessIteration(links, structured, rules.variant, rules.damping, useful)
    count, error = 0, float("inf")
    while error > rules.tol and count < _SWEEPS:
        count += 1
        error = forward.sweep()
        error = max(error, backward.end(links.outgoing(backward.worth), forward.current, forward.total))
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
    """State of one fixpoint between sweeps. `start`: where an interrupted one was.

    `current`: the vector. `worth`: what a page is worth to each page that links to it."""

    def __init__(
        self, links: LinkBlocks, structured: Mask, variant: Variant, damping: float, start: Vector | None = None
    ) -> None:
        self._damping = damping
        self._structured = np.flatnonzero(structured)
        self._mean = variant == "mean"
        # Divisor of what a page collects from its links (mean), or of what it passes back to its in-links (many).
        self._degrees = links.outdegree if self._mean else links.indegree()
        self._linked = self._degrees > 0
        self.current = np.zeros(links.pages) if start is None else start
        self.worth = self._passed_on()

    def end(self, outgoing: Vector, importance: Vector, total: float = 1.0) -> float:
        """End a sweep; return the estimated L1 distance to the fixpoint. `outgoing`: the sum of `worth` over the links
        of each page; overwritten. `importance` sums to `total`."""
        new, old = outgoing, self.current
        if self._mean:
            np.divide(new, self._degrees, out=new, where=self._linked)
        new *= self._damping
        new[self._structured] += (1.0 - self._damping) / total * importance[self._structured]
        old -= new  # in place: at 20 million pages each temporary costs 0.1 s
        change = float(np.abs(old, out=old).sum())
        self.current = new
        self.worth = self._passed_on()
        return change * self._damping / (1.0 - self._damping)

    def _passed_on(self) -> Vector:
        if self._mean:
            return self.current
        return np.divide(self.current, self._degrees, out=np.zeros(len(self.current)), where=self._linked)


def _padded(vector: Vector, pages: int) -> Vector:
    return np.pad(vector[:pages], (0, max(0, pages - len(vector))))


def _to_mean_one(vector: Vector) -> Vector:
    mean = float(vector.mean()) if len(vector) else 0.0
    return np.asarray(vector / mean) if mean > 0.0 else np.ones(len(vector))
