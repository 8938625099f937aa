"""Results of a function that are kept between pages: what a site writes once, it writes on every page."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

_LONGEST = 200  # characters of a key; longer ones are rare, seldom repeat and could fill the memory


class Memo(dict[K, V]):
    """`memo[key]` computes what it does not have. Emptied when it has `most` keys, since a hostile page invents more:
    what is in use soon returns."""

    __slots__ = ("_compute", "_most")

    def __init__(self, compute: Callable[[K], V], most: int) -> None:
        self._compute = compute
        self._most = most

    def __missing__(self, key: K) -> V:
        value = self._compute(key)
        if not isinstance(key, str) or len(key) <= _LONGEST:
            if len(self) >= self._most:
                self.clear()
            self[key] = value
        return value
