"""Pages as Markdown: a folder with a file for each page, or JSON Lines with one object for each.

Each page is read again from the archive, in a process of its own with limits: a page that breaks it is left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from quadloom.asking.export.dump import DumpReport, DumpSink, packed
from quadloom.asking.export.selection import Selection, StoredPages
from quadloom.crawling.inspect.child import InspectTask, InspectWorker
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.model.page import Page
from quadloom.model.timestamps import iso_time
from quadloom.process.durable import make_folder, write_file
from quadloom.settings import Settings
from quadloom.stores.opened import Stores

_MAX_NAME = 80  # characters of a file name, before its number
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_json = msgspec.json.Encoder()


class MarkdownPage(msgspec.Struct, frozen=True):
    """A page of the export. `warc`: the record in the archive."""

    url: str
    title: str
    language: str
    time: str
    warc: ArchiveRefRecord
    markdown: str


class ArchiveRefRecord(msgspec.Struct, frozen=True):
    """As `ArchiveRef`, by names."""

    file: str
    offset: int
    length: int


def write_lines(
    stores: Stores, stream: BinaryIO, packing: str, selection: Selection, progress: Callable[[int], None]
) -> DumpReport:
    """Write JSON Lines to a stream, which stays open."""
    sink: DumpSink
    with packed(stream, packing) as sink:
        return _written(stores, selection, progress, lambda _row, page: sink.write(_json.encode(page) + b"\n"))


def write_folder(stores: Stores, folder: Path, selection: Selection, progress: Callable[[int], None]) -> DumpReport:
    """Write a file for each page, in a folder for each host. Front matter has the rest of the record, in YAML."""

    def write(row: PageRow, page: MarkdownPage) -> None:
        place = folder / _UNSAFE.sub("_", row.host)
        make_folder(place)
        facts = msgspec.to_builtins(page)
        del facts["markdown"]
        # JSON is YAML.
        front = "".join(f"{name}: {_json.encode(value).decode()}\n" for name, value in facts.items())
        write_file(place / _file_name(row), f"---\n{front}---\n\n{page.markdown}".encode("utf-8", "replace"))

    make_folder(folder)
    return _written(stores, selection, progress, write)


def _written(
    stores: Stores,
    selection: Selection,
    progress: Callable[[int], None],
    write: Callable[[PageRow, MarkdownPage], object],
) -> DumpReport:
    pages = 0
    for row, page in _pages(stores, selection, stores.settings):
        write(row, page)
        pages += 1
        progress(pages)
    return DumpReport(pages, 0)


def _pages(stores: Stores, selection: Selection, settings: Settings) -> Iterator[tuple[PageRow, MarkdownPage]]:
    worker = InspectWorker()
    try:
        for row in StoredPages(stores.catalog, stores.quads, stores.archive).selected(selection):
            ref = row.archive
            page = stores.archive.get(ref) if ref is not None else None
            if ref is None or not isinstance(page, Page):
                continue
            sent = page.header("content-type") or None
            result = worker.transform(InspectTask(page.body, page.final_url, sent, page.headers, settings))
            if result.markdown:
                yield row, _markdown_page(row, ref, result.markdown)
    finally:
        worker.close()


def _markdown_page(row: PageRow, ref: ArchiveRef, markdown: str) -> MarkdownPage:
    place = ArchiveRefRecord(ref.file, ref.offset, ref.length)
    return MarkdownPage(row.final_url or row.href, row.title, row.language, iso_time(row.fetched_at), place, markdown)


def _file_name(row: PageRow) -> str:
    """What the address says, and a number, since two addresses may say the same."""
    path = row.href.partition("://")[2].partition("/")[2]
    name = _UNSAFE.sub("-", path).strip("-.")[:_MAX_NAME]
    return f"{name or 'index'}-{row.fingerprint & 0xFFFFFFFF:08x}.md"
