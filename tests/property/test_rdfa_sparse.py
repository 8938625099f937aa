"""Visiting only the elements that matter gives the graph that visiting all elements gives."""

from __future__ import annotations

import pyoxigraph
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.html.elements import elements_of
from quadloom.documents.syntaxes.iri import BaseIri
from quadloom.documents.syntaxes.rdfa.frames import Frame
from quadloom.documents.syntaxes.rdfa.hosts import HOSTS
from quadloom.documents.syntaxes.rdfa.names import Names
from quadloom.documents.syntaxes.rdfa.processing import Attributes, Namespaces, Processor
from quadloom.documents.syntaxes.rdfa.trees import LexborMarkup, sparse, walk_elements
from quadloom.documents.syntaxes.sink import Sink
from thoroughness import examples

VALUES = {
    "property": ["ex:p", "ex:p ex:q", "name", "", "license"],
    "typeof": ["ex:T", "T", ""],
    "vocab": ["http://v/", ""],
    "rel": ["ex:r", "next", "License", "nofollow ex:s", "", "describedby"],
    "rev": ["ex:v", "up"],
    "about": ["#a", "[]", "ex:a", "_:x", ""],
    "resource": ["#b", "[]", "[ex:b]", "_:y"],
    "href": ["/h", ""],
    "src": ["/s"],
    "content": ["c"],
    "datatype": ["ex:d", "", "rdf:XMLLiteral"],
    "inlist": [""],
    "prefix": ["ex: http://other/"],
    "xmlns:ex": ["http://third/"],
    "lang": ["en", ""],
    "role": ["main"],
    "datetime": ["2012"],
    "class": ["c"],
}
TAGS = ["div", "span", "section", "time", "i"]


@st.composite
def elements(draw: st.DrawFn, depth: int = 4) -> str:
    tag = draw(st.sampled_from(TAGS))
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), max_size=4, unique=True))
    attributes = "".join(f' {name}="{draw(st.sampled_from(VALUES[name]))}"' for name in names)
    inner = draw(st.lists(elements(depth=depth - 1), max_size=3)) if depth else []
    return f"<{tag}{attributes}>t{''.join(inner)}</{tag}>"


class General(Processor[int]):
    """Without the short path for plain properties."""

    def _is_plain(self, tag: str, attributes: Attributes, namespaces: Namespaces, parent: Frame) -> bool:
        return False


def graph(page: str, kind: type[Processor[int]], *, full: bool, roles: bool) -> set[str]:
    found = elements_of(LexborHTMLParser(page))
    base = BaseIri("http://example.com/")
    sink = Sink()
    host = HOSTS["html5"]
    names = Names(base, host.terms, sink.blank, None)
    processor = kind(host, LexborMarkup(found), names, base, sink.blank, roles=roles)
    walk_elements(found, range(len(found)) if full else sparse(found, roles=roles), processor)
    processor.finish()
    assert names.declared == {}
    for statement in processor.triples.found:
        sink.add(*statement)
    dataset = pyoxigraph.Dataset(pyoxigraph.parse(sink.nquads(), pyoxigraph.RdfFormat.N_QUADS))
    dataset.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad) for quad in dataset}


@settings(max_examples=examples(40, 600), deadline=None)
@given(st.lists(elements(), max_size=3), st.booleans())
def test_sparse_equals_full(parts: list[str], roles: bool) -> None:
    page = f'<!doctype html><html prefix="ex: http://ex/"><body>{"".join(parts)}</body></html>'
    expected = graph(page, General, full=True, roles=roles)
    assert graph(page, Processor, full=True, roles=roles) == expected
    assert graph(page, Processor, full=False, roles=roles) == expected


def test_a_relation_without_target_looks_only_below_itself() -> None:
    links = "<p><a href=/x>x</a></p>" * 50
    page = f'<!doctype html>{links}<div rel="license"><i><a href="/l">l</a></i></div>{links}'
    found = elements_of(LexborHTMLParser(page))
    assert [found.tag(number) for number in sparse(found, roles=False)] == ["div", "a"]
    assert len(graph(page, Processor, full=False, roles=False)) == 1
