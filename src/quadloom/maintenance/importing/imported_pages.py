"""Archives and RDF dumps as pages, which then pass the same phases as crawled ones.

WARC records written by Quadloom give back the page exactly as it was fetched; `quadloom.documents.archives.pages` reads
those of other tools, within the limits of a fetch. RDF dumps become one page per named graph
whose name is a web address, with the graph as N-Triples for its body; the descriptions of pages in our own dumps
(`urn:quadloom:pages`: times, titles, sources) are taken over. A dump may list its graphs in any order, so a scratch
store on disk sorts it first, in a process that a hostile file may end (`quadloom.maintenance.importing.rdf_loader`).
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec
import pyoxigraph as ox

from quadloom.documents.archives.files import is_archive, warc_files
from quadloom.documents.archives.pages import recorded_pages
from quadloom.documents.archives.warc_records import WarcBlock
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
_LATEST = 253_402_300_799.0  # end of the year 9999: no date is later


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
    paths: Iterable[Path],
    limits: LimitSettings,
    *,
    default_graph: str = "",
    now: float,
    report: Report,
    not_taken: Counter[str] | None = None,
) -> Iterator[ImportedPage]:
    """Pages of several files. A file that cannot be read costs itself only. `not_taken` receives how many records of
    WARC files hold no page, by their kind."""
    others: Counter[str] = Counter() if not_taken is None else not_taken
    for path in paths:
        try:
            name, packing = suffix_of(path)
            if name == "warc":
                with warc_files(path) as files:
                    for file in files:
                        yield from read_warc(file, limits, report, others)
                continue
            yield from read_rdf(
                path,
                RDF_SUFFIXES[name],
                packing,
                default_graph=default_graph,
                now=now,
                report=report,
                most=limits.quads_per_page,
            )
        except (QuadloomError, OSError) as error:
            hint = error.hint if isinstance(error, QuadloomError) else "check the file and its permissions"
            report(Finding("import-file", f"{path.name} was not read: {error}", "error", "fetch", advice=hint))


def suffix_of(path: Path) -> tuple[str, str]:
    """`warc` for every archive or a key of `RDF_SUFFIXES`, and `gz`, `zst` or nothing. Raises `UsageError` for any
    other file."""
    if is_archive(path):
        return "warc", ""
    match = _SUFFIX.search(path.name)
    name, packing = (match.group(1).lower(), (match.group(2) or "").lower()) if match else ("", "")
    if name not in RDF_SUFFIXES:
        raise UsageError(
            f"the type of {path.name} is unknown",
            hint=f"known suffixes are warc, arc, wacz, {', '.join(RDF_SUFFIXES)}; .gz or .zst may follow",
        )
    return name, packing


def read_warc(path: Path, limits: LimitSettings, report: Report, not_taken: Counter[str]) -> Iterator[ImportedPage]:
    """Pages of the file, in its order. Bad records are reported and skipped; so is a file without any page."""
    before = not_taken.copy()
    found = 0

    def count(finding: Finding) -> None:
        nonlocal found
        found += 1
        report(finding)

    for recorded in recorded_pages(path, limits, count, not_taken, own=read_own):
        found += 1
        yield ImportedPage(recorded.page)
    if not found:
        others = listed(not_taken - before) or "no record"
        message = f"{path.name} has no page that could be read: it has {others}"
        report(Finding("import-file", message, "error", "fetch", advice="is it the right file of its archive?"))


def listed(counts: Counter[str]) -> str:
    """`3 revisit, 2 metadata`."""
    return ", ".join(f"{number:,} {name}" for name, number in counts.most_common())


def read_own(record: WarcBlock, name: str) -> Page | None:
    """A record that claims to be written by Quadloom. Anybody may have written it: a longer one than Quadloom writes
    is not believed, and addresses and times are checked as those of foreign records are."""
    if record.is_long:
        raise ArchiveDamaged(f"it has more than {len(record.block)} bytes")
    head = "".join(f"{name}: {value}\r\n" for name, value in record.headers)
    data = f"WARC/1.1\r\n{head}\r\n".encode() + record.block + b"\r\n\r\n"
    found = warc_record.parse(data, name)
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
