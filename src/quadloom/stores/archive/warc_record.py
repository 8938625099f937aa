"""A page or a failure as WARC/1.1 bytes, one gzip member, and back.

A page becomes a `response` record whose HTTP block carries the body as we have it: decoded from its content coding and
perhaps cut. So that other tools read it rightly, the headers that described the bytes on the wire are set aside
under `X-Archive-Orig-` names and a true Content-Length takes their place. What WARC has no field for (times, hops,
findings, exact headers) is one JSON value in `WARC-Quadloom`, a named field as section 5 of WARC/1.1 allows, so a
record decodes to an equal `Page`. A failure becomes a `metadata` record about the URL.

Header text is made by hand and compressed by ISA-L at level 1: 4 to 9 times the speed of a general WARC library at the
same size, and this runs once per page.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import os
from functools import lru_cache
from http import HTTPStatus
from typing import cast

import msgspec
from isal import igzip, isal_zlib

from quadloom.errors import ArchiveDamaged
from quadloom.model.finding import Finding
from quadloom.model.page import Failure, Hop, Page
from quadloom.stores.protocols.archive import ArchiveRecord

_WIRE_HEADERS = frozenset({"content-encoding", "transfer-encoding", "content-length"})
_ABOUT_FILE = "application/warc-fields"  # Content-Type of records about a file, not a page
_REMOVED = "urn:quadloom:removed"
_ASIDE = "x-archive-orig-"
_LEVEL = 1
_REASONS = {int(status): status.phrase for status in HTTPStatus}
# Two digits of base 32 for each ten bits; a SHA-1 digest has 160.
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BASE32 = [one + other for one in _ALPHABET for other in _ALPHABET]
_PAIRS = range(150, -1, -10)
_HEAD_BYTES = 1 << 20  # of a record, in which its named fields are
_MEMORABLE = 200  # characters of a header
MAX_MEMBER_BYTES = 512 * 1024 * 1024  # of one record unpacked: a damaged or forged member must not fill the memory


class _Facts(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """What a response record says about a page in addition to its HTTP block."""

    url: str
    fetched_at: float
    seconds: float
    http_version: str
    hops: tuple[Hop, ...]
    findings: tuple[Finding, ...]
    wire_bytes: int
    final_url: str
    # All headers, if HTTP text cannot carry each of them exactly (line breaks, outer space, non-ASCII).
    headers: tuple[tuple[str, str], ...] | None = None


# The type stubs call it an instance; it is isal's own exception class, unrelated to zlib.error.
UnpackError = cast(type[Exception], isal_zlib.error)
_facts = msgspec.json.Decoder(_Facts)
_failures = msgspec.json.Decoder(Failure)


def encode(record: Page | Failure) -> ArchiveRecord:
    """One gzip member, ready to be appended to a .warc.gz file."""
    parts = _metadata(record) if isinstance(record, Failure) else _response(record)
    member = igzip.compress(b"".join((*parts, b"\r\n\r\n")), compresslevel=_LEVEL)
    return ArchiveRecord(record.url, member)


def _response(page: Page) -> tuple[bytes, ...]:
    lines: list[str] = []
    exact = True
    for header in page.headers:
        line, is_exact = _header_line(header) if len(header[1]) < _MEMORABLE else _line_of(header)
        lines.append(line)
        exact = exact and is_exact
    facts = _Facts(
        page.url,
        page.fetched_at,
        page.seconds,
        page.http_version,
        page.hops,
        page.findings,
        page.wire_bytes,
        page.final_url,
        None if exact else page.headers,
    )
    status = f"HTTP/1.1 {page.status} {_REASONS.get(page.status, 'Unknown')}"
    http = "\r\n".join((status, *lines, f"content-length: {len(page.body)}", "", "")).encode("latin-1", "replace")
    fields = [
        "WARC-Type: response",
        "Content-Type: application/http;msgtype=response",
        f"WARC-Payload-Digest: sha1:{_digest(page.body)}",
    ]
    if page.address:
        fields.append(f"WARC-IP-Address: {_flat(page.address)}")
    if page.truncated:
        fields.append("WARC-Truncated: length")
    fields.append(f"WARC-Quadloom: {msgspec.json.encode(facts).decode()}")
    return _head(page.final_url, page.fetched_at, fields, len(http) + len(page.body)), http, page.body


def _line_of(header: tuple[str, str]) -> tuple[str, bool]:
    """The line, and whether the very header can be read from it again."""
    name, value = header
    text = f"{_ASIDE if name in _WIRE_HEADERS else ''}{_flat(name)}: {_flat(value)}"
    return text, _is_own_name(name) and _is_plain(value)


_header_line = lru_cache(maxsize=1024)(_line_of)  # servers say the same with every page


def _metadata(failure: Failure) -> tuple[bytes, ...]:
    block = msgspec.json.encode(failure)
    fields = ["WARC-Type: metadata", "Content-Type: application/json"]
    return _head(failure.url, failure.fetched_at, fields, len(block)), block


def _head(target: str, at: float, fields: list[str], length: int) -> bytes:
    lines = (
        "WARC/1.1",
        f"WARC-Record-ID: <urn:uuid:{_random_uuid()}>",
        f"WARC-Date: {_date(at)}",
        f"WARC-Target-URI: {_flat(target)}",
        *fields,
        f"Content-Length: {length}",
        "",
        "",
    )
    return "\r\n".join(lines).encode("utf-8", "replace")


def decode(member: bytes, place: str) -> Page | Failure:
    """What `encode` was given. `place` names file and offset for the `ArchiveDamaged` that unreadable bytes raise."""
    unpacker = isal_zlib.decompressobj(31)
    try:
        data: bytes = unpacker.decompress(member, MAX_MEMBER_BYTES)
    except UnpackError as error:
        raise damaged(place, str(error)) from error
    if not unpacker.eof:
        raise damaged(place, "it is cut off")
    record = parse(data, place)
    if record is None:
        raise damaged(place, "it describes the file, not a page")
    return record


def parse(data: bytes, place: str) -> Page | Failure | None:
    """As `decode`, for an unpacked record; None = it describes the file (`file_header`, `tombstone`)."""
    try:
        head, mark, rest = data.partition(b"\r\n\r\n")
        fields = _fields(head.decode("utf-8"))
        block = rest[: int(fields["content-length"])]
        if not mark or len(rest) != len(block) + 4:
            raise ValueError("the length of its block is wrong")
        if fields["content-type"] == _ABOUT_FILE:
            return None
        if fields["warc-type"] == "metadata":
            return _failures.decode(block)
        return _page(fields, block)
    except (ValueError, KeyError, IndexError, msgspec.MsgspecError) as error:
        raise damaged(place, str(error)) from error


def damaged(place: str, reason: str) -> ArchiveDamaged:
    return ArchiveDamaged(
        f"the archive record at {place} cannot be read: {reason}",
        hint="run `quadloom verify`; `quadloom refresh URL` fetches the page again",
    )


def file_header(name: str, at: float) -> bytes:
    """The `warcinfo` record that begins every file, as a gzip member."""
    block = f"software: Quadloom\r\nformat: WARC File Format 1.1\r\nfilename: {name}\r\n".encode()
    return _about_file(["WARC-Type: warcinfo", f"WARC-Filename: {name}"], block, at)


def tombstone(records: int, at: float) -> ArchiveRecord:
    """A record in the place of so many that were removed for good: it says when and how many, and nothing of them."""
    block = f"action: removed on request\r\nrecords: {records}\r\n".encode()
    fields = ["WARC-Type: metadata", f"WARC-Target-URI: {_REMOVED}"]
    return ArchiveRecord(_REMOVED, _about_file(fields, block, at))


def _about_file(fields: list[str], block: bytes, at: float) -> bytes:
    lines = ("WARC/1.1", f"WARC-Record-ID: <urn:uuid:{_random_uuid()}>", f"WARC-Date: {_date(at)}", *fields)
    head = "\r\n".join((*lines, f"Content-Type: {_ABOUT_FILE}", f"Content-Length: {len(block)}", "", "")).encode()
    return bytes(igzip.compress(head + block + b"\r\n\r\n", compresslevel=_LEVEL))


def revisit(url: str, at: float, digest: str, refers_to: float) -> bytes:
    """A `revisit` record as a gzip member: at this time the server had the payload that the record of `refers_to`
    holds. It has no block, so players take the headers from there too."""
    fields = [
        "WARC-Type: revisit",
        "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest",
        f"WARC-Payload-Digest: {digest}",
        f"WARC-Refers-To-Target-URI: {_flat(url)}",
        f"WARC-Refers-To-Date: {_date(refers_to)}",
    ]
    return bytes(igzip.compress(_head(url, at, fields, 0) + b"\r\n\r\n", compresslevel=_LEVEL))


def record_fields(member: bytes) -> dict[str, str]:
    """The named fields of a compressed record, their names in small letters; its block is not read."""
    head = isal_zlib.decompressobj(31).decompress(member, _HEAD_BYTES).partition(b"\r\n\r\n")[0]
    return _fields(head.decode("utf-8", "replace"))


def _page(fields: dict[str, str], block: bytes) -> Page:
    http, mark, body = block.partition(b"\r\n\r\n")
    if not mark:
        raise ValueError("there is no HTTP header")
    status, *lines = http.decode("latin-1").split("\r\n")
    facts = _facts.decode(fields["warc-quadloom"])
    headers = facts.headers
    if headers is None:
        pairs = (line.partition(": ") for line in lines[:-1])  # the last one is the content-length that `encode` added
        headers = tuple((name.removeprefix(_ASIDE), value) for name, _, value in pairs)
    if fields["warc-payload-digest"] != f"sha1:{_digest(body)}":
        raise ValueError("the payload does not match its digest")
    return Page(
        facts.url,
        facts.final_url,
        int(status.split(" ")[1]),
        headers,
        body,
        facts.fetched_at,
        facts.seconds,
        fields.get("warc-ip-address", ""),
        facts.http_version,
        facts.hops,
        "warc-truncated" in fields,
        facts.findings,
        facts.wire_bytes,
    )


def _fields(head: str) -> dict[str, str]:
    version, *lines = head.split("\r\n")
    if not version.startswith("WARC/1."):
        raise ValueError("not a WARC record")
    pairs = (line.partition(": ") for line in lines)
    return {name.lower(): value for name, _, value in pairs}


def _is_own_name(name: str) -> bool:
    return _is_plain(name) and ":" not in name and not name.startswith(_ASIDE)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable() and text.strip() == text


def _flat(text: str) -> str:
    """Without line breaks: no header may begin a new line, whatever a server or a URL contains."""
    return text if text.isprintable() else " ".join(text.split())


def _digest(body: bytes) -> str:
    number = int.from_bytes(hashlib.sha1(body, usedforsecurity=False).digest())
    return "".join([_BASE32[number >> bits & 1023] for bits in _PAIRS])  # cheaper than `base64.b32encode`


def _random_uuid() -> str:
    """As `uuid.uuid4` makes it, at half of the cost."""
    digits = f"{int.from_bytes(os.urandom(16)) & ~(0xF << 76 | 3 << 62) | 4 << 76 | 2 << 62:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _date(at: float) -> str:
    fraction, second = math.modf(max(0.0, at))  # rounded as `datetime` does
    carried, micros = divmod(round(fraction * 1e6), 1_000_000)
    return f"{_date_of_second(second + carried)}.{micros:06}Z"


@lru_cache(maxsize=8)  # a worker reads hundreds of pages within a second
def _date_of_second(second: float) -> str:
    return dt.datetime.fromtimestamp(second, dt.UTC).isoformat()[:19]
