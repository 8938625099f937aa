"""GRDDL: the three ways of the Recommendation, and who may run what."""

from __future__ import annotations

from hashlib import sha256

import pytest

from quadloom.documents.transform import transform
from quadloom.errors import SyntaxInvalid
from quadloom.model.document import Transformed
from quadloom.settings import Settings, TransformSettings

URL = "https://site.example/doc"
SHEET_URL = "https://sheets.example/name.xsl"
VOCAB = "http://vocab.example/"
SHEET = f"""<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:v="{VOCAB}">
<xsl:template match="/"><rdf:RDF><rdf:Description rdf:about=""><v:words>
<xsl:value-of select="normalize-space(.)"/></v:words>
</rdf:Description></rdf:RDF></xsl:template></xsl:stylesheet>""".encode()
XML = f"""<po xmlns="http://orders.example/" xmlns:g="http://www.w3.org/2003/g/data-view#"
 g:transformation="{SHEET_URL}">seven looms</po>""".encode()
XHTML = f"""<html xmlns="http://www.w3.org/1999/xhtml"><head profile="http://www.w3.org/2003/g/data-view"><title>T</title>
<link rel="transformation" href="{SHEET_URL}"/></head><body>words</body></html>""".encode()
STATED = f'<{URL}> <{VOCAB}words> "seven looms" <{URL}> .'


class Web:
    """A loader over a dictionary that remembers what it was asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.asked: list[str] = []

    def __call__(self, url: str) -> bytes:
        self.asked.append(url)
        if url not in self.files:
            raise SyntaxInvalid(f"{url}: not there", code="loading-failed")
        return self.files[url]


def read(body: bytes, web: Web, mode: str, *allow: str, content_type: str = "application/xml") -> Transformed:
    settings = Settings(transform=TransformSettings(grddl=mode, grddl_allow=list(allow), generic_xml=False))  # type: ignore[arg-type]
    return transform(body, url=URL, content_type=content_type, settings=settings, loader=web)


def test_an_allowed_transformation_of_a_root_runs() -> None:
    result = read(XML, Web({SHEET_URL: SHEET}), "allow", "https://sheets.example/*")
    assert STATED in result.nquads.decode()
    assert ("stylesheet", SHEET_URL) in [(link.kind, link.target) for link in result.links]


def test_a_digest_allows_the_file_wherever_it_lies() -> None:
    digest = f"sha256:{sha256(SHEET).hexdigest()}"
    assert STATED in read(XML, Web({SHEET_URL: SHEET}), "allow", digest).nquads.decode()
    changed = read(XML, Web({SHEET_URL: SHEET + b" "}), "allow", digest)
    assert changed.nquads == b""
    assert [finding.code for finding in changed.findings] == ["grddl-not-allowed"]


@pytest.mark.parametrize(
    ("mode", "allow"), [("off", "*"), ("known", "*"), ("allow", "https://other.example/*"), ("allow", "")]
)
def test_nothing_else_runs_or_is_even_loaded(mode: str, allow: str) -> None:
    web = Web({SHEET_URL: SHEET})
    result = read(XML, web, mode, allow)
    assert result.nquads == b""
    assert web.asked == []
    assert [finding.code for finding in result.findings] == ([] if mode == "off" else ["grddl-not-allowed"])


@pytest.mark.parametrize("content_type", ["application/xhtml+xml", "text/html"])
def test_a_page_with_the_profile_names_its_transformation(content_type: str) -> None:
    result = read(XHTML, Web({SHEET_URL: SHEET}), "allow", SHEET_URL, content_type=content_type)
    assert f'<{VOCAB}words> "Twords"' in result.nquads.decode().replace("T words", "Twords")
    plain = XHTML.replace(b' profile="http://www.w3.org/2003/g/data-view"', b"")
    assert (
        VOCAB not in read(plain, Web({SHEET_URL: SHEET}), "allow", SHEET_URL, content_type=content_type).nquads.decode()
    )


def test_the_root_of_a_page_names_its_transformation() -> None:
    """Whatever the page says elsewhere about the vocabulary names none."""
    plain = XHTML.replace(b' profile="http://www.w3.org/2003/g/data-view"', b"")
    named = plain.replace(
        b"<html ",
        b'<html xmlns:g="http://www.w3.org/2003/g/data-view#" g:transformation="%s" ' % SHEET_URL.encode(),
        1,
    )
    mentioned = plain.replace(b"words", b"words of http://www.w3.org/2003/g/data-view")
    for page, asked in ((named, [SHEET_URL]), (mentioned, [])):
        web = Web({SHEET_URL: SHEET})
        stated = read(page, web, "allow", SHEET_URL, content_type="text/html").nquads.decode()
        assert (web.asked, VOCAB in stated) == (asked, bool(asked))


def test_a_namespace_document_names_the_transformation() -> None:
    body = b'<po xmlns="http://orders.example/">seven looms</po>'
    namespace = f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:g="http://www.w3.org/2003/g/data-view#">
    <rdf:Description rdf:about="http://orders.example/"><g:namespaceTransformation rdf:resource="{SHEET_URL}"/>
    </rdf:Description></rdf:RDF>"""
    web = Web({SHEET_URL: SHEET, "http://orders.example/": namespace.encode()})
    assert STATED in read(body, web, "allow", SHEET_URL, "http://orders.example/*").nquads.decode()
    silent = Web(web.files)
    assert read(body, silent, "allow", SHEET_URL).nquads == b""
    assert silent.asked == [], "a namespace that is not allowed is not fetched"


def test_a_profile_document_that_needs_grddl_itself_ends() -> None:
    """Its transformation names itself for ever; each level is a document, and they are limited."""
    page = XHTML.replace(b'profile="', b'profile="http://profile.example/p ')
    web = Web({SHEET_URL: SHEET, "http://profile.example/p": page})
    result = read(page, web, "allow", "*", content_type="application/xhtml+xml")
    assert VOCAB in result.nquads.decode()
    assert len(web.asked) < 12


def test_well_known_transformations_need_no_network() -> None:
    body = XHTML.replace(SHEET_URL.encode(), b"http://sw.deri.org/2006/05/transform/xhtml2rdf.xsl")
    body = body.replace(b"words</body>", b'<a href="/x">words</a></body>')
    web = Web({})
    result = read(body, web, "known", content_type="application/xhtml+xml")
    assert f"<{URL}> <http://purl.org/dc/terms/references> <https://site.example/x>" in result.nquads.decode()
    assert web.asked == []


@pytest.mark.parametrize(
    "sheet", [b"", b"<", SHEET.replace(b"</rdf:RDF>", b""), b"x" * 300_000, SHEET.replace(b"match", b"mitch")]
)
def test_a_broken_transformation_is_a_finding(sheet: bytes) -> None:
    result = read(XML, Web({SHEET_URL: sheet}), "allow", SHEET_URL)
    assert result.nquads == b""
    assert any(finding.severity == "error" and finding.syntax == "grddl" for finding in result.findings)


def test_a_flood_of_transformations_is_cut() -> None:
    names = " ".join(f"https://sheets.example/{n}.xsl" for n in range(100))
    web = Web({})
    result = read(XML.replace(SHEET_URL.encode(), names.encode()), web, "allow", "*")
    assert len(web.asked) <= 9
    assert "grddl-too-many" in [finding.code for finding in result.findings]
