"""The plug-in on small PDF files made here, through Quadloom's own transformation."""

from __future__ import annotations

import sys
import zlib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))  # runs without being installed

from quadloom_pdf_metadata.info import date_time, info

from quadloom.documents.transform import transform
from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.documents.syntaxes.plugins import GROUP, with_plugins

URL = "https://site.example/paper.pdf"
DICTIONARY = (
    b"<< /Title (Looms \\(and webs\\)) /Author <FEFF00C500640061> "
    b"/CreationDate (D:20250102030405+01'00') /ModDate (soon) >>"
)
PLAIN = b"%PDF-1.4\n1 0 obj\n" + DICTIONARY + b"\nendobj\ntrailer << /Root 2 0 R /Info 1 0 R >>\n%%EOF"
XMP = (
    b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    b'<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    b'dc:format="application/pdf"/></rdf:RDF></x:xmpmeta>'
)


def compressed() -> bytes:
    head = b"7 0 9 150 "
    data = zlib.compress(head + DICTIONARY.ljust(150) + b"<< >>")
    stream = b"<< /Type /ObjStm /N 2 /First %d /Length %d >> stream\r\n%s\nendstream" % (len(head), len(data), data)
    return b"%PDF-1.5\n5 0 obj\n" + stream + b"\nendobj\n<< /Type /XRef /Info 7 0 R >>"


@pytest.mark.parametrize("body", [PLAIN, compressed()], ids=["plain", "object stream"])
def test_statements(body: bytes) -> None:
    made = with_plugins(SYNTAXES, [EntryPoint("pdf-metadata", "quadloom_pdf_metadata:PdfMetadata", GROUP)])
    assert made.findings == ()
    result = transform(body + XMP, url=URL, content_type="application/pdf", syntaxes=made.registry)
    lines = result.nquads.decode()
    assert f'<{URL}> <http://purl.org/dc/terms/title> "Looms (and webs)"' in lines
    assert f'<{URL}> <http://purl.org/dc/terms/creator> "Åda"' in lines
    assert '<http://purl.org/dc/terms/created> "2025-01-02T02:04:05Z"^^' in lines
    assert '<http://purl.org/dc/terms/modified> "soon"' in lines
    assert f'<{URL}> <http://purl.org/dc/elements/1.1/format> "application/pdf"' in lines
    codes = [finding.code for finding in result.findings if finding.code not in ("pdf-invalid", "pdf-not-read")]
    assert codes == ["pdf-date", "bad-date"]  # ours, and Quadloom's own
    assert result.title == "Looms (and webs)"


@pytest.mark.parametrize("cut", range(0, len(PLAIN), 7))
def test_cut_files_never_raise(cut: int) -> None:
    info(PLAIN[:cut])
    info(compressed()[:cut])


def test_a_bomb_inflates_no_further_than_its_limit() -> None:
    data = zlib.compress(bytes(50_000_000), 1)
    body = b"<< /Type /ObjStm /N 1 /First 4 >> stream\n" + data + b" /Info 7 0 R"
    assert info(body) == {}


def test_dates() -> None:
    assert date_time("D:2025") == "2025-01-01T00:00:00"
    assert date_time("D:20250102030405Z") == "2025-01-02T03:04:05Z"
    assert date_time("D:20251302") is None
