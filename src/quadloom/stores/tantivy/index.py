"""The text index on tantivy: words to pages, with facets and snippets.

A document's key is its page's URL; putting it again deletes the old one in the same commit. `documents` has the fields
and `quadloom.documents.words` the words, the same for documents and questions.

Committing costs a fixed price (segments, fsync), 230 times that of adding a document: the caller commits in batches.
A killed process leaves the last commit; the lock goes with the process.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from weakref import WeakValueDictionary

import tantivy
from tantivy import Query

from quadloom.documents.words.analysis import SCHEMA, word_analyzer
from quadloom.errors import DiskFull, StoreError, WarehouseLocked
from quadloom.model.text import TextDocument
from quadloom.process.durable import is_writable, make_folder, sync
from quadloom.stores.protocols.text import SearchAnswer, SearchRequest
from quadloom.stores.tantivy.answers import CommittedIndex, answer, words_of
from quadloom.stores.tantivy.copies import Copies
from quadloom.stores.tantivy.documents import SHOWN, copy_of, new_schema, to_tantivy, version_of, word_fields
from quadloom.stores.text_queries.synonyms import NO_SYNONYMS, Synonyms

_HEAP = 64 << 20
SMALLEST_HEAP = 15 << 20  # the engine accepts no less
_ROOM = 64 << 20  # bytes on disk that a commit may need


_sharing = threading.Lock()
_shared_commits: WeakValueDictionary[Path, CommittedIndex] = WeakValueDictionary()  # those of readers


class TantivyText:
    """See `quadloom.stores.protocols.text.TextIndex`. One process writes.

    `read_only`: may be open while another process writes, and sees every commit made before each question. `heap`:
    bytes for documents that are not committed yet.
    """

    def __init__(
        self, path: Path, *, read_only: bool = False, synonyms: Synonyms = NO_SYNONYMS, heap: int = _HEAP
    ) -> None:
        self._path = path
        self._synonyms = synonyms
        self._read_only = read_only
        self._heap = heap
        self._commits = 0
        self._committed: CommittedIndex | None = None
        self._links: TemporaryDirectory[str] | None = None
        if read_only and not (path.is_dir() and tantivy.Index.exists(str(path))):
            raise StoreError(f"there is no text index at {path}", hint="run `quadloom crawl URL` first")
        with translated(path):
            if not read_only:
                make_folder(path)
            if read_only and not is_writable(path):
                self._links = TemporaryDirectory(prefix="quadloom-text-", ignore_cleanup_errors=True)
                self._link_files()
                self._index = tantivy.Index.open(self._links.name)
            elif tantivy.Index.exists(str(path)):
                self._index = tantivy.Index.open(str(path))
            else:
                self._index = tantivy.Index(new_schema(), path=str(path))
                sync(path)
            self._version = version_of(path)
            self._weights = word_fields(self._version)
            self._index.register_tokenizer("words", word_analyzer())
            self._writer: tantivy.IndexWriter | None = None if read_only else self._index.writer(heap, 1)
            self._copies = Copies(self._index) if not read_only and self._version == SCHEMA else None

    def _link_files(self) -> None:
        """The engine makes lock files also to read. In a folder that cannot be written it reads links to all files."""
        if self._links is not None:
            for file in self._path.resolve().iterdir():
                if not file.name.endswith(".lock"):
                    with suppress(FileExistsError):
                        Path(self._links.name, file.name).symlink_to(file)

    def _open_writer(self) -> tantivy.IndexWriter:
        if self._writer is None:
            if self._read_only:
                raise StoreError(f"the text index {self._path} is open for reading only")
            self._writer = self._index.writer(self._heap, 1)
        return self._writer

    def put(self, documents: Sequence[TextDocument]) -> None:
        with self._writing() as writer:
            for document in documents:
                self._put(writer, document, {document.id})

    def _put(self, writer: tantivy.IndexWriter, document: TextDocument, seen: set[str]) -> None:
        """`seen`: pages that were indexed because of each other, so that each is once."""
        writer.delete_documents_by_term("id", document.id)
        if self._copies is None:
            writer.add_document(to_tantivy(document, self._version))
            return
        shown = self._copies.shown_for(document)
        writer.add_document(to_tantivy(document) if shown == SHOWN else copy_of(document, shown))
        self._again(writer, self._copies.replaced(document, shown), seen)

    def _again(self, writer: tantivy.IndexWriter, documents: Sequence[TextDocument], seen: set[str]) -> None:
        for other in documents:
            if other.id not in seen:
                seen.add(other.id)
                self._put(writer, other, seen)

    def remove(self, ids: Sequence[str]) -> None:
        with self._writing() as writer:
            for id in ids:
                writer.delete_documents_by_term("id", id)
                if self._copies is not None:
                    self._again(writer, self._copies.removed(id), {id})

    def commit(self) -> None:
        with self._writing() as writer:
            writer.commit()
            sync(self._path)  # the engine renames its list of segments, and leaves syncing the folder to us
        with translated(self._path):
            self._index.reload()
            if self._copies is not None:
                self._copies.committed()
        self._commits += 1

    @contextmanager
    def _writing(self) -> Iterator[tantivy.IndexWriter]:
        """After a failure the writer is unusable; the next call opens a new one at the last commit."""
        with translated(self._path):
            writer = self._open_writer()
            try:
                yield writer
            except (ValueError, OSError):
                self._writer = None
                if self._copies is not None:
                    self._copies.committed()
                # Gives back the lock of the folder at once: frames of the error's traceback still hold the writer.
                with suppress(ValueError, OSError):
                    writer.wait_merging_threads()
                raise

    def search(self, request: SearchRequest) -> SearchAnswer:
        with translated(self._path):
            committed = self.committed()
            known = committed.known_answer(request, self._synonyms)
            if known is None:
                known = answer((committed,), request, self._synonyms)
                committed.remember(request, self._synonyms, known)
            return known

    def words(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        with translated(self._path):
            return words_of(self.committed().vocabulary, prefix, limit)

    def _searcher(self) -> tantivy.Searcher:
        return self.committed().searcher

    def committed(self) -> CommittedIndex:
        """The last commit, for a search."""
        mark = _commit_mark(self._path) if self._read_only else (self._commits,)
        committed = self._committed
        if committed is None or committed.mark != mark:  # not for each question: to reload costs .1 ms
            commit = self._shared_commit if self._read_only else self._own_commit
            committed = self._committed = commit(mark)
        return committed

    def _own_commit(self, mark: tuple[int, ...]) -> CommittedIndex:
        return CommittedIndex(self._index, mark, self._weights)

    def _shared_commit(self, mark: tuple[int, ...]) -> CommittedIndex:
        """The last commit as all threads of this process see it, with what their questions have found out."""
        with _sharing:
            known = _shared_commits.get(self._path)
            if known is None or known.mark != mark:
                self._link_files()
                self._index.reload()
                known = _shared_commits[self._path] = CommittedIndex(self._index, mark, self._weights)
            return known

    def ids(self) -> Iterator[str]:
        with translated(self._path):
            searcher = self._searcher()
            found = searcher.terms_with_prefix("id", "", Query.all_query())
        for id, _ in found:
            yield id

    def __len__(self) -> int:
        return self._searcher().num_docs

    @property
    def is_outdated(self) -> bool:
        return self._version != SCHEMA

    def close(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            with translated(self._path):
                writer.rollback()
                writer.wait_merging_threads()  # consumes the writer, so its lock is free at once


def _commit_mark(path: Path) -> tuple[int, ...]:
    """Differs after every commit, which replaces this file by a new one."""
    status = (path / "meta.json").stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Failures of the engine as our errors."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, ValueError | OSError) and type(error).__name__ != "PanicException":  # not importable
            raise
        words = str(error)
        # A thread of the engine that cannot write dies, and the next call says only that it did.
        is_full = "writer was killed" in words and shutil.disk_usage(path).free < _ROOM
        if is_full or "No space left" in words or "os error 28" in words or "StorageFull" in words:
            raise DiskFull(
                f"no room left to write {path}; all that was acknowledged is safe",
                hint="free some space and run the same command again: it resumes",
            ) from error
        if "LockBusy" in words or "lockfile" in words.lower():
            raise WarehouseLocked(
                f"the text index {path} is in use by another process",
                hint="end the crawl with `quadloom stop`; status, search and sparql also work while it runs",
            ) from error
        raise StoreError(
            f"cannot use the text index {path}: {words}", hint="run `quadloom rebuild`: it makes a new one"
        ) from error
