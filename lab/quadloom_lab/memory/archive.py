"""The archive as byte arrays: the reference of the contract suite and a test double."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from quadloom.errors import ArchiveDamaged, StoreError
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page
from quadloom.stores.archive import warc_record
from quadloom.stores.protocols.archive import ArchiveRecord, DiskState


class MemoryArchive:
    """Records are the same gzip members as in files. A file grows without limit until it is sealed."""

    def __init__(self) -> None:
        self._files: dict[str, bytearray] = {}
        self._refs: list[ArchiveRef] = []
        self._begun = 0
        self._open = ""

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        if not self._open:
            self._begun += 1
            self._open = f"memory-{self._begun:08d}"
            self._files[self._open] = bytearray()
        data = self._files[self._open]
        refs: list[ArchiveRef] = []
        for record in records:
            refs.append(ArchiveRef(self._open, len(data), len(record.member)))
            data += record.member
        self._refs += refs
        return refs

    def sync(self) -> None:
        """Does nothing: memory has nothing to sync."""

    def get(self, ref: ArchiveRef) -> Page | Failure:
        place = f"{ref.file}:{ref.offset}"
        data = self._files.get(ref.file)
        if data is None:
            raise warc_record.damaged(place, "the file is missing")
        return warc_record.decode(bytes(data[ref.offset : ref.offset + ref.length]), place)

    def record(self, ref: ArchiveRef) -> ArchiveRecord:
        url = self.get(ref).url
        return ArchiveRecord(url, bytes(self._files[ref.file][ref.offset : ref.offset + ref.length]))

    def scan(self) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        for ref in list(self._refs):
            yield ref, self.get(ref)

    def read_file(self, file: str) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        for ref in [ref for ref in self._refs if ref.file == file]:
            with suppress(ArchiveDamaged):
                yield ref, self.get(ref)

    def seal(self) -> None:
        self._open = ""

    def files(self) -> dict[str, int]:
        return {name: len(data) for name, data in self._files.items() if name != self._open}

    def remove(self, file: str) -> None:
        if file == self._open:
            raise StoreError(f"{file} is being written", hint="remove it when it has been ended")
        self._files.pop(file, None)
        self._refs = [ref for ref in self._refs if ref.file != file]

    def size(self) -> int:
        return sum(map(len, self._files.values()))

    def disks(self) -> tuple[DiskState, ...]:
        return ()

    def close(self) -> None:
        self.seal()
