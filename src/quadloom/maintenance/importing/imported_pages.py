"""WARC files and RDF dumps as pages, which then pass the same phases as crawled ones.

WARC records written by Quadloom give back the page exactly as it was fetched. Those of other tools are read within
limits: a record larger than `limits.body_bytes` is cut, as a fetch would be. RDF dumps become one page per named graph
whose name is a web address, with the graph as N-Triples for its body; the descriptions of pages in our own dumps
(`urn:quadloom:pages`: times, titles, sources) are taken over. A dump may list its graphs in any order, so a scratch
store on disk sorts it first, in a process that a hostile file may end (`quadloom.maintenance.importing.rdf_loader`).
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Protocol

import msgspec
import pyoxigraph as ox
from fastwarc.warc import ArchiveIterator, WarcRecord

from quadloom.documents.archives.content_coding import BodyDecoder, coding_of
from quadloom.documents.archives.warc_records import WarcBlock, warc_blocks
from quadloom.documents.descriptions import PAGES
from quadloom.errors import ArchiveDamaged, QuadloomError, UsageError
from quadloom.maintenance.importing import rdf_loader
from quadloom.model.finding import Finding
from quadloom.model.page import Page
from quadloom.model.url import resolve
from quadloom.settings import LimitSettings
from quadloom.stores.archive import warc_record

RDF_SUFFIXES = {
    "nq": "nq", "nquads": "nq", "trig": "trig", "ttl": "turtle", "nt": "nt", "jsonld": "jsonld", "rdf": "rdfxml",
    "owl": "rdfxml", "xml": "rdfxml",
}  # fmt: skip
_SUFFIX = re.compile(r"\.([a-z]+)(?:\.(gz|zst))?$", re.IGNORECASE)
_DIGEST = re.compile(r"[0-9a-f]{32}\Z")
_STATUS = re.compile(r"[1-5][0-9]{2}\Z", re.ASCII)
_CODED = re.compile(rb"(?i)\n(?:transfer|content)-encoding")
_HTTP = "application/http; msgtype=response"
_LATEST = 253_402_300_799.0  # end of the year 9999: no date is later
_PIECE = 64 * 1024
_LONGEST_BODY = 50 << 20  # of a sitemap, whatever `limits.body_bytes` says


class SizedReader(Protocol):
    def read(self, size: int) -> bytes: ...


class ImportedPage(msgspec.Struct, frozen=True):
    """A page to import. The other fields come from a dump's description: source page, kind, title, language, digest."""

    page: Page
    source: str = ""
    kind: str = ""
    title: str = ""
    language: str = ""
    digest: bytes = b""


Report = Callable[[Finding], None]
"""Receives what is wrong with the files: a message names the file and, for WARC, the offset."""


def read_files(
    paths: Iterable[Path], limits: LimitSettings, *, default_graph: str = "", now: float, report: Report
) -> Iterator[ImportedPage]:
    """Pages of several files. A file that cannot be read costs itself only."""
    for path in paths:
        try:
            yield from read_pages(path, limits, default_graph=default_graph, now=now, report=report)
        except (QuadloomError, OSError) as error:
            hint = error.hint if isinstance(error, QuadloomError) else "check the file and its permissions"
            report(Finding("import-file", f"{path.name} was not read: {error}", "error", "fetch", advice=hint))


def read_pages(
    path: Path, limits: LimitSettings, *, default_graph: str = "", now: float, report: Report
) -> Iterator[ImportedPage]:
    """Pages of a file, by its suffix. `default_graph`: URL for statements that name no graph."""
    name, packing = suffix_of(path)
    if name == "warc":
        return read_warc(path, limits, report)
    return read_rdf(
        path,
        RDF_SUFFIXES[name],
        packing,
        default_graph=default_graph,
        now=now,
        most=limits.quads_per_page,
        report=report,
    )


def suffix_of(path: Path) -> tuple[str, str]:
    """`warc` or a key of `RDF_SUFFIXES`, and `gz`, `zst` or nothing. Raises `UsageError` for any other file."""
    match = _SUFFIX.search(path.name)
    name, packing = (match.group(1).lower(), (match.group(2) or "").lower()) if match else ("", "")
    if name != "warc" and name not in RDF_SUFFIXES:
        raise UsageError(
            f"the type of {path.name} is unknown",
            hint=f"known suffixes are warc, {', '.join(RDF_SUFFIXES)}, each may be followed by .gz or .zst",
        )
    return name, packing


def read_warc(path: Path, limits: LimitSettings, report: Report) -> Iterator[ImportedPage]:
    """Responses that contain a page, in the order of the file. Bad records are reported and skipped."""
    # A foreign body may be compressed or chunked, so its block may be longer than the page that it becomes.
    most = max(2 * limits.body_bytes, _LONGEST_BODY) + 2 * limits.header_bytes
    for record in warc_blocks(path, most, report):
        try:
            page = _own(record, path) if record.header("warc-quadloom") else _foreign(record, limits)
        except (ArchiveDamaged, OSError) as error:
            message = f"{path.name}: the record at offset {record.offset} was skipped: {error}"
            report(Finding("warc-record", message, "error", "fetch", advice="repair the file with a WARC tool"))
            continue
        if page is not None and page.status < 300:
            yield ImportedPage(page)


