"""Bring a lake up to date: only pages that differ from what it holds are read, only files that hold one are written.

1. One pass over the catalog notes a page's content and version, 24 bytes each, in a plan for its part.
2. Each part is a task of its own (`quadloom.process.bulk_tasks`). It compares its plan with the columns `content` and
   `version` of its table of pages. Rows of pages that are new or differ are written to new files. Files that hold rows
   of pages that differ or are gone are written again without them, and small files are merged.
3. The part's manifest is replaced. From then on the part is in sync; files that it does not list are removed.

A kill at any moment leaves each part as it was before or after. The next sync removes what is in no manifest, and
continues with the parts that differ. The crawl may go on: what it changes meanwhile is part of the next sync.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from quadloom.maintenance.archive_order import all_pages
from quadloom.maintenance.lake.place import (
    TABLES,
    LakeFile,
    LakePlace,
    PartManifest,
    create_layout,
    part_of,
    place_of,
    plan_name,
    read_manifest,
    write_manifest,
)
from quadloom.maintenance.lake.tables import (
    Row,
    arrow,
    content_of,
    finding_rows,
    page_row,
    quad_rows,
    schema,
    table_of,
    version_of,
)
from quadloom.maintenance.parallel.jobs import warehouse_job
from quadloom.model.wire import decode, encode
from quadloom.planning.ranking.link_matrix import LinkMatrix
from quadloom.process.bulk_tasks import Runner, in_processes
from quadloom.stores.opened import Stores
from quadloom.stores.shards import shard_of

FILE_ROWS = 8_000_000  # about 300 MB of quads; a larger file takes longer to write again when a page of it changes
_GROUP = 200_000  # rows of a row group
_ROWS_AT_ONCE = 400  # pages whose rows are read from the catalog together
_SMALL_FILES = 8  # so many of a table are merged into one
_PLAN = np.dtype([("page", "<i8"), ("content", "<i8"), ("version", "<i8")])
_PLANNED = 4096  # records that wait in memory for each part's plan
Numbers = npt.NDArray[np.int64]
Plan = npt.NDArray[np.void]


class LakeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a sync did: pages that were written and removed, rows and bytes that the lake holds now, by table."""

    place: str = ""
    parts: int = 0
    written: int = 0
    removed: int = 0
    files: int = 0
    rows: dict[str, int] = {}
    bytes: int = 0


class _PartResult(msgspec.Struct, frozen=True):
    written: int
    removed: int
    manifest: PartManifest


class _Argument(msgspec.Struct, frozen=True):
    """`target`: the place as it was given."""

    target: str
    links: str


def sync(
    stores: Stores,
    target: str = "",
    *,
    parts: int = 0,
    runner: Runner | None = None,
    progress: Callable[[int], None] = lambda _pages: None,
) -> LakeReport:
    """Make the lake hold what the warehouse holds. `parts`: of a new lake, 0 = 16. `progress` gets the number of pages
    in parts that are done."""
    arrow()
    place = place_of(stores.path, stores.settings, target)
    layout = create_layout(place, parts or _default_parts(stores))
    counts = _write_plans(stores, place, layout.parts)
    argument = _Argument(target, str(stores.places.links))
    job = warehouse_job("lake", stores.path, stores.settings, encode(argument))
    report = LakeReport(place=target or stores.settings.stores.lake or str(stores.path / "lake"), parts=layout.parts)
    done = 0
    for result in (runner or in_processes(1))(job, [f"{part:03d}" for part in range(layout.parts)]):
        part = decode(result.data, _PartResult)
        done += counts[int(result.task)]
        progress(done)
        report = _added(report, part)
    return report


def _default_parts(stores: Stores) -> int:
    """Sixteen; one for a small warehouse, whose files would hold next to nothing."""
    return 16 if len(stores.catalog.scan(limit=5000)) == 5000 else 1


def _added(report: LakeReport, part: _PartResult) -> LakeReport:
    files = [file for table in part.manifest.files.values() for file in table]
    rows = {
        table: report.rows.get(table, 0) + sum(file.rows for file in part.manifest.files.get(table, ()))
        for table in TABLES
    }
    return replace(
        report,
        written=report.written + part.written,
        removed=report.removed + part.removed,
        files=report.files + len(files),
        bytes=report.bytes + sum(file.bytes for file in files),
        rows=rows,
    )


