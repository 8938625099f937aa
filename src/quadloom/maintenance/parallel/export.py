"""Export in parallel: tasks read ranges of pages from the stores, and one process writes them in their order.

A task gives the statements or archive records of its pages one after another, compressed. What is written from them is
byte for byte what an export without tasks writes, in every format. Memory holds one page and one result.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import zstandard

from quadloom.asking.export.selection import PageGraph, PageRecords, Selection, StoredPages
from quadloom.maintenance.batches import read_records, write_record
from quadloom.maintenance.parallel.jobs import warehouse_job
from quadloom.maintenance.parallel.ranges import range_of, range_tasks
from quadloom.maintenance.parallel.results import TaskFolder
from quadloom.model.wire import decode, encode
from quadloom.process.bulk_tasks import Runner
from quadloom.stores.opened import Stores

T = TypeVar("T")


class _Argument(msgspec.Struct, frozen=True):
    selection: Selection
    content: Literal["graphs", "records"]


class ParallelPages:
    """A `PageSource` whose pages are read by the tasks of a runner. `folder`: for their results; it is removed when the
    last page has been taken."""

    def __init__(self, stores: Stores, runner: Runner, folder: Path, *, resume: bool) -> None:
        self._stores = stores
        self._runner = runner
        self._folder = folder
        self._resume = resume

    def graphs(self, selection: Selection) -> Iterator[PageGraph]:
        return self._pages(_Argument(selection, "graphs"), PageGraph)

    def records(self, selection: Selection) -> Iterator[PageRecords]:
        return self._pages(_Argument(selection, "records"), PageRecords)

    def _pages(self, argument: _Argument, kind: type[T]) -> Iterator[T]:
        stores = self._stores
        job = warehouse_job("export", stores.path, stores.settings, encode(argument))
        results = TaskFolder(self._folder, job, range_tasks(stores.catalog), resume=self._resume)
        done: set[str] = set()
        running = results.run(self._runner)
        for task in results.tasks:
            while task not in done:
                done.add(next(running))
            with results.path(task).open("rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
                yield from read_records(stream, kind)
        results.finish()


def export_range(stores: Stores, task: str, argument: bytes) -> bytes:
    """The task of one range of pages."""
    given = decode(argument, _Argument)
    pages = StoredPages(stores.catalog, stores.quads, stores.archive, *range_of(task))
    found = pages.graphs(given.selection) if given.content == "graphs" else pages.records(given.selection)
    output = io.BytesIO()
    with zstandard.ZstdCompressor(level=1).stream_writer(output, closefd=False) as packed:
        for page in found:
            write_record(packed, page)
    return output.getvalue()
