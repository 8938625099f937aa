"""CDXJ: an index of archive records by address and time, as pywb and ReplayWeb.page read it, one line for each.

`example,com)/path 20260131235958 {"url": …}`. The key is the address in the form that the Internet Archive's tools
compare: host in reverse, no www, small letters, query parameters in order.
"""

from __future__ import annotations

import heapq
import re
import zlib
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO
from urllib.parse import quote, unquote, urlsplit

import msgspec

_HEAD_BYTES = 1 << 20  # of a record and of the HTTP response in it
_BATCH = 100_000  # lines that are sorted in memory
_PLAIN = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"  # not escaped in a key
_WWW = re.compile(r"^www\d*\.")


class IndexedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the index says about a record. `mime`: warc/revisit for one that refers to an earlier one."""

    url: str
    timestamp: str
    mime: str
    status: str
    digest: str

    def line(self, file: str, offset: int, length: int) -> bytes:
        facts = {**msgspec.to_builtins(self), "length": str(length), "offset": str(offset), "filename": file}
        del facts["timestamp"]
        return f"{surt(self.url)} {self.timestamp} ".encode("utf-8", "replace") + msgspec.json.encode(facts) + b"\n"


def read_record(member: bytes) -> IndexedRecord | None:
    """What a compressed WARC record is about; None for one that is no response (a failure, a description)."""
    head, _, block = zlib.decompressobj(31).decompress(member, _HEAD_BYTES).partition(b"\r\n\r\n")
    fields = fields_of(head)
    if fields.get("warc-type") not in ("response", "revisit"):
        return None
    http = block.partition(b"\r\n\r\n")[0]
    first, _, lines = http.partition(b"\r\n")
    media = fields_of(b"\r\n" + lines).get("content-type", "").partition(";")[0].strip().lower()
    is_revisit = fields["warc-type"] == "revisit"
    return IndexedRecord(
        url=fields.get("warc-target-uri", ""),
        timestamp=re.sub(r"\D", "", fields.get("warc-date", ""))[:14],
        mime="warc/revisit" if is_revisit else media or "unk",
        status=(first.split(b" ", 2)[1:2] or [b"-"])[0].decode("ascii", "replace"),
        digest=fields.get("warc-payload-digest", ""),
    )


def fields_of(head: bytes) -> dict[str, str]:
    """The fields after the first line, their names in small letters."""
    pairs = (line.partition(":") for line in head.decode("utf-8", "replace").split("\r\n")[1:])
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def surt(url: str) -> str:
    """The key of an address. Most spellings of one page have the same."""
    try:
        parts = urlsplit(url.strip())
        host, port = _WWW.sub("", (parts.hostname or "").rstrip(".")), parts.port
        host = host.encode("idna").decode() if not host.isascii() else host
    except ValueError:
        return quote(url.lower(), safe=_PLAIN)
    place = host if ":" in host else ",".join(reversed(host.split(".")))
    if port and port != {"http": 80, "https": 443}.get(parts.scheme):
        place = f"{place}:{port}"
    path = quote(unquote(re.sub(r"/+", "/", parts.path or "/")), safe=_PLAIN).lower().rstrip("/") or "/"
    query = "&".join(sorted(quote(unquote(parts.query), safe=_PLAIN).lower().split("&")))
    return f"{place}){path}" + (f"?{query}" if query else "")


class SortedLines:
    """Lines in order, however many: batches are sorted in memory and merged from temporary files."""

    def __init__(self) -> None:
        self._batch: list[bytes] = []
        self._sorted: list[IO[bytes]] = []

    def add(self, line: bytes) -> None:
        self._batch.append(line)
        if len(self._batch) >= _BATCH:
            file = TemporaryFile()  # noqa: SIM115  `close` closes it
            file.writelines(sorted(self._batch))
            file.seek(0)
            self._sorted.append(file)
            self._batch = []

    def __iter__(self) -> Iterator[bytes]:
        yield from heapq.merge(*self._sorted, sorted(self._batch))

    def close(self) -> None:
        for file in self._sorted:
            file.close()
