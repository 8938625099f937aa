"""The quick way to find a snippet's words agrees with looking at every word."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from quadloom.stores import text_query

TEXTS = st.text(alphabet="abAB _-.,1", max_size=60)
WORDS = st.sampled_from(["a", "ab", "aab", "b*", "ab*", "1", "-a", '"a b"'])
QUERIES = st.lists(WORDS, min_size=1, max_size=3).map(" ".join)


@given(TEXTS, QUERIES)
def test_ascii_and_other_texts_are_marked_alike(text: str, query: str) -> None:
    clauses = text_query.parse(query)
    # One character beyond ASCII at the end sends the same text down the general way.
    assert text_query._places(text, clauses) == text_query._places(f"{text} é", clauses)
