"""The archive as WARC files: append-only, one gzip member per record, synced before anything is acknowledged.

Files are named by number only (`quadloom-00000042.warc.gz`, rising over all directories, so that name order is writing
order); nothing of a URL ever becomes part of a path. The file being written ends in `.open` and loses that ending when
it is closed, by rollover or at the end. After a crash the `.open` file is read once, cut after its last whole record
(what is cut was never synced, so never acknowledged) and closed. A closed file is never appended to; one that nothing
refers to any more can be removed as a whole.

Several directories (disks) take turns, file by file. A reference holds the name only, so files may move between disks.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from isal import isal_zlib

from quadloom.errors import DiskFull, StoreError
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page
from quadloom.stores.archive import warc_record
from quadloom.stores.protocols.archive import ArchiveRecord

_NAME = re.compile(r"quadloom-(\d{8})\.warc\.gz(\.open)?")
_OPEN = ".open"
_STEP = 1 << 16


class WarcArchive:
    """See `quadloom.stores.protocols.archive.Archive`. `read_only` leaves `.open` files alone.

    `after`: file numbers up to this one have been used, although the files are not here any more.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        *,
        file_bytes: int = 1 << 30,
        read_only: bool = False,
        after: int = 0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._directories = list(directories)
        self._file_bytes = file_bytes
        self._after = after
        self._clock = clock
        self._writer: _Writer | None = None
        self._paths: dict[str, Path] = {}
        if not read_only:
            for directory in self._directories:
                _make_directory(directory)
            self._recover()
        self._list()

    def _recover(self) -> None:
        for directory in self._directories:
            for path in sorted(directory.glob(f"*{_OPEN}")):
                if _NAME.fullmatch(path.name):
                    end = max((member.offset + member.length for member in members(path)), default=0)
                    os.truncate(path, end)
                    _close_file(path, keep=end > 0)

    def _list(self) -> None:
        self._paths = {
            path.name.removesuffix(_OPEN): path
            for directory in self._directories
            if directory.is_dir()
            for path in directory.iterdir()
            if _NAME.fullmatch(path.name)
        }

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        refs: list[ArchiveRef] = []
        pending: list[bytes] = []
        for record in records:
            writer = self._writer
            if writer is None or writer.end + sum(map(len, pending)) >= self._file_bytes:
                self._append(pending)
                pending = []
                writer = self._next_file()
            offset = writer.end + sum(map(len, pending))
            refs.append(ArchiveRef(writer.name, offset, len(record.member)))
            pending.append(record.member)
        self._append(pending)
        return refs

    def _append(self, members: list[bytes]) -> None:
        if members and self._writer is not None:
            self._writer.append(b"".join(members))

    def _next_file(self) -> _Writer:
        if self._writer is not None:
            self._paths[self._writer.name] = self._writer.finish()
        last = max([self._after, *(int(name[9:17]) for name in self._paths)])
        name = f"quadloom-{last + 1:08d}.warc.gz"
        directory = self._directories[last % len(self._directories)]
        self._writer = _Writer(directory / f"{name}{_OPEN}", warc_record.file_header(name, self._clock()))
        self._paths[name] = self._writer.path
        return self._writer

    def sync(self) -> None:
        if self._writer is not None:
            self._writer.sync()

    def get(self, ref: ArchiveRef) -> Page | Failure:
        return warc_record.decode(self._member(ref), _place(ref))

    def record(self, ref: ArchiveRef) -> ArchiveRecord:
        member = self._member(ref)
        return ArchiveRecord(warc_record.decode(member, _place(ref)).url, member)

    def _member(self, ref: ArchiveRef) -> bytes:
        place = _place(ref)
        for attempt in (0, 1):
            path = self._paths.get(ref.file)
            try:
                if path is None:
                    raise FileNotFoundError(errno.ENOENT, "the file is missing")
                with path.open("rb") as file:
                    file.seek(ref.offset)
                    return file.read(ref.length)
            except FileNotFoundError as error:
                if attempt:
                    raise warc_record.damaged(place, str(error)) from error
                self._list()  # the owner may have closed or begun a file since the last listing
            except OSError as error:
                raise warc_record.damaged(place, str(error)) from error
        raise AssertionError("unreachable")

    def scan(self) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        self._list()
        for name in sorted(self._paths):
            path = self._paths[name]
            for member in members(path):
                record = warc_record.parse(member.data, f"{name}:{member.offset}")
                if record is not None:
                    yield ArchiveRef(name, member.offset, member.length), record

    def files(self) -> dict[str, int]:
        self._list()
        ended = sorted(name for name, path in self._paths.items() if path.suffix != _OPEN)
        return {name: record_bytes(self._paths[name]) for name in ended}

    def remove(self, file: str) -> None:
        path = self._paths.get(file)
        if path is None:
            return
        if path.suffix == _OPEN:
            raise StoreError(f"{path} is being written", hint="remove it when it has been ended")
        try:
            path.unlink(missing_ok=True)
            sync_directory(path.parent)
        except OSError as error:
            raise _refusal(error, path) from error
        del self._paths[file]

    def size(self) -> int:
        return sum(path.stat().st_size for path in self._paths.values() if path.exists())

    def close(self) -> None:
        self.seal()

    def seal(self) -> None:
        if self._writer is not None:
            self._paths[self._writer.name] = self._writer.finish()
            self._writer = None


