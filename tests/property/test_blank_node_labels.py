"""Skolemisation does not see labels, the order of lines, or repeated lines."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from quadloom.syntaxes.rdf.blank_nodes import skolemise
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
