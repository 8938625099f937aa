"""The archive: an append-only record of everything that servers said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import msgspec

from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page

MISSING_FILE = "the file is missing"  # the reason in `ArchiveDamaged` if none of an archive's directories has it


class ArchiveRecord(msgspec.Struct, frozen=True):
    """A record ready to be appended: one gzip member, already compressed (`warc_record.encode` makes it)."""

    key: str
    member: bytes


class DiskState(msgspec.Struct, frozen=True):
    """A directory of the archive. `problem`: why no file is written there now; empty = all is well.

    `configured`: False = files were written there once, but the settings do not name it any more.
    """

    directory: str
    problem: str = ""
    configured: bool = True


class Archive(Protocol):
    """An append-only record of everything that servers said. Only whole files are ever removed
    (`quadloom.maintenance.removal.prune`).

    Guarantees: what was put before a `sync` that returned survives a crash; a reference stays valid until its file is
    removed; records are never changed.
    """

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        """Append a batch. Returns one reference per record, readable after `sync`. If it raises, nothing of the batch
        counts, and it may be put again."""
        ...

    def sync(self) -> None:
        """Return when everything that was put is durable for all who share the catalog: synced to disk, or in a
        bucket."""
        ...

    def get(self, ref: ArchiveRef) -> Page | Failure:
        """The page as it was fetched. Raises `ArchiveDamaged` with the place if it cannot be read."""
        ...

    def scan(self) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        """All records in order of writing. A torn last record (a crash before `sync`) ends the scan without an
        error."""
        ...

    def read_file(self, file: str) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        """All records of one file in their order, read as a whole: for work on most pages of an archive. Records that
        cannot be read are left out (`get` gives the reason), and a missing file has none."""
        ...

    def record(self, ref: ArchiveRef) -> ArchiveRecord:
        """The record byte for byte, ready to be put again. Raises `ArchiveDamaged` if `get` would."""
        ...

    def seal(self) -> None:
        """End the file being written, durably; the next `put` begins another one."""
        ...

    def files(self) -> dict[str, int]:
        """Ended files in order of writing → bytes of their records, without the record that describes the file."""
        ...

    def remove(self, file: str) -> None:
        """Delete an ended file; durable on return. A missing file is no error; one being written is a `StoreError`."""
        ...

    def size(self) -> int:
        """Bytes of all files."""
        ...

    def disks(self) -> tuple[DiskState, ...]:
        """The directories that files are written to, in their order; none for an archive that is not on disks."""
        ...

    def close(self) -> None: ...
