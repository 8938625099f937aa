"""Loops over statements and links in C say what the implementations in Python say, whatever the terms."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from native_parts import native_part
from quadloom.documents import extract, index
from quadloom.documents.syntaxes.rdf import links
from quadloom.documents.syntaxes.terms import TYPE, XSD
from quadloom.model.link import Link, LinkKind
from quadloom.model.quads import Triple
from thoroughness import examples

native_part("records")

IRIS = (
    "<http://schema.org/name>", "<https://schema.org/name>", "<https://schema.org/InStock>", "<http://a.example/b#c>",
    "<http://a.example/b>", "<http://a.example/ü>", "<urn:x:y>", "<mailto:a@b.example>", "_:b0", "<http>", "<>",
)  # fmt: skip
PREDICATES = (*IRIS, TYPE, "<http://schema.org/sameAs>", "<http://www.w3.org/2002/07/owl#sameAs>")
ENDS = (
    '"', '"@en', f'"^^<{XSD}date>', f'"^^<{XSD}string>', '"^^<https://schema.org/Date>', '"^^<http://schema.org/Date>',
)  # fmt: skip
TEXTS = st.sampled_from(("", "a", "日本", "a b", '\\"', "\\n", "\\\\", "^^<", "https://schema.org/x", "😀"))
LITERALS = st.builds(lambda text, end: f'"{text}{end}', st.lists(TEXTS, max_size=3).map("".join), st.sampled_from(ENDS))
TERMS = st.one_of(
    st.sampled_from(IRIS), LITERALS, st.builds(lambda one: f"<<( <urn:a> <urn:b> {one} )>>", LITERALS)
)  # fmt: skip
TRIPLES = st.lists(st.tuples(st.sampled_from(IRIS), st.sampled_from(PREDICATES), TERMS), max_size=12).map(tuple)
HREFS = st.sampled_from(("http://a.example/", "http://a.example/?b", "https://ü.example/", "http://c.example/d"))
KINDS: st.SearchStrategy[LinkKind] = st.sampled_from(("plain", "image", "vocabulary", "next"))
LINKS = st.lists(st.builds(Link, HREFS, st.just("http://a.example/"), KINDS), max_size=8).map(tuple)


@settings(max_examples=examples(200, 3000), deadline=None)
@given(TRIPLES, st.integers(0, 12))
def test_statements(triples: tuple[Triple, ...], most: int) -> None:
    said = _said_of(triples, most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "_native", None)
        patch.setattr(links, "_native_terms", None)
        assert _said_of(triples, most) == said


def _said_of(triples: tuple[Triple, ...], most: int) -> list[object]:
    spelled = [tuple(index.SchemaSpelling(scheme).triples(triples)) for scheme in ("http", "https")]
    words = [index.words_in([one[2] for one in triples], limit) for limit in (most, 1000)]
    found = links.data_links(triples, "http://a.example/b")
    return [found, spelled, words, index.vocabularies_of(triples)]


@settings(max_examples=examples(100, 1000), deadline=None)
@given(LINKS)
def test_links(stated: tuple[Link, ...]) -> None:
    targets = extract.targets(stated)
    counted = [extract.edges(stated, targets, vocabulary=choice) for choice in (True, False)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extract, "_native", None)
        assert extract.targets(stated) == targets
        assert [extract.edges(stated, targets, vocabulary=choice) for choice in (True, False)] == counted
