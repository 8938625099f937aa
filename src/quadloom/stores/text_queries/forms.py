"""Forms of a word among the words of an index, so that a match in a title counts as one, whatever the form.

Candidates begin like the stem of the word; forms are those that have the same stem. Some languages change a word's end
so much that stems of one word differ in their last letter (majakka, majakoilla → majak, majako): there, such a stem
makes a word `kin`, which counts less. Arabic and Hebrew write particles before the word.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from quadloom.documents.words.stems import stemmer
from quadloom.stores.text_queries.spelling import WordList

_CANDIDATES = 100
_MOST = 24  # forms
_RICH = frozenset(("fi", "et", "hu", "tr", "ar", "he", "hi", "ru", "uk", "pl", "cs"))
_PARTICLES = {
    "ar": ("ال", "وال", "بال", "لل", "و", "ب", "ل", "ف", "ك"),
    "he": ("ה", "ו", "ב", "ל", "מ", "ש", "כ", "וה", "שה"),
}
_LONG_VOWELS = dict.fromkeys(map(ord, "اوي"))
_FEWEST = 3  # letters of a stem that may lose one


class WordForms(NamedTuple):
    same: list[str]
    kin: list[str]


def word_forms(token: str, languages: tuple[str, ...], words: WordList) -> WordForms:
    """The most frequent forms of a token, without itself, by the stemmers of these languages."""
    same: dict[str, None] = {}
    kin: dict[str, None] = {}
    for language in languages:
        stem = _stem(language, token)
        if not stem:
            continue
        start = stem[:2] if language == "ar" else stem[:-1] if len(stem) > _FEWEST else stem
        particles = _PARTICLES.get(language, ())
        for particle in ("", *particles):
            for word, _ in words.starting_with(particle + start, _CANDIDATES if not particle else _MOST):
                other = _stem(language, word.removeprefix(particle))
                if other == stem:
                    same[word] = None
                elif language in _RICH and (_differ_at_the_end(stem, other) or _same_root(language, stem, other)):
                    kin[word] = None
        if token.startswith(particles) and len(token) > _FEWEST:
            bare = _stem(language, token[1:])
            kin |= {word: None for word, _ in words.starting_with(bare, _CANDIDATES) if _stem(language, word) == bare}
    same.pop(token, None)
    return WordForms([*same][:_MOST], [word for word in kin if word != token and word not in same][:_MOST])


@lru_cache(maxsize=100_000)
def _stem(language: str, word: str) -> str:
    known = stemmer(language)
    return known.stem(word) if known is not None else ""


def longer_words(token: str, languages: tuple[str, ...], words: WordList, limit: int) -> list[str]:
    """Words that begin with a token, the most frequent first; in Arabic and Hebrew also after a particle."""
    particles = dict.fromkeys(particle for language in languages for particle in _PARTICLES.get(language, ()))
    found = words.starting_with(token, limit)
    for particle in particles:
        found = found + words.starting_with(particle + token, _MOST)
    return [word for word, _ in sorted(found, key=lambda pair: -pair[1])[:limit] if word != token]


def _same_root(language: str, one: str, other: str) -> bool:
    """Arabic plurals change the vowels inside of a word: جبل, جبال."""
    if language != "ar":
        return False
    root = one.translate(_LONG_VOWELS)
    return len(root) >= _FEWEST and root == other.translate(_LONG_VOWELS)


def _differ_at_the_end(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    if len(longer) - len(shorter) > 1 or len(longer) <= _FEWEST:
        return False
    return longer.startswith(shorter[: len(longer) - 1])
