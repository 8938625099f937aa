"""Skolemisation does not see labels, the order of lines, or repeated lines."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh3_128_digest

from native_parts import native_part
from quadloom.documents.syntaxes.rdf import blank_nodes
from quadloom.documents.syntaxes.rdf.blank_nodes import _encodable, canonical, canonical_in_python, skolemise
from quadloom.documents.syntaxes.terms import RDF, TYPE
from quadloom.model.quads import Triple
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
def test_both_implementations_give_the_same_lines(triples: list[Triple]) -> None:
    found = canonical(triples, PAGE)
    assert found == canonical_in_python([_encodable(triple) for triple in triples], PAGE)


def test_the_native_part_is_in_use() -> None:
    graphs = native_part("graphs")
    assert vars(blank_nodes)["_native"] is graphs.canonical
    roles: dict[str, int] = {}
    triples = (("_:a", "<a:name>", '"x"'), ("_:b", "<a:name>", '"y"'), ("<a:s>", "<a:p>", "<a:o>"))
    found = graphs.canonical(triples, PAGE, blank_nodes.PREFIX, xxh3_128_digest, roles, blank_nodes._role)
    assert found == tuple(canonical_in_python(triples, PAGE))


def _native_lines(triples: tuple[Triple, ...]) -> tuple[bytes, list[str]] | None:
    graphs = native_part("graphs")
    return graphs.canonical(triples, PAGE, blank_nodes.PREFIX, xxh3_128_digest, {}, blank_nodes._role)


def test_nodes_that_only_their_neighbours_tell_apart_are_named_natively() -> None:
    """Ten rounds of ancestors do not reach the end of the path, so that only refinement tells its nodes apart."""
    path = [(f"_:b{n}", "<a:next>", f"_:b{n + 1}") for n in range(25)]
    offers = [(f"_:p{n}", "<a:offer>", f"_:o{n}") for n in range(3)]
    prices = [(f"_:o{n}", "<a:price>", f'"{n}"') for n in range(3)]
    triples = (*path, *offers, *prices)
    assert _native_lines(triples) == tuple(canonical_in_python(triples, PAGE))


def test_interchangeable_nodes_are_left_to_python() -> None:
    assert _native_lines((("_:a", "<a:p>", "_:b"), ("_:c", "<a:p>", "_:d"))) is None


SEVERAL = st.lists(
    st.tuples(st.integers(0, 14), st.integers(0, 1), st.one_of(st.integers(0, 14), st.sampled_from(['"x"', '"y"']))),
    max_size=60,
)


@settings(max_examples=examples(200, 3000), deadline=None)
@given(SEVERAL)
def test_both_implementations_refine_alike(links: list[tuple[int, int, int | str]]) -> None:
    triples = tuple((f"_:n{s}", f"<a:p{p}>", f"_:n{o}" if isinstance(o, int) else o) for s, p, o in links)
    found = _native_lines(triples)
    assert found is None or found == tuple(canonical_in_python(triples, PAGE))
