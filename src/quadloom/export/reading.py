"""WARC files and RDF dumps as pages, for the phases that a crawl has too.

Our own WARC records come back exactly as they were fetched. Those of other tools are read within limits: a record
larger than `limits.body_bytes` is cut, as a fetch would be. RDF dumps become one page per named graph whose name is a
web address, with the graph as N-Triples for its body; what our own dumps say of pages in `urn:quadloom:pages` (times,
titles, sources) is taken over. A dump may list its graphs in any order, so a scratch store on disk sorts it first, in a
process that a hostile file may end (`quadloom.export.loading`).
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
    """A page to import. The rest is what a dump said of it: source page, kind, title and its language, digest."""

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
        f"cannot tell what {path.name} is", hint=f"known suffixes are warc, {', '.join(RDF_SUFFIXES)}, with .gz or .zst"
    )


def read_warc(path: Path, limits: LimitSettings) -> Iterator[ImportedPage]:
    """Responses with a page in them, in the order of the file. A torn end ends the reading silently."""
    with path.open("rb") as stream:
        wanted = WarcRecordType.response | WarcRecordType.resource
        for record in ArchiveIterator(stream, record_types=wanted, parse_http=False, max_header_len=_HEADERS):
            own = record.headers.get("WARC-Quadloom")
            page = _own(record, path, limits) if own else _foreign(record, limits)
            if page is not None and page.status < 300:
                yield ImportedPage(page)


def _own(record: WarcRecord, path: Path, limits: LimitSettings) -> Page | None:
    """What we wrote ourselves is never longer than this; who else claims to be us is not believed."""
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
        url, url, status, headers, body[: limits.body_bytes], at, 0.0,
        record.headers.get("WARC-IP-Address") or "", truncated=len(body) > limits.body_bytes,
    )  # fmt: skip


def read_rdf(
    path: Path, format: str, packing: str, *, default_graph: str, now: float, most: int = 200_000
) -> Iterator[ImportedPage]:
    """One page per named graph with a web address, in the order of their names; at most `most` statements of each, and
    one more where there are, so that the transformation tells of the cut."""
    with tempfile.TemporaryDirectory(prefix="quadloom-import-") as folder:
        loading.load(Path(folder), path, format, packing, default_graph)
        scratch = ox.Store(folder)
        names = {str(graph)[1:-1] for graph in scratch.named_graphs()}
        # Pages that state nothing (an image, say) have a description only.
        names |= {str(q.subject)[1:-1] for q in scratch.quads_for_pattern(None, None, None, ox.NamedNode(PAGES))}
        for name in sorted(names):
            if resolve(name) is not None:
                yield _of_graph(scratch, name, now, most)
        del scratch  # closes its files before the folder goes


def _of_graph(scratch: ox.Store, name: str, now: float, most: int) -> ImportedPage:
    quads = islice(scratch.quads_for_pattern(None, None, None, ox.NamedNode(name)), most + 1)
    body = "".join(sorted(f"{quad.triple} .\n" for quad in quads)).encode()
    said = {
        quad.predicate.value.rpartition("/")[2].rpartition(":")[2].rpartition("#")[2]: quad.object
        for quad in scratch.quads_for_pattern(ox.NamedNode(name), None, None, ox.NamedNode(PAGES))
    }
    title = said.get("title")
    digest = _text(said.get("digest"))
    page = Page(
        name, name, _status(_text(said.get("status"))), (("content-type", "application/n-triples"),), body,
        _seconds(_text(said.get("generatedAtTime")), now), 0.0,
    )  # fmt: skip
    return ImportedPage(
        page,
        source=_text(said.get("foundOn")),
        kind=_text(said.get("kind")),
        title=_text(title),
        language=(title.language or "") if isinstance(title, ox.Literal) else "",
        digest=bytes.fromhex(digest) if _DIGEST.match(digest) else b"",
    )


def _text(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple | None) -> str:
    return term.value if isinstance(term, ox.NamedNode | ox.Literal) else ""


def _status(text: str) -> int:
    """A dump is anybody's: what is no status counts as a page that came."""
    return int(text) if _STATUS.match(text) else 200


def _seconds(text: str, otherwise: float) -> float:
    """Of a date; `otherwise`, which is now, for what is none, or none at which a page could have been read."""
    try:
        at = datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return otherwise
    return at if 0.0 <= at <= otherwise else otherwise
