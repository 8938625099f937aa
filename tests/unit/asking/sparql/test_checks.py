"""The scan before the parser: what it refuses, and what it must not mistake for something else."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadloom.asking.sparql.checks import check, scan
from quadloom.errors import QueryRefused
from quadloom.settings import LimitSettings

LIMITS = LimitSettings()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { SERVICE <http://127.0.0.1/> { ?s ?p ?o } }",
        "SELECT * { service silent ?x { ?s ?p ?o } }",
        "SELECT * { \\u0053ERVICE <http://127.0.0.1/> { ?s ?p ?o } }",
        'SELECT * { BIND("\\u0022 AS ?x) SERVICE <x:y> {} # " AS ?y) }',
        "SELECT * { FILTER(?a<b:c)SERVICE:x#>\n{ ?s ?p ?o } }",
        "LOAD <http://127.0.0.1/>",
        "INSERT DATA { <x:a> <x:b> <x:c> }",
        "DELETE WHERE { ?s ?p ?o }",
        "DROP ALL",
        "SELECT * { ?s ?p " + "(" * 5000 + "1" + ")" * 5000 + " }",
        "SELECT * { " + "{" * 101 + "}" * 101 + " }",
        "SELECT * { " + "{ ?s ?p ?o } UNION " * 201 + "{ ?s ?p ?o } }",
        "SELECT * { ?s ?p ?o } # " + "x" * (64 * 1024),
        "SELECT * { ?s ?p '\\UFFFFFFFF' }",
    ],
)
def test_refused(query: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        check(query, LIMITS)
    assert caught.value.hint


@pytest.mark.parametrize(
    "query",
    [
        'SELECT * { ?s ?p "SERVICE <x> { LOAD" }',
        "SELECT * { ?s ?p '''a ' SERVICE '' b''' }",
        "SELECT * { ?s ?p ?o } # SERVICE <x> {",
        "SELECT * { <http://x.example/SERVICE> ?p ?service }",
        "SELECT * { ?s x:service ?o ; x:load ?l }",
        'SELECT * { ?s ?p "' + "(" * 5000 + '" }',
        "SELECT * { <http://x.example/a_(b)#frag> ?p ?o }",
        "SELECT * { ?s ?p ?o FILTER(?o < 3 && ?o > 1) }",
    ],
)
def test_accepted(query: str) -> None:
    assert check(query, LIMITS).text == query


def test_form_and_dataset() -> None:
    assert check("PREFIX a: <x:select> ASK { ?s ?p ?o }", LIMITS).form == "ask"
    assert check("DESCRIBE <x:y>", LIMITS).form == "graph"
    assert check("SELECT * FROM <x:g> { ?s ?p ?o }", LIMITS).has_dataset
    assert not check("SELECT ?from { ?from ?p 'FROM' }", LIMITS).has_dataset


@given(st.text(alphabet="<>\"'\\{}()#?:a \n", max_size=200))
def test_the_scan_loses_nothing(text: str) -> None:
    """Tokens stand where they say, in order, and never overlap."""
    end = 0
    for token in scan(text):
        assert token.start >= end
        assert text[token.start : token.end] == token.text
        end = token.end


def test_the_scan_is_linear() -> None:
    for bait in ('"', "'''", "<", "\\u00", "a:", '"\\'):
        text = bait * (60_000 // len(bait))
        started = time.process_time()
        scan(text)
        assert time.process_time() - started < 1.0, bait


def test_an_odd_iri_is_judged_in_linear_time() -> None:
    begun = time.process_time()
    check(f"SELECT * {{ <x:{')' * 20_000}{'load' * 10_000}> ?p ?o }}", LimitSettings(query_length=1 << 20))
    assert time.process_time() - begun < 4  # milliseconds; the cube of the length before
