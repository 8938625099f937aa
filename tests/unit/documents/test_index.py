"""What is kept of a page: its description as RDF, its words and vocabularies."""

from __future__ import annotations

import pyoxigraph as ox
import pytest

import quadloom
from quadloom.documents.descriptions import PAGES, VISITS, page_description, visit_description
from quadloom.documents.index import SchemaSpelling, literals_in, namespace, page_graph, vocabularies_of, words_of
from quadloom.documents.pipeline import process_page
from quadloom.documents.syntaxes.terms import XSD
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import LimitSettings, Settings


def row(**changes: object) -> PageRow:
    values: dict[str, object] = {
        "fingerprint": 1, "key": "http://x.example/", "href": "http://x.example/", "host": "x.example",
        "final_url": "http://x.example/", "status": 200, "kind": "html", "title": 'A "b"\\', "language": "EN-gb",
        "changed_at": 86400.5, "fetched_at": 99999.0, "quads_digest": b"\x01\xff",
    }  # fmt: skip
    return PageRow(**(values | changes))  # type: ignore[arg-type]


def test_a_description_is_valid_and_complete() -> None:
    quads = list(ox.parse(page_description(row(), 203, "http://y.example/"), ox.RdfFormat.N_QUADS))
    assert {quad.graph_name.value for quad in quads} == {PAGES}
    assert {quad.subject.value for quad in quads} == {"http://x.example/"}
    found = {quad.predicate.value.rpartition("/")[2].rpartition(":")[2]: quad.object for quad in quads}
    assert found["title"] == ox.Literal('A "b"\\', language="en-gb")
    assert found["prov#generatedAtTime"].value == "1970-01-02T00:00:00Z"
    assert found["foundOn"] == ox.NamedNode("http://y.example/")
    assert found["status"].value == "203"
    assert found["digest"].value == "01ff"


def test_a_later_visit_without_change_says_the_same() -> None:
    before = page_description(row(), 200, "")
    after = page_description(row(fetched_at=5e9, visits=9, status=503, failures=2), 200, "")
    assert before == after


def test_a_url_that_is_no_iri_is_not_described() -> None:
    assert page_description(row(final_url="http://x.example/a|b"), 200, "") == b""


def test_words_and_vocabularies() -> None:
    year = f'"2026"^^<{XSD}gYear>'
    triples = [
        ("<x:s>", "<http://schema.org/name>", '"caf\\u00E9 \\"x\\""'),
        ("<x:s>", "<http://schema.org/alternateName>", '"deux"@fr'),
        ("<x:s>", "<http://purl.org/dc/terms/date>", year),
        (
            "<x:s>",
            "<http://schema.org/about>",
            '<<( <x:s> <x:p> "three"^^<http://www.w3.org/2001/XMLSchema#string> )>>',
        ),
        ("<x:s>", "<http://schema.org/url>", "<x:o>"),
    ]
    literals = literals_in(obj for _, _, obj in triples)
    assert words_of(literals, 1000) == ('café "x"\ndeux\nthree', 0)
    assert words_of(literals, 15) == ('café "x"', 9), "escapes count as they are written"
    assert vocabularies_of(triples) == ("http://purl.org/dc/terms/", "http://schema.org/")
    assert namespace("http://x.example/a#b") == "http://x.example/a#"


def test_statements_of_named_graphs_are_read_by_their_terms() -> None:
    """The name of the graph is no part of a type, a link or a title."""
    body = b"""@prefix s: <http://schema.org/> .
    <http://g.example/g> { <http://x.example/a> a s:Event ; s:name "Fair"@en ; s:url <http://y.example/> . }"""
    found = quadloom.transform(body, url="http://x.example/data.trig", content_type="application/trig")
    assert found.types == ("http://schema.org/Event",)
    assert found.title == "Fair"
    assert {link.target for link in found.links if link.kind != "vocabulary"} == {
        "http://x.example/a",
        "http://y.example/",
    }
    assert found.nquads.count(b" <http://g.example/g> .\n") == 3
    assert page_graph(found, found.url, "none").quads.nquads.count(b" <http://x.example/data.trig> .\n") == 3


def test_all_literals_are_searchable_and_a_cut_is_a_finding() -> None:
    url = "http://x.example/names.nt"
    lines = (f'<{url}#{number}> <http://xmlns.com/foaf/0.1/name> "Person number{number}" .' for number in range(5000))
    page = Page(url, url, 200, (("content-type", "application/n-triples"),), "\n".join(lines).encode(), 0.0, 0.0)
    visit = Visit(url, url, "x.example", 1)
    whole = process_page(page, visit, Settings(), ())
    assert whole.text is not None
    assert whole.text.literals.count("Person number") == 5000
    assert not whole.findings
    cut = process_page(page, visit, Settings(limits=LimitSettings(literal_chars=1000)), ())
    assert cut.text is not None
    assert 950 < len(cut.text.literals) < 1100
    assert [finding.code for finding in cut.findings] == ["too-many-literals"]
    assert cut.quads.count == 5000


