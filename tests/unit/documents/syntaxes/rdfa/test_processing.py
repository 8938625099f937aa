"""RDFa rules, one small page each. Statements are compared as sets of N-Triples."""

from __future__ import annotations

import pyoxigraph
import pytest
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.html.elements import elements_of
from quadloom.documents.syntaxes.rdfa import extract
from quadloom.documents.syntaxes.rdfa.extraction import write, write_xml
from quadloom.documents.syntaxes.rdfa.frames import MAX_MARKUP_DEPTH, MAX_TEXT_DEPTH
from quadloom.documents.syntaxes.sink import Sink

URL = "http://example.com/dir/page"
EX = "http://example.org/"


def statements(body: str, **options: object) -> set[str]:
    nquads = extract(body.encode(), url=URL, **options)  # type: ignore[arg-type]
    dataset = pyoxigraph.Dataset(pyoxigraph.parse(nquads, pyoxigraph.RdfFormat.N_QUADS))
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad).replace("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "rdf:") for quad in dataset}


def prefixed(inner: str) -> str:
    return f'<!doctype html><html prefix="ex: {EX}"><body>{inner}</body></html>'


def test_a_page_without_rdfa_gives_nothing() -> None:
    assert extract(b'<a rel="nofollow" href="/x">x</a><p>property = typeof</p>', url=URL) == b""


def test_open_graph_describes_the_page() -> None:
    page = '<html><head><meta property="og:title" content="A &quot;title&quot;"></head></html>'
    assert statements(page) == {f'<{URL}> <http://ogp.me/ns#title> "A \\"title\\""'}


@pytest.mark.parametrize(
    ("charset", "encoded", "expected"),
    [("iso-8859-1", b"\x80\xe9", "€é"), ("utf-8", "é".encode(), "é"), ("utf-7", b"+AOk-", "+AOk-"), ("x", b"a", "a")],
)
def test_the_declared_charset_counts_where_the_web_has_it(charset: str, encoded: bytes, expected: str) -> None:
    page = b'<meta charset="%s"><p property="dc:title">%s</p>' % (charset.encode(), encoded)
    assert extract(page, url=URL).decode() == f'<{URL}> <http://purl.org/dc/terms/title> "{expected}" .\n'


def test_vocabulary_type_and_nested_properties() -> None:
    page = (
        '<div vocab="http://schema.org/" typeof="Person" resource="#me">'
        '<b property="name">Ann</b> <a property="url" href="../ann">home</a></div>'
    )
    assert statements(page) == {
        f"<{URL}> <http://www.w3.org/ns/rdfa#usesVocabulary> <http://schema.org/>",
        f"<{URL}#me> <rdf:type> <http://schema.org/Person>",
        f'<{URL}#me> <http://schema.org/name> "Ann"',
        f"<{URL}#me> <http://schema.org/url> <http://example.com/ann>",
    }


def test_a_link_above_an_annotated_element_is_its_subject() -> None:
    page = prefixed('<a href="/target"><span property="ex:p">text</span></a>')
    assert statements(page) == {f'<http://example.com/target> <{EX}p> "text"'}


def test_waiting_links_find_subjects_that_carry_no_rdfa() -> None:
    page = prefixed('<div about="#a" rel="ex:img"><p><img src="/1.png"></p><a href="/2.png">two</a></div>')
    assert statements(page) == {
        f"<{URL}#a> <{EX}img> <http://example.com/1.png>",
        f"<{URL}#a> <{EX}img> <http://example.com/2.png>",
    }


def test_words_in_rel_are_muted_beside_property() -> None:
    page = prefixed('<a property="ex:p" rel="license ex:q nofollow" href="/x">text</a>')
    assert statements(page) == {
        f"<{URL}> <{EX}q> <http://example.com/x>",
        f'<{URL}> <{EX}p> "text"',
    }


def test_inlist_belongs_to_the_object_of_the_link_above() -> None:
    page = prefixed(
        '<div rel="ex:q" resource="#r"><b property="ex:p" inlist>1</b><b property="ex:p" inlist>2</b></div>'
    )
    found = statements(page)
    assert f"<{URL}> <{EX}q> <{URL}#r>" in found
    assert sum(line.startswith(f"<{URL}#r> <{EX}p> _:") for line in found) == 1
    assert sum("<rdf:first>" in line for line in found) == 2


def test_empty_list_of_a_waiting_link_is_nil() -> None:
    assert statements(prefixed('<p rel="ex:p" inlist></p>')) == {f"<{URL}> <{EX}p> <rdf:nil>"}


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ('<time property="ex:p">2012-03-18</time>', '"2012-03-18"^^<http://www.w3.org/2001/XMLSchema#date>'),
        ('<time property="ex:p"> 2012-03-18</time>', '" 2012-03-18"'),
        (
            '<time property="ex:p" datetime="12:00:00Z">noon</time>',
            '"12:00:00Z"^^<http://www.w3.org/2001/XMLSchema#time>',
        ),
        ('<i property="ex:p" datetime="PT5M">x</i>', '"PT5M"^^<http://www.w3.org/2001/XMLSchema#duration>'),
        ('<time property="ex:p" content="x" datetime="2012">y</time>', '"x"'),
        ('<time property="ex:p" datatype="ex:d" datetime="2012">y</time>', f'"2012"^^<{EX}d>'),
        ('<time property="ex:p" lang="en">soon</time>', '"soon"@en'),
    ],
)
def test_times(markup: str, expected: str) -> None:
    assert statements(prefixed(markup)) == {f"<{URL}> <{EX}p> {expected}"}