def _write_plans(stores: Stores, place: LakePlace, parts: int) -> list[int]:
    """Step 1. Returns the number of pages of each part."""
    counts = [0] * parts
    with tempfile.TemporaryDirectory(prefix="quadloom-lake-") as folder, ExitStack() as opened:
        paths = [Path(folder) / f"{part:03d}" for part in range(parts)]
        files = [opened.enter_context(path.open("wb")) for path in paths]
        waiting: list[list[tuple[int, int, int]]] = [[] for _ in range(parts)]
        for row in all_pages(stores.catalog):
            part = part_of(shard_of(row.host), parts)
            waiting[part].append((row.fingerprint, content_of(row), version_of(row)))
            counts[part] += 1
            if len(waiting[part]) == _PLANNED:
                files[part].write(np.array(waiting[part], _PLAN).tobytes())
                waiting[part].clear()
        for part, records in enumerate(waiting):
            files[part].write(np.array(records, _PLAN).tobytes())
            files[part].close()
            place.remove([plan_name(part)])
            place.put(paths[part], plan_name(part))
    return counts


def sync_part(stores: Stores, task: str, argument: bytes) -> bytes:
    """Steps 2 and 3 for one part. Returns an encoded `_PartResult`."""
    part, given = int(task), decode(argument, _Argument)
    place = place_of(stores.path, stores.settings, given.target)
    with tempfile.TemporaryDirectory(prefix="quadloom-lake-") as folder:
        return encode(_PartSync(stores, place, part, Path(folder), Path(given.links)).run())


