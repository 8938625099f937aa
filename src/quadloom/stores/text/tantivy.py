"""The text index on tantivy: words to pages, with facets and snippets.

A document's key is its page's URL; putting it again deletes the old one in the same commit. `documents` has the fields
and `quadloom.analysis` the words, the same for documents and questions.

Committing costs a fixed price (segments, fsync), 230 times that of adding a document: the caller commits in batches.
A killed process leaves the last commit; the lock goes with the process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import tantivy
from tantivy import Query

from quadloom.analysis.scripts import readable
from quadloom.analysis.words import STEM_FIELDS, query_tokens, word_analyzer
from quadloom.errors import DiskFull, StoreError, WarehouseLocked
from quadloom.process.durable import make_folder, sync
from quadloom.stores.protocols.text import Highlights, Hit, SearchAnswer, SearchRequest, TextDocument
from quadloom.stores.search import text_query
from quadloom.stores.search.query_plan import plan_search
from quadloom.stores.search.snippets import highlights_of, snippet
from quadloom.stores.search.synonyms import NO_SYNONYMS, Synonyms
from quadloom.stores.text.documents import excerpt_of, is_outdated, new_schema, title_of, to_tantivy, word_fields
from quadloom.stores.text.search import FoundPage, TantivySearch, TantivyVocabulary

_HEAP = 64 << 20
_FACETS = {"types": "types", "vocabularies": "vocabularies", "sites": "site", "languages": "language", "kinds": "kind"}
_FACET_SIZE = 20
_MAX_NAMED = 100_000  # URLs kept, some 15 MB


class TantivyText:
    """See `quadloom.stores.protocols.text.TextIndex`. One process writes.

    `read_only`: may be open while another process writes, and sees every commit made before each question.
    """

    def __init__(self, path: Path, *, read_only: bool = False, synonyms: Synonyms = NO_SYNONYMS) -> None:
        self._path = path
        self._synonyms = synonyms
        self._read_only = read_only
        self._commits = 0
        self._committed: _Committed | None = None
        if read_only and not (path.is_dir() and tantivy.Index.exists(str(path))):
            raise StoreError(f"there is no text index at {path}", hint="run `quadloom crawl URL` first")
        with _translated(path):
            if not read_only:
                make_folder(path)
            if tantivy.Index.exists(str(path)):
                self._index = tantivy.Index.open(str(path))
            else:
                self._index = tantivy.Index(new_schema(), path=str(path))
                sync(path)
            self._outdated = is_outdated(path)
            self._weights = word_fields(outdated=self._outdated)
            if not self._outdated:
                self._weights |= dict.fromkeys(STEM_FIELDS, 1.0)
            self._index.register_tokenizer("words", word_analyzer())
            self._writer: tantivy.IndexWriter | None = None if read_only else self._index.writer(_HEAP, 1)

    def _open_writer(self) -> tantivy.IndexWriter:
        if self._writer is None:
            if self._read_only:
                raise StoreError(f"the text index {self._path} is open for reading only")
            self._writer = self._index.writer(_HEAP, 1)
        return self._writer

    def put(self, documents: Sequence[TextDocument]) -> None:
        with self._writing() as writer:
            for document in documents:
                writer.delete_documents_by_term("id", document.id)
                writer.add_document(to_tantivy(document, outdated=self._outdated))

    def remove(self, ids: Sequence[str]) -> None:
        with self._writing() as writer:
            for id in ids:
                writer.delete_documents_by_term("id", id)

    def commit(self) -> None:
        with self._writing() as writer:
            writer.commit()
            sync(self._path)  # the engine renames its list of segments, and leaves syncing the folder to us
        with _translated(self._path):
            self._index.reload()
        self._commits += 1

    @contextmanager
    def _writing(self) -> Iterator[tantivy.IndexWriter]:
        """After a failure the writer is unusable; the next call opens a new one at the last commit."""
        with _translated(self._path):
            writer = self._open_writer()
            try:
                yield writer
            except (ValueError, OSError):
                self._writer = None
                # Gives back the lock of the folder at once: frames of the error's traceback still hold the writer.
                with suppress(ValueError, OSError):
                    writer.wait_merging_threads()
                raise

    def search(self, request: SearchRequest) -> SearchAnswer:
        started = time.perf_counter()
        parsed = text_query.parse(request.text)
        with _translated(self._path):
            committed = self._current()
            search = TantivySearch(self._index.schema, committed.searcher, self._weights, parsed, request)
            plan = plan_search(parsed, committed.vocabulary, search.ask, synonyms=self._synonyms, exact=request.exact)
            marked = highlights_of(plan.last)
            found = search.page(plan)
            if request.snippets:
                hits = tuple(_hit(hit, committed.searcher, marked, request) for hit in found)
            else:
                hits = tuple(committed.hit(hit.score, hit.address) for hit in found)
            facets = _facets(committed.searcher, search.last_query) if request.facets else {}
        return SearchAnswer(
            hits=hits if request.limit > 0 else (),
            total=plan.steps[-1][1].count,
            facets=facets,
            seconds=time.perf_counter() - started,
            corrections=plan.corrections,
            missing=plan.missing,
            most_words=plan.last.partial,
            offers=plan.offers,
            newest=parsed.newest,
            highlights=marked,
        )

    def words(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        with _translated(self._path):
            vocabulary = self._current().vocabulary
            tokens = query_tokens(prefix)
            return [
                (readable(word), count) for word, count in vocabulary.starting_with(tokens[-1] if tokens else "", limit)
            ]

    def _searcher(self) -> tantivy.Searcher:
        return self._current().searcher

    def _current(self) -> _Committed:
        mark = _commit_mark(self._path) if self._read_only else (self._commits,)
        committed = self._committed
        if committed is None or committed.mark != mark:
            if self._read_only:  # not before each question: it costs .1 ms even if nothing is new
                self._index.reload()
            committed = self._committed = _Committed(self._index.searcher(), mark, tuple(self._weights))
        return committed

    def ids(self) -> Iterator[str]:
        with _translated(self._path):
            searcher = self._searcher()
            found = searcher.terms_with_prefix("id", "", Query.all_query())
        for id, _ in found:
            yield id

    def __len__(self) -> int:
        return self._searcher().num_docs

    @property
    def is_outdated(self) -> bool:
        return self._outdated

    def close(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            with _translated(self._path):
                writer.rollback()
                writer.wait_merging_threads()  # consumes the writer, so its lock is free at once


def _commit_mark(path: Path) -> tuple[int, ...]:
    """Differs after every commit, which replaces this file by a new one."""
    status = (path / "meta.json").stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


def _hit(found: FoundPage, searcher: tantivy.Searcher, marked: Highlights, request: SearchRequest) -> Hit:
    document = searcher.doc(found.address)
    excerpt = excerpt_of(document)
    return Hit(
        id=document.get_first("id") or "",
        score=found.score,
        title=title_of(document),
        snippet="" if request.excerpts else snippet(excerpt, marked),
        types=tuple(document.get_all("types")),
        site=document.get_first("site") or "",
        language=document.get_first("language") or "",
        kind=document.get_first("kind") or "",
        fetched_at=document.get_first("fetched_at") or 0.0,
        excerpt=excerpt if request.excerpts else "",
        explanation=found.explanation,
        tier=found.tier,
    )


class _Committed:
    """A searcher of one commit, and a cache of its documents' URLs.

    `ql:matches` needs the URLs of a thousand hits and nothing else. Each costs 14 µs, because the whole document is
    read; common words share most of their hits, so the second question finds them here. An address belongs to one
    searcher: the next commit begins with an empty cache.
    """

    def __init__(self, searcher: tantivy.Searcher, mark: tuple[int, ...], fields: tuple[str, ...]) -> None:
        self.searcher = searcher
        self.vocabulary = TantivyVocabulary(searcher, fields)
        self.mark = mark  # taken before the searcher, so a commit in between is noticed at the next question
        self._urls: dict[tuple[int, int], str] = {}

    def hit(self, score: float, address: tantivy.DocAddress) -> Hit:
        key = (address.segment_ord, address.doc)
        url = self._urls.get(key)
        if url is None:
            url = self.searcher.doc(address).get_first("id") or ""
            if len(self._urls) < _MAX_NAMED:
                self._urls[key] = url
        return Hit(id=url, score=float(score))


def _facets(searcher: tantivy.Searcher, query: Query) -> dict[str, list[tuple[str, int]]]:
    wanted = {name: {"terms": {"field": field, "size": _FACET_SIZE}} for name, field in _FACETS.items()}
    wanted["years"] = {"terms": {"field": "year", "size": _FACET_SIZE}}
    answer = searcher.aggregate(query, wanted)
    return {
        name: [(_key(bucket["key"]), int(bucket["doc_count"])) for bucket in answer[name]["buckets"]] for name in wanted
    }


def _key(value: str | float) -> str:
    return value if isinstance(value, str) else str(int(value))


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, OSError) as error:
        words = str(error)
        if "No space left" in words or "os error 28" in words or "StorageFull" in words:
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