@pytest.mark.parametrize(
    ("setting", "schemes"), [("as-written", {"http", "https"}), ("http", {"http"}), ("https", {"https"})]
)
def test_schema_org_can_have_one_scheme(setting: str, schemes: set[str]) -> None:
    """JSON-LD gives http, the microdata says https; predicates, classes, values and datatypes follow the setting."""
    body = b"""<script type="application/ld+json">
    {"@context": "https://schema.org", "@type": "Event", "startDate": "2026-05-12",
     "name": "x> <https://schema.org/y> z"}
    </script><div itemscope itemtype="https://schema.org/Offer">
    <link itemprop="availability" href="https://schema.org/InStock">
    <a itemprop="url" href="https://schema.org/docs/a.html">d</a>
    </div>"""
    transformed = quadloom.transform(body, url="http://x.example/", content_type="text/html")
    stored = list(
        ox.parse(page_graph(transformed, "http://x.example/", "none", setting).quads.nquads, ox.RdfFormat.N_QUADS)
    )
    terms = {quad.predicate.value for quad in stored} | {
        quad.object.value for quad in stored if isinstance(quad.object, ox.NamedNode)
    } | {quad.object.datatype.value for quad in stored if isinstance(quad.object, ox.Literal)}  # fmt: skip
    found = {name.partition(":")[0] for name in terms if "://schema.org/" in name and "docs" not in name}
    assert found == schemes
    assert "https://schema.org/docs/a.html" in terms, "a document is not a term"
    assert any(quad.object == ox.Literal("x> <https://schema.org/y> z") for quad in stored), "text stays as it is"


def test_what_a_page_writes_with_both_schemes_is_stored_once() -> None:
    terms = [f"<{scheme}://schema.org/{name}>" for scheme in ("http", "https") for name in ("name", "Text")]
    triples = tuple(("_:b0", one, other) for one in (terms[0], terms[2]) for other in (*terms[1::2], '"x"'))
    for scheme in ("http", "https"):
        name, text = f"<{scheme}://schema.org/name>", f"<{scheme}://schema.org/Text>"
        assert list(SchemaSpelling(scheme).triples(triples)) == [("_:b0", name, text), ("_:b0", name, '"x"')]
    one_way = (
        ("_:b0", terms[2], terms[3]),
        ("_:b1", terms[2], terms[3]),
        ("_:b0", "<http://www.w3.org/2000/01/rdf-schema#label>", '"x"'),
    )
    spelled = [
        ("_:b0", terms[0], terms[1]),
        ("_:b1", terms[0], terms[1]),
        ("_:b0", "<http://www.w3.org/2000/01/rdf-schema#label>", '"x"'),
    ]
    assert list(SchemaSpelling("http").triples(one_way)) == spelled


def test_a_visit_is_described_whatever_came_of_it() -> None:
    def stated(**changes: object) -> dict[str, str]:
        quads = ox.parse(visit_description(row(**changes), "http://y.example/"), ox.RdfFormat.N_QUADS)
        found = {quad.predicate.value.removeprefix("urn:quadloom:"): quad for quad in quads}
        assert {(quad.subject.value, quad.graph_name.value) for quad in found.values()} == {(row().href, VISITS)}
        return {name: quad.object.value for name, quad in found.items()}

    read = stated(
        sent_type="text/html; charset=utf-8", sent_language="de", etag='"1"', last_modified="Sun", body_bytes=7
    )
    assert read["contentType"] == "text/html; charset=utf-8" and read["contentLanguage"] == "de"
    assert (read["etag"], read["lastModified"], read["contentLength"]) == ('"1"', "Sun", "7")
    assert read["robots"] == "allowed" and read["foundOn"] == "http://y.example/" and "reason" not in read
    denied = stated(outcome=Outcome.DENIED, status=0, reason="robots: robots.txt disallows /a")
    assert (denied["outcome"], denied["robots"]) == ("denied", "disallowed")
    assert denied["reason"] == "robots: robots.txt disallows /a" and "status" not in denied
    moved = stated(outcome=Outcome.UNCHANGED, status=301, kind="redirect", final_url="http://z.example/")
    assert (moved["redirectsTo"], moved["status"]) == ("http://z.example/", "301")
