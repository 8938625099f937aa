"""The sandbox of stylesheets, the user's folder, and generic XML as the last resort."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from quadloom.documents.syntaxes.terms import join
from quadloom.documents.syntaxes.xml import stylesheet_folder as xslt_folder
from quadloom.documents.syntaxes.xml.xslt import MAX_STYLESHEET_BYTES, Imports, compiled
from quadloom.documents.transform import transform
from quadloom.errors import SyntaxInvalid
from quadloom.settings import Settings, TransformSettings

XSL = (
    '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:ql="urn:quadloom:xslt"'
    ' xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:v="http://vocab.example/"'
    ' exclude-result-prefixes="ql">'
    "{body}</xsl:stylesheet>"
)
RECIPE = b'<recipe xmlns="http://vocab.example/recipe"><name>Soup</name><link>more</link></recipe>'
GOOD = XSL.format(
    body='<!-- quadloom: root="recipe" --><xsl:param name="url"/><xsl:template match="/*"><rdf:RDF>'
    '<v:Recipe rdf:about="{$url}"><v:name><xsl:value-of select="*[1]"/></v:name>'
    '<v:see rdf:resource="{ql:resolve(*[2], $url)}"/></v:Recipe></rdf:RDF></xsl:template>'
)
URL = "https://site.example/r/1"


def read(body: bytes, folder: Path) -> tuple[str, list[str]]:
    settings = Settings(transform=TransformSettings(stylesheets=str(folder)))
    result = transform(body, url=URL, content_type="application/xml", settings=settings)
    return result.nquads.decode(), [finding.code for finding in result.findings]


@pytest.fixture(autouse=True)
def _forget_folders() -> None:
    xslt_folder.stylesheet_folder.cache_clear()


def test_a_header_in_the_file_chooses_it(tmp_path: Path) -> None:
    (tmp_path / "recipe.xsl").write_text(GOOD)
    nquads, codes = read(RECIPE, tmp_path)
    assert f'<{URL}> <http://vocab.example/name> "Soup" <{URL}> .' in nquads
    assert f"<{URL}> <http://vocab.example/see> <https://site.example/r/more> <{URL}> ." in nquads
    assert "urn:quadloom:xml" not in nquads, "the generic mapping is for what nobody else reads"
    assert codes == []


def test_an_index_chooses_by_namespace_and_kind(tmp_path: Path) -> None:
    (tmp_path / "any.xsl").write_text(GOOD.replace("<!-- quadloom:", "<!-- other:"))
    assert "urn:quadloom:xml#root" in read(RECIPE, tmp_path)[0]
    xslt_folder.stylesheet_folder.cache_clear()
    (tmp_path / "index.toml").write_text(
        '[[stylesheet]]\nfile = "any.xsl"\nnamespace = "http://vocab.example/recipe"\nkind = "xml"\n'
        '[[stylesheet]]\nfile = "gone.xsl"\nroot = "x"\n'
    )
    nquads, codes = read(RECIPE, tmp_path)
    assert "http://vocab.example/name" in nquads
    assert codes == ["xslt-folder"], "a file that is not there is told"
    assert "http://vocab.example/name" not in read(b"<recipe/>", tmp_path)[0], "another namespace"


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (GOOD.replace("</rdf:RDF>", ""), "xslt-invalid"),
        (GOOD.replace("$url", "$nothing"), "xslt-failed"),
        (
            XSL.format(body='<!-- quadloom: root=recipe --><xsl:template match="/"><html/></xsl:template>'),
            "xslt-not-rdf",
        ),
        (
            XSL.format(
                body='<!-- quadloom: root=recipe --><xsl:template match="/">'
                '<xsl:message terminate="yes">no</xsl:message></xsl:template>'
            ),
            "xslt-failed",
        ),
    ],
)
def test_a_broken_stylesheet_is_a_finding_and_the_page_is_still_read(tmp_path: Path, source: str, code: str) -> None:
    (tmp_path / "recipe.xsl").write_text(source)
    nquads, codes = read(RECIPE, tmp_path)
    assert code in codes
    assert "urn:quadloom:xml#root" in nquads


def test_a_broken_index_and_a_missing_folder_are_findings(tmp_path: Path) -> None:
    (tmp_path / "index.toml").write_text("[[stylesheet]]\nfil = 3")
    assert read(RECIPE, tmp_path)[1] == ["xslt-folder"]
    assert read(RECIPE, tmp_path / "nowhere")[1] == ["xslt-folder"]


def test_text_output_is_turtle_or_what_its_media_type_says(tmp_path: Path) -> None:
    turtle = (
        '<!-- quadloom: kind=xml --><xsl:output method="text"/><xsl:param name="url"/><xsl:template match="/">'
        "_:b0 &lt;http://vocab.example/p&gt; 7 .</xsl:template>"
    )
    (tmp_path / "t.xsl").write_text(XSL.format(body=turtle))
    assert '<http://vocab.example/p> "7"^^<http://www.w3.org/2001/XMLSchema#integer>' in read(RECIPE, tmp_path)[0]


def test_generic_xml_can_be_switched_off() -> None:
    settings = Settings(transform=TransformSettings(generic_xml=False))
    assert transform(RECIPE, url=URL, content_type="text/xml", settings=settings).nquads == b""


def test_imports_come_from_the_loader_only() -> None:
    files = {"https://s.example/b.xsl": XSL.format(body='<xsl:template match="/"><rdf:RDF/></xsl:template>').encode()}
    source = XSL.format(body='<xsl:import href="b.xsl"/>').encode()
    sheet = compiled(source, name="https://s.example/a.xsl", imports=Imports(join, files.__getitem__))
    assert b"RDF" in sheet.apply(etree.fromstring(RECIPE), url=URL).body
    with pytest.raises(SyntaxInvalid, match="may not read"):
        compiled(source, name="https://s.example/a.xsl")


def test_imports_are_limited_in_number_and_depth_and_circles_end() -> None:
    def chain(url: str) -> bytes:
        number = int(url.rpartition("/")[2])
        return XSL.format(body=f'<xsl:import href="{number + 1}"/>').encode()

    with pytest.raises(SyntaxInvalid, match="imports"):
        compiled(chain("https://s.example/0"), name="https://s.example/0", imports=Imports(join, chain))
    wide = XSL.format(body="".join(f'<xsl:import href="w{n}"/>' for n in range(6))).encode()
    with pytest.raises(SyntaxInvalid, match="imports"):
        compiled(wide, name="https://s.example/w", imports=Imports(join, lambda _: XSL.format(body="").encode()))
    circle = XSL.format(body='<xsl:import href="c"/>').encode()
    with pytest.raises(SyntaxInvalid):
        compiled(circle, name="https://s.example/c", imports=Imports(join, lambda _: circle))


def test_large_stylesheets_are_refused() -> None:
    with pytest.raises(SyntaxInvalid, match="larger"):
        compiled(b" " * (MAX_STYLESHEET_BYTES + 1), name="x.xsl")


def test_opensearch_descriptions_name_their_templates() -> None:
    body = b"""<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/"><ShortName>Looms</ShortName>
    <Url type="text/html" template="https://site.example/?q={searchTerms}"/><Image>/i.png</Image></OpenSearchDescription>"""
    result = transform(body, url=URL, content_type="application/opensearchdescription+xml")
    nquads = result.nquads.decode()
    assert result.types == ("http://a9.com/-/spec/opensearch/1.1/OpenSearchDescription",)
    assert '<http://a9.com/-/spec/opensearch/1.1/template> "https://site.example/?q={searchTerms}"' in nquads
    assert f"<{URL}> <http://xmlns.com/foaf/0.1/depiction> <https://site.example/i.png>" in nquads
