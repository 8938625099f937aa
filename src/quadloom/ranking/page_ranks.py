"""The ranks of pages: weight, importance and usefulness of the last ranking, looked up by fingerprint.

Twenty-nine bytes per page, sorted by fingerprint. A lookup is a binary search: in memory for the crawl, in the mapped
file for a single question. If the values of a page changed by less than a tenth since they were last published, the old
values stay: a ranking changes every page a little, and each published change costs a catalog row, an update of the
queue and a new description.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

MOVED = 0.1  # the values of a page are published again if one of them changed by this part
_LEAST = 0.01  # differences between values below this one do not count
_FILE = "standings.npy"
_RANKING = "ranking.npz"
_ROW = np.dtype(
    [("fingerprint", "<i8"), ("weight", "<f4"), ("importance", "<f4"), ("usefulness", "<f4"), ("is_data", "?")]
)

Vector = npt.NDArray[np.float64]
Fingerprints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class PageRank(NamedTuple):
    """The values of a page in the last ranking. `importance`: 1 = the mean of all pages. `usefulness`: 1 = the mean of
    the ordinary pages that were read. 0 = unknown."""

    weight: float
    importance: float = 0.0
    usefulness: float = 0.0


class PageRanks:
    """All pages of one ranking. `table` is sorted by fingerprint, its first column."""

    def __init__(self, table: npt.NDArray[np.void]) -> None:
        self.table = table
        self.fingerprints: Fingerprints = np.ascontiguousarray(table["fingerprint"])

    @classmethod
    def make(
        cls, fingerprints: Fingerprints, weights: Vector, importance: Vector, usefulness: Vector, is_data: Mask
    ) -> PageRanks:
        order = np.argsort(fingerprints, kind="stable")
        table = np.empty(len(order), dtype=_ROW)
        columns = (fingerprints, weights, importance, usefulness, is_data)
        for name, values in zip(_ROW.names or (), columns, strict=True):
            table[name] = values[order]
        return cls(table)

    def lookup(self, wanted: Sequence[int]) -> list[tuple[PageRank, bool] | None]:
        """(rank, whether it was ranked as structured data) for each page; None = not ranked."""
        if not len(self.fingerprints):
            return [None] * len(wanted)
        place, found = self._places(np.fromiter(wanted, dtype=np.int64, count=len(wanted)))
        rows = self.table[place].tolist()
        return [(PageRank(*row[1:4]), row[4]) if hit else None for row, hit in zip(rows, found.tolist(), strict=True)]

    def without_small_moves(self, published: PageRanks) -> tuple[PageRanks, Mask]:
        """The new ranks with the published values of every page that hardly moved, and which pages did move.

        The comparison is with the values published last, so a slow drift is noticed as well.
        """
        if not len(published.fingerprints):
            return self, np.ones(len(self.fingerprints), dtype=bool)
        place, known = published._places(self.fingerprints)
        old = published.table[place]
        moved = ~known | (self.table["is_data"] != old["is_data"])
        for name in ("weight", "importance", "usefulness"):
            one, other = self.table[name], old[name]
            moved |= np.abs(one - other) > MOVED * np.maximum(np.minimum(one, other), _LEAST)
        return PageRanks(np.where(moved, self.table, old)), moved

    def weight_of_top(self, share: float) -> float:
        """The least weight of a page in the top share of all; infinite if there are no pages."""
        count = len(self.table)
        return float(np.quantile(self.table["weight"], 1.0 - share, method="higher")) if count else np.inf

    @classmethod
    def load(cls, directory: Path) -> PageRanks:
        path = directory / _FILE
        return cls(np.load(path) if path.exists() else np.empty(0, dtype=_ROW))

    def save(self, directory: Path) -> None:
        unfinished = directory / f"unfinished-{_FILE}"
        np.save(unfinished, self.table)
        unfinished.replace(directory / _FILE)

    def _places(self, keys: Fingerprints) -> tuple[npt.NDArray[np.intp], Mask]:
        place = np.minimum(np.searchsorted(self.fingerprints, keys), len(self.fingerprints) - 1)
        return place, self.fingerprints[place] == keys


class Ranking(NamedTuple):
    """All pages of one computation, in any order: `importance` sums to 1, `structured` pages are data, and `read`
    ones have links or are data."""

    fingerprints: Fingerprints
    importance: Vector
    usefulness: Vector
    structured: Mask
    read: Mask

    def ids(self, wanted: Fingerprints) -> npt.NDArray[np.intp]:
        """Places of these pages; those that are not ranked are left out."""
        order = np.argsort(self.fingerprints, kind="stable")
        known = self.fingerprints[order]
        if not len(known):
            return np.empty(0, dtype=np.intp)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.asarray(order[place[known[place] == wanted]])

    def save(self, directory: Path) -> None:
        """For rankers that find it there (`saved`)."""
        unfinished = directory / f"unfinished-{_RANKING}"
        np.savez(unfinished, **self._asdict())
        unfinished.replace(directory / _RANKING)

    @classmethod
    def saved(cls, directory: Path, after: float) -> tuple[Ranking, float] | None:
        """The ranking that was saved last, and when; None = none later than `after`, in unix seconds."""
        try:
            at = (directory / _RANKING).stat().st_mtime
            if at <= after:
                return None
            with np.load(directory / _RANKING) as file:
                return cls(*(file[name] for name in cls._fields)), at
        except (OSError, ValueError, KeyError):  # there is none, or the directory is away
            return None


def page_rank_of(directory: Path, fingerprint: int) -> PageRank | None:
    """The saved rank of one page. The file is mapped, not read."""
    path = directory / _FILE
    if not path.exists():
        return None
    table = np.load(path, mmap_mode="r")
    place = bisect_left(table, fingerprint, key=lambda row: int(row["fingerprint"]))
    if place == len(table) or int(table[place]["fingerprint"]) != fingerprint:
        return None
    return PageRank(*table[place].tolist()[1:4])
