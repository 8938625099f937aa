"""Hits of text patterns: looked up once for the same words within two seconds."""

from __future__ import annotations

from quadloom.asking.query_checks import check
from quadloom.asking.text_patterns import KeptHits, replace_text_patterns
from quadloom.settings import Limits
from quadloom.stores.memory_text import MemoryText
from quadloom.stores.protocols import SearchAnswer, SearchRequest, TextDocument


class Counting(MemoryText):
    asked = 0

    def search(self, request: SearchRequest) -> SearchAnswer:
        self.asked += 1
        return super().search(request)


def test_the_same_words_are_looked_up_once_in_two_seconds() -> None:
    now, text = 0.0, Counting()
    text.put([TextDocument(id="http://a.example/", title="Lighthouse")])
    text.commit()
    kept = KeptHits(text, lambda: now)
    checked = check('SELECT * { ?p ql:matches "lighthouse" }', Limits())
    for at, asked in ((0.0, 1), (1.9, 1), (2.1, 2)):
        now = at
        assert "VALUES ?p { <http://a.example/> }" in replace_text_patterns(checked, kept)
        assert text.asked == asked
    other = check('SELECT * { (?p ?score) ql:matches ("lighthouse" 5) }', Limits())
    assert "(<http://a.example/> " in replace_text_patterns(other, kept)
    assert text.asked == 3, "another number of hits is another question"
