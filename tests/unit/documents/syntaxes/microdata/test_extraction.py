"""The rules of microdata to RDF, one test each."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import RdfFormat, parse
from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.microdata import extraction as microdata
from quadloom.documents.syntaxes.microdata.values import REGISTRY, vocabulary_of
from quadloom.documents.syntaxes.sink import Sink
from quadloom.errors import SyntaxInvalid
from thoroughness import examples

URL = "http://site.example/page"
XSD = "http://www.w3.org/2001/XMLSchema#"


def lines(html: str, url: str = URL) -> list[str]:
    body = microdata.extract(html.encode(), url=url)
    list(parse(body, RdfFormat.N_TRIPLES))
    return body.decode().splitlines()


def value(element: str) -> str:
    """The object of the one property `p` in an item."""
    (line,) = lines(f"<div itemscope>{element}</div>")
    return line.removeprefix(f"_:b0 <{URL}#p> ").removesuffix(" .")


def test_page_without_items_gives_nothing() -> None:
    assert lines("<p itemprop=name>x</p>") == []
    assert microdata.extract(b"itemscope", url=URL) == b""


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("<b itemprop=p> a\nb </b>", '" a\\nb "'),
        ("<b itemprop=p>a<script>s</script></b>", '"as"'),
        ("<meta itemprop=p content=x>", '"x"'),
        ("<span itemprop=p content=9.5>9,50</span>", '"9.5"'),
        ("<time itemprop=p content=2024-02-29>x</time>", f'"2024-02-29"^^<{XSD}date>'),
        ("<img itemprop=p content=x src=i>", "<http://site.example/i>"),
        ("<data itemprop=p>x</data>", '""'),
        ("<a itemprop=p href=/x>t</a>", "<http://site.example/x>"),
        ("<a itemprop=p href='http://a.example'>t</a>", "<http://a.example>"),
        ("<object itemprop=p data=o></object>", "<http://site.example/o>"),
        ("<video itemprop=p src=v></video>", "<http://site.example/v>"),
        ("<data itemprop=p value=1></data>", f'"1"^^<{XSD}integer>'),
        ("<data itemprop=p value=-1.5e3></data>", f'"-1.5e3"^^<{XSD}double>'),
        ("<meter itemprop=p value=+1></meter>", '"+1"'),
        ("<time itemprop=p>2024-02-29</time>", f'"2024-02-29"^^<{XSD}date>'),
        ("<time itemprop=p>2023-02-29</time>", '"2023-02-29"'),
        ("<time itemprop=p>2024-02</time>", f'"2024-02"^^<{XSD}gYearMonth>'),
        ("<time itemprop=p>2024</time>", f'"2024"^^<{XSD}gYear>'),
        (
            "<time itemprop=p datetime='2024-02-29T10:00:00+01:00'>x</time>",
            f'"2024-02-29T10:00:00+01:00"^^<{XSD}dateTime>',
        ),
        ("<time itemprop=p>10:30</time>", '"10:30"'),
        ("<time itemprop=p>10:30:00</time>", f'"10:30:00"^^<{XSD}time>'),
        ("<time itemprop=p>PT5M</time>", f'"PT5M"^^<{XSD}duration>'),
        ("<time itemprop=p>P</time>", '"P"'),
        ("<b itemprop=p lang=DE>x</b>", '"x"@de'),
        ("<b lang=de><i itemprop=p lang=''>x</i></b>", '"x"'),
    ],
)
def test_value(element: str, expected: str) -> None:
    assert value(element) == expected


def test_link_without_address_has_no_value() -> None:
    assert lines("<div itemscope><a itemprop=p>x</a></div>") == []


def test_language_of_the_page_and_of_the_pragma() -> None:
    assert lines("<html lang=en><p itemscope><b itemprop=p>x</b>") == [f'_:b0 <{URL}#p> "x"@en .']
    pragma = '<meta http-equiv="Content-Language" content="fr">'
    assert lines(f"{pragma}<p itemscope><b itemprop=p>x</b>") == [f'_:b0 <{URL}#p> "x"@fr .']


def test_encoding_is_that_of_the_page() -> None:
    html = "<meta charset=windows-1251><p itemscope><b itemprop=p>\u0416</b>"
    assert microdata.extract(html.encode("cp1251"), url=URL).decode() == f'_:b0 <{URL}#p> "\u0416" .\n'
    assert microdata.extract(html.encode("utf-16"), url=URL).decode() == f'_:b0 <{URL}#p> "\u0416" .\n'


def test_base_element_moves_names_and_references() -> None:
    found = lines("<base href='http://b.example/d/'><p itemscope itemid=i><b itemprop=p>x</b>")
    assert found == ['<http://b.example/d/i> <http://b.example/d/#p> "x" .']


@pytest.mark.parametrize(
    ("kind", "vocabulary"),
    [
        ("http://schema.org/Person/Teacher", "http://schema.org/"),
        ("https://schema.org/Person", "https://schema.org/"),
        ("http://microformats.org/profile/hcard", "http://microformats.org/profile/hcard"),
        ("http://e.example/a/B", "http://e.example/a/"),
        ("http://e.example/a#B", "http://e.example/a#"),
        ("http://e.example/a?q=x/y", "http://e.example/"),
        ("http://e.example", "http://e.example"),
        ("urn:x:y", "urn:x:y"),
    ],
)
def test_vocabulary_of_a_type(kind: str, vocabulary: str) -> None:
    assert vocabulary_of(kind, REGISTRY)[0] == vocabulary


def test_names_become_property_iris() -> None:
    found = lines("<p itemscope itemtype='http://microformats.org/profile/hcard'><b itemprop='fn x{y a#b 9%'>n</b>")
    assert '_:b0 <http://microformats.org/profile/hcard#fn> "n" .' in found
    assert '_:b0 <http://microformats.org/profile/hcard#x%7By> "n" .' in found
    assert '_:b0 <http://microformats.org/profile/hcard#a%23b> "n" .' in found
    assert '_:b0 <http://microformats.org/profile/hcard#9%25> "n" .' in found


def test_untyped_item_inherits_the_vocabulary() -> None:
    found = lines("<p itemscope itemtype=http://v.example/A><i itemprop=k itemscope><b itemprop=n>x</b></i>")
    assert '_:b1 <http://v.example/n> "x" .' in found


def test_additional_type_is_a_type() -> None:
    found = lines("<p itemscope itemtype=https://schema.org/A><link itemprop=additionalType href=http://v.example/B>")
    assert "_:b0 <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://v.example/B> ." in found


def test_reverse_property() -> None:
    found = lines("<p itemscope><link itemprop-reverse=made href=/w><i itemprop-reverse=made itemscope></i>")
    assert found == [f"<http://site.example/w> <{URL}#made> _:b0 .", f"_:b1 <{URL}#made> _:b0 ."]


def test_itemref_adds_the_subtree_but_not_other_items() -> None:
    html = "<p itemscope itemref='r r'></p><div id=r><b itemprop=a>1</b><i itemscope><b itemprop=x>2</b></i></div>"
    assert lines(html) == [f'_:b0 <{URL}#a> "1" .', f'_:b1 <{URL}#x> "2" .']


def test_shared_untyped_item_speaks_both_vocabularies() -> None:
    html = (
        "<p itemscope itemtype=http://v.example/A itemref=r></p><p itemscope itemtype=http://w.example/A itemref=r></p>"
        "<div id=r itemprop=k itemscope><b itemprop=n>x</b></div>"
    )
    found = lines(html)
    assert '_:b1 <http://v.example/n> "x" .' in found
    assert '_:b1 <http://w.example/n> "x" .' in found


@pytest.mark.parametrize(
    "html",
    [
        "<p itemscope id=a itemref=a><b itemprop=n>x</b></p>",
        "<div id=a><p itemscope itemref=a></p><b itemprop=n>x</b></div>",
        "<p itemscope itemref=a></p><i id=a itemprop=k itemscope itemref=b></i>"
        "<i id=b itemprop=k itemscope itemref=a></i>",
    ],
)
def test_recursive_itemref_is_found(html: str) -> None:
    with pytest.raises(SyntaxInvalid, match="part of itself"):
        microdata.extract(html.encode(), url=URL)
    findings = microdata.write(LexborHTMLParser(html), Sink(), base=URL)
    assert [finding.code for finding in findings] == ["microdata-itemref-loop"]


def test_nested_items_have_no_depth_limit() -> None:
    sink = Sink()
    assert microdata.write(LexborHTMLParser("<p itemscope>" + "<b itemscope itemprop=k>" * 3000), sink, base=URL) == []
    assert len(sink) == 3000


HOSTILE = {
    "items": lambda n: b"<p itemscope><b itemprop=a>x</b></p>" * n,
    "nested properties": lambda n: b"<p itemscope>" + b"<b itemprop=a>" * n,
    "nested items": lambda n: b"<p itemscope>" + b"<b itemscope itemprop=a>" * n,
    "deep": lambda n: b"<p itemscope>" + b"<b>" * n + b"<i itemprop=a>x</i>" * n,
    "shared references": lambda n: b"<p itemscope itemref=r></p>" * n + b"<div id=r>" + b"<b itemprop=a>x</b>" * n,
    "names": lambda n: b"<p itemscope><b itemprop='" + b" ".join(b"n%d" % i for i in range(n)) + b"'>x",
    "reference chain": lambda n: b"".join(
        b"<b itemscope itemprop=a id=r%d itemref=r%d></b>" % (i, i + 1) for i in range(n)
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_stay_linear(name: str) -> None:
    body = HOSTILE[name](20_000)
    tree = LexborHTMLParser(body)
    started = time.process_time()
    microdata.write(tree, Sink(), base=URL)
    assert time.process_time() - started < 4.0


def test_hostile_source_is_tamed_before_it_is_parsed() -> None:
    started = time.process_time()
    microdata.extract(b"<div itemscope itemprop=a>" * 50_000, url=URL)
    microdata.extract(b"<p itemscope " + b" ".join(b"a%d=1" % i for i in range(80_000)) + b">", url=URL)
    assert time.process_time() - started < 4.0


def test_itemref_multiplication_is_reported() -> None:
    tree = LexborHTMLParser(HOSTILE["shared references"](1000))
    codes = [finding.code for finding in microdata.write(tree, Sink(), base=URL)]
    assert codes == ["microdata-itemref-limit"]


ATTRIBUTES = st.sampled_from(
    ["itemscope", "itemprop='a b'", 'itemprop="x\ud7ff{<\'>"', "itemref='a b'", "id=a", "id=b", "itemid='%zz <>'"]
) | st.sampled_from(
    ["itemtype='http://v.example/A'", "itemtype='x: <y>'", "href='http://[bad'", "lang='x-'", "itemprop-reverse=r"]
)
ELEMENTS = st.tuples(
    st.sampled_from(["p", "a", "time", "data", "meta", "link", "/p", "/a", "/div", "div"]), st.lists(ATTRIBUTES)
)


@settings(max_examples=examples(60, 500), deadline=None)
@given(st.lists(st.one_of(ELEMENTS, st.text(max_size=5)), max_size=25))
def test_any_page_gives_valid_statements(parts: list[tuple[str, list[str]] | str]) -> None:
    html = "".join(part if isinstance(part, str) else f"<{part[0]} {' '.join(part[1])}>" for part in parts)
    sink = Sink()
    microdata.write(LexborHTMLParser(html), sink, base=URL)
    # Lenient as the store is: the web's URLs carry brackets and bare percent signs that strict IRIs refuse.
    list(parse(sink.nquads(), RdfFormat.N_TRIPLES, lenient=True))
