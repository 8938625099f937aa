"""In which order the classes of visits that wait at a host are served."""

from __future__ import annotations

from collections.abc import Collection

from quadloom.stores.protocols.frontier import Shares, VisitClass


class WeightedRoundRobin:
    """Which class a host serves next: every waiting class gets its share, evenly mixed (smooth weighted round robin).
    A class with nothing waiting accumulates no credit."""

    __slots__ = ("_credit",)

    def __init__(self) -> None:
        self._credit = [0.0] * len(VisitClass)

    def next(self, shares: Shares, waiting: Collection[VisitClass]) -> VisitClass:
        """One of those `waiting`, at least one of which exists. Changes nothing: the class may turn out to be empty."""
        owed = self._owed(shares, waiting)
        return max(waiting, key=lambda kind: (owed[kind], -kind))

    def served(self, chosen: VisitClass, shares: Shares, waiting: Collection[VisitClass]) -> None:
        self._credit = self._owed(shares, waiting)
        self._credit[chosen] -= 1.0

    def _owed(self, shares: Shares, waiting: Collection[VisitClass]) -> list[float]:
        total = sum(shares[kind] for kind in waiting)
        parts = [shares[kind] / total if total > 0.0 else 1.0 / len(waiting) for kind in VisitClass]
        return [self._credit[kind] + parts[kind] if kind in waiting else 0.0 for kind in VisitClass]
