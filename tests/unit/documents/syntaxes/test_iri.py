"""Reference resolution: the examples of RFC 3986, section 5.4, and what attributes need beyond them."""

from __future__ import annotations

import time

import pytest

from quadloom.documents.syntaxes.iri import BaseIri, is_well_formed, resolve

EXAMPLES = {
    "g:h": "g:h",
    "g": "http://a/b/c/g",
    "./g": "http://a/b/c/g",
    "g/": "http://a/b/c/g/",
    "/g": "http://a/g",
    "//g": "http://g",
    "?y": "http://a/b/c/d;p?y",
    "g?y": "http://a/b/c/g?y",
    "#s": "http://a/b/c/d;p?q#s",
    "g#s": "http://a/b/c/g#s",
    "g?y#s": "http://a/b/c/g?y#s",
    ";x": "http://a/b/c/;x",
    "g;x?y#s": "http://a/b/c/g;x?y#s",
    "": "http://a/b/c/d;p?q",
    ".": "http://a/b/c/",
    "./": "http://a/b/c/",
    "..": "http://a/b/",
    "../": "http://a/b/",
    "../g": "http://a/b/g",
    "../..": "http://a/",
    "../../g": "http://a/g",
    "../../../g": "http://a/g",
    "/./g": "http://a/g",
    "/../g": "http://a/g",
    "g.": "http://a/b/c/g.",
    ".g": "http://a/b/c/.g",
    "..g": "http://a/b/c/..g",
    "./../g": "http://a/b/g",
    "./g/.": "http://a/b/c/g/",
    "g/./h": "http://a/b/c/g/h",
    "g/../h": "http://a/b/c/h",
    "g?y/../x": "http://a/b/c/g?y/../x",
    "g#s/../x": "http://a/b/c/g#s/../x",
    "http:g": "http:g",
}


@pytest.mark.parametrize(("reference", "expected"), EXAMPLES.items())
def test_rfc_3986_examples(reference: str, expected: str) -> None:
    assert BaseIri("http://a/b/c/d;p?q").resolve(reference) == expected


def test_absolute_references_are_not_rewritten() -> None:
    base = BaseIri("http://a/")
    for iri in ("http://example.org", "HTTP://Example.org/%7e", "urn:isbn:1", "mailto:a@b", "http://é/ü"):
        assert base.resolve(iri) == iri
    assert base.resolve("http://x/a/../b?c/../d") == "http://x/b?c/../d"


def test_the_fragment_of_the_base_is_dropped_and_an_empty_path_is_the_root() -> None:
    assert BaseIri("http://a/b#c").resolve("#d") == "http://a/b#d"
    assert BaseIri("http://a").resolve("g") == "http://a/g"
    assert BaseIri("http://a?q").resolve("") == "http://a?q"


@pytest.mark.parametrize(("reference", "expected"), EXAMPLES.items())
def test_json_ld_and_rdfa_resolve_alike(reference: str, expected: str) -> None:
    assert resolve("http://a/b/c/d;p?q", reference) == expected
    assert BaseIri("http://a/b/c/d;p?q").resolve_attribute(reference) == expected


def test_an_attribute_may_hold_what_no_iri_holds() -> None:
    base = BaseIri.of_attribute(" http://a/b c#d ")
    assert base.iri == "http://a/b%20c"
    assert base.resolve_attribute(" x y{z} ") == "http://a/x%20y%7Bz%7D"
    assert base.resolve_attribute("15:30") == "http://a/15:30"  # no scheme begins with a digit
    assert base.resolve_attribute("urn:a/../b") == "urn:a/../b"


@pytest.mark.parametrize(
    ("iri", "expected"),
    [
        ("http://münchen.example/straße?größe#maß", True),
        ("x:?\ue000", True),  # private use, in queries only
        ("x:\ue000", False),
        ("x:#\ue000", False),
        ("x:\ufffe", False),  # no character
        ("x:\U0001fffd", True),
        ("x:\U0001fffe", False),
        ("x:\U000e0fff", False),
        ("x:\x85", False),
        ("é:x", False),  # a scheme is in ASCII
        ("x:ü%4", False),
    ],
)
def test_characters_beyond_ascii_where_rfc_3987_allows_them(iri: str, expected: bool) -> None:
    assert is_well_formed(iri) is expected


def test_an_iri_of_many_different_characters_costs_what_its_length_costs() -> None:
    def seconds(length: int) -> float:
        iri = "x:" + "".join(chr(0x10000 + number) for number in range(length))
        tries = []
        for _ in range(3):
            began = time.thread_time()
            assert is_well_formed(iri)
            tries.append(time.thread_time() - began)
        return min(tries)

    assert seconds(60_000) < 100 * seconds(2_000), "30 times as long, where the square would be 900"
