"""Elements by number and views of their text, in C and in Python: the same rules, the same answers about any page."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from selectolax.lexbor import LexborHTMLParser

from native_parts import native_part
from quadloom.documents.syntaxes.html import elements as seam
from quadloom.documents.syntaxes.html.element_nodes import COMMENT, COMMON_TAGS
from quadloom.documents.syntaxes.html.elements import BELOW, BESIDE, LEFT_OUT, Elements, Implementation
from quadloom.documents.syntaxes.html.native_elements import TESTED_PARSER, native_elements
from quadloom.documents.transform import transform
from quadloom_lab.realweb.web import RealWeb
from unit import ROOT

PAGE = """<!doctype html><html lang=en><head><title>A title</title><meta name=a content></head><body>
<nav>menu <a href=/x rel="Next">x</a></nav><main id=m class="k h-card"><h1> One  two</h1>w<b>or</b>d <!-- no -->end
<p>sch\u00f6n\u00a0\u200b1<br>2<i></i>3</p><svg><foreignObject a:b=c xlink:href=d></foreignObject></svg>
<x-y z>\U0001f600</x-y></main><template><p>unseen</p></template><footer>f</footer>"""


@pytest.fixture(params=["python", "native"])
def implementation(request: pytest.FixtureRequest) -> Iterator[Implementation]:
    if request.param == "native":
        native_part("elements")
    with seam.using(request.param):
        yield request.param


def read(page: str) -> Elements:
    return seam.elements_of(LexborHTMLParser(page))


def test_the_native_part_is_in_use() -> None:
    native_part("elements")
    assert seam.native_state() == "in use"


@pytest.mark.parametrize(
    "trial", [("/bin/sh", "-c", "kill -SEGV $$"), (sys.executable, "-c", "raise SystemExit(1)"), ("/no/such/command",)]
)
def test_another_parser_is_read_in_python_if_its_trial_fails(trial: tuple[str, ...]) -> None:
    native_part("elements")
    assert "selectolax 9.9" in str(native_elements("9.9", trial))
    assert callable(native_elements(TESTED_PARSER, trial)), "no trial is needed"


def test_another_parser_is_read_in_c_if_its_trial_succeeds() -> None:
    native_part("elements")
    assert callable(native_elements("9.9"))


def test_the_tested_parser_is_the_required_one() -> None:
    assert f"selectolax=={TESTED_PARSER}\n" in (ROOT / "requirements.txt").read_text(encoding="utf-8")


def test_names_and_comments_have_the_numbers_we_believe() -> None:
    root = LexborHTMLParser("<!-- c --><p><!-- d -->").root
    assert root is not None
    assert len(COMMON_TAGS) == len(set(COMMON_TAGS.values())) == 96
    assert min(COMMON_TAGS) > COMMENT
    assert [node.tag_id for node in root.traverse() if node.is_comment_node] == [COMMENT]


def test_selection(implementation: Implementation) -> None:
    page = read(PAGE)
    names = [page.tag(number) for number in range(len(page))]
    assert names[:7] == ["html", "head", "title", "meta", "body", "nav", "a"]
    assert "foreignObject" in names and "p" in names and "unseen" not in page.text(0)
    assert [page.tag(number) for number in page.named("x-y")] == ["x-y"]
    assert page.named("foreignobject") == [names.index("foreignObject")]
    assert page.named("video") == page.having(("nothing",)) == []
    assert page.having(("href", "class", "z")) == [6, 7, names.index("x-y")]
    assert page.attributes(7) == {"id": "m", "class": "k h-card"}
    assert page.attributes(3) == {"name": "a", "content": None}
    assert page.values([3, 7], ("class", "content")) == [(None, ""), ("k h-card", None)]
    assert page.words("class", ("h-card", "h-event")) == ["h-card"]
    assert [page.parent(number) for number in range(8)] == [-1, 0, 1, 1, 0, 4, 5, 4]
    assert page.nesting([0, 5, 6, 7, 8]) == [-1, 0, 1, 0, 3]
    assert set(page.enclosing([8], ("id",))) >= {0, 7, 8}
    assert page.texts([8, 6, 3], 5) == ["One  ", "x", ""]


def test_words_may_be_written_with_character_references(implementation: Implementation) -> None:
    assert read("<p class='a h&#45;card'>").words("class", ("h-card",)) == ["h-card"]
    assert read("<p CLASS=x>h-card <i id='h-card'>").words("class", ("h-event", "x")) == ["x"]


def test_what_is_left_out_is_cut_off(implementation: Implementation) -> None:
    page = read("<body><nav><h1>n</h1></nav><main>a<div>b<p>c<i>d</i></p></div>e</main><p>f")
    main, div, nav = page.named("main")[0], page.named("div")[0], page.named("nav")[0]
    view = page.view(main)
    assert (view.size(main), view.text(main), view.place(div)) == (5, "abcde", BELOW)
    view.leave_out([nav, div])
    assert [view.place(number) for number in (nav, nav + 1, div, div + 1, div + 2)] == [
        BESIDE, LEFT_OUT, BELOW, LEFT_OUT, LEFT_OUT
    ]  # fmt: skip
    assert (view.size(main), view.text(main), view.size(div)) == (2, "ae", 0)
    assert (view.parent(div), view.parent(div + 1), view.parent(div + 2)) == (main, -1, div + 1)
    assert view.text(div + 1) == "cd" and view.size(div + 1) == 2, "what was cut off keeps its own text"
    assert view.blocks(("i",))[0] == "a\ne"
    again = page.view(main)
    assert again.blocks(("i",))[0] == "a\nb\ncd\ne", "another view has everything again"


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("w<b>or</b>d", "word"),
        ("<h1>a</h1>b", "a\nb"),
        ("a<br>b<img>c", "a\nb\nc"),
        ("a<!-- x -->b", "ab"),
        ("a<b></b>c <i> d </i> e", "ac d e"),
        ("  a \n\t b\u00a0\u2003c\u3000 ", "a b c"),
        ("a\u200bb", "a b"),
        ("a<nav>x</nav>b", "a\nb"),
        ("a<b role=alert>x</b>b", "ab"),
        ("a<?php x ?>b", "a\nb"),
        ("<p> </p><p>\u200b</p>", ""),
        (
            "words of plain ASCII, one blank between each of them",
            "words of plain ASCII, one blank between each of them",
        ),
        (
            "eight by eight  bytes\tand then   some  \U0001f600 more é ",
            "eight by eight bytes and then some \U0001f600 more é",
        ),
    ],
)
def test_blocks(implementation: Implementation, markup: str, text: str) -> None:
    page = read(f"<body>{markup}")
    view = page.view(page.named("body")[0])
    view.leave_out(page.named("nav") + page.having(("role",)))
    assert view.blocks(("b", "i"))[0] == text


def test_blocks_of_a_root_within_what_is_left_out(implementation: Implementation) -> None:
    page = read("<nav>x <main>a <b>b <i>c</i></b> d<p>e")
    view = page.view(page.named("main")[0])
    view.leave_out(page.named("nav"))
    assert view.blocks(("b", "i"))[0] == "a b c d\ne"


def test_attributes_that_a_page_carries(implementation: Implementation) -> None:
    page = read("<html xmlns:og=x><p ITEMPROP=a class=vocab>itemscope=1 rev")
    assert page.carried(("itemscope", "itemprop", "item", "xmlns:", "xml:", "rev", "class")) == [
        "itemprop", "xmlns:", "class"
    ]  # fmt: skip


def test_white_space_is_what_python_splits_at(implementation: Implementation) -> None:
    signs = [chr(code) for code in range(1, 0x11000) if not 0xD800 <= code < 0xE000 and chr(code) not in "<&\r"]
    page = read("<body>" + "".join(f"<p>a{sign}b{sign}</p>" for sign in signs))
    expected = [" ".join(f"a{sign}b{sign}".replace("\u200b", " ").split()) for sign in signs]
    assert page.view(0).blocks(())[0].split("\n") == expected


def test_a_wrong_number_is_refused(implementation: Implementation) -> None:
    page = read(PAGE)
    view = page.view(0)
    for question in (page.tag, page.text, page.attributes, page.view, view.place, view.size):
        with pytest.raises(IndexError):
            question(len(page))


def test_both_implementations_read_the_corpora_alike() -> None:
    files = sorted((ROOT / "tests/corpus").rglob("*.*html"))
    pages = [(f"https://site.example/{path.name}", path.read_bytes()) for path in files]
    pages += [(page.url, page.body) for page in RealWeb(60, hosts=2, seed=3).pages() if page.kind == "html"]
    assert len(pages) > 80
    results = []
    for name in seam.implementations:
        with seam.using(name):
            results.append([transform(body, url=url, content_type="text/html") for url, body in pages])
    native_part("elements")
    for (url, _), one, other in zip(pages, *results, strict=True):
        assert one == other, url
