"""A folder of evidence: records, statements and citations, and a manifest of their SHA-256 sums, which a time stamp
(RFC 3161) can date. `sha256sum` and `openssl` verify it; nobody needs Quadloom for that."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from quadloom.asking.entity import term_of
from quadloom.asking.evidence.cite import FORMATS, Citation
from quadloom.documents.syntaxes.terms import iri
from quadloom.errors import FetchError, UsageError
from quadloom.fetching.http.documents import DocumentFetcher
from quadloom.model.outcome import ArchiveRef
from quadloom.settings import Settings
from quadloom.stores.protocols.archive import Archive

MANIFEST, STAMP = "SHA256SUMS", "SHA256SUMS.tsr"
# A time-stamp request (RFC 3161, 2.4.1) in DER, for a SHA-256 digest, with a nonce of 8 bytes and the server's
# certificate in the reply: only digest and nonce vary.
_REQUEST_HEAD = bytes.fromhex("3043020101 3031 300d 0609608648016503040201 0500 0420")
_REQUEST_NONCE, _REQUEST_TAIL = bytes.fromhex("0208"), bytes.fromhex("0101ff")
_STAMP_BYTES = 64 * 1024
_README = """\
Evidence collected by Quadloom.

  citation.txt, .json, .bib    the values, with pages, times and records
  statements.nq                the statements, as N-Quads: thing, property, value, page
  record-*.warc.gz             what the servers sent, as WARC/1.1

Has anything changed?

  sha256sum --check SHA256SUMS
{stamp}
What did the server send?

  zcat record-1.warc.gz | less
"""
_STAMP_HELP = """
When did it exist? (CA.pem: certificate of the authority behind the time stamp)

  openssl ts -verify -data SHA256SUMS -in SHA256SUMS.tsr -CAfile CA.pem
  openssl ts -reply -in SHA256SUMS.tsr -text
"""

Stamp = Callable[[bytes], bytes]
"""The manifest → a time-stamp reply for it."""


def write_bundle(folder: Path, citations: Sequence[Citation], archive: Archive, stamp: Stamp | None = None) -> None:
    """Write the folder, which must be new or empty. Raises `UsageError` otherwise, and `FetchError` if the time-stamp
    server fails; then nothing is written."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists", hint="name a new folder")
    files = {
        "README.txt": _README.format(stamp=_STAMP_HELP if stamp else "").encode(),
        "citation.txt": FORMATS["text"](citations).encode(),
        "citation.json": FORMATS["json"](citations).encode(),
        "citation.bib": FORMATS["bibtex"](citations).encode(),
        "statements.nq": "".join(sorted(filter(None, map(_statement, citations)))).encode(),
    }
    records = dict.fromkeys(one.record for one in citations if one.record is not None)
    for number, record in enumerate(records, 1):
        files[f"record-{number}.warc.gz"] = archive.record(ArchiveRef(record.file, record.offset, record.length)).member
    manifest = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items()).encode()
    reply = stamp(manifest) if stamp else b""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    if reply:
        (folder / STAMP).write_bytes(reply)
    (folder / MANIFEST).write_bytes(manifest)


def _statement(one: Citation) -> str:
    thing, property, page = iri(one.thing), iri(one.property), iri(one.page)
    return f"{thing} {property} {term_of(one.value)} {page} .\n" if one.value and thing and property and page else ""


def stamp_from(settings: Settings) -> Stamp | None:
    """The server of `stores.timestamp_server`; None if no server is configured."""
    server = settings.stores.timestamp_server
    if not server:
        return None

    def stamp(manifest: bytes) -> bytes:
        nonce = bytes([secrets.randbelow(0x7F) + 1]) + secrets.token_bytes(7)  # a positive integer in shortest form
        digest = hashlib.sha256(manifest).digest()
        request = b"".join((_REQUEST_HEAD, digest, _REQUEST_NONCE, nonce, _REQUEST_TAIL))
        with DocumentFetcher(settings) as fetcher:
            page = fetcher.fetch_one(
                server,
                accept="application/timestamp-reply",
                method="POST",
                payload=request,
                headers=(("Content-Type", "application/timestamp-query"),),
                max_bytes=_STAMP_BYTES,
            )
        if page.status != 200 or not _is_granted(page.body, digest, nonce):
            raise FetchError(
                "status",
                f"{server} gave no time stamp (status {page.status})",
                hint='check stores.timestamp_server, or set it to "" for a bundle without a time stamp',
            )
        return page.body

    return stamp


def _is_granted(reply: bytes, digest: bytes, nonce: bytes) -> bool:
    """A coarse check, so that no empty or foreign reply is stored: openssl does the rest. The status is granted (0) or
    granted with changes (1), the first integer of the reply."""
    status = reply.find(b"\x02\x01", 0, 16)
    return status > 0 and reply[status + 2 : status + 3] in (b"\0", b"\1") and digest in reply and nonce in reply
