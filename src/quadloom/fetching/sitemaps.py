"""Sitemaps read as they stream in: urlset, index and text form, each plain or gzip, in memory that does not grow.

expat is fed block by block and keeps no tree; a million URLs need no more memory than ten. DTDs are refused, so there
are no entities to expand. Broken XML ends the reading and keeps what was read, with a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal, NoReturn, cast
from xml.parsers import expat

import msgspec
from isal import isal_zlib

from quadloom.model.finding import Finding

MAX_BYTES = 200 * 1024 * 1024  # decoded; sitemaps.org allows 50 MiB, a generous reader still ends somewhere
MAX_URLS = 1_000_000
MAX_TEXT = 4096  # characters of one value
MAX_DEPTH = 32
BLOCK = 64 * 1024

Kind = Literal["urlset", "sitemapindex", "text", "unknown"]
_ITEM = {"urlset": "url", "sitemapindex": "sitemap"}
_FIELDS = frozenset({"loc", "lastmod", "changefreq", "priority"})
_GZIP_ERROR = cast(type[Exception], isal_zlib.error)  # isal's stub declares the class as an instance
_DATE = re.compile(r"^(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?$")


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A page, or with `index` another sitemap. `lastmod`: unix time, 0 = unknown; `priority` -1 = not given."""

    loc: str
    lastmod: float = 0.0
    changefreq: str = ""
    priority: float = -1.0
    index: bool = False


class _Stop(Exception):
    """Ends the parser from within a handler; never leaves this module."""


