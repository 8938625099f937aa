"""The quad store on Oxigraph: one named graph per page, replaced by difference.

A refresh mostly changes two or three of a page's statements. Reading the old graph and writing only the difference, in
one SPARQL update that is atomic, costs a third of dropping and inserting the graph; and the caller gets the difference.
First reads of many pages are written by one bulk load, which writes sorted files and skips the log: measured with 50
quads a page, CPU-ms per page

    pages a batch    1     5    20    50   100   300
    bulk_load     12.3   3.5   1.3   .76   .55   .30
    load           .90   .82   .69   .76   .74   .66

so on an empty store bulk loading pays from about 2,500 quads. It is not atomic: after a crash the catalog still lists
those pages as unindexed, and the replay replaces whatever part of them arrived.

Every file that is added is paid for a second time. RocksDB, as Oxigraph sets it up, merges the newest two with all of
the store, up to 256 MB for each of six orders of its statements: 1.9 µs for every quad that is there. So files must be
few. Batches below `BULK_QUADS` go through the log, and what is in the log becomes files only after `_LOG_QUADS`;
until then `flush` syncs the log itself. A view reads the log when it opens, 12 µs a quad.

The engine's caches take up to 160 MB, and no option limits them: blocks of files that were merged away stay until
others need their room. Only closing the store frees them, .03 CPU-seconds with 40 files. So `release_memory` opens the
store again after `_READ_QUADS` were read: 40,000 pages, 12,500 of them described again, took 49 MB before and 16 after.

N-Quads given to this store are trusted to be well-formed (transform workers wrote them). Statements are compared in the
form in which the store returns them, since Oxigraph stores numbers by value (`"01"^^xsd:integer` comes back as `"1"`).
"""

from __future__ import annotations

import errno
import io
import math
import os
import threading
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice, repeat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyoxigraph as ox
from xxhash import xxh3_64_intdigest

from quadloom.errors import DiskFull, QuerySyntaxError, StoreError, WarehouseLocked
from quadloom.model.quads import Quads
from quadloom.process.durable import make_folder, sync
from quadloom.process.limits import resident_bytes, trim_memory
from quadloom.process.retry import doubling, retry, within
from quadloom.stores.protocols.quads import BULK_QUADS, Difference
from quadloom.stores.quads.nquads import as_stored, lines_of, parse_term, text_of
from quadloom.stores.quads.views import SharedView, view_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_LOG_QUADS = 16_000  # some 11 MB
_READ_QUADS = 100_000
_REOPEN_SECONDS = 30.0  # for calls of other threads to end
_PIECE = 32 << 20  # bytes loaded at once
_LOAD_FACTOR = 6  # times as much memory, which a load takes for a moment
_SMALL_PIECE = 8 << 20
_SMALL_STORE = 256 << 20  # bytes on disk
# Bytes in RAM that the owner of a small store should not exceed. With 300 MB ordinary crawls have small pieces, too.
_SMALL_OWNER = 400 << 20
_CHUNK = 1 << 20
_ENGINE_ERRORS = (OSError, RuntimeError)  # the latter for what RocksDB calls corruption, such as a file just removed
_VIEW_PAUSE = 0.04  # seconds before a store is opened again
_TRIPLES, _QUADS = ox.RdfFormat.N_TRIPLES, ox.RdfFormat.N_QUADS


