"""Precision and recall of the checks on descriptions of every type of schema.org, and on documents in other manners.

Descriptions and mistakes are made from the tables of the vocabulary (`quadloom_lab.audit`), so that a rule is proved
and not an example. By default a sample runs; all types and many more mistakes are marked slow.
"""

from __future__ import annotations

from itertools import zip_longest
from random import Random

import msgspec
import pytest

import quadloom
from quadloom.documents.checks.vocabulary import vocabularies
from quadloom.model.finding import Finding
from quadloom.settings import Settings
from quadloom_lab.audit.descriptions import description
from quadloom_lab.audit.foreign_pages import PAGES, ForeignPage
from quadloom_lab.audit.mistakes import MISTAKES, Planted, planted
from quadloom_lab.audit.published_pages import PUBLISHED, SLIPS
from quadloom_lab.markup import SYNTAXES, page

URL = "https://shop.example/things/1"
SCHEMA = vocabularies().schema
TYPES = sorted(name for name in SCHEMA.types if "Thing" in SCHEMA.ancestors(name) and name not in SCHEMA.superseded)
ALL_PLACES = msgspec.structs.replace(Settings(), audit=msgspec.structs.replace(Settings().audit, places="all"))
# A correct description may lack what a rich result needs, and its page may show nothing of it.
WISHES = {"schema-missing-required", "data-not-visible"}
FLOOR = 0.98


def findings(text: str, content_type: str = "text/html") -> list[Finding]:
    return list(quadloom.transform(text.encode(), url=URL, content_type=content_type, settings=ALL_PLACES).findings)


def defects(text: str, content_type: str = "text/html") -> list[str]:
    found = findings(text, content_type)
    return [f"{one.code} {one.message}" for one in found if one.severity != "info" and one.code not in WISHES]


@pytest.mark.parametrize("foreign", [*PAGES, *PUBLISHED], ids=lambda one: one.name)
def test_documents_in_other_manners_have_no_defect(foreign: ForeignPage) -> None:
    assert defects(foreign.text, foreign.content_type) == []


def test_slips_in_published_pages_are_found_on_their_line() -> None:
    pages = {one.name: one for one in PUBLISHED}
    missed = []
    for slip in SLIPS:
        text, content_type = pages[slip.page].text, pages[slip.page].content_type
        assert text.count(slip.right) == 1, f"{slip.right} is not once in {slip.page}"
        same = next(at for at, (one, two) in enumerate(zip_longest(slip.right, slip.wrong)) if one != two)
        line = text[: text.index(slip.right) + same].count("\n") + 1
        found = findings(text.replace(slip.right, slip.wrong), content_type)
        if not any(one.code == slip.code and one.line == line for one in found):
            missed.append((slip, line, [(one.code, one.line, one.found) for one in found if one.severity != "info"]))
    assert missed == []


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_correct_descriptions_of_many_types_have_no_defect(syntax: str) -> None:
    assert len(TYPES) > 850
    assert alarms(TYPES[::20], syntax) == {}


@pytest.mark.slow
@pytest.mark.parametrize("syntax", SYNTAXES)
def test_correct_descriptions_of_all_types_have_no_defect(syntax: str) -> None:
    assert alarms(TYPES, syntax) == {}


def alarms(types: list[str], syntax: str) -> dict[str, list[str]]:
    found = {name: defects(page(description(SCHEMA, name, Random(name)), syntax)) for name in types}
    return {name: one for name, one in found.items() if one}


def answer(mistake: Planted, syntax: str) -> str:
    """What is wrong with the answer, or nothing."""
    text = page(mistake.thing, syntax)
    lines = [number for number, line in enumerate(text.split("\n"), 1) if mistake.token in line]
    found = [one for one in findings(text) if one.code == mistake.code]
    if any(one.line in lines for one in found):
        return ""
    return f"{mistake.kind} ({syntax}): {mistake.token} on {lines}, found on {[one.line for one in found]}\n{text}"


def answers(kind: str, seeds: range) -> list[str]:
    mistakes = [one for seed in seeds if (one := planted(SCHEMA, kind, seed)) is not None]
    assert len(mistakes) > len(seeds) * 0.9
    return [answer(one, syntax) for one in mistakes for syntax in SYNTAXES]


@pytest.mark.parametrize("kind", MISTAKES)
def test_every_kind_of_mistake_is_found_with_its_line(kind: str) -> None:
    assert [one for one in answers(kind, range(3)) if one] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", MISTAKES)
def test_nearly_all_of_many_mistakes_are_found(kind: str) -> None:
    given = answers(kind, range(1000, 1060))
    wrong = [one for one in given if one]
    assert len(wrong) <= len(given) * (1 - FLOOR), wrong[:3]


def test_a_number_in_json_is_a_price() -> None:
    """RDF writes 10.99 as 1.099E1."""
    offer = {"@type": "Offer", "price": 10.99, "priceCurrency": "EUR"}
    assert defects(page({"@type": "Product", "name": "Lamp", "offers": offer}, "jsonld")) == []
    rating = {"@type": "Rating", "ratingValue": 7.5}
    found = [one for one in findings(page(rating, "jsonld")) if one.code == "rating-out-of-bounds"]
    assert [one.found for one in found] == ["7.5"]