def _own(record: WarcBlock, path: Path) -> Page | None:
    """A record that claims to be written by Quadloom. Anybody may have written it: a longer one than Quadloom writes
    is not believed, and addresses and times are checked as those of foreign records are."""
    if record.is_long:
        raise ArchiveDamaged(f"it has more than {len(record.block)} bytes")
    head = "".join(f"{name}: {value}\r\n" for name, value in record.headers)
    data = f"WARC/1.1\r\n{head}\r\n".encode() + record.block + b"\r\n\r\n"
    found = warc_record.parse(data, f"{path.name}:{record.offset}")
    if not isinstance(found, Page):
        return None
    url, final_url = resolve(found.url), resolve(found.final_url)
    if url is None or final_url is None:
        raise ArchiveDamaged(f"{(found.url if url is None else found.final_url)[:200]!r} is not the address of a page")
    return msgspec.structs.replace(
        found,
        url=url,
        final_url=final_url,
        fetched_at=found.fetched_at if 0.0 <= found.fetched_at <= _LATEST else record.date,
        hops=tuple(hop for hop in found.hops if resolve(hop.url) == hop.url),
    )


def _foreign(record: WarcBlock, limits: LimitSettings) -> Page | None:
    url = resolve(record.header("warc-target-uri").strip("<>"))
    if url is None:
        return None
    status = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", record.header("content-type")),)
    body = record.block
    if record.is_response:
        # Only the head goes through the library if the body is as it was sent, which saves two copies of it.
        end = body.find(b"\r\n\r\n") + 4
        is_plain = end > 3 and _CODED.search(body, 0, end) is None
        parsed = _http_record(body[:end] if is_plain else body)
        if is_plain and parsed.reader.read(1):  # the head ends earlier, with line breaks of another kind
            is_plain, parsed = False, _http_record(body)
        if parsed.http_headers is None:
            return None
        status = parsed.http_headers.status_code or 0
        headers = tuple((name.lower(), value) for name, value in parsed.http_headers.astuples()[: limits.header_count])
        # The library would unpack a whole bomb.
        coding = coding_of(", ".join(value for name, value in headers if name == "content-encoding"))
        body = body[end:] if is_plain else _decoded(parsed.reader, coding, limits)
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
    record.parse_http(auto_decode="transfer")
    return record


def _decoded(reader: SizedReader, coding: str | None, limits: LimitSettings) -> bytes:
    """Up to one byte more than `limits.body_bytes`. Raises `ArchiveDamaged` for what a fetch would refuse."""
    if coding is None:
        raise ArchiveDamaged("its body has several content codings, or an unknown one")
    body = BodyDecoder(coding, limits.body_bytes + 1, limits.decode_ratio)
    try:
        while (piece := reader.read(_PIECE)) and body.feed(piece):
            pass
        if body.state == "bomb":
            raise ArchiveDamaged(f"its body decodes to more than {limits.decode_ratio:g} times its size")
        if body.state == "broken" or (body.wire and not body.decoded and body.incomplete()):
            raise ArchiveDamaged(f"its body is not valid {coding}")
        return body.bytes()
    finally:
        body.release()


def read_rdf(
    path: Path, format: str, packing: str, *, default_graph: str, now: float, report: Report, most: int = 200_000
) -> Iterator[ImportedPage]:
    """One page per named graph with a web address, in the order of their names. Of a graph with more than `most`
    statements, `most` + 1 are passed on, so that the transformation cuts it and reports that."""
    with tempfile.TemporaryDirectory(prefix="quadloom-import-") as folder:
        rdf_loader.load(Path(folder), path, format, packing, default_graph)
        scratch = ox.Store(folder)
        if without := sum(1 for _ in scratch.quads_for_pattern(None, None, None, ox.DefaultGraph())):
            message = (
                f"{path.name}: {without:,} statements name no graph and were left out; to import them: --graph URL"
            )
            report(Finding("import-file", message, "error", "fetch"))
        names = {str(graph)[1:-1] for graph in scratch.named_graphs()}
        # Pages that state nothing (such as images) have a description only.
        names |= {str(q.subject)[1:-1] for q in scratch.quads_for_pattern(None, None, None, ox.NamedNode(PAGES))}
        for name in sorted(names):
            if resolve(name) is not None:
                yield _of_graph(scratch, name, now, most)
        del scratch  # closes its files before the folder goes


def _of_graph(scratch: ox.Store, name: str, now: float, most: int) -> ImportedPage:
    quads = islice(scratch.quads_for_pattern(None, None, None, ox.NamedNode(name)), most + 1)
    body = "".join(sorted(f"{quad.triple} .\n" for quad in quads)).encode()
    described = {
        quad.predicate.value.rpartition("/")[2].rpartition(":")[2].rpartition("#")[2]: quad.object
        for quad in scratch.quads_for_pattern(ox.NamedNode(name), None, None, ox.NamedNode(PAGES))
    }
    title = described.get("title")
    digest = _text(described.get("digest"))
    page = Page(
        name,
        name,
        _status(_text(described.get("status"))),
        (("content-type", "application/n-triples"),),
        body,
        _seconds(_text(described.get("generatedAtTime")), now),
        0.0,
    )
    return ImportedPage(
        page,
        source=_text(described.get("foundOn")),
        kind=_text(described.get("kind")),
        title=_text(title),
        language=(title.language or "") if isinstance(title, ox.Literal) else "",
        digest=bytes.fromhex(digest) if _DIGEST.match(digest) else b"",
    )


def _text(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | None) -> str:
    return term.value if isinstance(term, ox.NamedNode | ox.Literal) else ""


def _status(text: str) -> int:
    """Anybody may have written the dump: a text that is no status counts as 200."""
    return int(text) if _STATUS.match(text) else 200


def _seconds(text: str, otherwise: float) -> float:
    """Unix time of a date; `otherwise`, the present, if it is no date or lies in the future or before 1970."""
    try:
        at = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return otherwise
    return at if 0.0 <= at <= otherwise else otherwise
