"""Search channels: what a home page reveals, and that each channel is validated before it is used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest

from quadloom.crawling.topical.access import SiteRequest, SiteResponse, run_sequence
from quadloom.crawling.topical.search.channels import SearchChannel, filled, open_site, query_channel
from quadloom.crawling.topical.search.engines import engine_leads, read_description, search_actions
from quadloom.crawling.topical.search.site_indexes import read_documents, read_sitemap, read_sphinx, slug_words
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.topic import known_channels, remember_channels
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier
from quadloom_lab.topical.corpus import Corpus
from quadloom_lab.topical.evaluation import SimulatedAccess
from quadloom_lab.topical.sites import Family, SitePlan, plan_sites
from quadloom_lab.topical.web import TopicalWeb

CORPUS = Corpus(11)


class Pages:
    """A tiny site: paths to bodies; what begins as XML is a feed."""

    def __init__(self, pages: dict[str, str]) -> None:
        self.pages = pages
        self.asked: list[SiteRequest] = []

    def ask(self, asks: Sequence[SiteRequest]) -> list[SiteResponse | None]:
        self.asked += asks
        return [self._one(ask.url) for ask in asks]

    def _one(self, url: str) -> SiteResponse:
        body = self.pages.get(url.removeprefix("http://x.test"))
        if body is None:
            return SiteResponse(url, 404, "", b"")
        return SiteResponse(url, 200, "application/rss+xml" if body.startswith("<?xml") else "text/html", body.encode())


@cache
def plans(family: Family) -> list[SitePlan]:
    return plan_sites(CORPUS, 4, 2, family, 40)


@pytest.mark.parametrize("family", ["known", "held_out"])
def test_every_kind_of_site_is_opened_and_its_first_answer_is_right(family: Family) -> None:
    chosen = plans(family)
    access = SimulatedAccess(TopicalWeb(chosen))
    query = CORPUS.narrow_query(4)
    right = asked = 0
    for plan in chosen:
        opening = run_sequence(open_site(f"http://{plan.host}/", query, "zqnonsense", 0.0), access)
        expected = {"post-form": "form"}.get(plan.search, plan.search)
        if plan.search != "none":
            asked += 1
            right += opening.channel.kind == expected
        if opening.channel.searchable:
            own = {f"http://{plan.host}{placed.path}" for placed in plan.documents}
            assert {result.url for result in opening.first.results} <= own, plan.host
    assert right / asked >= 0.95


def test_paging_reaches_all_results_without_ads_or_navigation() -> None:
    plan = max((p for p in plans("known") if p.search == "form" and p.engine == "any"), key=lambda p: p.ads)
    web = TopicalWeb([plan])
    access = SimulatedAccess(web)
    word = CORPUS.category_words[CORPUS.topics[4].category][0]
    channel = run_sequence(open_site(f"http://{plan.host}/", word, "zqnonsense", 0.0), access).channel
    found: set[str] = set()
    next_url = ""
    for number in range(40):
        page = run_sequence(query_channel(channel, word, number, next_url), access)
        if page is None or not page.results:
            break
        found |= {result.url for result in page.results}
        next_url = page.next_url
        if not next_url:
            break
    having = {
        f"http://{plan.host}{placed.path}"
        for placed in plan.documents
        if word in placed.text.words or word in placed.text.title.lower().split()
    }
    assert found == having


def test_a_form_that_answers_alike_is_refused_and_a_login_is_never_sent() -> None:
    form = "<form action='/search'><input type=search name=q></form>"
    login = "<form action=/login method=post><input name=u><input type=password name=p></form>"
    home = f"<html><body>{login}{form}<a href=/a>words of an article</a></body></html>"

    class Alike(Pages):
        def ask(self, asks: Sequence[SiteRequest]) -> list[SiteResponse | None]:
            self.asked += asks
            return [SiteResponse(ask.url, 200, "text/html", home.encode()) for ask in asks]

    access = Alike({})
    opening = run_sequence(open_site("http://x.test/", "paris", "zqnonsense", 0.0), access)
    assert opening.channel.kind == "links"
    assert all(ask.method == "get" and "login" not in ask.url for ask in access.asked)


def test_a_wordpress_without_its_json_is_asked_for_a_feed() -> None:
    item = "<item><title>Paris by night</title><link>http://x.test/night</link></item>"
    access = Pages(
        {
            "/": '<html><head><meta name="generator" content="WordPress 6.5"></head><body>Blog</body></html>',
            "/?s=zqnonsense&feed=rss2&paged=1": '<?xml version="1.0"?><rss><channel></channel></rss>',
            "/?s=paris&feed=rss2&paged=1": f'<?xml version="1.0"?><rss><channel>{item}</channel></rss>',
        }
    )
    opening = run_sequence(open_site("http://x.test/", "paris", "zqnonsense", 0.0), access)
    assert (opening.channel.kind, opening.channel.format) == ("wordpress", "rss")
    assert [result.url for result in opening.first.results] == ["http://x.test/night"]
    assert opening.tried[0].startswith("wordpress: http://x.test/wp-json/")


def test_a_channel_survives_its_encoding_and_old_bytes_are_forgotten() -> None:
    channel = SearchChannel("opensearch", "http://x.test/", "rss", "http://x.test/f?q={searchTerms}", learned_at=5.0)
    catalog, seeds = (
        MemoryCatalog(MemoryFrontier(FrontierPolicy(), now=0.0)),
        [SeedSite("http://x.test/"), SeedSite("http://y.test/")],
    )
    remember_channels(catalog, [channel])
    catalog.values.put("channel:y.test", b"\x01old")
    assert known_channels(catalog, seeds, 5.0) == {"x.test": channel}
    assert known_channels(catalog, seeds, 6.0) == {}


def test_a_known_channel_is_asked_without_reading_the_home_page() -> None:
    plan = next(p for p in plans("known") if p.search == "wordpress")
    access = SimulatedAccess(TopicalWeb([plan]))
    known = run_sequence(open_site(f"http://{plan.host}/", CORPUS.narrow_query(4), "zqnonsense", 0.0), access).channel
    sequence = open_site(f"http://{plan.host}/", "word", "zqnonsense", 1.0, known)
    assert "/wp-json/" in next(sequence).url


def test_open_search_description_prefers_feeds_and_ignores_suggestions_and_strangers() -> None:
    body = b"""<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">
    <Url type="application/x-suggestions+json" template="http://x.test/suggest?q={searchTerms}"/>
    <Url type="text/html" template="http://x.test/s?q={searchTerms}&amp;l={language?}"/>
    <Url type="text/html" template="http://elsewhere.example/s?q={searchTerms}"/>
    <Url type="application/rss+xml" template="http://x.test/r?q={searchTerms}&amp;p={startPage?}&amp;n={count?}"/>
    </OpenSearchDescription>"""
    leads = read_description(body, "http://x.test/osd.xml")
    assert [lead.template for lead in leads] == [
        "http://x.test/r?q={searchTerms}&p={page}&n={count}",
        "http://x.test/s?q={searchTerms}&l=*",
    ]
    assert filled(leads[0].template, "new york", 2) == "http://x.test/r?q=new+york&p=3&n=20"


@pytest.mark.parametrize(
    "target",
    ['"https://x.test/?s={search_term_string}"', '{"@type":"EntryPoint","urlTemplate":"/find/{query}"}'],
)
def test_search_actions(target: str) -> None:
    html = (
        '<script type="application/ld+json">{"@graph":[{"@type":"WebSite","potentialAction":[{"@type":"SearchAction",'
        f'"target":{target},"query-input":"required name=x"}}]}}]}}</script>'
    )
    (lead,) = search_actions(html, "https://x.test/")
    assert lead.template in ("https://x.test/?s={searchTerms}", "https://x.test/find/{searchTerms}")


def test_engines_by_their_fingerprints() -> None:
    def kinds(head: str) -> set[str]:
        return {lead.kind for lead in engine_leads(f"<html><head>{head}</head></html>", "https://x.test/docs/")}

    assert kinds('<link rel="https://api.w.org/" href="https://x.test/wp-json/">') == {"wordpress"}
    assert kinds('<meta name=generator content="MediaWiki 1.41">') == {"mediawiki"}
    assert kinds('<meta name=generator content="Discourse 3">') == {"discourse"}
    assert kinds('<meta name=Generator content="Drupal 10 (https://www.drupal.org)">') == {"drupal"}
    assert kinds('<script src="_static/searchtools.js"></script>') == {"sphinx"}
    assert kinds('<meta name=generator content="mkdocs-1.5">') == {"mkdocs"}
    assert kinds('<meta name=generator content="Hugo 0.120">') == {"lunr"}
    assert kinds("") == set()


def test_index_files() -> None:
    sphinx = read_sphinx(
        b'Search.setIndex({"docnames":["a/b"],"titles":["A B"],"terms":{"paris":0,"rome":[0]}})',
        "http://x.test/searchindex.js",
    )
    assert (sphinx[0].url, sphinx[0].title, sphinx[0].snippet) == ("http://x.test/a/b.html", "A B", "paris rome")
    documents = read_documents(
        b'{"docs":[{"location":"a/","title":"A","text":"one"},{"location":"a/#s","title":"S","text":"two"}]}',
        "http://x.test/p/search/search_index.json",
    )
    assert [(entry.url, entry.title, entry.snippet) for entry in documents] == [("http://x.test/p/a/", "A", "one two")]
    hugo = read_documents(b'[{"permalink":"http://x.test/h","title":"H","summary":"s"}]', "http://x.test/index.json")
    assert hugo[0].url == "http://x.test/h"
    entries, more = read_sitemap(
        b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://x.test/2020/paris-museums.html</loc>'
        b"</url><url><loc>http://stranger.example/a</loc></url></urlset>",
        "http://x.test/sitemap.xml",
    )
    assert [entry.title for entry in entries] == ["paris museums"]
    assert more == []
    assert slug_words("http://x.test/node/17") == "node"


def results_page(hits: int, word: str = "paris") -> str:
    items = "".join(f"<li><a href=/d{n}>Page {n} about {word}</a> words around {word}</li>" for n in range(hits))
    return f"<html><body><nav><a href=/>Home</a></nav><ol>{items}</ol></body></html>"


def test_another_option_of_a_select_is_tried_if_the_default_finds_nothing() -> None:
    form = (
        "<form action=/search role=search><select name=in><option value=shop selected>Shop<option value=help>Help"
        "<option value=x>All of the site</select><input type=search name=q></form>"
    )
    access = Pages(
        {
            "/": f"<html><body>{form}<p>many different articles about travelling</p></body></html>",
            **{
                f"/search?in=shop&q={word}": results_page(0)
                for word in ("paris", "zqnonsense", "travelling", "different")
            },
            "/search?in=x&q=zqnonsense": results_page(0),
            "/search?in=x&q=paris": results_page(4),
        }
    )
    opening = run_sequence(open_site("http://x.test/", "paris", "zqnonsense", 0.0), access)
    assert opening.channel.form is not None
    assert opening.channel.form.fields["in"] == "x"  # "All" comes before "Help"
    assert len(opening.first.results) == 4


def test_a_site_without_a_search_costs_few_requests_and_none_twice() -> None:
    form = "<form action='/search'><input type=search name=q></form>"
    links = "".join(f"<a href=/a{n}>article {n} of this site</a>" for n in range(9))
    same = f"<html><body>{form}<p>nothing was found about anything here</p>{links}</body></html>"

    class Alike(Pages):
        def _one(self, url: str) -> SiteResponse:
            if url.endswith("sitemap.xml"):
                return SiteResponse(url, 404, "", b"")
            return SiteResponse(url, 200, "text/html", same.encode())

    access = Alike({})
    opening = run_sequence(open_site("http://x.test/", "paris", "zqnonsense", 5.0), access)
    asked = [ask.url for ask in access.asked]
    assert opening.channel.kind == "links"
    assert len(asked) == len(set(asked))
    assert len(asked) <= 10
    access.asked.clear()
    again = run_sequence(open_site("http://x.test/", "paris", "zqother", 6.0, opening.channel), access)
    assert [ask.url for ask in access.asked] == ["http://x.test/"]  # what was learned holds until it expires
    assert again.channel == opening.channel


def test_a_home_page_out_of_reach_teaches_nothing() -> None:
    opening = run_sequence(open_site("http://x.test/", "paris", "zqnonsense", 5.0), Pages({}))
    assert opening.channel.learned_at == 0.0
