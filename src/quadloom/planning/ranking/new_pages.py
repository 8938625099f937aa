"""Dense ids of pages that are in no ranking yet, by fingerprint: twelve bytes a page, where a dict takes 130.

Two sorted levels: a large one, and a small one for what was added last, which is merged into the large one when it has
an eighth of its size. One thread adds, others look up: both levels are replaced by one assignment.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quadloom.planning.ranking.page_ranks import Fingerprints
from quadloom.planning.ranking.sorted_keys import positions

_SMALL = 4096
Ids = npt.NDArray[np.int64]


class _Level(NamedTuple):
    keys: Fingerprints
    ids: npt.NDArray[np.int32]

    def find(self, wanted: Fingerprints) -> Ids:
        if not len(self.keys):
            return np.full(len(wanted), -1, dtype=np.int64)
        place, known = positions(self.keys, wanted)
        return np.where(known, self.ids[place], -1).astype(np.int64)

    def merged(self, other: _Level) -> _Level:
        at = np.searchsorted(self.keys, other.keys)
        return _Level(np.insert(self.keys, at, other.keys), np.insert(self.ids, at, other.ids))


_EMPTY = _Level(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int32))


class NewPages:
    """Ids `first`, `first` + 1, … in the order of appearance, for at most `most` pages."""

    def __init__(self, first: int, most: int) -> None:
        self._first = first
        self._most = most
        self._levels = (_EMPTY, _EMPTY)  # large, small

    def __len__(self) -> int:
        large, small = self._levels
        return len(large.keys) + len(small.keys)

    @property
    def is_full(self) -> bool:
        return len(self) >= self._most

    def find(self, keys: Fingerprints) -> Ids:
        """The id of each page, -1 = it has none."""
        large, small = self._levels
        return np.maximum(large.find(keys), small.find(keys))

    def add(self, keys: Fingerprints) -> Ids:
        """The id of each page; those without one get the next ids, or -1 if there are too many."""
        ids = self.find(keys)
        unknown = np.flatnonzero(ids < 0)
        if not len(unknown) or self.is_full:
            return ids
        fresh, seen = np.unique(keys[unknown], return_index=True)
        appeared = np.argsort(np.argsort(seen))  # 0 = the first one that appeared
        fits = appeared < self._most - len(self)
        new = _Level(fresh[fits], (self._first + len(self) + appeared[fits]).astype(np.int32))
        large, small = self._levels
        small = small.merged(new)
        self._levels = (
            (large.merged(small), _EMPTY) if len(small.keys) > max(_SMALL, len(large.keys) // 8) else (large, small)
        )
        ids[unknown] = self.find(keys[unknown])
        return ids
