"""JSON-LD documents: places of errors, limits, bundled contexts, options. The rules themselves: tests/conformance."""

from __future__ import annotations

import time

import pytest

from quadloom.documents.syntaxes import jsonld
from quadloom.documents.syntaxes.jsonld import contexts
from quadloom.documents.syntaxes.jsonld.context import ContextProcessor
from quadloom.documents.syntaxes.jsonld.json import Json, canonical, integer_or_double, read
from quadloom.documents.syntaxes.jsonld.loader import ContextLoader, LoadedDocument
from quadloom.documents.syntaxes.jsonld.terms import ActiveContext
from quadloom.errors import SyntaxInvalid

URL = "https://example.org/doc"


def test_error_has_code_line_and_column() -> None:
    with pytest.raises(SyntaxInvalid) as caught:
        jsonld.extract(b'{\n "a": 1,\n "b" 2\n}', url=URL)
    assert (caught.value.code, caught.value.line, caught.value.column) == ("loading document failed", 3, 6)


@pytest.mark.parametrize("body", [b"", b"NaN", b'{"a": Infinity}', b"\xff{}", b'{"a":1,}', b"{'a': 1}"])
def test_what_is_not_json_is_refused(body: bytes) -> None:
    with pytest.raises(SyntaxInvalid):
        jsonld.extract(body, url=URL)


def test_depth_is_limited_before_parsing_and_in_linear_time() -> None:
    start = time.process_time()
    for body in (b"[" * 500_000, b'{"a":' * 500_000, b'["]' * 300_000, b'{"a":"' + b"[" * 1_000_000 + b'"}'):
        try:
            read(body)
        except SyntaxInvalid:
            continue
        assert body.endswith(b'"}')  # brackets in a string are no nesting
    assert time.process_time() - start < 5


def test_the_deepest_document_allowed_is_processed() -> None:
    depth = 126
    body = b'{"@context":{"@vocab":"a:"},"p":' + b'{"p":' * depth + b"1" + b"}" * (depth + 1)
    assert jsonld.extract(body, url=URL).count(b"\n") == depth + 1


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("-0", "0"), ("1.0", "1"), ("1e400", "INF"), ("-1e400", "-INF"), ("1e21", "1.0E21"), ("5.3", "5.3E0"),
        ("9007199254740993", "9007199254740993"), ("9" * 5000, "INF"), ("9" * 21, "9" * 21),
    ],
)  # fmt: skip
def test_numbers(number: str, text: str) -> None:
    out = jsonld.extract(b'{"a:p": %b}' % number.encode(), url=URL)
    assert f'"{text}"^^'.encode() in out


def test_numbers_as_doubles() -> None:
    assert integer_or_double(10, True) == ("1.0E1", True)
    assert integer_or_double(0.1, False) == ("1.0E-1", True)


def test_canonical_json_orders_by_utf16_and_writes_numbers_like_ecmascript() -> None:
    value = read('{"\U0001f600": 1e21, "\ufb33": 0.000001, "\\u0001": 1E-7, "a": -0.0}'.encode())
    assert canonical(value) == '{"\\u0001":1e-7,"a":0,"\U0001f600":1e+21,"\ufb33":0.000001}'


def test_lone_surrogates_do_not_break_the_output() -> None:
    assert jsonld.extract(b'{"a:p": "x\\ud800y"}', url=URL).decode().endswith('"x\ufffdy" .\n')


def test_expand_context_may_be_bytes_text_value_or_address() -> None:
    body = b'{"name": "x"}'
    names: Json = {"name": "a:name"}
    forms: tuple[Json | bytes, ...] = (
        {"@context": names},
        names,
        b'{"@context": {"name": "a:name"}}',
        '{"name": "a:name"}',
        "https://c.example/",
    )
    results = {
        jsonld.extract(body, url=URL, expand_context=form, loader=lambda url: b'{"@context": {"name": "a:name"}}')
        for form in forms
    }
    assert results == {b'_:b0 <a:name> "x" .\n'}


def test_inner_graphs_are_kept() -> None:
    body = b'{"@context": {"@vocab": "a:"}, "@id": "a:g", "@graph": [{"@id": "a:s", "p": "o"}], "q": 1}'
    assert b'<a:s> <a:p> "o" <a:g> .\n' in jsonld.extract(body, url=URL)


@pytest.mark.parametrize(
    "spelling",
    [
        "http://schema.org", "https://schema.org/", "https://www.schema.org", "http://www.schema.org/", "HTTPS://Schema.org",
        "https://schema.org/docs/jsonldcontext.json", "http://schema.org/docs/jsonldcontext.jsonld", "https://schema.org/#",
    ],
)  # fmt: skip
def test_spellings_of_schema_org(spelling: str) -> None:
    out = jsonld.extract(b'{"@context": "%b", "@type": "Person", "url": "/me"}' % spelling.encode(), url=URL)
    assert b"<http://schema.org/url> <https://example.org/me> ." in out


