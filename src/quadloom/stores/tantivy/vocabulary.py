"""Words of one index of tantivy, or of several as those of one: where they occur, how often, and how rare they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import tantivy

from quadloom.documents.words.analysis import STEM_FIELDS
from quadloom.stores.text_queries.query_plan import WayField, rarity

_LANGUAGES = 8
_WALKED = (
    "body",
    "title",
    "literals",
    "rest",
)  # fields whose words are listed; the others repeat the body, or nearly so
_MANY = 100  # words: if more are listed, those of body and title are enough


class TantivyVocabulary:
    """See `quadloom.stores.text_queries.query_plan.IndexVocabulary`. For one searcher, so all answers can be cached."""

    def __init__(self, searcher: tantivy.Searcher, fields: Sequence[str]) -> None:
        self._searcher = searcher
        self.documents = searcher.num_docs
        self._all_fields = tuple(fields)
        self._stem_fields = frozenset(fields).intersection(STEM_FIELDS)
        self._fields = tuple(field for field in fields if field not in self._stem_fields)
        self._walked = tuple(field for field in _WALKED if field in self._fields)
        # A method would keep its object alive in the cache; closures of this object do not outlive it.
        self.fields_with: Callable[[str], dict[str, int]] = lru_cache(maxsize=4096)(self._fields_with)
        self.starting_with: Callable[..., list[tuple[str, int]]] = lru_cache(maxsize=256)(self._starting_with)
        self.spoken: Callable[[], list[tuple[str, int]]] = lru_cache(maxsize=1)(self._spoken)

    def _fields_with(self, token: str) -> dict[str, int]:
        """Fields that have a token, stems too, and in how many documents."""
        return {name: count for name in self._all_fields if (count := self._searcher.doc_freq(name, token))}

    def frequency(self, token: str, field: WayField = "words") -> int:
        found = self.fields_with(token)
        if field == "words":
            return max((count for name, count in found.items() if name not in STEM_FIELDS), default=0)
        return found.get(field, 0)

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


class WordRarity:
    """The factor that makes a word of one index as rare as it is in all of them together (inverse document frequency
    of BM25, as tantivy computes it)."""

    def __init__(self, vocabularies: Sequence[TantivyVocabulary]) -> None:
        self._vocabularies = vocabularies
        self._documents = sum(vocabulary.documents for vocabulary in vocabularies)
        self._found: dict[tuple[str, str], float] = {}

    def factor(self, vocabulary: TantivyVocabulary, field: str, tokens: Sequence[str], *, any_field: bool) -> float:
        """`any_field`: as rare as in the field that has the word most often. A word of many texts says no more for
        being in few titles."""
        here = sum(rarity(vocabulary.fields_with(token)[field], vocabulary.documents) for token in tokens)
        name = "" if any_field and field not in STEM_FIELDS else field
        return sum(self._everywhere(token, name) for token in tokens) / here if here else 1.0

    def _everywhere(self, token: str, field: str) -> float:
        found = self._found.get((token, field))
        if found is None:
            count = sum(
                vocabulary.fields_with(token).get(field, 0) if field else vocabulary.frequency(token)
                for vocabulary in self._vocabularies
            )
            found = self._found[token, field] = rarity(count, self._documents)
        return found
