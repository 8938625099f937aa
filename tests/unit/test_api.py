"""The calls that others build on, exactly as they were promised, and what they promise in turn."""

from __future__ import annotations

import inspect
import itertools
import resource
import time
from collections.abc import Callable

import pytest

import quadloom
from quadloom.documents.index import page_graph
from quadloom.documents.syntaxes import jsonld, microdata, microformats, rdfa
from quadloom.errors import SyntaxInvalid
from quadloom.model.quads import Quads

URL = "https://e.example/page"
CPU_SECONDS = 5.0  # of a loaded machine; the slowest of the list takes about one


def shape(call: Callable[..., object]) -> dict[str, object]:
    """Parameter → default; `...` = none. Keyword-only but for the first."""
    parameters = list(inspect.signature(call).parameters.values())
    assert [one.kind for one in parameters[1:]] == [inspect.Parameter.KEYWORD_ONLY] * (len(parameters) - 1)
    return {one.name: ... if one.default is inspect.Parameter.empty else one.default for one in parameters}


def test_signatures() -> None:
    assert shape(rdfa.extract) == {
        "body": ..., "url": ..., "host": "html5", "version": "1.1", "vocab_expansion": False,
        "processor_graph": False, "loader": None,
    }  # fmt: skip
    assert shape(microdata.extract) == {"body": ..., "url": ...}
    assert shape(jsonld.extract) == {
        "body": ..., "url": ..., "content_type": "application/ld+json", "loader": None, "base": None,
        "expand_context": None, "rdf_direction": None, "processing_mode": None, "extract_all_scripts": False,
    }  # fmt: skip
    assert shape(microformats.extract) == {"body": ..., "url": ...}
    assert shape(microformats.parse) == {"body": ..., "url": ...}
    promised = {"body": ..., "url": ..., "content_type": None}
    assert promised.items() <= shape(quadloom.transform).items()


@pytest.mark.parametrize("host", ["html5", "html4", "xhtml1", "xhtml5", "xml", "svg"])
def test_all_hosts_of_rdfa_take_bytes_and_give_quads(host: str) -> None:
    body = b'<div xmlns="http://www.w3.org/1999/xhtml" about="#a" property="https://v.example/p">x</div>'
    found = rdfa.extract(body, url=URL, host=host)  # type: ignore[arg-type]
    assert found == b'<https://e.example/page#a> <https://v.example/p> "x" .\n'


def test_invalid_jsonld_raises_in_extract_and_is_a_finding_in_transform() -> None:
    body = b'<p>x</p>\n<script type="application/ld+json">{"@id": 7}</script><p vocab="https://v.example/" typeof=T>'
    with pytest.raises(SyntaxInvalid):
        jsonld.extract(body, url=URL, content_type="text/html")
    seen = quadloom.transform(body, url=URL, content_type="text/html")
    (finding,) = (one for one in seen.findings if one.code == "jsonld-invalid")
    assert finding.line == 2
    assert seen.types == ("https://v.example/T",), "one broken block never cancels the others"


BLOCKS = (
    '<script type="application/ld+json">{"@context":"https://schema.org","@type":"Event","location":{"@type":"Place"}}</script>',
    '<div itemscope itemtype="https://schema.org/Person"><b itemprop=name>A</b><i itemprop=knows itemscope></i></div>',
    '<div vocab="https://schema.org/" typeof=Offer><span property=seller typeof=Person></span></div>',
    '<div class="h-card"><a class="p-name u-url" href="/b">B</a><span class="p-org h-card">O</span></div>',
)


def stored(body: str) -> Quads:
    return page_graph(quadloom.transform(body.encode(), url=URL, content_type="text/html"), URL, "typed").quads


