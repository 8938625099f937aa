"""What to look for when somebody types words: a question is a wish, not a formula.

The index is asked in steps, from strict to generous, until there are `FEW` pages; pages of an earlier step always rank
above those of a later one.

1. **strict**: all words, each as written, in another form (by its stem), as a synonym, or two of them written as one
   (`light house`, lighthouse). Function words (`the`, `und`) count for the rank only, as long as another word is there.
2. **wide**: the last word may be unfinished, a word may be the end of a compound, and a word that occurs nowhere is
   replaced by the two that it is made of (`wordcloud`, word cloud), else by the nearest one that does (`Correction`).
3. **near**: every word may also be one that is written or inflected in a similar way.
4. **any**: any of the words, the best pages first. Text of scripts without blanks counts by its parts. What the
   question requires (`+word`, "phrase", field:word) stays required.

The pages that count are those of the last step with all words; if there are none, those with half of the words or more,
else with any.

An exact search stops after the words as they are written. `IndexVocabulary` is all that a plan needs of an index, so
all indexes share this module; what a step finds is counted by the index, which passes `count`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from itertools import pairwise
from typing import Generic, Literal, Protocol, TypeVar

import msgspec

from quadloom.documents.words.analysis import QueryWord, analyse_phrase
from quadloom.documents.words.languages import candidates, is_function_word
from quadloom.documents.words.scripts import readable
from quadloom.stores.protocols.text import Correction
from quadloom.stores.text_queries.forms import longer_words, word_forms
from quadloom.stores.text_queries.spelling import nearest, similar
from quadloom.stores.text_queries.synonyms import NO_SYNONYMS, Synonyms
from quadloom.stores.text_queries.text_query import Clause, ParsedText

FEW = 10  # pages: with fewer, the next step is tried
_SHORTEST_PREFIX = 3  # letters of an unfinished word; two if it is not in Latin letters
_EXPANSIONS = 40  # words that an unfinished one may become
_MOST_NEAR = 8
_NEAR_WORDS = 3  # of a question; with more, some of them will do
_GRAM_PARTS = 2  # parts of a run without blanks that must match
_ENOUGH_PARTS = 4  # known parts of a run; with fewer, a pair may have one wrong character
_SHORTEST_HALF = 2  # letters of a word that was written together with another
_SENTENCE_SIGNS = (
    " .,;:!?()[]'\u2019\u201c\u201d\u201e\u00ab\u00bb\u00bf\u00a1\u2026\u060c\u061f\u0964\u3002\uff0c\uff1f"
)
_DIVISIONS = 3  # of one word that are tried

WayField = Literal["words", "stems", "endings"]
WayKind = Literal["exact", "form", "kin", "synonym", "joined", "prefix", "compound", "near", "part"]
# The weight of a match by each way; exact is 1.
WEIGHTS: dict[WayKind, float] = {
    "exact": 1.0, "form": 0.95, "kin": 0.6, "synonym": 0.7, "joined": 0.8, "prefix": 0.5, "compound": 0.5, "near": 0.3,
    "part": 0.6,
}  # fmt: skip


class IndexVocabulary(Protocol):
    """The words of an index, as tokens. `documents`: how many there are."""

    documents: int

    def frequency(self, token: str, field: WayField = "words") -> int:
        """Documents with this token in the fields of words, or in this one; an estimate that is 0 only for none."""
        ...

    def starting_with(self, prefix: str, limit: int, field: WayField = "words") -> list[tuple[str, int]]:
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
    rarity: float = 1.0  # makes a form as rare as all forms of its word together, instead of a rare form the best one

    @property
    def weight(self) -> float:
        return WEIGHTS[self.kind] * self.rarity


class Wish(msgspec.Struct, frozen=True):
    """A word of the question, with the ways to match it; the best one counts. `field`: only there, if given.
    `required`: a page without it is no answer, however few words are found."""

    text: str
    ways: tuple[Way, ...]
    field: str = ""
    required: bool = False


class Plan(msgspec.Struct, frozen=True):
    """Pages where all of `wishes` match and none of `unwanted`; `optional` and `neighbours`, words that are near each
    other in the question, add to the score.

    `least` > 0: pages where any of `wishes` matches, and all that are required. Those with at least `least` of them
    count, if there are any.
    """

    wishes: tuple[Wish, ...]
    optional: tuple[Wish, ...] = ()
    unwanted: tuple[Wish, ...] = ()
    neighbours: tuple[tuple[str, str], ...] = ()
    least: int = 0

    @property
    def partial(self) -> bool:
        """Whether words of the question may be missing."""
        return self.least > 0

    @property
    def size(self) -> int:
        """Words of the question, text without blanks being one."""
        return len({wish.text for wish in self.wishes})


class StepHits(Protocol):
    """What an index found for one plan: how many pages count, whatever else it keeps for itself."""

    @property
    def count(self) -> int: ...


Found = TypeVar("Found", bound=StepHits)


class SearchPlan(msgspec.Struct, Generic[Found], frozen=True):
    """`steps`: from strict to generous; each finds all that those before it found. Pages of an earlier one are better,
    and all but the last found fewer than `FEW`."""

    steps: tuple[tuple[Plan, Found], ...]
    corrections: tuple[Correction, ...] = ()
    missing: tuple[str, ...] = ()  # words without any match
    offers: tuple[Correction, ...] = ()  # for missing words of an exact search

    @property
    def last(self) -> Plan:
        return self.steps[-1][0]

    @property
    def counted(self) -> Found:
        """The pages that an answer counts: with all words, else with some."""
        whole = [found for plan, found in self.steps if not plan.partial and found.count]
        return whole[-1] if whole else self.steps[-1][1]


def plan_search(
    parsed: ParsedText,
    vocabulary: IndexVocabulary,
    ask: Callable[[Plan], Found],
    *,
    synonyms: Synonyms = NO_SYNONYMS,
    exact: bool = False,
) -> SearchPlan[Found]:
    """The steps of the module, as far as they are needed. `ask` finds the pages of a plan, filters included."""
    planner = _Planner(vocabulary, synonyms, lambda plan: ask(plan).count, exact=exact)
    strict = planner.balanced(planner.strict(parsed))
    steps = [(strict, ask(strict))]
    if exact or not strict.wishes or steps[-1][1].count >= FEW:
        missing = planner.missing(strict) if exact else ()
        return SearchPlan(tuple(steps), missing=missing, offers=planner.offers(missing))
    wide = planner.wide(strict, parsed.unfinished)
    if wide != strict:
        steps.append((wide, ask(wide)))
    if not steps[-1][1].count and len(wide.wishes) <= _NEAR_WORDS:
        near = planner.near(wide)
        if near != wide:
            steps.append((near, ask(near)))
    if steps[-1][1].count < FEW and (some := planner.any_words(steps[-1][0])) is not None:
        steps.append((some, ask(some)))
    return SearchPlan(tuple(steps), tuple(planner.corrections), planner.missing(wide))


class _Planner:
    def __init__(
        self, vocabulary: IndexVocabulary, synonyms: Synonyms, count: Callable[[Plan], int], *, exact: bool
    ) -> None:
        self._vocabulary = vocabulary
        self._synonyms = synonyms
        self._count = count
        self._exact = exact
        self._languages = vocabulary.languages()
        self._terms: dict[str, QueryWord] = {}
        self.corrections: list[Correction] = []

    def strict(self, parsed: ParsedText) -> Plan:
        wishes, optional, unwanted = [], [], []
        words = set()  # those that may be a part of one that is written together
        for clause in parsed.words:
            wish = self._wish(clause)
            if wish is None:
                continue
            if clause.negated:
                unwanted.append(wish)
            elif not (self._exact or clause.required) and is_function_word(_bare(wish.text), self._languages):
                optional.append(wish)
            else:
                wishes.append(wish)
                if not (self._exact or clause.phrase or clause.prefix or clause.field):
                    words.add(wish.text)
        if not wishes:
            wishes, optional = optional, []
        wishes, optional = _distinct(wishes), _distinct(optional)
        return Plan(self._joined(wishes, words), tuple(optional), tuple(unwanted), _neighbours(wishes, words))

    def _wish(self, clause: Clause) -> Wish | None:
        term = analyse_phrase(clause.value, languages=self._languages)
        if term is None:
            return None
        self._terms[clause.value] = term
        ways = [Way("exact", term.tokens, prefix=clause.prefix or _is_character(term))]
        if not (self._exact or clause.phrase or clause.prefix):
            ways += self._forms(term)
        return Wish(clause.value, tuple(dict.fromkeys(ways)), clause.field, clause.required)

    def _joined(self, wishes: Sequence[Wish], words: Container[str]) -> tuple[Wish, ...]:
        """The wishes, with the word that two of them are together if pages write them so."""
        found = list(wishes)
        for place, (first, second) in enumerate(pairwise(wishes)):
            tokens = first.ways[0].tokens + second.ways[0].tokens
            if len(tokens) == 2 and first.text in words and second.text in words:
                together = "".join(tokens)
                if self._vocabulary.frequency(together):
                    for one in (place, place + 1):
                        found[one] = _with(found[one], (Way("joined", (together,)),))
        return tuple(found)

    def _forms(self, term: QueryWord) -> list[Way]:
        ways: list[Way] = []
        if term.stems:
            (token,) = term.tokens
            forms = word_forms(token, self._spoken(term), self._vocabulary)
            ways += (Way("form", (form,)) for form in forms.same)
            ways += (Way("kin", (form,)) for form in forms.kin)
            ways += (Way("form", (stem,), "stems") for stem in term.stems)
        if term.grams and len(term.parts) == 1:  # a word without its particle
            ways.append(Way("form", term.parts[0]))
        for other in self._synonyms.of(" ".join(term.tokens)):
            said = analyse_phrase(other, languages=self._languages)
            if said is not None:
                ways.append(Way("synonym", said.tokens))
        return ways

    def _spoken(self, term: QueryWord) -> tuple[str, ...]:
        """Languages in which a word may be."""
        return candidates(term.text) or self._languages or ("en",)

    def wide(self, plan: Plan, unfinished: str) -> Plan:
        return self._changed(plan, lambda wish: self._widened(wish, unfinished))

    def _changed(self, plan: Plan, change: Callable[[Wish], Wish]) -> Plan:
        """What is not changed stays the same object: an index remembers its query."""
        changed = [(wish, change(wish)) for wish in plan.wishes]
        wishes = tuple(wish if new is wish else self._balanced(new) for wish, new in changed)
        return msgspec.structs.replace(plan, wishes=wishes)

    def _widened(self, wish: Wish, unfinished: str) -> Wish:
        term = self._terms[wish.text]
        if term.grams:
            unknown = len(term.tokens) == 1 and not self._known(wish)
            return _with(wish, self._around_grams(term.tokens[0])) if unknown else wish
        if len(term.tokens) > 1 or wish.ways[0].prefix:
            return wish
        (token,) = term.tokens
        known = self._known(wish)
        more: list[Way] = []
        if (wish.text == unfinished or not known) and len(token) >= (_SHORTEST_PREFIX if token.isascii() else 2):
            longer = longer_words(token, self._spoken(term), self._vocabulary, _EXPANSIONS)
            more += (Way("prefix", (word,)) for word in longer)
        if term.ending:
            compounds = self._vocabulary.starting_with(term.ending, _EXPANSIONS, "endings")
            more += (Way("compound", (word,), "endings") for word, _ in compounds if word != term.ending)
        if not known and not more:
            more += self._divided(wish.text, token) or self._corrected(wish.text, token)
        return _with(wish, more)

    def _divided(self, text: str, token: str) -> list[Way]:
        """Two words of the index that stand next to each other somewhere and give this one."""
        frequency = self._vocabulary.frequency
        halves = [
            (token[:at], token[at:])
            for at in range(_SHORTEST_HALF, len(token) - _SHORTEST_HALF + 1)
            if frequency(token[:at]) and frequency(token[at:])
        ]
        halves.sort(key=lambda pair: -min(frequency(word) for word in pair))
        for pair in halves[:_DIVISIONS]:
            way = Way("exact", pair)
            if self._count(Plan((Wish(text, (way,)),))):
                self.corrections.append(Correction(text, " ".join(readable(word) for word in pair)))
                return [way]
        return []

    def _corrected(self, text: str, token: str) -> list[Way]:
        """The words that were probably meant; the first is shown to the person who asked."""
        meant = nearest(token, self._vocabulary)
        if not meant:
            return []
        self.corrections.append(Correction(text, readable(meant[0])))
        ways: list[Way] = []
        for place, word in enumerate(meant):
            ways.append(Way("exact" if not place else "near", (word,)))
            said = analyse_phrase(word, languages=self._languages)
            ways += self._forms(said) if said is not None and not place else ()
        return ways

    def offers(self, words: Sequence[str]) -> tuple[Correction, ...]:
        """The nearest word for each of these that is one word."""
        found = []
        for text in words:
            tokens = self._terms[text].tokens
            meant = nearest(tokens[0], self._vocabulary) if len(tokens) == 1 else []
            found += [Correction(text, readable(meant[0]))] if meant else []
        return tuple(found)

    def near(self, plan: Plan) -> Plan:
        return self._changed(plan, self._similar)

    def _similar(self, wish: Wish) -> Wish:
        term = self._terms[wish.text]
        if term.grams or len(term.tokens) > 1 or wish.ways[0].prefix:
            return wish
        words = similar(term.tokens[0], self._vocabulary, _MOST_NEAR)
        return _with(wish, [Way("near", (word,)) for word in words])

    def any_words(self, plan: Plan) -> Plan | None:
        """None if there are no fewer words to ask for."""
        wishes: list[Wish] = []
        words = parts = 0
        for wish in plan.wishes:
            term = self._terms[wish.text]
            pieces = self._pieces(term) if term.grams and not wish.required else []
            if pieces:
                wishes += (Wish(wish.text, ways, wish.field) for ways in pieces)
                parts += len(pieces)
            elif wish.required or self._known(wish):
                words += 1
                wishes.append(wish)
        nothing_to_leave_out = len(wishes) == 1 or all(wish.required for wish in wishes)
        if not wishes or (tuple(wishes) == plan.wishes and nothing_to_leave_out):
            return None
        least = (words + 1) // 2 if not parts else words // 2 + min(_GRAM_PARTS, max(1, parts // 2))
        return msgspec.structs.replace(plan, wishes=tuple(wishes), least=max(1, least))

    def _pieces(self, term: QueryWord) -> list[tuple[Way, ...]]:
        """What a run of text without blanks is made of: its words if they can be told, else pairs of characters. A
        pair that occurs nowhere may have one wrong character."""
        pieces = dict.fromkeys(term.parts or ((token,) for token in term.tokens))
        found: list[tuple[Way, ...]] = []
        near: list[tuple[Way, ...]] = []
        for piece in sorted(pieces, key=lambda piece: -len(piece) - len(piece[0])):
            if len(piece[0]) == 1 and len(found) >= _GRAM_PARTS:
                break  # a single character says little
            known = [token for token in piece if self._vocabulary.frequency(token)]
            if len(known) == len(piece) and len(piece[0]) > 1:
                found.append((Way("exact", piece),))
            elif known and len(piece) > 1:
                found += ((Way("part", (token,)),) for token in known)
            elif ways := self._around_grams(piece[0]):
                near.append(tuple(ways))
        # In a long run, a few characters say enough.
        return list(dict.fromkeys(found + (near if len(found) < _ENOUGH_PARTS else [])))

    def _around_grams(self, pair: str) -> list[Way]:
        """Documents have a token that begins with each of their characters."""
        found = [word for unit in pair for word, _ in self._vocabulary.starting_with(unit, _EXPANSIONS // 2)]
        return [Way("part", (word,)) for word in dict.fromkeys(found)]

    def balanced(self, plan: Plan) -> Plan:
        """With the `rarity` of each way."""
        return msgspec.structs.replace(plan, wishes=tuple(self._balanced(wish) for wish in plan.wishes))

    def _balanced(self, wish: Wish) -> Wish:
        counts = {
            way: self._vocabulary.frequency(way.tokens[0])
            for way in wish.ways
            if way.field == "words" and len(way.tokens) == 1 and not way.prefix
        }
        if len(counts) < 2:
            return wish
        documents = self._vocabulary.documents
        together = rarity(min(documents, sum(counts.values())), documents)
        return msgspec.structs.replace(
            wish,
            ways=tuple(
                msgspec.structs.replace(way, rarity=min(1.0, together / rarity(counts[way], documents)))
                if counts.get(way)
                else way
                for way in wish.ways
            ),
        )

    def missing(self, plan: Plan) -> tuple[str, ...]:
        return tuple(wish.text for wish in plan.wishes if not self._known(wish))

    def _known(self, wish: Wish) -> bool:
        """Whether a way may match: a phrase may if its tokens occur."""
        frequency = self._vocabulary.frequency
        return any(
            bool(self._vocabulary.starting_with(way.tokens[-1], 1))
            if way.prefix
            else all(frequency(token, way.field) for token in way.tokens)
            for way in wish.ways
        )


def rarity(frequency: int, documents: int) -> float:
    """Inverse document frequency, as bm25 computes it."""
    return math.log(1.0 + (documents - frequency + 0.5) / (frequency + 0.5))


def _bare(text: str) -> str:
    """A word in lower case, without the signs of its sentence around it."""
    return text.lower().strip(_SENTENCE_SIGNS)


def _distinct(wishes: Sequence[Wish]) -> list[Wish]:
    """Each word once: long questions repeat some."""
    return list({(wish.ways[0], wish.field): wish for wish in reversed(wishes)}.values())[::-1]


def _neighbours(wishes: Sequence[Wish], words: Container[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of words that follow each other, function words aside."""
    return tuple(
        (one.ways[0].tokens[0], other.ways[0].tokens[0])
        for one, other in pairwise(wishes)
        if one.text in words and other.text in words and len(one.ways[0].tokens) == len(other.ways[0].tokens) == 1
    )


def _with(wish: Wish, more: Sequence[Way]) -> Wish:
    return msgspec.structs.replace(wish, ways=tuple(dict.fromkeys((*wish.ways, *more)))) if more else wish


def _is_character(term: QueryWord) -> bool:
    """One character of a script without blanks: every character of a document begins a token."""
    return term.grams and len(term.tokens) == 1 and len(term.tokens[0]) == 1
