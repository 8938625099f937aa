"""The text index as a dictionary: the reference of the contract suite and a test double.

Scans every document for every query. A word's score is the number of its matches, by weight of the field and the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from quadloom.documents.words.analysis import FIELDS, analyse_fields, query_tokens, tokens_of
from quadloom.model.text import TextDocument
from quadloom.stores.protocols.text import Highlights, Hit, SearchAnswer, SearchRequest
from quadloom.stores.text_queries import text_query
from quadloom.stores.text_queries.query_plan import Plan, SearchPlan, Way, WayField, Wish, plan_search
from quadloom.stores.text_queries.snippets import highlights_of, snippet
from quadloom.stores.text_queries.text_query import Clause, ParsedText, site_names

_TIER = 200.0


class MemoryText:
    is_outdated = False

    def __init__(self) -> None:
        self._pending: dict[str, TextDocument | None] = {}
        self._documents: dict[str, TextDocument] = {}

    def put(self, documents: Sequence[TextDocument]) -> None:
        self._pending.update((document.id, document) for document in documents)

    def remove(self, ids: Sequence[str]) -> None:
        self._pending.update((id, None) for id in ids)

    def commit(self) -> None:
        for id, document in self._pending.items():
            self._documents.pop(id, None)
            if document is not None:
                self._documents[id] = document
        self._pending.clear()

    def search(self, request: SearchRequest) -> SearchAnswer:
        parsed = text_query.parse(request.text)
        known = [document for document in self._documents.values() if _passes(document, request, parsed)]

        def ask(plan: Plan) -> MemoryHits:
            found = [(_score(document, plan), document) for document in known if _matches(document, plan)]
            found.sort(key=lambda pair: (-pair[0], -pair[1].fetched_at))
            most = [document for _, document in found if _matched(document, plan) >= plan.least]
            return MemoryHits(most or [document for _, document in found], found)

        vocabulary = MemoryVocabulary(self._documents.values())
        plan = plan_search(parsed, vocabulary, ask, exact=request.exact)
        marked = highlights_of(plan.last)
        found = _ranked(plan)[request.offset : request.offset + max(0, request.limit)]
        every = plan.counted.counted
        return SearchAnswer(
            hits=tuple(_hit(score, document, marked, request) for score, document in found),
            total=len(every),
            facets=_facets(every) if request.facets else {},
            corrections=plan.corrections,
            missing=plan.missing,
            offers=plan.offers,
            most_words=plan.last.partial and any(score < _TIER for score, _ in found),
            newest=parsed.newest,
            highlights=marked,
        )

    def words(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        tokens = query_tokens(prefix)
        return MemoryVocabulary(self._documents.values()).starting_with(tokens[-1] if tokens else "", limit)

    def ids(self) -> Iterator[str]:
        yield from list(self._documents)

    def __len__(self) -> int:
        return len(self._documents)

    def close(self) -> None:
        self._pending.clear()


class MemoryHits(msgspec.Struct, frozen=True):
    counted: list[TextDocument]
    pages: list[tuple[float, TextDocument]]

    @property
    def count(self) -> int:
        return len(self.counted)


class MemoryVocabulary:
    def __init__(self, documents: Iterable[TextDocument]) -> None:
        self._words: dict[WayField, Counter[str]] = {"words": Counter(), "stems": Counter(), "endings": Counter()}
        self._spoken: Counter[str] = Counter()
        self.documents = 0
        for document in documents:
            self.documents += 1
            self._spoken[document.language] += 1
            for field in self._words:
                self._words[field].update(set(_tokens(document, field)))

    def frequency(self, token: str, field: WayField = "words") -> int:
        return self._words[field][token]

    def starting_with(self, prefix: str, limit: int, field: WayField = "words") -> list[tuple[str, int]]:
        found = [pair for pair in self._words[field].items() if pair[0].startswith(prefix)]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def languages(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._spoken.most_common(8) if name)


@lru_cache(maxsize=10_000)
def _field_tokens(text: str) -> list[str]:
    return tokens_of(text)


def _tokens(document: TextDocument, field: WayField) -> list[str]:
    if field == "words":
        return [token for text in document.texts.values() for token in _field_tokens(text)]
    analysed = analyse_fields(document.texts, document.language)
    return (analysed.stems if field == "stems" else analysed.endings).split()


def _matches(document: TextDocument, plan: Plan) -> bool:
    found = [(wish.required, _count(document, wish) > 0) for wish in plan.wishes]
    if plan.partial:
        matches = all(there for required, there in found if required) and any(there for _, there in found)
    else:
        matches = all(there for _, there in found)
    return matches and not any(_count(document, wish) for wish in plan.unwanted)


def _matched(document: TextDocument, plan: Plan) -> int:
    return sum(_count(document, wish) > 0 for wish in plan.wishes)


def _score(document: TextDocument, plan: Plan) -> float:
    return sum(_count(document, wish) for wish in plan.wishes)


def _count(document: TextDocument, wish: Wish) -> float:
    return max((_way(document, way, wish.field) for way in wish.ways), default=0.0)


def _way(document: TextDocument, way: Way, field: str) -> float:
    if way.field != "words":
        return way.weight * _runs(_tokens(document, way.field), way)
    fields = (("body", "rest") if field == "body" else (field,)) if field else tuple(FIELDS)
    texts = document.texts
    return sum(way.weight * FIELDS[name] * _runs(_field_tokens(texts.get(name, "")), way) for name in fields)


def _runs(words: list[str], way: Way) -> int:
    *before, last = way.tokens
    size = len(way.tokens)
    runs = (words[start : start + size] for start in range(len(words) - size + 1))
    return sum(run[:-1] == before and (run[-1].startswith(last) if way.prefix else run[-1] == last) for run in runs)


def _ranked(plan: SearchPlan[MemoryHits]) -> list[tuple[float, TextDocument]]:
    seen: dict[str, tuple[float, TextDocument]] = {}
    for place, (_, found) in enumerate(plan.steps):
        for score, document in found.pages:
            seen.setdefault(document.id, (score + _TIER * (len(plan.steps) - 1 - place), document))
    return list(seen.values())


def _passes(document: TextDocument, request: SearchRequest, parsed: ParsedText) -> bool:
    since, until = max(request.since, parsed.since), min(filter(None, (request.until, parsed.until)), default=0.0)
    return (
        all(_filter(document, clause) != clause.negated for clause in parsed.filters)
        and (not request.types or bool(set(request.types) & set(document.types)))
        and (not request.vocabularies or bool(set(request.vocabularies) & set(document.vocabularies)))
        and (not request.sites or any(_on_site(document, site) for site in request.sites))
        and (not request.languages or document.language in request.languages)
        and (not request.kinds or document.kind in request.kinds)
        and (not since or document.fetched_at >= since)
        and (not until or document.fetched_at <= until)
    )


def _filter(document: TextDocument, clause: Clause) -> bool:
    if clause.field in ("site", "host"):
        return _on_site(document, clause.value)
    if clause.field == "language":
        return document.language == clause.value.lower().partition("-")[0]
    value: str | tuple[str, ...] = getattr(document, clause.field)
    if isinstance(value, str):
        return value == clause.value
    wanted = clause.value.casefold()
    return any(
        text == clause.value or text.rpartition("#")[2].rpartition("/")[2].casefold() == wanted for text in value
    )


def _on_site(document: TextDocument, value: str) -> bool:
    names = site_names(value)
    return any(own in names or own.partition(":")[0] in names for own in (document.site, document.host))


def _hit(score: float, document: TextDocument, marked: Highlights, request: SearchRequest) -> Hit:
    if not request.snippets:
        return Hit(id=document.id, score=score)
    text = document.main_text or document.literals
    return Hit(
        id=document.id,
        score=score,
        title=document.title,
        snippet="" if request.excerpts else snippet(text, marked),
        types=document.types,
        site=document.site,
        language=document.language,
        kind=document.kind,
        fetched_at=document.fetched_at,
        excerpt=text if request.excerpts else "",
        tier=int(score // _TIER),
    )


def _facets(documents: Sequence[TextDocument]) -> dict[str, list[tuple[str, int]]]:
    values: dict[str, Counter[str]] = {
        "types": Counter(value for document in documents for value in document.types),
        "vocabularies": Counter(value for document in documents for value in document.vocabularies),
        "sites": Counter(document.site for document in documents if document.site),
        "languages": Counter(document.language for document in documents if document.language),
        "kinds": Counter(document.kind for document in documents if document.kind),
        "years": Counter(str(datetime.fromtimestamp(d.fetched_at, UTC).year) for d in documents),
    }
    return {name: counter.most_common(20) for name, counter in values.items()}
