"""Plans of `quadloom.stores.text_queries.query_plan` as queries of tantivy, over one index or over one per shard.

A word's score is that of its best way and field, plus `_TIE` of the others: bm25 × weight of the field × weight of the
way. The words' scores are added; each step of a plan that a page satisfies beyond the last adds `TIER`, more than words
can give. The start page of a site whose name was asked for gets one too.

Each index counts for itself how rare a word is. With several, the weight of a word in an index is corrected by what all
of them have (`WordRarity`), so that scores can be compared. The average length of a field is still that of one index.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec
import tantivy
from tantivy import Occur, Query

from quadloom.documents.words.analysis import STEM_FIELDS
from quadloom.documents.words.scripts import readable
from quadloom.stores.protocols.text import ScorePart, SearchRequest
from quadloom.stores.text_queries.query_plan import FEW, Plan, SearchPlan, Way, WayField, Wish
from quadloom.stores.text_queries.text_query import Clause, ParsedText, site_names

MAX_HITS = 10_000  # offset and limit together: deeper pages are for machines, which use SPARQL
TIER = 200.0
_TIE = 0.2
_OPTIONAL = 0.3  # weight of function words
_LANGUAGES = 8
_START_PAGES = 4
_SITES = 50  # ports of one host
_WALKED = ("body", "title", "literals")  # fields whose words are listed; the others repeat the body, or nearly so
_MANY = 100  # words: if more are listed, those of body and title are enough
_NAME_WORDS = 4


class TantivyVocabulary:
    """See `quadloom.stores.text_queries.query_plan.IndexVocabulary`. For one searcher, so all answers can be cached."""

    def __init__(self, searcher: tantivy.Searcher, fields: Sequence[str]) -> None:
        self._searcher = searcher
        self.documents = searcher.num_docs
        self._stem_fields = frozenset(fields).intersection(STEM_FIELDS)
        self._fields = tuple(field for field in fields if field not in self._stem_fields)
        self._walked = tuple(field for field in _WALKED if field in self._fields)
        # A method would keep its object alive in the cache; closures of this object do not outlive it.
        self.frequency: Callable[..., int] = lru_cache(maxsize=4096)(self._frequency)
        self.starting_with: Callable[..., list[tuple[str, int]]] = lru_cache(maxsize=256)(self._starting_with)
        self.spoken: Callable[[], list[tuple[str, int]]] = lru_cache(maxsize=1)(self._spoken)

    def _frequency(self, token: str, field: WayField = "words") -> int:
        fields = self._fields if field == "words" else self._stem_fields.intersection((field,))
        return max((self._searcher.doc_freq(name, token) for name in fields), default=0)

    def _starting_with(self, prefix: str, limit: int, field: WayField = "words") -> list[tuple[str, int]]:
        found: dict[str, int] = {}
        walked = self._walked[:2] if limit > _MANY else self._walked
        for name in walked if field == "words" else self._stem_fields.intersection((field,)):
            for word, count in self._searcher.terms_with_prefix(name, prefix, None, limit):
                found[word] = max(count, found.get(word, 0))
        return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def languages(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.spoken())

    def _spoken(self) -> list[tuple[str, int]]:
        return list(self._searcher.terms_with_prefix("language", "", None, _LANGUAGES))


class GatheredVocabulary:
    """The words of several indexes as those of one. A document is in one of them only, so numbers are added."""

    def __init__(self, vocabularies: Sequence[TantivyVocabulary]) -> None:
        self._vocabularies = vocabularies
        self.documents = sum(vocabulary.documents for vocabulary in vocabularies)

    def frequency(self, token: str, field: WayField = "words") -> int:
        return sum(vocabulary.frequency(token, field) for vocabulary in self._vocabularies)

    def starting_with(self, prefix: str, limit: int, field: WayField = "words") -> list[tuple[str, int]]:
        return _most(limit, (vocabulary.starting_with(prefix, limit, field) for vocabulary in self._vocabularies))

    def languages(self) -> tuple[str, ...]:
        return tuple(name for name, _ in _most(_LANGUAGES, (one.spoken() for one in self._vocabularies)))


def _most(limit: int, lists: Iterable[list[tuple[str, int]]]) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for some in lists:
        for word, count in some:
            counts[word] += count
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]


class SearchedIndex(Protocol):
    """One commit of one index. `weights`: of the fields of words."""

    schema: tantivy.Schema
    searcher: tantivy.Searcher
    vocabulary: TantivyVocabulary
    weights: dict[str, float]


class WordRarity:
    """The factor that makes a word of one index as rare as it is in all of them together (inverse document frequency
    of BM25, as tantivy computes it)."""

    def __init__(self, searchers: Sequence[tantivy.Searcher]) -> None:
        self._searchers = searchers
        self._documents = sum(searcher.num_docs for searcher in searchers)
        self._found: dict[tuple[str, str], int] = {}

    def factor(self, searcher: tantivy.Searcher, field: str, tokens: Sequence[str]) -> float:
        if len(self._searchers) == 1:
            return 1.0
        here = sum(_idf(searcher.doc_freq(field, token), searcher.num_docs) for token in tokens)
        everywhere = sum(_idf(self._frequency(field, token), self._documents) for token in tokens)
        return everywhere / here if here else 1.0

    def _frequency(self, field: str, token: str) -> int:
        found = self._found.get((field, token))
        if found is None:
            found = sum(searcher.doc_freq(field, token) for searcher in self._searchers)
            self._found[field, token] = found
        return found


def _idf(found: int, documents: int) -> float:
    return math.log(1.0 + (max(0, documents - found) + 0.5) / (found + 0.5))


class QueryBuilder:
    """Queries for one index."""

    def __init__(self, index: SearchedIndex, rarity: WordRarity) -> None:
        self._schema = index.schema
        self._searcher = index.searcher
        self._vocabulary = index.vocabulary
        self._weights = index.weights
        self._rarity = rarity
        self._wishes: dict[int, tuple[Wish, Query]] = {}  # by identity: plans share most of their wishes

    def query(self, plan: Plan, filters: Sequence[tuple[Occur, Query]]) -> Query:
        """Pages of one step of a plan."""
        parts = [*filters]
        if plan.wishes:
            parts.append((Occur.Must, self._words(plan)))
        else:
            parts += self._unwanted(plan)
        if not any(occur is Occur.Must for occur, _ in parts):
            parts.append((Occur.Must, Query.all_query()))  # "-not" alone excludes from everything
        return Query.boolean_query(parts) if len(parts) > 1 else parts[0][1]

    def start_pages(self, parsed: ParsedText, filters: Sequence[tuple[Occur, Query]]) -> Query | None:
        """Start pages of hosts that are named like the question: `hexo` → https://hexo.io/."""
        starts = self._start_pages(parsed)
        if not starts:
            return None
        return Query.boolean_query([(Occur.Must, Query.term_set_query(self._schema, "id", list(starts))), *filters])

    def _words(self, plan: Plan) -> Query:
        wishes = [self.wish(wish) for wish in plan.wishes]
        parts: list[tuple[Occur, Query]]
        if plan.all_words:
            parts = [(Occur.Must, query) for query in wishes]
        else:
            some = Query.boolean_query(
                [(Occur.Should, query) for query in wishes], minimum_number_should_match=plan.least
            )
            parts = [(Occur.Must, some)]
        parts += ((Occur.Should, Query.boost_query(self.wish(wish), _OPTIONAL)) for wish in plan.optional)
        return Query.boolean_query([*parts, *self._unwanted(plan)])

    def _unwanted(self, plan: Plan) -> list[tuple[Occur, Query]]:
        return [(Occur.MustNot, self.wish(wish)) for wish in plan.unwanted]

    def wish(self, wish: Wish) -> Query:
        cached = self._wishes.get(id(wish))
        if cached is None:
            ways = [query for way in wish.ways for _, query in self._ways(way, wish.field)]
            query = Query.disjunction_max_query(ways, _TIE) if ways else Query.empty_query()
            cached = self._wishes[id(wish)] = (wish, query)
        return cached[1]

    def _ways(self, way: Way, field: str) -> list[tuple[str, Query]]:
        """By field, without fields in which nothing matches."""
        # Of the words that one word may become, an index of one shard has few; its vocabulary remembers which.
        if not (way.prefix or all(self._vocabulary.frequency(token, way.field) for token in way.tokens)):
            return []
        if way.field in STEM_FIELDS:
            names: Iterable[str] = (way.field,)
        else:
            names = (field,) if field else (name for name in self._weights if name not in STEM_FIELDS)
        fields = {name: self._weights[name] for name in names if name in self._weights}
        found = []
        for name, weight in fields.items():
            if way.prefix:  # all matches of a beginning score the same
                found.append((name, Query.boost_query(self._tokens(name, way), weight * way.weight)))
            elif all(self._searcher.doc_freq(name, token) for token in way.tokens):
                weight *= way.weight * self._rarity.factor(self._searcher, name, way.tokens)
                found.append((name, Query.boost_query(self._tokens(name, way), weight)))
        return found

    def _tokens(self, field: str, way: Way) -> Query:
        tokens = list(way.tokens)
        if way.prefix and len(tokens) > 1:
            return Query.phrase_prefix_query(self._schema, field, [*tokens])
        if way.prefix:
            return Query.regex_query(self._schema, field, f"{tokens[0]}.*")  # a token holds no character special to it
        if len(tokens) > 1:
            return Query.phrase_query(self._schema, field, [*tokens])
        return Query.term_query(self._schema, field, tokens[0])

    def filters(self, parsed: ParsedText, request: SearchRequest) -> list[tuple[Occur, Query]]:
        parts = [
            (Occur.MustNot if clause.negated else Occur.Must, Query.const_score_query(self._filter(clause), 0.0))
            for clause in parsed.filters
        ]
        chosen = {"types": request.types, "vocabularies": request.vocabularies, "kind": request.kinds}
        one_of = [Query.term_set_query(self._schema, field, list(values)) for field, values in chosen.items() if values]
        if request.languages:
            one_of.append(Query.term_set_query(self._schema, "language", list(request.languages)))
        if request.sites:
            one_of.append(_any([self._site(site) for site in request.sites]))
        since, until = max(request.since, parsed.since), min(filter(None, (request.until, parsed.until)), default=0.0)
        if since or until:
            kind = tantivy.FieldType.Float
            one_of.append(Query.range_query(self._schema, "fetched_at", kind, since or None, until or None))
        return parts + [(Occur.Must, Query.const_score_query(query, 0.0)) for query in one_of]

    def _filter(self, clause: Clause) -> Query:
        """`type:event` finds an IRI that ends in #Event or /event, in any case; other values are compared whole."""
        if clause.field in ("site", "host"):
            return self._site(clause.value)
        if clause.field == "language":
            return Query.term_query(self._schema, "language", clause.value.lower().partition("-")[0])
        if clause.field in ("types", "vocabularies") and clause.value.isalnum():
            wanted = clause.value.casefold()
            known = self._searcher.terms_with_prefix(clause.field, "")
            iris = [iri for iri, _ in known if iri.rpartition("#")[2].rpartition("/")[2].casefold() == wanted]
            return Query.term_set_query(self._schema, clause.field, [clause.value, *iris])
        return Query.term_query(self._schema, clause.field, clause.value)

    def _site(self, value: str) -> Query:
        """A registered domain or a host, with or without its port."""
        found = []
        for field in ("site", "host"):
            names: dict[str, None] = {}
            for name in site_names(value):
                names[name] = None
                if ":" not in name:
                    ports = self._searcher.terms_with_prefix(field, f"{name}:", None, _SITES)
                    names |= dict.fromkeys(term for term, _ in ports)
            found.append(Query.term_set_query(self._schema, field, list(names)))
        return _any(found)

    def _start_pages(self, parsed: ParsedText) -> tuple[str, ...]:
        words = [clause.value.lower() for clause in parsed.words if not (clause.negated or clause.field)]
        if not 0 < len(words) <= _NAME_WORDS or len(words) != len(parsed.clauses) or not all(map(str.isalnum, words)):
            return ()
        found: dict[str, None] = {}
        for name in dict.fromkeys(("".join(words), "-".join(words))):
            for prefix in (f"{name}.", f"www.{name}."):
                hosts = self._searcher.terms_with_prefix("host", prefix, None, _START_PAGES)
                found |= {f"{scheme}://{host}/": None for host, _ in hosts for scheme in ("https", "http")}
        return tuple(found)

    def explain(self, plan: Plan, address: tantivy.DocAddress) -> tuple[ScorePart, ...]:
        """What a hit's score is made of: each match of a word. The best match of a word counts whole and `_TIE` of the
        others."""
        parts: list[ScorePart] = []
        for wish in (*plan.wishes, *plan.optional):
            share = _OPTIONAL if wish in plan.optional else 1.0
            found = [
                (value * share, f"{wish.text}: {way.kind} {' '.join(map(readable, way.tokens))} in {field}")
                for way in wish.ways
                for field, query in self._ways(way, wish.field)
                if (value := self._value(query, address))
            ]
            found.sort(reverse=True)
            parts += (ScorePart(what, value * (_TIE if place else 1.0)) for place, (value, what) in enumerate(found))
        return tuple(parts)

    def _value(self, query: Query, address: tantivy.DocAddress) -> float:
        try:
            return float(json.loads(query.explain(self._searcher, address).to_json())["value"])
        except ValueError:  # the page does not match
            return 0.0


