"""Small documents cannot become large stores: statements, bytes, long terms and IRIs are limited per page and host."""

from __future__ import annotations

import json

import msgspec
import pytest

from quadloom.crawling.ingest.settle import size_price
from quadloom.documents.pipeline import process_page
from quadloom.documents.syntaxes.sink import Sink, SinkLimits, sink_limits
from quadloom.documents.transform import transform
from quadloom.model.document import Transformed
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import CrawlSettings, LimitSettings, Settings

URL = "https://site.example/a"


def json_ld(prefix: int, statements: int) -> bytes:
    """A document with one long prefix, used for every name."""
    things = [{"@id": f"p:{number}", "p:q": number} for number in range(statements)]
    return json.dumps({"@context": {"p": "http://p.example/" + "x" * prefix + "/"}, "@graph": things}).encode()


def read(body: bytes, **limits: int | float) -> Transformed:
    settings = Settings(limits=msgspec.structs.replace(LimitSettings(), **limits))
    return transform(body, url=URL, content_type="application/ld+json", settings=settings)


@pytest.mark.parametrize("prefix", [20_000, 8_000, 1_000])
def test_a_prefix_that_is_used_often_stays_within_a_multiple_of_the_document(prefix: int) -> None:
    """Ten documents of 315 KB became 883 MB."""
    body = json_ld(prefix, 7_000)
    found = read(body)
    assert len(found.nquads) <= max(8 << 20, 30 * len(body))
    assert {"too-many-quads", "iri-too-long"} & {finding.code for finding in found.findings}


def test_long_iris_are_left_out_and_counted() -> None:
    found = read(json_ld(20_000, 10))
    assert not found.nquads
    (finding,) = [finding for finding in found.findings if finding.code == "iri-too-long"]
    assert finding.message.startswith("10 statements")
    assert len(read(json_ld(20_000, 10), iri_chars=30_000).nquads.splitlines()) == 10


def test_distinct_long_terms_are_limited_and_repeated_ones_are_not() -> None:
    sink = Sink(SinkLimits(long_terms=3))
    for number in range(10):
        sink.add("<a:a>", "<a:b>", f'"{number}{"x" * 2000}"')
    assert (len(sink), sink.overflow) == (3, 7)
    for number in range(10):
        sink.add(f"<a:{number}>", "<a:c>", f'"0{"x" * 2000}"')
    assert (len(sink), sink.overflow) == (13, 7)
    poured = Sink(SinkLimits(long_terms=3))
    poured.pour(b"".join(b'<a:a> <a:b> "%d%s" .\n' % (number, b"x" * 2000) for number in range(10)))
    assert (len(poured), poured.overflow) == (3, 7)


def test_the_limit_of_bytes_follows_the_document_and_never_exceeds_its_setting() -> None:
    limits = LimitSettings()
    assert sink_limits(limits, 1000).characters == 8 << 20
    assert sink_limits(limits, 1 << 20).characters == 30 << 20
    assert sink_limits(limits, 10 << 20).characters == limits.quad_bytes_per_page == 96 << 20


def test_ordinary_data_is_not_touched() -> None:
    """Turtle's lists grow most: two statements for two characters."""
    body = b"<a:a> <a:b> (" + b"1 " * 10_000 + b") ."
    found = transform(body, url=URL, content_type="text/turtle")
    assert len(found.nquads.splitlines()) == 20_001
    assert "too-many-quads" not in {finding.code for finding in found.findings}


def test_a_page_that_states_much_uses_up_the_budget_of_its_host_faster() -> None:
    settings = Settings(
        crawl=CrawlSettings(max_pages_per_host=1000),
        limits=LimitSettings(quads_per_host=10_000, quad_bytes_per_host=10_000_000),
    )
    visit = Visit(URL, URL, "site.example", 1)

    def price(things: int) -> float:
        page = Page(URL, URL, 200, (("content-type", "application/ld+json"),), json_ld(10, things), 0.0, 0.1)
        return size_price(process_page(page, visit, settings, ()), settings)

    assert price(1) < 1.0
    assert 10.0 <= price(100) < 30.0, "100 of the 10,000 statements that a thousand pages may have together"
