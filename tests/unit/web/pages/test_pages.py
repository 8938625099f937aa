"""Every page, its twin, and what nobody may get through them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from quadloom.crawling.run.run_history import CrawlRun, RunPoint
from quadloom.web.pages.monitor import _drawn_runs, _past, _phases_of_run
from quadloom.web.view.filters import sentence, with_links
from unit.web.web_fixture import BOOK, EVIL, PERSON

HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
PAGES = (
    "/", "/search", "/search?q=lighthouse", f"/entity?iri={quote(BOOK + '#it')}", f"/page?url={quote(BOOK)}", "/sparql",
    "/inspect", "/monitor", "/sites", "/site/books.example", "/vocabularies", "/topics", "/subscriptions", "/about",
    "/sign-in", "/sparql?query=" + quote("SELECT * { ?s ?p ?o }"),
    "/sparql?query=" + quote("CONSTRUCT WHERE {?s ?p ?o}"),
)  # fmt: skip
WITHOUT_TWIN = ("/sparql", "/sign-in")
EVIL_PAGES = (
    "/", "/search?q=lighthouse", "/search?q=" + quote("<script>window.hit=1</script>"), f"/page?url={quote(EVIL)}",
    "/entity?iri=" + quote("http://evil.example/thing"), "/entity?iri=" + quote("javascript:window.hit=1"),
    "/sparql?query=" + quote("SELECT * { ?s ?p ?o }"), "/sparql?query=" + quote("</textarea><script>window.hit=1"),
    "/site/evil.example", "/search?type=" + quote('"><script>window.hit=1</script>'), "/vocabularies", "/monitor",
    "/site/" + quote("<script>window.hit=1<|script>"), "/page?url=" + quote("http://x/<script>window.hit=1</script>"),
)  # fmt: skip


class _Dangers(HTMLParser):
    """Collects everything in a page that could run or lead to something that runs."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.ids: list[str] = []
        self.headings = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.headings += tag == "h1"
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids.append(attributes["id"] or "")
        if tag == "script" and not (attributes.get("src") or "").startswith("/static/"):
            self.found.append(f"script {attrs}")
        if tag in ("iframe", "object", "embed", "style", "base"):
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "srcdoc", "formaction"):
                self.found.append(f"{tag} {name}={value}")
            if name in ("href", "src", "action") and not re.match(r"(https?://|/|#)", value or ""):
                self.found.append(f"{tag} {name}={value}")


@pytest.mark.parametrize("path", PAGES)
def test_page_is_whole_without_scripts(client: TestClient, path: str) -> None:
    answer = client.get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    page = _Dangers()
    page.feed(answer.text)
    assert page.headings == 1
    assert len(page.ids) == len(set(page.ids)), "ids are unique"
    for landmark in ("<main", "<nav", "<header", "<footer", 'lang="en"', "skip"):
        assert landmark in answer.text


@pytest.mark.parametrize("path", [path for path in PAGES if not path.startswith(WITHOUT_TWIN)])
def test_page_has_a_twin(client: TestClient, path: str) -> None:
    plain, mark, query = path.partition("?")
    answer = client.get(("/index" if plain == "/" else plain) + ".json" + mark + query)
    assert answer.status_code == 200
    assert answer.json()["ok"] is True
    by_accept = client.get(path, headers={"accept": "application/json"})
    assert by_accept.json().keys() == answer.json().keys()


@pytest.mark.parametrize("path", EVIL_PAGES)
def test_nothing_crawled_can_run(client: TestClient, path: str) -> None:
    answer = client.get(path, headers=HTML)
    assert answer.status_code in (200, 400, 404)
    page = _Dangers()
    page.feed(answer.text)
    assert page.found == []
    assert "49" not in answer.text.partition("{{7*7}}")[0][-3:], "templates do not evaluate what was crawled"
    assert "'unsafe-" not in answer.headers["content-security-policy"]


def test_pictures_escape_what_was_crawled(client: TestClient) -> None:
    answer = client.get("/entity.svg", params={"iri": "http://evil.example/thing"})
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "script-src" not in answer.headers["content-security-policy"]
    assert "<script" not in answer.text and "onerror" not in re.sub(
        r"<title>.*?</title>|<text.*?</text>", "", answer.text
    )
    assert 'href="javascript' not in answer.text


def test_archived_body_is_text_in_a_sandbox(client: TestClient) -> None:
    answer = client.get("/page/body", params={"url": EVIL}, headers=HTML)
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "window.hit" in answer.text


