"""The RDF 1.1 test suites: N-Triples, N-Quads, Turtle, TriG and RDF/XML. Every case must pass."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from pyoxigraph import BlankNode, CanonicalizationAlgorithm, Dataset, Literal, NamedNode, RdfFormat, Store
from pyoxigraph import parse as reference_parse

from quadloom.documents.syntaxes.rdf.files import RdfKind, extract
from quadloom.errors import SyntaxInvalid

SHARED = Path(os.environ.get("QUADLOOM_SHARED") or Path(__file__).resolve().parents[2] / ".." / "shared")
SUITE = SHARED / "suites" / "rdf11"
MANIFEST = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
FOLDERS: dict[str, RdfKind] = {
    "rdf-n-triples": "ntriples",
    "rdf-n-quads": "nquads",
    "rdf-turtle": "turtle",
    "rdf-trig": "trig",
    "rdf-xml": "rdfxml",
}
# The floor: fewer cases than this means that the suite was not found as a whole.
LEAST_CASES = {"ntriples": 70, "nquads": 87, "turtle": 313, "trig": 356, "rdfxml": 166}

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason="the RDF suites are not at ../shared/suites/rdf11")


def name(term: object) -> str:
    assert isinstance(term, NamedNode | BlankNode | Literal)
    return term.value


def cases() -> list[ParameterSet]:
    found: list[ParameterSet] = []
    for folder, kind in FOLDERS.items():
        manifest = SUITE / folder / "manifest.ttl"
        if not manifest.is_file():
            continue
        store = Store()
        store.load(manifest.read_bytes(), RdfFormat.TURTLE, base_iri=manifest.as_uri())
        bases = [name(q.object) for q in store.quads_for_pattern(None, NamedNode(MANIFEST + "assumedTestBase"), None)]
        for quad in store.quads_for_pattern(None, NamedNode(MANIFEST + "action"), None):
            action = Path(name(quad.object).removeprefix("file://"))
            if not action.is_file():
                continue
            results = [
                name(q.object) for q in store.quads_for_pattern(quad.subject, NamedNode(MANIFEST + "result"), None)
            ]
            result = Path(results[0].removeprefix("file://")) if results else None
            types = [
                name(q.object) for q in store.quads_for_pattern(quad.subject, None, None) if "type" in q.predicate.value
            ]
            url = (bases[0] if bases else "http://example.org/") + action.relative_to(manifest.parent).as_posix()
            negative = any("Negative" in one for one in types)
            title = f"{kind}-{name(quad.subject).rpartition('#')[2]}"
            found.append(pytest.param(kind, action, url, result, negative, id=title))
    return sorted(found, key=lambda param: str(param.id))


def canonical(nquads: bytes) -> str:
    dataset = Dataset(reference_parse(nquads, RdfFormat.N_QUADS))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return "\n".join(sorted(str(quad) for quad in dataset))


@pytest.mark.parametrize("kind", LEAST_CASES)
def test_the_suite_is_there(kind: RdfKind) -> None:
    assert sum(param.values[0] == kind for param in cases()) >= LEAST_CASES[kind]


@pytest.mark.parametrize(("kind", "action", "url", "result", "negative"), cases())
def test_case(kind: RdfKind, action: Path, url: str, result: Path | None, negative: bool) -> None:
    if negative:
        with pytest.raises(SyntaxInvalid):
            extract(action.read_bytes(), kind=kind, url=url)
        return
    nquads = extract(action.read_bytes(), kind=kind, url=url)
    if result is not None:
        assert canonical(nquads) == canonical(result.read_bytes())
