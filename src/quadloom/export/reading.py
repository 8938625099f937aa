"""WARC files and RDF dumps as pages, which then pass the same phases as crawled ones.

WARC records written by Quadloom give back the page exactly as it was fetched. Those of other tools are read within
limits: a record larger than `limits.body_bytes` is cut, as a fetch would be. RDF dumps become one page per named graph
whose name is a web address, with the graph as N-Triples for its body; the descriptions of pages in our own dumps
(`urn:quadloom:pages`: times, titles, sources) are taken over. A dump may list its graphs in any order, so a scratch
store on disk sorts it first, in a process that a hostile file may end (`quadloom.export.loading`).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec
import pyoxigraph as ox
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from quadloom.errors import ArchiveDamaged, UsageError
from quadloom.export import loading
from quadloom.model.page import Page
from quadloom.model.url import resolve
from quadloom.phases.index import PAGES
from quadloom.settings import LimitSettings
from quadloom.stores.archive import warc_record

RDF_SUFFIXES = {
    "nq": "nq", "nquads": "nq", "trig": "trig", "ttl": "turtle", "nt": "nt", "jsonld": "jsonld", "rdf": "rdfxml",
    "owl": "rdfxml", "xml": "rdfxml",
}  # fmt: skip
_SUFFIX = re.compile(r"\.([a-z]+)(?:\.(gz|zst))?$", re.IGNORECASE)
_DIGEST = re.compile(r"[0-9a-f]{32}\Z")
_STATUS = re.compile(r"[1-5][0-9]{2}\Z", re.ASCII)
_HEADERS = 64 * 1024
_LONGEST_BODY = 50 << 20  # of a sitemap, whatever `limits.body_bytes` says


class ImportedPage(msgspec.Struct, frozen=True):
    """A page to import. The other fields come from a dump's description: source page, kind, title, language, digest."""

    page: Page
    source: str = ""
    kind: str = ""
    title: str = ""
    language: str = ""
    digest: bytes = b""


def read_pages(path: Path, limits: LimitSettings, *, default_graph: str = "", now: float) -> Iterator[ImportedPage]:
    """Pages of a file, by its suffix. `default_graph`: URL for statements that name no graph."""
    match = _SUFFIX.search(path.name)
    name, packing = (match.group(1).lower(), (match.group(2) or "").lower()) if match else ("", "")
    if name == "warc":
        return read_warc(path, limits)
    if name in RDF_SUFFIXES:
        return read_rdf(
            path, RDF_SUFFIXES[name], packing, default_graph=default_graph, now=now, most=limits.quads_per_page
        )
    raise UsageError(
        f"the type of {path.name} is unknown",
        hint=f"known suffixes are warc, {', '.join(RDF_SUFFIXES)}, each may be followed by .gz or .zst",
    )


def read_warc(path: Path, limits: LimitSettings) -> Iterator[ImportedPage]:
    """Responses that contain a page, in the order of the file. A truncated last record is ignored."""
    with path.open("rb") as stream:
        wanted = WarcRecordType.response | WarcRecordType.resource
        for record in ArchiveIterator(stream, record_types=wanted, parse_http=False, max_header_len=_HEADERS):
            own = record.headers.get("WARC-Quadloom")
            page = _own(record, path, limits) if own else _foreign(record, limits)
            if page is not None and page.status < 300:
                yield ImportedPage(page)


def _own(record: WarcRecord, path: Path, limits: LimitSettings) -> Page | None:
    """A record that claims to be written by Quadloom. A longer one than Quadloom writes is not believed."""
    most = max(limits.body_bytes, _LONGEST_BODY) + 2 * limits.header_bytes
    block = record.reader.read(most + 1)
    if len(block) > most:
        return None
    head = "".join(f"{name}: {value}\r\n" for name, value in record.headers.items())
    data = f"WARC/1.1\r\n{head}\r\n".encode() + block + b"\r\n\r\n"
    try:
        found = warc_record.parse(data, f"{path.name}:{record.stream_pos}")
    except ArchiveDamaged:
        return None
    return found if isinstance(found, Page) else None


def _foreign(record: WarcRecord, limits: LimitSettings) -> Page | None:
    url = resolve((record.headers.get("WARC-Target-URI") or "").strip("<>"))
    if url is None:
        return None
    status = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", record.headers.get("Content-Type") or ""),)
    if record.record_type == WarcRecordType.response:
        record.parse_http(auto_decode="all")
        if record.http_headers is None:
            return None
        status = record.http_headers.status_code or 0
        headers = tuple((name.lower(), value) for name, value in record.http_headers.astuples()[: limits.header_count])
    body = record.reader.read(limits.body_bytes + 1)
    at = record.record_date.timestamp() if record.record_date is not None else 0.0
    return Page(
        url,
        url,
        status,
        headers,
        body[: limits.body_bytes],
        at,
        0.0,
        record.headers.get("WARC-IP-Address") or "",
        truncated=len(body) > limits.body_bytes,
    )


def read_rdf(
    path: Path, format: str, packing: str, *, default_graph: str, now: float, most: int = 200_000
) -> Iterator[ImportedPage]:
    """One page per named graph with a web address, in the order of their names. Of a graph with more than `most`
    statements, `most` + 1 are passed on, so that the transformation cuts it and reports that."""
    with tempfile.TemporaryDirectory(prefix="quadloom-import-") as folder:
        loading.load(Path(folder), path, format, packing, default_graph)
        scratch = ox.Store(folder)
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
