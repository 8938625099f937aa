"""Cases of our own for each syntax (own/README.md): a clone without the public suites still checks its parsers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from quadloom.documents.syntaxes import jsonld, microdata, microformats, rdfa
from quadloom.documents.syntaxes.rdf import files
from quadloom.errors import SyntaxInvalid
from quadloom.model.url import absolute

OWN = Path(__file__).parent / "own"
CASES = sorted(path for path in OWN.glob("*/*") if ".expected." not in path.name)
COUNTS = {
    "jsonld": 10,
    "microdata": 4,
    "microformats": 8,
    "nquads": 2,
    "ntriples": 3,
    "rdfa": 7,
    "rdfxml": 2,
    "trig": 2,
    "turtle": 4,
}


def no_document(url: str) -> bytes:
    raise OSError(f"nothing at {url}")


def extract_jsonld(body: bytes, *, url: str) -> bytes:
    return jsonld.extract(body, url=url, content_type="application/ld+json", loader=no_document)


EXTRACT: dict[str, Callable[..., bytes]] = {
    "jsonld": extract_jsonld,
    "microdata": microdata.extract,
    "rdfa": rdfa.extract,
    **{kind: partial(files.extract, kind=kind) for kind in ("ntriples", "nquads", "turtle", "trig", "rdfxml")},
}


def canonical(nquads: bytes) -> list[str]:
    dataset = Dataset(parse(nquads, RdfFormat.N_QUADS))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return sorted(str(quad) for quad in dataset)


def test_every_case_is_there() -> None:
    assert Counter(path.parent.name for path in CASES) == COUNTS


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_case(path: Path) -> None:
    syntax, body = path.parent.name, path.read_bytes()
    url = f"http://own.example/{syntax}/{path.name}"
    expected = path.with_suffix(".expected.nq")
    if syntax == "microformats":
        assert microformats.parse(body, url=url) == json.loads(path.with_suffix(".expected.json").read_bytes())
    elif expected.is_file():
        assert canonical(EXTRACT[syntax](body, url=url)) == canonical(expected.read_bytes())
    else:
        with pytest.raises(SyntaxInvalid):
            EXTRACT[syntax](body, url=url)


def test_urls() -> None:
    cases = json.loads((OWN / "url.json").read_bytes())
    assert len(cases) == 10
    assert [absolute(reference, base) for reference, base, _ in cases] == [expected for *_, expected in cases]
