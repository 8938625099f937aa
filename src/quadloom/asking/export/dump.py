"""Dumps: statements as N-Quads, TriG, Turtle, N-Triples, JSON-LD, RDF/XML or Parquet, and archive records as WARC.

Everything is streamed page by page. N-Quads are canonical: sorted within a page, pages in the order of their
fingerprints, so that equal warehouses give equal bytes. Formats without graphs (Turtle, N-Triples, RDF/XML) contain the
pages' own statements only; the others also contain the descriptions of pages.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from typing import BinaryIO, Protocol, cast

import msgspec
import pyoxigraph as ox
import zstandard

from quadloom.asking.export.description import dataset_description
from quadloom.asking.export.parquet import write_parquet
from quadloom.asking.export.selection import PageGraph, PageSource, Selection, StoredPages
from quadloom.asking.export.wacz import write_wacz
from quadloom.asking.questions import WarehouseQueries
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.asking.sparql.result_formats import write_graph
from quadloom.errors import UsageError
from quadloom.stores.archive.warc_record import file_header

SUFFIXES = {
    "nq": "nq", "nquads": "nq", "trig": "trig", "ttl": "turtle", "turtle": "turtle", "nt": "nt", "jsonld": "jsonld",
    "json-ld": "jsonld", "rdf": "rdfxml", "rdfxml": "rdfxml", "parquet": "parquet", "warc": "warc", "void": "void",
    "wacz": "wacz", "chunks": "chunks",
    "markdown": "markdown", "md": "markdown", "jsonl": "markdown",
}  # fmt: skip
_WITHOUT_GRAPHS = frozenset(("turtle", "nt", "rdfxml"))


class DumpReport(msgspec.Struct, frozen=True):
    """Numbers of pages and statements (or archive records) that were written or described."""

    pages: int
    quads: int


class DumpSink(Protocol):
    def write(self, data: bytes, /) -> int: ...


def parse_format(text: str) -> tuple[str, str]:
    """`nq.gz` → (`nq`, `gz`). The compression is empty, gz or zst. Raises `UsageError`."""
    name, _, packing = text.lower().lstrip(".").partition(".")
    if name not in SUFFIXES or packing not in ("", "gz", "zst"):
        raise UsageError(
            f"unknown export format {text!r}",
            hint=f"formats are {', '.join(SUFFIXES)}, each may be followed by .gz or .zst",
        )
    return SUFFIXES[name], packing


def export_to(
    warehouse: WarehouseQueries,
    stream: BinaryIO,
    format: str,
    selection: Selection,
    now: float,
    progress: Callable[[int], None] = lambda _pages: None,
    pages: PageSource | None = None,
) -> DumpReport:
    """Write a warehouse in any format of `parse_format`. `stream` stays open. `pages`: where they come from, if not
    from the stores of the warehouse."""
    name, packing = parse_format(format)
    source = pages or StoredPages(warehouse.catalog, warehouse.quads, warehouse.archive)
    if name == "warc":  # compressed record by record already
        return dump_archive(source, stream, selection, name="export.warc.gz", now=now, progress=progress)
    if name == "wacz":
        written = write_wacz(source, stream, selection, now=now, progress=progress)
        return DumpReport(*written)
    with packed(stream, packing) as sink:
        if name == "void":
            title = f"Quadloom warehouse {warehouse.path.name}"
            numbers = warehouse.statistics(limit=1000)
            sink.write(dataset_description(numbers, dataset="urn:quadloom:dataset", title=title, now=now))
            return DumpReport(numbers.pages, numbers.quads)
        return dump(source, sink, name, selection, progress)


def packed(stream: BinaryIO, packing: str) -> AbstractContextManager[DumpSink]:
    """A stream that compresses into `stream`; closing it leaves `stream` open."""
    if packing == "gz":
        # No name and no time in the header, so that equal data give equal files.
        return closing(gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0))
    if packing == "zst":
        writer = zstandard.ZstdCompressor(level=6).stream_writer(stream, closefd=False)
        return closing(cast("gzip.GzipFile", writer))
    return _Plain(stream)


def dump(
    pages: PageSource,
    stream: DumpSink,
    format: str,
    selection: Selection,
    progress: Callable[[int], None] = lambda _pages: None,
) -> DumpReport:
    """Write the selected pages' statements."""
    counted = _Counted(pages.graphs(selection), progress)
    if format == "nq":
        for found in counted:
            stream.write(found.about + found.nquads)
    elif format == "parquet":
        write_parquet(_quads(counted, described=True), stream)
    else:
        statements = _quads(counted, described=format not in _WITHOUT_GRAPHS)
        items = (quad.triple for quad in statements) if format in _WITHOUT_GRAPHS else statements
        write_graph(items, stream.write, format, PREFIXES if format in ("turtle", "trig") else {})
    return DumpReport(counted.pages, counted.quads)


def dump_archive(
    pages: PageSource,
    stream: DumpSink,
    selection: Selection,
    *,
    name: str,
    now: float,
    progress: Callable[[int], None] = lambda _pages: None,
) -> DumpReport:
    """Write all archived versions of the selected pages, oldest first, as one .warc.gz."""
    stream.write(file_header(name, now))
    done = records = 0
    for found in pages.records(selection):
        for member in found.members:
            stream.write(member)
        records += len(found.members)
        done += 1
        progress(done)
    return DumpReport(done, records)


class _Counted:
    def __init__(self, graphs: Iterable[PageGraph], progress: Callable[[int], None]) -> None:
        self._graphs = graphs
        self._progress = progress
        self.pages = 0
        self.quads = 0

    def __iter__(self) -> Iterator[PageGraph]:
        for found in self._graphs:
            self.pages += 1
            self.quads += found.nquads.count(b"\n")
            yield found
            self._progress(self.pages)


def _quads(graphs: Iterable[PageGraph], *, described: bool) -> Iterator[ox.Quad]:
    for found in graphs:
        data = found.about + found.nquads if described else found.nquads
        yield from ox.parse(data, ox.RdfFormat.N_QUADS, lenient=True)


class _Plain:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def __enter__(self) -> DumpSink:
        return self._stream

    def __exit__(self, *_: object) -> None:
        self._stream.flush()
