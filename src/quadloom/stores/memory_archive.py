"""The archive as a list: the reference of the contract suite and a test double."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page
from quadloom.stores import warc_record
from quadloom.stores.protocols import ArchiveRecord


class MemoryArchive:
    """One endless file. Records are the same gzip members that files hold."""

    NAME = "memory"

    def __init__(self) -> None:
        self._data = bytearray()
        self._refs: list[ArchiveRef] = []

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        refs: list[ArchiveRef] = []
        for record in records:
            refs.append(ArchiveRef(self.NAME, len(self._data), len(record.member)))
            self._data += record.member
        self._refs += refs
        return refs

    def sync(self) -> None:
        """Memory is as durable as it gets."""

    def get(self, ref: ArchiveRef) -> Page | Failure:
        place = f"{ref.file}:{ref.offset}"
        if ref.file != self.NAME:
            raise warc_record.damaged(place, "the file is missing")
        return warc_record.decode(bytes(self._data[ref.offset : ref.offset + ref.length]), place)

    def scan(self) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        for ref in list(self._refs):
            yield ref, self.get(ref)

    def size(self) -> int:
        return len(self._data)

    def close(self) -> None:
        """Nothing is open."""
