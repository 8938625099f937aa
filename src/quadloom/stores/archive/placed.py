"""An archive whose records are read again: what would be written is there already, so `put` only says where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page
from quadloom.stores.protocols.archive import Archive, ArchiveRecord, DiskState


class PlacedArchive:
    """See `quadloom.stores.protocols.archive.Archive`. Nothing is written. `expect` comes before every `put`; of one
    URL, one version at a time may be between the two."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._places: dict[str, ArchiveRef] = {}

    def expect(self, url: str, ref: ArchiveRef) -> None:
        """The next record that is put for this URL is the one at `ref`."""
        self._places[url] = ref

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        return [self._places.pop(record.key) for record in records]

    def sync(self) -> None:
        """Everything was synced when it was written."""

    def get(self, ref: ArchiveRef) -> Page | Failure:
        return self._archive.get(ref)

    def scan(self) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        return self._archive.scan()

    def read_file(self, file: str) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        return self._archive.read_file(file)

    def record(self, ref: ArchiveRef) -> ArchiveRecord:
        return self._archive.record(ref)

    def seal(self) -> None:
        """No file is being written."""

    def files(self) -> dict[str, int]:
        return self._archive.files()

    def remove(self, file: str) -> None:
        raise AssertionError("an archive that is being read again loses no file")

    def size(self) -> int:
        return self._archive.size()

    def disks(self) -> tuple[DiskState, ...]:
        return self._archive.disks()

    def close(self) -> None:
        """The archive belongs to the caller."""