class OxigraphQuads:
    """See `quadloom.stores.protocols.quads.QuadStore`. One process writes.

    `read_only`: a view of everything that is committed now, also while another process writes. It does not follow later
    changes. `may_be_missing`: if there is no store, the view is empty.
    """

    def __init__(self, path: Path, *, read_only: bool = False, may_be_missing: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._count: int | None = None
        self._logged = 0  # quads that are in the log and perhaps in no file yet
        self._read = 0  # quads since the store was opened
        self._access = threading.RLock()  # held while the store is closed for a moment
        self._is_compacting = False
        self._view: SharedView | None = None
        self._opened: ox.Store | None
        if not read_only:
            self._opened = _open_store(path)
        elif may_be_missing and not path.exists():
            self._opened = ox.Store()
        else:
            self._view = view_of(path, _open_view)
            self._opened = self._view.store

    @property
    def _store(self) -> ox.Store:
        with self._access:
            if self._opened is None:
                raise StoreError(f"the quad store {self._path} is closed", hint="open the warehouse again")
            return self._opened

    def replace(self, quads: Quads, known: bytes = b"") -> Difference:
        if not quads.size:
            return self.remove(quads.graph)
        difference = self._guessed(quads, known) if known else None
        if difference is None:
            difference = self.difference(quads)
        if difference:
            with _translated(self._path):
                self._write(quads.graph, difference.removed, difference.added)
        return difference

    def _write(self, graph: str, removed: Sequence[str], added: Sequence[str]) -> None:
        self._logged += len(removed) + len(added)
        if removed:
            self._store.update(_update(graph, removed, added))
        else:
            self._store.load(text_of(added), _QUADS, lenient=True)

    def _guessed(self, quads: Quads, known: bytes) -> Difference | None:
        """The difference without reading the whole graph, which is two thirds of a refresh; None = it must be read.

        A statement that was removed was mostly replaced by one with the same subject and predicate, so only those are
        looked up. If a fingerprint remains without its statement, the guess has failed."""
        new = {xxh3_64_intdigest(line): line for line in quads.nquads.split(b"\n") if line}
        gone = set(array("Q", known))
        fresh = [line for fingerprint, line in new.items() if fingerprint not in gone]
        gone -= new.keys()
        if len(fresh) + len(gone) > len(new) // 2:
            return None
        removed: set[str] = set()
        graph = ox.NamedNode(quads.graph)
        for head in {line[: line.index(b"> ", line.index(b"> ") + 2)] for line in fresh} if gone else ():
            subject, predicate = (ox.NamedNode(iri[1:]) for iri in head.decode().split("> "))
            for quad in self._store.quads_for_pattern(subject, predicate, None, graph):
                self._read += 1
                found = f"{quad} ."
                fingerprint = xxh3_64_intdigest(found.encode())
                if fingerprint in gone:
                    gone.discard(fingerprint)
                    removed.add(found)
        if gone:
            return None
        added = set(as_stored({line.decode() for line in fresh})) if fresh else set()
        return Difference(tuple(sorted(added - removed)), tuple(sorted(removed - added)))

    def difference(self, quads: Quads) -> Difference:
        old = set(self._lines(quads.graph))
        new = set(lines_of(quads.nquads))
        # A statement that is not there in these words may be there by value: let a scratch store rewrite it.
        changed = set(as_stored(new - old)) if old else new
        return Difference(tuple(sorted(changed - old)), tuple(sorted(old - new - changed)))

    def insert_new(self, batch: Sequence[Quads], about: bytes = b"") -> None:
        graphs = [*batch, Quads.of("", about)]
        count = sum(quads.count for quads in graphs)
        if not count:
            return
        with _translated(self._path):
            if count < BULK_QUADS:
                self._logged += count
                self._store.load(b"".join(quads.nquads for quads in graphs), _QUADS, lenient=True)
                return
            trim_memory()  # a load cannot use what is free between used parts, 128 MB after 450,000 small pages
            ordinary, large = self._piece_bytes()
            for some, most in (
                ([quads for quads in graphs if not quads.unpacked], ordinary),
                ([quads for quads in graphs if quads.unpacked], large),
            ):
                for piece in _pieces(some, most):
                    self._store.bulk_load(piece, _QUADS, lenient=True)

    def _piece_bytes(self) -> tuple[int, int]:
        """Bytes to load at once, of ordinary graphs and of large ones. Each piece makes files, and merging them costs
        the more the larger the store is. So pieces are smaller only in a small store: of large graphs, and of others if
        this process is near its limit."""
        if sum(file.stat().st_size for file in self._path.glob("*.sst")) > _SMALL_STORE:
            return _PIECE, _PIECE
        room = (_SMALL_OWNER - resident_bytes(os.getpid())) // _LOAD_FACTOR
        return min(max(room, _SMALL_PIECE), _PIECE), _SMALL_PIECE

    def describe(self, graph: str, descriptions: Sequence[tuple[str, bytes]]) -> None:
        name = ox.NamedNode(graph)
        old: set[str] = set()
        new: set[str] = set()
        for subject, nquads in descriptions:
            for quad in self._store.quads_for_pattern(ox.NamedNode(subject), None, None, name):
                old.add(f"{quad} .")
            new.update(lines_of(nquads))
        self._read += len(old)
        changed = set(as_stored(new - old)) if old else new  # one scratch store for all: each costs 40 µs
        added, removed = changed - old, old - new - changed
        if added or removed:
            with _translated(self._path):
                self._write(graph, sorted(removed), sorted(added))

    def remove(self, graph: str) -> Difference:
        removed = tuple(sorted(self._lines(graph)))
        if removed:
            with _translated(self._path):
                self._logged += len(removed)
                self._store.remove_graph(ox.NamedNode(graph))
        return Difference((), removed)

    def graph(self, graph: str) -> bytes:
        return text_of(sorted(self._lines(graph)))

    def _lines(self, graph: str) -> list[str]:
        with _translated(self._path):
            data = self._store.dump(format=_TRIPLES, from_graph=ox.NamedNode(graph))
        assert data is not None, "dump without an output returns bytes"
        tail = f"<{graph}> ."
        lines = [line[:-1] + tail for line in lines_of(data)]
        self._read += len(lines)
        return lines

    def match(
        self, subject: str | None, predicate: str | None, object: str | None, graph: str | None, limit: int = 0
    ) -> Iterator[str]:
        pattern = [None if text is None else parse_term(text) for text in (subject, predicate, object, graph)]
        with _translated(self._path):
            # No name for the iterator: it must end in the thread that made it, and a traceback would take it elsewhere.
            for number, quad in enumerate(self._store.quads_for_pattern(*pattern), 1):  # type: ignore[arg-type]
                yield f"{quad} ."
                if number == limit:
                    return

    def query(self, sparql: str) -> bytes:
        with _translated(self._path):
            return evaluate(self._store, sparql)

    def parts(self, sparql: str) -> Iterator[bytes]:
        yield self.query(sparql)

    def graphs(self) -> Iterator[str]:
        with _translated(self._path):
            for graph in self._store.named_graphs():
                yield str(graph)[1:-1]

    def dump(self) -> Iterator[bytes]:
        parts: list[bytes] = []
        size = 0
        for graph in self.graphs():
            parts.append(text_of(self._lines(graph)))
            size += len(parts[-1])
            if size >= _CHUNK:
                yield b"".join(parts)
                parts, size = [], 0
        if size:
            yield b"".join(parts)

    def __len__(self) -> int:
        """Counts all quads: .6 s a million. A read-only view never changes, so it counts once."""
        if self._count is not None:
            return self._count
        with _translated(self._path):
            count = len(self._store)
        if self._read_only:
            self._count = count
        return count

    def flush(self) -> None:
        with _translated(self._path):
            if self._logged >= _LOG_QUADS:
                self._store.flush()
                self._logged = 0
                return
            for log in self._path.glob("*.log"):  # more than one: the engine uses old ones again
                sync(log)
            sync(self._path)

    def release_memory(self) -> None:
        if self._read < _READ_QUADS or self._logged or self._read_only:
            return
        with self._access:
            if self._is_compacting or self._opened is None:
                return
            self._read = 0
            self._opened = None
            trim_memory()
            self._opened = _open_again(self._path)

    def optimize(self) -> None:
        with self._access:
            store, self._is_compacting = self._store, True
        try:
            with _translated(self._path):
                store.optimize()
        finally:
            del store
            self._is_compacting = False

    def close(self) -> None:
        """Leaves an empty log: the process that opens the store next need not read it."""
        if self._opened is not None and not self._read_only:
            with suppress(*_ENGINE_ERRORS):  # what the log has is durable
                self._opened.flush()
        self._opened = self._view = None  # the engine closes its files, and drops its lock, with the last reference


def evaluate(store: ox.Store, sparql: str) -> bytes:
    """A query over the union of all graphs; SPARQL JSON for rows and yes/no, N-Triples for graphs.

    The answer of the engine must end in the thread that made it: an error must not take it along in its traceback."""
    answer = None
    try:
        answer = store.query(sparql, use_default_graph_as_union=True)
        if isinstance(answer, ox.QueryTriples):
            data = answer.serialize(format=_TRIPLES)
        else:
            data = answer.serialize(format=ox.QueryResultsFormat.JSON)
    except SyntaxError as error:
        raise QuerySyntaxError(
            f"the query does not parse: {error.msg}", line=error.lineno or 0, column=error.offset or 0
        ) from error
    finally:
        del answer
    assert data is not None, "serialize without an output returns bytes"
    return data


def _update(graph: str, removed: Sequence[str], added: Sequence[str]) -> str:
    tail = len(graph) + 4  # "<graph> ."
    parts = []
    for verb, lines in (("DELETE", removed), ("INSERT", added)):
        if lines:
            triples = "\n".join(f"{line[:-tail]}." for line in lines)
            parts.append(f"{verb} DATA {{ GRAPH <{graph}> {{\n{triples}\n}} }}")
    return " ;\n".join(parts)


def _open_store(path: Path) -> ox.Store:
    with _translated(path):
        make_folder(path.parent)
        return ox.Store(str(path))


def _open_again(path: Path) -> ox.Store:
    """Another thread may still be in a call that it began before, which holds the engine's lock."""
    return retry(lambda: _open_store(path), within(_REOPEN_SECONDS, repeat(_VIEW_PAUSE)), WarehouseLocked)


def _open_view(path: Path) -> ox.Store:
    """The writer may remove a file after the list of files was read, so opening is tried again."""
    if not path.is_dir():
        raise StoreError(f"there are no quads at {path}", hint="run `quadloom crawl URL` first")
    with _translated(path):
        return retry(lambda: ox.Store.read_only(str(path)), islice(doubling(_VIEW_PAUSE), 4), _ENGINE_ERRORS)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except _ENGINE_ERRORS as error:
        raise _refusal(error, path) from error


def _refusal(error: OSError | RuntimeError, path: Path) -> StoreError:
    words = str(error)
    if "No space left" in words or getattr(error, "errno", 0) in (errno.ENOSPC, errno.EFBIG):
        return DiskFull(
            f"no room left to write {path}; all that was acknowledged is safe",
            hint="free some space and run the same command again: it resumes",
        )
    if "lock file" in words.lower() or "LOCK" in words:
        return WarehouseLocked(
            f"the quads in {path} are in use by another process",
            hint="end the crawl with `quadloom stop`; status, search and sparql also work while it runs",
        )
    return StoreError(f"cannot use the quads in {path}: {words}", hint="run `quadloom rebuild`: it makes new ones")


class _Lines:
    """Lines of several graphs, from the first to the last. They are neither joined, which would be a copy as large as
    all of them, nor unpacked before their turn."""

    def __init__(self, graphs: Sequence[Quads]) -> None:
        self._blocks = (block for quads in graphs for block in quads.blocks() if block)
        self._block, self._start = b"", 0
        self.has_more = True
        self._advance()

    def take(self, room: int) -> memoryview:
        """The next lines: about `room` bytes up to the end of a line, or what is left of a block."""
        block, start = self._block, self._start
        end = block.find(b"\n", start + room - 1) + 1 or len(block)
        self._start = end
        if end == len(block):
            self._advance()
        return memoryview(block)[start:end]

    def _advance(self) -> None:
        block = next(self._blocks, None)
        self._block, self._start = block or b"", 0
        self.has_more = block is not None


class _Piece(io.RawIOBase):
    """The next lines as a file, so many bytes up to the end of a line."""

    def __init__(self, lines: _Lines, size: int) -> None:
        self._lines = lines
        self._room = size
        self._part = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        target = memoryview(buffer)
        if not self._part and self._lines.has_more and self._room > 0:
            self._part = self._lines.take(self._room)
            self._room -= len(self._part)
        size = min(len(target), len(self._part))
        target[:size] = self._part[:size]
        self._part = self._part[size:]
        return size


def _pieces(graphs: Sequence[Quads], most: int) -> Iterator[BinaryIO]:
    """The lines in pieces of about `most` bytes or less, all of similar size: a small last one costs as much as a large
    one. Each must be read before the next one is taken."""
    whole = sum(quads.size for quads in graphs)
    size = math.ceil(whole / math.ceil(whole / most)) if whole else 0
    lines = _Lines(graphs)
    while lines.has_more:
        yield io.BufferedReader(_Piece(lines, size), _CHUNK)
