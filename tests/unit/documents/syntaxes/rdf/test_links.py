"""Links as statements."""

from __future__ import annotations

from quadloom.documents.syntaxes.rdf.links import link_triples
from quadloom.model.link import Link

PAGE = "https://site.example/"
LINKS = [
    Link("https://site.example/a", PAGE, "plain", "A"),
    Link("https://site.example/feed", PAGE, "feed", "News", "alternate"),
    Link("https://cc.example/by", PAGE, "typed", "", "license"),
    Link("https://site.example/ada", PAGE, "typed", "Ada", "author http://rel.example/x"),
    Link("http://v.example/T", PAGE, "vocabulary"),
]


def test_typed_links_have_their_relation() -> None:
    assert [" ".join(triple) for triple in link_triples(LINKS, "typed")] == [
        "<https://site.example/> <http://www.w3.org/1999/xhtml/vocab#alternate> <https://site.example/feed>",
        "<https://site.example/> <http://www.w3.org/2000/01/rdf-schema#seeAlso> <https://site.example/feed>",
        '<https://site.example/feed> <http://www.w3.org/2000/01/rdf-schema#label> "News"',
        "<https://site.example/> <http://www.w3.org/1999/xhtml/vocab#license> <https://cc.example/by>",
        "<https://site.example/> <http://www.iana.org/assignments/relation/author> <https://site.example/ada>",
        "<https://site.example/> <http://rel.example/x> <https://site.example/ada>",
        '<https://site.example/ada> <http://www.w3.org/2000/01/rdf-schema#label> "Ada"',
    ]


def test_all_adds_plain_links() -> None:
    typed = link_triples(LINKS, "typed")
    added = [" ".join(triple) for triple in link_triples(LINKS, "all") if triple not in typed]
    assert added == [
        "<https://site.example/> <http://purl.org/dc/terms/references> <https://site.example/a>",
        '<https://site.example/a> <http://www.w3.org/2000/01/rdf-schema#label> "A"',
    ]