def test_ill_formed_datatypes_become_plain_literals() -> None:
    for datatype in ("_:b", "rdf:langString", "word", "[]"):
        page = prefixed(f'<p property="ex:p" datatype="{datatype}">x</p>')
        assert statements(page) == {f'<{URL}> <{EX}p> "x"'}


def test_xml_literal_carries_prefixes_in_scope() -> None:
    page = prefixed('<p property="ex:p" datatype="rdf:XMLLiteral">a &lt; <b class="c">b<br></b><!--n--></p>')
    value = (
        '"a &lt; <b class=\\"c\\" xmlns=\\"http://www.w3.org/1999/xhtml\\" xmlns:ex=\\"http://example.org/\\">'
        'b<br/></b><!--n-->"^^<rdf:XMLLiteral>'
    )
    assert statements(page) == {f"<{URL}> <{EX}p> {value}"}


def test_html_literal_is_the_inner_markup() -> None:
    page = prefixed('<p property="ex:p" datatype="rdf:HTML">a<br><i>b</i></p>')
    assert statements(page) == {f'<{URL}> <{EX}p> "a<br><i>b</i>"^^<rdf:HTML>'}


def test_patterns_are_copied_and_removed_only_where_referred_to() -> None:
    page = prefixed(
        '<div resource="#s"><link property="rdfa:copy" href="#one"></div>'
        '<div resource="#one" typeof="rdfa:Pattern"><b property="ex:p">1</b>'
        '<link property="rdfa:copy" href="#two"></div>'
        '<div resource="#two" typeof="rdfa:Pattern"><b property="ex:p">2</b>'
        '<link property="rdfa:copy" href="#one"></div>'
        '<div resource="#three" typeof="rdfa:Pattern"><b property="ex:p">3</b></div>'
    )
    assert statements(page) == {
        f'<{URL}#s> <{EX}p> "1"',
        f'<{URL}#s> <{EX}p> "2"',
        f"<{URL}#three> <rdf:type> <http://www.w3.org/ns/rdfa#Pattern>",
        f'<{URL}#three> <{EX}p> "3"',
    }


def test_prefixes_end_with_their_element() -> None:
    page = (
        '<html prefix="ex: http://one/"><body><div prefix="ex: http://two/"><p property="ex:p">2</p></div>'
        '<p property="ex:p">1</p></body></html>'
    )
    assert statements(page) == {f'<{URL}> <http://two/p> "2"', f'<{URL}> <http://one/p> "1"'}


