"""Any markup, however broken, looks the same to both implementations of `quadloom.documents.syntaxes.html.elements`."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from native_parts import native_part
from quadloom.documents.syntaxes.html import elements as seam
from quadloom.documents.syntaxes.html import text as text_rules
from quadloom.documents.syntaxes.html.elements import Elements
from quadloom.documents.syntaxes.html.main_text import marks_in_python
from quadloom.documents.syntaxes.html.text import folded_lines_in_python
from quadloom.documents.transform import transform
from thoroughness import examples

main_text_marks = native_part("elements").main_text_marks

PARTS = st.sampled_from(
    [
        "<main>", "</main>", "<nav>", "</nav>", "<article class=menu>", "<div class='nav h-card'>", "</div>", "<p>",
        "<b>", "</b>", "<i hidden>", "<span role=alert>", "</span>", "<h1>", "</h1>", "<h2>", "<header>", "</header>",
        "<ul>", "<li>", "<table>", "<tr>", "<td>", "</table>", "<a href=/x>", "<a href='#y' rel='next nofollow'>",
        "</a>", "<img alt='a  picture' src=p>", "<svg>", "<title>t", "</title>", "<a xlink:href=z>",
        "<foreignObject>", "</svg>", "<template>", "</template>", "<script>", "</script>", "<!-- c -->", "<!--",
        "<?pi?>", "<br>", "<x-y a:b=c d>", "<form>", "<button>", "<select><option>", "</select>", "<body lang=de>",
        "<frameset>", "<plaintext>", "<base href=/b/>",
        "<div itemscope itemtype=http://schema.org/Thing itemref='r'>", "<p itemprop=name id=r>",
        "<div vocab=http://v/ typeof=T>", "<p property=name>", "<a rel=license href=l>", "<p rel=ex:r>",
        "<div xmlns:ex=http://ex/>", "<p class='h&#45;entry'>", "text", " ", "\n ", "two  words", "\xa0", "\u200b",
        "\xe9\u4e2d\U0001f600", "&amp;", "&#0;", "&nbsp;", "\x00", "a" * 40,
        "long enough to be a paragraph of its own, with a comma and many words, which is what the rules ask for. ",
    ]
)  # fmt: skip
MARKUP = st.lists(PARTS, max_size=40).map("".join)
INLINE = ("a", "b", "i", "span")


def said(elements: Elements) -> list[object]:
    """All answers to all questions. Views come last: they may change the tree."""
    everything = list(range(len(elements)))
    found: list[object] = [elements.named(name) for name in ("a", "p", "svg", "foreignobject", "x-y", "template")]
    found += [elements.having(names) for names in (("class", "href"), ("hidden",), ("d", "nothing"))]
    found += [elements.values(everything, ("class", "id", "href", "d")), elements.texts(everything, 7)]
    found += [
        elements.nesting(everything),
        elements.nesting(everything[::3]),
        elements.words("class", ("h-entry", "nav")),
    ]
    found += [(elements.tag(at), elements.parent(at), elements.attributes(at), elements.text(at)) for at in everything]
    for root in [0, *elements.named("main")[:1], *elements.named("body")[:1]]:
        view = elements.view(root)
        found += [view.size(root), view.text(root)]
        for names in (("nav",), ("b", "header"), ("main",)):
            for name in names:
                view.leave_out(elements.named(name))
            found += [(view.place(at), view.parent(at), view.size(at), view.text(at)) for at in everything]
        found.append(view.blocks(INLINE))
    return found


@given(st.lists(st.one_of(MARKUP, st.text(alphabet=" \t\n\x1f\x85\xa0\u200b\u2003\u3000\0ab\xe9\U0001f600"))))
def test_both_implementations_fold_lines_alike(texts: list[str]) -> None:
    assert vars(text_rules)["_folded_lines"] is not folded_lines_in_python
    assert vars(text_rules)["_folded_lines"](texts) == folded_lines_in_python(texts)


@settings(max_examples=examples(60, 3000))
@given(MARKUP)
def test_elements(page: str) -> None:
    source = page.encode()
    native = said(seam.implementations["native"](LexborHTMLParser(source)))
    assert native == said(seam.implementations["python"](LexborHTMLParser(source)))


SENTENCES = st.sampled_from(
    [
        "The harbour was closed for three days after the storm, and no ship could leave it before Sunday.",
        "Read more about it: the breakwater, the pier, the storm and all the ships that were in the harbour",
        "\u6e2f\u53e3\u56e0\u66b4\u98a8\u96e8\u5c01\u9589\u4e86\u4e09\u5929\uff0c\u6240\u6709\u8239\u90fd\u505c\u4e86\u3002",
        "\u0413\u0430\u0432\u0430\u043d\u044c \u0431\u044b\u043b\u0430\u2026\u00bb",
        "0123456789abcdef" * 5, "By A. Person", "Monday", "Not (yet.)", "\u201cNever.\u201d)", "12.50 \u20ac",
    ]
)  # fmt: skip
NAMES = st.sampled_from(
    [
        "comments", "comment", "postCOMMENTForm", "related-list", "authorBio", "photo", "content", "ad", "ADs", "lead",
        "x1y2", "\xe9share\xe9", "shareX", "HTMLComments", "a" * 40, "",
    ]
)  # fmt: skip
_BOXES = (
    "div section p ul li ol dl dt dd table thead tbody tr th td pre blockquote h1 h2 h5 a b figcaption aside article "
    "form label br span figure main code"
)
BOXES = st.sampled_from(_BOXES.split())
BLOCKS = st.recursive(
    SENTENCES,
    lambda inner: st.tuples(BOXES, NAMES, NAMES, st.lists(inner, max_size=5)).map(
        lambda box: f"<{box[0]} class='{box[1]}' id='{box[2]}'>{' '.join(box[3])}</{box[0]}>"
    ),
    max_leaves=25,
)


@settings(max_examples=examples(150, 5000))
@given(st.lists(BLOCKS, max_size=8), st.sampled_from(["body", "div", "td", "main"]))
def test_main_text(blocks: list[str], name: str) -> None:
    elements = seam.implementations["native"](LexborHTMLParser("<!doctype html><body>" + "".join(blocks)))
    for root in [*elements.named(name)[:1], 0]:
        lines = elements.view(root).blocks(INLINE)
        assert main_text_marks(elements, root, lines) == marks_in_python(elements, root, lines)


@settings(max_examples=examples(60, 3000))
@given(MARKUP)
def test_transform(page: str) -> None:
    results = []
    for name in seam.implementations:
        with seam.using(name):
            results.append(transform(page.encode(), url="https://a.example/b", content_type="text/html"))
    assert results[0] == results[1]
