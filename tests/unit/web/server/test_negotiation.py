"""Accept headers, odd ones too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quadloom.web.server.negotiation import choose, prefers_html
from quadloom.web.view.terms import direction, is_iri, is_web

OFFERED = ("application/json", "text/csv", "text/html")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("*", "application/json"),
        ("text/*", "text/csv"),
        ("text/html", "text/html"),
        ("text/csv;q=0.5, text/html;q=0.6", "text/html"),
        ("text/*;q=0.9, text/csv;q=0.1, application/json;q=0.2", "text/html"),
        ("*/*, application/json;q=0", "text/csv"),
        ("image/png", None),
        ("text/csv;q=banana", None),
        ("TEXT/CSV", "text/csv"),
        ("text/csv; charset=utf-8; q=1.0", "text/csv"),
        (",;/, text", "application/json"),
    ],
)
def test_choose(accept: str, chosen: str | None) -> None:
    assert choose(accept, OFFERED) == chosen


@given(st.text(max_size=200))
def test_no_header_breaks_it(header: str) -> None:
    assert choose(header, OFFERED) in (*OFFERED, None)


def test_browsers_want_pages_and_programs_do_not() -> None:
    assert prefers_html("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
    assert not prefers_html("*/*") and not prefers_html("application/json") and not prefers_html("")


def test_directions_follow_the_tag() -> None:
    assert [direction(tag) for tag in ("ar", "he-IL", "en", "az-Arab", "ar-Latn", "")] == [
        "rtl",
        "rtl",
        "ltr",
        "rtl",
        "ltr",
        "auto",
    ]


@pytest.mark.parametrize("iri", ["javascript:alert(1)", "data:text/html,x", " http://x", "JAVASCRIPT://x", "//x", ""])
def test_only_web_addresses_become_links(iri: str) -> None:
    assert not is_web(iri)


def test_iris() -> None:
    assert is_iri("urn:x:y") and not is_iri("a b:c") and not is_iri("x") and not is_iri("http://a/<b>")
