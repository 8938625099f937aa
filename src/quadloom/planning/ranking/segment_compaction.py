"""Compaction of edge segments: links of pages that were read again since are dropped.

Edge segments are only appended to, so the links of a site whose pages always change would fill the disk. When the
segments that are complete have more than twice the bytes of all live links, those with the most dead records, up to
`_RUN_BYTES` of neighbours, are replaced by one segment with their live records. One scan of all segments, newest first,
finds out which records are live: those after the last `RESET` of their source.

A compacted segment is named after the last one that it replaces (`000007-01.edges`), so names still sort in the order
of writing. The steps are: write it and sync, rename, note it as merged, remove the others. A crash between two of them
leaves segments twice, which changes nothing: every live page is in the compacted segment with its `RESET`, and reading
a part of the history again ends with the same links.

The segment that a crawl appends to, the last one, is never touched. Copies for other workers (`link_exchange`) are
not compacted: they have had all of these records, and a compacted segment is never copied.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from quadloom.planning.ranking.link_matrix import RECORD, RESET, LinkMatrix, Records
from quadloom.process.durable import sync

_RUN_BYTES = 128 << 20  # replaced at once
_FACTOR = 2.0  # of the bytes of all live links
_UNFINISHED = "compacted.unfinished"


class _Segment(NamedTuple):
    """`live`: which of its records count, as bits; `dead`: bytes of the others."""

    path: Path
    size: int
    dead: int
    live: npt.NDArray[np.uint8]


def compact_segments(matrix: LinkMatrix, *, run_bytes: int = _RUN_BYTES) -> int:
    """Replace one run of segments, if there is too much in them that no longer counts; returns the bytes saved. Call
    it when the matrix has just been rebuilt."""
    complete = matrix.segments()[:-1]
    whole = sum(path.stat().st_size for path in complete)
    if whole <= _FACTOR * matrix.live_records() * RECORD.itemsize + matrix.segment_bytes:
        return 0
    run = _worst_run(_scanned(matrix), run_bytes)
    if not sum(segment.dead for segment in run):
        return 0
    return _replace(matrix, run)


def _scanned(matrix: LinkMatrix) -> list[_Segment]:
    """The complete segments that are in the matrix, oldest first."""
    read_later = np.zeros(matrix.manifest.pages, dtype=bool)
    *complete, last = matrix.segments()
    found: list[_Segment] = []
    for path in (last, *reversed(complete)):
        records = np.fromfile(path, dtype=RECORD)
        ids = matrix.ids(records["source"])
        if path != last:
            live = _after_last_reset(records, ids) & ~((ids >= 0) & read_later[ids])
            size = len(records) * RECORD.itemsize
            dead = int(np.count_nonzero(~live)) * RECORD.itemsize
            found.append(_Segment(path, size, dead, np.packbits(live)))
        read = ids[records["kind"] == RESET]
        read_later[read[read >= 0]] = True
    return found[::-1]


def _after_last_reset(records: Records, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Records of the last reading of their source in this segment, with its `RESET`."""
    numbers = np.arange(len(records))
    marks = numbers[records["kind"] == RESET]
    last = np.full(int(ids.max(initial=-1)) + 2, -1, dtype=np.int64)  # the last place is for pages without an id
    np.maximum.at(last, ids[marks], marks)
    return np.asarray(numbers >= last[ids])


def _worst_run(segments: list[_Segment], run_bytes: int) -> list[_Segment]:
    """The neighbours with the most dead bytes; at least one segment, however large."""
    best: list[_Segment] = []
    most = -1
    first = size = dead = 0
    for last, segment in enumerate(segments):
        size += segment.size
        dead += segment.dead
        while size > run_bytes and first < last:
            size -= segments[first].size
            dead -= segments[first].dead
            first += 1
        if dead > most:
            best, most = segments[first : last + 1], dead
    return best


def _replace(matrix: LinkMatrix, run: list[_Segment]) -> int:
    last = run[-1].path
    unfinished = matrix.directory / _UNFINISHED
    with unfinished.open("wb") as file:
        for segment in run:
            records = np.fromfile(segment.path, dtype=RECORD)
            live = np.unpackbits(segment.live, count=len(records)).astype(bool)
            file.write(records[live].tobytes())
        file.flush()
        os.fsync(file.fileno())
    written = last.stat().st_mtime
    os.utime(unfinished, (written, written))  # the order of writing among the segments of all workers
    compacted = matrix.directory / _compacted_name(last)
    size = unfinished.stat().st_size
    unfinished.replace(compacted)
    sync(matrix.directory)
    matrix.note_merged({compacted.name: size})
    for segment in run:
        segment.path.unlink()
    sync(matrix.directory)
    return sum(segment.size for segment in run) - size


def _compacted_name(last: Path) -> str:
    """After all compacted segments of the same number: a crash may have left one beside those that it replaces."""
    number = last.stem.partition("-")[0]
    counts = [int(path.stem.partition("-")[2]) for path in last.parent.glob(f"{number}-*.edges")]
    return f"{number}-{max(counts, default=0) + 1:02d}.edges"
