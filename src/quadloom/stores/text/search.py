"""Plans of `quadloom.stores.query_plan` as queries of tantivy.

A word's score is that of its best way and field, plus `_TIE` of the others: bm25 × weight of the field × weight of the
way. The words' scores are added; each step of the plan that a page satisfies adds `TIER`, more than words can give. The
start page of a site whose name was asked for gets one too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache

import tantivy
from tantivy import Occur, Query

from quadloom.analysis.words import STEM_FIELDS
from quadloom.stores.protocols.text import ScorePart, SearchRequest
from quadloom.stores.query_plan import Plan, SearchPlan, Way, WayField, Wish
from quadloom.stores.text_query import Clause, ParsedText, site_names

TIER = 200.0
_TIE = 0.2
_OPTIONAL = 0.3  # weight of function words
_LANGUAGES = 8
_START_PAGES = 4
_SITES = 50  # ports of one host
_WALKED = ("body", "title", "literals")  # fields whose words are listed; the others repeat the body, or nearly so
_NAME_WORDS = 4


class TantivyVocabulary:
    """See `quadloom.stores.query_plan.Vocabulary`. For one searcher, so all answers can be cached."""

    def __init__(self, searcher: tantivy.Searcher, fields: Sequence[str]) -> None:
        self._searcher = searcher
        self._stem_fields = frozenset(fields).intersection(STEM_FIELDS)
        self._fields = tuple(field for field in fields if field not in self._stem_fields)
        self._walked = tuple(field for field in _WALKED if field in self._fields)
        # A method would keep its object alive in the cache; closures of this object do not outlive it.
        self.frequency: Callable[..., int] = lru_cache(maxsize=4096)(self._frequency)
        self.starting_with: Callable[[str, int], list[tuple[str, int]]] = lru_cache(maxsize=256)(self._starting_with)
        self.languages: Callable[[], tuple[str, ...]] = lru_cache(maxsize=1)(self._languages)

    def _frequency(self, token: str, field: WayField = "words") -> int:
        fields = self._fields if field == "words" else self._stem_fields.intersection((field,))
        return max((self._searcher.doc_freq(name, token) for name in fields), default=0)

    def _starting_with(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        found: dict[str, int] = {}
        for field in self._walked:
            for word, count in self._searcher.terms_with_prefix(field, prefix, None, limit):
                found[word] = max(count, found.get(word, 0))
        return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def _languages(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._searcher.terms_with_prefix("language", "", None, _LANGUAGES))


class QueryBuilder:
    """Queries for one searcher. `weights`: of the fields of words."""

    def __init__(self, schema: tantivy.Schema, searcher: tantivy.Searcher, weights: dict[str, float]) -> None:
        self._schema = schema
        self._searcher = searcher
        self._weights = weights

    def whole(self, plan: SearchPlan, parsed: ParsedText, request: SearchRequest) -> Query:
        """All hits of a plan, with the score that the module describes."""
        filters = self.filters(parsed, request)
        if not plan.base.wishes:
            return self.matching(plan.base, filters)
        parts: list[tuple[Occur, Query]] = [(Occur.Should, self._words(plan.base))]
        parts += (
            (Occur.Should, Query.const_score_query(self._words(better, optional=False), TIER)) for better in plan.better
        )
        starts = () if request.exact else self._start_pages(parsed)
        if starts:
            pages = Query.term_set_query(self._schema, "id", list(starts))
            parts.append((Occur.Should, Query.const_score_query(pages, TIER)))
        found = Query.boolean_query(parts, minimum_number_should_match=1)
        return Query.boolean_query([(Occur.Must, found), *filters]) if filters else found

    def matching(self, plan: Plan, filters: Sequence[tuple[Occur, Query]]) -> Query:
        """Pages of one plan, whose number matters."""
        parts = [(Occur.Must, self._words(plan, optional=False))] if plan.wishes else []
        parts += self._unwanted(plan) if not plan.wishes else []
        parts += filters
        if not any(occur is Occur.Must for occur, _ in parts):
            parts.append((Occur.Must, Query.all_query()))  # "-not" alone excludes from everything
        return Query.boolean_query(parts)

    def _words(self, plan: Plan, *, optional: bool = True) -> Query:
        wishes = [self.wish(wish) for wish in plan.wishes]
        parts: list[tuple[Occur, Query]]
        if plan.all_words:
            parts = [(Occur.Must, query) for query in wishes]
        else:
            some = Query.boolean_query(
                [(Occur.Should, query) for query in wishes], minimum_number_should_match=plan.least
            )
            parts = [(Occur.Must, some)]
        if optional:
            parts += ((Occur.Should, Query.boost_query(self.wish(wish), _OPTIONAL)) for wish in plan.optional)
        return Query.boolean_query([*parts, *self._unwanted(plan)])

    def _unwanted(self, plan: Plan) -> list[tuple[Occur, Query]]:
        return [(Occur.MustNot, self.wish(wish)) for wish in plan.unwanted]

    def wish(self, wish: Wish) -> Query:
        ways = [query for way in wish.ways for _, query in self._ways(way, wish.field)]
        return Query.disjunction_max_query(ways, _TIE) if ways else Query.empty_query()

    def _ways(self, way: Way, field: str) -> list[tuple[str, Query]]:
        """By field, without fields in which nothing matches."""
        if way.field in STEM_FIELDS:
            fields = {way.field: self._weights[way.field]} if way.field in self._weights else {}
        else:
            names = (field,) if field else (name for name in self._weights if name not in STEM_FIELDS)
            fields = {name: self._weights[name] for name in names}
        found = []
        for name, weight in fields.items():
            if way.prefix or all(self._searcher.doc_freq(name, token) for token in way.tokens):
                found.append((name, Query.boost_query(self._tokens(name, way), weight * way.weight)))
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
        """Start pages of hosts that are named like the question: `hexo` → https://hexo.io/."""
        words = [clause.value.lower() for clause in parsed.words if not (clause.negated or clause.field)]
        if not 0 < len(words) <= _NAME_WORDS or len(words) != len(parsed.clauses) or not all(map(str.isalnum, words)):
            return ()
        found: dict[str, None] = {}
        for name in dict.fromkeys(("".join(words), "-".join(words))):
            for prefix in (f"{name}.", f"www.{name}."):
                hosts = self._searcher.terms_with_prefix("host", prefix, None, _START_PAGES)
                found |= {f"{scheme}://{host}/": None for host, _ in hosts for scheme in ("https", "http")}
        return tuple(found)

    def explain(self, plan: SearchPlan, parsed: ParsedText, address: tantivy.DocAddress) -> tuple[ScorePart, ...]:
        """What a hit's score is made of: each match of a word, and the steps of the plan that the page satisfies. The
        best match of a word counts whole and `_TIE` of the others."""
        parts: list[ScorePart] = []
        for wish in (*plan.base.wishes, *plan.base.optional):
            share = _OPTIONAL if wish in plan.base.optional else 1.0
            found = [
                (value * share, f"{wish.text}: {way.kind} {' '.join(way.tokens)} in {field}")
                for way in wish.ways
                for field, query in self._ways(way, wish.field)
                if (value := self._value(query, address))
            ]
            found.sort(reverse=True)
            parts += (ScorePart(what, value * (_TIE if place else 1.0)) for place, (value, what) in enumerate(found))
        for number, better in enumerate(plan.better):
            if self._value(self._words(better, optional=False), address):
                name = "all words" if better.all_words else "most words"
                parts.append(ScorePart(f"step {number + 1}: {name}", TIER))
        starts = self._start_pages(parsed)
        if starts and self._value(Query.term_set_query(self._schema, "id", list(starts)), address):
            parts.append(ScorePart("start page of the site with this name", TIER))
        return tuple(parts)

    def _value(self, query: Query, address: tantivy.DocAddress) -> float:
        try:
            return float(json.loads(query.explain(self._searcher, address).to_json())["value"])
        except ValueError:  # the page does not match
            return 0.0


def _any(queries: Sequence[Query]) -> Query:
    return queries[0] if len(queries) == 1 else Query.boolean_query([(Occur.Should, query) for query in queries])
