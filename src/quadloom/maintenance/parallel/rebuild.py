"""Rebuild in parallel, into indexes on servers: every file of the archive is a task, which reads it once, transforms
its pages, and writes them to the quad store and the text index itself.

What the catalog has to say about them comes back to the process that runs the rebuild, since only the owner of all
shards may write there. Text by shard (`tantivy+shards:`) takes a second round of tasks, see `text_spool`. All of it may
be repeated: graphs and documents are replaced by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import zstandard
from xxhash import xxh3_128_digest

from quadloom.crawling.ingest.in_flight import UnindexedPages
from quadloom.crawling.ingest.index.indexer import IndexAcks, Indexer, IndexJob, LinksFound
from quadloom.crawling.ingest.index.jobs import IndexJobs
from quadloom.crawling.ingest.index.reindex import page_request, reindex_job
from quadloom.crawling.ingest.link_queries import UserQueryRunner
from quadloom.maintenance.archive_order import ArchivedPage, FilePlan, all_pages, pages_apart, pages_in_file
from quadloom.maintenance.parallel.jobs import warehouse_job
from quadloom.maintenance.parallel.results import TaskFolder
from quadloom.maintenance.parallel.text_spool import GROUPS, TextSpool, discard_spool, fill_indexes
from quadloom.maintenance.rebuild import RebuiltFile, is_indexed, large_commits, stored_job
from quadloom.maintenance.reprocessing import ReprocessedPage, reprocessed
from quadloom.model.link import Discovery
from quadloom.model.version import __version__
from quadloom.model.wire import decode, encode
from quadloom.process.bulk_tasks import Runner
from quadloom.process.failpoints import Failpoints
from quadloom.settings import Settings
from quadloom.stores.backends import open_text, refilled_quads, shared_text
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import TextWriter
from quadloom.stores.statistics import Statistics

FOLDER = "rebuild.tasks"
_TEXT = "text-of-group-"
_JOBS = 50  # pages given to the indexer at once
_OK = 200  # status of a version that was indexed


class ParallelRebuild:
    """The tasks of one rebuild, and what is left for the process that runs it."""

    def __init__(self, stores: Stores, settings: Settings, runner: Runner, *, resume: bool) -> None:
        self._stores = stores
        self._settings = settings
        self._runner = runner
        self._plan = FilePlan()
        self.without_version: list[int] = []
        for row in all_pages(stores.catalog):
            if is_indexed(row):
                self._plan.note(row)
                if row.archive is None:
                    self.without_version.append(row.fingerprint)
        self._text = shared_text(settings)
        if self._text is not None and not resume:
            discard_spool(self._text)
        self._files = sorted(self._plan.expected)
        # A resumed job must be about the same pages, with the same links, by the same version.
        chosen = encode((sorted(self._plan.expected.items()), settings.crawl.strategies, __version__))
        job = warehouse_job("rebuild", stores.path, settings, xxh3_128_digest(chosen))
        self._results = TaskFolder(stores.path / FOLDER, job, self._files, resume=resume)
        self.statistics = Statistics()

    def files(self) -> Iterator[RebuiltFile]:
        """What the task of each file gives."""
        for task in self._results.run(self._runner, self._files):
            data = zstandard.ZstdDecompressor().decompress(self._results.path(task).read_bytes())
            part = decode(data, RebuiltFile)
            self._plan.found(task, part.offsets)
            if part.statistics:
                self.statistics.add(part.statistics)
            yield part

    def rest(self) -> Iterator[ArchivedPage]:
        """Pages that have no version in the archive, or none that was found in its file. After `files`."""
        for start in range(0, len(self.without_version), _JOBS):
            rows = self._stores.catalog.pages(self.without_version[start : start + _JOBS])
            yield from (ArchivedPage(row, None) for row in rows.values())
        yield from pages_apart(self._stores, self._plan, is_indexed)

    def graphs(self) -> Iterator[str]:
        """Of all pages that the rebuild has written."""
        return (row.graph for row in all_pages(self._stores.catalog) if is_indexed(row))

    def writer(self) -> TextWriter:
        """Where the texts of `rest` go."""
        return _text_writer(self._settings, "rest")

    def fill_text(self, rest: TextWriter) -> None:
        """Fill the indexes of text by shard. All texts have been written, those of `rest` too."""
        if isinstance(rest, TextSpool):
            rest.done()
            for _ in self._results.run(self._runner, [f"{_TEXT}{group:02d}" for group in range(GROUPS)]):
                pass

    def finish(self) -> None:
        """The catalog says what was rebuilt: nothing is left to resume."""
        self._results.finish()
        if self._text is not None:
            discard_spool(self._text)


def rebuild_part(stores: Stores, task: str, _argument: bytes) -> bytes:
    """The task of a file of the archive, or of a group of shards whose text is filled from the spool."""
    if task.startswith(_TEXT):
        directory = shared_text(stores.settings)
        assert directory is not None
        return str(fill_indexes(directory, int(task.removeprefix(_TEXT)))).encode()
    settings = stores.settings
    with closing(refilled_quads(settings)) as quads, closing(_text_writer(settings, task)) as text:
        rebuilt = _FileTask(stores, quads, text).run(task)
        if isinstance(text, TextSpool):
            text.done()
    return zstandard.ZstdCompressor(level=3).compress(encode(rebuilt))


class _FileTask:
    def __init__(self, stores: Stores, quads: QuadStore, text: TextWriter) -> None:
        self._stores = stores
        self._quads = quads
        self._reports: list[IndexAcks | LinksFound] = []
        self._queries = UserQueryRunner(stores.settings, stores.query_source, lambda _text: None)
        self._statistics = Statistics()
        self._indexer = Indexer(
            quads,
            text,
            large_commits(stores.settings.index),
            self._reports.append,
            Failpoints(),
            self._statistics,
            self._queries,
        )
        self._jobs = IndexJobs(stores.catalog, None, stores.settings.index, UnindexedPages())
        self._offsets: list[int] = []
        self._requests: list[Discovery] = []
        self._links: dict[int, Discovery] = {}

    def run(self, file: str) -> RebuiltFile:
        waiting: list[IndexJob] = []
        try:
            items = (item for item in pages_in_file(self._stores, file) if is_indexed(item.row))
            for item in reprocessed(self._stores.settings, items):
                assert item.row.archive is not None
                self._offsets.append(item.row.archive.offset)
                waiting.append(self._job(item))
                if len(waiting) >= _JOBS:
                    self._indexer.put(waiting)
                    waiting = []
            if waiting:
                self._indexer.put(waiting)
        finally:
            self._indexer.close()
            self._queries.close()
        marks: list[IndexedPage] = []
        for report in self._reports:
            self._found(report.discoveries)
            if isinstance(report, IndexAcks):
                marks += report.marks
        return RebuiltFile(
            self._offsets,
            tuple(marks),
            tuple(self._requests),
            tuple(self._links.values()),
            self._statistics.encode(),
        )

    def _job(self, item: ReprocessedPage) -> IndexJob:
        row, result = item.row, item.result
        if item.page is None or result is None:
            self._requests.append(page_request(row))
            return stored_job(self._quads, row, self._jobs.description(row, _OK))
        self._found(result.discoveries)
        return reindex_job(row, result, self._jobs.description(row, item.page.status), fresh=True)

    def _found(self, links: tuple[Discovery, ...]) -> None:
        """Sites repeat most of their links on every page: each is passed on once, with its best priority and depth."""
        for link in links:
            known = self._links.get(link.fingerprint)
            if known is None or (link.priority, link.depth) < (known.priority, known.depth):
                self._links[link.fingerprint] = link


def _text_writer(settings: Settings, task: str) -> TextWriter:
    directory = shared_text(settings)
    return TextSpool(directory, task) if directory is not None else open_text(Path(), settings, writable=True)
