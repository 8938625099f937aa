"""Markup that readers ignore is named once, in its place, and markup that they read is not."""

from __future__ import annotations

import pytest

import quadloom
from quadloom.model.finding import Finding
from quadloom.settings import AuditSettings, Settings, TransformSettings

CODES = ("jsonld-keyword", "microdata-loose-property", "rdfa-no-vocabulary")
SCHEMA = 'itemscope itemtype="https://schema.org/Person"'


def found(body: str, content_type: str = "text/html") -> list[Finding]:
    if content_type == "text/html":
        body = f"<!doctype html>\n<title>Example</title>\n{body}"
    seen = quadloom.transform(body.encode(), url="https://shop.example/things/1", content_type=content_type)
    return [one for one in seen.findings if one.code in CODES]


def script(json: str) -> str:
    return f'<script type="application/ld+json">{json}</script>'


@pytest.mark.parametrize(
    "body",
    [
        script('{"@context": "https://schema.org", "@graph": [{"@type": "Person", "@id": "#a", "name": "@jane"}]}'),
        script('{"@context": {"@vocab": "https://schema.org/", "@language": "en"}, "@type": "Person", "name": "a"}'),
        '<script>state = {"@media": 1, "@name": 2}</script>' + script('{"@context": "https://schema.org"}'),
        f'<div {SCHEMA}><b><span itemprop="name">a</span></b></div>',
        f'<div {SCHEMA} itemref="more"></div><div id="more"><p><span itemprop="name">a</span></p></div>',
        f'<div {SCHEMA} itemref="n"></div><span id="n" itemprop="name">a</span>',
        '<script>"<b itemprop=name>"</script>',
        '<div vocab="https://schema.org/"><p><b typeof="Person"></b></p></div>',
        '<div typeof="schema:Person foaf:Person"></div>',
        '<div vocab="https://schema.org/" typeof="Person"></div>',
    ],
)
def test_what_is_read_is_not_reported(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize(
    ("written", "meant"), [("@name", "name"), ("@Type", "@type"), ("@ID", "@id"), ("@types", "types")]
)
def test_a_key_that_only_looks_like_a_keyword(written: str, meant: str) -> None:
    (one,) = found(script(f'{{"@context": "https://schema.org", "name": "a",\n "{written}": "x"}}'))
    assert (one.code, one.line, one.column, one.found, one.expected) == ("jsonld-keyword", 4, 2, written, meant)
    assert one.advice == f'write "{meant}"'


def test_a_document_of_json_ld_has_such_keys_too() -> None:
    (one,) = found('{"@context": "https://schema.org", "@type": "Person", "@name": "a"}', "application/ld+json")
    assert one.code == "jsonld-keyword"


def test_loose_properties_are_one_finding_that_counts_them() -> None:
    (one,) = found('<p itemprop="name">a</p>\n<p itemprop="url name">b</p>')
    assert (one.code, one.line) == ("microdata-loose-property", 3)
    assert one.message == "2 elements with itemprop are outside of every item, and ignored: name, url"


def test_an_item_that_is_a_property_of_nothing_is_lost_with_all_it_holds() -> None:
    (one,) = found(f'<div itemprop="author" {SCHEMA}><b itemprop="name">a</b></div>')
    assert "1 element with itemprop is outside of every item, 1 of them whole items" in one.message


def test_an_empty_vocab_takes_the_vocabulary_away_only_for_its_own_element() -> None:
    (one,) = found('<div vocab=""><b typeof="Person"></b></div>')
    assert one.code == "rdfa-no-vocabulary"


def test_a_code_can_be_ignored_and_a_syntax_left_out() -> None:
    body = b'<p itemprop="name">a</p><div typeof="Person"></div>'
    ignoring = Settings(audit=AuditSettings(ignore=["rdfa-no-vocabulary"]))
    seen = quadloom.transform(body, url="https://shop.example/", content_type="text/html", settings=ignoring)
    assert [one.code for one in seen.findings if one.code in CODES] == ["microdata-loose-property"]
    without = Settings(transform=TransformSettings(syntaxes=["jsonld", "rdfa"]))
    seen = quadloom.transform(body, url="https://shop.example/", content_type="text/html", settings=without)
    assert [one.code for one in seen.findings if one.code in CODES] == ["rdfa-no-vocabulary"]


def test_many_of_a_kind_are_limited() -> None:
    assert len(found('<div typeof="Person"></div>' * 500)) == 20
