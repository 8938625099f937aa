"""The JSON-LD 1.1 test suite: toRdf, HTML and remote documents. Every case must pass, with its error code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from quadloom.documents.syntaxes import jsonld
from quadloom.documents.syntaxes.iri import resolve
from quadloom.documents.syntaxes.jsonld.loader import Fetch, LoadedDocument, fetch_document, is_json, links_of
from quadloom.documents.syntaxes.jsonld.terms import invalid
from quadloom.errors import SyntaxInvalid

SHARED = Path(os.environ.get("QUADLOOM_SHARED") or Path(__file__).resolve().parents[2] / ".." / "shared")
SUITE = SHARED / "suites" / "json-ld"
BASE = "https://w3c.github.io/json-ld-api/tests/"
CONTEXT_LINK = "http://www.w3.org/ns/json-ld#context"
TYPES = {".jsonld": "application/ld+json", ".json": "application/json", ".html": "text/html"}
# The floor: fewer cases than this means that the suite was not found as a whole.
LEAST_CASES = {"toRdf": 338, "html": 32, "remote-doc": 18}

pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason="the JSON-LD suite is not at ../shared/suites/json-ld")


def cases(manifest: str) -> list[ParameterSet]:
    path = SUITE / f"{manifest}-manifest.jsonld"
    if not path.is_file():
        return []
    found = []
    for case in json.loads(path.read_text())["sequence"]:
        option = case.get("option", {})
        if option.get("specVersion") == "json-ld-1.0" or option.get("produceGeneralizedRdf"):
            continue
        if manifest == "html" and case["@id"] == "#te006":
            continue  # an error of expansion; `extract` is toRdf, for which a page without a script is empty
        if case["input"].startswith("expand/"):
            continue  # one case borrows its input from a part of the suite that is not in the folder
        found.append(pytest.param(case, id=case["@id"].lstrip("#")))
    return found


def load(url: str) -> bytes:
    if not url.startswith(BASE):
        raise OSError(f"nothing at {url}")
    return (SUITE / url.removeprefix(BASE).partition("#")[0]).read_bytes()


def canonical(nquads: bytes) -> str:
    dataset = Dataset(parse(nquads, RdfFormat.N_QUADS))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return "\n".join(sorted(str(quad) for quad in dataset))


def run(case: dict[str, Any], content_type: str) -> bytes:
    option = case.get("option", {})
    context = option.get("expandContext")
    return jsonld.extract(
        load(BASE + case["input"]),
        url=BASE + case["input"],
        content_type=option.get("contentType", content_type),
        loader=load,
        base=option.get("base"),
        expand_context=BASE + context if context else None,
        rdf_direction=option.get("rdfDirection"),
        processing_mode=option.get("processingMode"),
        extract_all_scripts=option.get("extractAllScripts", False),
    )


def check(case: dict[str, Any], produce: Callable[[], bytes]) -> None:
    if "expectErrorCode" in case:
        with pytest.raises(SyntaxInvalid) as caught:
            produce()
        assert caught.value.code == case["expectErrorCode"]
    elif case.get("expect", "").endswith(".nq"):
        assert canonical(produce()) == canonical((SUITE / case["expect"]).read_bytes())
    elif "expect" in case:
        # Expansion, compaction and flattening keep the dataset, so it is compared in its RDF form.
        expected = jsonld.extract((SUITE / case["expect"]).read_bytes(), url="https://example.org/", loader=load)
        assert canonical(produce()) == canonical(expected)
    else:
        canonical(produce())


@pytest.mark.parametrize("manifest", LEAST_CASES)
def test_the_suite_is_there(manifest: str) -> None:
    assert len(cases(manifest)) >= LEAST_CASES[manifest]


@pytest.mark.parametrize("case", cases("toRdf"))
def test_to_rdf(case: dict[str, Any]) -> None:
    check(case, lambda: run(case, "application/ld+json"))


@pytest.mark.parametrize("case", cases("html"))
def test_html(case: dict[str, Any]) -> None:
    check(case, lambda: run(case, "text/html"))


@pytest.mark.parametrize("case", cases("remote-doc"))
def test_remote_document(case: dict[str, Any]) -> None:
    option = case.get("option", {})
    links = option.get("httpLink", ())
    start = BASE + case["input"]

    def serve(url: str) -> LoadedDocument:
        target = BASE + option["redirectTo"] if url == start and "redirectTo" in option else url
        return LoadedDocument(
            body=load(target),
            url=target,
            content_type=(url == start and option.get("contentType"))
            or TYPES.get(Path(target).suffix, "application/octet-stream"),
            links=((links,) if isinstance(links, str) else tuple(links)) if url == start else (),
        )

    check(case, lambda: extract_remote(start, serve))


def extract_remote(url: str, loader: Fetch) -> bytes:
    """`extract` for a document that is loaded first, with the rules for Link headers (JSON-LD API, section 9.4): a
    document of another type may name its JSON-LD by `rel="alternate"`, plain JSON may name its context."""
    try:
        loaded = fetch_document(loader, url)
    except SyntaxInvalid as error:
        raise invalid("loading document failed", error.message) from None
    context = None
    if loaded.content_type.partition(";")[0].strip().lower() != "application/ld+json":
        named = [target for target, parameters in links_of(loaded.links) if parameters.get("rel") == CONTEXT_LINK]
        if len(named) > 1:
            raise invalid("multiple context link headers", url)
        if named and is_json(loaded.content_type):
            context = resolve(loaded.url, named[0])
    content_type = loaded.content_type or "application/ld+json"
    return jsonld.extract(loaded.body, url=loaded.url, content_type=content_type, loader=loader, expand_context=context)
