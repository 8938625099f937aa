"""Plans of `quadloom.stores.text_queries.query_plan` as queries of tantivy, over one index or over one per shard.

A word's score is that of its best way and field, plus a share of the others: bm25 × weight of the field × weight of the
way. The words' scores are added, and those of neighbours in the question that are near each other in the text. Each
step of a plan that a page satisfies beyond the last adds `TIER`, more than words can give. The start page of a site
whose name was asked for gets one too.

Each index counts for itself how rare a word is. With several, the weight of a word in an index is corrected by what all
of them have (`WordRarity`), so that scores can be compared. The average length of a field is still that of one index.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec
import tantivy
from tantivy import Occur, Query

from quadloom.documents.words.analysis import STEM_FIELDS
from quadloom.documents.words.scripts import readable
from quadloom.stores.protocols.text import Hit, ScorePart, SearchRequest
from quadloom.stores.tantivy.documents import SHOWN
from quadloom.stores.tantivy.vocabulary import TantivyVocabulary, WordRarity
from quadloom.stores.text_queries.query_plan import FEW, Plan, SearchPlan, Way, Wish
from quadloom.stores.text_queries.text_query import Clause, ParsedText, site_names

MAX_HITS = 10_000  # offset and limit together: deeper pages are for machines, which use SPARQL
TIER = 200.0
_TIE = 0.2
_OPTIONAL = 0.2  # weight of function words
_NEAR, _SLOP = 0.2, 2  # weight of words near each other, and how many other words may be between them
_MOST_NEAR = 5_000  # documents with the rarer of two such words: to compare places in more takes milliseconds
_MOST_LACKED = 12  # words of a question of which hits say what they lack
_QUESTION_WEIGHTS = {"title": 0.4, "headings": 0.2, "description": 0.6, "literals": 0.6}
_TITLE_WORDS = 5
_ANSWERS = ("title", "headings", "body")
_TEXT = ("body", "rest")  # where `text:word` looks
_FORMS_TIE, _FIELDS_TIE = 0.3, 0.3
_START_PAGES = 4
_SITES = 50  # ports of one host
_NAME_WORDS = 4


class SearchedIndex(Protocol):
    """One commit of one index. `weights`: of the fields of words. `has_copies`: not every page is shown."""

    schema: tantivy.Schema
    searcher: tantivy.Searcher
    vocabulary: TantivyVocabulary
    weights: dict[str, float]
    has_copies: bool

    def page(self, address: tantivy.DocAddress) -> Hit: ...


class QueryBuilder:
    """Queries for one index."""

    def __init__(self, index: SearchedIndex, rarity: WordRarity) -> None:
        self._index = index
        self._schema = index.schema
        self._searcher = index.searcher
        self._vocabulary = index.vocabulary
        self._weights = index.weights
        self._fields = tuple(name for name in index.weights if name not in STEM_FIELDS)
        self._rarity = rarity
        self._wishes: dict[tuple[int, bool], tuple[Wish, Query]] = {}  # by identity: plans share most of their wishes

    def query(self, plan: Plan, filters: Sequence[tuple[Occur, Query]]) -> Query:
        """Pages of one step of a plan."""
        parts = [*filters]
        if plan.wishes:
            parts.append((Occur.Must, self._words(plan)))
        else:
            parts += self._unwanted(plan)
        if not any(occur is Occur.Must for occur, _ in parts):
            parts.append((Occur.Must, self._every_page()))  # "-not" alone excludes from everything
        return Query.boolean_query(parts) if len(parts) > 1 else parts[0][1]

    def most_words(self, plan: Plan, filters: Sequence[tuple[Occur, Query]]) -> Query:
        """Pages with at least `plan.least` of the words, to count them."""
        parts = [(Occur.Must, Query.const_score_query(self._most(plan), 0.0)), *self._unwanted(plan), *filters]
        return Query.boolean_query(parts)

    def _most(self, plan: Plan) -> Query:
        required = [(Occur.Must, self.wish(wish, plan.size, partial=True)) for wish in plan.wishes if wish.required]
        words = [(Occur.Should, self.wish(wish, plan.size, partial=True)) for wish in plan.wishes if not wish.required]
        fewest = max(0, plan.least - len(required))
        return Query.boolean_query([*required, *words], minimum_number_should_match=fewest)

    def _every_page(self) -> Query:
        """All pages that are no copies of others."""
        if not self._index.has_copies:
            return Query.all_query()
        return Query.const_score_query(Query.term_query(self._schema, "copy_of", SHOWN, "basic"), 1.0)

    def start_pages(self, parsed: ParsedText, filters: Sequence[tuple[Occur, Query]]) -> Query | None:
        """Start pages of hosts that are named like the question: `hexo` → https://hexo.io/."""
        starts = self._start_pages(parsed)
        if not starts:
            return None
        chosen = Query.term_set_query(self._schema, "id", list(starts))
        return Query.boolean_query([(Occur.Must, chosen), (Occur.Must, self._every_page()), *filters])

    def _words(self, plan: Plan) -> Query:
        """All words, or any of them. What only adds to the score is given to pages that match."""
        words = [
            (
                Occur.Must if wish.required or not plan.partial else Occur.Should,
                self.wish(wish, plan.size, plan.partial),
            )
            for wish in plan.wishes
        ]
        extra = [Query.boost_query(self.wish(wish, plan.size, plan.partial), _OPTIONAL) for wish in plan.optional]
        extra += [query for pair in plan.neighbours if (query := self._near(pair)) is not None]
        if not extra:
            return Query.boolean_query([*words, *self._unwanted(plan)])
        matching = Query.boolean_query(words) if len(words) > 1 else words[0][1]
        return Query.boolean_query(
            [(Occur.Must, matching), *((Occur.Should, query) for query in extra), *self._unwanted(plan)]
        )

    def _near(self, pair: tuple[str, str]) -> Query | None:
        """These words near each other, in the text of the page."""
        counts = [self._vocabulary.fields_with(token).get("body", 0) for token in pair]
        if not 0 < min(counts) <= _MOST_NEAR:
            return None
        rarity = self._rarity.factor(self._vocabulary, "body", pair, any_field=False)
        return Query.boost_query(Query.phrase_query(self._schema, "body", [*pair], slop=_SLOP), _NEAR * rarity)

    def _unwanted(self, plan: Plan) -> list[tuple[Occur, Query]]:
        return [(Occur.MustNot, self.wish(wish, plan.size)) for wish in plan.unwanted]

    def wish(self, wish: Wish, size: int, partial: bool = False) -> Query:
        cached = self._wishes.get((id(wish), partial))
        if cached is None:
            ways: dict[str, list[Query]] = {}  # by field
            for way in wish.ways:
                for field, query in self._ways(way, wish.field, size, partial):
                    ways.setdefault(field if size > _TITLE_WORDS else "", []).append(query)
            fields = [_best_of(queries, _FORMS_TIE if size > _TITLE_WORDS else _TIE) for queries in ways.values()]
            query = _best_of(fields, _FIELDS_TIE) if fields else Query.empty_query()
            cached = self._wishes[id(wish), partial] = (wish, query)
        return cached[1]

    def _ways(self, way: Way, field: str, size: int, partial: bool = False) -> list[tuple[str, Query]]:
        """By field, without fields in which nothing matches."""
        if way.field in STEM_FIELDS:
            names: Iterable[str] = (way.field,)
        else:
            names = (_TEXT if field == "body" else (field,)) if field else self._fields
        if not way.prefix:
            known = [self._vocabulary.fields_with(token) for token in way.tokens]
            names = [name for name in names if all(name in fields for fields in known)]
            # Some words of a long question are looked for where they matter: the other fields would treble the cost.
            if partial and size > _TITLE_WORDS and not field and "body" in names:
                names = [name for name in names if name in _ANSWERS]
        found = []
        for name in names:
            weight = way.weight * _weight(name, self._weights.get(name, 0.0), size)
            if not way.prefix:  # all matches of a beginning score the same
                weight *= self._rarity.factor(self._vocabulary, name, way.tokens, any_field=size > _TITLE_WORDS)
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

    def lacking(self, plan: Plan, addresses: Sequence[tantivy.DocAddress]) -> list[tuple[str, ...]]:
        """For each of these pages: words of the question that it does not have."""
        ids = [self._index.page(address).id for address in addresses]
        some = Query.const_score_query(Query.term_set_query(self._schema, "id", ids), 0.0)
        with_word: dict[str, set[tuple[int, int]]] = {}
        for wish in plan.wishes:
            query = Query.boolean_query([(Occur.Must, some), (Occur.Must, self.wish(wish, plan.size))])
            found = self._searcher.search(query, len(ids), count=False).hits
            with_word.setdefault(wish.text, set()).update((one.segment_ord, one.doc) for _, one in found)
        return [
            tuple(text for text, found in with_word.items() if (one.segment_ord, one.doc) not in found)
            for one in addresses
        ]

    def explain(self, plan: Plan, address: tantivy.DocAddress) -> tuple[ScorePart, ...]:
        """What a hit's score is made of: each match of a word. The best match of a word counts whole and `_TIE` of the
        others."""
        parts: list[ScorePart] = []
        for wish in (*plan.wishes, *plan.optional):
            share = _OPTIONAL if wish in plan.optional else 1.0
            found = [
                (value * share, f"{wish.text}: {way.kind} {' '.join(map(readable, way.tokens))} in {field}")
                for way in wish.ways
                for field, query in self._ways(way, wish.field, plan.size, plan.partial)
                if (value := self._value(query, address))
            ]
            found.sort(reverse=True)
            tie = _FIELDS_TIE if plan.size > _TITLE_WORDS else _TIE
            parts += (ScorePart(what, value * (tie if place else 1.0)) for place, (value, what) in enumerate(found))
        for pair in plan.neighbours:
            near = self._near(pair)
            if near is not None and (value := self._value(near, address)):
                parts.append(ScorePart(f"{' '.join(map(readable, pair))} near each other in body", value))
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
    lacks: tuple[str, ...] = ()


