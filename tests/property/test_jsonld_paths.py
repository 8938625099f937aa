"""The fast way and the complete way through JSON-LD give the same statements, or the fast one gives up."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from quadloom.documents.syntaxes.jsonld.context import ContextProcessor
from quadloom.documents.syntaxes.jsonld.expand import expand_document
from quadloom.documents.syntaxes.jsonld.fast import FastWalk, NotSimple
from quadloom.documents.syntaxes.jsonld.json import Json
from quadloom.documents.syntaxes.jsonld.loader import ContextLoader
from quadloom.documents.syntaxes.jsonld.rdf import RdfWriter
from quadloom.documents.syntaxes.jsonld.terms import ActiveContext
from quadloom.documents.syntaxes.sink import Sink
from quadloom.errors import SyntaxInvalid
from thoroughness import examples

PAGE = "https://example.org/shop/page?x=1"
LOADER = ContextLoader()

SCHEMA = st.sampled_from(
    ["https://schema.org", "http://schema.org/", "https://www.schema.org", "http://schema.org/docs/jsonldcontext.json"]
)
LOCAL = st.fixed_dictionaries(
    {},
    optional={
        "@vocab": st.sampled_from(["http://schema.org/", "https://example.org/v#", "rel/", None]),
        "@language": st.sampled_from(["en", "de-AT", "not a tag", None]),
        "@base": st.sampled_from(["https://other.example/", "sub/", None]),
        "ex": st.just("https://example.org/ns#"),
        "ID": st.just("@id"),
        "kind": st.just("@type"),
        "name": st.sampled_from(
            ["ex:name", None, {"@id": "ex:name", "@language": "fr"}, {"@id": "ex:n", "@type": "ex:T"}]
        ),
        "list": st.just({"@id": "ex:list", "@container": "@list"}),
        "set": st.just({"@id": "ex:set", "@container": "@set", "@type": "@id"}),
        "words": st.just({"@id": "ex:words", "@container": "@language"}),
        "back": st.just({"@reverse": "ex:back"}),
        "see": st.just({"@id": "ex:see", "@type": "@vocab"}),
        "raw": st.just({"@id": "ex:raw", "@type": "@json"}),
        "part": st.just({"@id": "ex:part", "@context": {"name": "ex:partName", "@language": "it"}}),
        "Thing": st.just({"@id": "ex:Thing", "@context": {"name": "ex:thingName"}}),
        "@direction": st.just("rtl"),
        "@protected": st.just(True),
    },
)
CONTEXTS = st.one_of(
    SCHEMA,
    SCHEMA,
    st.builds(lambda known, own: [known, own], SCHEMA, LOCAL),
    LOCAL,
    st.none(),
    st.just("https://no.example/"),
)
KEYS = st.sampled_from(
    ["name", "description", "url", "image", "offers", "price", "author", "sameAs", "datePublished", "itemListElement"]
)
ODD_KEYS = st.sampled_from(
    ["ex:extra", "schema:sku", "unknown_term", "https://example.org/full", "list", "set", "words", "see", "raw", "part",
     "back", "ID", "kind", "id", "type", "@type", "@foo", "dc:title", "a/b", "_:p"]
)  # fmt: skip
STRINGS = st.sampled_from(
    ["", "plain", "Zeile\n2", 'quote " \\', "https://example.org/a", "../up", "#frag", "_:node", "Thing", "Person",
     "ex:x", "schema:Person", "http://bad iri/", "2024-01-01", "type", "@id", "@foo", "http://a/b/../c",
     "mailto:a@example.org"]
)  # fmt: skip
SCALARS = st.one_of(
    STRINGS, STRINGS, STRINGS, st.integers(-3, 3), st.just(10**21), st.sampled_from([1.5, -0.0, 2.0, 1e21, 1e-7]),
    st.booleans(), st.none(),
)  # fmt: skip
VALUES = st.fixed_dictionaries(
    {"@value": SCALARS},
    optional={
        "@type": st.sampled_from(["Date", "ex:T", "xsd:double", "xsd:string", "@json", "Thing", 3]),
        "@language": STRINGS,
    },
)
NODE_IDS = st.fixed_dictionaries({"@id": STRINGS})


LISTS = st.one_of(
    st.fixed_dictionaries({"@list": st.one_of(SCALARS, st.lists(SCALARS, max_size=3))}),
    st.fixed_dictionaries({"@set": st.lists(SCALARS, max_size=3)}),
)


def plain_nodes(children: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """What shops and newspapers write."""
    many = st.lists(st.one_of(SCALARS, children), max_size=3)
    items = st.one_of(SCALARS, VALUES, NODE_IDS, children, many, LISTS, st.builds(lambda found: {"@list": found}, many))
    return st.builds(
        lambda entries, keywords: {**keywords, **entries},
        st.dictionaries(st.one_of(KEYS, ODD_KEYS), items, max_size=5),
        st.fixed_dictionaries(
            {},
            optional={
                "@type": st.one_of(STRINGS, st.lists(STRINGS, max_size=2)),
                "@id": STRINGS,
                "@context": st.one_of(
                    SCHEMA, st.builds(lambda known: [known, {"ex": "https://example.org/ns#"}], SCHEMA)
                ),
            },
        ),
    )


def odd_nodes(children: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """The same with all that the specification knows, and with mistakes."""
    odd = st.fixed_dictionaries(
        {},
        optional={
            "@type": st.none(),
            "@context": CONTEXTS,
            "@index": st.just("1"),
            "@graph": st.lists(children, max_size=1),
            "words": st.fixed_dictionaries({"en": STRINGS}, optional={"@none": SCALARS}),
        },
    )
    return st.builds(lambda plain, extra: {**plain, **extra}, plain_nodes(children), odd)


def documents(
    make: Callable[[st.SearchStrategy[Json]], st.SearchStrategy[Json]], contexts: st.SearchStrategy[Json]
) -> st.SearchStrategy[Json]:
    found = st.recursive(make(SCALARS), make, max_leaves=6)
    return st.one_of(
        st.builds(lambda context, node: {**node, "@context": context}, contexts, found),
        st.builds(lambda context, graph: {"@context": context, "@graph": graph}, contexts, st.lists(found, max_size=3)),
        st.lists(st.builds(lambda context, node: {"@context": context, **node}, SCHEMA, found), max_size=2),
    )


class ByTheBook(ContextProcessor):
    """Defines every term of every context each time that it is named."""

    def __init__(self) -> None:
        super().__init__(lambda url: msgspec.structs.replace(LOADER.load(url), shared=None))

    def _history(self, *_arguments: object) -> None:
        return None


def complete(document: Json, processor: ContextProcessor | None = None) -> list[tuple[str, str, str]]:
    statements: list[tuple[str, str, str]] = []
    writer = RdfWriter(lambda s, p, o, _graph: statements.append((s, p, o)), Sink().blank, spaces=PAGE)
    processor = processor or ContextProcessor(LOADER.load)
    writer.write(expand_document(processor, ActiveContext.initial(PAGE), document, PAGE))
    return statements


def canonical(statements: list[tuple[str, str, str]]) -> list[str]:
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in statements)
    dataset = Dataset(parse(text.encode("utf-8", "replace"), RdfFormat.N_QUADS))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return sorted(str(quad) for quad in dataset)


@settings(max_examples=examples(120, 2000), deadline=None)
@given(documents(plain_nodes, st.one_of(SCHEMA, SCHEMA, st.just({"@vocab": "http://schema.org/"}))))
def test_both_ways_agree_on_usual_documents(document: Json) -> None:
    compare(document)


@settings(max_examples=examples(120, 2000), deadline=None)
@given(documents(odd_nodes, CONTEXTS))
def test_both_ways_agree_on_odd_documents(document: Json) -> None:
    compare(document)


@settings(max_examples=examples(30, 600), deadline=None)
@given(documents(odd_nodes, CONTEXTS))
def test_shared_contexts_are_those_of_the_algorithm(document: Json) -> None:
    try:
        expected = complete(document, ByTheBook())
    except SyntaxInvalid as error:
        with pytest.raises(SyntaxInvalid) as caught:
            complete(document)
        assert caught.value.code == error.code
        return
    assert complete(document) == expected
    assert complete(document) == expected  # now that the contexts are cached


def compare(document: Json) -> None:
    walk = FastWalk(ContextProcessor(LOADER.load), Sink().blank, PAGE)
    try:
        walk.document(document)
    except NotSimple:
        event("the fast way gave up")
        return
    except SyntaxInvalid:
        event("invalid")
        try:
            complete(document)
        except SyntaxInvalid:
            return
        raise AssertionError("only the fast way found it invalid") from None
    event("compared" if walk.statements else "compared, empty")
    assert canonical(walk.statements) == canonical(complete(document))
