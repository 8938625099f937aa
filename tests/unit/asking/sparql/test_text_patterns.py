"""Hits of text patterns: looked up once for the same words within two seconds."""

from __future__ import annotations

import pytest

from quadloom.asking.sparql.checks import check
from quadloom.asking.sparql.text_patterns import PatternHitCache, replace_text_patterns
from quadloom.errors import QueryLimit, QueryRefused, QuerySyntaxError
from quadloom.model.text import TextDocument
from quadloom.settings import LimitSettings
from quadloom.stores.protocols.text import SearchAnswer, SearchRequest
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
        assert "VALUES ?p { <http://a.example/> }" in replace_text_patterns(checked, kept, LimitSettings())
        assert text.asked == asked
    other = check('SELECT * { (?p ?score) ql:matches ("lighthouse" 5) }', LimitSettings())
    assert "(<http://a.example/> " in replace_text_patterns(other, kept, LimitSettings())
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
    rewritten = replace_text_patterns(check(query, LimitSettings()), PatternHitCache(text), LimitSettings())
    assert rewritten.count("<http://a.example/") == needed


@pytest.mark.parametrize("number", ["²", "9" * 6000, "٣", "1" * 10])
def test_what_is_no_number_of_hits_is_a_mistake_in_the_query(number: str) -> None:
    text, limits = MemoryText(), LimitSettings()
    query = f'SELECT ?p {{ ?p ql:matches ("x" {number}) }}'
    with pytest.raises(QuerySyntaxError, match="ql:matches at line 1"):
        replace_text_patterns(check(query, limits), PatternHitCache(text), limits)
    plain = f'SELECT ?p {{ ?p ql:matches "x" }} LIMIT {number}'
    assert "VALUES" in replace_text_patterns(check(plain, limits), PatternHitCache(text), limits), "the engine decides"


def _lighthouses(pages: int) -> Counting:
    text = Counting()
    text.put([TextDocument(id=f"http://a.example/{number}", title="Lighthouse") for number in range(pages)])
    text.commit()
    return text


def _patterns(count: int) -> str:
    return "SELECT * { " + " ".join(f'?p{n} ql:matches ("lighthouse" {n + 10}) .' for n in range(count)) + " }"


def test_too_many_patterns_are_refused_before_any_search() -> None:
    text, limits = _lighthouses(1), LimitSettings()
    query = "SELECT * { " + '?a ql:matches("whales" 10000). ' * 1900 + "}"
    with pytest.raises(QueryRefused, match="1900 text patterns, more than 16") as refused:
        replace_text_patterns(check(query, limits), PatternHitCache(text), limits)
    assert text.asked == 0 and "limits.query_patterns" in refused.value.hint


def test_hits_and_bytes_of_all_patterns_are_limited_together() -> None:
    text = _lighthouses(9)
    for limits in (LimitSettings(query_hits=20), LimitSettings(query_hit_bytes=19 * len("http://a.example/0"))):
        assert replace_text_patterns(check(_patterns(2), limits), PatternHitCache(text), limits).count("<http") == 18
        with pytest.raises(QueryRefused, match=r"more than .* hits or .* bytes"):
            replace_text_patterns(check(_patterns(3), limits), PatternHitCache(text), limits)


def test_searches_count_as_time_of_the_query() -> None:
    ticks = iter(range(0, 1000, 4))
    text, limits = _lighthouses(1), LimitSettings(query_seconds=10.0)
    with pytest.raises(QueryLimit, match="more than 10 seconds"):
        replace_text_patterns(check(_patterns(16), limits), PatternHitCache(text), limits, lambda: float(next(ticks)))
    assert text.asked == 3, "the rest is not searched for"


def test_cached_hits_have_a_bounded_size() -> None:
    now, text = 0.0, MemoryText()
    text.put([TextDocument(id=f"http://a.example/{n:0900}", title="Lighthouse") for n in range(1000)])
    text.commit()
    cache = PatternHitCache(text, lambda: now)
    for limit in range(1000, 1020):
        assert len(cache.hits(SearchRequest(text="lighthouse", limit=limit, snippets=False))) == 1000
        assert cache.size <= 4 << 20
    now = 3.0
    cache.hits(SearchRequest(text="nothing", snippets=False))
    assert cache.size == 0, "what has expired is not kept"
