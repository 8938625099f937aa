"""The search form of a page, and what it sends."""

from __future__ import annotations

import pytest

from quadloom.crawling.topical.forms.classifier import find_search_form

KANSAS = """
<form action="/~http/cgi-bin/search/search.php" class="ku_search" method="post">
  <select id="searchtype" name="site"><option value="kuweb" selected="selected">Web</option>
  <option value="kupeople">People</option></select>
  <input id="searchtext" class="ku_searchtext" name="keyword" type="text" value="keyword/name" size="20">
  <input class="button" name="Search" type="image" src="/search.gif" alt="Search">
</form>"""


def test_the_form_of_the_paper_sends_its_select_and_its_image_button() -> None:
    form = find_search_form(KANSAS, "http://www.ku.example/")
    assert form is not None
    assert (form.action, form.method) == ("http://www.ku.example/~http/cgi-bin/search/search.php", "post")
    assert form.query_field == "keyword"
    assert form.pairs("paris") == [("site", "kuweb"), ("keyword", "paris"), ("Search.x", "1"), ("Search.y", "1")]


@pytest.mark.parametrize(
    "box",
    [
        "<form action=/s><input type=search name=q></form>",
        "<form action=/suche><input name=begriff placeholder='Suchbegriff'><button>Suchen</button></form>",
        "<form action=/find><input name=text><input type=submit value='Найти'></form>",
        "<form action=/so><input name=wd><input type=submit value='搜索'></form>",
        "<form role=search action=/><input name=s><input type=submit value='Go'></form>",
        "<table><form action='/search.asp'><tr><td><input name=keyword><input type=submit value=Search></table></form>",
    ],
)
def test_search_boxes_of_many_tongues(box: str) -> None:
    assert find_search_form(f"<html><body>{box}</body></html>", "https://site.example/a/b") is not None


@pytest.mark.parametrize(
    "form",
    [
        "<form action=/search method=post><input name=q><input type=password name=p></form>",
        "<form action=/newsletter method=post><input type=email name=email><input type=submit value=Subscribe></form>",
        "<form action=/login method=post>User<input name=user>"
        "<input type=password name=pw><button>Log in</button></form>",
        "<form action=/cart/add method=post><input type=hidden name=product_id value=3><input name=qty value=1>"
        "<button>Add to cart</button></form>",
        "<form action=/comment method=post><input name=name>"
        "<textarea name=comment></textarea><button>Send</button></form>",
        "<form action=/subscribe method=post><input name=mail placeholder='Your e-mail'>"
        "<button>Subscribe</button></form>",
        "<form></form>",
        "",
    ],
)
def test_forms_with_side_effects_are_never_taken(form: str) -> None:
    assert find_search_form(form, "https://site.example/") is None


def test_defaults_checked_boxes_and_first_button_are_sent_and_grey_example_text_is_not() -> None:
    form = find_search_form(
        "<form action=/search><input type=hidden name=lang value=de><input name=q value='Search here'>"
        "<input type=checkbox name=pdf checked><input type=checkbox name=img>"
        "<input type=radio name=in value=all checked><input type=radio name=in value=title>"
        "<select name=n><option>10<option selected>20</select>"
        "<input type=submit name=go value=Search><input type=submit name=adv value=Advanced></form>",
        "https://site.example/",
    )
    assert form is not None
    assert form.fields == {"lang": "de", "q": "", "pdf": "on", "in": "all", "n": "20", "go": "Search"}
    assert form.url_for("a b") == "https://site.example/search?lang=de&q=a+b&pdf=on&in=all&n=20&go=Search"


def test_controls_outside_the_form_belong_to_it_by_its_id() -> None:
    html = "<form id=f action=/search></form><p><input form=f type=search name=query><button form=f>Search</button>"
    form = find_search_form(html, "https://site.example/")
    assert form is not None
    assert form.query_field == "query"


def test_a_post_form_with_a_token_says_so_and_base_counts() -> None:
    html = (
        "<base href='https://other.example/x/'><form action=search method=post>"
        "<input type=hidden name=csrf_token value=1>"
        "<input type=search name=q><button>Search</button></form>"
    )
    form = find_search_form(html.encode(), "https://site.example/")
    assert form is not None
    assert form.has_token
    assert form.action == "https://other.example/x/search"


def test_the_search_wins_over_the_login_on_the_same_page() -> None:
    html = (
        "<form action=/login method=post><input name=user><input type=password name=pw></form>"
        "<form action=/search><input name=q><button>Search</button></form>"
    )
    form = find_search_form(html, "https://site.example/")
    assert form is not None
    assert form.action.endswith("/search")
    assert form.place == 1


def test_hostile_pages_end_quickly() -> None:
    for html in (
        "<form>" * 20_000,
        "<div>" * 50_000 + "<form><input name=q>",
        "\0" * 1000,
        "<form action='http://[bad'>",
    ):
        find_search_form(html, "https://site.example/")
