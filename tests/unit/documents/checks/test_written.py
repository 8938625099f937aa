"""Mistakes that the statements no longer show are found on their line."""

from __future__ import annotations

import pytest

import quadloom
from quadloom.model.finding import Finding

HEAD = "<!doctype html>\n<title>Lamp</title>\n"
DATA = """<script type="application/ld+json">
{"@context": "https://schema.org", "@type": "Product", "name": "Lamp",
%s}
</script>"""


def seen(body: str) -> list[Finding]:
    answer = quadloom.transform(body.encode(), url="https://shop.example/lamp", content_type="text/html")
    return [one for one in answer.findings if one.severity != "info" and one.code != "schema-missing-required"]


@pytest.mark.parametrize(
    ("body", "code", "path", "line"),
    [
        (DATA % '"brand":\n"Lux &amp; Sons"', "value-escaped", "brand", 6),
        (DATA % '"image": ["https://a.example/1",\n"https://a.example/?a=1&#038;b=2"]', "value-escaped", "image", 6),
        (DATA % '"sku": "1",\n"logo": ""', "value-empty", "logo", 6),
        (DATA % '"brand": {"type":\n"Brand", "name": "Lux"}', "jsonld-keyword", "type", 5),
        (DATA % '"@name": "Lamp"', "jsonld-keyword", "", 5),
        (
            DATA
            % '"offers": {"@type": "Offer", "price": "5", "priceCurrency": "EUR",\n"priceValidUntil": "2024-12-03"}',
            "offer-expired",
            "Product › offers › priceValidUntil",
            6,
        ),
        (DATA % '"offers": {"@type": "Offer", "price":\n"€5"}', "bad-price", "Product › offers › price", 6),
        (
            DATA % '"offers": {"@type": "Offer", "price": "5",\n"availability": "In stock"}',
            "schema-unknown-member",
            "Product › offers › availability",
            6,
        ),
        (DATA % '"releaseDate":\n"soon"', "bad-date", "Product › releaseDate", 6),
        (
            '<script type="text/html">\n<script type="application/ld+json">{"@type": "Product"}<\\/script></script>',
            "jsonld-in-template",
            "Product in a template",
            4,
        ),
        (
            "<script type=text/x-template>\n<div>\n" + DATA % '"sku": "1"' + "</div>",
            "jsonld-in-template",
            "Product in a template",
            5,
        ),
        (
            '<link rel="canonical" href="/lamp">\n<meta property="og:url" content="https://shop.example/old-lamp">',
            "canonical-mismatch",
            "og:url",
            4,
        ),
        ('<p itemprop="price">5</p>', "microdata-loose-property", "", 3),
        ('<p>\n<b typeof="Product"></b>', "rdfa-no-vocabulary", "", 4),
    ],
)
def test_a_planted_mistake_is_found_on_its_line(body: str, code: str, path: str, line: int) -> None:
    found = seen(HEAD + body)
    assert [(one.code, one.path, one.line) for one in found] == [(code, path, line)]
    assert found[0].advice


@pytest.mark.parametrize(
    "body",
    [
        DATA % '"description": "<p>Lux &amp; Sons</p>", "url": "https://shop.example/lamp?a=1&b=2"',
        DATA % '"brand": "AT&T; B&Q"',
        DATA.replace('"https://schema.org"', '{"@vocab": "https://schema.org/", "type": "@type"}')
        % '"brand": {"type": "Brand", "name": "Lux"}',
        DATA % '"sku": "\\"\\""',
        DATA % '"additionalProperty": {"@type": "PropertyValue", "name": "x", "value": "Type: A"}',
        DATA % '"offers": {"@type": "Offer", "price": "5", "priceCurrency": "EUR", "priceValidUntil": "2999-12-31"}',
        DATA % '"sku": "1"'
        + '<script type="text/html"><script type="application/ld+json">{"@type": "Product"}</script>',
        '<link rel="canonical" href="/lamp"><meta property="og:url" content="http://www.shop.example/lamp/">',
        '<script type="text/html"><b>ld+json</b></script>',
    ],
)
def test_what_only_looks_like_it_is_no_mistake(body: str) -> None:
    assert seen(HEAD + body) == []


def test_an_expired_offer_costs_the_rich_result() -> None:
    offer = '"offers": {"@type": "Offer", "price": "5", "priceCurrency": "EUR", "priceValidUntil": "2024-12-03"}'
    answer = quadloom.transform((HEAD + DATA % offer).encode(), url="https://a.example/", content_type="text/html")
    assert dict(answer.audit.features) == {"Product snippet": False}
