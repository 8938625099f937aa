"""Links from and to given pages, read from the edge segments of the link matrix while the crawl appends to them.

The matrix itself is merged once an hour and gives the links from a page, not the links to it. One scan of the segments,
at 17 bytes per link, gives both, up to the last flush of the crawl. The scan is bounded: if there are more than `most`
records, only the newest are read, and the result says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from quadloom.planning.ranking.link_matrix import KINDS, RECORD, RESET, UNCOUNTED, Records
from quadloom.planning.ranking.sorted_keys import positions

_AT_ONCE = 500_000
_SKIPPED = [code for code, kind in enumerate(KINDS) if kind in UNCOUNTED]

_TRIES = 5

Fingerprints = npt.NDArray[np.int64]
T = TypeVar("T")


class AdjacentLinks(msgspec.Struct, frozen=True):
    """Links with at least one end among the given pages, each pair once. `partial`: older links were left out."""

    sources: Fingerprints
    targets: Fingerprints
    partial: bool = False


def links_touching(directory: Path, pages: npt.ArrayLike, *, most: int = 4_000_000) -> AdjacentLinks:
    """All links from and to `pages`, as of the last reading of each source; without images and stylesheets."""
    wanted = np.unique(np.asarray(pages, dtype=np.int64))
    return while_segments_stay(lambda: _links_touching(directory, wanted, most))


def while_segments_stay(read: Callable[[], T]) -> T:
    """The result of `read`, which begins again if a segment was replaced by a compacted one meanwhile."""
    for _ in range(_TRIES):
        try:
            return read()
        except FileNotFoundError:
            continue
    return read()


def _links_touching(directory: Path, wanted: Fingerprints, most: int) -> AdjacentLinks:
    segments, partial = _newest(directory, most)
    found: list[Records] = []
    places: list[npt.NDArray[np.int64]] = []
    for start, records in link_chunks(segments):
        touching = positions(wanted, records["source"]).known | positions(wanted, records["target"]).known
        touching &= ~np.isin(records["kind"], [RESET, *_SKIPPED])
        found.append(records[touching])
        places.append(start + np.flatnonzero(touching))
    if not found:
        return AdjacentLinks(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    records, place = np.concatenate(found), np.concatenate(places)
    current = place > _last_readings(segments, records["source"])
    pairs = np.unique(np.stack([records["source"][current], records["target"][current]]), axis=1)
    return AdjacentLinks(pairs[0], pairs[1], partial)


def _newest(directory: Path, most: int) -> tuple[list[tuple[Path, int]], bool]:
    """Segments with the newest `most` records, each with the byte to start from; and whether older records exist."""
    chosen: list[tuple[Path, int]] = []
    left = most
    for path in sorted(directory.glob("*.edges"), reverse=True):
        whole = path.stat().st_size // RECORD.itemsize
        chosen.append((path, max(0, whole - left) * RECORD.itemsize))
        if whole > left:
            return chosen[::-1], True
        left -= whole
    return chosen[::-1], False


def link_chunks(segments: list[tuple[Path, int]]) -> Iterator[tuple[int, Records]]:
    """Yield (number of the first record, records), oldest first. A record that is still being written is left out."""
    start = 0
    for path, position in segments:
        while True:
            records = np.fromfile(path, dtype=RECORD, count=_AT_ONCE, offset=position)
            if not len(records):
                break
            yield start, records
            start += len(records)
            position += len(records) * RECORD.itemsize


def _last_readings(segments: list[tuple[Path, int]], sources: Fingerprints) -> npt.NDArray[np.int64]:
    """The number of the last `RESET` of each source; −1 if there is none in these segments."""
    known = np.unique(sources)
    last = np.full(len(known), -1, dtype=np.int64)
    for start, records in link_chunks(segments):
        marks = np.flatnonzero((records["kind"] == RESET) & positions(known, records["source"]).known)
        np.maximum.at(last, np.searchsorted(known, records["source"][marks]), start + marks)
    return last[np.searchsorted(known, sources)]
