"""Spider traps by the form of a URL, and by how many URLs have the same form."""

from __future__ import annotations

import random
import time

import pytest

from quadloom.crawling.ingest.traps.shapes import HostShapes, SubdomainBudget, is_plain, trap

E = "http://e.org"


@pytest.mark.parametrize(
    ("href", "word"),
    [
        (E + "/a/" * 1 + "b/a/b/a/b/a/b", "more than 3 times"),
        (E + "/www.x.com/www.x.com/www.x.com/www.x.com/", "more than 3 times"),
        (E + "/x/a/b/a/b/a/b", "repeat"),
        (E + "/" + "/".join(str(n) for n in range(20)), "path segments"),
        (E + "/?" + "&".join(f"k{n}=1" for n in range(20)), "query parameters"),
        (E + "/?a=1&a=2&a=3&a=4", "more than 3 times"),
        (E + "/?x=1&amp;amp;y=2", "&amp;"),
        (E + "/page;jsessionid=0123456789ABCDEF", "session"),
        (E + "/page?PHPSESSID=0123456789abcdef", "session"),
        (E + "/(S(lit3py55t21z5v55vlm25s55))/a", "session"),
        (E + "/calendar/2231/04/", "after the year 2039"),
        (E + "/events?date=3801-02-03", "after the year 2039"),
        (E + "/cal?year=99999", "after the year 2039"),
        (E + "/" + "a" * 2100, "longer"),
    ],
)
def test_traps_are_refused_with_a_reason(href: str, word: str) -> None:
    assert word in (trap(href) or "")


@pytest.mark.parametrize(
    "path",
    [
        "/", "/a/b/c", "/2024/05/17/story", "/calendar/2025-12", "/?q=1&page=2", "/wiki/Year_1066", "/p/350012/",
        "/de/de/a", "/?sid=12", "/products?color[]=1&color[]=2&color[]=3&color[]=4&color[]=5", "/isbn/9783161484100",
        "/rfc/9309-06-2", "/newspapers/events/1801/02/03",
    ],
)  # fmt: skip
def test_ordinary_urls_pass(path: str) -> None:
    assert trap(E + path) is None


def test_facets_and_calendars_have_a_limit_per_shape() -> None:
    shapes = HostShapes(facet_urls=50, calendar_urls=30)
    refused = [shapes.admit(f"{E}/shop?color={n}&size={n % 7}") for n in range(100)]
    assert refused[:50] == [None] * 50
    assert all("facets /shop?color&size" in (reason or "") for reason in refused[50:])
    dated = [shapes.admit(f"{E}/cal/{2000 + n // 12}/{n % 12 + 1:02}/") for n in range(40)]
    assert dated[29] is None and "dated" in (dated[30] or "")
    assert all(shapes.admit(f"{E}/article/{n}") is None for n in range(1000))
    assert shapes.admit(f"{E}/other?color=1&size=2") is None


def test_shapes_stay_bounded() -> None:
    shapes = HostShapes()
    for number in range(20_000):
        shapes.admit(f"{E}/{number}?a=1&b=2")
    assert len(shapes._counts) <= 4096


def test_wildcard_subdomains_have_a_budget() -> None:
    budget = SubdomainBudget(subdomains=3)
    assert [budget.admit(f"h{n}.trap.org") is None for n in range(5)] == [True, True, True, False, False]
    assert budget.admit("h1.trap.org") is None
    assert budget.admit("www.other.org") is None
    assert "trap.org" in (budget.admit("h9.trap.org") or "")


def test_linear_time() -> None:
    start = time.process_time()
    for _ in range(100):
        trap(E + "/" + "1" * 900 + "-" * 900)
        trap(E + "/?" + "&" * 2000)
    assert time.process_time() - start < 1.0


_PARTS = (
    "a",
    "2041",
    "2041-05",
    "12",
    "x",
    "cal",
    ";sid=1",
    "(S(lit3py55t21z5v55vlm25s55))",
    "?",
    "&a=1",
    "=",
    "-",
    "",
)


def test_a_plain_url_is_no_trap_and_is_not_counted() -> None:
    """The short way gives the answer of the long one."""
    chance, plain = random.Random(1), 0
    for _ in range(3000):
        segments = ("".join(chance.choices(_PARTS, k=chance.randrange(5))) for _ in range(chance.randrange(6)))
        href = "/".join([E, *segments])
        if is_plain(href):
            plain += 1
            assert trap(href) is None, href
            assert HostShapes(facet_urls=0, calendar_urls=0).admit(href) is None, href
    assert 300 < plain < 2700


def test_most_urls_are_plain() -> None:
    assert is_plain(E) and is_plain(E + "/wiki/Article-17.html") and is_plain(E + "/a/b/c")
    assert not is_plain(E + "/a/b/c/d") and not is_plain(E + "/?q=1") and not is_plain(E + "/2041/05")
    assert not is_plain(E + "/" + "x" * 10_000)
