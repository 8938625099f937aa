"""PDF, DOCX and ODT: text, headings, title, language, author and date; hostile files cost themselves."""

from __future__ import annotations

import io
import zipfile

import pytest

import quadloom
from quadloom.model.document import Transformed

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT = "application/vnd.oasis.opendocument.text"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:draw="urn:x"'
)
CORE = (
    '<cp:p xmlns:cp="urn:c" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:t="http://purl.org/dc/terms/">'
    "<dc:title>Yearly report</dc:title><dc:creator>Uma Eskola</dc:creator><dc:language>en-GB</dc:language>"
    "<t:created>2026-02-03T04:05:06Z</t:created></cp:p>"
)


def packed(**members: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml"), text)
    return data.getvalue()


def read(body: bytes, content_type: str = "", url: str = "http://a.example/file") -> Transformed:
    return quadloom.transform(body, url=url, content_type=content_type)


def codes(seen: Transformed) -> list[str]:
    return [finding.code for finding in seen.findings]


def pdf(*pages: str, info: str = "") -> bytes:
    """A PDF file with one line of text on each page."""
    objects = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", f"<<{info}>>"]
    kids = []
    for text in pages:
        stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects.append(f"<</Length {len(stream)}>>stream\n{stream}\nendstream")
        objects.append(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>"
            f"/Contents {len(objects)} 0 R>>"
        )
        kids.append(f"{len(objects)} 0 R")
    objects[1] = f"<</Type/Pages/Count {len(kids)}/Kids[{' '.join(kids)}]>>"
    data = b"%PDF-1.4\n"
    places = []
    for number, text in enumerate(objects, 1):
        places.append(len(data))
        data += f"{number} 0 obj\n{text}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    head = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    return (
        data
        + f"{head}trailer<</Size {len(objects) + 1}/Root 1 0 R/Info 4 0 R>>\nstartxref\n{len(data)}\n%%EOF".encode()
    )


def test_a_pdf_file_has_text_by_page_and_says_who_wrote_it() -> None:
    pytest.importorskip("pypdfium2")
    info = "/Title(Whales of the north)/Author(Uma Eskola)/CreationDate(D:20260203040506+01'00')"
    seen = read(pdf("The first whale", "The second whale", info=info), "application/pdf")
    assert seen.kind == "pdf"
    assert seen.text == "[page 1]\nThe first whale\n[page 2]\nThe second whale"
    assert seen.title == "Whales of the north"
    assert b'<http://purl.org/dc/terms/creator> "Uma Eskola"' in seen.nquads
    assert b'"2026-02-03T04:05:06+01:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>' in seen.nquads


def test_a_pdf_file_without_text_or_broken_is_a_finding() -> None:
    pytest.importorskip("pypdfium2")
    assert codes(read(pdf("", ""), "application/pdf")) == ["pdf-without-text"]
    assert codes(read(b"%PDF-1.7\nbroken", "application/pdf")) == ["pdf-invalid"]


@pytest.mark.parametrize("address", ["http://a.example/report.docx", "http://a.example/report"])
def test_a_docx_file(address: str) -> None:
    body = packed(
        word__document_xml=f'<w:document {W}><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Whales'
        "</w:t></w:r></w:p><w:p><w:r><w:t>Many</w:t><w:tab/><w:t>whales</w:t></w:r><w:r><w:instrText>HYPERLINK"
        "</w:instrText></w:r></w:p></w:body></w:document>",
        docProps__core_xml=CORE,
    )
    seen = read(body, DOCX if "." not in address[-5:] else "application/octet-stream", address)
    assert (seen.kind, seen.text, seen.headings) == ("office", "Whales\nMany whales", "Whales")
    assert (seen.title, seen.language) == ("Yearly report", "en-GB")
    assert b'"Yearly report"@en-gb' in seen.nquads and not seen.findings


def test_an_odt_file() -> None:
    body = packed(
        content_xml=f"<office:d {ODF}><text:h>Whales</text:h><text:p>In <text:span>the</text:span> sea<draw:f><text:p>"
        "A caption</text:p></draw:f>, far<text:s/>out</text:p></office:d>",
        meta_xml=CORE,
    )
    seen = read(body, ODT)
    assert (seen.text, seen.headings, seen.title) == (
        "Whales\nIn the sea, far out\nA caption",
        "Whales",
        "Yearly report",
    )


def test_other_zip_files_are_archives() -> None:
    assert read(packed(x="y"), "application/zip").kind == "archive"
    assert codes(read(packed(x="y"), DOCX)) == []


def test_a_bomb_and_a_broken_file_cost_themselves() -> None:
    bomb = packed(word__document_xml=f"<w:document {W}>" + " " * 60_000_000 + "</w:document>")
    assert codes(read(bomb, DOCX)) == ["office-invalid"]
    assert codes(read(b"PK\3\4 broken", DOCX)) == ["office-invalid"]
    attack = (
        '<!DOCTYPE d [<!ENTITY a "aaaaaaaaaa">'
        + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
        + f"]><w:document {W}><w:p><w:t>&j;</w:t></w:p></w:document>"
    )
    found = codes(read(packed(word__document_xml=attack), DOCX))
    assert found and "extractor-failed" not in found
