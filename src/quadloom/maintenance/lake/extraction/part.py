"""The task of one part: the tables of one source, written under temporary names and moved into the lake at the end.

The part's manifest comes last, so a part that was killed is not there, and a second try replaces what the first left.
The same source gives the same bytes, whatever ended meanwhile: row groups end at fixed numbers of rows.
"""

from __future__ import annotations

import gc
import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from isal import igzip
from msgspec.structs import replace

from quadloom.errors import StoreError
from quadloom.maintenance.importing import rdf_loader
from quadloom.maintenance.lake.extraction.inputs import local_copy
from quadloom.maintenance.lake.extraction.messages import BatchAnswer, BatchRequest, ChildSetup, PartSetup
from quadloom.maintenance.lake.extraction.tables import GROUPS
from quadloom.maintenance.lake.place import (
    BucketLake,
    DirectoryLake,
    LakeFile,
    PartManifest,
    place_of,
    write_manifest,
)
from quadloom.maintenance.lake.tables import EXTRACTED, SORTED_BY, Row, arrow, schema_of
from quadloom.model.wire import decode, encode
from quadloom.process.bulk_tasks import TaskFunction
from quadloom.process.channel import ChildProcess, start
from quadloom.process.request_child import ChildEnded, RequestChild

UNFINISHED = ".unfinished"  # a folder of the lake: what is written now
_BATCH = 64  # pages that a process transforms before it hands them over
_BATCH_SECONDS = 30.0  # that a batch may take beyond the limit of one page
_CHILD = "quadloom.maintenance.lake.extraction.page_child"
_YOUNG = 500_000
_MEMBER = 1 << 20  # bytes of a gzip member


@contextmanager
def worker(setup: bytes) -> Iterator[TaskFunction]:
    """A bulk worker (`quadloom.process.bulk_tasks`): a task is the number of a source."""
    given = decode(setup, PartSetup)
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)  # rows are many objects, and none is in a cycle
    yield lambda task, _argument: encode(extract_part(given, int(task)))


def extract_part(setup: PartSetup, number: int) -> PartManifest:
    """Write the part of one source into the lake. Nothing is written of a source that cannot be fetched."""
    source = setup.sources[number]
    place = place_of(Path(setup.path), setup.settings, setup.target)
    with _working_folder(place, number) as folder, ExitStack() as closing:
        try:
            path = closing.enter_context(local_copy(source, setup.settings, folder))
        except StoreError as error:
            return PartManifest(source=source.name, error=error.message)
        tables = {
            name: _TableFile(folder / name, name) for name in EXTRACTED if setup.options.parquet or name == "failures"
        }
        lines = _NQuadsFile(folder / "nquads")
        counts: Counter[str] = Counter()
        others: Counter[str] = Counter()
        for batch in _batches(ChildSetup(source, str(path), setup.options, setup.settings)):
            for name, rows in batch.rows.items():
                if name in tables:
                    tables[name].add(rows)
            lines.write(batch.nquads)
            counts.update(batch.counts)
            others.update(batch.not_taken)
        files: dict[str, tuple[LakeFile, ...]] = {}
        for name, table in tables.items():
            if rows_written := table.close():
                counts[f"rows of {name}"] = rows_written
                target = f"{name}/part={number:05d}/part.parquet"
                files[name] = (_lake_file(table.path, target, rows_written),)
                place.put(table.path, target)
        if setup.options.nquads:
            lines.close()
            target = f"nquads/part-{number:05d}.nq.gz"
            files["nquads"] = (_lake_file(lines.path, target, counts["quads"]),)
            place.put(lines.path, target)
        manifest = PartManifest(1, files, source.name, dict(sorted(counts.items())), dict(sorted(others.items())))
        write_manifest(place, number, manifest)
        return manifest