def test_the_same_page_gives_the_same_bytes_in_every_order_of_blocks() -> None:
    expected = stored("".join(BLOCKS))
    assert expected.count > 12
    assert b"_:" not in expected.nquads, "blank nodes have canonical names"
    for order in itertools.permutations(BLOCKS):
        found = stored("".join(order))
        assert found.digest == expected.digest
        assert set(found.nquads.splitlines()) == set(expected.nquads.splitlines())
    assert stored("".join(BLOCKS[1:])).digest != expected.digest


def _bomb() -> bytes:
    entities = '<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
    )
    return f"<?xml version='1.0'?><!DOCTYPE x [{entities}]><x>&j;</x>".encode()


HOSTILE: dict[str, tuple[bytes, str | None]] = {
    "deep nesting": (b"<div>" * 200_000 + b"x", "text/html"),
    "deep formatting": (b"<b><a><i><font>" * 20_000, "text/html"),
    "deep data": (b'<div typeof="T" rel="p">' * 20_000, "text/html"),
    "deep items": (b'<div itemscope itemprop="p">' * 20_000, "text/html"),
    "deep JSON": (b'{"a":' * 100_000, "application/ld+json"),
    "deep arrays": (b"[" * 200_000, "application/ld+json"),
    "deep XML": (b"<?xml version='1.0'?>" + b"<a>" * 100_000, "application/xml"),
    "deep Turtle": (b"<a> <b> " + b"[ <c> " * 100_000, "text/turtle"),
    "80,000 attributes": (b"<p " + b" ".join(b"a%d=1" % n for n in range(80_000)) + b" typeof=T>x", "text/html"),
    "80,000 attributes of XML": (b"<p " + b" ".join(b"a%d='1'" % n for n in range(80_000)) + b"/>", "application/xml"),
    "80,000 prefixes": (b'<p prefix="' + b" ".join(b"p%d: http://x/" % n for n in range(80_000)) + b'" typeof=T>',
                        "text/html"),
    "entity bomb": (_bomb(), "application/xml"),
    "entity bomb in RDF/XML": (_bomb().replace(b"<x>", b"<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>")
                               .replace(b"</x>", b"</r:RDF>"), "application/rdf+xml"),
    "recursive itemref": (b'<p id=a itemscope itemref="a b" itemprop=p></p><p id=b itemscope itemref="a b" itemprop=q>',
                          "text/html"),
    "crossed itemref": (b"".join(b'<p id=i%d itemscope itemprop=p itemref="%s"></p>' % (
        n, b" ".join(b"i%d" % m for m in range(300))) for n in range(300)), "text/html"),
    "100,000 links": (b"".join(b"<a href=/p/%d>l %d</a>" % (n, n) for n in range(100_000)), "text/html"),
    "lying charset": ("äöü €".encode("cp1252") * 50_000, "text/html; charset=utf-16"),
    "unknown charset": (b"<p>\xff\xfe\x00x" * 10_000, "text/html; charset=no-such-thing"),
    "surrogates": (b'<script type="application/ld+json">{"@id":"x:\\ud800","x:p":"\\udfff \\ud83d"}</script>'
                   b"<p>&#xD800;&#55296;\xed\xa0\x80", "text/html"),
    "zero bytes": (b"<p>a\0b<a href='/\0x'>" * 5000, "text/html"),
    "comments without end": (b"<!--" * 100_000, "text/html"),
    "many scripts": (b'<script type="application/ld+json">{"@id":"x:a","x:p":1}</script>' * 5000, "text/html"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_ends_within_its_limits(name: str) -> None:
    body, content_type = HOSTILE[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    seen = quadloom.transform(body, url=URL, content_type=content_type)
    took = time.process_time() - started
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert took < CPU_SECONDS, f"{took:.1f} s"
    assert grown < 512 * 1024, f"{grown // 1024} MiB"
    seen.nquads.decode("utf-8")
    "".join(link.target for link in seen.links).encode("utf-8")
    f"{seen.title}{seen.text}".encode()
    assert not [finding for finding in seen.findings if finding.code in ("extractor-failed", "internal-error")]