def test_a_page_as_markdown_holds_no_html(client: TestClient) -> None:
    answer = client.get("/page.md", params={"url": EVIL}, headers=HTML)
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.text and "<" not in answer.text and "](javascript" not in answer.text
    assert client.get("/page.md", params={"url": BOOK, "at": "1"}, headers=HTML).status_code == 404


def test_search_has_hits_facets_and_an_opaque_next(client: TestClient) -> None:
    first = client.get("/search.json", params={"q": "lighthouse", "limit": 1}).json()
    assert first["total"] == 3 and len(first["hits"]) == 1 and first["next"]
    assert ["schema:Book", 1] in first["facets"]["types"]
    second = client.get("/search.json", params={"q": "lighthouse", "limit": 1, "next": first["next"]}).json()
    assert second["hits"][0]["id"] != first["hits"][0]["id"]
    only = client.get("/search.json", params={"q": "lighthouse", "type": "schema:Book"}).json()
    assert [hit["id"] for hit in only["hits"]] == [BOOK]
    assert client.get("/search.json", params={"next": "zzz"}).status_code == 400
    assert client.get("/search.json", params={"since": "yesterday"}).status_code == 400


def test_search_as_sparql_finds_the_same(client: TestClient) -> None:
    found = client.get("/search.json", params={"q": "lighthouse", "type": "schema:Book"}).json()
    rows = client.get("/sparql", params={"query": found["sparql"]}).json()["results"]["bindings"]
    assert {cell["value"] for row in rows for cell in row.values() if cell["type"] == "uri"} >= {BOOK}


def test_entity_shows_sources_contradictions_and_directions(client: TestClient) -> None:
    twin = client.get("/entity.json", params={"iri": f"{BOOK}#it"}).json()
    assert twin["label"] == "The Distant Lighthouse"
    isbn = next(found for found in twin["properties"] if found["iri"].endswith("isbn"))
    assert isbn["contradicted"] and {s["value"]["text"] for s in isbn["statements"]} == {"978-3", "979-9"}
    page = client.get("/entity", params={"iri": f"{PERSON}#it"}, headers=HTML).text
    assert 'lang="ar" dir="rtl"' in page
    assert BOOK in page, "what points here"


@pytest.mark.parametrize(
    ("accept", "found"),
    [("text/turtle", "text/turtle"), ("application/ld+json", "application/ld+json"), ("text/html", "text/html"),
     ("application/rdf+xml;q=0.9, text/turtle;q=0.8", "application/rdf+xml"),
     ("application/n-quads", "application/n-quads")],
)  # fmt: skip
def test_entity_negotiates(client: TestClient, accept: str, found: str) -> None:
    answer = client.get("/entity", params={"iri": f"{BOOK}#it"}, headers={"accept": accept})
    assert answer.headers["content-type"].startswith(found)
    assert "Accept" in answer.headers["vary"]


def test_page_tells_its_history_and_why(client: TestClient) -> None:
    twin = client.get("/page.json", params={"url": BOOK}).json()
    assert [visit["status"] for visit in twin["visits"]] == [200, 200]
    assert twin["visits"][0]["graph_changed"] and not twin["visits"][1]["graph_changed"]
    assert {reason["part"] for reason in twin["why"]["reasons"]} >= {"scope", "frontier"}
    assert client.get("/page.json", params={"url": "http://never.example/"}).status_code == 404
    first = client.get("/page/body", params={"url": BOOK, "at": twin["visits"][1]["at"]}).text
    assert "978-0" in first and "978-3" not in first
    ends = {"from": twin["visits"][1]["at"], "to": twin["visits"][0]["at"]}
    difference = client.get("/page.json", params={"url": BOOK, **ends}).json()["difference"]
    assert len(difference["added"]) == len(difference["removed"]) == 1
    assert "978-0" in difference["removed"][0] and "978-3" in difference["added"][0]
    assert "<ins>" in client.get("/page", params={"url": BOOK, **ends}, headers=HTML).text


def test_inspect_reads_pasted_markup(client: TestClient) -> None:
    data = '{"@context":"http://schema.org/","@type":"Event","name":"Opera"}'
    markup = f'<html><title>T</title><script type="application/ld+json">{data}</script></html>'
    for answer in (
        client.post("/inspect", json={"markup": markup}, headers={"accept": "application/json"}),
        client.post("/inspect", content=markup, headers={"content-type": "text/html"}),
        client.post("/inspect", data={"markup": markup}, headers={"accept": "application/json"}),
    ):
        assert answer.status_code == 200, answer.text
    page = client.post("/inspect", data={"markup": markup}, headers=HTML).text
    assert "schema:Event" in page and "5 Extract" in page


