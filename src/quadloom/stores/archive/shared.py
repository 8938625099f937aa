"""The archive as WARC files in a directory that many machines share: each worker writes a series of its own.

`<directory>/<worker>/quadloom-00000042.warc.gz`. No worker writes into the folder of another, so nothing has to be
locked over a network file system; a reference names worker and file, so every worker can read everything. The directory
must be on a file system that really syncs on request (a local disk, NFS mounted `sync` or `hard`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from quadloom.errors import ArchiveDamaged, StoreError
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page
from quadloom.stores.archive.warc import WarcArchive
from quadloom.stores.protocols.archive import ArchiveRecord, DiskState

_WRITER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class SharedWarcArchive:
    """See `quadloom.stores.protocols.archive.Archive`. `writer`: name of the series to write; empty = read only."""

    def __init__(self, directory: Path, writer: str = "", *, file_bytes: int = 1 << 30) -> None:
        self._directory = directory
        self._writer = writer
        self._own = WarcArchive([directory / writer], file_bytes=file_bytes) if writer else None
        self._series: dict[str, WarcArchive] = {}

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        return [_named(self._writer, ref) for ref in self._writing().put(records)]

    def sync(self) -> None:
        self._writing().sync()

    def seal(self) -> None:
        self._writing().seal()

    def _writing(self) -> WarcArchive:
        if self._own is None:
            raise StoreError(f"the archive {self._directory} is open for reading only")
        return self._own

    def get(self, ref: ArchiveRef) -> Page | Failure:
        archive, local = self._found(ref)
        return archive.get(local)

    def record(self, ref: ArchiveRef) -> ArchiveRecord:
        archive, local = self._found(ref)
        return archive.record(local)

    def scan(self) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        for writer in self._writers():
            for ref, page in self._of(writer).scan():
                yield _named(writer, ref), page

    def read_file(self, file: str) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        writer, _, name = file.partition("/")
        if _WRITER.fullmatch(writer):
            for ref, page in self._of(writer).read_file(name):
                yield _named(writer, ref), page

    def files(self) -> dict[str, int]:
        return {
            f"{writer}/{name}": size for writer in self._writers() for name, size in self._of(writer).files().items()
        }

    def remove(self, file: str) -> None:
        writer, _, name = file.partition("/")
        self._of(writer).remove(name)

    def size(self) -> int:
        return sum(self._of(writer).size() for writer in self._writers())

    def disks(self) -> tuple[DiskState, ...]:
        return self._own.disks() if self._own is not None else ()

    def close(self) -> None:
        for archive in (*self._series.values(), *((self._own,) if self._own is not None else ())):
            archive.close()

    def _writers(self) -> list[str]:
        if not self._directory.is_dir():
            return []
        return sorted(path.name for path in self._directory.iterdir() if path.is_dir() and _WRITER.fullmatch(path.name))

    def _of(self, writer: str) -> WarcArchive:
        if self._own is not None and writer == self._writer:
            return self._own
        if writer not in self._series:
            self._series[writer] = WarcArchive([self._directory / writer], read_only=True)
        return self._series[writer]

    def _found(self, ref: ArchiveRef) -> tuple[WarcArchive, ArchiveRef]:
        writer, slash, name = ref.file.partition("/")
        if not slash or not _WRITER.fullmatch(writer):
            raise ArchiveDamaged(
                f"{ref.file} is not a file of the shared archive {self._directory}",
                hint="was the page read with another stores.archive? Move its files into a folder there",
            )
        return self._of(writer), replace(ref, file=name)


def _named(writer: str, ref: ArchiveRef) -> ArchiveRef:
    return replace(ref, file=f"{writer}/{ref.file}")
