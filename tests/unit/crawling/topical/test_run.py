"""The state of a topical crawl: text without boilerplate, copies, links to follow, the limit per site."""

from __future__ import annotations

from collections.abc import Sequence

from quadloom.crawling.topical.access import SiteRequest, SiteResponse, run_sequence
from quadloom.crawling.topical.anchors import read_outline
from quadloom.crawling.topical.relevance import Example, Topic
from quadloom.crawling.topical.run import TopicalRun, article_links


class Site:
    def __init__(self, pages: dict[str, str]) -> None:
        self._pages = pages

    def ask(self, asks: Sequence[SiteRequest]) -> list[SiteResponse | None]:
        return [
            SiteResponse(a.url, 200, "text/html", self._pages[a.url].encode()) if a.url in self._pages else None
            for a in asks
        ]


def page(title: str, body: str, head: str = "") -> str:
    return f"<html><head><title>{title}</title>{head}</head><body><nav>All about paris</nav><p>{body}</p></body></html>"


def test_words_of_the_template_are_not_the_pages_own() -> None:
    access = Site({"http://x.test/1": page("One", "soup"), "http://x.test/2": page("Two", "cake")})
    run = TopicalRun(Topic("", "paris"), 10)
    run_sequence(run.read("http://x.test/1", 0.5, "link"), access)
    second = run_sequence(run.read("http://x.test/2", 0.5, "link"), access)
    assert second is not None
    assert second.example.text == "cake"


def test_a_copy_under_another_address_is_worth_nothing() -> None:
    text = page("Paris museums", "paris museums of paris, a long walk through paris")
    access = Site({"http://x.test/1": text, "http://y.test/1": text})
    run = TopicalRun(Topic("", "paris"), 10)
    first = run_sequence(run.read("http://x.test/1", 0.5, "result"), access)
    second = run_sequence(run.read("http://y.test/1", 0.5, "result"), access)
    assert first is not None and second is not None
    assert first.worth > 0.5
    assert second.copy
    assert second.worth == 0.0
    assert run.relevant == 1


def test_another_model_can_take_the_place_of_the_built_in_one() -> None:
    class Titles:
        def judge(self, document: Example) -> float:
            return 0.9 if document.title == "Two" else 0.1

    access = Site({"http://x.test/1": page("One", "paris museum"), "http://x.test/2": page("Two", "cake")})
    run = TopicalRun(Topic("", "paris"), 10, judge=Titles())
    found = [run_sequence(run.read(f"http://x.test/{number}", 0.5, "link"), access) for number in (1, 2)]
    assert [document and document.worth for document in found] == [0.1, 0.9]


def test_links_that_authors_do_not_want_followed_are_not_offered() -> None:
    links = (
        '<a href="/a">A</a><a href="/b" rel="nofollow">B</a><a href="http://z.test/">Z</a><a href="/p.JPG?x=1">P</a>'
    )
    assert [a.text for a in article_links(read_outline(page("t", links), "http://x.test/"))] == ["A"]
    closed = page("t", links, '<meta name="robots" content="noindex, NOFOLLOW">')
    assert article_links(read_outline(closed, "http://x.test/")) == []


def test_types_are_seen_in_any_syntax() -> None:
    for head in (
        '<script type="application/ld+json">{"@type": "Event"}</script>',
        '<i itemscope itemtype="https://schema.org/Event"></i>',
        '<i typeof="schema:Event"></i>',
    ):
        access = Site({"http://x.test/1": page("Paris", "paris", head)})
        document = run_sequence(TopicalRun(Topic("", "paris"), 10).read("http://x.test/1", 0.5, "result"), access)
        assert document is not None
        assert document.example.types[0].endswith("Event")


def test_a_site_gives_no_more_documents_than_allowed_whoever_asks() -> None:
    access = Site({f"http://x.test/{n}": page(str(n), f"text {n}") for n in range(5)})
    run = TopicalRun(Topic("", "paris"), 10, per_site=3)
    read = [run_sequence(run.read(f"http://x.test/{n}", 0.5, "result"), access) for n in range(5)]
    assert [document is not None for document in read] == [True, True, True, False, False]