@contextmanager
def _working_folder(place: DirectoryLake | BucketLake, number: int) -> Iterator[Path]:
    """On the disk of the lake: files are moved and not copied, and the next try removes what a killed one left."""
    if isinstance(place, BucketLake):
        with tempfile.TemporaryDirectory(prefix="quadloom-bulk-") as folder:
            yield Path(folder)
        return
    path = place.folder / UNFINISHED / f"{number:05d}"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _batches(setup: ChildSetup) -> Iterator[BatchAnswer]:
    """All batches of a source. A batch that ends its process is repeated page by page; a page that ends it again is
    left out and reported."""
    limits = setup.settings.limits
    memory = 2 * limits.transform_bytes  # mapped, not used: libraries map more than they touch
    if setup.source.kind == "rdf":
        memory = max(memory, rdf_loader.MEMORY)  # its own child sorts the file
    seen: set[int] = set()

    def start_child() -> ChildProcess:
        return start(_CHILD, replace(setup, seen=frozenset(seen)), address_space=memory, from_template=True)

    child = RequestChild(start_child)
    after, alone, skip = -1, 0, ""
    try:
        while True:
            seconds = limits.transform_seconds + (0.0 if alone else _BATCH_SECONDS)
            try:
                answer = child.ask(BatchRequest(after, 1 if alone else _BATCH, skip), BatchAnswer, seconds=seconds)
            except ChildEnded as ended:
                reason = ended.describe(seconds, limits.transform_bytes)
                if skip:  # not the page itself, but what is read after it
                    yield _given_up(setup, after, reason)
                    return
                skip = reason if alone else ""
                alone = alone or _BATCH
                continue
            seen |= answer.seen
            yield answer
            if answer.is_last:
                return
            after, alone, skip = answer.last, max(0, alone - 1), ""
    finally:
        child.close()
        child.end()


def _given_up(setup: ChildSetup, after: int, reason: str) -> BatchAnswer:
    row: Row = (setup.source.name, after, "", "import-file", f"nothing after this position was read: {reason}")
    return BatchAnswer({"failures": [row]}, b"", after, is_last=True, not_taken={}, counts={})


class _TableFile:
    """Rows into a Parquet file with row groups of a fixed number of rows, each sorted."""

    def __init__(self, path: Path, table: str) -> None:
        self.path = path
        self._table = table
        self._schema = schema_of(EXTRACTED[table])
        self._waiting: list[Any] = []
        self._count = self._rows = 0
        self._writer: Any = None

    def add(self, rows: Sequence[Row]) -> None:
        if rows:
            pyarrow = arrow()
            columns = zip(*rows, strict=True)
            arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
            self._waiting.append(pyarrow.Table.from_arrays(arrays, schema=self._schema))
            self._count += len(rows)
            while self._count >= GROUPS[self._table]:
                self._write(GROUPS[self._table])

    def close(self) -> int:
        """The number of rows; without any there is no file."""
        if self._count:
            self._write(self._count)
        if self._writer is not None:
            self._writer.close()
        return self._rows

    def _write(self, count: int) -> None:
        pyarrow = arrow()
        whole = pyarrow.concat_tables(self._waiting)
        group = whole.slice(0, count)
        self._waiting = [whole.slice(count)] if len(whole) > count else []
        self._count = len(whole) - count
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(self.path, self._schema, compression="zstd")
        if order := SORTED_BY.get(self._table):
            group = group.sort_by([(column, "ascending") for column in order])
        self._writer.write_table(group.combine_chunks(), row_group_size=count)
        self._rows += count


class _NQuadsFile:
    """Lines in gzip members of a fixed number of bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._waiting = bytearray()
        self._file: BinaryIO = path.open("wb")

    def write(self, lines: bytes) -> None:
        self._waiting += lines
        while len(self._waiting) >= _MEMBER:
            self._file.write(_packed(self._waiting[:_MEMBER]))
            del self._waiting[:_MEMBER]

    def close(self) -> None:
        self._file.write(_packed(self._waiting))
        self._file.close()


def _packed(lines: bytearray) -> bytes:
    return igzip.compress(bytes(lines), 1, mtime=0)  # the same bytes at any time


def _lake_file(path: Path, name: str, rows: int) -> LakeFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return LakeFile(name, rows, path.stat().st_size, digest)
