"""The archive as WARC files in an S3 bucket, written on this machine first.

An object cannot be appended to, and a page must be on a disk before it is settled. So records are written to a local
WARC file first (`WarcArchive`: append, fsync), and when that file ends, by size or by age, it is uploaded as a whole.
The life of a file, and what a crash at each step leaves:

1. open      appended to and synced on this machine. A crash cuts an unacknowledged tail; the file is sealed.
2. sealed    never changed again. A crash leaves it here; the next start uploads it.
3. uploaded  as one object, which appears whole or not at all. A crash leaves both; the next start sees the object.
4. verified  size and checksum are those of the local file. Only now
5. dropped   the local file is removed.

A reference is read from the local file while it exists, otherwise by a ranged GET. If the bucket cannot be reached, the
crawl continues for an hour, and files accumulate here; opening and closing the archive need the bucket.

That is enough if the frontier is on this machine too. If many machines share it (`shared`), what is settled must
survive this machine: `sync` then returns when each record is in the bucket as well, in the tail of its file
(`s3_tails`), and a bucket that cannot be reached stops the worker.

Each writer has a folder of its own in the bucket, `<writer>/quadloom-00000042.warc.gz`, so many machines can share one
without coordination. The name is chosen at random once, or set by `stores.archive_writer`.
"""

from __future__ import annotations

import re
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

from quadloom.errors import SettingsError, StoreError
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page
from quadloom.process.clock import unix_time
from quadloom.process.durable import make_folder, sync, write_file
from quadloom.process.retry import backoff, retry, within
from quadloom.stores.archive import warc_record
from quadloom.stores.archive.s3_bucket import RecordCache, S3Bucket
from quadloom.stores.archive.s3_tails import Tails, bytes_of, tails_in
from quadloom.stores.archive.warc import WarcArchive
from quadloom.stores.archive.warc_members import (
    MemberArchive,
    all_records,
    member_at,
    place_of,
    readable_records,
    record_bytes,
)
from quadloom.stores.protocols.archive import ArchiveRecord, DiskState

_FILE = re.compile(r"(?P<writer>[A-Za-z0-9][A-Za-z0-9_-]{0,63})/(?P<name>quadloom-\d{8}\.warc\.gz)")
_WRITER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_OPEN = ".open"
_HEADER_BYTES = 4096  # the first record of a file is far shorter
_CACHE_BYTES = 16 * 1024 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_OUTAGE = 60.0  # seconds for which `sync` waits for a bucket that must have the records
_PATIENCE = 3600.0  # seconds for which uploads may fail before the crawl is stopped: disks are finite


