"""Detect: what a body is, whatever its label says."""

from __future__ import annotations

import time

import pytest

from quadloom.documents.detect import detect

XHTML = b'<html xmlns="http://www.w3.org/1999/xhtml">'
RDF = b'<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'


def kind(body: bytes, content_type: str | None = None, url: str = "https://site.example/") -> str:
    return detect(body, url=url, content_type=content_type).kind


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"<!doctype html><p>x", "text/html", "html"),
        (b"<map><area>", "text/html", "html"),
        (b"just words", "text/html", "html"),
        (b"<?xml version='1.0'?>" + XHTML + b"</html>", "text/html", "html"),
        (XHTML + b"<p/></html>", "application/xhtml+xml", "xhtml"),
        (b'<!DOCTYPE html PUBLIC "a" "b">' + XHTML + b"&nbsp;</html>", "application/xhtml+xml", "xhtml"),
        (XHTML + b"<p></html>", "application/xhtml+xml", "html"),
        (b'<rss version="2.0"/>', "application/rss+xml", "rss"),
        (b'<rss version="2.0"/>', "text/html", "rss"),
        (RDF + b' xmlns="http://purl.org/rss/1.0/"/>', "application/xml", "rss"),
        (RDF + b"/>", "text/xml", "rdfxml"),
        (b'<foaf:Person xmlns:foaf="http://xmlns.com/foaf/0.1/"/>', "application/rdf+xml", "rdfxml"),
        (b'<feed xmlns="http://www.w3.org/2005/Atom"/>', "text/xml", "atom"),
        (b"<opml/>", "text/xml", "opml"),
        (b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>', "text/xml", "sitemap"),
        (b"<sitemapindex/>", "text/plain", "sitemapindex"),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "image/svg+xml", "svg"),
        (b'<definitions xmlns="http://schemas.xmlsoap.org/wsdl/"/>', "text/xml", "wsdl"),
        (b'<schema xmlns="http://www.w3.org/2001/XMLSchema"/>', "text/xml", "xsd"),
        (b'<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/"/>', "text/xml", "opensearch"),
        (b'<x:transform xmlns:x="http://www.w3.org/1999/XSL/Transform"/>', "text/xml", "xslt"),
        (b"<catalogue/>", "application/vnd.acme+xml", "xml"),
        (b'{"@context": "https://schema.org"}', "application/json", "jsonld"),
        (b'[{"@id": "x"}]', "text/plain", "jsonld"),
        (b'{"version": "https://jsonfeed.org/version/1.1", "items": []}', "application/json", "jsonfeed"),
        (b'{"a": 1}', None, "json"),
        (b"{not json", None, "text"),
        (b"@prefix a: <http://a/> .\na:b a a:c .", "text/plain", "turtle"),
        (b"# data\nPREFIX a: <http://a/>\nGRAPH a:g { a:b a a:c }", None, "trig"),
        (b'<http://a> <http://b> "c"@en .\n_:x <http://b> <http://d> .\n', "text/plain", "ntriples"),
        (b"<http://a> <http://b> <http://c> <http://g> .\n", "application/octet-stream", "nquads"),
        (b"<http://a> <http://b> <http://c> .", "text/turtle", "turtle"),
        (b'<#a> <http://b/name> "x" .', "text/plain", "turtle"),
        (b'<http://a> <http://b> "c" .\n<> <http://b> <d> .\n', "text/plain", "turtle"),
        (b'<http://a> <http://b> "see <this>" .', "text/plain", "ntriples"),
        (b"<a> a <b> .", "text/plain", "turtle"),
        (
            b'# a person\n<#me> a <http://b/Person> ;\n  <http://b/age> 7 ;\n  <http://b/nick> "x", "y" .',
            "text/plain",
            "turtle",
        ),
        (b"<a> a <b> .", None, "turtle"),
        (b"<b> a word in bold </b>.", "text/plain", "html"),
        (b"<#a> a <#b> . That is all.", "text/plain", "text"),
        (b"%PDF-1.7", "text/html", "pdf"),
        (b"\x89PNG\r\n\x1a\n", None, "image"),
        (b"RIFF0000WEBPVP8 ", None, "image"),
        (b"PK\3\4", "application/octet-stream", "archive"),
        (b"BMW is a car", "text/plain", "text"),
        (b"body { color: red }", "text/css", "css"),
        (b"if (a<b) c()", "application/javascript", "javascript"),
        (b"\x00\x01\x02\x03", None, "binary"),
        (b" \r\n\t", "text/html", "empty"),
    ],
)
def test_kinds(body: bytes, content_type: str | None, expected: str) -> None:
    assert kind(body, content_type) == expected


def test_extension_speaks_where_the_label_is_silent() -> None:
    assert kind(b"a:b a a:c .", None, "https://site.example/data.ttl?x=1") == "turtle"
    assert kind(b"a:b a a:c .", "text/plain", "https://site.example/data.ttl") == "turtle"
    assert kind(b"words", None, "https://site.ttl") == "text"  # a host is not a file name


def test_content_wins_and_the_contradiction_is_kept() -> None:
    document = detect(b'<rss version="2.0"/>', url="https://site.example/feed.html", content_type="text/html")
    (finding,) = document.findings
    assert (finding.code, finding.phase) == ("wrong-content-type", "detect")
    assert "application/rss+xml" in finding.advice
    assert document.media_type == "application/rss+xml"


def test_reasons_tell_the_way_in_order() -> None:
    document = detect(b"<rss/>", url="https://site.example/a.xml", content_type="text/xml")
    assert document.reasons == (
        "extension .xml means xml",
        "Content-Type text/xml means xml",
        "charset utf-8 by default",
        "root element rss",
    )
    assert document.root == "rss"


def test_a_refined_label_is_no_contradiction() -> None:
    assert detect(b"<rss/>", url="https://site.example/", content_type="text/xml").findings == ()


def test_broken_xhtml_says_where() -> None:
    document = detect(XHTML + b"\n<p></html>", url="https://site.example/", content_type="application/xhtml+xml")
    assert (document.kind, document.findings[0].code, document.findings[0].line) == ("html", "xhtml-not-well-formed", 2)


def test_entity_bombs_cost_nothing() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "x" * 10}">' for n in range(12))
    bomb = f"<!DOCTYPE a [{entities}]><a b='&e11;'/>".encode()
    started = time.process_time()
    assert kind(bomb, "text/xml") == "xml"
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    "example", [b"<canvas id=x>\n  drawing\n", b'<math display="block">', b"<custom-element>\n</p>"]
)
def test_text_that_begins_with_a_tag_is_text(example: bytes) -> None:
    """An example of code, served as what it is. An XML declaration or a root that is known still says more."""
    document = detect(example, url="https://site.example/snippet.txt", content_type="text/plain")
    assert (document.kind, document.findings) == ("text", ())
    assert kind(b"<?xml version='1.0'?><canvas/>", "text/plain") == "xml"
    assert kind(b"<rss version='2.0'/>", "text/plain") == "rss"


@pytest.mark.parametrize(
    "media_type",
    [
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.oasis.opendocument.text",
        "application/epub+zip",
        "application/java-archive",
    ],
)
def test_a_format_that_is_packed_as_zip_has_its_own_type(media_type: str) -> None:
    body = b"PK\x03\x04\x14\x00\x06\x00" + b"\0" * 40
    assert detect(body, url="https://site.example/book.xlsx", content_type=media_type).findings == ()
    assert detect(body, url="https://site.example/book", content_type="text/html").findings != ()
