"""Stylesheets of users on HTML, with imports from their own folder and from nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from quadloom.crawling.workers.batch import TransformPool
from quadloom.documents.syntaxes.html.xhtml import as_xhtml
from quadloom.documents.syntaxes.xml import stylesheet_folder
from quadloom.documents.transform import transform
from quadloom.model.document import Transformed
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, Settings, TransformSettings

URL = "https://site.example/page"
SOUP = (
    b"<!doctype html><title>Soup &amp; bread</title><p class=price>12 &euro;<p class=price data-x=1>13"
    b"<table><tr><td>cell<br>more</table><b><i>crossed</b></i>"
)
XSL = (
    '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:v="http://vocab.example/"'
    ' xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:h="http://www.w3.org/1999/xhtml"'
    ' exclude-result-prefixes="h">{}</xsl:stylesheet>'
)
PRICES = (
    '<xsl:param name="url"/><xsl:template match="/h:html"><rdf:RDF><rdf:Description rdf:about="{$url}">'
    '<xsl:for-each select="//h:p[@class=\'price\']"><v:price><xsl:value-of select="."/></v:price></xsl:for-each>'
    "</rdf:Description></rdf:RDF></xsl:template>"
)
HEADER = "<!-- quadloom: {} -->"


@pytest.fixture(autouse=True)
def _forget_folders() -> None:
    stylesheet_folder.stylesheet_folder.cache_clear()
    stylesheet_folder._stylesheet.cache_clear()
    stylesheet_folder._source.cache_clear()


def settings_for(folder: Path) -> Settings:
    return Settings(crawl=CrawlSettings(workers=1), transform=TransformSettings(stylesheets=str(folder)))


def read(body: bytes, folder: Path, content_type: str = "text/html") -> Transformed:
    return transform(body, url=URL, content_type=content_type, settings=settings_for(folder))


def prices(result: Transformed) -> list[str]:
    return sorted(line.split('"')[1] for line in result.nquads.decode().splitlines() if "vocab.example/price" in line)


def codes(result: Transformed) -> list[str]:
    return [finding.code for finding in result.findings]


@pytest.mark.parametrize("rule", ['kind="html"', 'root="html"', 'namespace="http://www.w3.org/1999/xhtml"'])
def test_tag_soup_goes_through_a_stylesheet(tmp_path: Path, rule: str) -> None:
    (tmp_path / "prices.xsl").write_text(XSL.format(HEADER.format(rule) + PRICES))
    result = read(SOUP, tmp_path)
    assert prices(result) == ["12 €", "13"]
    assert codes(result) == []
    assert ("xslt", 2) in result.syntaxes
    assert result.title == "Soup & bread", "the other syntaxes are read as before"


def test_html_without_a_rule_for_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "prices.xsl").write_text(XSL.format(HEADER.format('kind="xml"') + PRICES))
    assert prices(read(SOUP, tmp_path)) == []


def test_a_page_of_html_has_the_namespaces_of_xhtml_svg_and_mathml() -> None:
    tree = LexborHTMLParser(
        b'<html lang=en xmlns:dc="x"><body @click=y xml:lang=de><svg viewBox="0 0 1 1" xlink:href="#a"><circle/>'
        b"<foreignObject><p>inner</p></foreignObject></svg><math><mi>x</mi></math><o:p>office</o:p>\x01&#xb;<!-- c -->"
    )
    root = as_xhtml(tree)
    text = etree.tostring(root, encoding="unicode")
    again = etree.fromstring(text)
    names = [etree.QName(element).localname for element in again.iter()]
    assert names == ["html", "head", "body", "svg", "circle", "foreignObject", "p", "math", "mi", "o_p"]
    spaces = {etree.QName(element).localname: etree.QName(element).namespace for element in again.iter()}
    assert spaces["circle"] == "http://www.w3.org/2000/svg"
    assert spaces["p"] == spaces["o_p"] == "http://www.w3.org/1999/xhtml"
    assert spaces["mi"] == "http://www.w3.org/1998/Math/MathML"
    body = again[1]
    assert dict(body.attrib.items()) == {"_click": "y", "{http://www.w3.org/XML/1998/namespace}lang": "de"}
    assert body[0].get("{http://www.w3.org/1999/xlink}href") == "#a"


@pytest.mark.parametrize(
    "source",
    [
        b"", b"\0", b"<", b"plain", b"<!-- -->", b"<a b='\x00\x1f' =c 1=2 \xc3\xa9=3>", b"<1>", b"<p:q:r s:t:u=v>",
        b"<html><html a=1><frameset><frame>", b"<svg><p><title><b>", "<x\ufffe y='\ufffe'>\ufffe".encode(),
        b"<select><option>a<option>b", b"<script><!--<script></script>", b"<template><p>x</template>",
    ],
)  # fmt: skip
def test_any_html_becomes_xml_that_can_be_read_again(source: bytes) -> None:
    etree.fromstring(etree.tostring(as_xhtml(LexborHTMLParser(source)), encoding="utf-8"))


def test_imports_and_includes_of_the_folder_work(tmp_path: Path) -> None:
    (tmp_path / "parts" / "deep").mkdir(parents=True)
    (tmp_path / "main.xsl").write_text(XSL.format(HEADER.format('kind="html"') + '<xsl:import href="parts/a.xsl"/>'))
    (tmp_path / "parts" / "a.xsl").write_text(XSL.format('<xsl:include href="deep/b%20c.xsl"/>'))
    (tmp_path / "parts" / "deep" / "b c.xsl").write_text(XSL.format('<xsl:include href="../../shared.xsl"/>'))
    (tmp_path / "shared.xsl").write_text(XSL.format(PRICES))
    (tmp_path / "other.xsl").write_text(XSL.format(PRICES))
    result = read(SOUP, tmp_path)
    assert codes(result) == []
    assert prices(result) == ["12 €", "13"]
    checks = {check.file: check.problem for check in stylesheet_folder.check_folder(str(tmp_path), ("html",))}
    assert checks["main.xsl"] == ""
    assert "shared.xsl" not in checks, "it is imported, so it needs no rule of its own"
    assert "never runs" in checks["other.xsl"]


@pytest.mark.parametrize("way", ["import", "include"])
@pytest.mark.parametrize(
    "reference",
    [
        "../secret.xsl", "parts/../../secret.xsl", "%2e%2e/secret.xsl", "..%2fsecret.xsl", "{outside}/secret.xsl",
        "file://{outside}/secret.xsl", "link.xsl", "linked/secret.xsl", "//127.0.0.1/secret.xsl",
        "http://127.0.0.1:9/secret.xsl", "stylesheets:../secret.xsl", "..\\secret.xsl", "", "secret.xsl?x", ".",
        "jar:file:{outside}/secret.xsl",
    ],
)  # fmt: skip
def test_nothing_outside_of_the_folder_is_read(tmp_path: Path, way: str, reference: str) -> None:
    folder = tmp_path / "folder"
    (folder / "parts").mkdir(parents=True)
    (tmp_path / "secret.xsl").write_text(XSL.format(PRICES))
    (folder / "link.xsl").symlink_to(tmp_path / "secret.xsl")
    (folder / "linked").symlink_to(tmp_path)
    href = reference.format(outside=tmp_path)
    (folder / "main.xsl").write_text(XSL.format(HEADER.format('kind="html"') + f'<xsl:{way} href="{href}"/>'))
    result = read(SOUP, folder)
    assert prices(result) == []
    assert "xslt-forbidden" in codes(result)


def test_a_link_within_the_folder_may_be_followed(tmp_path: Path) -> None:
    (tmp_path / "real.xsl").write_text(XSL.format(PRICES))
    (tmp_path / "alias.xsl").symlink_to(tmp_path / "real.xsl")
    (tmp_path / "main.xsl").write_text(XSL.format(HEADER.format('kind="html"') + '<xsl:import href="alias.xsl"/>'))
    assert prices(read(SOUP, tmp_path)) == ["12 €", "13"]


def test_a_circle_of_imports_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "a.xsl").write_text(XSL.format(HEADER.format('kind="html"') + '<xsl:import href="b.xsl"/>'))
    (tmp_path / "b.xsl").write_text(XSL.format('<xsl:import href="a.xsl"/>'))
    assert "xslt-imports" in codes(read(SOUP, tmp_path))


def test_a_crawl_tells_of_stylesheets_that_cannot_run(tmp_path: Path) -> None:
    """At the first page, whatever its kind is."""
    (tmp_path / "broken.xsl").write_text(XSL.format(HEADER.format('kind="rss"') + '<xsl:template match="]"/>'))
    (tmp_path / "never.xsl").write_text(XSL.format(HEADER.format('kind="image"')))
    (tmp_path / "good.xsl").write_text(XSL.format(HEADER.format('kind="html"') + PRICES))
    notices: list[str] = []
    page = Page(URL, URL, 200, (("content-type", "text/html"),), SOUP, 0.0, 0.1)
    with TransformPool(settings_for(tmp_path), notice=lambda _kind, text: notices.append(text)) as pool:
        pairs = [(Visit(URL, URL, "site.example", number), page) for number in range(3)]
        results = [done for _, done in pool.each(pairs, lambda pair: pair)]
    assert len(notices) == 2
    assert any("broken.xsl: does not compile" in text for text in notices)
    assert any("never.xsl: never runs" in text for text in notices)
    first = results[0]
    assert first is not None and first.answer is not None
    assert [finding.code for finding in first.answer.result.findings].count("xslt-folder") == 2


def test_grddl_reads_pages_that_are_not_well_formed() -> None:
    body = (
        b'<html><head profile="http://www.w3.org/2003/g/data-view"><title>Loom</title>'
        b'<link rel="transformation" href="http://sw.deri.org/2006/05/transform/xhtml2rdf.xsl">'
        b"<body><p>one<p><a href=/two>two"
    )
    result = transform(body, url=URL, content_type="text/html")
    assert "grddl" in dict(result.syntaxes)
    assert codes(result) == []