class TantivyHits(msgspec.Struct, frozen=True):
    """See `quadloom.stores.text_queries.query_plan.StepHits`. `queries`: for the pages that count, by index."""

    count: int
    pages: list[FoundPage]
    queries: list[Query]


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
        rarity = WordRarity([index.vocabulary for index in indexes])
        self._searchers = [index.searcher for index in indexes]
        self._builders = [QueryBuilder(index, rarity) for index in indexes]
        self._parsed = parsed
        self._request = request
        self._scatter = scatter
        self._filters = [build.filters(parsed, request) for build in self._builders]
        self._offset = max(0, min(request.offset, MAX_HITS))
        self._limit = max(1, min(request.limit, MAX_HITS - self._offset + 1))

    def ask(self, plan: Plan) -> TantivyHits:
        # Pages of earlier steps come first and occur here again, so some more are needed to fill the last page.
        number = self._offset + self._limit + 3 * FEW if plan.wishes else self._offset + self._limit
        order = None if plan.wishes else "fetched_at"

        def ask_one(place: int) -> TantivyHits:
            query = self._builders[place].query(plan, self._filters[place])
            result = self._searchers[place].search(query, number, count=True, order_by_field=order)
            pages = [FoundPage(place, address, float(score)) for score, address in result.hits]
            return TantivyHits(_count(result), pages, [query])

        def count_one(place: int) -> TantivyHits:
            query = self._builders[place].most_words(plan, self._filters[place])
            return TantivyHits(_count(self._searchers[place].search(query, 1, count=True)), [], [query])

        places = len(self._searchers)
        found = list(self._scatter(ask_one, places))
        best = (page for hits in found for page in hits.pages)
        pages = list(best) if places == 1 else heapq.nlargest(number, best, key=lambda page: page.score)
        if plan.least > 1 and pages:
            most = list(self._scatter(count_one, places))
            found = most if any(hits.count for hits in most) else found
        return TantivyHits(
            sum(hits.count for hits in found), pages, [query for hits in found for query in hits.queries]
        )

    def page(self, plan: SearchPlan[TantivyHits]) -> list[FoundPage]:
        """The pages that the request asks for."""
        seen: dict[tuple[int, int, int], FoundPage] = {}
        for page, tiers, step in self._ranked(plan):
            key = (page.place, page.address.segment_ord, page.address.doc)
            if key not in seen:
                seen[key] = self._scored(page, tiers, step)
        return list(seen.values())[self._offset : self._offset + self._limit]

    def with_lacking_words(self, plan: Plan, pages: Sequence[FoundPage]) -> list[FoundPage]:
        """The same pages, with what they lack if a word of the question may be missing, and it has not too many."""
        found = list(pages)
        for place, build in enumerate(self._builders if plan.partial and plan.size <= _MOST_LACKED else ()):
            some = [at for at, page in enumerate(found) if page.place == place and not page.tier]
            lacking = build.lacking(plan, [found[at].address for at in some]) if some else []
            for at, words in zip(some, lacking, strict=True):
                found[at] = found[at]._replace(lacks=words)
        return found

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
            what = "some words" if step.partial else "all words"
            parts += (ScorePart(f"better than {tiers} more generous steps: {what}", tiers * TIER),)
        return page._replace(score=score, tier=tiers, explanation=parts)


def _weight(field: str, weight: float, size: int) -> float:
    """Of a field, for a question of so many words. Few words may be a title that is half remembered. Many words are a
    question, and pages that answer it have most of them in their text, whatever their title."""
    least = _QUESTION_WEIGHTS.get(field, weight)
    return least + (weight - least) * min(1.0, _TITLE_WORDS / max(1, size)) ** 2


def _count(result: tantivy.SearchResult) -> int:
    count: int = result.count  # type: ignore[attr-defined]  # missing in the package's stubs
    return count


def _best_of(queries: Sequence[Query], tie: float) -> Query:
    """The best score, plus this share of the others."""
    return queries[0] if len(queries) == 1 else Query.disjunction_max_query([*queries], tie)


def _any(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])
