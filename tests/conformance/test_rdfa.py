"""The RDFa test suite: every case must give the answer that its ASK query expects."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyoxigraph
import pytest

from quadloom.documents.syntaxes.rdfa import extract

SHARED = Path(os.environ.get("QUADLOOM_SHARED") or Path(__file__).resolve().parents[2] / ".." / "shared")
SUITE = SHARED / "suites" / "rdfa"
EXTENSIONS = {"html4": "html", "html5": "html", "xhtml1": "xhtml", "xhtml5": "xhtml", "xml": "xml", "svg": "svg"}
VERSIONS = ("rdfa1.1", "rdfa1.1-lite", "rdfa1.1-role", "rdfa1.1-vocab", "rdfa1.1-proc", "rdfa1.0")
# The floor: fewer files than this means that the suite was not found as a whole.
LEAST_FILES = {
    "rdfa1.1": 660,
    "rdfa1.1-lite": 174,
    "rdfa1.1-role": 23,
    "rdfa1.1-vocab": 30,
    "rdfa1.1-proc": 17,
    "rdfa1.0": 239,
}
KNOWN_FAILURES: frozenset[str] = frozenset()

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason=f"the RDFa suite is not at {SUITE}")


class Case(NamedTuple):
    name: str
    path: Path
    url: str
    host: str
    version: str
    option: str
    expected: bool


def cases(version: str) -> Iterator[Case]:
    manifest = json.loads((SUITE / "manifest.jsonld").read_text(encoding="utf-8"))
    for test in manifest["@graph"]:
        if version not in test["versions"]:
            continue
        for host in test["hostLanguages"]:
            plain_host = host.removesuffix("-invalid")
            name = f"{version}/{host}/{test['num']}.{EXTENSIONS[plain_host]}"
            path = SUITE / "test-cases" / name
            if path.exists():
                url = f"http://rdfa.info/test-suite/test-cases/{name}"
                option = test.get("queryParam", "")
                yield Case(name, path, url, plain_host, version, option, test.get("expectedResults", True))


def vocabulary(url: str) -> bytes:
    if url != "http://rdfa.info/vocabs/rdfa-test":
        raise LookupError(url)
    return (SUITE / "vocabs" / "rdfa-test.html").read_bytes()


def answer(case: Case) -> bool:
    nquads = extract(
        case.path.read_bytes(),
        url=case.url,
        host=case.host,  # type: ignore[arg-type]
        version="1.0" if case.version == "rdfa1.0" else "1.1",
        vocab_expansion="vocab_expansion" in case.option,
        processor_graph="rdfagraph" in case.option,
        loader=vocabulary,
    )
    store = pyoxigraph.Store()
    store.load(nquads, pyoxigraph.RdfFormat.N_QUADS)
    return bool(store.query(case.path.with_suffix(".sparql").read_text(encoding="utf-8")))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_case_of(version: str) -> None:
    found = list(cases(version))
    failures = {case.name for case in found if answer(case) != case.expected}
    assert len(found) >= LEAST_FILES[version]
    assert failures == {name for name in KNOWN_FAILURES if name.startswith(f"{version}/")}
