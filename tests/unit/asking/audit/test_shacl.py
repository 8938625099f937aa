"""All of SHACL by pySHACL, and the fast subset beside it: equal on what both know."""
# ruff: noqa: E501

from __future__ import annotations

import json
from pathlib import Path

import pytest

import quadloom
from quadloom.asking.audit.report import PageFindings
from quadloom.asking.audit.shacl import with_shapes
from quadloom.errors import SettingsError
from quadloom.model.finding import Finding
from quadloom.model.outcome import PageRow
from quadloom.settings import AuditSettings, Settings

pytest.importorskip("pyshacl")
URL = "https://shop.example/lamp"
HEAD = """@prefix sh: <http://www.w3.org/ns/shacl#> . @prefix schema: <https://schema.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
SHAPE = HEAD + "[] a sh:NodeShape ; sh:targetClass schema:Product ; sh:property [ sh:path schema:{path} ; {rule} ] ."
LAMP = {
    "@context": "http://schema.org",
    "@type": "Product",
    "@id": "#lamp",
    "name": "Lamp",
    "sku": ["L-1", "L-2"],
    "width": 5,
    "weight": 2.5,
    "color": {"@value": "rot", "@language": "de"},
    "brand": {"@type": "Brand", "name": "Lux"},
    "image": "https://shop.example/lamp.png",
    "isFamilyFriendly": True,
}


def body(data: object) -> bytes:
    return (
        f"<!doctype html><title>Lamp</title>\n<script type='application/ld+json'>{json.dumps(data)}</script>".encode()
    )


def both(tmp_path: Path, shape: str, data: object = LAMP) -> tuple[list[Finding], list[Finding]]:
    """What the fast subset finds, and what pySHACL finds alone."""
    file = tmp_path / "shapes.ttl"
    file.write_text(shape, encoding="utf-8")
    settings = Settings(audit=AuditSettings(profiles=[str(file)]))
    seen = quadloom.transform(body(data), url=URL, content_type="text/html", settings=settings)
    fast = [one for one in seen.findings if one.code == "shacl-violation"]
    row = PageRow(fingerprint=1, key=URL, href=URL, host="shop.example")
    (page,) = with_shapes([PageFindings(row, ())], [file], lambda _: seen.nquads)
    return fast, list(page.findings)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("name", "sh:minCount 1"), ("name", "sh:maxCount 1"), ("sku", "sh:maxCount 1"), ("gtin13", "sh:minCount 1"),
        ("name", "sh:datatype xsd:string"), ("width", "sh:datatype xsd:string"), ("width", "sh:datatype xsd:integer"),
        ("color", "sh:datatype xsd:string"), ("isFamilyFriendly", "sh:datatype xsd:boolean"),
        ("brand", "sh:class schema:Brand"), ("brand", "sh:class schema:Organization"), ("name", "sh:class schema:Brand"),
        ("brand", "sh:nodeKind sh:IRI"), ("brand", "sh:nodeKind sh:BlankNodeOrIRI"), ("image", "sh:nodeKind sh:IRI"),
        ("name", "sh:nodeKind sh:Literal"), ("sku", "sh:pattern '^L-1$'"), ("sku", "sh:pattern '^l-' ; sh:flags 'i'"),
        ("image", "sh:pattern '^https:'"), ("brand", "sh:pattern '.'"), ("sku", "sh:in ('L-1' 'L-2')"),
        ("sku", "sh:in ('L-1')"), ("color", "sh:in ('rot')"), ("color", "sh:in ('rot'@de)"),
        ("image", "sh:in (<https://shop.example/lamp.png>)"), ("sku", "sh:hasValue 'L-2'"), ("sku", "sh:hasValue 'L-3'"),
        ("width", "sh:hasValue 5"), ("color", "sh:hasValue 'rot'"), ("name", "sh:minLength 4"), ("name", "sh:minLength 5"),
        ("name", "sh:maxLength 3"), ("width", "sh:minInclusive 5"), ("width", "sh:minExclusive 5"),
        ("width", "sh:maxInclusive 4"), ("weight", "sh:maxExclusive 2.6"), ("weight", "sh:minInclusive 3"),
        ("name", "sh:minInclusive 1"), ("sku", "sh:minCount 3 ; sh:severity sh:Warning"),
        ("gtin13", "sh:minCount 1 ; sh:deactivated true"),
    ],
)  # fmt: skip
def test_the_fast_subset_says_what_pyshacl_says(tmp_path: Path, path: str, rule: str) -> None:
    fast, full = both(tmp_path, SHAPE.format(path=path, rule=rule))
    assert [(one.severity, one.path, one.type) for one in fast] == [(one.severity, one.path, one.type) for one in full]


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("sh:property [ sh:path (schema:brand schema:name) ; sh:maxLength 2 ]", ""),
        ("sh:closed true ; sh:property [ sh:path schema:name ]", "sku"),
        ("sh:or ([ sh:property [ sh:path schema:gtin ; sh:minCount 1 ] ] [ sh:property [ sh:path schema:mpn ; sh:minCount 1 ] ])", ""),
        ("sh:sparql [ sh:message 'no gtin' ; sh:select 'SELECT $this WHERE { FILTER NOT EXISTS { $this <https://schema.org/gtin> ?g } }' ]", ""),
    ],
)  # fmt: skip
def test_the_complete_pass_knows_the_whole_language(tmp_path: Path, rule: str, path: str) -> None:
    fast, full = both(tmp_path, HEAD + f"[] a sh:NodeShape ; sh:targetClass schema:Product ; {rule} .")
    assert not fast and full
    assert all(one.type == "Product" for one in full)
    assert not path or path in {one.path.rpartition(" › ")[2] for one in full}


def test_what_the_fast_subset_found_is_not_said_twice(tmp_path: Path) -> None:
    file = tmp_path / "shapes.ttl"
    file.write_text(SHAPE.format(path="gtin13", rule="sh:minCount 1"), encoding="utf-8")
    fast, _ = both(tmp_path, file.read_text(encoding="utf-8"))
    nquads = quadloom.transform(body(LAMP), url=URL, content_type="text/html").nquads
    row = PageRow(fingerprint=1, key=URL, href=URL, host="shop.example")
    (page,) = with_shapes([PageFindings(row, tuple(fast))], [file], lambda _: nquads)
    assert list(page.findings) == fast and fast[0].line == 2


def test_shapes_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be used"):
        both_of = tmp_path / "shapes.ttl"
        both_of.write_text("no turtle", encoding="utf-8")
        row = PageRow(fingerprint=1, key=URL, href=URL, host="shop.example")
        list(with_shapes([PageFindings(row, ())], [both_of], lambda _: b"<a:a> <a:b> <a:c> .\n"))
