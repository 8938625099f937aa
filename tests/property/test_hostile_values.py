"""Values made to break out of a statement, put into every place of every syntax where a page can write one.

Whatever they are, nothing of ours fails, every statement is one for a strict N-Quads parser, all are in the page's own
graph, and the answer can be sent to the owner.
"""

from __future__ import annotations

import html

import pyoxigraph as ox
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quadloom.documents.extract import chosen
from quadloom.documents.pipeline import process_page
from quadloom.model import wire
from quadloom.model.page import Page
from quadloom.model.page_result import PageResult
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.settings import IndexSettings, Settings
from thoroughness import examples

URL = "https://site.example/folder/page"
ALL_LINKS = Settings(index=IndexSettings(links="all"))
STRATEGIES = chosen(["all", "vocabulary"])

# `IRI` stands for where an IRI or reference is expected, `NAME` for where a name or word is.
PAGES = {
    "rdfa": (
        "text/html",
        '<body vocab="http://v.example/"><p about="IRI" property="NAME">x</p><a rel="NAME" href="IRI">y</a>'
        '<p resource="IRI" typeof="NAME IRI"><b property="NAME" lang="NAME" datatype="IRI">z</b></p>'
        '<div prefix="p: IRI"><i about="p:x" property="p:NAME">x</i></div><div vocab="IRI"><u property="a">x</u></div>',
    ),
    "base": (
        "text/html",
        '<base href="IRI"><p about="x" property="dc:title">x</p><p itemscope itemid="y"><a itemprop="x" href="z"></a>'
        '<a class="h-card" href="q">x</a><script type="application/ld+json">{"@id":"x","http://a/b":"c"}</script>',
    ),
    "microdata": (
        "text/html",
        '<div itemscope itemtype="IRI NAME" itemid="IRI"><a itemprop="NAME IRI" href="IRI">x</a></div>',
    ),
    "microformats": (
        "text/html",
        '<div class="h-NAME h-entry p-NAME"><a class="u-url p-NAME u-NAME" href="IRI">x</a></div>',
    ),
    "meta": (
        "text/html",
        '<html lang="NAME"><title>NAME</title><meta property="og:NAME" content="IRI"><meta name="dc.NAME" content="x">'
        '<link rel="NAME canonical" href="IRI"><a href="mailto:NAME">m</a><img src="IRI" alt="NAME">',
    ),
    "jsonld": (
        "application/ld+json",
        '{"@context":{"@vocab":"IRI","p":"IRI","q":{"@id":"http://a/NAME","@type":"IRI"}},"@id":"IRI","p:NAME":"x",'
        '"q":"z","NAME":1,"@type":["IRI","NAME"],"r":{"@value":"x","@language":"NAME"},"s":{"@id":"NAME"}}',
    ),
    "rss": (
        "application/rss+xml",
        '<rss version="2.0"><channel><title>NAME</title><link>IRI</link><language>NAME</language><item>'
        '<guid>IRI</guid><link>IRI</link><enclosure url="IRI" type="NAME"/><category>NAME</category></item></channel>'
        "</rss>",
    ),
    "atom": (
        "application/atom+xml",
        '<feed xmlns="http://www.w3.org/2005/Atom" xml:base="IRI" xml:lang="NAME"><title>x</title><id>IRI</id>'
        '<link href="IRI" rel="NAME"/><entry><id>IRI</id><link href="x"/><author><uri>IRI</uri></author></entry>'
        "</feed>",
    ),
    "xml": (
        "application/xml",
        '<r xmlns="IRI" xml:base="IRI" xmlns:x="http://www.w3.org/1999/xlink"><a xml:id="NAME" x:href="IRI"'
        ' xml:lang="NAME">t</a></r>',
    ),
    "names of XML": ("application/xml", '<r><aNAME bNAME="c"/></r>'),
    "svg": (
        "image/svg+xml",
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:p="IRI" xml:base="IRI"><g about="p:x" property="p:NAME"'
        ' rel="p:z" resource="NAME">t</g><title xml:lang="NAME">t</title></svg>',
    ),
    "rdfxml": (
        "application/rdf+xml",
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="IRI" xml:base="IRI">'
        '<rdf:Description rdf:about="NAME" a:b="c" xml:lang="NAME"/><a:c/></rdf:RDF>',
    ),
    "turtle": ("text/turtle", '<x> <http://a/b> <IRI> . <NAME> <http://a/b> "NAME" , "y"@NAME .'),
    "trig": ("application/trig", "<IRI> { <a:a> <a:b> <IRI> } GRAPH <urn:quadloom:pages> { <a:a> <a:b> _:NAME }"),
    "sitemap": (
        "application/xml",
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>IRI</loc><lastmod>NAME</lastmod></url>'
        "</urlset>",
    ),
    "jsonfeed": (
        "application/feed+json",
        '{"version":"https://jsonfeed.org/version/1.1","title":"NAME","home_page_url":"IRI","language":"NAME","items":'
        '[{"id":"IRI","url":"IRI","tags":["NAME"],"attachments":[{"url":"IRI","mime_type":"NAME"}]}]}',
    ),
}  # fmt: skip
RAW = frozenset(("application/ld+json", "application/feed+json", "text/turtle", "application/trig"))
PIECES = (
    "", "a", "name", "http://a/", "http://a.example/x#", "urn:", "_:", "_:b0", "#", "##", "[", "]", "[_:x]", "[::1",
    "%", "%zz", "%00", "%0d%0a", " ", "\t", "\n", "\r", '"', "\\", "'", "<", ">", "{", "}", "|", "^", "`", "@", ":",
    "//", "?", "\x00", "\x0b", "\x1b[2J", "\x7f", "\x85", "\xa0", "\u2028", "\u202e", "\u3000", "\ufdd0", "\ufffd",
    "\uffff", "\ue000", "\U0001ffff", "\U000e0001", "\\ud800", "\\u0000", "\\u2028", "en-", "x-y", "javascript:x",
    "data:,x", '" <urn:other> .\n', "> <urn:other> .\n", "&#0;", "&a;", "-->", "]]>", "http://[fe80::1%25eth0]/", "http://a:99999/",
    "http://u:p@a/", "é", "\u0301", "·", "9" * 400, "1e999", "0000-13-45T99:99:99Z",
)  # fmt: skip
VALUES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)


