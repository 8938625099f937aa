"""Mistakes in queries are explained in a sentence with a place."""

from __future__ import annotations

import pytest

from quadloom.asking.sparql.mistakes import place_of_mistake, pointed_line, undeclared_prefix, word_at
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.asking.sparql.service import QueryService
from quadloom.errors import QuerySyntaxError


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELEC ?s { ?s ?p ?o }", "did you mean SELECT?"),
        ("SELECT ?s { ?s foo:bar ?o }", "unknown prefix foo:"),
        ("SELECT ?s { ?s schem:name ?o }", "did you mean schema:?"),
        ("SELECT ?s { ?s schema:name }", "“}” cannot stand here"),
        ("SELECT ?s { ?s ?p ?o } LIMT 5", "did you mean LIMIT?"),
        ("SELECT ?s { ?s ?p ?o", "ends too early"),
    ],
)
def test_a_mistake_is_a_sentence(service: QueryService, query: str, words: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        service.ask(query).read()
    assert words in caught.value.message
    assert "expected" not in caught.value.message
    assert "^" in caught.value.hint


def test_the_place_of_a_mistake() -> None:
    query = "SELECT ?s\nWHERE { ?s ?p }"
    assert pointed_line(query, 2, 15) == "WHERE { ?s ?p }\n              ^"
    assert word_at(query, 2, 15) == "}"
    assert word_at(query, 9, 1) == "" == pointed_line(query, 9, 1)
    assert undeclared_prefix("PREFIX a: <x:> SELECT * { ?s a:b schema:c ; d:e 1 }", PREFIXES) == "d"


def test_the_caret_stands_under_the_word_that_is_named() -> None:
    query = "PREFIX a: <http://a.example/>\n  SELEC ?s WHERE { ?s ?p ?o }"
    line, column = place_of_mistake(query, 2, 12)
    assert (line, column) == (2, 3) and pointed_line(query, line, column).splitlines()[1] == "  ^"
    assert place_of_mistake("SELECT ?s WHERE {", 1, 18) == (1, 18), "nothing is misspelt"
