"""Feeds: native code and stylesheets say the same; dates; cost grows with the size and no faster."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from quadloom.documents.detect import detect
from quadloom.documents.syntaxes.feeds import sitemaps as sitemaps_rdf
from quadloom.documents.syntaxes.feeds import xml_feeds as feeds
from quadloom.documents.syntaxes.feeds.writing import parse_date, plain
from quadloom.documents.syntaxes.feeds.xml import repaired
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.xml.xslt import NAMES, bundled
from quadloom.settings import Settings

URL = "https://site.example/feed"
RSS = """<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:content="http://purl.org/rss/1.0/modules/content/">
<channel><title>News &amp;amp; more</title><link>/</link><description>All</description><language>en</language>
<copyright>me</copyright><lastBuildDate>Wed, 01 Jan 2025 00:00:00 GMT</lastBuildDate><image><url>/logo.png</url>
</image>{items}</channel></rss>"""
ITEM = """<item><title>Title {n}</title><link>/post/{n}</link><guid isPermaLink="false">p-{n}</guid>
<pubDate>Wed, 01 Jan 2025 10:{m:02}:00 +0100</pubDate><dc:creator>Ada</dc:creator><category>x</category>
<category>y</category><description>&lt;p&gt;Words {n}&lt;/p&gt;</description>
<content:encoded>&lt;b&gt;{n}&lt;/b&gt;</content:encoded>
<enclosure url="/{n}.mp3" type="audio/mpeg" length="{n}"/></item>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de"><title>Neues</title>
<subtitle>Alles</subtitle><id>tag:x,2025:f</id><updated>2025-01-01T00:00:00+01:00</updated><link href="/"/>
<logo>/logo.png</logo><rights>ich</rights>{items}</feed>"""
ENTRY = """<entry><title>Titel {n}</title><id>tag:x,2025:{n}</id><link href="/post/{n}"/>
<link rel="enclosure" href="/{n}.ogg" type="audio/ogg" length="7"/><published>2025-01-01T10:{m:02}:00Z</published>
<updated>2025-01-02T10:00:00Z</updated><author><name>Ada</name></author>
<category label="Kette" term="k"/><category term="s"/><summary>Worte {n}</summary>
<content type="html">&lt;b&gt;{n}&lt;/b&gt;</content></entry>"""


def rss(count: int) -> bytes:
    return RSS.format(items="".join(ITEM.format(n=n, m=n % 60) for n in range(count))).encode()


def atom(count: int) -> bytes:
    return ATOM.format(items="".join(ENTRY.format(n=n, m=n % 60) for n in range(count))).encode()


def context(body: bytes) -> Context:
    return Context(body, detect(body, url=URL, content_type="application/xml"), url=URL, settings=Settings())


@pytest.mark.parametrize(("name", "body"), [("rss", rss(5)), ("atom", atom(5))])
def test_stylesheet_and_native_code_say_the_same(name: str, body: bytes) -> None:
    native, styled = context(body), context(body)
    feeds.read(native)
    bundled(name).state(styled, styled.root, syntax=name)
    assert styled.findings == native.findings == []
    assert set(native.sink.statements()) == set(styled.sink.statements())
    assert len(native.sink) > 50


def test_sitemap_stylesheet_says_the_same() -> None:
    pages = "".join(f"<url><loc>/p{n}</loc><lastmod>2025-01-{n + 1:02}</lastmod></url>" for n in range(9))
    body = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{pages}</urlset>'.encode()
    native, styled = context(body), context(body)
    sitemaps_rdf.read(native)
    bundled("sitemap").state(styled, styled.root, syntax="sitemap")
    assert set(styled.sink.statements()) == {s.replace("\n", "") for s in native.sink.statements()}


@pytest.mark.parametrize("name", NAMES)
def test_every_bundled_stylesheet_compiles_and_gives_rdf(name: str) -> None:
    output = bundled(name).apply(etree.fromstring("<other/>"), url=URL)
    assert output.kind == "rdfxml"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Wed, 01 Jan 2025 12:00:00 GMT", "2025-01-01T12:00:00Z"),
        ("Wed, 1 January 2025 12:00 +0230", "2025-01-01T09:30:00Z"),
        ("01 Jan 2025 12:00:00", "2025-01-01T12:00:00Z"),
        ("Wed, 01 Jan 25 12:00:00 PST", "2025-01-01T20:00:00Z"),
        ("2025-01-01", "2025-01-01T00:00:00Z"),
        ("2025-01", "2025-01-01T00:00:00Z"),
        ("2025-01-01 12:00:00", "2025-01-01T12:00:00Z"),
        ("2025-01-01T12:00:00.123-05:00", "2025-01-01T17:00:00Z"),
        ("2024-12-31T24:00:00Z", "2025-01-01T00:00:00Z"),
        ("2025-13-01", None),
        ("31 Feb 2025 10:00 GMT", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("yesterday", None),
        ("", None),
        ("x" * 1000, None),
    ],
)
def test_dates(text: str, expected: str | None) -> None:
    found = parse_date(text)
    assert (found.text if found else None) == expected


@given(st.text(max_size=80))
def test_no_text_breaks_the_reader_of_dates(text: str) -> None:
    found = parse_date(text)
    assert found is None or found.text.endswith("Z")


@given(st.text(max_size=200))
def test_repaired_text_is_always_decodable_and_keeps_words(text: str) -> None:
    source = f"<a>{text}</a>".encode("utf-8", "replace")
    assert repaired(source).decode("utf-8").startswith("<a>")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<p>One</p><p>Two</p>", "One Two"),
        ("a &lt; b &amp; c", "a < b & c"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("x<!-- no --><script>no()</script ><style>no</style>y", "x y"),
        ("x<!-- never closed", "x"),
        ("caf&eacute;\n\t au  lait", "café au lait"),
    ],
)
def test_words_of_html(text: str, words: str) -> None:
    assert plain(text) == words


@pytest.mark.parametrize("piece", ["<", "<!--", "<script>", "<a ", "<a a='", "&", "&#x", "</"])
def test_words_of_hostile_html_come_in_linear_time(piece: str) -> None:
    started = time.process_time()
    plain(piece * 300_000)
    assert time.process_time() - started < 3.0


def test_a_feed_without_place_for_words_keeps_limits() -> None:
    many = "".join(f"<category>c{n}</category>" for n in range(20_000))
    read = context(f'<rss version="2.0"><channel><item><link>/1</link>{many}</item></channel></rss>'.encode())
    started = time.process_time()
    feeds.read(read)
    assert time.process_time() - started < 2.0
    assert len(read.sink) < 300


def test_time_is_linear_in_entries() -> None:
    def seconds(count: int) -> float:
        body = rss(count)
        best = 9.0
        for _ in range(3):
            started = time.process_time()
            feeds.read(context(body))
            best = min(best, time.process_time() - started)
        return best

    assert seconds(2000) < 8 * max(seconds(500), 0.001)
