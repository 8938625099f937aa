"""Hits of text patterns: looked up once for the same words within two seconds."""

from __future__ import annotations

import pytest

from quadloom.asking.sparql.checks import check
from quadloom.asking.sparql.text_patterns import PatternHitCache, replace_text_patterns
from quadloom.settings import LimitSettings
from quadloom.stores.protocols.text import SearchAnswer, SearchRequest, TextDocument
from quadloom_lab.memory.text import MemoryText


class Counting(MemoryText):
    asked = 0

    def search(self, request: SearchRequest) -> SearchAnswer:
        self.asked += 1
        return super().search(request)


def test_the_same_words_are_looked_up_once_in_two_seconds() -> None:
    now, text = 0.0, Counting()
    text.put([TextDocument(id="http://a.example/", title="Lighthouse")])
    text.commit()
    kept = PatternHitCache(text, lambda: now)
    checked = check('SELECT * { ?p ql:matches "lighthouse" }', LimitSettings())
    for at, asked in ((0.0, 1), (1.9, 1), (2.1, 2)):
        now = at
        assert "VALUES ?p { <http://a.example/> }" in replace_text_patterns(checked, kept)
        assert text.asked == asked
    other = check('SELECT * { (?p ?score) ql:matches ("lighthouse" 5) }', LimitSettings())
    assert "(<http://a.example/> " in replace_text_patterns(other, kept)
    assert text.asked == 3, "another number of hits is another question"


@pytest.mark.parametrize(
    ("query", "needed"),
    [
        ('SELECT ?p { ?p ql:matches "lighthouse" } LIMIT 2', 2),
        ('PREFIX x: <http://x/> SELECT * WHERE { ?p ql:matches "lighthouse" . } LIMIT 0003', 3),
        ('SELECT ?p ?s { (?p ?s) ql:matches ("lighthouse" 4) } LIMIT 9', 4),
        ('SELECT ?p { ?p ql:matches "lighthouse" } LIMIT 0', 1),
        # Something else drops hits or orders them: all are needed.
        ('SELECT ?p { ?p ql:matches "lighthouse" . ?p a ?t } LIMIT 2', 6),
        ('SELECT ?p { ?p ql:matches "lighthouse" FILTER(?p != <x:y>) } LIMIT 2', 6),
        ('SELECT ?p { ?s ?o ?p . ?p ql:matches "lighthouse" } LIMIT 2', 6),
        ('SELECT ?p { ?p ql:matches "lighthouse" } ORDER BY ?p LIMIT 2', 6),
        ('SELECT ?p { ?p ql:matches "lighthouse" } LIMIT 2 OFFSET 1', 6),
        ('SELECT ?p { ?p ql:matches "lighthouse" } OFFSET 1 LIMIT 2', 6),
        ('SELECT DISTINCT ?p { ?p ql:matches "lighthouse" } LIMIT 2', 6),
        ('SELECT (COUNT(*) AS ?n) { ?p ql:matches "lighthouse" } LIMIT 2', 6),
        ('SELECT ?p { { SELECT ?p { ?p ql:matches "lighthouse" } LIMIT 2 } }', 6),
        ('SELECT ?p { OPTIONAL { ?p ql:matches "lighthouse" } } LIMIT 2', 6),
        ('CONSTRUCT { ?p a ?p } WHERE { ?p ql:matches "lighthouse" } LIMIT 2', 6),
        ('ASK { ?p ql:matches "lighthouse" }', 6),
        ('SELECT ?p { ?p ql:matches "lighthouse" } LIMIT 99999999999999999999', 6),
    ],
)
def test_only_as_many_hits_as_a_plain_limit_can_show(query: str, needed: int) -> None:
    text = MemoryText()
    text.put([TextDocument(id=f"http://a.example/{number}", title="Lighthouse") for number in range(6)])
    text.commit()
    assert (
        replace_text_patterns(check(query, LimitSettings()), PatternHitCache(text)).count("<http://a.example/")
        == needed
    )