class _Writer:
    """The file being written."""

    def __init__(self, path: Path, header: bytes) -> None:
        self.path = path
        self.name = path.name.removesuffix(_OPEN)
        self.end = 0
        self._dirty = True
        try:
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            self.append(header)
            sync_directory(path.parent)
        except OSError as error:
            raise _refusal(error, path) from error

    def append(self, data: bytes) -> None:
        """All of it, or nothing: after a failed write the file is cut back to its former length."""
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._file, memoryview(data)[written:], self.end + written)
        except OSError as error:
            os.ftruncate(self._file, self.end)
            raise _refusal(error, self.path) from error
        self.end += len(data)
        self._dirty = True

    def sync(self) -> None:
        if self._dirty:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise _refusal(error, self.path) from error
            self._dirty = False

    def finish(self) -> Path:
        self.sync()
        os.close(self._file)
        return _close_file(self.path, keep=True)


def _place(ref: ArchiveRef) -> str:
    return f"{ref.file}:{ref.offset}"


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


def members(path: Path) -> Iterator[WarcMember]:
    """Each whole record. Ends without an error at a torn last record; raises `ArchiveDamaged` for one before others."""
    if path.stat().st_size == 0:
        return
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        offset = 0
        while offset < len(data):
            found = member_at(data, offset)
            if found is None:
                later = _next_record(data, offset + 1)
                if later is None:
                    return
                raise warc_record.damaged(f"{path.name}:{offset}", f"the next readable record is at {later}")
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
    except warc_record.UnpackError:
        return None
    if not unpacker.eof or not parts[0].startswith(b"WARC/1."):
        return None
    return position - len(unpacker.unused_data) - offset, b"".join(parts)


def _next_record(data: mmap.mmap, start: int) -> int | None:
    while (start := data.find(b"\x1f\x8b\x08", start)) >= 0:
        if member_at(data, start) is not None:
            return start
        start += 1
    return None


def _close_file(path: Path, *, keep: bool) -> Path:
    """Give a file its final name, or remove it if it has no whole record."""
    final = path.with_name(path.name.removesuffix(_OPEN))
    if keep:
        path.rename(final)
    else:
        path.unlink()
    sync_directory(path.parent)
    return final


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refusal(error, directory) from error


def sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _refusal(error: OSError, path: Path) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return DiskFull(
            f"no room left to write {path}; all that was acknowledged is safe",
            hint="free some space, or name further disks in stores.directories, and run the same command again",
        )
    return StoreError(
        f"cannot write {path}: {error.strerror}", hint="check that the directory exists and may be written"
    )
