"""Bytes: equal in every process, and readable by the real parser of their kind."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from hashlib import sha256

import pyoxigraph
import pytest
from lxml import etree, html

from quadloom_lab.fakeweb import FakeRequest, FakeResponse, FakeWeb, WebSpec
from quadloom_lab.fakeweb.sites.layout import PageRef
from quadloom_lab.fakeweb.sites.traits import traits_of

SPEC = WebSpec(seed=5, pages=700, hosts=12, scale=0.1, links=20, port=8080)
RDF = {
    "turtle": pyoxigraph.RdfFormat.TURTLE,
    "rdfxml": pyoxigraph.RdfFormat.RDF_XML,
    "ntriples": pyoxigraph.RdfFormat.N_TRIPLES,
    "nquads": pyoxigraph.RdfFormat.N_QUADS,
    "trig": pyoxigraph.RdfFormat.TRIG,
    "jsonld": pyoxigraph.RdfFormat.JSON_LD,
}


def answer(web: FakeWeb, url: str, accept: str = "") -> FakeResponse:
    authority, slash, rest = url.removeprefix("http://").partition("/")
    return web.answer(FakeRequest(authority, slash + rest, accept=accept))


def digest(spec: WebSpec) -> str:
    web = FakeWeb(spec)
    total = sha256()
    for url in sorted(web.reachable()):
        total.update(repr(answer(web, url)).encode())
    return total.hexdigest()


@pytest.fixture(scope="module")
def web() -> FakeWeb:
    return FakeWeb(SPEC)


@pytest.fixture(scope="module")
def pages(web: FakeWeb) -> dict[str, FakeResponse]:
    return {url: answer(web, url) for url in sorted(web.reachable())}


def test_another_process_makes_the_same_bytes() -> None:
    spec = WebSpec(seed=9, pages=80, hosts=5, scale=0.1)
    script = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "from unit.lab.test_fakeweb_content import digest; from quadloom_lab.fakeweb import WebSpec\n"
        "print(digest(WebSpec(seed=9, pages=80, hosts=5, scale=0.1)))"
    )
    command = [sys.executable, "-c", script, *sys.path]
    other = subprocess.run(command, capture_output=True, text=True, check=True)
    assert other.stdout.strip() == digest(spec)


def test_another_seed_makes_another_web() -> None:
    assert digest(WebSpec(seed=1, pages=40, hosts=4)) != digest(WebSpec(seed=2, pages=40, hosts=4))


def test_the_mix_is_as_announced(web: FakeWeb) -> None:
    forms = [web.layout.form(host.index, item) for host in web.hosts[:-1] for item in range(host.size)]
    assert len(forms) == SPEC.pages
    assert 0.75 < forms.count("html") / len(forms) < 0.86
    assert set(forms) >= {"rss", "atom", "rss1", "jsonfeed", "ttl", "rdf", "nt", "trig", "nq", "jsonld", "png", "pdf"}


def test_rdf_files_hold_exactly_the_expected_triples(web: FakeWeb, pages: dict[str, FakeResponse]) -> None:
    seen = set()
    for url, given in pages.items():
        wanted = web.expected(url)
        if given.status == 200 and wanted.kind in RDF:
            quads = list(pyoxigraph.parse(io.BytesIO(given.body), RDF[wanted.kind], base_iri=url))
            assert len(quads) == wanted.items["triples"], url
            typed = sum(quad.predicate.value.endswith("#type") for quad in quads)
            assert typed == wanted.items["nodes"], url
            seen.add(wanted.kind)
    assert seen == set(RDF)


def _marked(tree: html.HtmlElement, attribute: str) -> int:
    return sum(attribute in element.attrib for element in tree.iter("*"))


def test_html_holds_exactly_the_expected_items(web: FakeWeb, pages: dict[str, FakeResponse]) -> None:
    seen: set[str] = set()
    for url, given in pages.items():
        wanted = web.expected(url)
        if given.status != 200 or wanted.kind != "html":
            continue
        tree = html.document_fromstring(given.body)
        assert _marked(tree, "itemscope") == wanted.items.get("microdata", 0), url
        assert _marked(tree, "typeof") == wanted.items.get("rdfa", 0), url
        assert bool(tree.xpath("//meta[@property='og:title']")) == ("opengraph" in wanted.items), url
        scripts = [
            str(one.text) for one in tree.iter("script") if one.get("type") == "application/ld+json" and one.text
        ]
        if "jsonld" in wanted.items:
            assert sum(_typed(json.loads(script)) for script in scripts) == wanted.items["jsonld"], url
        else:
            assert not any(_is_json(script) for script in scripts), url
        seen |= set(wanted.items)
    assert seen >= {"jsonld", "microdata", "rdfa", "opengraph", "microformats"}


def _typed(node: object) -> int:
    if isinstance(node, dict):
        return ("@type" in node) + sum(_typed(value) for value in node.values())
    return sum(map(_typed, node)) if isinstance(node, list) else 0


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_feeds_and_other_xml_parse(web: FakeWeb, pages: dict[str, FakeResponse]) -> None:
    roots = {
        "rss": ("rss", "RDF"),
        "atom": ("feed",),
        "opml": ("opml",),
        "xml": ("catalogue",),
        "svg": ("svg",),
        "xsd": ("schema",),
    }
    entry = {"rss": "item", "atom": "entry", "opml": "outline", "xml": "record"}
    seen = set()
    for url, given in pages.items():
        wanted = web.expected(url)
        if given.status == 200 and wanted.kind in roots:
            root = etree.fromstring(given.body)
            assert etree.QName(root).localname in roots[wanted.kind], url
            if wanted.kind in entry:
                assert len(list(root.iter(f"{{*}}{entry[wanted.kind]}"))) == wanted.items["entries"], url
            seen.add(wanted.kind)
        elif given.status == 200 and wanted.kind == "jsonfeed":
            assert len(json.loads(given.body)["items"]) == wanted.items["entries"]
            seen.add("jsonfeed")
    assert seen == {*roots, "jsonfeed"}


def test_binaries_are_what_they_say(web: FakeWeb, pages: dict[str, FakeResponse]) -> None:
    kinds = {url: web.expected(url).kind for url in pages}
    images = [pages[url].body for url, kind in kinds.items() if kind == "image"]
    papers = [pages[url].body for url, kind in kinds.items() if kind == "pdf"]
    assert images and all(body.startswith(b"\x89PNG\r\n\x1a\n") and body.endswith(b"IEND\xaeB`\x82") for body in images)
    for body in papers:
        place = int(body.rsplit(b"startxref\n", 1)[1].split()[0])
        assert body[place : place + 4] == b"xref" and body.endswith(b"%%EOF\n")
    assert papers


def test_charsets_are_really_odd() -> None:
    web = FakeWeb(WebSpec(seed=5, pages=3000, hosts=40, scale=0.02, links=6))
    seen: dict[str, bytes] = {}
    for host in web.hosts[:-1]:
        for item in range(host.size):
            ref = PageRef(host.index, "item", item)
            traits = traits_of(web.layout, ref)
            if web.layout.is_html(ref) and traits.label:
                seen.setdefault(f"{traits.charset} {traits.label}", answer(web, web.layout.url(ref)).body)
    assert {"windows-1252 header", "utf-16 bom", "utf-8 lie", "shift_jis meta", "windows-1251 header"} <= set(seen)
    assert seen["utf-16 bom"].startswith(b"\xff\xfe")
    with pytest.raises(UnicodeDecodeError):
        seen["shift_jis meta"].decode("utf-8")
    assert "は" in seen["shift_jis meta"].decode("shift_jis") or "の" in seen["shift_jis meta"].decode("shift_jis")


def test_things_on_two_sites_agree_but_for_some_errors(web: FakeWeb) -> None:
    same = different = 0
    for subject in ("books", "products", "news"):
        for index in range(web.layout.catalogue.pool(subject)):
            refs = list(web.layout.describers(subject, index))[:2]
            if len(refs) == 2 and refs[0].host != refs[1].host:
                first, second = (web.layout.thing(ref, 0) for ref in refs)
                facts = [
                    {f.name: f.value for f in thing.facts if f.name not in ("sameAs", "description")}
                    for thing in (first, second)
                ]
                same += facts[0] == facts[1]
                different += facts[0] != facts[1]
    assert same > 4 * different > 0


def test_no_page_leads_to_the_real_web(web: FakeWeb, pages: dict[str, FakeResponse]) -> None:
    """But for schema.org and other vocabularies, which name terms and are no links."""
    vocabularies = {
        "schema.org",
        "www.w3.org",
        "ogp.me",
        "jsonfeed.org",
        "purl.org",
        "a9.com",
        "www.sitemaps.org",
        "registry.example",
    }
    named = {
        found.decode() for given in pages.values() for found in re.findall(rb"https?://([^/\"'<>\s;:]+)", given.body)
    }
    assert named - vocabularies == {host.name for host in web.hosts}


def test_the_trap_has_no_end(web: FakeWeb) -> None:
    host = next(host for host in web.hosts if web.layout.calendar(host))
    url = f"{web.layout.bases[host.index]}/calendar/2031/07"
    assert b"/calendar/2031/08" in answer(web, url).body
    assert web.expected(url).trap
