"""The W3C suite of *Microdata to RDF*: every case must give a graph isomorphic to its Turtle file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, Quad, RdfFormat, parse

from quadloom.documents.syntaxes import microdata

SHARED = Path(os.environ.get("QUADLOOM_SHARED") or Path(__file__).resolve().parents[2] / ".." / "shared")
SUITE = SHARED / "suites" / "microdata-rdf"
BASE = "http://w3c.github.io/microdata-rdf/tests/"
CASES = sorted(path.stem for path in SUITE.glob("*.ttl") if path.with_suffix(".html").exists())
FAILING: frozenset[str] = frozenset()


def canonical(data: bytes, form: RdfFormat, base: str) -> set[Quad]:
    dataset = Dataset(Quad(q.subject, q.predicate, q.object) for q in parse(data, form, base_iri=base))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return set(dataset)


def test_the_suite_is_there() -> None:
    if not SUITE.is_dir():
        pytest.skip(f"no suite in {SUITE}")
    assert len(CASES) >= 60


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    url = f"{BASE}{case}.html"
    found = microdata.extract((SUITE / f"{case}.html").read_bytes(), url=url)
    expected = (SUITE / f"{case}.ttl").read_bytes()
    same = canonical(found, RdfFormat.N_TRIPLES, url) == canonical(expected, RdfFormat.TURTLE, url)
    assert same != (case in FAILING), found.decode()
