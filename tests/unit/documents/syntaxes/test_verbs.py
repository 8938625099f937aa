"""Every syntax has the same two verbs: `extract(body, *, url, …)` on its own, and `read(context)` in the pipeline."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple

import pytest

from quadloom.documents.syntaxes import jsonld, microdata, microformats, rdf, rdfa
from quadloom.documents.syntaxes.feeds import json_feed, sitemaps, xml_feeds
from quadloom.documents.syntaxes.html import page
from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.documents.syntaxes.xml import generic, grddl, xslt
from quadloom.documents.transform import transform
from quadloom.settings import Settings, TransformSettings

URL = "https://site.example/page"
GRDDL = b"""<html xmlns="http://www.w3.org/1999/xhtml"><head profile="http://www.w3.org/2003/g/data-view"><title>T</title>
<link rel="transformation" href="http://sw.deri.org/2006/05/transform/xhtml2rdf.xsl"/></head><body/></html>"""


class Case(NamedTuple):
    syntaxes: tuple[str, ...]  # those whose statements `extract` gives
    extract: Callable[..., bytes]
    body: bytes
    content_type: str
    options: dict[str, str] = {}


CASES = (
    Case(
        ("html", "meta", "opengraph"),
        page.extract,
        b"<title>T</title><meta name=author content=A><meta property=og:type content=x>",
        "text/html",
    ),
    Case(("microdata",), microdata.extract, b"<p itemscope itemtype=http://e/T><b itemprop=p>1</b>", "text/html"),
    Case(("rdfa",), rdfa.extract, b"<p vocab=http://e/ typeof=T><b property=p>1</b>", "text/html"),
    Case(("microformats",), microformats.extract, b"<p class=h-card><b class=p-name>N</b>", "text/html"),
    Case(("jsonld",), jsonld.extract, b'{"@id":"a:s","a:p":"o"}', "application/ld+json"),
    Case(("rdf",), rdf.extract, b"<a:s> <a:p> <a:o> .", "text/turtle", {"kind": "turtle"}),
    Case(("rss",), xml_feeds.extract, b"<rss><channel><title>T</title></channel></rss>", "application/rss+xml"),
    Case(
        ("atom",),
        xml_feeds.extract,
        b'<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title></feed>',
        "application/atom+xml",
        {"kind": "atom"},
    ),
    Case(
        ("opml",), xml_feeds.extract_opml, b'<opml><body><outline text="T" xmlUrl="/f"/></body></opml>', "text/x-opml"
    ),
    Case(
        ("jsonfeed",),
        json_feed.extract,
        b'{"version":"https://jsonfeed.org/version/1","title":"T","items":[]}',
        "application/feed+json",
    ),
    Case(
        ("sitemap",),
        sitemaps.extract,
        b"<urlset><url><loc>https://site.example/</loc></url></urlset>",
        "application/xml",
    ),
    Case(
        ("opensearch",),
        xslt.extract,
        b'<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/"><ShortName>S</ShortName>'
        b"</OpenSearchDescription>",
        "application/opensearchdescription+xml",
        {"kind": "opensearch"},
    ),
    Case(
        ("svg",),
        xslt.extract,
        b'<svg xmlns="http://www.w3.org/2000/svg"><title>T</title></svg>',
        "image/svg+xml",
        {"kind": "svg"},
    ),
    Case(("grddl",), grddl.extract, GRDDL, "application/xhtml+xml", {"kind": "xhtml"}),
    Case(("xml",), generic.extract, b"<book><title>T</title></book>", "application/xml"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.syntaxes[0])
def test_extract_gives_what_the_pipeline_reads(case: Case) -> None:
    settings = Settings(transform=TransformSettings(syntaxes=list(case.syntaxes)))
    read = transform(case.body, url=URL, content_type=case.content_type, settings=settings)
    alone = case.extract(case.body, url=URL, **case.options)
    assert alone
    statements = {line.removesuffix(f" <{URL}> .") for line in read.nquads.decode().splitlines()}
    own = {line.removesuffix(" .") for line in alone.decode().splitlines()}
    assert own <= statements
    # `html` always runs for pages, whichever syntaxes are chosen; nothing else may be beyond `extract`.
    counted = {syntax for syntax, _ in read.syntaxes}
    assert own == statements or "html" in counted - set(case.syntaxes)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.syntaxes[0])
def test_extract_has_one_shape(case: Case) -> None:
    parameters = inspect.signature(case.extract).parameters
    assert next(iter(parameters)) == "body"
    assert parameters["url"].kind is inspect.Parameter.KEYWORD_ONLY


def test_every_syntax_is_here_or_has_nothing_to_extract() -> None:
    """Plain text states nothing, files of other programs little; stylesheets of users are a folder, not a syntax."""
    others = {"text", "xslt", "pdf", "office"}
    assert {syntax for case in CASES for syntax in case.syntaxes} | others == set(SYNTAXES.syntaxes)
