"""Which URLs need no look-up in the frontier's tables, because they were found lately."""

from __future__ import annotations

from collections.abc import Iterable

from quadloom.model.link import Discovery


class RecentFingerprints:
    """Fingerprints found lately, with the best priority and depth seen: nine of ten offered links end here.

    Two generations instead of a linked list: a look-up is one dictionary access, and when the young generation is full
    it becomes the old one, so that at least `size / 2` of the newest stay. About 80 bytes an entry: all entries of
    the same priority and depth share one number.
    """

    def __init__(self, size: int = 500_000) -> None:
        self._half = max(1, size // 2)
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}
        self._numbers: dict[int, int] = {}

    def unknown(self, offered: Iterable[Discovery]) -> list[Discovery]:
        """Those that are not known with a priority and a depth at least as good; only these need writing."""
        young, old = self._young, self._old
        rest: list[Discovery] = []
        for found in offered:
            key = found.fingerprint
            best = young.get(key)
            if best is None:
                best = old.get(key)
                if best is None:
                    rest.append(found)
                    continue
                self._put(key, best)
                young, old = self._young, self._old
            if found.priority < best >> 16 or found.depth < best & 0xFFFF:
                rest.append(found)
        return rest

    def learn(self, fingerprint: int, priority: int, depth: int) -> None:
        best = priority << 16 | min(depth, 0xFFFF)
        self._put(fingerprint, self._numbers.setdefault(best, best))

    def _put(self, fingerprint: int, best: int) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[fingerprint] = best

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()
