"""Words of an index that are close to a word that somebody typed."""

from __future__ import annotations

from typing import Protocol

_SHORTEST = 4  # letters; three in scripts that write few vowels
_TWO_SLIPS = 7  # letters from which two slips are allowed
_CANDIDATES = 2000
_MEANT = 3
_LONGER = 4  # letters that a form of the same word may have more or less


class WordList(Protocol):
    def starting_with(self, prefix: str, limit: int) -> list[tuple[str, int]]: ...


def nearest(word: str, words: WordList) -> list[str]:
    """Words that were probably meant: the fewest slips first, then the most frequent. Empty if none is near enough.

    Most slips are after the first letters, or exchange, drop or double one of them: so first the words are tried that
    begin alike but for such a slip, then those with the same two letters, at last those with the same first letter.
    """
    if len(word) < (_SHORTEST if word.isascii() else _SHORTEST - 1) or any(letter.isdigit() for letter in word):
        return []
    most = 2 if len(word) >= _TWO_SLIPS else 1
    for starts in (_likely_starts(word), (word[:2],), (word[0],)):
        found = _near(word, words, starts, most)
        if found and (found[0][0] == 1 or len(starts[0]) == 1):
            break
    return [candidate for _, _, candidate in found[:_MEANT]]


def _likely_starts(word: str) -> tuple[str, ...]:
    """The first three letters, right or with one slip, as far as it can be guessed."""
    a, b, c, d = word[0], word[1], word[2], word[3:4]
    return tuple(dict.fromkeys((a + b + c, b + a + c, a + c + b, b + c + d, a + c + d, a + b + d, a + a + b)))


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
    most = 2 if len(word) >= _TWO_SLIPS - 1 else 1
    slips = [other for _, _, other in _near(word, words, _likely_starts(word), most)]
    return list(dict.fromkeys((*slips[: limit // 2], *forms)))[:limit]


def _near(word: str, words: WordList, starts: tuple[str, ...], most: int) -> list[tuple[int, int, str]]:
    """(slips, -frequency, word), best first."""
    found: dict[str, tuple[int, int, str]] = {}
    letters = set(word)
    for start in starts:
        for other, frequency in words.starting_with(start, _CANDIDATES):
            if abs(len(other) - len(word)) > most or other == word:
                continue
            if len(letters.difference(other)) > most or len(set(other) - letters) > most:
                continue
            slips = distance(word, other, most)
            if slips <= most:
                found[other] = (slips, -frequency, other)
    return sorted(found.values())


def distance(one: str, other: str, most: int) -> int:
    """Letters to insert, delete, replace or exchange with their neighbour to make `other` of `one`; above `most`, any
    number above it."""
    start, end = 0, min(len(one), len(other))
    while start < end and one[start] == other[start]:
        start += 1
    tail = 0
    while tail < end - start and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    one, other = one[start : len(one) - tail], other[start : len(other) - tail]
    if not one or not other:
        return len(one) + len(other)
    if len(one) == len(other) == 1:
        return 1
    if len(one) == len(other) == 2 and one == other[::-1]:
        return 1
    return most + 1 if most < 2 else _banded(one, other, most)


def _banded(one: str, other: str, most: int) -> int:
    """The table of Damerau and Levenshtein, as far as it may hold numbers up to `most`."""
    far = most + 1
    if abs(len(one) - len(other)) > most:
        return far
    older: dict[int, int] = {}
    before = {j: j for j in range(min(most, len(other)) + 1)}
    for i, letter in enumerate(one, 1):
        row: dict[int, int] = {0: i} if i <= most else {}
        for j in range(max(1, i - most), min(len(other), i + most) + 1):
            cost = min(before.get(j, far), row.get(j - 1, far)) + 1
            cost = min(cost, before.get(j - 1, far) + (letter != other[j - 1]))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == other[j - 1]:
                cost = min(cost, older.get(j - 2, far) + 1)
            if cost <= most:
                row[j] = cost
        if not row:
            return far
        older, before = before, row
    return before.get(len(other), far)
