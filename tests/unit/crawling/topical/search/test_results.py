"""Result pages: wrapper learning, totals in any language, next pages, data formats."""

from __future__ import annotations

import time

import msgspec
import pytest

from quadloom.crawling.topical.anchors import read_outline, unwrapped
from quadloom.crawling.topical.search.result_formats import (
    read_discourse,
    read_feed,
    read_mediawiki,
    read_solr,
    read_wordpress,
)
from quadloom.crawling.topical.search.results import Wrapper, learn_wrapper, next_form, next_url, read_results
from quadloom.crawling.topical.search.totals import total_of

NAV = '<nav><a href="/">Home</a> <a href="/about">About us</a></nav>'


def page(query: str, hits: int, *, ads: int = 2, count: str = "", pager: str = "") -> str:
    items = "".join(
        f'<li class="hit"><h3><a href="/doc/{n}">Document {n} of {query}</a></h3>'
        f"<p>some words about {query} here</p></li>"
        for n in range(hits)
    )
    promos = "".join(f'<div class="ad"><a href="/ad/{n}?q={query}">Buy {query} now</a></div>' for n in range(ads))
    return f"<html><body>{NAV}<h1>{query}</h1><p>{count}</p>{promos}<ol>{items}</ol>{pager}</body></html>"


def test_what_a_nonsense_query_shows_is_boilerplate_ads_that_echo_the_query_too() -> None:
    real = read_outline(page("paris", 5), "http://x.test/s?q=paris")
    empty = read_outline(page("zqxv", 0), "http://x.test/s?q=zqxv")
    wrapper = learn_wrapper(real, empty)
    assert wrapper is not None
    found = read_results(real, wrapper).results
    assert [result.url for result in found] == [f"http://x.test/doc/{n}" for n in range(5)]
    assert found[0].title == "Document 0 of paris"
    assert found[0].snippet == "some words about paris here"


def test_a_page_that_answers_everything_alike_is_no_search() -> None:
    same = read_outline(page("x", 3), "http://x.test/s?q=a")
    assert learn_wrapper(same, read_outline(page("x", 3), "http://x.test/s?q=b")) is None


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("Results 1 - 5 of 1,234", 1234),
        ("93 Treffer", 93),
        ("1–5 / 87", 87),
        ("Найдено: 1 024", 1024),
        ("共 66 条", 66),
        ("résultats 1 à 5 sur 310", 310),
        ("Results <b>1</b> - <b>5</b> of about <b>77</b> for <b>paris</b>", 77),
        ("<b>77</b> results", 77),
        ("<span>77</span>&nbsp;results <small>(0.12 seconds)</small>", 77),
        ("About 1.2 million results", 1_200_000),
        ("About 1,230,000 results (0,43 s)", 1_230_000),
        ("Ungefähr 1,2 Mio. Ergebnisse", 1_200_000),
        ("Showing 5 of 77", 77),
        ("1–5 von 1.234 Treffern", 1234),
        ("約 12万 件", 120_000),
        ("12k matches", 12_000),
        ("paris 2024", -1),
        ("© 2024 The Company", -1),
        ("Page 12 of 30", -1),
        ("Seite 12", -1),
        ("from 9.99 up", -1),
        ("Results 1 - 10 of 1,234", 1234),  # five of ten could be read
        ("", -1),
        ("Page 2", -1),
    ],
)
def test_totals_in_any_language_and_markup(text: str, total: int) -> None:
    outline = read_outline(page("paris", 5, count=text), "http://x.test/s?q=paris")
    assert total_of(outline.lines, outline.url, 5) == total


def test_a_number_of_the_query_is_not_a_total() -> None:
    outline = read_outline(page("paris 1999", 5, count="Found for paris 1999: 44"), "http://x.test/s?q=paris+1999")
    assert total_of(outline.lines, outline.url, 5) == 44


@pytest.mark.parametrize(
    ("form", "url", "fields"),
    [
        (
            "<form action=/s method=post><input type=hidden name=q value=paris><input type=hidden name=from value=5>"
            '<input type=submit name=go value="Prev"><input type=submit name=go value="Next &gt;"></form>',
            "http://x.test/s",
            (("q", "paris"), ("from", "5"), ("go", "Next >")),
        ),
        (
            "<form action=/s><input type=hidden name=q value=paris><button name=page value=2>weiter</button></form>",
            "http://x.test/s?q=paris&page=2",
            (),
        ),
        ("<form action=/s><input name=q><button>Next</button></form>", "", ()),  # something to fill in
        ("<form action=/buy method=post><input type=submit value='Order'></form>", "", ()),
    ],
)
def test_a_form_can_turn_the_page(form: str, url: str, fields: tuple[tuple[str, str], ...]) -> None:
    assert next_form(page("paris", 5, pager=form).encode(), "http://x.test/s?q=paris") == (url, fields)


