"""Who links to some pages, and where they link to: read from the edge segments of the link matrix, beside their writer.

The matrix itself is merged once an hour and knows the rows of a page, not its columns. The segments know both at once,
up to what the crawl has written out, by one walk through them at 17 bytes a link. The walk is bounded: beyond `most`
records only the newest are looked at, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from quadloom.ranking.link_matrix import ANEW, RECORD, UNCOUNTED, Records
from quadloom.ranking.link_matrix import KINDS as _KINDS

_AT_ONCE = 500_000
_SKIPPED = [code for code, kind in enumerate(_KINDS) if kind in UNCOUNTED]

Fingerprints = npt.NDArray[np.int64]


class AdjacentLinks(msgspec.Struct, frozen=True):
    """Links with one end (or both) among the pages asked for, each pair once. `partial`: older ones were left out."""

    sources: Fingerprints
    targets: Fingerprints
    partial: bool = False


def links_touching(directory: Path, pages: npt.ArrayLike, *, most: int = 4_000_000) -> AdjacentLinks:
    """All links from and to these pages, as last read; pictures and style sheets do not count."""
    wanted = np.unique(np.asarray(pages, dtype=np.int64))
    segments, partial = _newest(directory, most)
    found: list[Records] = []
    places: list[npt.NDArray[np.int64]] = []
    for start, records in _chunks(segments):
        touching = _among(records["source"], wanted) | _among(records["target"], wanted)
        touching &= ~np.isin(records["kind"], [ANEW, *_SKIPPED])
        found.append(records[touching])
        places.append(start + np.flatnonzero(touching))
    if not found:
        return AdjacentLinks(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    records, place = np.concatenate(found), np.concatenate(places)
    kept = place > _last_readings(segments, records["source"])
    pairs = np.unique(np.stack([records["source"][kept], records["target"][kept]]), axis=1)
    return AdjacentLinks(pairs[0], pairs[1], partial)


def _newest(directory: Path, most: int) -> tuple[list[tuple[Path, int]], bool]:
    """Segments from the first to look at, each with the byte to begin at; and whether anything lies before."""
    chosen: list[tuple[Path, int]] = []
    left = most
    for path in sorted(directory.glob("*.edges"), reverse=True):
        whole = path.stat().st_size // RECORD.itemsize
        chosen.append((path, max(0, whole - left) * RECORD.itemsize))
        if whole > left:
            return chosen[::-1], True
        left -= whole
    return chosen[::-1], False


def _chunks(segments: list[tuple[Path, int]]) -> Iterator[tuple[int, Records]]:
    """(number of the first record, records), oldest first. A record that is just being written is left out."""
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
    """For each source, where its links last started over; −1 = never in what is looked at."""
    known = np.unique(sources)
    last = np.full(len(known), -1, dtype=np.int64)
    for start, records in _chunks(segments):
        marks = np.flatnonzero((records["kind"] == ANEW) & _among(records["source"], known))
        np.maximum.at(last, np.searchsorted(known, records["source"][marks]), start + marks)
    return last[np.searchsorted(known, sources)]


def _among(values: Fingerprints, sorted_values: Fingerprints) -> npt.NDArray[np.bool_]:
    if not len(sorted_values):
        return np.zeros(len(values), dtype=bool)
    place = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    return np.asarray(sorted_values[place] == values)
