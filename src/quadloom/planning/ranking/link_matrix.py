"""The link matrix of a warehouse: which page links to which. The crawl appends to it, the importance fixpoint reads it.

Two layers in `<warehouse>/links/`:

* **Edge segments** (`000001.edges`, …): 17-byte records (source, target, kind), appended as pages are settled. A record
  of kind `RESET` discards all earlier links of its source, so that a page read again replaces its old links. Only the
  process that created a segment appends to it. After a crash, a torn last record is ignored and a new segment begins.
  Segments with many records that no longer count are compacted (`segment_compaction`).
  Segments are the primary data of this store; `quadloom rebuild` can recreate them from the archive.
* **The matrix** (`matrix-<generation>/`): dense page ids in order of first appearance (`fingerprints`), their sorted
  index, CSR arrays (`indptr`, `targets`) and, on demand, blocks by target (`link_blocks`). `rebuild` merges the records
  added since the last rebuild: only the new links are sorted, and old rows are streamed through in chunks. Ids never
  change, so an old importance vector remains valid as a warm start. A new generation becomes visible by one atomic
  rename of the manifest.

Guarantees: `append` is buffered and `sync` makes it durable. `rebuild` is idempotent and leaves either the old or the
new generation. Parallel links between two pages count once, as in the paper's out(i).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from quadloom.errors import StoreError
from quadloom.model.link import LinkKind
from quadloom.planning.ranking.link_blocks import LinkBlocks, LinkRows, block_width, row_chunks
from quadloom.planning.ranking.link_exchange import SEGMENTS, LinkExchange, Segment, in_order_of_writing
from quadloom.planning.ranking.page_ranks import SortedPages
from quadloom.planning.ranking.sorted_keys import positions
from quadloom.process.durable import make_folder, sync, sync_tree, write_file

RECORD = np.dtype([("source", "<i8"), ("target", "<i8"), ("kind", "u1")])
Records = npt.NDArray[np.void]
Fingerprints = npt.NDArray[np.int64]
_Integer = TypeVar("_Integer", np.int64, np.int32)

# The byte stored for a kind is its index here: append, never insert.
KINDS: tuple[LinkKind, ...] = (
    "plain", "typed", "next", "alternate", "feed", "canonical", "describedby", "search", "seealso", "vocabulary",
    "sitemap", "item", "embed", "image", "redirect", "stylesheet", "seed", "published", "result", "other",
)  # fmt: skip
_CODES = {kind: code for code, kind in enumerate(KINDS)}
RESET = 255  # marks the start of a page's links; its earlier ones no longer count
# A reader does not follow links to images and stylesheets; counting them would only dilute the votes of the page.
UNCOUNTED: frozenset[LinkKind] = frozenset({"image", "stylesheet"})


class Manifest(msgspec.Struct, frozen=True):
    """The current generation. `merged`: how many bytes of each segment are in it."""

    generation: int = 0
    pages: int = 0
    links: int = 0
    merged: dict[str, int] = {}


class LinkMatrix:
    """One process writes; others may open the same directory and see the last generation."""

    def __init__(
        self,
        directory: Path,
        *,
        segment_bytes: int = 16 << 20,
        links_at_once: int = 4_000_000,
        exchange: LinkExchange | None = None,
    ) -> None:
        self.directory = directory
        self._exchange = exchange
        self.segment_bytes = segment_bytes
        self._links_at_once = links_at_once
        self._segment: BinaryIO | None = None
        make_folder(directory)
        self.manifest = self._read_manifest()

    def append(self, source: int, links: Iterable[tuple[int, LinkKind]]) -> None:
        """Add all links of a page, as (fingerprint, kind); they replace the links of its earlier reading."""
        pairs = list(links)
        records = np.empty(len(pairs) + 1, dtype=RECORD)
        records["source"] = source
        records[0] = (source, 0, RESET)
        if pairs:
            records["target"][1:] = [target for target, _ in pairs]
            records["kind"][1:] = [_CODES[kind] for _, kind in pairs]
        self.append_records(records)

    def append_records(self, records: Records) -> None:
        """Add the links of many pages, as an array of `RECORD`."""
        if self._segment is None or self._segment.tell() >= self.segment_bytes:
            self._next_segment()
        assert self._segment is not None  # _next_segment opened it
        self._segment.write(records.tobytes())

    def flush(self) -> None:
        """Make appended records visible to other processes."""
        if self._segment is not None:
            self._segment.flush()

    def sync(self) -> None:
        """Return when all appended records are on disk."""
        if self._segment is not None:
            self._segment.flush()
            os.fsync(self._segment.fileno())

    def close(self) -> None:
        if self._segment is not None:
            self.sync()
            self._segment.close()
            self._segment = None

    def rebuild(self) -> Manifest:
        """Merge new records into the matrix and remove old generations. Cheap if nothing is new."""
        if self._segment is not None:
            self._segment.flush()
        merged = dict(self.manifest.merged)
        waiting: list[Records] = []  # of several segments: each merge writes the whole matrix
        for name, position, records in self._unmerged():
            merged[name] = position
            waiting.append(records)
            if sum(map(len, waiting)) >= self._links_at_once:
                self._merge(np.concatenate(waiting), dict(merged))
                waiting.clear()
        if waiting:
            self._merge(np.concatenate(waiting), merged)
        self._remove_old()
        return self.manifest

    def publish(self) -> None:
        """Copy the records that are on disk to where other workers find them, if links are exchanged."""
        if self._exchange is not None:
            self._exchange.publish(self.segments())

    def rows(self) -> LinkRows:
        """All links, mapped from disk."""
        starts = self._mapped("indptr", np.int64)
        return LinkRows(starts if len(starts) else np.zeros(1, dtype=np.int64), self._mapped("targets", np.int32))

    def blocks(self, *, on_disk: bool = False, width: int = 0) -> LinkBlocks:
        """All links by target, for a fixpoint. `on_disk`: for one that has less memory than the links take; the files
        are written once per generation."""
        width = width or block_width(self.manifest.pages)
        folder = self._generation / f"blocks-{width}" if on_disk else None
        return LinkBlocks(self.rows(), width=width, folder=folder)

    def fingerprints(self) -> Fingerprints:
        """The fingerprint of every page; the index is its id."""
        return self._mapped("fingerprints", np.int64)

    def sorted_pages(self) -> SortedPages:
        """Mapped, not read."""
        return SortedPages(self._mapped("index-fingerprints", np.int64), self._mapped("index-ids", np.int32))

    def ids(self, fingerprints: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Dense ids of pages; −1 if a page is not in the matrix."""
        wanted = np.asarray(fingerprints, dtype=np.int64)
        fingerprints, ids = self.sorted_pages()
        if not len(ids):
            return np.full(wanted.shape, -1, dtype=np.int64)
        place, known = positions(fingerprints, wanted)
        return np.where(known, ids[place], -1).astype(np.int64)

    # Segments

    def segments(self) -> list[Path]:
        """Oldest first. A crawl may be appending to the last one."""
        return sorted(self.directory.glob(SEGMENTS))

    def live_records(self) -> int:
        """How many records the links of the matrix take, one for each and one for each page that has any."""
        return self.manifest.links + int(np.count_nonzero(np.diff(self.rows().starts)))

    def note_merged(self, segments: dict[str, int]) -> None:
        """The matrix has these segments (name → bytes that are in it), because it has those that they replace."""
        merged = {**self.manifest.merged, **segments}
        names = {segment.name for segment in self._all_segments()}
        self._commit(
            msgspec.structs.replace(self.manifest, merged={name: at for name, at in merged.items() if name in names})
        )

    def _all_segments(self) -> list[Segment]:
        own = [Segment(path.name, path) for path in self.segments()]
        return own if self._exchange is None else in_order_of_writing([*own, *self._exchange.received()])

    def _next_segment(self) -> None:
        self.close()
        numbers = [int(path.stem.partition("-")[0]) for path in self.segments()]
        self._segment = (self.directory / f"{max(numbers, default=0) + 1:06d}.edges").open("xb", buffering=1 << 18)
        sync(self.directory)

    def _unmerged(self) -> Iterator[tuple[str, int, Records]]:
        """Yield (segment, bytes merged after this part, records) in the order of writing."""
        done = self.manifest.merged
        for name, path in self._all_segments():
            position = done.get(name, 0)
            whole = path.stat().st_size // RECORD.itemsize * RECORD.itemsize
            while position < whole:
                count = min((whole - position) // RECORD.itemsize, self._links_at_once)
                records = np.fromfile(path, dtype=RECORD, count=count, offset=position)
                position += len(records) * RECORD.itemsize
                yield name, position, records

    # The matrix

    @property
    def _generation(self) -> Path:
        return self.directory / f"matrix-{self.manifest.generation:08d}"

    def _mapped(self, name: str, kind: type[_Integer]) -> npt.NDArray[_Integer]:
        path = self._generation / name
        if not path.exists() or path.stat().st_size == 0:
            return np.empty(0, dtype=kind)
        return np.asarray(np.memmap(path, dtype=kind, mode="r"))

    def _merge(self, records: Records, merged: dict[str, int]) -> None:
        """Write the next generation: the old matrix merged with `records`."""
        records, reset = last_readings(records)
        used = np.unique(np.concatenate([records["source"], records["target"], reset]))
        known = self.ids(used)
        fresh = used[known < 0]
        pages = self.manifest.pages + len(fresh)
        if pages > np.iinfo(np.int32).max:
            raise StoreError("the link matrix is full", hint="2^31 pages are the limit of one matrix: use shards")
        known[known < 0] = np.arange(self.manifest.pages, pages)
        sources = known[np.searchsorted(used, records["source"])]
        targets = known[np.searchsorted(used, records["target"])]
        replaced = np.zeros(pages, dtype=bool)
        replaced[known[np.searchsorted(used, reset)]] = True
        place = self.directory / f"matrix-{self.manifest.generation + 1:08d}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        self._write_ids(place, fresh, np.arange(self.manifest.pages, pages, dtype=np.int32))
        links = self._write_rows(place, pages, np.unique(sources << 32 | targets), replaced)
        self._commit(Manifest(self.manifest.generation + 1, pages, links, merged))

    def _write_ids(self, place: Path, fresh: Fingerprints, fresh_ids: npt.NDArray[np.int32]) -> None:
        with (place / "fingerprints").open("wb") as file:
            file.write(np.concatenate([self.fingerprints(), fresh]).tobytes())
        known, ids = self.sorted_pages()
        at = np.searchsorted(known, fresh)  # `fresh` is sorted, so this is a merge
        (place / "index-fingerprints").write_bytes(np.insert(known, at, fresh).tobytes())
        (place / "index-ids").write_bytes(np.insert(ids, at, fresh_ids).tobytes())

    def _write_rows(
        self, place: Path, pages: int, added: npt.NDArray[np.int64], replaced: npt.NDArray[np.bool_]
    ) -> int:
        """Copy the old rows, without `replaced` and with `added` (sorted source << 32 | target); count the links."""
        old, old_targets = self.rows()
        rows = len(old) - 1
        degrees = np.zeros(pages, dtype=np.int64)
        with (place / "targets").open("wb") as file:
            for first, last in [*row_chunks(old, self._links_at_once), (rows, pages)]:
                new = added[np.searchsorted(added, first << 32) : np.searchsorted(added, last << 32)]
                if first < rows:
                    counts = np.diff(old[first : last + 1])
                    sources = np.repeat(np.arange(first, last, dtype=np.int64), counts)
                    unchanged = ~replaced[sources]
                    keys = (sources << 32 | old_targets[old[first] : old[last]])[unchanged]
                    keys = np.unique(np.concatenate([keys, new])) if len(new) else keys
                else:
                    keys = new
                degrees[first:last] = np.bincount((keys >> 32) - first, minlength=last - first)
                file.write((keys & 0xFFFFFFFF).astype(np.int32).tobytes())
        indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
        (place / "indptr").write_bytes(indptr.tobytes())
        return int(indptr[-1])

    def _commit(self, manifest: Manifest) -> None:
        """The files of a generation are on disk before the manifest that names it: a power cut leaves the old one."""
        sync_tree(self.directory / f"matrix-{manifest.generation:08d}")
        write_file(self.directory / "manifest.json", msgspec.json.encode(manifest))
        self.manifest = manifest

    def _read_manifest(self) -> Manifest:
        path = self.directory / "manifest.json"
        if not path.exists():
            return Manifest()
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
        except msgspec.DecodeError:
            return Manifest()
        place = self.directory / f"matrix-{manifest.generation:08d}"
        sizes = {"fingerprints": 8 * manifest.pages, "indptr": 8 * (manifest.pages + 1), "targets": 4 * manifest.links}
        for name, size in sizes.items():
            if not (place / name).exists() or (place / name).stat().st_size != size:
                return Manifest()  # damaged; the segments rebuild it
        return manifest

    def _remove_old(self) -> None:
        for place in self.directory.glob("matrix-*"):
            if place != self._generation:
                shutil.rmtree(place, ignore_errors=True)


def packed_records(pages: Sequence[tuple[int, bytes]]) -> Records:
    """For each page, given with the packed fingerprints that it links to: its `RESET` record, then its links."""
    counts = np.array([len(targets) // 8 + 1 for _, targets in pages])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    records = np.zeros(int(counts.sum()), dtype=RECORD)
    records["source"] = np.repeat(np.array([source for source, _ in pages], dtype=np.int64), counts)
    links = np.ones(len(records), dtype=bool)
    links[starts] = False
    records["target"][links] = np.frombuffer(b"".join(targets for _, targets in pages), dtype=np.int64)
    records["kind"][starts] = RESET
    return records


def last_readings(records: Records) -> tuple[Records, Fingerprints]:
    """The links after the last `RESET` of their source, and the sources that have a `RESET`."""
    numbers = np.arange(len(records))
    marks = records["kind"] == RESET
    reset, last = np.unique(records["source"][marks][::-1], return_index=True)
    since = numbers[marks][::-1][last]
    late = np.ones(len(records), dtype=bool)
    if len(reset):
        place, known = positions(reset, records["source"])
        late = ~known | (numbers > since[place])
    counted = ~np.isin(records["kind"], [RESET, *(_CODES[kind] for kind in UNCOUNTED)])
    return records[late & counted], reset