@pytest.mark.parametrize(
    "url", ["https://schema.org/Person", "https://schema.org.evil.example/", "ftp://schema.org", ""]
)
def test_other_addresses_are_not_schema_org(url: str) -> None:
    assert contexts.find(url) is None


def test_table_and_its_local_form_define_the_same_terms() -> None:
    known = contexts.find("https://schema.org")
    assert known is not None
    processed = ContextProcessor(ContextLoader().load).process(ActiveContext.initial(None), known.local(), known.url)
    assert processed.terms.keys() == known.active.terms.keys()
    assert all(term.same_as(known.active.terms[name]) for name, term in processed.terms.items())
    assert len(processed.terms) > 3000


def test_schema_org_after_other_terms_is_the_same_as_before_them() -> None:
    own = '{"ex": "https://e.example/"}'
    body = '{"@context": [%s, %s], "name": "x", "sameAs": "https://e.example/x", "ex:y": 1}'
    one, two = ((body % pair).encode() for pair in (('"https://schema.org"', own), (own, '"https://schema.org"')))
    assert jsonld.extract(one, url=URL) == jsonld.extract(two, url=URL)


def test_unknown_contexts_are_refused_without_a_loader() -> None:
    with pytest.raises(SyntaxInvalid) as caught:
        jsonld.extract(b'{"@context": "https://c.example/"}', url=URL)
    assert caught.value.code == "loading remote context failed"


def test_loader_limits_count_bytes_and_cache() -> None:
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        if "dead" in url:
            raise OSError("no answer")
        return b'{"@context": {"p": "a:p"}, "pad": "%b"}' % (b"x" * (5000 if "long" in url else 1))

    loader = ContextLoader(fetch, loads=3, max_bytes=1000, cached=4)
    assert loader.load("https://c.example/1").local() == {"p": "a:p"}
    assert loader.load("https://c.example/1").local() == {"p": "a:p"}
    for url in ("https://c.example/long", "https://c.example/dead", "https://c.example/dead", "https://c.example/4th"):
        with pytest.raises(SyntaxInvalid):
            loader.load(url)
    assert asked == ["https://c.example/1", "https://c.example/long", "https://c.example/dead"]
    loader.start()
    assert loader.load("https://c.example/4th").local() == {"p": "a:p"}


def test_contexts_that_include_each_other_end() -> None:
    documents = {
        "https://c.example/a": b'{"@context": "https://c.example/b"}',
        "https://c.example/b": b'{"@context": ["https://c.example/a"]}',
        "https://c.example/s": b'{"@context": {"t": {"@id": "a:t", "@context": "https://c.example/s"}}}',
    }
    with pytest.raises(SyntaxInvalid) as caught:
        jsonld.extract(b'{"@context": "https://c.example/a"}', url=URL, loader=documents.__getitem__)
    assert caught.value.code == "context overflow"
    body = b'{"@context": "https://c.example/s", "t": {"t": {"t": 1}}}'
    assert jsonld.extract(body, url=URL, loader=documents.__getitem__).count(b"\n") == 3


def test_context_in_an_html_page_and_behind_an_alternate_link() -> None:
    page = b'<script type="application/ld+json">{"@context": {"p": "a:p"}}</script>'
    link = '<c.jsonld>; rel="alternate"; type="application/ld+json"'

    def fetch(url: str) -> LoadedDocument:
        if url.endswith("c.jsonld"):
            return LoadedDocument(body=b'{"@context": {"p": "a:p"}}', url=url, content_type="application/ld+json")
        links = (link,) if "linked" in url else ()
        return LoadedDocument(body=page, url=url, content_type="text/html", links=links)

    for url in (b"https://c.example/page", b"https://c.example/linked"):
        assert jsonld.extract(b'{"@context": "%b", "p": 1}' % url, url=URL, loader=fetch)


def test_many_values_cost_linear_time() -> None:
    body = b'{"a:p": [%b]}' % b",".join(b'"%d"' % n for n in range(60_000))
    start = time.process_time()
    assert jsonld.extract(body, url=URL).count(b"\n") == 60_000
    assert time.process_time() - start < 5


def test_what_nothing_can_refer_to_is_silent_but_for_its_nodes() -> None:
    inner = '{"@id": "a:s", "a:p": 1}'
    body = f'{{"@id": "http://bad iri/", "a:q": [{inner}, {{"@list": ["x", {inner}]}}], "_:r": {{"@list": ["y"]}}}}'
    out = jsonld.extract(body.encode(), url=URL)
    assert out == b'<a:s> <a:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'


def test_a_page_without_a_script_is_empty() -> None:
    assert jsonld.extract(b"<p>text", url=URL, content_type="text/html") == b""
    with pytest.raises(SyntaxInvalid):
        jsonld.extract(b"<p>text", url=f"{URL}#data", content_type="text/html")
