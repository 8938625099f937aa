"""`data-not-visible`: what JSON-LD says is looked for in all that the page shows, whatever the page holds besides."""

from __future__ import annotations

import json
import time

import quadloom

DATA = {"@context": "https://schema.org", "@type": "Product", "name": "Blue harbour lamp with brass base"}
PROSE = "<main><p>" + "Some words of the main part, which are about something else. " * 6 + "</p></main>"


def codes(before: str, after: str = "") -> list[str]:
    data = f'<script type="application/ld+json">{json.dumps(DATA)}</script>'
    body = f"<title>Shop</title>{data}<body>{before}{PROSE}{after}</body>"
    found = quadloom.transform(body.encode(), url="https://shop.example/1", content_type="text/html").findings
    return [one.code for one in found if one.code == "data-not-visible"]


def test_a_name_that_no_part_of_the_page_shows_is_reported() -> None:
    assert codes("<nav>Home</nav>") == ["data-not-visible"]


def test_what_stands_outside_of_the_main_part_is_visible() -> None:
    assert codes(f"<header><p>{DATA['name']}</p></header>") == []
    assert codes("", f"<footer>{DATA['name']}</footer>") == []


def test_what_only_a_script_or_a_style_holds_is_not_visible() -> None:
    assert codes(f"<script>var x = '{DATA['name']}'</script><style>/* {DATA['name']} */</style>") == [
        "data-not-visible"
    ]


def test_many_scripts_cost_no_more_than_their_length() -> None:
    """Each emptied script once doubled the text that was searched: thirty made it terabytes."""
    started = time.process_time()
    assert codes("<script>var a = 1</script>" * 300) == ["data-not-visible"]
    assert time.process_time() - started < 2


def test_a_name_with_markup_inside_a_word_is_visible() -> None:
    assert codes("<header><p>Bl<b>ue har</b>bour la<i>mp wi</i>th bra<u>ss ba</u>se</p></header>") == []
