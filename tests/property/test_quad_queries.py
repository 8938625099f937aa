"""All sixteen access patterns and ten conjunctive queries give what a naive evaluator gives, on random data."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quadloom.model.quads import Quads
from quadloom.stores.quads.oxigraph import OxigraphQuads

Quad = tuple[str, str, str, str]
nodes = st.sampled_from([f"<urn:n:{n}>" for n in range(5)])
predicates = st.sampled_from([f"<urn:p:{n}>" for n in range(3)])
objects = st.one_of(nodes, st.sampled_from(['"a"', '"a"@en', '"7"^^<http://www.w3.org/2001/XMLSchema#integer>']))
graphs = st.sampled_from([f"<http://g.example/{n}>" for n in range(3)])
datasets = st.sets(st.tuples(nodes, predicates, objects, graphs), max_size=40)

# Conjunctions of triple patterns over all graphs together: stars, chains, cycles, constants, products.
CONJUNCTIONS = [
    "?a <urn:p:0> ?b",
    "?a <urn:p:0> ?b . ?b <urn:p:1> ?c",
    "?a <urn:p:0> ?b . ?a <urn:p:1> ?c",
    "?a <urn:p:0> ?b . ?b <urn:p:0> ?a",
    "?a <urn:p:0> ?b . ?b <urn:p:1> ?c . ?c <urn:p:2> ?a",
    "<urn:n:0> ?p ?o . ?o ?q <urn:n:1>",
    "?a ?p <urn:n:2> . ?a ?p ?b",
    "?a ?p ?a",
    "?a <urn:p:2> ?b . ?c <urn:p:2> ?b . ?c <urn:p:0> ?d . ?d ?p ?a",
    '?a <urn:p:0> "a" . ?b <urn:p:1> "a"@en',
]


@pytest.fixture(scope="module")
def store() -> Iterator[OxigraphQuads]:
    with tempfile.TemporaryDirectory() as folder:
        made = OxigraphQuads(Path(folder) / "quads")
        yield made
        made.close()


def fill(store: OxigraphQuads, dataset: set[Quad]) -> None:
    for number in range(3):
        graph = f"http://g.example/{number}"
        lines = sorted(f"{s} {p} {o} {g} .\n" for s, p, o, g in dataset if g == f"<{graph}>")
        store.replace(Quads.of(graph, "".join(lines).encode()))


@settings(max_examples=40, deadline=None)
@given(dataset=datasets, wanted=st.tuples(nodes, predicates, objects, graphs))
def test_sixteen_patterns(store: OxigraphQuads, dataset: set[Quad], wanted: Quad) -> None:
    fill(store, dataset)
    for bound in itertools.product((False, True), repeat=4):
        s, p, o, g = (term if is_bound else None for term, is_bound in zip(wanted, bound, strict=True))
        pattern = (s, p, o, g)
        naive = {
            f"{' '.join(quad)} ."
            for quad in dataset
            if all(term in (None, value) for term, value in zip(pattern, quad, strict=True))
        }
        found = list(store.match(s, p, o, g))
        assert set(found) == naive
        assert len(found) == len(naive)


@settings(max_examples=40, deadline=None)
@given(dataset=datasets)
def test_ten_conjunctive_queries(store: OxigraphQuads, dataset: set[Quad]) -> None:
    fill(store, dataset)
    triples: set[tuple[str, ...]] = {quad[:3] for quad in dataset}
    for body in CONJUNCTIONS:
        answer = msgspec.json.decode(
            store.query(f"SELECT DISTINCT * {{ {body} }}"), type=dict[str, dict[str, list[object]]]
        )
        names = [str(name) for name in answer["head"]["vars"]]
        found = sorted(tuple(_term(row.get(name)) for name in names) for row in _rows(answer))
        naive = sorted({tuple(row[f"?{name}"] for name in names) for row in evaluate(body, triples)})
        assert found == naive, body


def evaluate(body: str, triples: set[tuple[str, ...]]) -> list[dict[str, str]]:
    """Nested loops, one pattern after the other. DISTINCT, since the engine counts a triple once for each graph."""
    rows: list[dict[str, str]] = [{}]
    for pattern in body.split(" . "):
        terms = pattern.split()
        rows = [
            extended for row in rows for triple in triples if (extended := _extended(row, terms, triple)) is not None
        ]
    return rows


def _extended(row: dict[str, str], terms: list[str], triple: tuple[str, ...]) -> dict[str, str] | None:
    new = dict(row)
    for term, value in zip(terms, triple, strict=True):
        if (new.setdefault(term, value) if term.startswith("?") else term) != value:
            return None
    return new


def _rows(answer: dict[str, dict[str, list[object]]]) -> list[dict[str, dict[str, str]]]:
    return msgspec.convert(answer["results"]["bindings"], list[dict[str, dict[str, str]]])


def _term(cell: dict[str, str] | None) -> str:
    assert cell is not None
    if cell["type"] == "uri":
        return f"<{cell['value']}>"
    if "xml:lang" in cell:
        return f'"{cell["value"]}"@{cell["xml:lang"]}'
    return f'"{cell["value"]}"' + (f"^^<{cell['datatype']}>" if "datatype" in cell else "")
