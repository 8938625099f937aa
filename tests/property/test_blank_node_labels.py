"""Skolemisation does not see labels, the order of lines, or repeated lines."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_128_digest

from quadloom.model.quads import Triple
from quadloom.syntaxes.rdf import blank_nodes
from quadloom.syntaxes.rdf.blank_nodes import _encodable, canonical, canonical_in_python, skolemise
from quadloom.syntaxes.terms import RDF, TYPE
from thoroughness import examples

PAGE = "https://example.org/page"
NODES = st.integers(0, 9).map(lambda n: f"_:b{n}")
IRIS = st.integers(0, 2).map(lambda n: f"<a:i{n}>")
LITERALS = st.sampled_from(['"x"', '"_:b1"', '"a \\" <a:g> ."@en', '"1"^^<a:d>'])
STATEMENTS = st.tuples(
    st.one_of(NODES, NODES, IRIS), st.integers(0, 1).map(lambda n: f"<a:p{n}>"), st.one_of(NODES, NODES, IRIS, LITERALS)
)


@settings(max_examples=examples(150, 1500), deadline=None)
@given(st.lists(STATEMENTS, max_size=40), st.permutations(range(10)), st.randoms(use_true_random=False))
def test_labels_and_order_do_not_matter(
    statements: list[tuple[str, str, str]], names: list[int], shuffler: random.Random
) -> None:
    renamed = {f"_:b{old}": f"_:z{new}x" for old, new in enumerate(names)}
    one = "".join(f"{s} {p} {o} .\n" for s, p, o in statements)
    lines = [f"{renamed.get(s, s)} {p} {renamed.get(o, o)} <{PAGE}> .\n" for s, p, o in statements] * 2
    shuffler.shuffle(lines)
    out = skolemise(one.encode(), PAGE)
    assert out == skolemise("".join(lines).encode(), PAGE)
    assert out.count(b"\n") == len(set(statements))
    assert out == skolemise(out, PAGE)


SPEAKING = st.sampled_from(
    [TYPE, "<http://schema.org/name>", "<http://schema.org/price>", "<a:p>", f"<{RDF}first>", f"<{RDF}rest>"]
)
TEXTS = st.text(max_size=3).map(lambda text: f'"{text}"')
TRIPLES = st.tuples(
    st.one_of(NODES, NODES, IRIS),
    SPEAKING,
    st.one_of(NODES, NODES, IRIS, LITERALS, TEXTS, st.just("<<( _:b1 <a:p> _:b2 )>>")),
)


@settings(max_examples=examples(300, 3000), deadline=None)
@given(st.lists(TRIPLES, max_size=30))
def test_both_twins_give_the_same_lines(triples: list[Triple]) -> None:
    found = canonical(triples, PAGE)
    assert found == canonical_in_python([_encodable(triple) for triple in triples], PAGE)


def test_the_native_twin_is_in_use_if_it_was_built() -> None:
    graphs = pytest.importorskip("quadloom.native.graphs")
    assert vars(blank_nodes)["_native"] is graphs.canonical
    roles: dict[str, int] = {}
    triples = (("_:a", "<a:name>", '"x"'), ("_:b", "<a:name>", '"y"'), ("<a:s>", "<a:p>", "<a:o>"))
    found = graphs.canonical(triples, PAGE, blank_nodes.PREFIX, xxh3_128_digest, roles, blank_nodes._role)
    assert found == tuple(canonical_in_python(triples, PAGE))
