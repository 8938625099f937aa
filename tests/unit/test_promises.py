"""Promises that grow with the code: every setting has an effect, every finding is documented, every kind treated."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec
import pytest

import quadloom
from quadloom.asking.finding_codes import all_codes
from quadloom.documents.syntaxes.jsonld.extraction import _REPAIRS
from quadloom.errors import QuadloomError
from quadloom.model.document import Kind
from quadloom.model.page import FailureKind
from quadloom.settings import ServiceSettings, Settings, SiteSettings
from unit import ROOT
from unit.documents.syntaxes.files.test_files import CORE, ODF, packed, pdf

SOURCES = {path: path.read_text(encoding="utf-8") for path in (ROOT / "src/quadloom").rglob("*.py")}
DEFINITIONS = ROOT / "src/quadloom/settings"
CODE = re.compile(r"[a-z]+(-[a-z]+)*")

# Where a section travels under another name than its own.
ALIASES = {
    "audit": "(audit|wanted)",
    "site": "(site|exception|own)",
    "service": "(service|settings)",
    "limits": "(limits|limit)",
    "politeness": "(politeness|rules)",
    "freshness": "(freshness|settings)",
    "topic": "(topic|wanted|asked|settings)",
    "transform": "(transform|wanted|settings)",
    "index": "(index|settings)",
}
# Looked up by name: `getattr(settings.stores, seam)` in the warehouse.
BY_NAME = {"stores.frontier", "stores.catalog", "stores.archive", "stores.quads", "stores.text"}


def _fields() -> Iterator[tuple[str, str]]:
    for section in msgspec.structs.fields(Settings):
        lists: dict[str, type[msgspec.Struct]] = {"site": SiteSettings, "service": ServiceSettings}
        struct = lists.get(section.name) or type(getattr(Settings(), section.name))
        for field in msgspec.structs.fields(struct):
            yield section.name, field.name


def _reads(path: Path) -> bool:
    """Whether a module may use settings: all but those that define them."""
    return path.parent != DEFINITIONS or path.stem == "sites"


@pytest.mark.parametrize(("section", "field"), list(_fields()), ids=str)
def test_every_setting_is_used(section: str, field: str) -> None:
    if f"{section}.{field}" in BY_NAME:
        return
    use = re.compile(rf"(?<![A-Za-z]){ALIASES.get(section, section)}\.{field}\b")
    users = [
        path
        for path, text in SOURCES.items()
        if f".{field}" in text and _reads(path) and use.search(text)  # a pattern over all takes seconds
    ]
    assert users, "a setting that nothing reads promises what nobody keeps"


def _codes() -> Iterator[tuple[str, Path]]:
    """Finding codes as they stand in the source, those made of a prefix and a table included."""
    for path, text in SOURCES.items():
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            stated = [keyword.value for keyword in node.keywords if keyword.arg == "code" and name == "Finding"]
            if name in ("Finding", "find", "_find", "_stop") and len(node.args) > 1:
                stated.append(node.args[0])
            for value in stated:
                if isinstance(value, ast.Constant) and isinstance(value.value, str) and CODE.fullmatch(value.value):
                    yield value.value, path
    yield from ((f"fetch-{kind}", ROOT) for kind in get_args(FailureKind))
    yield from ((f"jsonld-{repair}", ROOT) for repair in _REPAIRS)


def test_every_finding_is_documented() -> None:
    page = (ROOT / "docs/reference/findings.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([a-z-]+)`", page))
    codes = set(_codes())
    assert len(codes) > 50
    assert not {(code, path.name) for code, path in codes if code not in documented}
    assert not {(code, path.name) for code, path in codes if code not in all_codes()}, "`quadloom findings` refuses it"
    cells = (line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    assert {code for cell in cells for code in re.findall(r"`([a-z-]+)`", cell)} <= all_codes()


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_kind_has_a_treatment(kind: Kind) -> None:
    """A sample of each kind is recognised and either read or politely put aside, with a reason."""
    body, content_type = SAMPLES[kind]
    seen = quadloom.transform(body, url="https://e.example/thing", content_type=content_type)
    assert seen.kind == kind
    assert seen.reasons
    assert not [finding for finding in seen.findings if finding.code in ("extractor-failed", "internal-error")]
    if kind in SILENT:
        assert not seen.nquads
        assert kind == "empty" or any("nothing to state" in reason for reason in seen.reasons)
    elif kind != "text":
        assert seen.nquads, "a kind that can be read has something to say"


SILENT = {"json", "image", "audio", "video", "archive", "css", "javascript", "binary", "empty"}
X = b'<?xml version="1.0"?>'
SAMPLES: dict[str, tuple[bytes, str | None]] = {
    "html": (b"<!doctype html><title>t</title><p>x", "text/html"),
    "xhtml": (
        X + b'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>t</title></head></html>',
        "application/xhtml+xml",
    ),
    "xml": (X + b"<thing><name>x</name></thing>", "application/xml"),
    "svg": (X + b'<svg xmlns="http://www.w3.org/2000/svg"><title>t</title></svg>', "image/svg+xml"),
    "wsdl": (X + b'<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" name="n"/>', "text/xml"),
    "xsd": (X + b'<schema xmlns="http://www.w3.org/2001/XMLSchema" id="n"/>', "text/xml"),
    "rss": (
        X + b'<rss version="2.0"><channel><title>t</title><link>https://e.example/</link></channel></rss>',
        "text/xml",
    ),
    "atom": (X + b'<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><id>urn:x</id></feed>', None),
    "jsonfeed": (b'{"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": []}', "application/json"),
    "opml": (X + b'<opml version="2.0"><head><title>t</title></head><body><outline text="a"/></body></opml>', None),
    "sitemap": (X + b"<urlset><url><loc>https://e.example/a</loc></url></urlset>", "text/xml"),
    "sitemapindex": (X + b"<sitemapindex><sitemap><loc>https://e.example/s</loc></sitemap></sitemapindex>", None),
    "opensearch": (
        X + b'<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/"><ShortName>s</ShortName>'
        b'<Url type="text/html" template="https://e.example/?q={searchTerms}"/></OpenSearchDescription>',
        None,
    ),
    "xslt": (X + b'<stylesheet xmlns="http://www.w3.org/1999/XSL/Transform" version="1.0"/>', None),
    "rdfxml": (
        X + b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="https://e.example/">'
        b'<r:Description r:about="#a"><e:p>x</e:p></r:Description></r:RDF>',
        None,
    ),
    "turtle": (b'@prefix e: <https://e.example/> . e:a e:p "x" .', "text/turtle"),
    "trig": (b'@prefix e: <https://e.example/> . e:g { e:a e:p "x" . }', "application/trig"),
    "ntriples": (b'<https://e.example/a> <https://e.example/p> "x" .\n', "application/n-triples"),
    "nquads": (b'<https://e.example/a> <https://e.example/p> "x" <https://e.example/g> .\n', "application/n-quads"),
    "jsonld": (b'{"@id": "https://e.example/a", "https://e.example/p": "x"}', "application/ld+json"),
    "json": (b'{"a": 1}', "application/json"),
    "text": (b"only words", "text/plain"),
    "image": (b"\x89PNG\r\n\x1a\n" + bytes(64), "image/png"),
    "pdf": (pdf("words", info="/Title(t)"), "application/pdf"),
    "office": (
        packed(content_xml=f"<o {ODF}><text:p>words</text:p></o>", meta_xml=CORE),
        "application/vnd.oasis.opendocument.text",
    ),
    "audio": (b"ID3\x04\0\0\0\0\0\0" + bytes(64), "audio/mpeg"),
    "video": (b"\0\0\0\x18ftypmp42" + bytes(64), "video/mp4"),
    "archive": (b"PK\3\4" + bytes(64), "application/zip"),
    "css": (b"body { color: red }", "text/css"),
    "javascript": (b"let a = 1;", "text/javascript"),
    "binary": (bytes(range(1, 200)), "application/octet-stream"),
    "empty": (b" \n", "text/html"),
}


def test_every_error_of_ours_has_a_message_and_an_exit_code() -> None:
    def kinds(of: type[QuadloomError]) -> Iterator[type[QuadloomError]]:
        for kind in of.__subclasses__():
            yield kind
            yield from kinds(kind)

    assert {kind.exit_code for kind in kinds(QuadloomError)} <= {1, 2, 3, 4, 5, 6, 7, 8, 130}


@pytest.mark.parametrize(("page", "least"), [("SECURITY.md", 30), ("docs/explanation/durability.md", 19)])
def test_every_test_that_a_promise_names_exists(page: str, least: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert len([test for _, test in named if test]) >= least
    for file, test in named:
        path = ROOT / file
        assert path.is_file(), f"{page} names {file}"
        assert not test or f"def {test}(" in path.read_text(encoding="utf-8"), f"{page} names {file}::{test}"


def test_every_promise_of_security_names_a_test() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8").partition("## Promises")[2].partition("\nBeyond")[0]
    promises = re.split(r"\n(?=\d+\. )", text)[1:]
    assert len(promises) == 11
    for promise in promises:
        assert "::test_" in promise, promise