class _PartSync:
    def __init__(self, stores: Stores, place: LakePlace, part: int, folder: Path, links: Path) -> None:
        self._stores = stores
        self._place = place
        self._part = part
        self._folder = folder
        self._links = links
        self._before = read_manifest(place, part)
        self._generation = self._before.generation + 1

    def run(self) -> _PartResult:
        plan, held = self._plan(), self._held()
        common, at, there = np.intersect1d(plan["page"], held["page"], assume_unique=True, return_indices=True)
        gone = np.setdiff1d(held["page"], plan["page"], assume_unique=True)
        new = np.setdiff1d(plan["page"], held["page"], assume_unique=True)
        changed = common[plan["content"][at] != held["content"][there]]
        visited = common[plan["version"][at] != held["version"][there]]
        stale = {"quads": changed, "links": changed, "pages": visited, "findings": visited}
        writers = {table: _TableWriter(table, self._folder) for table in TABLES}
        kept: dict[str, list[LakeFile]] = {}
        for table, pages in stale.items():
            kept[table] = self._carry_over(table, np.union1d(pages, gone), writers[table])
        self._write(np.union1d(new, visited), np.union1d(new, changed), writers)
        files = {table: (*kept[table], *self._put(table, writers[table])) for table in TABLES}
        manifest = replace(self._before, generation=self._generation, files=files)
        if manifest.files != self._before.files:
            write_manifest(self._place, self._part, manifest)
        self._clean(manifest)
        return _PartResult(len(new) + len(visited), len(gone), manifest)

    def _plan(self) -> Plan:
        path = self._place.fetch(plan_name(self._part), self._folder)
        plan: Plan = np.sort(np.fromfile(path, _PLAN), order="page")
        return plan

    def _held(self) -> Plan:
        """The pages of the part as they are in the lake."""
        tables = [self._read(file, ["page", "content", "version"]) for file in self._before.files.get("pages", ())]
        held = np.zeros(sum(len(table) for table in tables), _PLAN)
        start = 0
        for table in tables:
            for column in ("page", "content", "version"):
                held[column][start : start + len(table)] = table.column(column).to_numpy()
            start += len(table)
        return np.sort(held, order="page")

    def _carry_over(self, table: str, stale: Numbers, writer: _TableWriter) -> list[LakeFile]:
        """Files that stay as they are; the rows of the others that stay go to the writer."""
        files = self._before.files.get(table, ())
        pyarrow = arrow()
        unwanted = pyarrow.array(stale)
        small = [file for file in files if file.rows < FILE_ROWS // 4]
        merged = frozenset(file.name for file in small) if len(small) >= _SMALL_FILES else frozenset()
        kept = []
        for file in files:
            if file.name not in merged:
                pages = self._read(file, ["page"]).column("page")
                if not pyarrow.compute.any(pyarrow.compute.is_in(pages, unwanted)).as_py():
                    kept.append(file)
                    continue
            for batch in self._batches(file):
                is_stale = pyarrow.compute.is_in(batch.column("page"), unwanted)
                writer.add_table(pyarrow.Table.from_batches([batch]).filter(pyarrow.compute.invert(is_stale)))
        return kept

    def _write(self, described: Numbers, changed: Numbers, writers: dict[str, _TableWriter]) -> None:
        """Rows of these pages; `changed` of them also with their statements and links."""
        matrix = LinkMatrix(self._links) if self._links.is_dir() else None
        links = matrix.rows() if matrix is not None else None
        for start in range(0, len(described), _ROWS_AT_ONCE):
            keys = described[start : start + _ROWS_AT_ONCE]
            rows = self._stores.catalog.pages(keys.tolist())
            with_content = np.isin(keys, changed)
            ids = matrix.ids(keys) if matrix is not None else np.full(len(keys), -1)
            for key, is_changed, id_ in zip(keys.tolist(), with_content, ids.tolist(), strict=True):
                row = rows.get(key)
                if row is None:
                    continue  # removed since the plan was made: the next sync finds out
                writers["pages"].add((page_row(row),))
                writers["findings"].add(finding_rows(row.fingerprint, row.findings))
                if is_changed:
                    graph = row.graph
                    if row.indexed_quads:
                        writers["quads"].add(quad_rows(key, graph, self._stores.quads.graph(graph)))
                    if links is not None and matrix is not None and id_ >= 0:
                        targets = matrix.fingerprints()[links.of(id_)]
                        writers["links"].add((key, target) for target in targets.tolist())

    def _put(self, table: str, writer: _TableWriter) -> Iterator[LakeFile]:
        for path, rows in writer.finish():
            name = f"{table}/part={self._part:03d}/{self._generation:08d}-{secrets.token_hex(3)}.parquet"
            size = path.stat().st_size
            self._place.put(path, name)
            yield LakeFile(name, rows, size)

    def _clean(self, manifest: PartManifest) -> None:
        """Remove files that are not in the manifest: of the generation before, or of a sync that was killed."""
        for table in TABLES:
            listed = {file.name for file in manifest.files.get(table, ())}
            found = self._place.names(f"{table}/part={self._part:03d}")
            self._place.remove([name for name in found if name not in listed])
        self._place.remove([plan_name(self._part)])

    def _read(self, file: LakeFile, columns: list[str]) -> Any:
        path = self._place.fetch(file.name, self._folder)
        return arrow().parquet.read_table(path, columns=columns, partitioning=None)

    def _batches(self, file: LakeFile) -> Iterator[Any]:
        with arrow().parquet.ParquetFile(self._place.fetch(file.name, self._folder)) as opened:
            yield from opened.iter_batches(_GROUP)


class _TableWriter:
    """Rows into files of at most `FILE_ROWS` rows, a row group at a time."""

    def __init__(self, table: str, folder: Path) -> None:
        self._table = table
        self._folder = folder
        self._rows: list[Row] = []
        self._done: list[tuple[Path, int]] = []
        self._open: Any = None
        self._written = 0

    def add(self, rows: Iterable[Row]) -> None:
        self._rows += rows
        if len(self._rows) >= _GROUP:
            self._flush()

    def add_table(self, table: Any) -> None:
        """Rows of a file that is written again: they have their order already."""
        if len(table):
            self._writer().write_table(table, row_group_size=_GROUP)
            self._count(len(table))

    def finish(self) -> list[tuple[Path, int]]:
        """(file, rows) of all files."""
        self._flush()
        self._end()
        return self._done

    def _flush(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self._writer().write_table(table_of(self._table, rows), row_group_size=_GROUP)
            self._count(len(rows))

    def _writer(self) -> Any:
        if self._open is None:
            path = self._folder / f"{self._table}-{len(self._done)}.parquet"
            self._open = arrow().parquet.ParquetWriter(path, schema(self._table), compression="zstd")
            self._path = path
        return self._open

    def _count(self, rows: int) -> None:
        self._written += rows
        if self._written >= FILE_ROWS:
            self._end()

    def _end(self) -> None:
        if self._open is not None:
            self._open.close()
            self._done.append((self._path, self._written))
            self._open, self._written = None, 0
