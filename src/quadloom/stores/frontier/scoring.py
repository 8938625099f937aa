"""New scores for URLs that wait for a first read: where a look at all of them has got to, and who gives the scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Place = tuple[int, int]  # in an order of the frontier's own
FIRST_PLACE: Place = (-(1 << 63), -(1 << 63))
Scored = Callable[[Sequence[tuple[int, float]]], Sequence[float | None]]
"""(fingerprint, score) of URLs → their new scores, None = as before."""
