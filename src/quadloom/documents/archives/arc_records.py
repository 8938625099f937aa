"""The records of an ARC file, the format before WARC: a line with address, server, time, type and length, then as many
bytes. Written by Heritrix 1 and the early Internet Archive; every record is a response."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, cast

from isal import igzip

from quadloom.documents.archives.warc_records import WarcBlock
from quadloom.model.finding import Finding, Severity

_SUFFIX = re.compile(r"\.arc(\.gz)?$", re.IGNORECASE)
_LINE = re.compile(rb"(\S{1,8192}) (\S{1,64}) ([0-9]{4,14}) (?:\S.{0,512} )?([0-9]{1,12})\r?\n\Z", re.ASCII)
_LONGEST_LINE = 10_000
_PIECE = 1 << 20
_CUT: tuple[str, Severity] = ("warc-cut", "warning")
_BAD: tuple[str, Severity] = ("warc-record", "error")


def is_arc(path: Path) -> bool:
    return _SUFFIX.search(path.name) is not None


def arc_blocks(
    path: Path, most: int, report: Callable[[Finding], None], not_taken: Counter[str], start: int = 0
) -> Iterator[WarcBlock]:
    """Records as those of a WARC file, with up to `most` bytes of each. An offset counts bytes of the file when it is
    unpacked. What cannot be read ends the file, and is reported."""
    position = 0
    try:
        with closing(_opened(path)) as stream:
            while line := _next_line(stream):
                position = stream.tell() - len(line)
                found = _LINE.match(line)
                if found is None:
                    raise ValueError("is not a record of an ARC file")
                address, server, date, length = found.groups()
                size = int(length)
                block = stream.read(min(size, most))
                left = size - len(block)
                while left and (piece := stream.read(min(left, _PIECE))):
                    left -= len(piece)
                if left:
                    raise EOFError("is cut")
                if address.startswith(b"filedesc:"):
                    not_taken["filedesc"] += 1
                elif position >= start:
                    url = address.decode("utf-8", "replace")
                    headers = (("WARC-Target-URI", url), ("WARC-IP-Address", server.decode("ascii", "replace")))
                    yield WarcBlock(position, "response", headers, block, size > most, _seconds(date.decode()))
    except (OSError, EOFError, ValueError, igzip.BadGzipFile) as error:
        message = f"{path.name}: what begins at offset {position} {error}; nothing after it was read"
        code, severity = _CUT if isinstance(error, EOFError) else _BAD
        report(Finding(code, message, severity, "fetch", advice="fetch the file again"))


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    packed = igzip.IGzipFile(path, "rb") if is_packed else None  # type: ignore[no-untyped-call]
    return cast(BinaryIO, packed) if packed is not None else path.open("rb")


def _next_line(stream: BinaryIO) -> bytes:
    """The next line with anything in it; records are separated by empty ones."""
    while (line := stream.readline(_LONGEST_LINE)) and not line.strip():
        pass
    return line


def _seconds(date: str) -> float:
    try:
        return datetime.strptime(date.ljust(8, "1").ljust(14, "0")[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0
