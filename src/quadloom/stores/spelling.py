"""Words of an index that are close to a word that somebody typed."""

from __future__ import annotations

from typing import Protocol

_SHORTEST = 4  # letters; three in scripts that write few vowels
_TWO_SLIPS = 7  # letters from which two slips are allowed
_CANDIDATES = 4000
_MEANT = 3
_LONGER = 4  # letters that a form of the same word may have more or less


class WordList(Protocol):
    def starting_with(self, prefix: str, limit: int) -> list[tuple[str, int]]: ...


def nearest(word: str, words: WordList) -> list[str]:
    """Words that were probably meant: the fewest slips first, then the most frequent. Empty if none is near enough.

    Slips in the second and later letters are found among words with the same first letter; for the first letter itself
    it is tried whether it was left out, doubled or exchanged with the second.
    """
    if len(word) < (_SHORTEST if word.isascii() else _SHORTEST - 1) or any(letter.isdigit() for letter in word):
        return []
    most = 2 if len(word) >= _TWO_SLIPS else 1
    starts = dict.fromkeys((word[:2], word[1::-1], word[1:3]))
    found = _near(word, words, tuple(starts), most)
    if not found or found[0][0] > 1:
        found = min(found, _near(word, words, (word[0],), most), key=lambda rows: rows[:1] or [(most + 1, 0, "")])
    return [candidate for _, _, candidate in found[:_MEANT]]


def similar(word: str, words: WordList, limit: int) -> list[str]:
    """Words that are a slip away, or begin alike and may be forms of the same word."""
    if len(word) < _SHORTEST - 1 or any(letter.isdigit() for letter in word):
        return []
    start = word[: max(3, len(word) // 2)]
    forms = [
        other
        for other, _ in words.starting_with(start, limit * 4)
        if other != word and abs(len(other) - len(word)) <= _LONGER
    ]
    slips = [other for _, _, other in _near(word, words, (word[:2],), 2 if len(word) >= _TWO_SLIPS - 1 else 1)]
    return list(dict.fromkeys((*slips[: limit // 2], *forms)))[:limit]


def _near(word: str, words: WordList, starts: tuple[str, ...], most: int) -> list[tuple[int, int, str]]:
    """(slips, -frequency, word), best first."""
    found: dict[str, tuple[int, int, str]] = {}
    letters = set(word)
    for start in starts:
        for other, frequency in words.starting_with(start, _CANDIDATES):
            if abs(len(other) - len(word)) > most or other == word or len(letters.difference(other)) > most:
                continue
            slips = distance(word, other, most)
            if slips <= most:
                found[other] = (slips, -frequency, other)
    return sorted(found.values())


def distance(one: str, other: str, most: int) -> int:
    """Letters to insert, delete, replace or exchange with their neighbour to make `other` of `one`; above `most`, any
    number above it."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        older, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
