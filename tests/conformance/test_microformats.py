"""The suite of microformats.org: every case must give exactly its JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat
from pyoxigraph import parse as parse_rdf

from quadloom.documents.syntaxes import microformats
from quadloom.documents.syntaxes.microformats.rdf import TYPES

SHARED = Path(os.environ.get("QUADLOOM_SHARED") or Path(__file__).resolve().parents[2] / ".." / "shared")
SUITE = SHARED / "suites" / "microformats"
CASES = sorted(str(path.relative_to(SUITE).with_suffix("")) for path in SUITE.rglob("*.json"))
FAILING: frozenset[str] = frozenset()


def page_of(case: str) -> tuple[bytes, str]:
    # The unit tests write the address of their page without a slash, the others with one.
    url = "http://example.test" if case.startswith("microformats-v2-unit") else "http://example.com/"
    return (SUITE / f"{case}.html").read_bytes(), url


def test_the_suite_is_there() -> None:
    if not SUITE.is_dir():
        pytest.skip(f"no suite in {SUITE}")
    assert len(CASES) >= 113


@pytest.mark.parametrize("case", CASES)
def test_case(case: str) -> None:
    body, url = page_of(case)
    found = microformats.parse(body, url=url)
    expected = json.loads((SUITE / f"{case}.json").read_text())
    assert (found == expected) != (case in FAILING), json.dumps(found, indent=1)


@pytest.mark.parametrize("case", CASES)
def test_rdf_of_a_case_is_valid(case: str) -> None:
    body, url = page_of(case)
    statements = list(parse_rdf(microformats.extract(body, url=url), RdfFormat.N_TRIPLES))
    known = {item["type"][0] for item in json.loads((SUITE / f"{case}.json").read_text())["items"]}
    assert bool(statements) == bool(known & {*TYPES})