def test_an_address_that_json_ld_drops_is_named_with_its_line() -> None:
    data: dict[str, object] = {
        "@type": "WebSite",
        "name": "Site",
        "image": "no picture",
        "url": "https://site.example/",
    }
    found = [one for one in findings(page(data, "jsonld")) if one.severity != "info"]
    assert [(one.code, one.path, one.found, one.line) for one in found] == [
        ("bad-url", "WebSite › image", "no picture", 9)
    ]


def test_a_thousand_dropped_addresses_are_named_up_to_a_limit() -> None:
    things = [{"@type": "Person", "image": f"no picture {number}"} for number in range(1000)]
    found = findings(page({"@type": "WebPage", "name": "Page", "about": things}, "jsonld"))
    assert sum(one.code == "bad-url" for one in found) == 50
    assert sum(one.code == "jsonld-term" for one in found) == 1  # which counts them all


def test_a_url_template_is_a_remark_unless_it_is_the_target_of_a_search() -> None:
    action = {
        "@type": "SearchAction",
        "target": "https://site.example/?q={words}",
        "query-input": "required name=words",
    }
    data = {"@type": "WebSite", "name": "Site", "potentialAction": action, "url": "https://site.example/{page}"}
    found = findings(page(data, "jsonld"))
    assert [(one.code, one.severity, one.path) for one in found if one.code == "jsonld-term"] == [
        ("jsonld-term", "info", "WebSite › url")
    ]


def test_an_address_with_a_space_is_read_as_browsers_read_it() -> None:
    recipe = {"@type": "Recipe", "name": "Rice", "image": "https://cdn.example/cooking tips 3.png"}
    text = page(recipe, "jsonld")
    seen = quadloom.transform(text.encode(), url="https://site.example/rice", content_type="text/html")
    assert b"<https://cdn.example/cooking%20tips%203.png>" in seen.nquads
    found = [one for one in seen.findings if one.severity != "info"]
    assert [(one.code, one.severity, one.path) for one in found] == [("bad-url", "warning", "Recipe › image")]
    assert found[0].line and "tips 3.png" in text.splitlines()[found[0].line - 1]
    assert seen.audit.features == (("Recipe", True),)


@pytest.mark.parametrize("image", ["no picture", "http://cdn.example:8080https://cdn.example/x.png", "/{picture}.png"])
def test_a_bad_address_is_not_also_missing(image: str) -> None:
    recipe = {"@type": "Recipe", "name": "Rice", "image": image}
    seen = quadloom.transform(
        page(recipe, "jsonld").encode(), url="https://site.example/rice", content_type="text/html"
    )
    found = [one for one in seen.findings if one.severity != "info"]
    assert len(found) <= 1 and not any("has no image" in one.message for one in seen.findings)
    assert seen.audit.features == (("Recipe", False),)


OTHER_VOCABULARIES = """\
<!doctype html><html lang=en><title>T</title><body>
<div vocab="http://xmlns.com/foaf/0.1/" typeof="Persn">
 <span property="nmae">Joe</span>
 <a rel="homepge" href="http://x.example/">x</a>
</div>
<div vocab="http://schema.org/" typeof="Person">
 <a property="sameAs" href="www.example.org/joe">joe</a>
</div>
<div itemscope itemtype="http://www.schema.org/Person">
 <a itemprop="sameAs" href="www.example.org/ann">ann</a>
</div>
<div itemscope itemtype="foo:Person"><span itemprop="name">x</span></div>
<div itemscope>
 <span itemprop="name">untyped</span>
</div>
<script type="application/ld+json">
{"@context": {"foaf": "http://xmlns.com/foaf/0.1/", "s": "https://schema.org/"},
 "@type": "foaf:Persson",
 "foaf:nmae": "x",
 "s:birthDate": ["2020-01-01",
  "soon"],
 "xx:foo": "1"}
</script>
"""


def test_mistakes_in_any_vocabulary_have_their_line() -> None:
    found = {(one.line, one.code) for one in findings(OTHER_VOCABULARIES) if one.severity != "info"}
    assert found == {
        (2, "vocabulary-unknown-type"),
        (3, "vocabulary-unknown-property"),
        (4, "vocabulary-unknown-property"),
        (7, "iri-relative"),
        (9, "schema-namespace"),
        (10, "iri-relative"),
        (12, "prefix-undeclared"),
        (14, "microdata-untyped"),
        (18, "vocabulary-unknown-type"),
        (19, "vocabulary-unknown-property"),
        (21, "bad-date"),
        (22, "prefix-undeclared"),
    }


LOST = {
    '<div vocab="http://schema.org" typeof="Person">\n<b property="name">x</b></div>': (3, "http://schema.orgPerson"),
    '<div vocab="https://www.schema.org" typeof="Person"></div>': (3, "https://www.schema.orgPerson"),
    '<script type="application/ld+json">\n{"@type": "Person", "name": "x"}\n</script>': (4, "Person"),
    '<script type="application/ld+json">\n{"@type": "Prson", "name": "x"}\n</script>': None,
    '<script type="application/ld+json">{"@context": {"@vocab": "https://shop.example/things/"}, "@type": "Person", '
    '"nick": "x"}</script>': None,
    '<div vocab="http://schema.org.example/" typeof="Person"><b property="name">x</b></div>': None,
}


@pytest.mark.parametrize("body", LOST)
def test_a_type_that_lost_its_namespace_is_reported(body: str) -> None:
    found = [one for one in findings(f"<!doctype html>\n<title>T</title>\n{body}") if one.code == "schema-namespace"]
    assert [(one.line, one.found) for one in found] == ([LOST[body]] if LOST[body] else [])
