"""The records of one WARC file, in their order: each is a gzip member of its own."""

from __future__ import annotations

import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from isal import isal_zlib

from quadloom.errors import ArchiveDamaged
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page
from quadloom.stores.archive import warc_record
from quadloom.stores.protocols.archive import ArchiveRecord

_STEP = 1 << 16
_BEGIN = b"WARC/1."


def record_bytes(path: Path) -> int:
    """Bytes of the file without the `warcinfo` record at its beginning."""
    size = path.stat().st_size
    if size == 0:
        return 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        first = member_at(data, 0)
        return size - first[0] if first is not None else size


class WarcMember(NamedTuple):
    """A whole record of a file: its place there, and its bytes unpacked."""

    offset: int
    length: int
    data: bytes


class MemberArchive(ABC):
    """Reads records, wherever their files are."""

    def get(self, ref: ArchiveRef) -> Page | Failure:
        return warc_record.decode(self._member(ref), place_of(ref))

    def record(self, ref: ArchiveRef) -> ArchiveRecord:
        member = self._member(ref)
        return ArchiveRecord(warc_record.decode(member, place_of(ref)).url, member)

    @abstractmethod
    def _member(self, ref: ArchiveRef) -> bytes:
        """The bytes of a record. Raises `ArchiveDamaged` if they cannot be read."""


def place_of(ref: ArchiveRef) -> str:
    return f"{ref.file}:{ref.offset}"


def all_records(path: Path, file: str) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
    """Each record about a page. `file`: the name that references to it have. Ends without an error at a torn last
    record; raises `ArchiveDamaged` for one before others."""
    end = 0
    for member in _readable_members(path):
        if member.offset != end:
            raise warc_record.damaged(f"{path.name}:{end}", f"the next readable record is at {member.offset}")
        ref = ArchiveRef(file, member.offset, member.length)
        record = warc_record.parse(member.data, place_of(ref))
        if record is not None:
            yield ref, record
        end += member.length


def readable_records(path: Path, file: str) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
    """The same, without records that cannot be read."""
    for member in _readable_members(path):
        ref = ArchiveRef(file, member.offset, member.length)
        with suppress(ArchiveDamaged):
            record = warc_record.parse(member.data, place_of(ref))
            if record is not None:
                yield ref, record


def _readable_members(path: Path) -> Iterator[WarcMember]:
    """Each record that can be unpacked, also those that follow damaged bytes."""
    if path.stat().st_size == 0:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        data.madvise(mmap.MADV_SEQUENTIAL)
        offset: int | None = 0
        while offset is not None and offset < len(data):
            found = member_at(data, offset)
            if found is None:
                offset = _next_record(data, offset + 1)
                continue
            length, unpacked = found
            yield WarcMember(offset, length, unpacked)
            offset += length


def member_at(data: mmap.mmap | bytes, offset: int) -> tuple[int, bytes] | None:
    """Length and unpacked bytes of the record at `offset`; None = there is no whole record."""
    unpacker = isal_zlib.decompressobj(31)
    parts: list[bytes] = []
    size, position = 0, offset
    try:
        while not unpacker.eof and position < len(data) and size <= warc_record.MAX_MEMBER_BYTES:
            piece = data[position : position + _STEP]
            position += len(piece)
            parts.append(unpacker.decompress(piece))
            size += len(parts[-1])
            if not parts[0].startswith(
                _BEGIN
            ):  # found out at once: damage is searched for every three bytes like these
                return None
    except warc_record.UnpackError:
        return None
    if not unpacker.eof or not parts:
        return None
    return position - len(unpacker.unused_data) - offset, b"".join(parts)


def _next_record(data: mmap.mmap, start: int) -> int | None:
    while (start := data.find(b"\x1f\x8b\x08", start)) >= 0:
        if member_at(data, start) is not None:
            return start
        start += 1
    return None


def end_of_records(path: Path) -> int:
    """Where the last whole record of a file ends. A power cut may lose the first of two writes that were not synced and
    keep the second: what is damaged before a whole record stays, since that record may be acknowledged."""
    if path.stat().st_size == 0:
        return 0
    end = 0
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        offset: int | None = 0
        while offset is not None:
            found = member_at(data, offset)
            if found is not None:
                offset = end = offset + found[0]
            else:
                offset = _next_record(data, offset + 1)
    return end
