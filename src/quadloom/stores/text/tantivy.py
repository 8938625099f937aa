"""The text index on tantivy: words to pages, with facets and snippets.

A document's key is its page's URL; putting it again deletes the old one in the same commit. `documents` has the fields
and `quadloom.analysis` the words, the same for documents and questions.

Committing costs a fixed price (segments, fsync), 230 times that of adding a document: the caller commits in batches.
A killed process leaves the last commit; the lock goes with the process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import tantivy
from tantivy import Occur, Query

from quadloom.analysis.scripts import is_gram
from quadloom.analysis.words import query_tokens, word_analyzer
from quadloom.errors import DiskFull, StoreError, WarehouseLocked
from quadloom.stores import text_query
from quadloom.stores.protocols.text import Hit, SearchAnswer, SearchRequest, TextDocument
from quadloom.stores.text.documents import excerpt_of, is_outdated, new_schema, title_of, to_tantivy, word_fields
from quadloom.stores.text_query import Clause

_HEAP = 64 << 20
_FACETS = {"types": "types", "vocabularies": "vocabularies", "sites": "site", "languages": "language", "kinds": "kind"}
_FACET_SIZE = 20
_MAX_NAMED = 100_000  # URLs kept, some 15 MB
_MAX_HITS = 10_000  # offset and limit together: deeper pages are for machines, which use SPARQL


class TantivyText:
    """See `quadloom.stores.protocols.text.TextIndex`. One process writes.

    `read_only`: may be open while another process writes, and sees every commit made before each question.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._commits = 0
        self._committed: _Committed | None = None
        if read_only and not (path.is_dir() and tantivy.Index.exists(str(path))):
            raise StoreError(f"there is no text index at {path}", hint="run `quadloom crawl URL` first")
        with _translated(path):
            if not read_only:
                path.mkdir(parents=True, exist_ok=True)
            if tantivy.Index.exists(str(path)):
                self._index = tantivy.Index.open(str(path))
            else:
                self._index = tantivy.Index(new_schema(), path=str(path))
            self._outdated = is_outdated(path)
            self._weights = word_fields(outdated=self._outdated)
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
        with _translated(self._path):
            self._index.reload()
        self._commits += 1

    @contextmanager
    def _writing(self) -> Iterator[tantivy.IndexWriter]:
        """After a failure the writer is unusable; the next call opens a new one at the last commit."""
        with _translated(self._path):
            try:
                yield self._open_writer()
            except (ValueError, OSError):
                self._writer = None
                raise

    def search(self, request: SearchRequest) -> SearchAnswer:
        started = time.perf_counter()
        clauses = text_query.parse(request.text)
        with _translated(self._path):
            committed = self._current()
            searcher = committed.searcher
            query = self._query(clauses, request)
            offset = max(0, min(request.offset, _MAX_HITS))
            limit = max(1, min(request.limit, _MAX_HITS - offset + 1))
            by_date = None if any(not clause.negated for clause in clauses) else "fetched_at"
            result = searcher.search(query, limit, count=True, offset=offset, order_by_field=by_date)
            hits = tuple(
                _hit(score, searcher.doc(address), clauses) if request.snippets else committed.hit(score, address)
                for score, address in result.hits
            )
            facets = _facets(searcher, query) if request.facets else {}
        total: int = result.count  # type: ignore[attr-defined]  # missing in the package's stubs
        return SearchAnswer(
            hits=hits if request.limit > 0 else (), total=total, facets=facets, seconds=time.perf_counter() - started
        )

    def _searcher(self) -> tantivy.Searcher:
        return self._current().searcher

    def _current(self) -> _Committed:
        mark = _commit_mark(self._path) if self._read_only else (self._commits,)
        committed = self._committed
        if committed is None or committed.mark != mark:
            if self._read_only:  # not before each question: it costs .1 ms even if nothing is new
                self._index.reload()
            committed = self._committed = _Committed(self._index.searcher(), mark)
        return committed

    def _query(self, clauses: Sequence[Clause], request: SearchRequest) -> Query:
        schema = self._index.schema
        parts: list[tuple[Occur, Query]] = [
            (Occur.MustNot if clause.negated else Occur.Must, self._clause(schema, clause)) for clause in clauses
        ]
        filters = {
            "types": request.types,
            "vocabularies": request.vocabularies,
            "site": request.sites,
            "language": request.languages,
            "kind": request.kinds,
        }
        for field, values in filters.items():
            if values:
                one_of = Query.term_set_query(schema, field, list(values))
                parts.append((Occur.Must, Query.const_score_query(one_of, 0.0)))
        if request.since or request.until:
            span = Query.range_query(
                schema, "fetched_at", tantivy.FieldType.Float, request.since or None, request.until or None
            )
            parts.append((Occur.Must, Query.const_score_query(span, 0.0)))
        if not any(occur is Occur.Must for occur, _ in parts):
            parts.append((Occur.Must, Query.all_query()))  # "-not" alone excludes from everything
        return Query.boolean_query(parts)

    def _clause(self, schema: tantivy.Schema, clause: Clause) -> Query:
        if clause.field and clause.field not in text_query.WORD_FIELDS:
            return _whole(schema, clause)
        words = query_tokens(clause.value)
        fields = {clause.field: 1.0} if clause.field else self._weights
        if not words or not fields.keys() <= self._weights.keys():
            return Query.empty_query()
        prefix = clause.prefix or (len(words) == 1 and len(words[0]) == 1 and is_gram(words[0]))
        return Query.boolean_query(
            [
                (Occur.Should, Query.boost_query(_words(schema, field, words, prefix=prefix), weight))
                for field, weight in fields.items()
            ]
        )

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


def _hit(score: float, document: tantivy.Document, clauses: tuple[Clause, ...]) -> Hit:
    return Hit(
        id=document.get_first("id") or "",
        score=float(score),
        title=title_of(document),
        snippet=text_query.snippet(excerpt_of(document), clauses),
        types=tuple(document.get_all("types")),
        site=document.get_first("site") or "",
        language=document.get_first("language") or "",
        kind=document.get_first("kind") or "",
        fetched_at=document.get_first("fetched_at") or 0.0,
    )


class _Committed:
    """A searcher of one commit, and a cache of its documents' URLs.

    `ql:matches` needs the URLs of a thousand hits and nothing else. Each costs 14 µs, because the whole document is
    read; common words share most of their hits, so the second question finds them here. An address belongs to one
    searcher: the next commit begins with an empty cache.
    """

    def __init__(self, searcher: tantivy.Searcher, mark: tuple[int, ...]) -> None:
        self.searcher = searcher
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


def _words(schema: tantivy.Schema, field: str, words: Sequence[str], *, prefix: bool) -> Query:
    if prefix and len(words) > 1:
        return Query.phrase_prefix_query(schema, field, list(words))
    if prefix:
        return Query.regex_query(schema, field, f"{words[0]}.*")  # a word holds no character special to it
    if len(words) > 1:
        return Query.phrase_query(schema, field, list(words))
    return Query.term_query(schema, field, words[0])


def _whole(schema: tantivy.Schema, clause: Clause) -> Query:
    """`site:example.org` is compared as a whole; `type:Event` also finds an IRI that ends in #Event or /Event."""
    exact = Query.term_query(schema, clause.field, clause.value)
    if clause.field not in ("types", "vocabularies") or not clause.value.isalnum():
        return exact
    return Query.boolean_query(
        [(Occur.Should, exact), (Occur.Should, Query.regex_query(schema, clause.field, f".*[#/]{clause.value}"))]
    )


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
