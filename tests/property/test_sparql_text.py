"""No page can make an update say anything but its statements, whichever way a server reads escapes."""

from __future__ import annotations

import re

import pyoxigraph as ox
import pytest
import rdflib
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quadloom.documents.syntaxes.terms import iri, literal
from quadloom.errors import StoreError
from quadloom.stores.quads.sparql_text import exchange, graph_name, insertion
from thoroughness import examples

GRAPH = "http://a.example/page"
_CODEPOINT = re.compile(r"\\u([0-9A-Fa-f]{4})|\\U([0-9A-Fa-f]{8})")

# Text that tries to leave its string: quotes, backslashes, escapes, brackets, line ends, comments.
nasty = st.lists(
    st.sampled_from(
        ['"', "\\", "\\u0022", "\\u005C", "\\U0000000A", "u0022", "u", "\n", "\r", "}", "} } ; DROP ALL #", "'''", ">",
         "<x:evil>", ".", "\t", "\x01", "\x7f", "\u2028", "\ufffe", "é", "😀", "@en", "^^<x:y>", "?x", "$y", "{"]
    ),
    max_size=8,
).map("".join)  # fmt: skip
texts = nasty | st.text(max_size=20)
objects = st.one_of(
    texts.map(literal),
    st.tuples(texts, st.sampled_from(["en", "de-CH"])).map(lambda pair: literal(pair[0], pair[1])),
    st.tuples(texts, st.just("urn:x:type")).map(lambda pair: literal(pair[0], datatype=pair[1])),
    texts.map(lambda text: iri(f"http://o.example/{text}")).filter(bool),
)


def line(obj: str) -> str:
    return f"<http://s.example/> <http://p.example/> {obj} <{GRAPH}> ."


def outcome(update: str, before: str = "") -> set[ox.Quad]:
    store = ox.Store()
    store.load(before.encode(), ox.RdfFormat.N_QUADS)
    store.add(ox.Quad(ox.NamedNode("x:a"), ox.NamedNode("x:b"), ox.NamedNode("x:c"), ox.NamedNode("x:other")))
    store.update(update)
    store.remove_graph(ox.NamedNode("x:other"))
    return set(store)


def replaced_first(update: str) -> str:
    """As a server that takes SPARQL 1.1, 19.2 at its word sees it."""
    return _CODEPOINT.sub(lambda match: chr(int(match.group(1) or match.group(2), 16)), update)


def meant(lines: list[str]) -> set[ox.Quad]:
    return set(ox.parse("\n".join(lines).encode(), ox.RdfFormat.N_QUADS))


@settings(max_examples=examples(120, 2000), deadline=None)
@given(st.lists(objects, min_size=1, max_size=4))
@example(['"\\\\u0022 } } ; DROP ALL #"'])
@example(['"\\\\\\\\u005C"', '"\\\\U0000005C"'])
@example(['"\\u0022 } } ; DROP ALL #"'])
def test_statements_go_in_as_they_are(found: list[str]) -> None:
    lines = sorted({line(obj) for obj in found})
    update = insertion([(GRAPH, lines)])
    assert outcome(update) == meant(lines)
    assert outcome(replaced_first(update)) == meant(lines)


@settings(max_examples=examples(120, 2000), deadline=None)
@given(st.lists(objects, min_size=1, max_size=3), st.lists(objects, max_size=3))
def test_an_exchange_touches_only_what_it_names(old: list[str], new: list[str]) -> None:
    before, after = {line(obj) for obj in old}, {line(obj) for obj in new}
    kept = line('"kept"')
    update = exchange(GRAPH, sorted(before - after - {kept}) or [line('"none"')], sorted(after - before))
    start = "\n".join({*before, kept}) + "\n"
    expected = meant(sorted({*(before & after), *after, kept}))
    assert outcome(update, start) == expected
    assert outcome(replaced_first(update), start) == expected


@settings(max_examples=examples(120, 2000), deadline=None)
@given(texts)
def test_a_graph_is_named_or_refused(name: str) -> None:
    try:
        text = graph_name(f"http://a.example/{name}")
    except StoreError:
        return
    assert re.fullmatch(r"<[^\x00-\x20<>\"{}|^`\\]*>", text)


@pytest.mark.parametrize(
    "statement",
    [
        '"a" } } ; DROP ALL ; INSERT DATA { GRAPH <x:g> { <x:s> <x:p> "b"',
        "<x:o> . <x:s> <x:p> <x:o2>",
        "?anything",
        "_:b",
    ],
)
def test_what_is_not_one_statement_is_refused(statement: str) -> None:
    with pytest.raises(StoreError):
        insertion([(GRAPH, [line(statement)])])


def test_another_engine_reads_the_same() -> None:
    """rdflib replaces escapes in the whole text before it parses, as the recommendation has it."""
    values = [
        "\\u0022 } } ; DROP ALL #",
        'say "\\\\" }',
        "\\\\u005C",
        "\\U0000000A",
        "a\nb\r\tc",
        "'''",
        "x\\",
        "é \x01",
    ]
    lines = sorted(line(literal(value)) for value in values)
    store = rdflib.Dataset()
    store.update(insertion([(GRAPH, lines)]))
    assert {str(obj) for obj in store.graph(GRAPH).objects()} == set(values)
    store.update(exchange(GRAPH, lines[:4], [line('"new"')]))
    kept = {quad.object.value for quad in meant(lines[4:]) if isinstance(quad.object, ox.Literal)}
    assert {str(obj) for obj in store.graph(GRAPH).objects()} == {*kept, "new"}


def test_a_triple_as_object_is_one_statement() -> None:
    nested = '<<( <x:a> <x:b> <<( <x:c> <x:d> "e\\"" )>> )>>'
    update = insertion([(GRAPH, [line(nested)])])
    assert outcome(update) == meant([line(nested)])
