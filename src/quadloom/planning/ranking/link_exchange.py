"""Links of all workers for the ranking of each: edge segments exchanged as files in a directory that they share.

A worker sees the links of the pages it reads, and importance is a property of the whole graph. So every worker copies
its edge segments to `<directory>/<worker>/`, and merges those of the others into its own matrix, as if it had read
their pages itself. From the same links all workers compute the same importance, each at its own pace: nobody waits for
anybody, and a worker that is away only makes the links of its pages older.

Segments are append-only, so a copy is continued where it ends, also after a crash; a reader ignores a torn last record.
If a page changed its worker, the later of the two segments counts.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from quadloom.errors import StoreError

SEGMENTS = "*.edges"


class Segment(NamedTuple):
    """`name` is the same at every start, and different for every segment of every worker."""

    name: str
    path: Path


class LinkExchange:
    """One worker's view of the shared directory."""

    def __init__(self, directory: Path, worker: str) -> None:
        self.directory = directory
        self.worker = worker

    def publish(self, segments: Iterable[Path]) -> None:
        """Copy what is new in these segments. Raises `StoreError` if the directory cannot be written."""
        try:
            folder = self.directory / self.worker
            folder.mkdir(parents=True, exist_ok=True)
            for path in segments:
                if not is_compacted(path):  # what it has was copied before
                    _continue_copy(path, folder / path.name)
        except OSError as error:
            raise StoreError(
                f"cannot share links in {self.directory}: {error.strerror}",
                hint="is cluster.links mounted and may it be written?",
            ) from error

    def received(self) -> list[Segment]:
        """The segments of the other workers; none while the directory is away."""
        found = self.directory.glob(f"*/{SEGMENTS}")
        return [Segment(f"{path.parent.name}/{path.name}", path) for path in found if path.parent.name != self.worker]


def is_compacted(segment: Path) -> bool:
    """Whether a segment has replaced others (`segment_compaction`)."""
    return "-" in segment.stem


def in_order_of_writing(segments: Iterable[Segment]) -> list[Segment]:
    return sorted(segments, key=lambda segment: (segment.path.stat().st_mtime, segment.name))


def _continue_copy(path: Path, copy: Path) -> None:
    done = copy.stat().st_size if copy.exists() else 0
    if done < path.stat().st_size:
        with path.open("rb") as source, copy.open("ab") as target:
            source.seek(done)
            shutil.copyfileobj(source, target, 1 << 20)