class S3Archive(MemberArchive):
    """See `quadloom.stores.protocols.archive.Archive`. `folder` is the spool; one process writes to it at a time.

    `reached` is called after each step of an upload: tests end the process there.
    """

    def __init__(
        self,
        bucket: S3Bucket,
        folder: Path,
        *,
        writer: str = "",
        file_bytes: int = 1 << 30,
        upload_seconds: float = 900.0,
        shared: bool = False,
        read_only: bool = False,
        clock: Callable[[], float] = unix_time,
        reached: Callable[[str], None] = lambda _step: None,
    ) -> None:
        self._bucket = bucket
        self._folder = folder
        self._upload_seconds = upload_seconds
        self._shared = shared
        self._tails = Tails(bucket)
        self._uploaded: dict[str, int] = {}  # file → bytes of it that its tail in the bucket holds
        self._appended: dict[str, int] = {}  # … and that it has, of files written to since the last sync
        self._clock = clock
        self._reached = reached
        self._cache = RecordCache(_CACHE_BYTES)
        self._headers: dict[str, int] = {}  # file in the bucket → bytes of the record that describes it
        self._open = ""
        self._opened_at = 0.0
        self._uploading = threading.Lock()
        self._wake = threading.Event()
        self._closed = False
        self._failure: StoreError | None = None
        self._failing_since = 0.0
        self._spool: WarcArchive | None = None
        if read_only:
            self._writer = writer or _known_writer(folder)
            return
        self._writer = _checked(writer or _known_writer(folder) or _new_writer(folder))
        found = bucket.files(self._writer)
        used = (int(name[-16:-8]) for name in (*found, *tails_in(found)) if _FILE.fullmatch(name))
        self._spool = WarcArchive(
            [folder], file_bytes=file_bytes, after=max(used, default=0), series=self._writer, clock=clock
        )
        self._thread = threading.Thread(target=self._run, name="upload", daemon=True)
        self._thread.start()

    def put(self, records: Sequence[ArchiveRecord]) -> list[ArchiveRef]:
        refs = self._writable.put(records)
        if refs and refs[-1].file != self._open:
            self._open, self._opened_at = refs[-1].file, self._clock()
            self._wake.set()  # this batch, or the one before, may have ended a file
        if self._shared:
            self._appended.update((ref.file, ref.offset + ref.length) for ref in refs)
        return refs

    def sync(self) -> None:
        """Also raises the error that has prevented uploads for an hour; the records are safe nevertheless."""
        self._writable.sync()
        if self._shared:
            # A server that restarts must not end a worker.
            retry(self._share, within(_OUTAGE, repeat(_FIRST_PAUSE), clock=self._clock), StoreError)
        if self._failure is not None and self._clock() - self._failing_since >= _PATIENCE:
            raise self._failure
        if self._open and self._clock() - self._opened_at >= self._upload_seconds:
            self._end_file()
            self._wake.set()

    def _share(self) -> None:
        """Copy what was appended since the last call into the bucket. May be repeated."""
        for file, end in self._appended.items():
            start = self._uploaded.get(file, 0)
            data = self._read_local(ArchiveRef(file, start, end - start)) if start < end else None
            if data is not None:  # otherwise the file has ended meanwhile, and is in the bucket as a whole
                self._tails.put(file, start, data)
                self._uploaded[file] = end
                self._reached("shared")
            if file != self._open and self._bucket.has(file):
                self._tails.remove(file)  # again: the upload had removed the tail before this part was added
        for file in self._appended.keys() - {self._open}:
            self._uploaded.pop(file, None)
        self._appended.clear()

    def seal(self) -> None:
        self._end_file()
        self._upload()

    def scan(self) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        listing = self._bucket.files()
        for file in sorted({*_whole(listing), *tails_in(listing), *self._local()}):
            with self._as_path(file) as path:
                yield from all_records(path, file)

    def read_file(self, file: str) -> Iterator[tuple[ArchiveRef, Page | Failure]]:
        """One download instead of a request for each record."""
        if _FILE.fullmatch(file) is None:
            return
        with self._as_path(file) as path:
            if path.exists():
                yield from readable_records(path, file)

    def files(self) -> dict[str, int]:
        found = {file: size - self._header(file) for file, size in _whole(self._bucket.files()).items()}
        for file, path in self._local().items():
            if path.suffix != _OPEN and file not in found:
                found[file] = record_bytes(path)
        return dict(sorted(found.items()))

    def remove(self, file: str) -> None:
        if file == self._open:
            raise StoreError(f"{file} is being written", hint="remove it when it has been ended")
        with self._uploading:
            path = self._local().get(file)
            if path is not None:
                self._drop(path)
            if _FILE.fullmatch(file):
                self._bucket.remove(file)
            self._cache.forget(file)
            self._headers.pop(file, None)

    def size(self) -> int:
        sizes = {file: path.stat().st_size for file, path in self._local().items()}
        listing = self._bucket.files()
        return sum({**bytes_of(tails_in(listing)), **sizes, **_whole(listing)}.values())

    def disks(self) -> tuple[DiskState, ...]:
        return ()  # its files are on a disk only until they are uploaded

    def close(self) -> None:
        """End the file, and return when everything is in the bucket. Raises `StoreError` if it cannot be reached; the
        files then wait here for the next start."""
        if self._spool is None or self._closed:
            return
        self._end_file()
        self._closed = True
        self._wake.set()
        self._thread.join()
        self._upload()

    @property
    def _writable(self) -> WarcArchive:
        if self._spool is None:
            raise StoreError("this view of the archive is read-only", hint="open the warehouse for writing")
        return self._spool

    def _end_file(self) -> None:
        self._writable.seal()
        self._uploaded.pop(self._open, None)
        self._open = ""

    def _run(self) -> None:
        """Upload in the background. Failures are retried, and finally by `close`, which raises them."""
        pause, failures = 0.0, 0  # at once, what an earlier process left
        while not self._closed:
            self._wake.wait(pause)
            self._wake.clear()
            try:
                self._upload()
                self._failure, failures, pause = None, 0, _LONGEST_PAUSE
            except StoreError as error:
                if self._failure is None:
                    self._failing_since = self._clock()
                self._failure = error
                failures += 1
                pause = backoff(failures, _FIRST_PAUSE, _LONGEST_PAUSE)

    def _upload(self) -> None:
        """Upload every sealed file, oldest first, and remove it here."""
        with self._uploading:
            for file, path in sorted(self._local().items()):
                if path.suffix == _OPEN:
                    continue
                self._reached("sealed")
                self._bucket.upload(path, file)
                self._reached("uploaded")
                self._bucket.verify(path, file)
                self._reached("verified")
                self._tails.remove(file)
                self._drop(path)
                self._reached("dropped")

    def _drop(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        sync(path.parent)

    def _local(self) -> dict[str, Path]:
        if not self._folder.is_dir():
            return {}
        paths = {f"{self._writer}/{path.name.removesuffix(_OPEN)}": path for path in self._folder.iterdir()}
        return {file: path for file, path in paths.items() if _FILE.fullmatch(file)}

    def _header(self, file: str) -> int:
        if file not in self._headers:
            first = member_at(self._bucket.read(file, 0, _HEADER_BYTES), 0)
            self._headers[file] = first[0] if first is not None else 0
        return self._headers[file]

    def _member(self, ref: ArchiveRef) -> bytes:
        if _FILE.fullmatch(ref.file) is None:
            raise warc_record.damaged(place_of(ref), "there is no such file")
        data = self._read_local(ref)
        if data is None:
            data = self._cache.get(ref)
        if data is None:
            data = self._read_bucket(ref)
            if data is None:
                data = self._read_local(ref)  # it may have been begun meanwhile
            if data is None:
                raise warc_record.damaged(place_of(ref), "the file is neither here nor in the bucket (yet)")
            self._cache.put(ref, data)
        return data

    def _read_bucket(self, ref: ArchiveRef) -> bytes | None:
        """From the whole file or its tail. Each is tried twice: a tail is removed when the whole file is uploaded."""
        sources = [self._read_whole, self._tails.read]
        if self._tails.knows(ref.file):
            sources.reverse()
        for read in (*sources, *sources):
            data = read(ref)
            if data is not None:
                return data
        return None

    def _read_whole(self, ref: ArchiveRef) -> bytes | None:
        try:
            return self._bucket.read(ref.file, ref.offset, ref.length)
        except FileNotFoundError:
            return None

    def _read_local(self, ref: ArchiveRef) -> bytes | None:
        writer, _, name = ref.file.partition("/")
        if writer != self._writer:
            return None
        for path in (self._folder / f"{name}{_OPEN}", self._folder / name):
            try:
                with path.open("rb") as file:
                    file.seek(ref.offset)
                    return file.read(ref.length)
            except FileNotFoundError:
                continue
        return None

    @contextmanager
    def _as_path(self, file: str) -> Iterator[Path]:
        """The file on this machine: the local one, or a temporary copy."""
        with tempfile.TemporaryDirectory(dir=self._folder if self._folder.is_dir() else None) as place:
            copy = Path(place) / file.partition("/")[2]
            path = self._local().get(file)
            if path is not None:
                try:
                    copy.hardlink_to(path)  # it may be uploaded and dropped while it is read
                except FileNotFoundError:
                    path = None
            if path is None:
                (self._bucket if self._bucket.has(file) else self._tails).download(file, copy)
            yield copy


def _whole(listing: dict[str, int]) -> dict[str, int]:
    return {file: size for file, size in listing.items() if _FILE.fullmatch(file)}


def _known_writer(folder: Path) -> str:
    try:
        return (folder / "writer").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""


def _new_writer(folder: Path) -> str:
    """64 random bits: no two warehouses share a name. Durable before the first file is named after it."""
    name = secrets.token_hex(8)
    path = folder / "writer"
    try:
        make_folder(folder)
        write_file(path, name.encode())
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {error.strerror}", hint="check that the directory may be written"
        ) from error
    return name


def _checked(writer: str) -> str:
    if _WRITER.fullmatch(writer) is None:
        raise SettingsError(
            f"stores.archive_writer = {writer!r} cannot be a folder",
            hint="use up to 64 letters, digits, hyphens and underscores",
        )
    return writer
