"""The composition of all syntaxes: one boundary each, limits, and what the call promises."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Literal

import msgspec
import pyoxigraph
import pytest

import quadloom
from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.documents.syntaxes.registry import Context, Extractor, Registry, Sign
from quadloom.documents.transform import transform
from quadloom.errors import SyntaxInvalid
from quadloom.model.document import Kind, Transformed
from quadloom.settings import CrawlSettings, IndexSettings, LimitSettings, Settings, TransformSettings
from unit import ROOT

URL = "https://site.example/folder/page"


def html(text: str, **options: object) -> Transformed:
    return transform(text.encode(), url=URL, content_type="text/html", **options)  # type: ignore[arg-type]


def test_the_record_has_everything_and_its_quads_parse() -> None:
    result = html(
        "<html lang=en><title>A page</title><meta name=description content=About>"
        "<link rel=canonical href=/page><a href=/b>B</a><a href=mailto:a@b.example>m</a><img src=i.png><p>Some words."
    )
    assert (result.kind, result.title, result.description, result.language) == ("html", "A page", "About", "en")
    assert result.canonical == "https://site.example/page"
    assert [link.kind for link in result.links] == ["canonical", "plain"]
    assert (result.mails, result.images) == (("a@b.example",), ("https://site.example/folder/i.png",))
    assert "Some words." in result.text
    assert dict(result.syntaxes) == {"html": 5}
    quads = list(pyoxigraph.parse(result.nquads, format=pyoxigraph.RdfFormat.N_QUADS))
    assert len(quads) == 5
    assert {quad.graph_name.value for quad in quads} == {URL}


def test_one_broken_extractor_costs_only_itself() -> None:
    def invalid(context: Context) -> None:
        raise SyntaxInvalid("a comma is missing", code="json", line=3, column=7)

    def defective(context: Context) -> None:
        raise KeyError("oops")

    def fine(context: Context) -> None:
        context.sink.add(f"<{context.url}>", "<http://p.example/p>", '"still here"')

    registry = SYNTAXES
    for name, run in (("invalid", invalid), ("defective", defective), ("fine", fine)):
        registry = registry.adding(Extractor(name, run), ["html"])
    result = html("<title>x</title>", syntaxes=registry)
    first, second = result.findings
    assert (first.code, first.syntax, first.line, first.column) == ("json", "invalid", 3, 7)
    assert (second.code, second.syntax) == ("extractor-failed", "defective")
    assert "KeyError" in second.message
    assert dict(result.syntaxes)["fine"] == 1


@pytest.mark.parametrize(
    ("sign", "page"),
    [
        (b"data-[a-z]+", "<p data-x=1>"),
        ("vocab", "<p VOCAB=x>"),
        ("xmlns:", "<html xmlns:a=b>"),
        (".h-card", "<p class='a h-card'>"),
    ],
)
def test_an_extractor_runs_if_the_page_has_one_of_its_signs(sign: Sign, page: str) -> None:
    ran: list[str] = []
    extractor = Extractor("data", lambda context: ran.append(context.url), signs=("no-such", sign))
    registry = SYNTAXES.adding(extractor, ["html"])
    html("<p class=h-car>plain", syntaxes=registry)
    assert ran == []
    html(page, syntaxes=registry)
    assert ran == [URL]


def test_an_extractor_runs_if_the_settings_want_it() -> None:
    ran: list[bool] = []
    extractor = Extractor("data", lambda _context: ran.append(True), is_wanted=lambda settings: settings.generic_xml)
    registry = SYNTAXES.adding(extractor, ["html"])
    for wanted in (False, True):
        html("<p>", syntaxes=registry, settings=Settings(transform=TransformSettings(generic_xml=wanted)))
        assert ran == [True] * wanted


def test_a_plain_page_enters_two_extractors() -> None:
    entered = []

    def recorded(extractor: Extractor) -> Extractor:
        def run(context: Context) -> None:
            entered.append(extractor.syntax)
            extractor.run(context)

        return msgspec.structs.replace(extractor, run=run)

    registry = Registry({"html": tuple(map(recorded, SYNTAXES.reading("html", Settings().transform).run))})
    html("<html lang=en><title>t</title><main><a href=/b>b</a></main>", syntaxes=registry)
    assert entered == ["html", "jsonld"]


def test_signs_cost_no_page_its_data() -> None:
    """Every page of the corpora gives the same if all extractors run."""
    kinds: tuple[Kind, ...] = ("html", "xhtml")
    rows = {kind: SYNTAXES.reading(kind, Settings().transform).chosen for kind in kinds}
    everything = Registry(
        {kind: tuple(msgspec.structs.replace(one, signs=()) for one in row) for kind, row in rows.items()}
    )
    pages = [path.read_bytes() for path in sorted((ROOT / "tests/corpus").rglob("*.*html"))]
    assert len(pages) > 30
    for body in pages:
        for sent in ("text/html", "application/xhtml+xml"):
            result = transform(body, url=URL, content_type=sent)
            if result.kind in kinds:
                assert result == transform(body, url=URL, content_type=sent, syntaxes=everything)


def test_data_gives_types_and_links() -> None:
    statements = [
        ("<https://site.example/folder/page#me>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "<http://v.example/T#Person>"),
        ("<https://site.example/folder/page#me>", "<http://www.w3.org/2002/07/owl#sameAs>", "<http://other.example/me>"),
        ("_:b0", "<http://v.example/p>", "<http://else.example/x>"),
        ("_:b0", "<http://v.example/p>", '"<http://in.a.literal/>"'),
    ]  # fmt: skip

    def data(context: Context) -> None:
        for statement in statements:
            context.sink.add(*statement)

    result = html("<a href=http://else.example/x>e</a>", syntaxes=SYNTAXES.adding(Extractor("data", data), ["html"]))
    assert result.types == ("http://v.example/T#Person",)
    links = {(link.kind, link.target) for link in result.links}
    assert ("seealso", "http://other.example/me") in links
    assert ("vocabulary", "http://v.example/T") in links
    assert ("vocabulary", "http://v.example/p") in links
    assert ("other", "http://else.example/x") not in links  # the page links to it already
    assert not any("literal" in target for _, target in links)


@pytest.mark.parametrize(
    ("meta", "headers", "expected"),
    [
        ("", (), (False, False, False)),
        ("<meta name=robots content='NOINDEX, nofollow'>", (), (True, True, False)),
        ("<meta name=robots content=none>", (), (True, True, False)),
        ("<meta name=robots content=noindex><meta name=quadloom content=noarchive>", (), (False, False, True)),
        ("<meta name=googlebot content=noindex>", (), (False, False, False)),
        ("<meta name=robots content=nofollow>", (("x-robots-tag", "noindex"),), (True, True, False)),
        ("", (("x-robots-tag", "otherbot: noindex"), ("x-robots-tag", "noarchive")), (False, False, True)),
        ("", (("x-robots-tag", "otherbot: noindex, nofollow"),), (False, False, False)),
        ("", (("x-robots-tag", "unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"),), (True, False, False)),
    ],
)
def test_robots_directives_merge(
    meta: str, headers: tuple[tuple[str, str], ...], expected: tuple[bool, bool, bool]
) -> None:
    result = html(meta + "<a href=/x>x</a>", headers=headers)
    assert (result.noindex, result.nofollow, result.noarchive) == expected
    assert result.links[0].nofollow == expected[1]


def test_robots_header_holds_for_other_kinds_too() -> None:
    result = transform(b"words", url=URL, content_type="text/plain", headers=[("x-robots-tag", "noindex")])
    assert (result.kind, result.text, result.noindex) == ("text", "words", True)


def test_named_robot_is_the_one_of_the_settings() -> None:
    settings = Settings(crawl=CrawlSettings(user_agent="Spinner"))
    assert html("<meta name=spinner content=noindex>", settings=settings).noindex


def test_unknown_kinds_end_politely() -> None:
    result = transform(b"\x89PNG\r\n\x1a\n....", url="https://site.example/i.png", content_type="image/png")
    assert (result.kind, result.nquads, result.links) == ("image", b"", ())
    assert result.reasons[-1] == "no syntax reads image: nothing to state"


def test_limits_become_findings() -> None:
    settings = Settings(limits=LimitSettings(links_per_page=10, quads_per_page=3, text_chars=50))
    links = "".join(f"<a href=/{n}>l</a>" for n in range(40))
    images = "".join(f"<img src=/{n}.png>" for n in range(9))
    result = html(f"<title>t</title>{links}{images}<p>" + "word " * 100, settings=settings)
    assert len(result.links) == 10
    assert result.nquads.count(b"\n") == 3
    assert len(result.text) == 50
    assert {finding.code for finding in result.findings} == {"too-many-links", "too-many-quads"}


def test_a_banner_does_not_change_the_text() -> None:
    story = "<main><h1>Story</h1><p>" + "The loom weaves. " * 20 + "</p></main>"
    first = html(f"<div class=banner>Monday: buy this</div>{story}<footer>1,203 visitors</footer>")
    second = html(f"<div class=banner>Tuesday: buy that <a href=/x>now</a></div>{story}<footer>1,204 visitors</footer>")
    assert first.text == second.text != ""


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 100_000 + b"x",
        b"<p " + b" ".join(b"a%d=1" % n for n in range(80_000)) + b">x",
        b"<a href='/%d'>x</a>" * 100_000,
        b"<title>\xed\xa0\x80\x00&#xD800;</title><p>\x00x",
        b"<meta charset=utf-16><title>lie</title>",
        "<title>é</title>".encode("utf-16") + b"\x00",
        b"<a><table><td>" * 5_000 + b"text " * 10_000,
        b"<title>" + b"t" * 1_000_000,
        b"<meta name=dc.title content=x>" * 50_000,
        b"<![CDATA[<?xml <!DOCTYPE <",
        bytes(range(256)) * 50,
    ],
    ids=["deep", "attributes", "links", "surrogates", "meta lies", "utf-16", "nested links", "title", "metas",
         "noise", "bytes"],
)  # fmt: skip
def test_hostile_input_is_survived_in_time(body: bytes) -> None:
    started = time.process_time()
    result = transform(body, url=URL, content_type="text/html; charset=utf-8")
    assert time.process_time() - started < 5
    assert not [finding for finding in result.findings if finding.code == "extractor-failed"]
    for _ in pyoxigraph.parse(result.nquads, format=pyoxigraph.RdfFormat.N_QUADS):
        pass


def test_same_page_same_result() -> None:
    body = "<title>x</title><meta name=keywords content='b,a'>" + "".join(f"<img src={n}.png>" for n in range(20))
    assert html(body) == html(body)


def test_the_front_door_is_lazy() -> None:
    code = (
        "import sys, quadloom; assert 'selectolax' not in sys.modules; quadloom.transform(b'', url='http://a.example/')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert quadloom.transform is transform


def test_vocabulary_expansion_adds_what_the_vocabulary_entails() -> None:
    page = b'<p vocab="https://v.example/ns#" typeof=Tenor>x</p>'
    vocabulary = b"@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . <#Tenor> rdfs:subClassOf <#Singer> ."
    wanted = Settings(transform=TransformSettings(vocabulary_expansion=True))
    plain = transform(page, url="https://e.example/", loader=lambda _url: vocabulary)
    full = transform(page, url="https://e.example/", loader=lambda _url: vocabulary, settings=wanted)
    assert "https://v.example/ns#Singer" not in plain.types
    assert set(full.types) == {"https://v.example/ns#Tenor", "https://v.example/ns#Singer"}

    def nothing(url: str) -> bytes:
        raise OSError("no such name")

    without = transform(page, url="https://e.example/", loader=nothing, settings=wanted)
    assert without.types == plain.types
    assert [finding.code for finding in without.findings] == ["rdfa-vocabulary"]


def test_contexts_that_are_not_known_are_not_loaded_where_the_settings_forbid_it() -> None:
    page = b'{"@context": "https://c.example/context", "name": "x"}'
    asked: list[str] = []

    def load(url: str) -> bytes:
        asked.append(url)
        return b'{"@context": {"name": "https://v.example/name"}}'

    known = Settings(transform=TransformSettings(contexts="known", grddl="allow"))
    transform(page, url="https://e.example/a.jsonld", loader=load, settings=known)
    assert not asked
    assert transform(page, url="https://e.example/a.jsonld", loader=load).nquads
    assert asked


@pytest.mark.parametrize(
    ("body", "title"),
    [
        ("<#it> <http://xmlns.com/foaf/0.1/name> 'Ada \"A\" Yamada' .", 'Ada "A" Yamada'),
        (
            "<http://b.example/> <http://schema.org/name> 'other' . <> <http://xmlns.com/foaf/0.1/primaryTopic> <#b> . "
            "<#a> <http://schema.org/name> 'a' . <#b> <http://schema.org/name> 'b' .",
            "b",
        ),
        ("<http://b.example/> <http://schema.org/name> 'other' . <> <http://purl.org/dc/terms/title> 'own' .", "own"),
        (
            "<http://b.example/> <http://schema.org/name> 'first' . <http://c.example/> <http://schema.org/name> 'c' .",
            "first",
        ),
        ("<#it> <http://schema.org/price> '7' .", ""),
    ],
)
def test_a_file_of_data_is_titled_by_what_it_describes(body: str, title: str) -> None:
    found = transform(body.encode(), url="http://a.example/data.ttl", content_type="text/turtle")
    assert found.title == title


def test_a_title_of_its_own_comes_first() -> None:
    page = b'<title>Own</title><script type="application/ld+json">{"@context":"https://schema.org","name":"thing"}</script>'
    assert transform(page, url="http://a.example/", content_type="text/html").title == "Own"


def test_without_a_text_index_the_main_text_is_not_read() -> None:
    page = b"<title>T</title><main><h1>Head</h1><p>Words <a href=/a>that</a> nobody looks for.</p></main>"
    url = "https://e.example/"
    whole = transform(page, url=url)
    lean = transform(page, url=url, settings=Settings(index=IndexSettings(text=False)))
    assert "nobody" in whole.text and whole.headings
    assert not lean.text and not lean.headings
    assert (lean.nquads, lean.links, lean.title) == (whole.nquads, whole.links, whole.title)


SHELL = b'<!doctype html><title>Shop</title><div id="root"></div><script src="/app.js"></script>'


@pytest.mark.parametrize(
    ("body", "browser", "told"),
    [
        (SHELL, "never", True),
        (SHELL, "auto", False),  # there the fetch phase has run the scripts, or has said why not
        (SHELL.replace(b"</div>", b"<p>" + b"words of its own " * 40 + b"</div>"), "never", False),
        (
            b'<script type="application/ld+json">{"@context":"https://schema.org","@type":"Book","name":"B"}</script>'
            + SHELL,
            "never",
            False,
        ),
        (b"<title>Short</title><p>Closed.", "never", False),
    ],
)
def test_a_page_that_is_empty_without_its_scripts_says_so(
    body: bytes, browser: Literal["never", "auto"], told: bool
) -> None:
    settings = Settings(crawl=CrawlSettings(browser=browser))
    seen = transform(body, url="https://a.example/", content_type="text/html", settings=settings)
    assert ("needs-scripts" in {finding.code for finding in seen.findings}) is told
