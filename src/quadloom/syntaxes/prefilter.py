"""Which syntaxes a page may hold, by its bytes alone.

Most pages carry few of the syntaxes we read, and looking for them in the tree costs more than looking for a telling
word in the source. All words are looked for in one pass of an automaton: 1.5 ns a byte, however many they are. One pass
for each syntax cost 180 µs on a 38 KB page, this one costs 60.
"""

from __future__ import annotations

from functools import lru_cache

import re2

_NONE: frozenset[bytes] = frozenset()


def signs_in(body: bytes, patterns: tuple[bytes, ...]) -> frozenset[bytes]:
    """Those of the patterns (RE2 syntax, over UTF-8) that match somewhere in the body."""
    if not patterns:
        return _NONE
    return frozenset([patterns[number] for number in _automaton(patterns).Match(body) or ()])


@lru_cache(maxsize=64)
def _automaton(patterns: tuple[bytes, ...]) -> re2.Set:
    automaton = re2.Set.SearchSet()
    for pattern in patterns:
        automaton.Add(pattern)
    automaton.Compile()
    return automaton