def test_inspect_refuses_private_addresses_and_foreign_pages(client: TestClient) -> None:
    answer = client.get("/inspect.json", params={"url": "http://127.0.0.1:1/"})
    assert "guard" in answer.json()["inspection"]["failure"]
    crossing = client.get(
        "/inspect.json", params={"url": "http://a.example/"}, headers={"sec-fetch-site": "cross-site"}
    )
    assert crossing.status_code == 403
    assert client.get("/inspect.json", params={"url": "file:///etc/passwd"}).status_code == 400


def test_topics_tell_how_their_crawls_went(client: TestClient) -> None:
    first, second = client.get("/topics.json").json()["topics"]
    assert (first["narrow"], first["requests"], first["harvest"]) == ("lighthouse keepers", 1500, 0.75)
    assert second["name"] == "older", "one that does not decode is named all the same"
    page = client.get("/topics", headers=HTML).text
    assert "75\u00a0%" in page and "2023-11-14 22:13\u00a0UTC" in page and ">lighthouse keepers</a>" in page


def test_a_filter_that_no_page_passes_is_named_as_it_was_written(client: TestClient) -> None:
    shown = client.get("/search", params={"q": "zzz", "type": "Bok"}, headers=HTML).text
    assert '<p class="notice">No page has the type Bok' in shown, "not bok"
    assert "No page has <q>" not in shown, "one reason is enough"
    assert shown.count("No page matches") == 0


def test_a_page_that_cannot_be_fetched_has_no_phases(client: TestClient) -> None:
    shown = client.get("/inspect", params={"url": "http://127.0.0.1:1/"}, headers=HTML).text
    assert 'class="notice error" role="status"' in shown and "not fetched" in shown
    assert "3 Transform" not in shown and "[guard]" in shown, "the reason and what to do, no empty boxes"


def test_an_error_page_leads_on(client: TestClient) -> None:
    page = client.get("/nowhere", headers=HTML).text
    assert "<h1>There is nothing at this address</h1>" in page and 'href="/sites"' in page


def test_an_error_page_keeps_urls_as_they_are_and_links_what_it_names(client: TestClient) -> None:
    shown = client.get("/page", params={"url": "http://unread.example/x"}, headers={"accept": "text/html"}).text
    assert "http://unread.example/x has not been fetched yet</h1>" in shown, "not Http://"
    assert '<p class="notice"><a href="/search">/search</a> lists the pages that have been fetched</p>' in shown


def test_an_unknown_thing_leads_to_the_search_of_the_site_not_to_a_terminal(client: TestClient) -> None:
    shown = client.get("/entity", params={"iri": "http://unread.example/x"}, headers=HTML)
    assert shown.status_code == 404
    assert '<p class="notice"><a href="/search">/search</a> finds pages and things' in shown.text


def test_a_command_in_a_hint_is_marked_as_one() -> None:
    assert with_links("to see it: `quadloom why <URL>`", ()) == "to see it: <code>quadloom why &lt;URL&gt;</code>"


def test_a_part_of_all_pages_is_called_so_and_a_selection_says_among_how_many(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quadloom.web.pages.pages._MAX_LISTED", 1)
    assert "<strong>1 page</strong>, and there are more." in client.get("/pages", headers=HTML).text
    shown = client.get("/pages", params={"status": "200"}, headers=HTML).text
    assert "<strong>1 page</strong> among the " in shown and "looked at so far." in shown


def test_a_hint_links_addresses_of_the_site_only() -> None:
    known = {"/search", "/openapi.json"}
    assert with_links("see /openapi.json, not /etc/passwd or a/search", known) == (
        'see <a href="/openapi.json">/openapi.json</a>, not /etc/passwd or a/search'
    )
    assert with_links("</script> & /search", known) == '&lt;/script&gt; &amp; <a href="/search">/search</a>'
    assert (sentence("no page"), sentence("/search lists")) == ("No page", "/search lists")


def test_runs_are_drawn_if_there_is_a_curve_to_see() -> None:
    def run(points: int) -> CrawlRun:
        drawn = tuple(RunPoint(100.0 + at, at, 1.0, (1.0,) * 6) for at in range(points))
        return CrawlRun(started_at=100.0, ended_at=110.0, state="ended", points=drawn)

    assert not _phases_of_run([run(2)]) and not _drawn_runs([run(2)])
    drawn = _phases_of_run([run(2), run(5)])
    assert ">0 s</text>" in drawn and ">4 s</text>" in drawn, "by time since its begin"
    assert not _past(_drawn_runs([run(5), run(2)])), "one run is drawn by its phases"
    assert _past(_drawn_runs([run(5), run(9)]))
