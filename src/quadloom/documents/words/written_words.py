"""Words of a text as they are compared, and as they are written: for topical crawling.

Words are compared in the form that the index of the warehouse has (`analysis.words.tokens_of`): without case, accents
and variants of letters, so that ΛΟΓΟΣ, λόγος and λόγοσ are one word, and so are Straße and STRASSE, ёж and еж. The
engine of a site may know none of these rules. It is asked for a word as its pages write it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from quadloom.documents.words.analysis import tokens_of
from quadloom.documents.words.languages import short_words
from quadloom.documents.words.scripts import is_gram, readable

_MOST = 3000
# Letters, and the marks that belong to them: Python takes vowel signs of Indic scripts for the end of a word.
_MARKS = (
    "\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff\u0e31-\u0e4e"
    "\u0eb1-\u0ece\u102b-\u103e\u17b4-\u17d3\u200c\u200d\xad"
)
_WRITTEN = re.compile(f"[^\\W_](?:[^\\W_]|[{_MARKS}])*")
_DOTTED = "i\u0307"  # how the Turkish İ is lowered


class WrittenWord(NamedTuple):
    """`word` for comparisons, and in lower case as the text writes it."""

    word: str
    written: str


def words_of(text: str) -> list[str]:
    """The words of a text, without numbers and single letters; of Chinese, Japanese, Korean and the like, pairs."""
    tokens = tokens_of(text)[:_MOST]
    words = [token for token in tokens if len(token) > 1 and not token.isdigit()]
    return words or [token for token in tokens if is_gram(token)]  # a topic may be one character: 猫


def written_words(text: str) -> Iterator[WrittenWord]:
    """The same words in the same order, as they are written."""
    for written in _WRITTEN.findall(text)[:_MOST]:
        yield from _written_as(written)


@lru_cache(maxsize=50_000)
def _written_as(written: str) -> tuple[WrittenWord, ...]:
    words = words_of(written)
    if len(words) == 1 and not is_gram(words[0]):
        return (WrittenWord(words[0], written.lower().replace(_DOTTED, "i").replace("\xad", "")),)
    return tuple(WrittenWord(word, readable(word)) for word in words)


@lru_cache(maxsize=64)
def stop_words(language: str) -> frozenset[str]:
    """The most frequent words of a language, in the form for comparisons; empty if it is unknown."""
    return frozenset(words_of(" ".join(short_words(language))))
