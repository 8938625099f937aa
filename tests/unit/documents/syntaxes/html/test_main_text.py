"""What of a page is its main text: one small page per rule."""

from __future__ import annotations

import pytest

from quadloom.documents.syntaxes.html.main_text import spans_of
from quadloom.documents.transform import transform
from quadloom.model.document import Transformed, spanned

ONE = "The harbour was closed for three days after the storm, and no ship could leave it before Sunday."
TWO = "Fishermen repaired their nets in the meantime, while the council argued about the old breakwater."
THREE = "On Monday the first trawlers returned with a catch that was larger than anybody had expected."
PROSE = f"<p>{ONE}</p><p>{TWO}</p><p>{THREE}</p>"


def read(markup: str) -> Transformed:
    source = f"<!doctype html><html><head><title>t</title></head><body>{markup}</body></html>"
    return transform(source.encode(), url="https://a.example/b", content_type="text/html; charset=utf-8")


@pytest.mark.parametrize(
    "beside",
    [
        "<div class='post-comments'><p>I do not believe a word of it, and neither should you, dear readers.</p></div>",
        "<div id=relatedArticles><p>Ten other harbours that were closed by storms in the last hundred years.</p></div>",
        "<div class=newsletterSignup><p>Get the best of our harbour news in your inbox on every morning.</p></div>",
        "<div><a href=/1>The breakwater that nobody wanted to pay for</a><a href=/2>Who owns the old pier?</a></div>",
        "<ul><li><a href=/1>Harbours</a> <li><a href=/2>Storms</a></ul>",
        "<figure><img src=i><figcaption>The harbour on Saturday morning, seen from the old pier.</figcaption></figure>",
        "<div class=photo>The harbour on Saturday, seen from the old pier (photo: A. Person).</div>",
        "<div><span>By A. Person</span></div>",
        "<p><a href=/3>Read more: the breakwater that nobody wanted to pay for, and why it was built.</a></p>",
    ],
)
@pytest.mark.parametrize("place", ["{beside}<div>{prose}</div>", "<div>{prose}</div>{beside}"])
def test_what_is_no_article_is_left_out(place: str, beside: str) -> None:
    page = read(place.format(beside=beside, prose=PROSE))
    assert page.main_text == "\n".join((ONE, TWO, THREE))
    assert len(page.text) > len(page.main_text) or "<a href" in beside, "the text of the page has it"


@pytest.mark.parametrize(
    ("within", "line"),
    [
        ("<h2>After the storm</h2>", "After the storm"),
        ("<p>Not yet.</p>", "Not yet."),
        ("<ul><li>one boat<li>two nets</ul>", "one boat\ntwo nets"),
        ("<table><tr><th>day<th>ships<tr><td>Monday<td><a href=/4>four</a></table>", "day\nships\nMonday\nfour"),
        ("<pre>git clone harbour</pre>", "git clone harbour"),
        ("<blockquote>Never before.</blockquote>", "Never before."),
    ],
)
def test_short_lines_within_an_article_belong_to_it(within: str, line: str) -> None:
    assert read(f"<div><p>{ONE}</p>{within}<p>{TWO}</p><p>{THREE}</p></div>").main_text.split("\n")[1:-2] == line.split(
        "\n"
    )


def test_the_first_heading_is_kept_wherever_it_stands() -> None:
    assert read(f"<div><h1>Storm</h1><span>3 min</span></div><div>{PROSE}</div>").main_text.split("\n")[0] == "Storm"


def test_a_list_beside_the_article_is_kept_if_it_is_no_list_of_links() -> None:
    page = read(f"<div><h2>Parts</h2><ul><li>200 g of flour, sifted twice<li>3 eggs</ul></div><div>{PROSE}</div>")
    assert "200 g of flour, sifted twice\n3 eggs" in page.main_text


def test_a_price_is_kept() -> None:
    page = read(f"<h1>A net</h1><div><p class=price>\u20ac 12.50</p><span>in stock</span></div><div>{PROSE}</div>")
    assert "\u20ac 12.50" in page.main_text
    assert "in stock" not in page.main_text


def test_a_forum_consists_of_comments() -> None:
    posts = "".join(f"<div class=comment><p>{line}</p></div>" for line in (ONE, TWO, THREE))
    page = read(f"<h1>Storm</h1><div class=comments>{posts}</div>")
    assert all(line in page.main_text for line in (ONE, TWO, THREE))


def test_scripts_without_blanks_have_prose() -> None:
    lines = [
        "\u6e2f\u53e3\u56e0\u66b4\u98a8\u96e8\u5c01\u9589\u4e86\u4e09\u5929\uff0c\u6240\u6709\u7684\u8239\u53ea\u90fd\u7121\u6cd5\u51fa\u6d77\u6355\u9b5a\u3002"
    ] * 3
    page = read(
        f"<div>{''.join(f'<p>{line}</p>' for line in lines)}</div><div><a href=/>\u95dc\u65bc\u6211\u5011</a></div>"
    )
    assert page.main_text == "\n".join(lines)


def test_a_page_that_is_no_article_keeps_its_text() -> None:
    rows = "".join(f"<div><b>Part {number}</b> {number} in stock</div>" for number in range(20))
    page = read(f"<h1>Parts</h1><div class=cookie-banner>We use cookies</div>{rows}")
    assert "Part 7 7 in stock" in page.main_text
    assert "cookies" not in page.main_text


def test_spans_lie_within_the_text() -> None:
    page = read(f"<h1>Storm</h1><div class=share>Share this</div><div>{PROSE}</div>")
    assert list(page.main_spans) == sorted(set(page.main_spans))
    assert page.main_text == spanned(page.text, page.main_spans)
    assert spanned(page.text, ()) == page.text, "without spans all of it"


def test_spans_join_neighbours_and_end_with_the_text() -> None:
    assert spans_of([2, 3, 4], b"\1\1\0", 11) == (0, 6)
    assert spans_of([2, 3, 4], b"\1\0\1", 11) == (0, 2, 7, 11)
    assert spans_of([2, 3, 4], b"\1\0\1", 9) == (0, 2, 7, 9)
    assert spans_of([2, 3, 4], b"\1\0\1", 7) == (0, 2)
    assert spans_of([], b"", 0) == ()