class FoundPage(NamedTuple):
    """`place`: of its index among those that were searched."""

    place: int
    address: tantivy.DocAddress
    score: float
    tier: int = 0
    explanation: tuple[ScorePart, ...] = ()


class TantivyHits(msgspec.Struct, frozen=True):
    """See `quadloom.stores.text_queries.query_plan.StepHits`."""

    count: int
    pages: list[FoundPage]


class Scatter(Protocol):
    """Calls a function for each number below `count`, in any order or at the same time."""

    def __call__(self, ask: Callable[[int], TantivyHits], count: int) -> Iterable[TantivyHits]: ...


def one_after_another(ask: Callable[[int], TantivyHits], count: int) -> Iterable[TantivyHits]:
    return map(ask, range(count))


class TantivySearch:
    """One search: asks all indexes for the steps of its plan, and puts their pages in order."""

    def __init__(
        self,
        indexes: Sequence[SearchedIndex],
        parsed: ParsedText,
        request: SearchRequest,
        scatter: Scatter = one_after_another,
    ) -> None:
        rarity = WordRarity([index.searcher for index in indexes])
        self._searchers = [index.searcher for index in indexes]
        self._builders = [QueryBuilder(index, rarity) for index in indexes]
        self._parsed = parsed
        self._request = request
        self._scatter = scatter
        self._filters = [build.filters(parsed, request) for build in self._builders]
        self._offset = max(0, min(request.offset, MAX_HITS))
        self._limit = max(1, min(request.limit, MAX_HITS - self._offset + 1))
        self.last_queries = [Query.empty_query() for _ in indexes]

    def ask(self, plan: Plan) -> TantivyHits:
        # Pages of earlier steps come first and occur here again, so some more are needed to fill the last page.
        number = self._offset + self._limit + 3 * FEW if plan.wishes else self._offset + self._limit
        order = None if plan.wishes else "fetched_at"

        def ask_one(place: int) -> TantivyHits:
            query = self.last_queries[place] = self._builders[place].query(plan, self._filters[place])
            result = self._searchers[place].search(query, number, count=True, order_by_field=order)
            count: int = result.count  # type: ignore[attr-defined]  # missing in the package's stubs
            return TantivyHits(count, [FoundPage(place, address, float(score)) for score, address in result.hits])

        found = list(self._scatter(ask_one, len(self._searchers)))
        if len(found) == 1:
            return found[0]
        best = heapq.nlargest(number, (page for hits in found for page in hits.pages), key=lambda page: page.score)
        return TantivyHits(sum(hits.count for hits in found), best)

    def page(self, plan: SearchPlan[TantivyHits]) -> list[FoundPage]:
        """The pages that the request asks for."""
        seen: dict[tuple[int, int, int], FoundPage] = {}
        for page, tiers, step in self._ranked(plan):
            key = (page.place, page.address.segment_ord, page.address.doc)
            if key not in seen:
                seen[key] = self._scored(page, tiers, step)
        return list(seen.values())[self._offset : self._offset + self._limit]

    def _ranked(self, plan: SearchPlan[TantivyHits]) -> Iterator[tuple[FoundPage, int, Plan]]:
        """Each page with the number of `TIER`s that it gets."""
        if not self._request.exact:
            for page in self._start_pages():
                yield page, len(plan.steps), plan.last
        for place, (step, found) in enumerate(plan.steps):
            for page in found.pages:
                yield page, len(plan.steps) - 1 - place, step

    def _start_pages(self) -> Iterator[FoundPage]:
        for place, build in enumerate(self._builders):
            starts = build.start_pages(self._parsed, self._filters[place])
            if starts is not None:
                for _, address in self._searchers[place].search(starts, _START_PAGES).hits:
                    yield FoundPage(place, address, 0.0)

    def _scored(self, page: FoundPage, tiers: int, step: Plan) -> FoundPage:
        score = page.score + tiers * TIER
        if not self._request.explain:
            return page._replace(score=score, tier=tiers)
        parts = self._builders[page.place].explain(step, page.address)
        if tiers:
            what = "most words" if step.partial else "all words"
            parts += (ScorePart(f"better than {tiers} more generous steps: {what}", tiers * TIER),)
        return page._replace(score=score, tier=tiers, explanation=parts)


def _any(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])
