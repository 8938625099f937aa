"""Fingerprints met lately, with the best priority and depth seen: nine of ten offered links end here.

Two generations instead of a linked list: a look-up is one dictionary access, and when the young generation is full it
becomes the old one, so that at least `size / 2` of the newest stay. About 100 bytes an entry.
"""

from __future__ import annotations


class RecentFingerprints:
    def __init__(self, size: int = 500_000) -> None:
        self._half = max(1, size // 2)
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def covers(self, fingerprint: int, priority: int, depth: int) -> bool:
        """True = known with a priority and a depth at least as good, so nothing is to be written."""
        best = self._young.get(fingerprint)
        if best is None:
            best = self._old.get(fingerprint)
            if best is None:
                return False
            self._put(fingerprint, best)
        return priority >= best >> 16 and depth >= best & 0xFFFF

    def learn(self, fingerprint: int, priority: int, depth: int) -> None:
        self._put(fingerprint, priority << 16 | min(depth, 0xFFFF))

    def _put(self, fingerprint: int, best: int) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[fingerprint] = best

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()
