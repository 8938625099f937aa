"""The records of a WARC file, one by one. A bad record costs itself: it is reported, and reading goes on after it.

The WARC library stops at the first record that it cannot read, and believes every length: a record that announces more
bytes than it has swallows all that follow. So lengths are checked against what is there, and after a bad record the
file is searched for the next beginning: a gzip member that unpacks to a WARC header, or such a header itself. Files of
compressed records are searched for compressed ones only, since a body may contain anything. It also takes a gzip member
without content for the end of the file; some tools end each file with one, and files are joined.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple

import msgspec
from fastwarc.warc import ArchiveIterator, WarcRecord

from quadloom.model.finding import Finding

_HEADERS = 64 * 1024
_PIECE = 1 << 20
_FIRST_PIECE = 4096  # of a member: what was read beyond its end is read again
_FREE_PROBLEMS = 100  # bad records of one file; each may cost a pass over the rest of it
_MOST_PASSES, _FREE_BYTES = 4, 256 << 20  # over the file, for more of them
_DEFLATE_RATIO = 1100  # no gzip member unpacks to more than 1032 times its size
_GZIP, _ZSTD, _LZ4 = b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"
_HEADER = rb"WARC/1\.[0-9]\r?\n[A-Za-z-]{1,40}:"
_STARTS = {
    "gzip": re.compile(re.escape(_GZIP)),
    "zstd": re.compile(re.escape(_ZSTD)),
    "lz4": re.compile(re.escape(_LZ4)),
    "plain": re.compile(_HEADER),
    "unknown": re.compile(rb"%s|%s|%s" % (re.escape(_GZIP), re.escape(_ZSTD), _HEADER)),
}
_WITH_PAGES: tuple[Literal["response", "resource", "conversion"], ...] = ("response", "resource", "conversion")
_WITHOUT_PAGES = frozenset(("warcinfo", "request", "metadata", "revisit", "continuation"))
_ADVICE = "repair the file with a WARC tool"
_LENGTH = re.compile(r"[0-9]{1,15}\Z", re.ASCII)


class WarcBlock(msgspec.Struct, frozen=True):
    """A record that may hold a page. `is_long`: its block has more bytes than were asked for."""

    offset: int
    kind: Literal["response", "resource", "conversion"]
    headers: tuple[tuple[str, str], ...]
    block: bytes
    is_long: bool
    date: float = 0.0

    def header(self, name: str) -> str:
        return next((value for known, value in self.headers if known.lower() == name), "")


class _BadRecord(Exception):
    """`position`: where the search for the next record begins. `is_exact`: the bad record begins at `offset`; otherwise
    something after that is bad."""

    def __init__(
        self, message: str, offset: int, position: int, *, is_exact: bool = True, is_cut: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.position = position
        self.is_exact = is_exact
        self.is_cut = is_cut
        self.bytes_read = 0  # in vain


class _EmptyMember(Exception):
    """The library has stopped there. `position`: the next member that has content."""

    def __init__(self, position: int) -> None:
        super().__init__()
        self.position = position


class _Member(NamedTuple):
    """A gzip member. `end` None = the file breaks off within it."""

    begin: int
    end: int | None
    is_empty: bool


def warc_blocks(
    path: Path, most: int, report: Callable[[Finding], None], not_taken: Counter[str], first: int = 0
) -> Iterator[WarcBlock]:
    """Records that may contain a page, in the order of the file from the record at `first` on, with up to `most` bytes
    of each. `not_taken` counts the others by their kind."""
    start: int | None = first
    vague: Finding | None = None  # reported if the next record can be read; else that record is the bad one
    problems = wasted = 0
    most_wasted = _MOST_PASSES * path.stat().st_size + _FREE_BYTES
    while start is not None and (problems < _FREE_PROBLEMS or wasted < most_wasted):
        try:
            for block in _until_bad(path, start, most, not_taken):
                if vague is not None:
                    report(vague)
                    vague = None
                if block is not None:
                    yield block
            return
        except _EmptyMember as empty:
            start = empty.position
        except _BadRecord as bad:
            problems += 1
            start = next_record(path, bad.position)
            wasted += bad.bytes_read + (start or most_wasted) - bad.position
            finding = _finding(path, bad, is_last=start is None)
            vague = None if bad.is_exact else finding
            if bad.is_exact:
                report(finding)
    if vague is not None:
        report(vague)
    if start is not None:
        message = f"{path.name}: {problems} bad records, too many; nothing from offset {start} on was read"
        report(Finding("warc-record", message, "error", "fetch", advice=_ADVICE))


def next_record(path: Path, position: int) -> int | None:
    """The offset of the first record that begins at `position` or later."""
    with path.open("rb") as stream:
        pattern = _STARTS[_packing(stream)]
        while True:
            stream.seek(position)
            piece = stream.read(_PIECE)
            for found in pattern.finditer(piece):
                if _begins_record(stream, position + found.start()):
                    return position + found.start()
            if len(piece) < _PIECE:
                return None
            position += _PIECE - 64  # a start may lie across the border


def _packing(stream: BinaryIO) -> str:
    head = stream.read(5)
    if head.startswith(_GZIP):
        return "gzip"
    if head.startswith(_ZSTD):
        return "zstd"
    if head.startswith(_LZ4):
        return "lz4"
    return "plain" if head == b"WARC/" else "unknown"


def _begins_record(stream: BinaryIO, at: int) -> bool:
    stream.seek(at)
    head = stream.read(4096)
    if not head.startswith(_GZIP):
        return head.startswith((b"WARC/1.", _ZSTD, _LZ4))
    try:
        return zlib.decompressobj(31).decompress(head, 5) == b"WARC/"
    except zlib.error:
        return False


def _until_bad(path: Path, start: int, most: int, not_taken: Counter[str]) -> Iterator[WarcBlock | None]:
    """Records from an offset on, None for those without a page. Raises `_BadRecord` for the first bad one."""
    size = path.stat().st_size
    with path.open("rb") as stream:
        packing = _packing(stream)
        packed = packing in ("gzip", "zstd", "lz4")
        stream.seek(start)
        position, last = start, None
        try:
            for record in ArchiveIterator(stream, parse_http=False, max_header_len=_HEADERS):
                block = _checked(record, most, (size - record.stream_pos) * (_DEFLATE_RATIO if packed else 1))
                last = record.stream_pos
                position = record.stream_pos + (1 if packed else max(1, record.content_length))
                if block is None:
                    not_taken[_kind_of(record)] += 1
                yield block
        except OSError as error:
            is_first = position == start
            message = f"cannot be read: {error}"
            bad = _BadRecord(message, position, position + is_first, is_exact=is_first)
            bad.bytes_read = stream.tell() - position
            raise bad from None
        except _BadRecord as bad:
            bad.bytes_read = stream.tell() - bad.offset
            raise
        if packing == "gzip":
            _check_end(stream, start, last, size)


def _check_end(stream: BinaryIO, start: int, last: int | None, size: int) -> None:
    """The library ends without a word at a member without content, and if a file breaks off before the version of its
    last record. `last`: the offset of the last record that it has read from `start` on. Raises `_EmptyMember` if there
    are other members, `_BadRecord` if the file is cut."""
    is_after_empty = False
    for member in _members(stream, last if last is not None and _begins_record(stream, last) else start):
        if member.end is None:
            if member.begin != last:
                message = f"is cut: it has {size - member.begin} bytes"
                raise _BadRecord(message, member.begin, size, is_cut=True)
        elif is_after_empty and not member.is_empty:
            raise _EmptyMember(member.begin)
        is_after_empty = is_after_empty or member.is_empty


def _members(stream: BinaryIO, position: int) -> Iterator[_Member]:
    """Gzip members from `position` on, up to the end of the file or to what is not one."""
    while True:
        stream.seek(position)
        decoder, size, is_empty = zlib.decompressobj(31), _FIRST_PIECE, True
        try:
            while not decoder.eof and (piece := stream.read(size)):
                size = min(2 * size, _PIECE)
                while piece and not decoder.eof:
                    is_empty = not decoder.decompress(piece, _PIECE) and is_empty
                    piece = decoder.unconsumed_tail
            while not decoder.eof and decoder.decompress(b"", _PIECE):
                is_empty = False
        except zlib.error:
            return
        if not decoder.eof:
            if stream.tell() > position:
                yield _Member(position, None, is_empty)
            return
        end = stream.tell() - len(decoder.unused_data)
        yield _Member(position, end, is_empty)
        position = end


def _checked(record: WarcRecord, most: int, room: int) -> WarcBlock | None:
    offset = record.stream_pos
    stated = (record.headers.get("Content-Length") or "").strip()
    if not _LENGTH.match(stated) or int(stated) > room:
        raise _BadRecord(f"announces an impossible length, {stated[:40]!r}", offset, offset + 1)
    block = record.reader.read(min(most, int(stated)) + 1)  # the library clears as many bytes as are asked for
    count = len(block)
    while piece := record.reader.read(_PIECE):
        count += len(piece)
    if count < int(stated):
        swallowed = b"\nWARC/1." in block
        message = f"is cut: it announces {stated} bytes and has {count}"
        raise _BadRecord(message, offset, offset + 1, is_cut=not swallowed)
    stated_kind = _kind_of(record)
    kind = next((name for name in _WITH_PAGES if name == stated_kind), None)
    if kind is None:
        return None
    return WarcBlock(
        offset,
        kind,
        tuple(record.headers.items()),
        block[:most],
        len(block) > most,
        record.record_date.timestamp() if record.record_date is not None else 0.0,
    )


def _kind_of(record: WarcRecord) -> str:
    kind = (record.headers.get("WARC-Type") or "").lower()
    return kind if kind in _WITH_PAGES or kind in _WITHOUT_PAGES else "unknown kind"


def _finding(path: Path, bad: _BadRecord, *, is_last: bool) -> Finding:
    """A file that breaks off in its last record is usual after a crawl that was killed: a warning."""
    place = "the record at offset" if bad.is_exact else "a record after offset"
    message = f"{path.name}: {place} {bad.offset} {bad.message}; it was skipped"
    if bad.is_cut and is_last:
        return Finding("warc-cut", message, "warning", "fetch", advice="fetch the file again if it should be complete")
    return Finding("warc-record", message, "error", "fetch", advice=_ADVICE)
