"""Files that are gzip themselves, as sitemaps and RDF dumps are: what is inside, within a limit.

This is not the content coding of HTTP, which the fetcher decodes: `sitemap.xml.gz` and `dump.nt.gz` arrive packed, and
stay so in the archive. The content is detected like any other body; an archive of files (tar) is left alone.
"""

from __future__ import annotations

from typing import cast

import msgspec
from isal import isal_zlib

from quadloom.documents.detect import detect
from quadloom.model.document import Document
from quadloom.model.finding import Finding

# What sitemaps.org allows one sitemap, unpacked. Larger dumps are better read by `quadloom import`.
MAX_BYTES = 50 * 1024 * 1024
MAGIC = b"\x1f\x8b"
# What is left of a piece is copied at the end of each member. With the whole body as one piece, a file of empty members
# (20 bytes each) took quadratic time: 1.6 MB of them 5 s.
_PIECE = 4096

_LABELS = frozenset(
    ("", "application/gzip", "application/x-gzip", "application/octet-stream", "binary/octet-stream")
)  # they name the wrapping, not what is inside
_DATA = frozenset(("xml", "rss", "atom", "jsonfeed", "opml", "sitemap", "sitemapindex", "rdfxml", "turtle", "trig",
                   "ntriples", "nquads", "jsonld", "json", "text", "html", "xhtml", "svg"))  # fmt: skip
_GZIP_ERROR = cast(type[Exception], isal_zlib.error)  # isal's stub declares the class as an instance


class Unpacked(msgspec.Struct, frozen=True):
    body: bytes
    document: Document


def unpack(body: bytes, *, url: str, content_type: str | None, limit: int = MAX_BYTES) -> Unpacked | None:
    """The content and its detected document; None if no syntax could read it."""
    inside, finding = _inflate(body, limit)
    label = (content_type or "").partition(";")[0].strip().lower()
    path, mark, rest = url.partition("?")
    name = path[:-3] if path.lower().endswith(".gz") else path
    document = detect(inside, url=f"{name}{mark}{rest}", content_type=None if label in _LABELS else content_type)
    if document.kind not in _DATA:
        return None
    reasons = (f"gzip, {len(inside)} bytes unpacked", *document.reasons)
    findings = document.findings if finding is None else (*document.findings, finding)
    return Unpacked(inside, msgspec.structs.replace(document, reasons=reasons, findings=findings))


def _inflate(body: bytes, limit: int) -> tuple[bytes, Finding | None]:
    """All members, one after the other (RFC 1952 2.2), up to the limit or the first defect."""
    blocks: list[bytes] = []
    size = at = 0
    view = memoryview(body)
    while body.startswith(MAGIC, at) and size < limit:
        inflater = isal_zlib.decompressobj(wbits=31)
        while not inflater.eof:
            piece = view[at : at + _PIECE]
            try:
                block = inflater.decompress(piece, limit - size)
            except _GZIP_ERROR:
                message = f"the gzip data is damaged after {size} bytes; read as far as possible"
                return b"".join(blocks), Finding("gzip-damaged", message, "warning", "detect")
            blocks.append(block)
            size += len(block)
            at += len(piece) - len(inflater.unused_data)
            if not inflater.eof and (size >= limit or at >= len(body)):
                return b"".join(blocks), _unfinished(size, limit)
    return b"".join(blocks), None


def _unfinished(size: int, limit: int) -> Finding:
    if size >= limit:
        return Finding(
            "gzip-too-large",
            f"more than {limit} bytes unpacked; the rest is not read",
            "warning",
            "detect",
            advice="publish the data in several files",
        )
    return Finding("gzip-damaged", f"the gzip data ends too early, after {size} bytes", "warning", "detect")
