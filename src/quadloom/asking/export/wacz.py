"""WACZ 1.1.1: the records of an export with their index and a list of pages in one ZIP file, as archives exchange it.

The WARC file is stored as it is, so that players read single records out of it. Visits that found a page unchanged
become `revisit` records, which refer to the record that they confirm.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Iterable
from contextlib import closing
from tempfile import SpooledTemporaryFile
from typing import IO, BinaryIO, cast

import msgspec

from quadloom.asking.export.cdxj import IndexedRecord, SortedLines, read_record
from quadloom.asking.export.selection import PageRecords, PageSource, Selection
from quadloom.model.timestamps import iso_time
from quadloom.model.version import __version__
from quadloom.stores.archive.warc_record import file_header, revisit

WARC = "data.warc.gz"
_INDEX, _PAGES, _PACKAGE = "indexes/index.cdx", "pages/pages.jsonl", "datapackage.json"
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # of files in a ZIP; theirs say nothing
_IN_MEMORY = 8 * 1024 * 1024
_ABOUT = (
    "Pages and data as a crawl by Quadloom received them. Pictures, styles and scripts of the pages are not in it, so"
    " pages are shown without them."
)


class _Resource(msgspec.Struct, frozen=True):
    name: str
    path: str
    hash: str
    bytes: int


class _Hashed:
    """Counts and hashes what goes into a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sum = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._sum.update(data)
        self.size += len(data)

    def resource(self, path: str) -> _Resource:
        return _Resource(path.rpartition("/")[2], path, f"sha256:{self._sum.hexdigest()}", self.size)


def write_wacz(
    source: PageSource, stream: BinaryIO, selection: Selection, *, now: float, progress: Callable[[int], None]
) -> tuple[int, int]:
    """Write all archived versions of the selected pages; returns the numbers of pages and records."""
    pages = records = 0
    with (
        zipfile.ZipFile(stream, "w", allowZip64=True) as packed,
        closing(SortedLines()) as index,
        SpooledTemporaryFile(_IN_MEMORY) as listed,
    ):
        listed.write(b'{"format": "json-pages-1.0", "id": "pages", "title": "Pages"}\n')
        with packed.open(_entry(f"archive/{WARC}", zipfile.ZIP_STORED), "w", force_zip64=True) as file:
            warc = _Hashed(file)
            warc.write(file_header(WARC, now))
            for found in source.records(selection):
                pages += 1
                records += _add_page(found, warc, index, cast("IO[bytes]", listed))
                progress(pages)
            resources = [warc.resource(f"archive/{WARC}")]
        resources.append(_add(packed, _INDEX, index))
        listed.seek(0)
        resources.append(_add(packed, _PAGES, iter(lambda: listed.read(1 << 20), b"")))
        package = {
            "profile": "data-package",
            "wacz_version": "1.1.1",
            "created": iso_time(now),
            "software": f"Quadloom {__version__}",
            "title": "A crawl by Quadloom",
            "description": _ABOUT,
            "resources": resources,
        }
        described = msgspec.json.format(msgspec.json.encode(package), indent=2)
        digest = f"sha256:{hashlib.sha256(described).hexdigest()}"
        _add(packed, _PACKAGE, [described])
        _add(packed, "datapackage-digest.json", [msgspec.json.encode({"path": _PACKAGE, "hash": digest})])
    return pages, records


def _add_page(found: PageRecords, warc: _Hashed, index: SortedLines, listed: IO[bytes]) -> int:
    """The records of a page, and its line in the list of pages: the newest version."""
    written = 0
    newest: IndexedRecord | None = None
    for member in found.members:
        about = read_record(member)
        if about is not None:
            index.add(about.line(WARC, warc.size, len(member)))
            newest = about
        warc.write(member)
        written += 1
    for one in found.confirmed:
        member = revisit(one.url, one.at, one.digest, one.refers_to)
        about = read_record(member)
        assert about is not None
        index.add(about.line(WARC, warc.size, len(member)))
        warc.write(member)
        written += 1
    if newest is not None:
        moment = newest.timestamp
        ts = f"{moment[:4]}-{moment[4:6]}-{moment[6:8]}T{moment[8:10]}:{moment[10:12]}:{moment[12:14]}Z"
        name = hashlib.sha256(newest.url.encode("utf-8", "replace")).hexdigest()[:16]
        listed.write(msgspec.json.encode({"id": name, "url": newest.url, "ts": ts, "title": found.title}) + b"\n")
    return written


def _add(packed: zipfile.ZipFile, path: str, parts: Iterable[bytes]) -> _Resource:
    with packed.open(_entry(path, zipfile.ZIP_DEFLATED), "w", force_zip64=True) as file:
        hashed = _Hashed(file)
        for part in parts:
            hashed.write(part)
        return hashed.resource(path)


def _entry(path: str, packing: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(path, _EARLIEST)
    entry.compress_type = packing
    return entry
