"""What the search box offers while somebody types: words that complete the last one, and titles of pages."""

from __future__ import annotations

from typing import Literal

import msgspec

from quadloom.stores.protocols.text import Hit, SearchRequest, TextIndex
from quadloom.stores.text_queries.text_query import MAX_TEXT

_MAX_WORDS, _MAX_PAGES = 5, 5
_MIN_LETTERS = 2  # letters
_MAX_TITLE = 80  # of a title


class Suggestion(msgspec.Struct, frozen=True):
    """`text` replaces what was typed. A page or a thing also has its `url`."""

    kind: Literal["word", "page", "thing"]
    text: str
    url: str = ""


class Suggestions(msgspec.Struct, frozen=True):
    """`hits`: the best pages, from which the caller may add what they describe."""

    found: tuple[Suggestion, ...] = ()
    hits: tuple[Hit, ...] = ()


def suggest(index: TextIndex, typed: str) -> Suggestions:
    """Words come first, the most frequent ones; they complete the last word, unless a blank follows it."""
    typed = typed[:MAX_TEXT].lstrip()
    if len(typed.strip()) < _MIN_LETTERS:
        return Suggestions()
    *before, last = typed.split(" ")
    found: dict[str, Suggestion] = {}
    if len(last) >= _MIN_LETTERS and last.isalnum():
        for word, _ in index.words(last, _MAX_WORDS + 1):
            text = " ".join((*before, word))
            if word != last.lower() and len(found) < _MAX_WORDS:
                found[text.lower()] = Suggestion("word", text)
    hits = index.search(SearchRequest(text=typed, limit=_MAX_PAGES, excerpts=True)).hits
    for hit in hits:
        if hit.title:
            found.setdefault(hit.title.lower(), Suggestion("page", hit.title[:_MAX_TITLE], hit.id))
    return Suggestions(tuple(found.values()), hits)
