"""A text index for many machines: one tantivy index for each of the 256 shards, in a directory that all of them share.

A worker writes the shards that it owns; any machine searches all of them and merges their hits (scatter and gather).
A shard changes its writer without a lock (`quadloom.stores.tantivy.generations`), so a worker that is paused or cut off
stops nobody.

A commit costs some 15 ms of CPU for every shard with new documents, of which a worker has many: commit seldom
(`index.text_commit_seconds`). Documents wait in memory until then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

from quadloom.errors import StoreError
from quadloom.model.text import TextDocument
from quadloom.model.url import host_of
from quadloom.process.durable import make_folder
from quadloom.stores.protocols.text import SearchAnswer, SearchRequest
from quadloom.stores.shards import SHARDS, shard_of
from quadloom.stores.tantivy.answers import CommittedIndex, answer, vocabulary_of, words_of
from quadloom.stores.tantivy.generations import claim, make_ready, newest_claim, newest_ready, place, take_over
from quadloom.stores.tantivy.index import SMALLEST_HEAP, TantivyText, translated
from quadloom.stores.tantivy.search import TantivyHits
from quadloom.stores.text_queries.synonyms import NO_SYNONYMS, Synonyms

_THREADS = 8  # commits wait for the disk most of the time
_FEW = 4  # indexes: with so few, threads cost more than they bring
_TRIES = 10
_LOOK_SECONDS = 1.0  # between two looks for generations of other workers


class ShardedText:
    """See `quadloom.stores.protocols.text.TextIndex`. A commit is atomic for each shard: a crash within `commit` may
    leave some shards before and some after it.

    `fresh`: all shards begin empty and are shown to readers by `publish`, for a rebuild by the owner of all shards.
    """

    def __init__(
        self, path: Path, *, read_only: bool = False, synonyms: Synonyms = NO_SYNONYMS, fresh: bool = False
    ) -> None:
        self._path = path
        self._synonyms = synonyms
        self._read_only = read_only
        self._begin: Callable[[Path], int] = claim if fresh else take_over
        self._pending: dict[int, dict[str, TextDocument | None]] = {}  # by shard and id; None = remove
        self._written: dict[int, int] = {}  # shard → the generation that this process writes
        self._read: dict[int, tuple[int, TantivyText]] = {}  # shard → the generation that is searched
        self._looked = -_LOOK_SECONDS
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="text-shard")
        if not read_only:
            with translated(path):
                make_folder(path)

    def put(self, documents: Sequence[TextDocument]) -> None:
        for document in documents:
            self._changes(document.id)[document.id] = document

    def remove(self, ids: Sequence[str]) -> None:
        for id in ids:
            self._changes(id)[id] = None

    def _changes(self, id: str) -> dict[str, TextDocument | None]:
        if self._read_only:
            raise StoreError(f"the text index {self._path} is open for reading only")
        return self._pending.setdefault(shard_of(host_of(id)), {})

    def commit(self) -> None:
        """If one shard fails, the others are committed, and only that one is written when the caller tries again."""
        writing = {shard: self._threads.submit(self._write, shard) for shard in self._pending}
        wait(writing.values())
        failed = [error for shard, write in writing.items() if (error := self._finished(shard, write)) is not None]
        self._looked = -_LOOK_SECONDS
        if failed:
            raise failed[0]

    def _finished(self, shard: int, write: Future[None]) -> BaseException | None:
        error = write.exception()
        if error is None:
            del self._pending[shard]
        return error

    def _write(self, shard: int) -> None:
        folder, changes = self._folder(shard), self._pending[shard]
        documents = [document for document in changes.values() if document is not None]
        removed = [id for id, document in changes.items() if document is None]
        for _ in range(_TRIES):
            with translated(folder):
                number = self._generation(shard)
                with closing(TantivyText(place(folder, number), heap=SMALLEST_HEAP)) as index:
                    index.remove(removed)
                    index.put(documents)
                    index.commit()
                if newest_claim(folder) == number:
                    return
        raise StoreError(
            f"several processes write the text of shard {shard} all the time",
            hint="`quadloom status` shows the workers: give each a directory of its own",
        )

    def _generation(self, shard: int) -> int:
        folder = self._folder(shard)
        number = self._written.get(shard, 0)
        if not number or newest_claim(folder) != number:
            number = self._written[shard] = self._begin(folder)
        return number

    def publish(self, shards: Iterable[int] = range(SHARDS)) -> None:
        """Show these shards of a fresh index, those without documents too."""
        for shard in shards:
            folder = self._folder(shard)
            if shard in self._written or newest_claim(folder):
                number = self._generation(shard)
                TantivyText(place(folder, number), heap=SMALLEST_HEAP).close()
                make_ready(folder, number)

    def search(self, request: SearchRequest) -> SearchAnswer:
        with translated(self._path):
            return answer(self._commits(), request, self._synonyms, self._scatter)

    def _scatter(self, ask: Callable[[int], TantivyHits], count: int) -> Iterable[TantivyHits]:
        return map(ask, range(count)) if count <= _FEW else self._threads.map(ask, range(count))

    def words(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        with translated(self._path):
            return words_of(vocabulary_of(self._commits()), prefix, limit)

    def ids(self) -> Iterator[str]:
        for index in self._indexes():
            yield from index.ids()

    def __len__(self) -> int:
        return sum(map(len, self._indexes()))

    @property
    def is_outdated(self) -> bool:
        return any(index.is_outdated for index in self._indexes())

    def close(self) -> None:
        self._pending.clear()
        self._threads.shutdown()

    def _commits(self) -> list[CommittedIndex]:
        return [index.committed() for index in self._indexes()]

    def _indexes(self) -> list[TantivyText]:
        """Of all shards, in their newest generations."""
        with self._lock:
            if time.monotonic() - self._looked >= _LOOK_SECONDS:
                for shard in range(SHARDS):
                    self._look(shard)
                self._looked = time.monotonic()
            return [index for _, (_, index) in sorted(self._read.items())]

    def _look(self, shard: int) -> None:
        folder = self._folder(shard)
        for attempt in range(1, _TRIES + 1):
            number = newest_ready(folder)
            if not number or (shard in self._read and self._read[shard][0] == number):
                return
            try:
                self._read[shard] = (number, TantivyText(place(folder, number), read_only=True))
                return
            except StoreError:
                if attempt == _TRIES or newest_ready(folder) == number:
                    raise

    def _folder(self, shard: int) -> Path:
        return self._path / f"{shard:03d}"
