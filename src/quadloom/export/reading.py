"""WARC files and RDF dumps as pages, for the phases that a crawl has too.

Our own WARC records come back exactly as they were fetched. Those of other tools are read within limits: a record
larger than `limits.body_bytes` is cut, as a fetch would be. RDF dumps become one page per named graph whose name is a
web address, with the graph as N-Triples for its body; what our own dumps say of pages in `urn:quadloom:pages` (times,
titles, sources) is taken over. A dump may list its graphs in any order, so a scratch store on disk sorts it first.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyoxigraph as ox
import zstandard
from fastwarc.warc import ArchiveIterator, WarcRecord, WarcRecordType

from quadloom.asking.result_formats import GRAPH_FORMATS
from quadloom.errors import ArchiveDamaged, UsageError
from quadloom.model.page import Page
from quadloom.model.url import resolve
from quadloom.phases.index import PAGES
from quadloom.settings import Limits
from quadloom.stores import warc_record

RDF_SUFFIXES = {
    "nq": "nq", "nquads": "nq", "trig": "trig", "ttl": "turtle", "nt": "nt", "jsonld": "jsonld", "rdf": "rdfxml",
    "owl": "rdfxml", "xml": "rdfxml",
}  # fmt: skip
_SUFFIX = re.compile(r"\.([a-z]+)(?:\.(gz|zst))?$", re.IGNORECASE)
_DIGEST = re.compile(r"[0-9a-f]{32}\Z")
_HEADERS = 64 * 1024


class Imported(msgspec.Struct, frozen=True):
    """A page to import. The rest is what a dump said of it: source page, kind, title and its language, digest."""

    page: Page
    source: str = ""
    kind: str = ""
    title: str = ""
    language: str = ""
    digest: bytes = b""


def read_pages(path: Path, limits: Limits, *, default_graph: str = "", now: float) -> Iterator[Imported]:
    """Pages of a file, by its suffix. `default_graph`: URL for statements that name no graph."""
    match = _SUFFIX.search(path.name)
    name, packing = (match.group(1).lower(), (match.group(2) or "").lower()) if match else ("", "")
    if name == "warc":
        return read_warc(path, limits)
    if name in RDF_SUFFIXES:
        return read_rdf(path, RDF_SUFFIXES[name], packing, default_graph=default_graph, now=now)
    raise UsageError(
        f"cannot tell what {path.name} is", hint=f"known suffixes are warc, {', '.join(RDF_SUFFIXES)}, with .gz or .zst"
    )


def read_warc(path: Path, limits: Limits) -> Iterator[Imported]:
    """Responses with a page in them, in the order of the file. A torn end ends the reading silently."""
    with path.open("rb") as stream:
        wanted = WarcRecordType.response | WarcRecordType.resource
        for record in ArchiveIterator(stream, record_types=wanted, parse_http=False, max_header_len=_HEADERS):
            page = _own(record, path) if record.headers.get("WARC-Quadloom") else _foreign(record, limits)
            if page is not None and page.status < 300:
                yield Imported(page)


def _own(record: WarcRecord, path: Path) -> Page | None:
    head = "".join(f"{name}: {value}\r\n" for name, value in record.headers.items())
    data = f"WARC/1.1\r\n{head}\r\n".encode() + record.reader.read() + b"\r\n\r\n"
    try:
        found = warc_record.parse(data, f"{path.name}:{record.stream_pos}")
    except ArchiveDamaged:
        return None
    return found if isinstance(found, Page) else None


def _foreign(record: WarcRecord, limits: Limits) -> Page | None:
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
        url, url, status, headers, body[: limits.body_bytes], at, 0.0,
        record.headers.get("WARC-IP-Address") or "", truncated=len(body) > limits.body_bytes,
    )  # fmt: skip


def read_rdf(path: Path, format: str, packing: str, *, default_graph: str, now: float) -> Iterator[Imported]:
    """One page per named graph with a web address, in the order of their names."""
    with tempfile.TemporaryDirectory(prefix="quadloom-import-") as folder:
        scratch = ox.Store(folder)
        try:
            with _unpacked(path, packing) as stream:
                target = ox.NamedNode(default_graph) if default_graph else None
                scratch.bulk_load(stream, GRAPH_FORMATS[format], to_graph=target, lenient=True)
        except SyntaxError as error:
            raise UsageError(
                f"{path.name} is not valid {format}: {error.msg} (line {error.lineno})",
                hint="nothing of this file was imported; correct the line and try again",
            ) from None
        names = {str(graph)[1:-1] for graph in scratch.named_graphs()}
        # Pages that state nothing (an image, say) have a description only.
        names |= {str(q.subject)[1:-1] for q in scratch.quads_for_pattern(None, None, None, ox.NamedNode(PAGES))}
        for name in sorted(names):
            if resolve(name) is not None:
                yield _of_graph(scratch, name, now)
        del scratch  # closes its files before the folder goes


def _of_graph(scratch: ox.Store, name: str, now: float) -> Imported:
    body = scratch.dump(format=ox.RdfFormat.N_TRIPLES, from_graph=ox.NamedNode(name)) or b""
    body = b"".join(sorted(body.splitlines(keepends=True)))
    said = {
        quad.predicate.value.rpartition("/")[2].rpartition(":")[2].rpartition("#")[2]: quad.object
        for quad in scratch.quads_for_pattern(ox.NamedNode(name), None, None, ox.NamedNode(PAGES))
    }
    title = said.get("title")
    digest = _text(said.get("digest"))
    page = Page(
        name, name, int(_text(said.get("status")) or 200), (("content-type", "application/n-triples"),), body,
        _seconds(_text(said.get("generatedAtTime")), now), 0.0,
    )  # fmt: skip
    return Imported(
        page,
        source=_text(said.get("foundOn")),
        kind=_text(said.get("kind")),
        title=_text(title),
        language=(title.language or "") if isinstance(title, ox.Literal) else "",
        digest=bytes.fromhex(digest) if _DIGEST.match(digest) else b"",
    )


def _text(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | None) -> str:
    return term.value if isinstance(term, ox.NamedNode | ox.Literal) else ""


def _seconds(text: str, otherwise: float) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return otherwise


def _unpacked(path: Path, packing: str) -> BinaryIO:
    if packing == "gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]  # a GzipFile reads like any binary file
    if packing == "zst":
        stream: BinaryIO = zstandard.open(path, "rb")
        return stream
    return path.open("rb")
