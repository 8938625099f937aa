"""Answers to a search from the commits of one index, or of one per shard: hits with snippets, facets, words."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence

import tantivy
from msgspec.structs import replace
from tantivy import Query

from quadloom.documents.words.analysis import query_tokens
from quadloom.documents.words.scripts import readable
from quadloom.stores.protocols.text import Highlights, Hit, SearchAnswer, SearchRequest
from quadloom.stores.tantivy.documents import SHOWN, excerpt_of, title_of
from quadloom.stores.tantivy.search import (
    FoundPage,
    Scatter,
    TantivySearch,
    one_after_another,
)
from quadloom.stores.tantivy.vocabulary import GatheredVocabulary, TantivyVocabulary
from quadloom.stores.text_queries import text_query
from quadloom.stores.text_queries.query_plan import IndexVocabulary, plan_search
from quadloom.stores.text_queries.snippets import highlights_of, snippet
from quadloom.stores.text_queries.synonyms import Synonyms

_FACETS = {"types": "types", "vocabularies": "vocabularies", "sites": "site", "languages": "language", "kinds": "kind"}
_FACET_SIZE = 20
_GATHERED_FACET_SIZE = 100  # asked of each of several indexes: the first 20 of all are among these, but for rare cases
_MAX_NAMED = 100_000  # URLs kept, some 15 MB
_MAX_ANSWERS = 256  # kept, some 3 MB
_MOST_COPIES = 200  # of all hits of an answer
_SHORT = 50  # hits of an answer that is kept
_MAX_PAGE_BYTES = 8 << 20  # of stored pages that are kept
_PAGE_BYTES = 600  # of one, besides its text


class CommittedIndex:
    """A searcher of one commit, with caches of its documents, of their URLs and of its last answers. Any thread may use
    it.

    `ql:matches` needs the URLs of a thousand hits and nothing else. Each costs 14 µs, because the whole document is
    read; common words share most of their hits, so the second question finds them here. A search reads forty documents,
    half of its cost. An address belongs to one searcher: the next commit begins with empty caches.
    """

    def __init__(self, index: tantivy.Index, mark: tuple[int, ...], weights: dict[str, float]) -> None:
        self.schema = index.schema
        self.searcher = index.searcher()
        self.weights = weights
        self.vocabulary = TantivyVocabulary(self.searcher, tuple(weights))
        # An index of an older version has no such field, and no copies.
        shown = self.searcher.doc_freq("copy_of", SHOWN) if "rest" in weights else self.searcher.num_docs
        self.has_copies = shown < self.searcher.num_docs
        self.mark = mark  # taken before the searcher, so a commit in between is noticed at the next question
        self._urls: dict[tuple[int, int], str] = {}
        self._pages: dict[tuple[int, int], Hit] = {}
        self._page_bytes = 0
        self._answers: dict[tuple[SearchRequest, Synonyms], SearchAnswer] = {}

    def known_answer(self, request: SearchRequest, synonyms: Synonyms) -> SearchAnswer | None:
        """What the same question was answered before: people ask the same words, and a page and its data ask twice."""
        return self._answers.get((request, synonyms))

    def remember(self, request: SearchRequest, synonyms: Synonyms, found: SearchAnswer) -> None:
        if request.limit <= _SHORT and not request.explain:
            if len(self._answers) >= _MAX_ANSWERS:
                self._answers = {}
            self._answers[request, synonyms] = found

    def hit(self, score: float, address: tantivy.DocAddress) -> Hit:
        key = (address.segment_ord, address.doc)
        url = self._urls.get(key)
        if url is None:
            url = self.searcher.doc(address).get_first("id") or ""
            if len(self._urls) < _MAX_NAMED:
                self._urls[key] = url
        return Hit(id=url, score=float(score))

    def page(self, address: tantivy.DocAddress) -> Hit:
        """What is stored of a page: a hit with its whole excerpt, without score and snippet."""
        key = (address.segment_ord, address.doc)
        page = self._pages.get(key)
        if page is None:
            page = _stored_page(self.searcher.doc(address))
            if self._page_bytes < _MAX_PAGE_BYTES:  # threads that count at once may pass it by a page each
                self._page_bytes += _PAGE_BYTES + 2 * len(page.excerpt)
                self._pages[key] = page
        return page


def answer(
    commits: Sequence[CommittedIndex],
    request: SearchRequest,
    synonyms: Synonyms,
    scatter: Scatter = one_after_another,
) -> SearchAnswer:
    """What these indexes have together. A document is in one of them only."""
    started = time.perf_counter()
    parsed = text_query.parse(request.text)
    search = TantivySearch(commits, parsed, request, scatter)
    plan = plan_search(parsed, vocabulary_of(commits), search.ask, synonyms=synonyms, exact=request.exact)
    marked = highlights_of(plan.last)
    found = search.page(plan) if request.limit > 0 else []
    if request.snippets:
        found = search.with_lacking_words(plan.last, found)
        hits = tuple(_hit(page, commits[page.place], marked, request) for page in found)
        hits = tuple(_with_copies(commits, hits))
    else:
        hits = tuple(commits[page.place].hit(page.score, page.address) for page in found)
    return SearchAnswer(
        hits=hits,
        total=plan.counted.count,
        facets=_facets(commits, plan.counted.queries) if request.facets else {},
        seconds=time.perf_counter() - started,
        corrections=plan.corrections,
        missing=plan.missing,
        most_words=plan.last.partial and any(page.tier == 0 for page in found),
        offers=plan.offers,
        newest=parsed.newest,
        highlights=marked,
    )


def vocabulary_of(commits: Sequence[CommittedIndex]) -> IndexVocabulary:
    if len(commits) == 1:
        return commits[0].vocabulary
    return GatheredVocabulary([committed.vocabulary for committed in commits])


def words_of(vocabulary: IndexVocabulary, prefix: str, limit: int) -> list[tuple[str, int]]:
    """Words that begin so, as people write them."""
    tokens = query_tokens(prefix)
    found = vocabulary.starting_with(tokens[-1] if tokens else "", limit)
    return [(readable(word), count) for word, count in found]


def _stored_page(document: tantivy.Document) -> Hit:
    return Hit(
        id=document.get_first("id") or "",
        score=0.0,
        title=title_of(document),
        types=tuple(document.get_all("types")),
        site=document.get_first("site") or "",
        language=document.get_first("language") or "",
        kind=document.get_first("kind") or "",
        fetched_at=document.get_first("fetched_at") or 0.0,
        excerpt=excerpt_of(document),
    )


def _hit(found: FoundPage, committed: CommittedIndex, marked: Highlights, request: SearchRequest) -> Hit:
    page = committed.page(found.address)
    return replace(
        page,
        score=found.score,
        snippet="" if request.excerpts else snippet(page.excerpt, marked),
        excerpt=page.excerpt if request.excerpts else "",
        explanation=found.explanation,
        tier=found.tier,
        lacks=found.lacks,
    )


def _with_copies(commits: Sequence[CommittedIndex], hits: Sequence[Hit]) -> Iterator[Hit]:
    """Hits with the addresses of their copies."""
    copies: dict[str, list[str]] = {}
    for committed in commits:
        if committed.has_copies:
            wanted = Query.term_set_query(committed.schema, "copy_of", [hit.id for hit in hits])
            for _, address in committed.searcher.search(wanted, _MOST_COPIES, count=False).hits:
                stored = committed.searcher.doc(address)
                copies.setdefault(stored.get_first("copy_of") or "", []).append(stored.get_first("id") or "")
    for hit in hits:
        yield replace(hit, also_at=tuple(sorted(copies[hit.id]))) if hit.id in copies else hit


def _facets(commits: Sequence[CommittedIndex], queries: Sequence[Query]) -> dict[str, list[tuple[str, int]]]:
    size = _FACET_SIZE if len(commits) == 1 else _GATHERED_FACET_SIZE
    wanted = {name: {"terms": {"field": field, "size": size}} for name, field in _FACETS.items()}
    wanted["years"] = {"terms": {"field": "year", "size": size}}
    if len(commits) == 1:  # the engine has put them in order, the most frequent first
        alone = commits[0].searcher.aggregate(queries[0], wanted)
        return {name: [(_key(one["key"]), int(one["doc_count"])) for one in alone[name]["buckets"]] for name in wanted}
    counts: dict[str, Counter[str]] = {name: Counter() for name in wanted}
    for committed, query in zip(commits, queries, strict=True):
        found = committed.searcher.aggregate(query, wanted)
        for name, counter in counts.items():
            for bucket in found[name]["buckets"]:
                counter[_key(bucket["key"])] += int(bucket["doc_count"])
    return {name: counter.most_common(_FACET_SIZE) for name, counter in counts.items()}


def _key(value: str | float) -> str:
    return value if isinstance(value, str) else str(int(value))