def processed(body: bytes, content_type: str) -> PageResult:
    page = Page(URL, URL, 200, (("content-type", content_type),), body, 1e9, 0.1)
    url = Url.parse(URL)
    visit = Visit(url.href, url.key, url.host, url.fingerprint)
    return process_page(page, visit, ALL_LINKS, STRATEGIES)


def check(found: PageResult) -> None:
    codes = [finding.code for finding in found.findings]
    assert not {"internal-error", "extractor-failed"}.intersection(codes), found.findings
    statements = list(ox.parse(found.quads.nquads, ox.RdfFormat.N_QUADS))
    assert len(statements) == found.quads.count
    assert {str(statement.graph_name) for statement in statements} <= {f"<{URL}>"}
    wire.encode(found)
    for discovery in found.discoveries:
        assert Url.parse(discovery.href).href == discovery.href


def test_an_entity_that_is_not_resolved_is_no_element() -> None:
    markup = '<g about="#a" property="http://v.example/p">x &e; y</g>'
    found = processed(
        f'<!DOCTYPE svg [<!ENTITY e "z">]><svg xmlns="http://www.w3.org/2000/svg">{markup}</svg>'.encode(),
        "image/svg+xml",
    )
    check(found)
    assert b"<http://v.example/p>" in found.quads.nquads


@pytest.mark.parametrize("body", [b"\xff\xfe", b"<", b"<!DOCTYPE rss>", b"<!-- "])
def test_a_feed_without_an_element_is_a_defect_of_the_feed(body: bytes) -> None:
    found = processed(body, "application/rss+xml")
    check(found)
    assert found.quads.count == 0


def test_a_literal_of_xml_without_canonical_form_is_read_as_it_is() -> None:
    literal = '<a:b rdf:parseType="Literal"><i xmlns="relative">x</i></a:b>'
    found = processed(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="http://a.example/">'
        f'<rdf:Description rdf:about="#a">{literal}</rdf:Description></rdf:RDF>'.encode(),
        "application/rdf+xml",
    )
    check(found)
    assert b"XMLLiteral" in found.quads.nquads


def test_half_a_surrogate_pair_in_a_context_costs_no_document() -> None:
    found = processed(
        b'{"@context":{"@vocab":"http://v.example/","x":"ht\\ud800tp:"},"name":"\\udc00a"}', "application/ld+json"
    )
    check(found)
    assert "\ufffda".encode() in found.quads.nquads


@pytest.mark.parametrize("name", PAGES)
@settings(max_examples=examples(40, 600), deadline=None)
@given(iri=VALUES, word=VALUES)
@example(iri="http://a/[x]", word="a\ufffd")
@example(iri="http://a/%zz", word="\\ud800")
@example(iri="", word="\\ud800")
@example(iri="http://a/#x#y", word="en-\ufdd0")
@example(iri="http://[fe80::1%25eth0]/", word="[a:b]")
@example(iri="http://a b/", word="\ue000")
def test_no_value_breaks_out(name: str, iri: str, word: str) -> None:
    content_type, template = PAGES[name]
    if content_type not in RAW:
        iri, word = html.escape(iri), html.escape(word)
    check(processed(template.replace("IRI", iri).replace("NAME", word).encode(), content_type))