def test_a_prefix_of_the_initial_context_may_mean_something_else_for_a_while() -> None:
    title = '<p property="og:title" content="{}"></p>'
    page = (
        f'<html><body>{title.format(1)}<div prefix="og: http://other/">{title.format(2)}'
        f'<div prefix="og: http://ogp.me/ns#">{title.format(3)}</div>{title.format(4)}</div>{title.format(5)}</body></html>'
    )
    assert statements(page) == {
        f'<{URL}> <{"http://other/" if number in (2, 4) else "http://ogp.me/ns#"}title> "{number}"'
        for number in range(1, 6)
    }


def test_forbidden_characters_in_references_are_encoded() -> None:
    page = prefixed('<p about="a b|c" property="ex:p">x</p>')
    assert statements(page) == {f'<http://example.com/dir/a%20b%7Cc> <{EX}p> "x"'}


def test_html_names_of_characters_do_not_break_xml_hosts() -> None:
    page = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><p property="dc:title">a&nbsp;b</p>'
        "<script><![CDATA[x&nbsp;y]]></script></body></html>"
    )
    assert statements(page, host="xhtml1") == {f'<{URL}> <http://purl.org/dc/terms/title> "a\u00a0b"'}


def test_entities_of_the_document_are_not_expanded() -> None:
    page = '<!DOCTYPE r [<!ENTITY a "1"><!ENTITY b "&a;&a;">]><r><p property="dc:title">x&b;y</p></r>'
    assert statements(page, host="xml") == {f'<{URL}> <http://purl.org/dc/terms/title> "xy"'}


def test_xml_base_counts_in_xml_and_not_in_xhtml() -> None:
    page = '<r><p xml:base="http://base/" about="x" property="dc:title">t</p></r>'
    assert statements(page, host="xml") == {'<http://base/x> <http://purl.org/dc/terms/title> "t"'}
    assert statements(page, host="xhtml1") == {'<http://example.com/dir/x> <http://purl.org/dc/terms/title> "t"'}


def test_embedded_rdf_xml_is_added_with_own_blank_nodes() -> None:
    page = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
        ' xmlns:ex="http://example.org/"><metadata><rdf:RDF><rdf:Description><ex:p>1</ex:p></rdf:Description>'
        '</rdf:RDF></metadata><g typeof="ex:G"/></svg>'
    )
    assert statements(page, host="svg") == {f'_:c14n0 <{EX}p> "1"', f"_:c14n1 <rdf:type> <{EX}G>"}


def test_rdfa_1_0_has_no_initial_context_and_stops_at_markup() -> None:
    page = (
        '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:ex="http://example.org/"><body>'
        '<p xmlns:og="http://other/"></p><p property="foaf:name">none</p>'
        '<p property="ex:p">a<b property="ex:q">b</b></p></body></html>'
    )
    markup = (
        '"a<b property=\\"ex:q\\" xmlns=\\"http://www.w3.org/1999/xhtml\\" xmlns:ex=\\"http://example.org/\\">b</b>"'
    )
    assert statements(page, host="xhtml1", version="1.0") == {f"<{URL}> <{EX}p> {markup}^^<rdf:XMLLiteral>"}


def test_processor_graph_names_term_curie_and_prefix() -> None:
    page = '<body prefix="foaf: http://other/"><p property="word" about="[no:such]">x</p></body>'
    kinds = {line.split()[2] for line in statements(page, processor_graph=True) if "<rdf:type>" in line}
    assert kinds == {
        f"<http://www.w3.org/ns/rdfa#{name}>"
        for name in ("Warning", "UnresolvedTerm", "UnresolvedCURIE", "PrefixRedefinition")
    }


