"""The text of a page: what a reader sees in its main part, and nothing that changes with a banner."""

from __future__ import annotations

import pytest

from quadloom.documents.syntaxes.html.text import fold
from quadloom.documents.transform import transform
from quadloom.model.document import Transformed

PROSE = (
    "A paragraph of ordinary prose that is long enough to count as the text of a page, and then some more of it. " * 2
)
MENU = "<ul><li><a href=/home>Homelink</a><li><a href=/about>Aboutlink</a></ul>"


def page(body: str) -> Transformed:
    result = transform(f"<!doctype html>{body}".encode(), url="http://a.example/", content_type="text/html")
    assert not result.findings
    return result


def test_nothing_in_main_is_left_out_for_being_a_link() -> None:
    result = page(
        f"<main><header><h1>Changelog okapi</h1></header><p>{PROSE}</p><ul>"
        "<li>Intro page: <a href=x>added the ZEBRA statement as an example</a></li>"
        "<li><a href=y>hexo-algolia</a><p>Search plugin.</p></li></ul></main>"
    )
    for word in ("okapi", "ZEBRA", "hexo-algolia", "Search plugin."):
        assert word in result.text
    assert result.headings == "Changelog okapi"
    assert result.link_texts == "added the ZEBRA statement as an example\nhexo-algolia"


@pytest.mark.parametrize("part", ["main", "div role=main"])
def test_the_main_part_is_what_the_page_calls_so(part: str) -> None:
    name = part.split()[0]
    result = page(f"{MENU}<div>Cookie words</div><{part}><p>Short but sweet text of the page.</p></{name}><p>{PROSE}")
    assert result.text == "Short but sweet text of the page."


def test_the_only_article_is_the_main_part_if_it_is_no_card() -> None:
    assert page(f"<p>Before</p><article>{PROSE}</article>").text == PROSE.strip()
    assert "ordinary prose" in page(f"<article><h1>A book</h1>8 EUR</article><p>{PROSE}").text


def test_navigation_dialogues_and_hidden_parts_of_main_are_left_out() -> None:
    result = page(
        f"<main><nav>{MENU}</nav><p>{PROSE}</p><div hidden>secret</div><div aria-hidden=true>icon</div>"
        "<div role=dialog>Accept cookies</div><button>Press</button><aside>A note</aside>"
        "<footer>Written by Ada</footer></main>"
    )
    for word in ("Homelink", "secret", "icon", "cookies", "Press"):
        assert word not in result.text
    assert result.link_texts == ""
    assert result.text.endswith("A note\nWritten by Ada")


def test_a_heading_in_a_header_outside_of_main_is_the_pages() -> None:
    result = page(f"<header><h1>Okapi news</h1>{MENU}</header><main><h2>Second</h2><p>{PROSE}</p></main>")
    assert result.text.startswith("Okapi news\nSecond\n")
    assert result.headings == "Okapi news\nSecond"
    assert "Homelink" not in result.text


def test_a_header_with_a_heading_stays_without_main() -> None:
    result = page(f"<header><h1>Okapi news</h1></header><p>{PROSE}</p><header>{MENU}<p>Slogan</p></header>")
    assert result.text.startswith("Okapi news\n")
    assert "Slogan" not in result.text


def test_a_page_that_is_one_list_of_links_has_all_of_them() -> None:
    entries = "".join(f"<li><a href=/p/{number}>plugin-{number}</a>" for number in range(200))
    result = page(
        f"<ul id=top><li><a href=/a>Startlink</a></ul><h1>Plugins</h1><ul>{entries}</ul><div class=footer>Imprint</div>"
    )
    assert [word for word in result.text.split() if word.startswith("plugin-")] == [f"plugin-{n}" for n in range(200)]
    assert "Startlink" not in result.text
    assert "Imprint" not in result.text
    without_heading = page(f"<ul>{entries}</ul>")
    assert "plugin-199" in without_heading.text


def test_links_beside_the_column_with_the_heading_are_a_menu() -> None:
    result = page(
        f"<div>{MENU}</div><div><h1>Zebras</h1><p>{PROSE}</p><ul><li><a href=/z>Grevy</a></ul></div>"
        "<div><ul><li><a href=/r>Recentlink</a></ul></div>"
    )
    assert "Grevy" in result.text
    assert "Homelink" not in result.text
    assert "Recentlink" not in result.text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<h1>flaky p0</h1>text of", "flaky p0\ntext of"),
        ("w<b>or</b>d", "word"),
        ("wo<wbr>rd", "word"),
        ("wo<!-- x -->rd", "word"),
        ("one<br>two", "one\ntwo"),
        ("<td>one<td>two", "onetwo"),  # without a table, the parser drops the tags
        ("<table><td>one<td>two</table>", "one\ntwo"),
        ("one<script>x</script>two", "one\ntwo"),
        ("<span>a</span> <a href=x>b</a>\n <i>c</i>", "a b c"),
        ("<a href=x><div>one</div><div>two</div></a>", "one\ntwo"),
        ("one\u200btwo\xa0three\u3000four", "one two three four"),
    ],
)
def test_blocks_are_separate_and_inline_elements_are_not(markup: str, text: str) -> None:
    assert page(f"<body>{markup}").text == text


def test_texts_of_images_are_a_field() -> None:
    result = page(f"<img alt=Logo><main><p>{PROSE}<img alt='A zebra at the water' src=z.png></p><img></main>")
    assert result.image_texts == "A zebra at the water"


def test_a_renamed_entry_changes_the_text_and_a_banner_does_not() -> None:
    def text(entry: str, banner: str) -> str:
        return page(
            f"<div class=banner>{banner}</div><main><h1>Plugins</h1><ul><li><a href=/a>{entry} plugin</a></ul></main>"
            f"<footer>{banner}</footer>"
        ).text

    assert text("alpha", "Sale!") == text("alpha", "Last day!")
    assert text("alpha", "Sale!") != text("omega", "Sale!")


def test_short_pages_lose_nothing() -> None:
    assert page("<nav><a href=/x>Menu</a></nav><form>Name</form>").text == "Menu\nName"
    assert page(f"<main><div>Loading</div></main><p>{PROSE}").text == fold(f"Loading\n{PROSE}").replace(" ", "\n", 1)


def test_the_tree_is_changed_after_all_syntaxes_have_read_it() -> None:
    result = page(
        "<main><p itemscope itemtype=http://schema.org/Thing>Some text that is long enough: "
        "<span itemprop=name>a <b>bold</b> name</span></p></main>"
    )
    assert b'"a bold name"' in result.nquads


def test_whitespace_is_folded() -> None:
    assert fold("  a \n\t b\xa0c ") == "a b c"
    assert fold(" plain ") == "plain"
    assert fold("\n") == ""