@pytest.mark.parametrize(
    ("pager", "expected"),
    [
        ('<a rel="next" href="/s?q=paris&cursor=abc">more</a>', "/s?q=paris&cursor=abc"),
        ('<a href="/s?q=paris&page=1">1</a><a href="/s?q=paris&page=2">2</a><a href="/s?q=paris&page=3">3</a>',
         "/s?q=paris&page=2"),
        ('<a href="/s?q=paris&start=20">3</a><a href="/s?q=paris&start=10">2</a>', "/s?q=paris&start=10"),
        ('<a href="/s/2/paris">下一页</a>', "/s/2/paris"),
        ('<a href="/s/2/paris">Следующая »</a>', "/s/2/paris"),
        ('<a href="/s/2/paris">»</a>', "/s/2/paris"),
        ('<a href="/s/0/paris">«</a>', ""),
        ('<a href="/next-big-thing">The next big thing in travel</a>', ""),
        ("", ""),
    ],
)  # fmt: skip
def test_next_pages(pager: str, expected: str) -> None:
    outline = read_outline(page("paris", 5, pager=pager), "http://x.test/s?q=paris")
    assert next_url(outline) == (f"http://x.test{expected}" if expected else "")


def test_from_page_two_the_next_is_page_three() -> None:
    pager = "".join(f'<a href="/s?q=paris&page={n}">{n}</a>' for n in range(1, 6))
    outline = read_outline(page("paris", 5, pager=pager), "http://x.test/s?q=paris&page=2")
    assert next_url(outline) == "http://x.test/s?q=paris&page=3"


def test_tracking_redirects_of_the_same_site_are_unwrapped() -> None:
    assert unwrapped("http://x.test/out?u=http%3A%2F%2Fx.test%2Fdoc%2F1") == "http://x.test/doc/1"
    assert unwrapped("http://x.test/out?u=http%3A%2F%2Fother.example%2F").startswith("http://x.test/out")


def test_hostile_pages_are_read_in_linear_time() -> None:
    filler = "word " * 100_000
    for html in (
        f"<div>{'<a href=/same>x</a>' * 3000}{filler}</div>",
        "<div>" * 20_000 + "<a href=/x>x</a>",
        "<b>" * 200 + "<a href=/y>y</a><i>" * 2000,
        "<p>" + "1 " * 50_000,
    ):
        started = time.process_time()
        outline = read_outline(html, "http://x.test/")
        total_of(outline.lines, outline.url, 3)
        next_url(outline)
        assert time.process_time() - started < 5


def test_feeds_with_totals() -> None:
    feed = b"""<?xml version="1.0"?><rss xmlns:o="http://a9.com/-/spec/opensearch/1.1/"><channel><o:totalResults>42
    </o:totalResults><item><title>A &amp; B</title><link>/a</link>
    <description>&lt;b&gt;bold&lt;/b&gt; words</description></item></channel></rss>"""
    result = read_feed(feed, "http://x.test/feed")
    assert (result.total, result.results[0].url, result.results[0].title) == (42, "http://x.test/a", "A & B")
    assert result.results[0].snippet == "bold words"
    atom = b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</title><link href="http://x.test/t"/></entry></feed>'
    assert [r.url for r in read_feed(atom, "http://x.test/").results] == ["http://x.test/t"]


def test_json_of_engines() -> None:
    wordpress = read_wordpress(b'[{"id":1,"title":"One &#8211; two","url":"http://x.test/1"}]', "http://x.test/")
    assert wordpress.results[0].title == "One – two"
    wiki = read_mediawiki(
        b'{"query":{"general":{"server":"//w.test","articlepath":"/wiki/$1"},"searchinfo":{"totalhits":7},'
        b'"search":[{"title":"A b","snippet":"x <span class=\\"searchmatch\\">y</span>"}]}}',
        "http://w.test/w/api.php",
    )
    assert (wiki.total, wiki.results[0].url, wiki.results[0].snippet) == (7, "http://w.test/wiki/A_b", "x y")
    forum = read_discourse(
        b'{"topics":[{"id":5,"slug":"a-b","title":"A b"}],"posts":[{"topic_id":5,"blurb":"words"}]}', "http://d.test/"
    )
    assert (forum.results[0].url, forum.results[0].snippet) == ("http://d.test/t/a-b/5", "words")
    solr = read_solr(
        b'{"response":{"numFound":3,"docs":[{"url":["http://s.test/1"],"title":["T"]}]}}', "http://s.test/"
    )
    assert (solr.total, solr.results[0].title) == (3, "T")


@pytest.mark.parametrize("reader", [read_feed, read_wordpress, read_mediawiki, read_discourse, read_solr])
@pytest.mark.parametrize("body", [b"", b"null", b"[1,{}]", b"{}", b"<", b"\xff\xfe", b'{"query":{"search":[3]}}'])
def test_broken_answers_give_no_results(reader: object, body: bytes) -> None:
    assert callable(reader)
    assert reader(body, "http://x.test/").results == ()


def test_a_wrapper_stored_by_an_earlier_version_is_read() -> None:
    stored = {"signature": "a.", "furniture": ["https://x.test/home"], "shapes": []}
    assert msgspec.convert(stored, Wrapper).boilerplate == {"https://x.test/home"}
    assert msgspec.to_builtins(Wrapper("a.", frozenset({"k"})))["furniture"] == ["k"]
