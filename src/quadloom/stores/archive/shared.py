"""The archive as WARC files in a directory that many machines share: each worker writes a series of its own.

`<directory>/<worker>/quadloom-00000042.warc.gz`. No worker writes into the folder of another, so nothing has to be
locked over a network file system; a reference names worker and file, so every worker can read everything. The directory
must be on a file system that really syncs on request (a local disk, NFS mounted `sync` or `hard`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from quadloom.errors import ArchiveDamaged, StoreError
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page
from quadloom.stores.archive.warc import WarcArchive
from quadloom.stores.protocols.archive import ArchiveRecord, DiskState

_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}/")


class SharedWarcArchive:
    """See `quadloom.stores.protocols.archive.Archive`. `writer`: name of the series to write; empty = read only."""

    def __init__(self, directory: Path, writer: str = "", *, file_bytes: int = 1 << 30) -> None:
        self._directory = directory
        self._series: dict[str, WarcArchive] = {}
        self._own: WarcArchive | None = None
        if writer:
            self._own = WarcArchive([directory / writer], file_bytes=file_bytes, series=writer)
            self._series[writer] = self._own

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        return self._writing().put(records)

    def sync(self) -> None:
        self._writing().sync()

    def seal(self) -> None:
        self._writing().seal()

    def _writing(self) -> WarcArchive:
        if self._own is None:
            raise StoreError(f"the archive {self._directory} is open for reading only")
        return self._own

    def get(self, ref: ArchiveRef) -> Page | Failure:
        return self._of(ref.file).get(ref)

    def record(self, ref: ArchiveRef) -> ArchiveRecord:
        return self._of(ref.file).record(ref)

    def scan(self) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        for archive in self._all():
            yield from archive.scan()

    def read_file(self, file: str) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        if _FILE.match(file):
            yield from self._of(file).read_file(file)

    def files(self) -> dict[str, int]:
        return {name: size for archive in self._all() for name, size in archive.files().items()}

    def remove(self, file: str) -> None:
        self._of(file).remove(file)

    def size(self) -> int:
        return sum(archive.size() for archive in self._all())

    def disks(self) -> tuple[DiskState, ...]:
        return self._own.disks() if self._own is not None else ()

    def close(self) -> None:
        for archive in self._series.values():
            archive.close()

    def _all(self) -> list[WarcArchive]:
        if not self._directory.is_dir():
            return []
        folders = sorted(f"{path.name}/" for path in self._directory.iterdir() if path.is_dir())
        return [self._of(folder) for folder in folders if _FILE.match(folder)]

    def _of(self, file: str) -> WarcArchive:
        """The series that a file belongs to."""
        if not _FILE.match(file):
            raise ArchiveDamaged(
                f"{file} is not a file of the shared archive {self._directory}",
                hint="was the page read with another stores.archive? Move its files into a folder there",
            )
        writer = file.partition("/")[0]
        if writer not in self._series:
            self._series[writer] = WarcArchive([self._directory / writer], read_only=True, series=writer)
        return self._series[writer]
