"""The text index on tantivy: words to pages, with facets and snippets.

A document's key is its page's URL; putting it again deletes the old one in the same commit. Words are folded (lower
case, no accents) for documents and questions alike. Title counts three times, words of the data one and a half times.
The body itself is not stored: an excerpt of `EXCERPT` characters is, which shows the reason for nearly every hit at a
twentieth of the disk; a match further down shows the beginning of the page.

Committing costs a fixed price (segments, fsync), 230 times that of adding a document: the caller commits in batches.
A killed process leaves the last commit; the lock goes with the process.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import tantivy
from tantivy import Query

from quadloom.analysis.scripts import readable
from quadloom.analysis.words import query_tokens
from quadloom.errors import DiskFull, StoreError, WarehouseLocked
from quadloom.stores import text_query
from quadloom.stores.protocols.text import Highlights, Hit, SearchAnswer, SearchRequest, TextDocument
from quadloom.stores.query_plan import plan_search
from quadloom.stores.snippets import highlights_of, snippet
from quadloom.stores.synonyms import NO_SYNONYMS, Synonyms
from quadloom.stores.text.search import FoundPage, TantivySearch, TantivyVocabulary

EXCERPT = 3000
_HEAP = 64 << 20
_BOOSTS = {"title": 3.0, "literals": 1.5, "body": 1.0, "stems": 1.0, "endings": 1.0}
_RAW = ("types", "vocabularies", "site", "host", "language", "kind")
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
                path.mkdir(parents=True, exist_ok=True)
            self._index = (
                tantivy.Index.open(str(path)) if read_only else tantivy.Index(_schema(), path=str(path), reuse=True)
            )
            self._analyzer = _analyzer()
            self._index.register_tokenizer("words", self._analyzer)
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
                writer.add_document(_document(document))

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
        parsed = text_query.parse(request.text)
        with _translated(self._path):
            committed = self._current()
            search = TantivySearch(self._index.schema, committed.searcher, _BOOSTS, parsed, request)
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
            most_words=not plan.last.all_words,
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
            committed = self._committed = _Committed(self._index.searcher(), mark)
        return committed

    def ids(self) -> Iterator[str]:
        with _translated(self._path):
            searcher = self._searcher()
            found = searcher.terms_with_prefix("id", "", Query.all_query())
        for id, _ in found:
            yield id

    def __len__(self) -> int:
        return self._searcher().num_docs

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


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", stored=True, tokenizer_name="words")
    builder.add_text_field("body", tokenizer_name="words")
    builder.add_text_field("literals", tokenizer_name="words")
    builder.add_text_field("title_shown", stored=True, tokenizer_name="raw")
    builder.add_text_field("stems", tokenizer_name="words", index_option="basic")
    builder.add_text_field("endings", tokenizer_name="words", index_option="basic")
    for field in _RAW:
        builder.add_text_field(field, stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_float_field("fetched_at", stored=True, indexed=True, fast=True)
    builder.add_integer_field("year", fast=True)
    builder.add_bytes_field("excerpt", stored=True)  # bytes, since a text field cannot be stored without being indexed
    return builder.build()


def _analyzer() -> tantivy.TextAnalyzer:
    # The simple tokenizer, since one by regular expression costs three times as much CPU a page (.71 for .26 ms).
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (tantivy.Filter.remove_long(64), tantivy.Filter.lowercase(), tantivy.Filter.ascii_fold()):
        words = words.filter(step)
    return words.build()


def _document(document: TextDocument) -> tantivy.Document:
    made = tantivy.Document()
    made.add_text("id", document.id)
    from quadloom.analysis.words import analyse_fields

    f = {"title": document.title, "body": document.body, "literals": document.literals}
    an = analyse_fields(f, document.language)
    made.add_text("title_shown", document.title)
    for n, v in f.items():
        made.add_text(n, an.rewritten.get(n, v))
    made.add_text("stems", an.stems)
    made.add_text("endings", an.endings)
    for field in _RAW:
        value: str | tuple[str, ...] = getattr(document, field)
        for text in (value,) if isinstance(value, str) else value:
            if text:
                made.add_text(field, text)
    made.add_float("fetched_at", document.fetched_at)
    made.add_integer("year", datetime.fromtimestamp(document.fetched_at, UTC).year)
    made.add_bytes("excerpt", (document.body or document.literals)[:EXCERPT].encode("utf-8", "replace"))
    return made


def _hit(found: FoundPage, searcher: tantivy.Searcher, marked: Highlights, request: SearchRequest) -> Hit:
    document = searcher.doc(found.address)
    excerpt = bytes(document.get_first("excerpt") or b"").decode()
    return Hit(
        id=document.get_first("id") or "",
        score=found.score,
        title=document.get_first("title_shown") or "",
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

    def __init__(self, searcher: tantivy.Searcher, mark: tuple[int, ...]) -> None:
        self.searcher = searcher
        self.vocabulary = TantivyVocabulary(searcher, tuple(_BOOSTS))
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
