"""The Info dictionary of a PDF file (ISO 32000, 14.3.3), by looking for it instead of reading the whole file.

Every look is bounded: a hostile file can make this find nothing, but neither wait nor swell.
"""

from __future__ import annotations

import re
import zlib
from datetime import datetime, timedelta

MAX_STREAMS = 64
MAX_INFLATED = 4 * 1024 * 1024
MAX_DICTIONARY = 64 * 1024
MAX_STRING = 4096

_INFO = re.compile(rb"/Info\s+(\d{1,9})\s+(\d{1,5})\s+R")
_OBJECT_STREAM = re.compile(rb"/Type\s*/ObjStm\b")
_NUMBER = {name: re.compile(rb"/%s\s+(\d{1,9})" % name) for name in (b"N", b"First")}
_KEY = re.compile(rb"/(Title|Author|Subject|Keywords|Creator|Producer|CreationDate|ModDate)\s*(?=[(<])")
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+\-Z])(?:(\d\d)'?(\d\d)?'?)?)?")
_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f"}
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|(\r\n|[\s\S]))")


def info(body: bytes) -> dict[str, str]:
    """Texts of the Info dictionary by name; empty where the file has none that can be found."""
    names = _INFO.findall(body)
    if not names:
        return {}
    number, generation = names[-1]  # the last trailer is that of the latest revision
    found = re.search(rb"(?<!\d)%s\s+%s\s+obj\b" % (number, generation), body)
    if found:
        return _texts(body[found.end() : found.end() + MAX_DICTIONARY])
    return _texts(_compressed(body, int(number)))


def date_time(text: str) -> str | None:
    """`D:20250102030405+01'00'` as an xsd:dateTime; None for what is no date. Without a zone none is invented."""
    match = _DATE.match(text.strip())
    if match is None:
        return None
    year, month, day, hour, minute, second, sign, hours, minutes = match.groups()
    try:
        at = datetime(int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0))
        if sign in ("+", "-"):
            offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
            at = at - offset if sign == "+" else at + offset
    except (ValueError, OverflowError):
        return None
    return at.isoformat() + ("Z" if sign else "")


def _texts(dictionary: bytes) -> dict[str, str]:
    end = dictionary.find(b"endobj")
    source = dictionary[: end if end >= 0 else None]
    return {match.group(1).decode(): text for match in _KEY.finditer(source) if (text := _string(source, match.end()))}


def _string(source: bytes, at: int) -> str:
    if source[at : at + 1] == b"<":
        digits = re.sub(rb"[^0-9A-Fa-f]", b"", source[at : source.find(b">", at)])
        return _decoded(bytes.fromhex((digits + b"0" * (len(digits) % 2)).decode())[:MAX_STRING])
    depth, position = 1, at + 1
    while depth and position < min(len(source), at + MAX_STRING):
        character = source[position]
        if character == 0x5C:  # a backslash hides what follows
            position += 1
        elif character == 0x28:
            depth += 1
        elif character == 0x29:
            depth -= 1
        position += 1
    return _decoded(_ESCAPE.sub(_unescaped, source[at + 1 : position - 1]))


def _unescaped(match: re.Match[bytes]) -> bytes:
    octal, other = match.groups()
    if octal:
        return bytes((int(octal, 8) & 0xFF,))
    return b"" if other in (b"\n", b"\r", b"\r\n") else _ESCAPES.get(other, other)


def _decoded(raw: bytes) -> str:
    if raw.startswith(b"\xfe\xff"):
        return raw[2:].decode("utf-16-be", "replace").strip("\0 ")
    if raw.startswith(b"\xef\xbb\xbf"):
        return raw[3:].decode("utf-8", "replace").strip("\0 ")
    return raw.decode("latin-1").strip("\0 ")  # PDFDocEncoding, but for a few signs


def _compressed(body: bytes, number: int) -> bytes:
    """The object of that number from an object stream (PDF 1.5), or nothing."""
    for count, match in enumerate(_OBJECT_STREAM.finditer(body)):
        if count == MAX_STREAMS:
            break
        start = body.find(b"stream", match.end())
        header = body[max(0, match.start() - 200) : start]
        numbers = {name: pattern.search(header) for name, pattern in _NUMBER.items()}
        if start < 0 or not all(numbers.values()):
            continue
        data = _inflated(body, start + 6)
        objects, first = (int(found.group(1)) for found in numbers.values() if found)
        index = data[:first].split()[: 2 * objects]
        for key, offset in zip(index[::2], index[1::2], strict=False):
            if key == b"%d" % number and offset.isdigit():
                return data[first + int(offset) :][:MAX_DICTIONARY].split(b">>", 1)[0]
    return b""


def _inflated(body: bytes, start: int) -> bytes:
    while body[start : start + 1] in (b"\r", b"\n"):
        start += 1
    try:
        return zlib.decompressobj().decompress(body[start : start + MAX_INFLATED], MAX_INFLATED)
    except zlib.error:
        return b""