class SitemapReader:
    """`feed` blocks, take the entries that each completed, `close` at the end. `findings` tell what was wrong."""

    def __init__(self, *, max_bytes: int = MAX_BYTES, max_urls: int = MAX_URLS) -> None:
        self.kind: Kind = "unknown"
        self.findings: list[Finding] = []
        self.urls = 0
        self._max_bytes = max_bytes
        self._max_urls = max_urls
        self._read = 0
        self._over = False
        self._inflate: isal_zlib.Decompress | None = None
        self._head = b""
        self._consume: Callable[[bytes, bool], None] | None = None
        self._ready: list[Entry] = []
        self._path: list[str] = []
        self._field = ""
        self._text: list[str] = []
        self._length = 0
        self._values: dict[str, str] = {}
        self._line = b""

    def feed(self, data: bytes) -> list[Entry]:
        """Entries that this block completed. After the end (limit or defect) always empty."""
        if not self._over and data:
            try:
                self._decode(data)
            except _Stop:
                self._over = True
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> list[Entry]:
        """The last entries; tells of a file that ended too early."""
        if not self._over:
            try:
                if self._consume is None:
                    self._start(self._head)
                if self._consume is not None:
                    self._consume(b"", True)
            except _Stop:
                pass
            self._over = True
        ready, self._ready = self._ready, []
        return ready

    @property
    def ended(self) -> bool:
        """Whether more input is of no use."""
        return self._over

    def _decode(self, data: bytes) -> None:
        if self._inflate is None and self._consume is None:
            data = self._head = self._head + data
            if len(data) < 2:
                return
            if data.startswith(b"\x1f\x8b"):
                self._inflate = isal_zlib.decompressobj(wbits=31)
                self._head = b""
        if self._inflate is None:
            self._take(data)
            return
        while data and not self._inflate.eof:
            try:
                block = self._inflate.decompress(data, BLOCK)
            except _GZIP_ERROR:
                self._stop("sitemap-gzip", "the gzip data is damaged")
            data = self._inflate.unconsumed_tail
            if block:
                self._take(block)

    def _take(self, data: bytes) -> None:
        self._read += len(data)
        if self._read > self._max_bytes:
            self._stop("sitemap-too-large", f"longer than {self._max_bytes} bytes; the rest was not read")
        if self._consume is None:
            if self._inflate is not None:
                self._head += data
            data = self._head
            if len(data.lstrip()) < 16 and len(data) < 4096:
                return  # too little to tell XML from text
            self._start(data)
        else:
            self._consume(data, False)

    def _start(self, data: bytes) -> None:
        """Choose the form by the first characters and give it what has come so far."""
        self._head = b""
        head = data.removeprefix(b"\xef\xbb\xbf").lstrip()
        if head.startswith(b"<") or data.startswith((b"\xff\xfe", b"\xfe\xff")):
            self._consume = _xml_consumer(self)
            data = data if data.startswith((b"\xff\xfe", b"\xfe\xff")) else head
        elif head:
            self.kind = "text"
            self._consume = self._lines
            data = head
        else:
            self._stop("sitemap-empty", "the sitemap is empty")
        self._consume(data, False)

    def _lines(self, data: bytes, last: bool) -> None:
        lines = (self._line + data).replace(b"\r", b"\n").split(b"\n")
        self._line = b"" if last else lines.pop()[:MAX_TEXT]
        for line in lines:
            text = line.strip().decode("utf-8", "replace")
            if text.startswith(("http://", "https://")):
                self._add(Entry(text[:MAX_TEXT]))

    def start(self, name: str, _attributes: object) -> None:
        local = _local(name)
        if not self._path:
            if local not in _ITEM:
                self._stop("sitemap-root", f"the root element is {local[:40]!r}, not urlset or sitemapindex")
            self.kind = "urlset" if local == "urlset" else "sitemapindex"
        elif len(self._path) >= MAX_DEPTH:
            self._stop("sitemap-depth", f"elements nested deeper than {MAX_DEPTH}")
        self._path.append(local)
        if len(self._path) == 2:
            self._values = {}
        self._field = local if len(self._path) == 3 and local in _FIELDS else ""
        self._text.clear()
        self._length = 0

    def text(self, data: str) -> None:
        if self._field and self._length < MAX_TEXT:
            self._text.append(data)
            self._length += len(data)

    def end(self, _name: str) -> None:
        if self._field and len(self._path) == 3:
            self._values.setdefault(self._field, "".join(self._text).strip()[:MAX_TEXT])
        self._field = ""
        path = self._path
        local = path.pop()
        if len(path) == 1 and local == _ITEM[path[0]] and self._values.get("loc"):
            values = self._values
            priority = _priority(values.get("priority", ""))
            lastmod = unix_time(values.get("lastmod", ""))
            index = local == "sitemap"
            self._add(Entry(values["loc"], lastmod, values.get("changefreq", "").lower(), priority, index))

    def broken(self, error: expat.ExpatError) -> None:
        message = f"not well-formed XML: {expat.ErrorString(error.code)}"
        self.findings.append(Finding("sitemap-xml", message, "warning", "fetch", error.lineno, error.offset + 1))
        raise _Stop

    def refuse(self, *_: object) -> NoReturn:
        self._stop("sitemap-dtd", "a document type declaration in a sitemap; not read further")

    def _add(self, entry: Entry) -> None:
        if self.urls >= self._max_urls:
            self._stop("sitemap-too-many", f"more than {self._max_urls} URLs; the rest was not read")
        self.urls += 1
        self._ready.append(entry)

    def _stop(self, code: str, message: str) -> NoReturn:
        self.findings.append(Finding(code, message, "warning", "fetch"))
        raise _Stop


def read(chunks: Iterable[bytes], reader: SitemapReader | None = None) -> Iterator[Entry]:
    """All entries of a sitemap given in blocks, as they become complete."""
    reader = reader or SitemapReader()
    for chunk in chunks:
        for start in range(0, len(chunk), BLOCK):
            yield from reader.feed(chunk[start : start + BLOCK])
        if reader.ended:
            return
    yield from reader.close()


@lru_cache(maxsize=4096)  # a site's pages share few dates
def unix_time(text: str) -> float:
    """W3C date of a lastmod (year, month, day, or with time and zone) as unix time; 0 for what is none."""
    match = _DATE.match(text)
    try:
        if match:
            year, month, day = (int(part) if part else 1 for part in match.groups())
            return datetime(year, month, day, tzinfo=UTC).timestamp()
        at = datetime.fromisoformat(text)
        return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return 0.0


@lru_cache(maxsize=64)
def _local(name: str) -> str:
    return name[-200:].rpartition("}")[2].rpartition(":")[2].lower()


def _priority(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return -1.0
    return value if 0.0 <= value <= 1.0 else -1.0


def _xml_consumer(reader: SitemapReader) -> Callable[[bytes, bool], None]:
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.refuse

    def consume(data: bytes, last: bool) -> None:
        try:
            parser.Parse(data, last)
        except expat.ExpatError as error:
            reader.broken(error)

    return consume
