"""Words that a snippet marks are exactly those of the text that fold to a word of the question."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from quadloom.stores.protocols.text import Highlights
from quadloom.stores.text_queries.snippets import CLOSE, OPEN, snippet
from quadloom.stores.text_queries.text_query import fold

# Letters whose folded form has no letter, one or several: é, ß, ﬁ, …, a combining accent, dotted I, CJK.
_TEXTS = st.text(st.sampled_from("abcK9_-. éßﬁ…\u0301İı日Å"), max_size=60)
_WORD = re.compile(r"\w+")


@given(_TEXTS, st.text(st.sampled_from("abcké9ßå日"), min_size=1, max_size=4))
def test_whole_words_are_marked(text: str, word: str) -> None:
    shown = snippet(text, Highlights(words=frozenset((fold(word),))), length=1000)
    marked = re.findall(f"{OPEN}(.*?){CLOSE}", shown)
    assert marked == [found for found in _WORD.findall(text) if fold(found) == fold(word)]
    assert shown.replace(OPEN, "").replace(CLOSE, "") == text.strip()


@given(st.text(max_size=200), st.text(max_size=20))
def test_marks_come_from_us_alone(text: str, question: str) -> None:
    shown = snippet(text, Highlights(frozenset((fold(question),)), (question,), (question,), (question,)))
    assert shown.count(OPEN) == shown.count(CLOSE)
    assert not re.search(f"{OPEN}[^{CLOSE}]*{OPEN}", shown)
    assert "\n" not in shown


def test_lines_that_are_no_sentences_are_kept_apart() -> None:
    """A definition list is a line for each term and value; without marks it reads as a bag of words."""
    text = "The Distant Lighthouse\nauthor\nIvo Jansson\nisbn:\n978-3-605\nA book. \nIt has 445 pages."
    shown = snippet(text, Highlights(words=frozenset(("jansson",))))
    assert shown == (
        f"The Distant Lighthouse · author · Ivo {OPEN}Jansson{CLOSE} · isbn: 978-3-605 · A book. It has 445 pages."
    )
