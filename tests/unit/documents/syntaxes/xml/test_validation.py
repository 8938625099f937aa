"""XML is validated against the schemas of a folder: DTD by the name of its file, XSD and RelaxNG by namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.documents.transform import transform
from quadloom.model.finding import Finding
from quadloom.settings import Settings, TransformSettings

XSD = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" targetNamespace="http://v.example/"
elementFormDefault="qualified">
<xs:element name="book"><xs:complexType><xs:sequence><xs:element name="pages" type="xs:integer"/></xs:sequence>
</xs:complexType></xs:element></xs:schema>"""
RNG = """<element name="shelf" ns="http://r.example/" xmlns="http://relaxng.org/ns/structure/1.0"><oneOrMore>
<element name="book"><text/></element></oneOrMore></element>"""
DTD = "<!ELEMENT note (to)><!ELEMENT to (#PCDATA)>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("book.xsd", XSD), ("shelf.rng", RNG), ("note.dtd", DTD), ("broken.dtd", "<!ELEMENT")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def found(folder: Path | str, body: str) -> list[Finding]:
    settings = Settings(transform=TransformSettings(schemas=str(folder)))
    result = transform(body.encode(), url="http://x.example/a.xml", content_type="application/xml", settings=settings)
    return [finding for finding in result.findings if finding.code.startswith("xml-")]


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ('<book xmlns="http://v.example/">\n<pages>many</pages></book>', 2),
        ('<shelf xmlns="http://r.example/">\n<lamp/></shelf>', 2),
        ('<!DOCTYPE note SYSTEM "http://far.example/dtds/note.dtd">\n<note>\n<from/></note>', 2),
        ("<!DOCTYPE a [<!ELEMENT a (b)><!ELEMENT b EMPTY>]>\n<a><c/></a>", 2),
    ],
)
def test_what_a_schema_does_not_allow_is_a_finding_with_its_line(folder: Path, body: str, line: int) -> None:
    findings = found(folder, body)
    assert findings and {finding.code for finding in findings} == {"xml-invalid"}
    assert findings[0].line == line
    assert found("", body) == []  # validation is a choice


@pytest.mark.parametrize(
    "body",
    [
        '<book xmlns="http://v.example/"><pages>12</pages></book>',
        '<shelf xmlns="http://r.example/"><book>x</book></shelf>',
        '<!DOCTYPE note SYSTEM "note.dtd"><note><to>x</to></note>',
        '<other xmlns="http://unknown.example/"/>',
    ],
)
def test_valid_documents_and_those_of_other_namespaces_have_none(folder: Path, body: str) -> None:
    assert found(folder, body) == []


def test_a_schema_that_cannot_be_used_is_named(folder: Path) -> None:
    (finding,) = found(folder, '<!DOCTYPE note SYSTEM "broken.dtd"><note/>')
    assert finding.code == "xml-schema"
    assert "broken.dtd" in finding.message


def test_external_entities_are_named_and_read_as_nothing() -> None:
    body = '<!DOCTYPE n [<!ENTITY in "I"><!ENTITY far SYSTEM "file:///etc/passwd">]><n><a>x&in;&far;y</a></n>'
    result = transform(body.encode(), url="http://x.example/a.xml", content_type="application/xml")
    assert b'"xIy"' in result.nquads
    (finding,) = [one for one in result.findings if one.code == "xml-external-entity"]
    assert "&far; (file:///etc/passwd)" in finding.message
    assert not [link for link in result.links if link.kind != "vocabulary"]


@pytest.mark.parametrize(
    ("template", "kind"),
    [
        ('<!DOCTYPE n SYSTEM "{dtd}"><n><a>[&x;]</a></n>', "application/xml"),
        ('<!DOCTYPE n SYSTEM "{dtd}" [<!ENTITY in "I">]><n><a>[&x;]</a></n>', "application/xml"),
        (
            '<!DOCTYPE html PUBLIC "p" "{dtd}"><html xmlns="http://www.w3.org/1999/xhtml"><head><title>[&x;]</title>'
            "</head><body/></html>",
            "application/xhtml+xml",
        ),
        ('<!DOCTYPE rss SYSTEM "{dtd}"><rss version="2.0"><channel><title>[&x;]</title></channel></rss>', "text/xml"),
    ],
)
def test_no_dtd_is_loaded_from_a_file_or_from_the_network(tmp_path: Path, template: str, kind: str) -> None:
    secret = tmp_path / "secret.dtd"
    secret.write_text('<!ENTITY x "of a local file">', encoding="utf-8")
    for dtd in (secret.as_uri(), str(secret), "http://far.example/note.dtd"):
        body = template.format(dtd=dtd).encode()
        result = transform(body, url="http://x.example/a", content_type=kind)
        assert b"of a local file" not in result.nquads + result.facts.title.encode() + result.text.encode()
        assert not [finding for finding in result.findings if finding.code == "xml"], dtd
