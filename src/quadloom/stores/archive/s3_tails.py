"""The tail of the WARC file being written, in the bucket as small objects, so that other machines can read it.

If a shared database says that a page is settled, all machines must be able to read its record: the disk of one machine
is not enough. An object cannot be appended to, so what each batch appends becomes an object of its own, named by the
offset at which it begins: `<writer>/quadloom-00000042.warc.gz.tail/000000000012345`. The objects of a tail, one after
the other, are the file, byte for byte; a batch is never split, so a record is always within one of them. When the whole
file is in the bucket and verified, its tail is removed. The tail of a machine that never comes back stays, and is read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path

from quadloom.errors import StoreError
from quadloom.model.outcome import ArchiveRef
from quadloom.stores.archive.s3_bucket import S3Bucket

_PART = re.compile(r"(?P<file>[A-Za-z0-9_-]+/quadloom-\d{8}\.warc\.gz)\.tail/(?P<start>\d{15})")
_DOWNLOAD = 8 * 1024 * 1024

Tail = Mapping[int, int]  # offset of each object → its bytes, in order


class Tails:
    """Safe for many threads."""

    def __init__(self, bucket: S3Bucket) -> None:
        self._bucket = bucket
        self._known: dict[str, dict[int, int]] = {}

    def put(self, file: str, start: int, data: bytes) -> None:
        """Durable on return. May be repeated, also with more bytes appended."""
        self._bucket.put(_key(file, start), data)

    def knows(self, file: str) -> bool:
        """Whether the tail was read before: then it is tried first."""
        return file in self._known

    def read(self, ref: ArchiveRef) -> bytes | None:
        """The record; None = no object has it (any more)."""
        for tail in (self._known.get(ref.file, {}), self._listed(ref.file)):
            starts = list(tail)
            place = bisect_right(starts, ref.offset) - 1
            if place < 0 or ref.offset + ref.length > starts[place] + tail[starts[place]]:
                continue
            try:
                return self._bucket.read(_key(ref.file, starts[place]), ref.offset - starts[place], ref.length)
            except FileNotFoundError:
                self._known.pop(ref.file, None)
        return None

    def download(self, file: str, target: Path) -> None:
        """The file up to the first gap."""
        end = 0
        with target.open("wb") as copy:
            for start, size in self._listed(file).items():
                if start != end:
                    break
                for offset in range(0, size, _DOWNLOAD):
                    copy.write(self._read(file, start, offset))
                end += size

    def remove(self, file: str) -> None:
        """A missing tail is no error."""
        self._bucket.remove_all([_key(file, start) for start in self._listed(file)])
        self._known.pop(file, None)

    def _listed(self, file: str) -> dict[int, int]:
        tail = tails_in(self._bucket.files(f"{file}.tail")).get(file, {})
        if tail:
            self._known[file] = tail
        return tail

    def _read(self, file: str, start: int, offset: int) -> bytes:
        try:
            return self._bucket.read(_key(file, start), offset, _DOWNLOAD)
        except FileNotFoundError as error:
            raise StoreError(f"the tail of {file} went while it was read", hint="read it again") from error


def tails_in(listing: Mapping[str, int]) -> dict[str, dict[int, int]]:
    """File → its tail, from the bucket's objects in order of their names."""
    found: dict[str, dict[int, int]] = {}
    for key, size in listing.items():
        if part := _PART.fullmatch(key):
            found.setdefault(part["file"], {})[int(part["start"])] = size
    return found


def bytes_of(tails: Mapping[str, Tail]) -> dict[str, int]:
    return {file: sum(tail.values()) for file, tail in tails.items()}


def _key(file: str, start: int) -> str:
    return f"{file}.tail/{start:015d}"
