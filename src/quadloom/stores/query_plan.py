"""What to look for when somebody types words: a question is a wish, not a formula.

The index is asked in steps, from strict to generous, until there are `FEW` pages; pages of an earlier step always rank
above those of a later one.

1. **strict**: all words, each as written, in another form (by its stem) or as a synonym. Function words (`the`, `und`)
   count for the rank only, as long as another word is there.
2. **wide**: the last word may be unfinished, a word may be the end of a compound, and a word that occurs nowhere is
   replaced by the nearest one that does (`Correction`).
3. **near**: every word may also be one that is written or inflected in a similar way.
4. **most**: only most of the words. Text of scripts without blanks counts by its parts.

An exact search stops after the words as they are written. `Vocabulary` is all that a plan needs of an index, so all
indexes share this module; what a step finds is counted by the index, which passes `count`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from quadloom.analysis.languages import is_function_word
from quadloom.analysis.words import QueryWord, analyse_phrase
from quadloom.stores.protocols.text import Correction
from quadloom.stores.spelling import nearest, similar
from quadloom.stores.synonyms import NO_SYNONYMS, Synonyms
from quadloom.stores.text_query import Clause, ParsedText

FEW = 10  # pages: with fewer, the next step is tried
_SHORTEST_PREFIX = 3  # letters of an unfinished word; two if it is not in Latin letters
_EXPANSIONS = 40  # words that an unfinished one may become
_MOST_NEAR = 8
_GRAM_PARTS = 2  # parts of a run without blanks that must match

WayField = Literal["words", "stems", "endings"]
WayKind = Literal["exact", "form", "synonym", "prefix", "compound", "near", "part"]
# The weight of a match by each way; exact is 1.
WEIGHTS: dict[WayKind, float] = {
    "exact": 1.0, "form": 0.85, "synonym": 0.7, "prefix": 0.5, "compound": 0.5, "near": 0.3, "part": 0.6,
}  # fmt: skip


class Vocabulary(Protocol):
    """The words of an index, as tokens."""

    def frequency(self, token: str, field: WayField = "words") -> int:
        """Documents with this token in the fields of words, or in this one; an estimate that is 0 only for none."""
        ...

    def starting_with(self, prefix: str, limit: int) -> list[tuple[str, int]]:
        """Tokens and their frequencies, the most frequent first."""
        ...

    def languages(self) -> tuple[str, ...]:
        """Of the documents, the most frequent first."""
        ...


class Way(msgspec.Struct, frozen=True):
    """One way to match a word: these tokens next to each other, in the fields of words or in a field of its own."""

    kind: WayKind
    tokens: tuple[str, ...]
    field: WayField = "words"
    prefix: bool = False  # the last token is the beginning of a word

    @property
    def weight(self) -> float:
        return WEIGHTS[self.kind]


class Wish(msgspec.Struct, frozen=True):
    """A word of the question, with the ways to match it; the best one counts. `field`: only there, if given."""

    text: str
    ways: tuple[Way, ...]
    field: str = ""


class Plan(msgspec.Struct, frozen=True):
    """Pages where at least `least` of `wishes` match and none of `unwanted`; `optional` adds to the score."""

    wishes: tuple[Wish, ...]
    optional: tuple[Wish, ...] = ()
    unwanted: tuple[Wish, ...] = ()
    least: int = 0

    @property
    def all_words(self) -> bool:
        return self.least >= len(self.wishes)


class SearchPlan(msgspec.Struct, frozen=True):
    """`base` finds all hits; those that `better` find too rank above the others, the more of these the higher."""

    base: Plan
    better: tuple[Plan, ...] = ()
    corrections: tuple[Correction, ...] = ()
    missing: tuple[str, ...] = ()  # words without any match

    @property
    def corrected(self) -> dict[str, str]:
        return {correction.asked: correction.used for correction in self.corrections}


def plan_search(
    parsed: ParsedText,
    vocabulary: Vocabulary,
    count: Callable[[Plan], int],
    *,
    synonyms: Synonyms = NO_SYNONYMS,
    exact: bool = False,
) -> SearchPlan:
    """The steps of the module, as far as they are needed. `count`: pages that a plan finds, filters included."""
    planner = _Planner(vocabulary, synonyms, exact=exact)
    strict = planner.strict(parsed)
    if exact or not strict.wishes or count(strict) >= FEW:
        return SearchPlan(strict, missing=() if not exact else planner.missing(strict))
    better: list[Plan] = [strict]
    wide = planner.wide(strict, parsed.unfinished)
    found = count(wide) if wide != strict else 0
    if wide != strict:
        better.append(wide)
    if not found:
        near = planner.near(wide)
        if near != wide:
            better.append(near)
            found = count(near)
    if found < FEW:
        most = planner.most(better[-1])
        if most is not None:
            better.append(most)
    *before, base = better
    return SearchPlan(base, tuple(before), tuple(planner.corrections), planner.missing(wide))


class _Planner:
    def __init__(self, vocabulary: Vocabulary, synonyms: Synonyms, *, exact: bool) -> None:
        self._vocabulary = vocabulary
        self._synonyms = synonyms
        self._exact = exact
        self._languages = vocabulary.languages()
        self._terms: dict[str, QueryWord] = {}
        self.corrections: list[Correction] = []

    def strict(self, parsed: ParsedText) -> Plan:
        wishes, optional, unwanted = [], [], []
        for clause in parsed.words:
            wish = self._wish(clause)
            if wish is None:
                continue
            if clause.negated:
                unwanted.append(wish)
            elif not self._exact and not clause.phrase and is_function_word(wish.text.lower(), self._languages):
                optional.append(wish)
            else:
                wishes.append(wish)
        if not wishes:
            wishes, optional = optional, []
        return Plan(tuple(wishes), tuple(optional), tuple(unwanted), len(wishes))

    def _wish(self, clause: Clause) -> Wish | None:
        term = analyse_phrase(clause.value, languages=self._languages)
        if term is None:
            return None
        self._terms[clause.value] = term
        ways = [Way("exact", term.tokens, prefix=clause.prefix or _is_character(term))]
        if not (self._exact or clause.phrase or clause.prefix):
            ways += self._forms(term)
        return Wish(clause.value, tuple(dict.fromkeys(ways)), clause.field)

    def _forms(self, term: QueryWord) -> list[Way]:
        ways: list[Way] = []
        for stem in term.stems:
            ways.append(Way("form", (stem,), "stems"))
            if (stem,) != term.tokens and self._vocabulary.frequency(stem):
                ways.append(Way("form", (stem,)))
        if term.grams and len(term.parts) == 1:  # a word without its particle
            ways.append(Way("form", term.parts[0]))
        for other in self._synonyms.of(" ".join(term.tokens)):
            said = analyse_phrase(other, languages=self._languages)
            if said is not None:
                ways.append(Way("synonym", said.tokens))
        return ways

    def wide(self, plan: Plan, unfinished: str) -> Plan:
        return msgspec.structs.replace(plan, wishes=tuple(self._widened(wish, unfinished) for wish in plan.wishes))

    def _widened(self, wish: Wish, unfinished: str) -> Wish:
        term = self._terms[wish.text]
        if term.grams:
            return wish if self._known(wish) else _with(wish, self._around_grams(term))
        if len(term.tokens) > 1 or wish.ways[0].prefix:
            return wish
        (token,) = term.tokens
        known = self._known(wish)
        more: list[Way] = []
        if (wish.text == unfinished or not known) and len(token) >= (_SHORTEST_PREFIX if token.isascii() else 2):
            longer = self._vocabulary.starting_with(token, _EXPANSIONS)
            more += (Way("prefix", (word,)) for word, _ in longer if word != token)
        if term.ending:
            more.append(Way("compound", (term.ending,), "endings", prefix=True))
        if not known and not any(way.kind == "prefix" for way in more):
            more += self._corrected(wish.text, token)
        return _with(wish, more)

    def _corrected(self, text: str, token: str) -> list[Way]:
        """The words that were probably meant; the first is shown to the person who asked."""
        meant = nearest(token, self._vocabulary)
        if not meant:
            return []
        self.corrections.append(Correction(text, meant[0]))
        ways: list[Way] = []
        for place, word in enumerate(meant):
            ways.append(Way("exact" if not place else "near", (word,)))
            said = analyse_phrase(word, languages=self._languages)
            ways += self._forms(said) if said is not None and not place else ()
        return ways

    def near(self, plan: Plan) -> Plan:
        return msgspec.structs.replace(plan, wishes=tuple(self._similar(wish) for wish in plan.wishes))

    def _similar(self, wish: Wish) -> Wish:
        term = self._terms[wish.text]
        if term.grams or len(term.tokens) > 1 or wish.ways[0].prefix:
            return wish
        words = similar(term.tokens[0], self._vocabulary, _MOST_NEAR)
        return _with(wish, [Way("near", (word,)) for word in words])

    def most(self, plan: Plan) -> Plan | None:
        """None if there are no fewer words to ask for."""
        wishes: list[Wish] = []
        words = parts = 0
        for wish in plan.wishes:
            term = self._terms[wish.text]
            pieces = self._pieces(term) if term.grams else []
            if pieces:
                wishes += (Wish(wish.text, (way,), wish.field) for way in pieces)
                parts += len(pieces)
            elif self._known(wish):
                words += 1
                wishes.append(wish)
        least = max(1, (words + 1) // 2 if not parts else words // 2 + min(_GRAM_PARTS, parts, max(1, parts // 2)))
        if not wishes or (len(wishes) == len(plan.wishes) and least >= len(wishes)):
            return None
        return msgspec.structs.replace(plan, wishes=tuple(wishes), least=least)

    def _pieces(self, term: QueryWord) -> list[Way]:
        """What a run of text without blanks is made of; each piece that occurs somewhere."""
        pieces = term.parts or tuple((token,) for token in term.tokens)
        known = [piece for piece in dict.fromkeys(pieces) if all(self._vocabulary.frequency(t) for t in piece)]
        if len(known) < len(pieces) and term.parts:  # words of content may hold an unknown pair
            known += ((token,) for token in dict.fromkeys(term.tokens) if self._vocabulary.frequency(token))
        return [Way("part", piece) for piece in dict.fromkeys(known)] or self._around_grams(term)

    def _around_grams(self, term: QueryWord) -> list[Way]:
        """A pair of characters that occurs nowhere: one of the two may be wrong, and documents have a token that begins
        with each of their characters."""
        if len(term.tokens) > 1:
            return []
        (pair,) = term.tokens
        found = [word for unit in pair for word, _ in self._vocabulary.starting_with(unit, _EXPANSIONS // 2)]
        return [Way("near", (word,)) for word in dict.fromkeys(found)]

    def missing(self, plan: Plan) -> tuple[str, ...]:
        return tuple(wish.text for wish in plan.wishes if not self._known(wish))

    def _known(self, wish: Wish) -> bool:
        """Whether a way may match: a phrase may if its tokens occur."""
        frequency = self._vocabulary.frequency
        return any(
            self._vocabulary.starting_with(way.tokens[-1], 1)
            if way.prefix and way.field == "words"
            else way.field != "endings" and all(frequency(token, way.field) for token in way.tokens)
            for way in wish.ways
        )


def _with(wish: Wish, more: Sequence[Way]) -> Wish:
    return msgspec.structs.replace(wish, ways=tuple(dict.fromkeys((*wish.ways, *more)))) if more else wish


def _is_character(term: QueryWord) -> bool:
    """One character of a script without blanks: every character of a document begins a token."""
    return term.grams and len(term.tokens) == 1 and len(term.tokens[0]) == 1
