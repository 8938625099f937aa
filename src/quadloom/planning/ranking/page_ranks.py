"""The ranks of pages: weight, importance and usefulness of the last ranking, looked up by fingerprint.

Twenty-one bytes per page, sorted by fingerprint, in a mapped file; the crawl has the fingerprints in memory, too. A
lookup is a binary search. A new ranking is written in parts, since copies of all pages would take 150 bytes each.

If the weight of a page changed by less than a tenth since it was last published, and importance and usefulness by less
than a factor of two, the old values stay: a web that grew by a third changes every page a little, and each published
change costs a catalog row, an update of the queue and perhaps a description. A ranking of 105,000 pages that came after
a growth by a quarter moved 39,500 of them, nearly all by their weight. Three tenths would be half as many, but then a
subscription to a site would not change when its pages are read.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quadloom.planning.ranking.sorted_keys import positions
from quadloom.process.durable import replacing, sync

MOVED = 0.1  # the values of a page are published again if its weight changed by this part
MOVED_RANK = 1.0  # the same for importance and usefulness, which schedule nothing
_LEAST = 0.01  # differences between values below this one do not count
_FILE = "standings.npy"
_MOVED = "moved.npy"
_RANKING = "ranking.npz"
_ROW = np.dtype(
    [("fingerprint", "<i8"), ("weight", "<f4"), ("importance", "<f4"), ("usefulness", "<f4"), ("is_data", "?")]
)

_PART = 1 << 16  # pages written at once
_SMALL = 1 << 16  # bytes: a smaller file is read, not mapped

Vector = npt.NDArray[np.float64]
Fingerprints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.void]
Scaled = tuple[Vector, float]  # values, and by what they are multiplied


class SortedPages(NamedTuple):
    """All pages of a matrix by fingerprint. `ids`: their places in its vectors."""

    fingerprints: Fingerprints
    ids: npt.NDArray[np.int32]

    def ids_of(self, wanted: Fingerprints) -> npt.NDArray[np.intp]:
        """Places of these pages in the vectors; those that are not ranked are left out."""
        place, known = positions(self.fingerprints, wanted)
        return np.asarray(self.ids[place[known]], dtype=np.intp)


class RankMasks(NamedTuple):
    """Which pages of a matrix are structured data, and which were read."""

    structured: Mask
    read: Mask


class PageRank(NamedTuple):
    """The values of a page in the last ranking. `importance`: 1 = the mean of all pages. `usefulness`: 1 = the mean of
    the ordinary pages that were read. 0 = unknown."""

    weight: float
    importance: float = 0.0
    usefulness: float = 0.0

    def has_moved(self, importance: float, usefulness: float) -> bool:
        """Whether one of both differs so much from these values that it is described again."""
        return _differ(self.importance, importance, MOVED_RANK) or _differ(self.usefulness, usefulness, MOVED_RANK)

    def has_weight_moved(self, weight: float) -> bool:
        return _differ(self.weight, weight, MOVED)


def _differ(one: float, other: float, part: float) -> bool:
    return abs(one - other) > part * max(min(one, other), _LEAST)


class PageRanks:
    """All pages of one ranking. `table` is sorted by fingerprint, its first column."""

    def __init__(self, table: Rows) -> None:
        self.table = table
        self.fingerprints: Fingerprints = np.ascontiguousarray(table["fingerprint"])

    @classmethod
    def publish(
        cls,
        directory: Path,
        pages: SortedPages,
        vectors: Mapping[str, Scaled],
        masks: RankMasks,
        published: PageRanks,
        note_moved: Callable[[Path, Fingerprints], None],
    ) -> PageRanks:
        """Write a new ranking; returns it. `note_moved` gets the pages that were read and moved, before the ranking
        takes its place: a crash in between costs a look at pages that did not move.

        `vectors`: weight, importance and usefulness. They and `masks` are in the order of the matrix."""
        unfinished = directory / f"unfinished-{_FILE}"
        moved: list[Fingerprints] = []
        with unfinished.open("wb") as file:
            header = {"descr": np.lib.format.dtype_to_descr(_ROW), "fortran_order": False, "shape": (len(pages.ids),)}
            np.lib.format.write_array_header_1_0(file, header)
            for start in range(0, len(pages.ids), _PART):
                part = slice(start, start + _PART)
                ids = pages.ids[part]
                rows = np.empty(len(ids), dtype=_ROW)
                rows["fingerprint"] = pages.fingerprints[part]
                rows["is_data"] = masks.structured[ids]
                for name, (values, factor) in vectors.items():
                    rows[name] = values[ids] * factor
                rows, changed = published._without_small_moves(rows)
                file.write(rows.tobytes())
                moved.append(rows["fingerprint"][changed & masks.read[ids]])
            file.flush()
            os.fsync(file.fileno())
        note_moved(directory, np.concatenate(moved))
        unfinished.replace(directory / _FILE)
        sync(directory)
        return cls.load(directory)

    def lookup(self, wanted: Sequence[int]) -> list[tuple[PageRank, bool] | None]:
        """(rank, whether it was ranked as structured data) for each page; None = not ranked."""
        if not len(self.fingerprints):
            return [None] * len(wanted)
        place, found = positions(self.fingerprints, np.fromiter(wanted, dtype=np.int64, count=len(wanted)))
        rows = self.table[place].tolist()
        return [(PageRank(*row[1:4]), row[4]) if hit else None for row, hit in zip(rows, found.tolist(), strict=True)]

    def _without_small_moves(self, new: Rows) -> tuple[Rows, Mask]:
        """Rows of a new ranking with the values published here for every page that hardly moved, and which moved.

        The comparison is with the values published last, so a slow drift is noticed as well.
        """
        if not len(self.fingerprints):
            return new, np.ones(len(new), dtype=bool)
        place, known = positions(self.fingerprints, np.ascontiguousarray(new["fingerprint"]))
        old = np.asarray(self.table[place])
        moved = ~known | (new["is_data"] != old["is_data"])
        for name, part in (("weight", MOVED), ("importance", MOVED_RANK), ("usefulness", MOVED_RANK)):
            one, other = new[name], old[name]
            moved |= np.abs(one - other) > part * np.maximum(np.minimum(one, other), _LEAST)
        return np.where(moved, new, old), moved

    def weight_of_top(self, share: float) -> float:
        """The least weight of a page in the top share of all; infinite if there are no pages."""
        count = len(self.table)
        return float(np.quantile(self.table["weight"], 1.0 - share, method="higher")) if count else np.inf

    @classmethod
    def load(cls, directory: Path) -> PageRanks:
        path = directory / _FILE
        if not path.exists():
            return cls(np.empty(0, dtype=_ROW))
        try:
            table: Rows = np.load(path, mmap_mode="r" if path.stat().st_size > _SMALL else None)
        except (ValueError, EOFError):  # damaged; the next ranking writes it again
            table = np.empty(0, dtype=_ROW)
        return cls(table)


def add_moved(directory: Path, moved: Fingerprints) -> None:
    """Note pages whose published values changed, beside those that nobody has taken yet."""
    waiting = _moved(directory)
    with replacing(directory / _MOVED) as file:
        np.save(file, moved if waiting is None else np.union1d(waiting, moved))


def take_moved(directory: Path) -> Fingerprints | None:
    """The pages noted since the last call; None = there was no ranking."""
    moved = _moved(directory)
    (directory / _MOVED).unlink(missing_ok=True)
    return moved


def _moved(directory: Path) -> Fingerprints | None:
    try:
        return np.asarray(np.load(directory / _MOVED), dtype=np.int64)
    except (OSError, ValueError, EOFError):  # there is none, or a power cut has damaged it
        return None


class Ranking(NamedTuple):
    """All pages of one computation, in any order: `importance` sums to 1, `structured` pages are data, and `read`
    ones have links or are data."""

    fingerprints: Fingerprints
    importance: Vector
    usefulness: Vector
    structured: Mask
    read: Mask

    def sorted_pages(self) -> SortedPages:
        order = np.argsort(self.fingerprints, kind="stable").astype(np.int32)
        return SortedPages(self.fingerprints[order], order)

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
