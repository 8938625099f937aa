"""Pages of the catalog with their versions in the archive, file by file.

Reading each record by its reference costs a seek on a disk and a request on S3, and the catalog's order scatters them
over all files. So work on all pages goes the other way round: every file is read once, from its first byte to its last,
and the catalog says which of its records are the current version of a page. Memory holds one batch of pages and a few
bytes for each record of the file.

A page whose record is not found so, because its file is missing or damaged, is read by its reference: that names the
reason.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import msgspec

from quadloom.crawling.ingest.index.reindex import archived_page
from quadloom.maintenance.batches import batches
from quadloom.model.outcome import ArchiveRef, PageRow
from quadloom.model.page import Page
from quadloom.model.url import canonical, fingerprint
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog

_ROWS = 500
_BATCH = 200  # records of a file whose pages are looked up at once
_BATCH_BYTES = 32 << 20


class ArchivedPage(msgspec.Struct, frozen=True):
    """A page of the catalog and its version; None = there is none, or none that can be read."""

    row: PageRow
    page: Page | None


class FilePlan:
    """How many current versions each file has. Filled by one pass over the catalog (`note`)."""

    def __init__(self) -> None:
        self.expected: Counter[str] = Counter()
        self._found: dict[str, frozenset[int]] = {}  # offsets, only of files that lack some

    def note(self, row: PageRow) -> None:
        if row.archive is not None:
            self.expected[row.archive.file] += 1

    def found(self, file: str, offsets: Sequence[int]) -> None:
        """These records of a file were the current version of a page."""
        if len(offsets) < self.expected[file]:
            self._found[file] = frozenset(offsets)

    @property
    def is_complete(self) -> bool:
        return not self._found

    def lacks(self, ref: ArchiveRef) -> bool:
        offsets = self._found.get(ref.file)
        return offsets is not None and ref.offset not in offsets


def all_pages(catalog: Catalog) -> Iterator[PageRow]:
    """Every page, in the order of fingerprints."""
    after = -(1 << 63)
    while rows := catalog.scan(after=after, limit=_ROWS):
        yield from rows
        after = rows[-1].fingerprint


def pages_in_file(stores: Stores, file: str) -> Iterator[ArchivedPage]:
    """The pages whose current version is in this file, in the order of their records."""
    pages = ((ref, record) for ref, record in stores.archive.read_file(file) if isinstance(record, Page))
    for batch in batches(pages, _BATCH, size_of=lambda item: len(item[1].body), most_bytes=_BATCH_BYTES):
        keys = [fingerprint(canonical(page.url)) for _, page in batch]
        rows = stores.catalog.pages(keys)
        for (ref, page), key in zip(batch, keys, strict=True):
            row = rows.get(key)
            if row is not None and row.archive == ref:
                yield ArchivedPage(row, page)


def pages_by_file(stores: Stores, wanted: Callable[[PageRow], bool]) -> Iterator[ArchivedPage]:
    """Every wanted page exactly once: those without a version first, then file by file, then those that were not found
    in their file. Nothing else may write meanwhile."""
    plan = FilePlan()
    for row in all_pages(stores.catalog):
        if wanted(row):
            plan.note(row)
            if row.archive is None:
                yield ArchivedPage(row, None)
    for file in sorted(plan.expected):
        offsets = array("Q")
        for item in pages_in_file(stores, file):
            if item.row.archive is not None and wanted(item.row):
                offsets.append(item.row.archive.offset)
                yield item
        plan.found(file, offsets)
    yield from pages_apart(stores, plan, wanted)


def pages_apart(stores: Stores, plan: FilePlan, wanted: Callable[[PageRow], bool]) -> Iterator[ArchivedPage]:
    """The pages that `pages_in_file` did not find although their references name that file."""
    if plan.is_complete:
        return
    for row in all_pages(stores.catalog):
        if row.archive is not None and plan.lacks(row.archive) and wanted(row):
            yield ArchivedPage(row, archived_page(stores.archive, row))
