"""Labelled documents for the topical benchmark, generated from a word model, so that the labels are exact.

Categories hold sibling topics. The words of a document come from three sources: common words (Zipf), words of its
category and words of its topic. A topic has a few core words and three facets with words of their own, and a document
draws on one facet, so that no single query finds all of a topic. Siblings are hard negatives: they share the category's
words, and some mention the topic's core words in passing.
"""

from __future__ import annotations

from itertools import accumulate
from random import Random
from typing import NamedTuple

_ONSETS = [
    "b",
    "c",
    "d",
    "f",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "v",
    "w",
    "z",
    "br",
    "cr",
    "dr",
    "fl",
    "gr",
    "kl",
    "pl",
    "pr",
    "sk",
    "sl",
    "sp",
    "st",
    "tr",
]
_VOWELS = ["a", "e", "i", "o", "u", "ai", "ea", "ou"]
_CODAS = ["", "", "", "n", "r", "s", "l", "t", "m", "nd", "rk", "st"]
_LATIN = "abcdefghijklmnoprstuvwz"
SCRIPTS = (
    "абцдефгхийклмнопрстувжз",
    "αβγδεφζηιθκλμνοπρστυωξχ",
    "აბცდეფგჰიჯკლმნოპრსტუვწზ",
    "אבגדהוזחיטכלמנספקרשתעצצ",
    "ابتدثفغحيجكلمنوهرسشطضظز",
    "abçdefğhıjklmnöprştuvyz",
)
"""Letters that take the place of Latin ones: Cyrillic, Greek, Georgian (which has no capitals), Hebrew, Arabic, and
Latin with the letters of Turkish."""
_FINALS = str.maketrans("σכמנפצ", "ςךםןףץ")  # letters that have another form at the end of a word
_ACCENTED = {"α": "ά", "ε": "έ", "η": "ή", "ι": "ί", "ο": "ό", "υ": "ύ", "ω": "ώ"}
_UNACCENTED = str.maketrans("άέήίόύώ", "αεηιουω")
COMMON_WORDS = 2500
CATEGORIES = 6
SIBLINGS = 5


class CorpusTopic(NamedTuple):
    """`core`: the words that name it, most frequent first; `facets`: the words of its three facets."""

    name: str
    category: int
    core: tuple[str, ...]
    facets: tuple[tuple[str, ...], ...]


class CorpusText(NamedTuple):
    """A document without a URL. `topic` is its label, which no crawler sees."""

    title: str
    words: tuple[str, ...]
    topic: int
    day: int

    @property
    def body(self) -> str:
        sentences = [self.words[at : at + 14] for at in range(0, len(self.words), 14)]
        return " ".join(" ".join(part).capitalize() + "." for part in sentences)


class Corpus:
    """A set of words and topics. The same seed gives the same words, topics and texts."""

    def __init__(self, seed: int, *, script: str = "") -> None:
        random = Random(f"corpus {seed}")
        self._letters = str.maketrans(_LATIN, script) if script else {}
        self._taken: set[str] = set()
        self.common = [self._word(random, 2) for _ in range(COMMON_WORDS)]
        self._weights = list(accumulate(1 / (rank + 3) for rank in range(COMMON_WORDS)))
        self.category_words = [[self._word(random, 2) for _ in range(50)] for _ in range(CATEGORIES)]
        self.topics = [
            CorpusTopic(
                f"c{category}t{number}",
                category,
                tuple(self._word(random, 2) for _ in range(5)),
                tuple(tuple(self._word(random, 3) for _ in range(10)) for _ in range(3)),
            )
            for category in range(CATEGORIES)
            for number in range(SIBLINGS)
        ]

    def siblings(self, topic: int) -> list[int]:
        category = self.topics[topic].category
        return [other for other, t in enumerate(self.topics) if t.category == category and other != topic]

    def broad_query(self, topic: int) -> str:
        """The words of the category, to find sites."""
        return " ".join(self.category_words[self.topics[topic].category][:2])

    def narrow_query(self, topic: int) -> str:
        """The words of the topic, to find pages."""
        return self.topics[topic].core[0]

    def text(self, topic: int, random: Random) -> CorpusText:
        """A new document on a topic."""
        chosen = self.topics[topic]
        facet = random.choice(chosen.facets)
        own = [*chosen.core * 2, *facet * 3]
        common = random.choices(self.common, cum_weights=self._weights, k=random.randint(60, 180))
        words = [self._draw(word, chosen.category, own, random) for word in common]
        if random.random() < 0.18:
            self._mention_sibling(topic, words, random)
        own_in_title = random.random() < 0.65
        title = random.choices(self.common, cum_weights=self._weights, k=random.randint(2, 4))
        if own_in_title:
            title += random.sample(sorted(set(own)), random.randint(1, 2))
        if random.random() < 0.5:
            title.append(random.choice(self.category_words[chosen.category]))
        random.shuffle(title)
        written = " ".join(title).capitalize()
        if self._letters and random.random() < 0.25:
            written = written.translate(_UNACCENTED).upper()  # capitals have no accents in Greek
        return CorpusText(written, tuple(words), topic, random.randrange(3000))

    def _draw(self, common: str, category: int, own: list[str], random: Random) -> str:
        urn = random.random()
        if urn < 0.72:
            return common
        if urn < 0.91:
            words = self.category_words[category]
            return words[min(int(random.expovariate(0.1)), len(words) - 1)]
        return random.choice(own)

    def _mention_sibling(self, topic: int, words: list[str], random: Random) -> None:
        other = self.topics[random.choice(self.siblings(topic))]
        for _ in range(random.randint(2, 5)):
            words[random.randrange(len(words))] = random.choice([*other.core, *random.choice(other.facets)[:4]])

    def _word(self, random: Random, syllables: int) -> str:
        while True:
            word = "".join(
                random.choice(_ONSETS) + random.choice(_VOWELS) + random.choice(_CODAS) for _ in range(syllables)
            )
            if self._letters:
                word = _spelled(word.translate(self._letters))
            if word not in self._taken:
                self._taken.add(word)
                return word


def _spelled(word: str) -> str:
    """With the accent and the last letter of Greek, and the last letter of Hebrew."""
    vowel = next((at for at, letter in enumerate(word) if letter in _ACCENTED), None)
    if vowel is not None:
        word = word[:vowel] + _ACCENTED[word[vowel]] + word[vowel + 1 :]
    return word[:-1] + word[-1].translate(_FINALS)
