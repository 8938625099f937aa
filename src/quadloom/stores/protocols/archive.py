"""The archive: an append-only record of everything that servers said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page


class ArchiveRecord(msgspec.Struct, frozen=True):
    """A record ready to be appended: one gzip member, already compressed (`warc_record.encode` makes it)."""

    key: str
    member: bytes


class Archive(Protocol):
    """Append-only record of everything that servers said. Only whole files ever go (`quadloom.maintenance.prune`)."""

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        """Append a batch. The references become readable after `sync`."""
        ...

    def sync(self) -> None:
        """Return when all that was put is durable for all who share the catalog: on disk and synced, or in a bucket."""
        ...

    def get(self, ref: ArchiveRef) -> Page | Failure:
        """The page as it was fetched. Raises `ArchiveDamaged` with the place where it cannot be read."""
        ...

    def scan(self) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        """All records in order of writing. A torn last record (crash before sync) ends the scan silently."""
        ...

    def record(self, ref: ArchiveRef) -> ArchiveRecord:
        """The record byte for byte, ready to be put again. Raises `ArchiveDamaged` where `get` would."""
        ...

    def seal(self) -> None:
        """End the file being written, durably; what is put next begins another one."""
        ...

    def files(self) -> dict[str, int]:
        """Ended files in order of writing → bytes of their records, what describes the file itself not counted."""
        ...

    def remove(self, file: str) -> None:
        """Delete an ended file; durable on return, no error where it is gone. `StoreError` for one being written."""
        ...

    def size(self) -> int: ...

    def close(self) -> None: ...
