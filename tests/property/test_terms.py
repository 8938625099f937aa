"""Whatever becomes a term is accepted by a strict RDF parser."""

from __future__ import annotations

import pyoxigraph
from hypothesis import example, given, settings
from hypothesis import strategies as st

from quadloom.documents.syntaxes.terms import _checked_iri, iri, literal
from quadloom.model.url import resolve
from thoroughness import examples

PIECES = st.sampled_from(
    [
        "http://", "https://", "urn:", "mailto:", "a.example", "[::1]", "[x", "]", ":80", ":x", "/", "//", "?", "#",
        "%", "%2", "%zz", "%41", "[]", "{", "|", "^", "`", "\\", " ", "é", "\ue000", "\ufffe", "\u200e", "\U000e0001",
        "@", "a", "=", "&", "..", "\x7f", "\x00", "\ud800",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.lists(PIECES, max_size=9).map("".join), st.text(max_size=40))


def strictly(line: str) -> None:
    list(pyoxigraph.parse(line.encode("utf-8"), pyoxigraph.RdfFormat.N_QUADS))


@settings(max_examples=examples(250, 4000), deadline=None)
@given(TEXTS)
@example("http://a.example/?x[]=1")
@example("http://a.example/100%")
@example("http://a.example/#b#c")
@example("http://[x")
def test_an_iri_is_one_or_none(text: str) -> None:
    term = iri(text)
    if term is not None:
        strictly(f"{term} <urn:p> {term} {term} .")


@settings(max_examples=examples(250, 4000), deadline=None)
@given(TEXTS)
@example("http://a.example:99999/b?c=d#e")
@example("http://a.example/#b#c")
@example("http://a.example?b?c")
@example("http:///a")
def test_the_quick_look_at_an_iri_agrees_with_the_complete_one(text: str) -> None:
    assert iri(text) == _checked_iri(text)


@settings(max_examples=examples(120, 1500), deadline=None)
@given(TEXTS, TEXTS)
def test_a_literal_is_one_whatever_its_text_and_language(text: str, language: str) -> None:
    strictly(f"<urn:s> <urn:p> {literal(text, language)} .")


@settings(max_examples=examples(250, 4000), deadline=None)
@given(TEXTS)
@example("?a={b}|c^d`e[f]")
@example("/a%")
def test_every_url_can_name_a_graph(text: str) -> None:
    href = resolve(text, "https://site.example/folder/page")
    if href is not None:
        strictly(f"<urn:s> <urn:p> <urn:o> <{href}> .")
