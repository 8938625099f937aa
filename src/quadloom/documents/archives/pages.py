"""Pages from WARC records, whichever tool wrote them.

A record should hold what the server sent. Many tools store the body without its chunks, or unpacked, under headers that
still announce both, so the body decides: what is not chunked or packed, and reads as text, is taken as it is.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from fastwarc.warc import ArchiveIterator, WarcRecord

from quadloom.documents.archives.arc_records import arc_blocks, is_arc
from quadloom.documents.archives.content_coding import BodyDecoder, coding_of
from quadloom.documents.archives.warc_records import WarcBlock, warc_blocks
from quadloom.errors import ArchiveDamaged
from quadloom.model.finding import Finding
from quadloom.model.page import Page
from quadloom.model.url import resolve
from quadloom.settings import LimitSettings

_CODED = re.compile(rb"(?i)\n(?:transfer|content)-encoding")
_HTTP = "application/http; msgtype=response"
_PIECE = 64 * 1024
_LONGEST_BODY = 50 << 20  # of a sitemap, whatever `limits.body_bytes` says
_CHUNK = re.compile(rb"[ \t]{0,8}([0-9A-Fa-f]{1,8})[ \t]{0,8}(?:;[^\r\n]{0,1000})?\r?\n")
_FREE_CHUNKS, _LEAST_CHUNK = 10_000, 32  # chunks cost time, so most of them have to hold something
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}

ReadOwn = Callable[[WarcBlock, str], Page | None]
"""Gives the page of a record that Quadloom wrote; the text names file and offset. Raises `ArchiveDamaged`."""


class RecordedPage(NamedTuple):
    """A page and the offset of its record, from which a reader can start again."""

    offset: int
    page: Page


def recorded_pages(
    path: Path,
    limits: LimitSettings,
    report: Callable[[Finding], None],
    not_taken: Counter[str],
    *,
    start: int = 0,
    own: ReadOwn | None = None,
) -> Iterator[RecordedPage]:
    """Pages of a WARC or ARC file, in its order, from the record at `start`. Bad records are reported and skipped;
    `not_taken` counts records that hold no page, by their kind. Texts of a WET file are pages of plain text.

    `own` reads records with the field `WARC-Quadloom`; without it they are read like all others.
    """
    # A foreign body may be compressed or chunked, so its block may be longer than the page that it becomes.
    most = max(2 * limits.body_bytes, _LONGEST_BODY) + 2 * limits.header_bytes
    has_responses = False
    for record in (arc_blocks if is_arc(path) else warc_blocks)(path, most, report, not_taken, start):
        has_responses = has_responses or record.kind == "response"
        if record.kind == "conversion" and has_responses:
            not_taken["conversion"] += 1  # of a page that this file holds itself
            continue
        try:
            is_own = own is not None and record.header("warc-quadloom")
            name = f"{path.name}:{record.offset}"
            page = own(record, name) if is_own and own is not None else page_of(record, limits, not_taken)
        except (ArchiveDamaged, OSError) as error:
            message = f"{path.name}: the record at offset {record.offset} was skipped: {error}"
            report(Finding("warc-record", message, "error", "fetch", advice="repair the file with a WARC tool"))
            continue
        if page is None:
            continue
        if page.status < 300:
            yield RecordedPage(record.offset, page)
        else:
            not_taken["redirect" if page.status < 400 else "error response"] += 1


def page_of(record: WarcBlock, limits: LimitSettings, not_taken: Counter[str]) -> Page | None:
    """The page of a record of any tool; None if it holds none, which `not_taken` counts. Raises `ArchiveDamaged`."""
    url = resolve(record.header("warc-target-uri").strip("<>"))
    if url is None:
        not_taken[f"{record.kind} without a web address"] += 1
        return None
    status = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", record.header("content-type")),)
    body = record.block
    if record.kind == "response" and record.header("content-type").startswith("text/dns"):
        not_taken["response without a web address"] += 1
        return None
    if record.kind == "response":
        # Only the head goes through the library if the body is as it was sent, which saves two copies of it.
        end = body.find(b"\r\n\r\n") + 4
        is_plain = end > 3 and _CODED.search(body, 0, end) is None
        parsed = _http_record(body[:end] if is_plain else body)
        if is_plain and parsed.reader.read(1):  # the head ends earlier, with line breaks of another kind
            is_plain, parsed = False, _http_record(body)
        if parsed.http_headers is None:
            not_taken["response without HTTP headers"] += 1
            return None
        status = parsed.http_headers.status_code or 0
        headers = tuple((name.lower(), value) for name, value in parsed.http_headers.astuples()[: limits.header_count])
        body = body[end:] if is_plain else _as_shown(parsed.reader.read(), headers, limits)
    return Page(
        url,
        url,
        status,
        headers,
        body[: limits.body_bytes],
        record.date,
        0.0,
        record.header("warc-ip-address"),
        truncated=len(body) > limits.body_bytes or record.is_long,
    )


def _http_record(block: bytes) -> WarcRecord:
    """The block of a response as a record whose HTTP head is parsed."""
    head = f"WARC/1.1\r\nWARC-Type: response\r\nContent-Type: {_HTTP}\r\nContent-Length: {len(block)}\r\n\r\n"
    record = next(ArchiveIterator(io.BytesIO(b"".join((head.encode(), block, b"\r\n\r\n"))), parse_http=False))
    record.parse_http(auto_decode="none")
    return record


def _as_shown(body: bytes, headers: tuple[tuple[str, str], ...], limits: LimitSettings) -> bytes:
    """The body as a browser shows it: without chunks, and unpacked."""
    if any(name == "transfer-encoding" and "chunked" in value.lower() for name, value in headers):
        body = without_chunks(body)
    coding = coding_of(", ".join(value for name, value in headers if name == "content-encoding"))
    if coding == "" or not body:
        return body
    return _decoded(body, coding, limits)


def without_chunks(body: bytes) -> bytes:
    """A body in chunks (RFC 9112) as one; a body that is not in chunks as it is. One that breaks off ends there."""
    parts: list[bytes] = []
    position = 0
    while found := _CHUNK.match(body, position):
        begin, size = found.end(), int(found[1], 16)
        if not size:
            return b"".join(parts)
        position = begin + size
        is_whole = body.startswith((b"\r\n", b"\n"), position)
        if not is_whole and position < len(body) and not parts:
            return body  # text that begins with a line of hexadecimal digits
        if len(parts) > _FREE_CHUNKS + position // _LEAST_CHUNK:
            raise ArchiveDamaged("its body has too many chunks")
        parts.append(body[begin:position])
        if not is_whole:
            break
        position += 2 if body.startswith(b"\r", position) else 1
    return b"".join(parts) if parts else body


def _decoded(data: bytes, coding: str | None, limits: LimitSettings) -> bytes:
    """Up to one byte more than `limits.body_bytes`. Raises `ArchiveDamaged` for what a fetch would refuse."""
    if coding is None:
        if _reads_as_text(data):
            return data
        raise ArchiveDamaged("its body has several content codings, or an unknown one")
    if not data.startswith(_MAGIC.get(coding, b"")):
        return data  # it was unpacked before it was stored
    body = BodyDecoder(coding, limits.body_bytes + 1, limits.decode_ratio)
    try:
        for start in range(0, len(data), _PIECE):
            if not body.feed(data[start : start + _PIECE]):
                break
        if body.state == "bomb":
            raise ArchiveDamaged(f"its body decodes to more than {limits.decode_ratio:g} times its size")
        if body.state == "broken" or (not body.decoded and body.incomplete()):
            if coding not in _MAGIC and _reads_as_text(data):
                return data
            raise ArchiveDamaged(f"its body is not valid {coding}")
        return body.bytes()
    finally:
        body.release()


def _reads_as_text(data: bytes) -> bool:
    """Nearly every packed body has a control character in its first kilobyte; no text has."""
    return _BINARY.search(data, 0, 1024) is None
