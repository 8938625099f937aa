"""How many visits of each class a lease may hand out, and whose turn it is: the frontier's side of the shares.

Classes follow from priority and history, so the frontier need not be told about them: explicit requests (priority 0),
refreshes (visited before), first reads of suspects (priority 1 and 2: seeds, publications, suspected data), first reads
of other pages. Requests stand outside of all shares.

The numbers alone do not divide the visits of a host that politeness holds back: whatever stands first in its queue
would take all of them and the other classes' reads would lapse. So a host serves its classes in turns, too.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum


class VisitClass(IntEnum):
    REFRESH = 0
    SUSPECTS = 1
    PAGES = 2

    @classmethod
    def of(cls, priority: int, known: bool) -> VisitClass:
        if known:
            return cls.REFRESH
        return cls.SUSPECTS if priority <= 2 else cls.PAGES


# Where a queue that is leased by quota holds each class: refreshes stand together at priority 1, behind the seeds.
PRIORITIES: dict[VisitClass, tuple[tuple[int, ...], ...]] = {
    VisitClass.REFRESH: ((1,),),
    VisitClass.SUSPECTS: ((1,), (2,)),
    VisitClass.PAGES: ((3, 4),),
}
Shares = tuple[float, float, float]  # in the order of VisitClass


class Quota:
    """Counted down by the lease that is given it. Requests are never held back, only counted."""

    __slots__ = ("first_reads", "left_of", "requests", "shares")

    def __init__(
        self,
        *,
        refresh: int = 0,
        suspects: int = 0,
        pages: int = 0,
        requests: int = 0,
        shares: Shares = (1.0, 1.0, 1.0),
    ) -> None:
        self.left_of = [refresh, suspects, pages]
        self.requests = requests  # handed out, on top of the rest, those of earlier quotas not made up for included
        self.first_reads = 0  # handed out
        self.shares = shares

    @property
    def refresh(self) -> int:
        return self.left_of[VisitClass.REFRESH]

    @property
    def suspects(self) -> int:
        return self.left_of[VisitClass.SUSPECTS]

    @property
    def pages(self) -> int:
        return self.left_of[VisitClass.PAGES]

    @property
    def left(self) -> int:
        return sum(self.left_of)

    def allows(self, priority: int, known: bool) -> bool:
        return priority == 0 or self.left_of[VisitClass.of(priority, known)] > 0

    def take(self, priority: int, known: bool) -> None:
        """A visit is handed out."""
        self.first_reads += not known
        if priority == 0:
            self.requests += 1
        else:
            self.left_of[VisitClass.of(priority, known)] -= 1


class WeightedRoundRobin:
    """Which class a host serves next: each that waits gets its share, evenly mixed (smooth weighted round robin).
    A class with nothing waiting saves nothing up."""

    __slots__ = ("_credit",)

    def __init__(self) -> None:
        self._credit = [0.0] * len(VisitClass)

    def next(self, shares: Shares, waiting: Collection[VisitClass]) -> VisitClass:
        """Of those `waiting`, one at least. Changes nothing: the class may turn out to have nothing to serve."""
        owed = self._owed(shares, waiting)
        return max(waiting, key=lambda kind: (owed[kind], -kind))

    def served(self, chosen: VisitClass, shares: Shares, waiting: Collection[VisitClass]) -> None:
        self._credit = self._owed(shares, waiting)
        self._credit[chosen] -= 1.0

    def _owed(self, shares: Shares, waiting: Collection[VisitClass]) -> list[float]:
        total = sum(shares[kind] for kind in waiting)
        parts = [shares[kind] / total if total > 0.0 else 1.0 / len(waiting) for kind in VisitClass]
        return [self._credit[kind] + parts[kind] if kind in waiting else 0.0 for kind in VisitClass]
