"""Files that are gzip themselves, as sitemaps and RDF dumps are: what is inside, within a limit.

This is not the content coding of HTTP, which the fetcher undoes: `sitemap.xml.gz` and `dump.nt.gz` arrive packed, and
stay so in the archive. What is inside is looked at like any other body; an archive of files (tar) is left alone.
"""

from __future__ import annotations

from typing import cast

import msgspec
from isal import isal_zlib

from quadloom.model.document import Document
from quadloom.model.finding import Finding
from quadloom.phases.detect import detect

# What sitemaps.org allows one sitemap, unpacked. Larger dumps are better read by `quadloom import`.
MAX_BYTES = 50 * 1024 * 1024
MAGIC = b"\x1f\x8b"

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
    """What is inside, and what that is; None where it is nothing that can be read."""
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
    size = 0
    while body.startswith(MAGIC) and size < limit:
        inflater = isal_zlib.decompressobj(wbits=31)
        try:
            block = inflater.decompress(body, limit - size)
        except _GZIP_ERROR:
            message = f"the gzip data is damaged after {size} bytes; read as far as it goes"
            return b"".join(blocks), Finding("gzip-damaged", message, "warning", "detect")
        blocks.append(block)
        size += len(block)
        if not inflater.eof:
            return b"".join(blocks), _unfinished(size, limit)
        body = inflater.unused_data
    return b"".join(blocks), None


def _unfinished(size: int, limit: int) -> Finding:
    if size >= limit:
        return Finding(
            "gzip-too-large", f"more than {limit} bytes unpacked; the rest is not read", "warning", "detect",
            advice="publish the data in several files",
        )  # fmt: skip
    return Finding("gzip-damaged", f"the gzip data ends too early, after {size} bytes", "warning", "detect")
