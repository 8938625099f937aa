"""The archive as WARC files: append-only, one gzip member per record, synced before anything is acknowledged.

Files are named by number only (`quadloom-00000042.warc.gz`, rising over all directories, so that name order is writing
order); nothing of a URL ever becomes part of a path. The file being written ends in `.open` and loses that ending when
it is closed, by rollover or at the end. After a crash the `.open` file is read once, cut after its last whole record
(what is cut was never synced, so never acknowledged) and closed. A closed file is never appended to; one that nothing
refers to any more can be removed as a whole.

Several directories (disks) take turns, file by file. A reference holds the name only, so files may move between disks.
A directory that is full or fails is left out: its file is ended, and the batch goes to a new one in the next directory.
It is tried again when a file begins and it has room, or a minute later, or when no other is left; only then is the
error raised. `directories.json` in each of them names all that were ever used and the last number, so that a directory
that is missing later can be named, and its numbers are not used again.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from quadloom.errors import StoreError
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page
from quadloom.process.clock import unix_time
from quadloom.process.durable import make_folder, sync
from quadloom.stores.archive import warc_record
from quadloom.stores.archive.disks import (
    Disk,
    KnownDirectories,
    absolute,
    read_directories,
    refusal,
    write_directories,
)
from quadloom.stores.archive.warc_members import (
    MemberArchive,
    all_records,
    end_of_records,
    place_of,
    readable_records,
    record_bytes,
)
from quadloom.stores.protocols.archive import MISSING_FILE, ArchiveRecord, DiskState

_NAME = re.compile(r"quadloom-(\d{8})\.warc\.gz(\.open)?")
_OPEN = ".open"


class WarcArchive(MemberArchive):
    """See `quadloom.stores.protocols.archive.Archive`. `read_only` leaves `.open` files alone.

    `after`: file numbers up to this one have been used, although the files are not here any more. `series`: the names
    of files begin so in references, `<series>/quadloom-00000042.warc.gz`, if several archives make up one.
    """

    def __init__(
        self,
        directories: Sequence[Path],
        *,
        file_bytes: int = 1 << 30,
        read_only: bool = False,
        after: int = 0,
        series: str = "",
        clock: Callable[[], float] = unix_time,
    ) -> None:
        self._prefix = f"{series}/" if series else ""
        self._disks = [Disk(directory) for directory in directories]
        self._file_bytes = file_bytes
        self._clock = clock
        self._writer: _Writer | None = None
        self._paths: dict[str, Path] = {}
        if not read_only:
            self._prepare()
        self._list()
        known = read_directories(directories)
        self._known = tuple(dict.fromkeys((*known.directories, *map(absolute, directories))))
        self._last = max([after, known.last, *(int(entry.name[9:17]) for entry in self._entries())])

    def _prepare(self) -> None:
        """Create directories, and end the files of a crash. Raises if not even one directory can be used."""
        errors = []
        for disk in self._disks:
            try:
                make_folder(disk.path)
                _recover(disk.path)
            except OSError as error:
                errors.append(disk.leave_out(error, self._clock()))
        if len(errors) == len(self._disks):
            raise errors[0]

    def _list(self) -> None:
        files = (entry for entry in self._entries() if entry.is_file(follow_symlinks=False) or Path(entry).is_file())
        self._paths = {self._prefix + entry.name.removesuffix(_OPEN): Path(entry) for entry in files}

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        """Everything with a name like those of files. Others may have put folders or broken links there."""
        for disk in self._disks:
            with (
                suppress(OSError),
                os.scandir(disk.path) as entries,
            ):  # pages of a disk that fails are reported when read
                yield from (entry for entry in entries if _NAME.fullmatch(entry.name))

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        refs: list[ArchiveRef] = []
        failed: set[Path] = set()  # directories that could not take this batch
        while len(refs) < len(records):
            writer = self._writer
            if writer is None or writer.end >= self._file_bytes:
                writer = self._next_file(failed)
            begin, members = writer.end, self._fitting(records[len(refs) :], writer.end)
            try:
                writer.append(b"".join(members))
            except StoreError as error:
                failed.add(writer.disk.path)
                self._move(writer, error, failed)
                continue
            writer.disk.problem = ""
            for member in members:
                refs.append(ArchiveRef(writer.name, begin, len(member)))
                begin += len(member)
        return refs

    def _fitting(self, records: Sequence[ArchiveRecord], end: int) -> list[bytes]:
        """The first of the records, as many as one file takes."""
        members = []
        for record in records:
            if end >= self._file_bytes:
                break
            members.append(record.member)
            end += len(record.member)
        return members

    def _next_file(self, failed: Collection[Path]) -> _Writer:
        if self._writer is not None:
            self._end(self._writer)
        return self._begin(failed)

    def _move(self, writer: _Writer, error: StoreError, failed: Collection[Path]) -> None:
        """Go on in another directory. Raises `error` if there is none: then the file stays, to be tried again."""
        writer.disk.leave_out(error, self._clock())
        if len(failed) == len(self._disks):
            raise error
        try:
            self._begin(failed)
        except StoreError:
            raise error from None
        self._end(writer)

    def _begin(self, failed: Collection[Path]) -> _Writer:
        """A new file in the next directory that takes one: in turn, those that have failed last."""
        now = self._clock()
        first = self._last % len(self._disks)
        disks = [disk for disk in (*self._disks[first:], *self._disks[:first]) if disk.path not in failed]
        disks.sort(key=lambda disk: not disk.is_promising(now))
        self._last += 1
        file = f"quadloom-{self._last:08d}.warc.gz"
        name = self._prefix + file
        error: StoreError | None = None
        for disk in disks:
            try:
                self._writer = _Writer(disk, name, warc_record.file_header(file, now))
            except StoreError as refused:
                error = error or disk.leave_out(refused, now)
                continue
            self._paths[name] = self._writer.path
            if len(self._known) > 1:
                write_directories(self._disks, KnownDirectories(self._last, self._known))
            return self._writer
        raise error or StoreError("the archive has no directory to write to")

    def _end(self, writer: _Writer) -> None:
        if self._writer is writer:
            self._writer = None
        if writer.is_empty:
            writer.discard()
            del self._paths[writer.name]
            return
        try:
            self._paths[writer.name] = writer.finish()
        except StoreError as error:
            writer.disk.leave_out(error, self._clock())
            writer.cut()
            raise

    def sync(self) -> None:
        writer = self._writer
        if writer is None:
            return
        try:
            writer.sync()
        except StoreError as error:
            # What was put since the last sync may be lost, so the batch will be put again: into another file.
            writer.disk.leave_out(error, self._clock())
            writer.cut()
            self._writer = None
            raise

    def disks(self) -> tuple[DiskState, ...]:
        configured = {absolute(disk.path) for disk in self._disks}
        states = [DiskState(str(disk.path), disk.problem) for disk in self._disks]
        return (*states, *(DiskState(name, "", configured=False) for name in self._known if name not in configured))

    def _member(self, ref: ArchiveRef) -> bytes:
        place = place_of(ref)
        for attempt in (0, 1):
            path = self._paths.get(ref.file)
            try:
                if path is None:
                    raise FileNotFoundError(errno.ENOENT, MISSING_FILE)
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
            yield from all_records(self._paths[name], name)

    def read_file(self, file: str) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        if file not in self._paths or not self._paths[file].exists():
            self._list()
        path = self._paths.get(file)
        if path is not None:
            yield from readable_records(path, file)

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
            sync(path.parent)
        except OSError as error:
            raise refusal(error, path) from error
        del self._paths[file]

    def paths(self) -> dict[str, Path]:
        """Where each file is now; one that is being written ends in `.open`."""
        self._list()
        return dict(self._paths)

    def size(self) -> int:
        return sum(path.stat().st_size for path in self._paths.values() if path.exists())

    def close(self) -> None:
        self.seal()

    def seal(self) -> None:
        if self._writer is not None:
            self._end(self._writer)


class _Writer:
    """The file being written."""

    def __init__(self, disk: Disk, name: str, header: bytes) -> None:
        self.disk = disk
        self.name = name
        self.path = disk.path / f"{name.rpartition('/')[2]}{_OPEN}"
        self.end = 0
        self._synced = 0
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise refusal(error, self.path) from error
        try:
            self.append(header)
            sync(self.path.parent)
        except OSError as error:
            self.discard()
            raise refusal(error, self.path) from error
        except StoreError:
            self.discard()
            raise
        self._header = len(header)

    @property
    def is_empty(self) -> bool:
        """It holds no record but the one that describes it."""
        return self.end <= self._header

    def append(self, data: bytes) -> None:
        """All of it, or nothing: after a failed write the file is cut back to its former length."""
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self._file, memoryview(data)[written:], self.end + written)
        except OSError as error:
            with suppress(OSError):  # a disk that fails altogether: the recovery cuts what is not whole
                os.ftruncate(self._file, self.end)
            raise refusal(error, self.path) from error
        self.end += len(data)

    def sync(self) -> None:
        if self._synced < self.end:
            try:
                os.fsync(self._file)
            except OSError as error:
                raise refusal(error, self.path) from error
            self._synced = self.end

    def finish(self) -> Path:
        """Sync, and give the file its final name. Raises `StoreError` if what was put may be lost."""
        self.sync()
        os.close(self._file)
        try:
            return _close_file(self.path, keep=True)
        except OSError:
            return self.path  # it keeps its name until the next start, and can be read

    def cut(self) -> None:
        """Give the file up after a failed sync, without what was not synced."""
        with suppress(OSError):
            os.ftruncate(self._file, self._synced)
        with suppress(OSError):
            os.close(self._file)
        with suppress(OSError):
            _close_file(self.path, keep=self._synced > 0)

    def discard(self) -> None:
        """Remove a file that holds nothing."""
        with suppress(OSError):
            os.close(self._file)
        with suppress(OSError):
            self.path.unlink()


def _close_file(path: Path, *, keep: bool) -> Path:
    """Give a file its final name, or remove it if it has no whole record."""
    final = path.with_name(path.name.removesuffix(_OPEN))
    if keep:
        path.rename(final)
    else:
        path.unlink()
    sync(path.parent)
    return final


def _recover(directory: Path) -> None:
    """End the files that a crash has left open, after their last whole record. No crash leaves a link, and cutting one
    would cut a file elsewhere."""
    for path in sorted(directory.glob(f"*{_OPEN}")):
        if _NAME.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            end = end_of_records(path)
            os.truncate(path, end)
            sync(path)
            _close_file(path, keep=end > 0)