def test_broken_xml_is_an_error_in_the_processor_graph_and_read_as_far_as_it_goes() -> None:
    page = '<r><p property="dc:title">t</p><broken'
    assert statements(page, host="xml") == {f'<{URL}> <http://purl.org/dc/terms/title> "t"'}
    assert any("rdfa#DocumentError" in line for line in statements(page, host="xml", processor_graph=True))


def test_vocabulary_expansion_follows_chains_and_survives_a_missing_document() -> None:
    turtle = b"""@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
    @prefix v: <http://v/#> . v:a rdfs:subPropertyOf v:b . v:c owl:equivalentProperty v:b . v:T rdfs:subClassOf v:U ."""
    page = '<div vocab="http://v/#" typeof="T" about="#s"><b property="a">x</b></div>'
    used = f"<{URL}> <http://www.w3.org/ns/rdfa#usesVocabulary> <http://v/#>"
    own = {used, f"<{URL}#s> <rdf:type> <http://v/#T>", f'<{URL}#s> <http://v/#a> "x"'}
    entailed = {f"<{URL}#s> <rdf:type> <http://v/#U>", f'<{URL}#s> <http://v/#b> "x"', f'<{URL}#s> <http://v/#c> "x"'}
    assert statements(page, vocab_expansion=True, loader={"http://v/": turtle}.__getitem__) == own | entailed
    assert statements(page, vocab_expansion=True, loader={}.__getitem__) == own
    assert statements(page, vocab_expansion=True) == own


def test_nested_literals_are_limited() -> None:
    depth = MAX_TEXT_DEPTH + 10
    page = prefixed("".join(f'<i property="ex:p{level}">' for level in range(depth)) + "x")
    assert len(statements(page)) == MAX_TEXT_DEPTH
    nested = '<i property="ex:p{}" datatype="rdf:XMLLiteral">'
    page = prefixed("".join(nested.format(level) for level in range(10)) + "x")
    assert len(statements(page)) == MAX_MARKUP_DEPTH


def test_write_shares_a_tree_and_reports_unresolved_names() -> None:
    source = prefixed('<p role="main" property="ex:p word" lang="">x</p><p property="ex:q">y</p>')
    page = elements_of(LexborHTMLParser(source))
    sink, messages = Sink(), list[tuple[str, str]]()
    complete = write(page, URL, sink, language="de", report=lambda kind, text: messages.append((kind, text)))
    assert complete
    assert sink.statements() == [f'<{URL}> <{EX}p> "x"', f'<{URL}> <{EX}q> "y"@de']
    assert [kind for kind, _ in messages] == ["UnresolvedTerm"]


def test_write_xml_takes_a_parsed_root() -> None:
    sink = Sink()
    assert write_xml(etree.fromstring('<r xmlns:ex="http://example.org/"><p property="ex:p">x</p></r>'), URL, sink)
    assert sink.statements() == [f'<{URL}> <{EX}p> "x"']


def test_write_says_when_a_limit_cut_it_short() -> None:
    page = '<p property="' + " ".join(f"a:p{number}" for number in range(300)) + f'" content="{"x" * 300_000}">'
    assert not write(elements_of(LexborHTMLParser(page)), URL, Sink())


@pytest.mark.parametrize(
    "page",
    [
        '<p rel="' + " ".join(f"a:p{number}" for number in range(3000)) + '">' + "<b about=x></b>" * 3000,
        '<p property="' + " ".join(f"a:p{number}" for number in range(3000)) + f'" content="{"x" * 300_000}">',
        '<p prefix="p: http://' + "x" * 1_000_000 + '">' + "<b property=p:x>x</b>" * 3000,
        '<p prefix="'
        + " ".join(f"p{n}: http://x/{n}#" for n in range(100_000))
        + '">'
        + '<b prefix="q: http://q/" property="p1:x">x</b>' * 3000,
    ],
    ids=["links-times-subjects", "properties-times-text", "long-namespace", "many-prefixes"],
)
def test_products_of_small_parts_stay_bounded(page: str) -> None:
    assert len(extract(page.encode(), url=URL)) < 64 * 1024 * 1024
