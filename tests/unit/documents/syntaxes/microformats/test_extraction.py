"""The rules of microformats parsing, one test each."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import RdfFormat
from pyoxigraph import parse as parse_rdf
from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.html.elements import elements_of
from quadloom.documents.syntaxes.microformats import extraction as microformats
from quadloom.documents.syntaxes.sink import Sink
from thoroughness import examples

URL = "http://site.example/page"


def item(html: str, url: str = URL) -> Mapping[str, object]:
    items = microformats.parse(html.encode(), url=url)["items"]
    assert isinstance(items, list)
    (found,) = items
    assert isinstance(found, dict)
    return found


def properties(html: str) -> object:
    return item(html)["properties"]


def value(element: str) -> object:
    """The one value of the property `x` in an item that has a name, a photo and a url already."""
    known = "<b class='p-name u-photo u-url'>n</b>"
    found = properties(f"<div class=h-test>{known}{element}</div>")
    assert isinstance(found, dict)
    (one,) = found["x"]
    return one


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ("<p class=p-x> a <b>b</b>\n</p>", "a b"),
        ("<p class=p-x>a<img alt=' b'><script>no</script><style>no</style></p>", "a b"),
        ("<p class=p-x>a<img src=i>b</p>", "a http://site.example/i b"),
        ("<abbr class=p-x title=' t '>a</abbr>", " t "),
        ("<input class=p-x value=v>", "v"),
        ("<p class=p-x>no <i class=value>a </i>no<b class=value>b</b></p>", "a b"),
        ("<p class=p-x>no <i class=value-title title=t>no</i></p>", "t"),
        ("<p class=p-x>all <span class=p-y><i class=value>no</i></span></p>", "all no"),
        ("<a class=u-x href='../a b'>t</a>", "http://site.example/a%20b"),
        ("<a class=u-x href='http://a.example'>t</a>", "http://a.example"),
        ("<img class=u-x src=i>", "http://site.example/i"),
        ("<img class=u-x src=i alt=a>", {"value": "http://site.example/i", "alt": "a"}),
        (
            "<img class=u-x src=i srcset='j 2x, k'>",
            {
                "value": "http://site.example/i",
                "srcset": {"2x": "http://site.example/j", "1x": "http://site.example/k"},
            },
        ),
        ("<video class=u-x poster=i></video>", "http://site.example/i"),
        ("<object class=u-x data=o></object>", "http://site.example/o"),
        ("<p class=u-x>t</p>", "http://site.example/t"),
        ("<time class=dt-x datetime=' d '>t</time>", " d "),
        ("<p class=dt-x><i class=value>2020-01-02</i> <b class=value>7pm</b></p>", "2020-01-02 19:00"),
        ("<p class=dt-x><i class=value>12:05am</i><i class=value>2020-01-02</i></p>", "2020-01-02 00:05"),
        (
            "<p class=dt-x><i class=value>2020-01-02</i><i class=value>10:00</i><i class=value>+01:30</i></p>",
            "2020-01-02 10:00+0130",
        ),
        ("<p class=dt-x><i class=value>2020-01-02T10:00+01:30</i></p>", "2020-01-02T10:00+01:30"),
        ("<p class=dt-x><i class=value>2020-01-02T10:00</i><i class=value>+01:30</i></p>", "2020-01-02 10:00+0130"),
        ("<p class=dt-x><i class=value>2020-01-02 12:05 a.m.</i></p>", "2020-01-02 00:05"),
        ("<p class=dt-x><i class=value>2020-01-02</i><i class=value>10:00-5</i></p>", "2020-01-02 10:00-0500"),
        ("<p class=dt-x><i class=value>2020-01-02</i><i class=value>10:00+1:30</i></p>", "2020-01-02 10:00+0130"),
        ("<p class=dt-x><i class=value>2020-01-02</i><i class=value>10:00z</i></p>", "2020-01-02 10:00Z"),
        ("<p class=dt-x><i class=value>2020-01-02</i><i class=value>+0100</i></p>", "2020-01-02"),
        ("<p class=dt-x><i class=value>2020-061</i><i class=value>8 PM</i></p>", "2020-03-01 20:00"),
        ("<p class=dt-x><i class=value>2019-366</i><i class=value>2020-366</i></p>", "2020-12-31"),
        ("<p class=dt-x><i class=value>2020-000</i></p>", "2020-000"),
        ("<p class=dt-x><i class=value>2020-061T20:00Z</i></p>", "2020-061T20:00Z"),
        (
            "<p class=dt-x><i class=value>2020-01-02</i><i class=value>2021-01-02 10:00</i><i class=value>9:00</i></p>",
            "2020-01-02 09:00",
        ),
        (
            "<p class=dt-x><i class=value>10:00</i><i class=value>2020-01-02</i><i class=value>11:00</i></p>",
            "2020-01-02 10:00",
        ),
        ("<ins class=dt-x datetime=d>t</ins>", "d"),
        ("<input class=dt-x value=d>", "d"),
        ("<link class=p-x title=t>", "t"),
        ("<area class=p-x alt=a>", "a"),
        ("<area class=u-x href=a>", "http://site.example/a"),
        ("<a class=u-x href>t</a>", URL),
        ("<audio class=u-x src=a></audio>", "http://site.example/a"),
        ("<video class=u-x src=a poster=b></video>", "http://site.example/a"),
        ("<iframe class=u-x src=a></iframe>", "http://site.example/a"),
        ("<p class=u-x>no <i class=value>a</i></p>", "http://site.example/a"),
        ("<p class=u-x>t<img src=no alt=no><script>no</script></p>", "http://site.example/t"),
        ("<data class=u-x value=v>t</data>", "http://site.example/v"),
        ("<p class=dt-x><i class=value-title title=P2Y>two years</i></p>", "P2Y"),
        ("<p class=dt-x>on <i class=value>NotADate</i></p>", "on NotADate"),
        ("<p class=dt-x>so<img class=value alt=''>on</p>", "soon"),
        ("<time class=dt-x datetime=2020-01-02><i class=value>soon</i></time>", "2020-01-02"),
        ("<p class=dt-x><i class=value>2020-01-02</i> <i class=value>10:00+00:00</i></p>", "2020-01-02 10:00+00:00"),
        ("<p class=dt-x><i class=value>2020-01-02</i> <i class=value>10:00+01:00</i></p>", "2020-01-02 10:00+0100"),
        ("<p class=e-x> a <a href=b>b</a> </p>", {"value": "a b", "html": 'a <a href="http://site.example/b">b</a>'}),
    ],
)
def test_value(element: str, expected: object) -> None:
    assert value(element) == expected


def test_names_follow_the_grammar() -> None:
    html = "<p class='h-8-x h-test\th-test H-y h-100 h-a- h-a--b h-\u2603'><b class='p-a P-b p-1 p-c_d p-e-f'>v</b></p>"
    assert item(html) == {"type": ["h-8-x", "h-test"], "properties": {"a": ["v"], "e-f": ["v"]}}


def test_only_ascii_white_space_separates_names() -> None:
    assert microformats.parse("<p class='h-a\u00a0'>x".encode(), url=URL)["items"] == []
    assert set(microformats.parse("<a rel='a\u00a0b\tc' href=x>".encode(), url=URL)["rels"]) == {"a\u00a0b", "c"}


def test_prefixes_that_share_a_name_give_their_values_in_the_order_of_the_specification() -> None:
    found = properties("<div class=h-test><i class='e-x u-x p-x p-x'>v</i></div>")
    assert found == {"x": ["v", "v", "http://site.example/v", {"value": "v", "html": "v"}]}


def test_a_name_that_is_stated_often_is_there_a_few_times() -> None:
    found = properties(f"<div class=h-test><i class='{'p-x ' * 1000}'>v</i></div>")
    assert found == {"x": ["v"] * 4}


def test_implied_properties() -> None:
    assert properties("<a class=h-card href=/me><img src=i alt=Me></a>") == {
        "name": ["Me"],
        "photo": [{"value": "http://site.example/i", "alt": "Me"}],
        "url": ["http://site.example/me"],
    }


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a class=h-x href>t</a>", URL),
        ("<p class=h-x><a href=u>t</a></p>", "http://site.example/u"),
        ("<p class=h-x><b><a href=u>t</a></b></p>", "http://site.example/u"),
        ("<p class=h-x><a href=u>t</a><i class=dt-y>d</i></p>", "http://site.example/u"),
        ("<p class=h-x><a href=u>t</a><i class=e-y>d</i></p>", "http://site.example/u"),
        ("<p class=h-x><a>t</a><area href=u></p>", "http://site.example/u"),
        ("<div class=h-x><template>no</template><p><a href=u>t</a></p></div>", "http://site.example/u"),
        ("<p class=h-x><a href=u>t</a><a>t</a></p>", None),
        ("<p class=h-x><b><a href=u>t</a></b><i></i></p>", None),
        ("<p class=h-x><a href=u>t</a><i class=u-y>d</i></p>", None),
        ("<p class=h-x><a href=u>t</a><i class=p-y>d<b class=h-z></b></i></p>", None),
        ("<p class=h-x><a href=u>t</a><i class=vcard></i></p>", None),
    ],
)
def test_implied_url(html: str, expected: str | None) -> None:
    found = properties(html)
    assert isinstance(found, dict)
    assert found.get("url") == ([expected] if expected else None)


def test_an_empty_reference_is_the_base_as_it_is_written() -> None:
    for url in ("http://site.example", "http://site.example/", "http://site.example/page?q#f"):
        assert item("<a class=h-card href>N</a>", url)["properties"] == {"name": ["N"], "url": [url]}


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<img class=h-x alt=A>", "A"),
        ("<abbr class=h-x title=A>t</abbr>", "A"),
        ("<p class=h-x><img alt=A> t</p>", "A"),
        ("<p class=h-x><b><abbr title=A>t</abbr></b></p>", "A"),
        ("<p class=h-x><img alt=''> t</p>", "t"),
        ("<p class=h-x><img alt=A><i></i> t</p>", "A t"),
        ("<p class=h-x>a<img src=no>b<script>no</script></p>", "ab"),
    ],
)
def test_implied_name(html: str, expected: str) -> None:
    found = properties(html)
    assert isinstance(found, dict)
    assert found["name"] == [expected]


def test_nothing_is_implied_beside_an_item() -> None:
    found = item("<div class=h-card><a href=x>x</a><b class=h-geo>g</b></div>")
    assert found["properties"] == {}
    assert found["children"] == [{"type": ["h-geo"], "properties": {"name": ["g"]}}]


def test_nested_item_is_worth_its_name_or_url() -> None:
    card = "<b class=p-name>N</b><a class=u-url href=/u>x</a>"
    found = properties(f"<div class=h-entry><p class='p-author u-like-of h-card'>{card}</p></div>")
    assert isinstance(found, dict)
    assert found["author"][0]["value"] == "N"
    assert found["like-of"][0]["value"] == "http://site.example/u"


def test_time_without_date_takes_the_date_before_it() -> None:
    html = "<div class=h-event><i class=dt-start>2020-01-02 10:00</i><i class=dt-end><b class=value>11:00</b></i></div>"
    assert properties(html) == {
        "start": ["2020-01-02 10:00"],
        "end": ["2020-01-02 11:00"],
        "name": ["2020-01-02 10:0011:00"],
    }


def test_classic_root_speaks_classic_names_only() -> None:
    html = "<p class=vcard><b class='fn p-note'>N</b><i class=title>T</i></p>"
    assert item(html) == {"type": ["h-card"], "properties": {"name": ["N"], "job-title": ["T"]}}


def test_mf2_root_speaks_mf2_names_only() -> None:
    assert properties("<p class='h-card vcard'><b class=fn>N</b><i class=p-note>T</i></p>") == {"note": ["T"]}


def test_a_classic_feed_is_named_by_the_title_of_its_site() -> None:
    html = "<div class='hfeed site'><h1 class=site-title>T</h1><p class=site-description>D</p></div>"
    assert properties(html) == {"name": ["T"], "summary": ["D"]}


def test_rel_tag_is_the_last_segment() -> None:
    html = "<p class=hentry><a rel='tag nofollow' href='/tags/a%20b/?x=y'>text</a></p>"
    assert properties(html) == {"category": ["a b"]}


def test_classic_include_brings_a_distant_element() -> None:
    html = "<p class=vcard><a class=include href=#o>x</a></p><b id=o class=org>O</b>"
    assert properties(html) == {"org": ["O"]}


@pytest.mark.parametrize(
    "card",
    [
        "<div class=vcard itemref=a></div>",
        "<div class=vcard><a class=include href=#a></a></div>",
        "<div class=vcard><object class=include data=#a></object></div>",
    ],
)
def test_an_item_brought_in_by_reference_is_a_copy_and_its_id_stays_where_it_stands(card: str) -> None:
    html = f"{card}<p class=adr id=a><b class=locality>L</b></p>"
    address = {"type": ["h-adr"], "properties": {"locality": ["L"]}}
    assert microformats.parse(html.encode(), url=URL)["items"] == [
        {"type": ["h-card"], "properties": {"adr": [{**address, "value": "L"}]}},
        {**address, "id": "a"},
    ]
    assert f"_:b0 <v:hasAddress> <{URL}#a>" in rdf(html)  # one resource, not two


def test_include_of_itself_ends() -> None:
    html = "<div class=vcard id=a><b class=fn>N</b><a class=include href=#a>x</a></div>"
    assert properties(html) == {"name": ["N"]}


def test_relations() -> None:
    html = "<a rel='b a' href=/x type=t>T</a><link rel=a href=/x hreflang=de>"
    found = microformats.parse(html.encode(), url=URL)
    address = "http://site.example/x"
    assert found["rels"] == {"b": [address], "a": [address]}
    assert found["rel-urls"] == {address: {"rels": ["a", "b"], "type": "t", "text": "T", "hreflang": "de"}}


def test_repeated_relations() -> None:
    html = (
        "<a rel='a b a' href=/x title></a><a rel='b c' href=/x title=no media=m><img alt=no> T </a><a rel=a href=/x>no"
    )
    found = microformats.parse(html.encode(), url=URL)
    address = "http://site.example/x"
    assert found["rels"] == {"a": [address], "b": [address], "c": [address]}
    assert found["rel-urls"] == {address: {"rels": ["a", "b", "c"], "title": "", "media": "m", "text": " T "}}


def test_elements_without_relation_or_address_have_no_relations() -> None:
    html = "<a rel='' href=/x>x</a><a rel=a>x</a><template><a rel=a href=/x>x</a></template><div rel=a href=/x>"
    found = microformats.parse(html.encode(), url=URL)
    assert (found["rels"], found["rel-urls"]) == ({}, {})


def rdf(html: str) -> set[str]:
    body = microformats.extract(html.encode(), url=URL)
    list(parse_rdf(body, RdfFormat.N_TRIPLES))
    short = body.decode().replace("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "a")
    for name, prefix in (("schema:", "http://schema.org/"), ("v:", "http://www.w3.org/2006/vcard/ns#")):
        short = short.replace(prefix, name)
    return {line.removesuffix(" .") for line in short.splitlines()}


def test_card_becomes_vcard() -> None:
    html = (
        "<p class=h-card id=me><a class='p-name u-url' href=/>N</a><i class=p-tel>+1 (2) 3</i>"
        "<i class=u-email>a@b.example</i><time class=dt-bday datetime=2000-01-02></time></p>"
    )
    me = f"<{URL}#me>"
    assert rdf(html) == {
        f"{me} <a> <v:Individual>",
        f'{me} <v:fn> "N"',
        f"{me} <v:hasURL> <http://site.example/>",
        f"{me} <v:hasTelephone> <tel:+123>",
        f"{me} <v:hasEmail> <mailto:a@b.example>",
        f'{me} <v:bday> "2000-01-02"^^<http://www.w3.org/2001/XMLSchema#date>',
    }


def test_card_of_an_organisation() -> None:
    assert "_:b0 <a> <v:Organization>" in rdf("<p class=h-card><b class='p-name p-org'>O</b></p>")


def test_review_has_a_rating_in_between() -> None:
    found = rdf("<p class=h-review><b class=p-rating>4</b><b class=p-best>5</b></p>")
    assert found == {
        "_:b0 <a> <schema:Review>",
        "_:b0 <schema:reviewRating> _:b1",
        "_:b1 <a> <schema:Rating>",
        '_:b1 <schema:ratingValue> "4"',
        '_:b1 <schema:bestRating> "5"',
    }


def test_aggregate_review_of_a_product() -> None:
    found = rdf("<div class=hproduct><p class='review hreview-aggregate'><b class=count>3</b></p></div>")
    assert "_:b0 <schema:aggregateRating> _:b1" in found


def test_date_with_time_becomes_xsd() -> None:
    found = rdf("<p class=h-event><time class=dt-start>2020-01-02 10:00+0100</time></p>")
    assert '_:b0 <schema:startDate> "2020-01-02T10:00:00+01:00"^^<http://www.w3.org/2001/XMLSchema#dateTime>' in found


def test_unknown_property_keeps_its_name() -> None:
    assert '_:b0 <http://microformats.org/profile/h-card#x-y> "v"' in rdf("<p class=h-card><b class=p-x-y>v</b></p>")


def test_utility_classes_are_no_items() -> None:
    page = LexborHTMLParser("<div class='h-full p-4'><i class='h-screen h-100'>h-card")
    assert microformats.roots_in(elements_of(page)) == frozenset()
    assert rdf("<div class=h-full><p class=h-card><b class='p-name h-full'>N</b></p></div>") == {
        "_:b0 <a> <v:Individual>",
        '_:b0 <v:fn> "N"',
    }


HOSTILE = {
    "items": lambda n: b"<p class=h-card><a class='p-name u-url' href=x>x</a></p>" * n,
    "nested items": lambda n: b"<b class='p-author h-card'>" * n,
    "nested properties": lambda n: b"<p class=h-card>" + b"<b class=e-a>" * n,
    "deep": lambda n: b"<p class=h-card>" + b"<b>" * n + b"<i class=p-a>x</i>" * n,
    "class names": lambda n: b"<p class='h-card " + b"h-x p-y " * n + b"'>x",
    "value classes": lambda n: b"<p class=h-card><b class=p-a>" + b"<i class=value>x</i>" * n,
    "deep value classes": lambda n: b"<p class=h-card><b class=p-a>" + b"<i>" * n + b"<i class=value>x</i>" * (n // 10),
    "nested authors": lambda n: b"<p class=hentry>" + b"<b class=author>" * n + b"<i class=vcard>x",
    "includes": lambda n: (
        b"<p class=vcard><a class=include href=#r>x</a></p>" * n + b"<div id=r>" + b"<b class=org>x</b>" * n
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_stay_linear(name: str) -> None:
    body = HOSTILE[name](10_000)
    tree = LexborHTMLParser(body)
    started = time.process_time()
    microformats.write(tree, Sink(), base=URL, roots=microformats.roots_in(elements_of(tree)))
    microformats.parse(body, url=URL)
    assert time.process_time() - started < 4.0


def test_what_the_limits_drop_is_reported() -> None:
    body = HOSTILE["nested items"](100)
    findings = microformats.write(LexborHTMLParser(body), Sink(), base=URL, roots=frozenset({"h-card"}))
    assert [finding.code for finding in findings] == ["microformats-limit"]


CLASSES = st.lists(
    st.sampled_from(
        ["h-card", "h-entry", "vcard", "hentry", "hreview", "item", "include", "value", "value-title", "geo"]
    )
    | st.sampled_from(
        ["p-name", "u-url", "u-photo", "dt-start", "e-content", "fn", "url", "rating", "dtstart", "p-tel"]
    ),
    max_size=4,
)
TAGS = st.sampled_from(
    ["p", "a href='http://[x'", "img src='a b' alt", "time datetime=9:99", "object data=#a", "/p", "/a"]
)
ELEMENTS = st.tuples(TAGS, CLASSES, st.sampled_from(["", "id=a", "itemref=a", "rel='tag bookmark'", "title='\\<'"]))


@settings(max_examples=examples(60, 500), deadline=None)
@given(st.lists(st.one_of(ELEMENTS, st.text(max_size=5)), max_size=25))
def test_any_page_gives_json_and_valid_statements(parts: list[tuple[str, list[str], str] | str]) -> None:
    html = "".join(
        part if isinstance(part, str) else f"<{part[0]} {part[2]} class='{' '.join(part[1])}'>" for part in parts
    )
    body = html.encode("utf-8", "replace")
    json.dumps(microformats.parse(body, url=URL))
    # Lenient as the store is: the web's URLs carry brackets and bare percent signs that strict IRIs refuse.
    list(parse_rdf(microformats.extract(body, url=URL), RdfFormat.N_TRIPLES, lenient=True))
