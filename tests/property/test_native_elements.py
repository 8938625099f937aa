"""Any markup, however broken, looks the same to both implementations of `quadloom.documents.syntaxes.html.elements`."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from native_parts import native_part
from quadloom.documents.syntaxes.html import elements as seam
from quadloom.documents.syntaxes.html import text as text_rules
from quadloom.documents.syntaxes.html.elements import Elements
from quadloom.documents.syntaxes.html.text import folded_lines_in_python
from quadloom.documents.transform import transform
from thoroughness import examples

native_part("elements")

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


@settings(max_examples=examples(60, 3000))
@given(MARKUP)
def test_transform(page: str) -> None:
    results = []
    for name in seam.implementations:
        with seam.using(name):
            results.append(transform(page.encode(), url="https://a.example/b", content_type="text/html"))
    assert results[0] == results[1]
