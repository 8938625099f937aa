"""Importance of pages: the fixpoint of "a page passes its importance on to the pages it links to".

With c = damping, E = personalisation (uniform unless given, scaled to sum 1) and M_ij = 1/outdeg(j) for j → i:

* ``dangling="personalize"`` is PageRank as usually defined: pages without out-links pass their importance to E.
  Its solution is proportional to that of the linear system (1 − cM) x = (1 − c)E, which is what is solved.
* ``dangling="normalize"`` is equations (10)–(12) of the Xyleme paper: it compensates for what dangling pages lose by
  scaling everything with r = 1/(1 − c·d), where d is the importance of dangling pages. That equals damping r·c > c.
  URLs that were not read yet are dangling, so in a crawl d is large, and above (1 − c)/c = .18 the damping r·c would
  exceed 1. Pages that link only to each other then gather importance until d is down to .18: a site of 20 such pages
  among 20,000, of which 14,000 are unread, has 75 % of all importance (0.6 % with "personalize"), and just above that
  limit it takes hundreds of sweeps. So this is not the default.

The result sums to 1. Blocks of targets are finished one after another, and later blocks already use the new values
(block Gauss–Seidel, section 5.4), which saves iterations. The stopping rule uses L1, because L2 shrinks with the number
of pages: if q is the contraction of a sweep, the last change times q/(1 − q) estimates the distance to the fixpoint,
and the iteration stops when that is at most `tol`. q is c, a bound, except for "normalize" with dangling pages. There
the true rate depends on where these pages are (it may exceed c, since r·c does), so q is the slowest rate of the last
sweeps, plus half of its distance to 1 for slower modes that do not show yet. A warm start (`start`) from the last
vector saves iterations: the less importance has changed since, the more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt

from quadloom.errors import InputError
from quadloom.planning.ranking.link_blocks import LinkBlocks, Vector

Dangling = Literal["normalize", "personalize"]
Personalization = npt.ArrayLike | Mapping[int, float] | None


class ImportanceIteration:
    """State of one fixpoint between sweeps. `usefulness.rank` runs it together with its own iteration.

    `current`: the vector, which sums to `total`. `values`: what each page passes on to each of its links."""

    def __init__(
        self,
        links: LinkBlocks,
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
        self.jump = (1.0 - damping) * _personalization(personalization, links.pages)
        self.current = _start(start, links.pages)
        self.total = 1.0
        self._links = links
        if not self.normalizing:
            # The solution of the linear system sums to (1 − c)/(1 − c(1 − d)), so a warm start must be scaled to it.
            lost = float(self.current[links.dangling].sum())
            self.total = (1.0 - damping) / (1.0 - damping * (1.0 - lost))
            self.current *= self.total
        self.values = np.zeros(links.pages)
        np.divide(self.current, links.outdegree, out=self.values, where=links.outdegree > 0)
        self._change = self._new_total = 0.0
        self._changes: deque[float] = deque(maxlen=4)
        self._scale = self._loss_factor()

    def sweep(self) -> float:
        """One pass over all links; returns the estimated L1 distance to the fixpoint."""
        for block in self._links:
            self.settle(block.low, block.high, block.incoming(self.values))
        return self.end()

    def settle(self, low: int, high: int, incoming: Vector) -> None:
        """Store the new values of pages `low` … `high` − 1; the following blocks use them. Overwrites `incoming`."""
        jump = self.jump if len(self.jump) == 1 else self.jump[low:high]
        part = slice(low, high)
        # The paper normalises the vector after every step. Scaling the jump by the sum of the vector is the same,
        # without another pass.
        incoming *= self._scale * self.damping
        incoming += jump * (self._scale * self.total) if self.normalizing else jump
        self._change += float(np.abs(incoming - self.current[part]).sum())
        self._new_total += float(incoming.sum())
        self.current[part] = incoming
        degrees = self._links.outdegree[part]
        np.divide(incoming, degrees, out=self.values[part], where=degrees > 0)

    def end(self) -> float:
        """End a sweep; return the estimated L1 distance to the fixpoint."""
        self.total, self._new_total = self._new_total, 0.0
        change, self._change = self._change / self.total, 0.0
        self._changes.append(change)
        self._scale = self._loss_factor()
        contraction = self._contraction()
        return change * contraction / (1.0 - contraction)

    def result(self) -> Vector:
        return np.asarray(self.current / self.total)

    def _loss_factor(self) -> float:
        """r of equation (11); 1 for "personalize", whose linear system needs no scaling."""
        if not self.normalizing:
            return 1.0
        lost = float(self.current[self._links.dangling].sum()) / self.total
        return 1.0 / (1.0 - self.damping * min(lost, 1.0))

    def _contraction(self) -> float:
        if not self.normalizing or not len(self._links.dangling):
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
