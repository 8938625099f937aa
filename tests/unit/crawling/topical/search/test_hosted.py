"""Searches that third parties run for a site, against loopback servers with their documented interfaces."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from quadloom.crawling.topical.access import SiteRequest, SiteResponse, run_sequence
from quadloom.crawling.topical.polite_access import PoliteAccess
from quadloom.crawling.topical.search.channels import SearchChannel, open_site, query_channel
from quadloom.crawling.topical.search.hosted import docsearch_leads, read_algolia, site_leads
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.topic import TopicScope, known_channels, remember_channels
from quadloom.settings import CrawlSettings, GuardSettings, PolitenessSettings, Settings, TopicSettings
from quadloom.warehouse import Warehouse

KEY, APPLICATION = "0123456789abcdef0123456789abcdef", "EXAMPLE1AB"
HOME = """<html><body><div id="search"></div><script>docsearch({
  appId: "%s", apiKey: "%s", indexName: 'handbook', container: '#search', debug: false })</script></body></html>"""
RECORDS: list[dict[str, object]] = [
    {
        "url": f"http://docs.test/guide/{n}#part-{part}",
        "content": f"about looms, part {part}",
        "type": "content",
        "hierarchy": {"lvl0": "Guide", "lvl1": f"Chapter {n}", "lvl2": f"Section {part}", "lvl3": None},
        "objectID": f"{n}-{part}",
    }
    for n in range(60)
    for part in range(2)
]
RECORDS.append({"url": "http://elsewhere.test/x", "content": "looms", "hierarchy": {"lvl1": "Not ours"}})


class Services:
    """Algolia, SearXNG, and the site itself, by Host header and path. Records the requests."""

    def __init__(self, home: str = "<html><p>Nothing here</p></html>") -> None:
        self.home = home
        self.log: list[tuple[str, str, str]] = []
        self.times: list[float] = []
        self.robots = "User-agent: *\nDisallow: /search\n"

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> tuple[int, str, bytes]:
        host, path = handler.headers["Host"].partition(":")[0], handler.path
        self.log.append((host, handler.command, path))
        self.times.append(time.monotonic())
        if path == "/robots.txt":
            return (200, "text/plain", self.robots.encode()) if host == "searx.test" else (404, "text/plain", b"")
        if host.endswith("algolia.net"):
            return self._algolia(handler, path, body)
        if host == "searx.test":
            return 200, "application/json", json.dumps(self._searxng(path)).encode()
        return (200, "text/html", self.home.encode()) if path == "/" else (404, "text/plain", b"")

    def _algolia(self, handler: BaseHTTPRequestHandler, path: str, body: bytes) -> tuple[int, str, bytes]:
        if handler.headers["X-Algolia-API-Key"] != KEY or handler.headers["X-Algolia-Application-Id"] != APPLICATION:
            return 403, "application/json", b'{"message": "Invalid Application-ID or API key", "status": 403}'
        assert (handler.command, path) == ("POST", "/1/indexes/handbook/query")
        given = parse_qs(json.loads(body)["params"])
        size, page = int(given["hitsPerPage"][0]), int(given["page"][0])
        hits = [record for record in RECORDS if given["query"][0] in str(record["content"])]
        answer = {
            "hits": hits[page * size :][:size],
            "nbHits": len(hits),
            "page": page,
            "nbPages": -(-len(hits) // size),
        }
        return 200, "application/json; charset=UTF-8", json.dumps(answer).encode()

    def _searxng(self, path: str) -> dict[str, object]:
        given = parse_qs(urlsplit(path).query)
        site, _, words = given["q"][0].partition(" ")
        assert given["format"] == ["json"]
        rows = [{"url": f"http://docs.test/found/{n}", "title": f"Looms {n}", "content": "on looms"} for n in range(3)]
        rows.append({"url": "http://other.test/", "title": "An engine that does not keep to the site", "content": ""})
        return {"results": rows if (site, words) == ("site:docs.test", "looms") and given["pageno"] == ["1"] else []}


@contextmanager
def serving(services: Services) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, kind, answer = services.answer(self, body)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class Rewired:
    """The real access; only scheme and port differ from the internet's, because loopback has no port 443."""

    def __init__(self, access: PoliteAccess, port: int) -> None:
        self._access = access
        self._port = port

    def ask(self, asks: Sequence[SiteRequest]) -> list[SiteResponse | None]:
        def moved(ask: SiteRequest) -> SiteRequest:
            parts = urlsplit(ask.url)
            target = f"http://{parts.hostname}:{self._port}{parts.path}" + (f"?{parts.query}" if parts.query else "")
            return SiteRequest(target, ask.method, ask.fields, ask.purpose, payload=ask.payload, headers=ask.headers)

        return self._access.ask([moved(ask) for ask in asks])


@contextmanager
def access(folder: Path, port: int, delay: float = 0.01, **topic: list[str] | bool) -> Iterator[Rewired]:
    hosts = {"*.test": "127.0.0.1", "*.algolia.net": "127.0.0.1"}
    settings = Settings(
        crawl=CrawlSettings(contact="a@b.example"),
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts=hosts),
        politeness=PolitenessSettings(delay=delay, ip_delay=0.0, adaptive=0.0),
        topic=TopicSettings(**topic),  # type: ignore[arg-type]
    )
    with Warehouse.open(folder / "warehouse", settings=settings) as warehouse:
        scope = TopicScope(settings, [SeedSite(f"http://docs.test:{port}/")], warehouse.stores.catalog)
        services = frozenset({f"searx.test:{port}"}) if topic.get("site_queries") else frozenset()
        polite = PoliteAccess(
            settings, warehouse.stores.frontier.hosts, scope, lambda _brought: None, services=services
        )
        yield Rewired(polite, port)
        polite.close()


@pytest.mark.parametrize(
    "script",
    [
        f"docsearch({{appId: '{APPLICATION}', apiKey: '{KEY}', indexName: 'handbook'}})",
        f'window.__config = {{"algolia":{{"indexName":"handbook","apiKey":"{KEY}","appId":"{APPLICATION}"}}}}',
        f'DocSearch({{\n "app_id": "{APPLICATION}",\n "api_key": "{KEY}",\n "index_name": "handbook" }})',
    ],
)
def test_what_a_page_tells_of_its_docsearch(script: str) -> None:
    (lead,) = docsearch_leads(f"<script>{script}</script>", "http://docs.test/")
    assert lead.template == f"https://{APPLICATION.lower()}-dsn.algolia.net/1/indexes/handbook/query"
    assert dict(lead.headers) == {"X-Algolia-API-Key": KEY, "X-Algolia-Application-Id": APPLICATION}


@pytest.mark.parametrize(
    "script",
    [
        "docsearch({apiKey: 'abc'})",
        f"docsearch({{indexName: 'x', appId: '{APPLICATION}'}})",
        f"var map = {{apiKey: '{KEY}', indexName: 'x'}}",
        f"docsearch({{appId: 'evil-host', apiKey: '{KEY}', indexName: 'x'}})",
    ],
)
def test_too_little_is_no_lead(script: str) -> None:
    assert docsearch_leads(f"<script>{script}</script>", "http://docs.test/") == []


def test_sections_of_a_page_become_one_result() -> None:
    page = read_algolia(json.dumps({"hits": RECORDS[:4], "nbHits": 121}).encode(), "https://x-dsn.algolia.net/")
    assert [(result.url, result.title) for result in page.results] == [
        ("http://docs.test/guide/0", "Chapter 0"), ("http://docs.test/guide/1", "Chapter 1"),
    ]  # fmt: skip
    assert page.results[0].snippet == "Section 0 about looms, part 0 Section 1 about looms, part 1"
    assert page.total == 121
    assert not read_algolia(b"<html>", "https://x/").results


def test_docsearch_is_asked_page_by_page_where_the_user_allows_it(tmp_path: Path) -> None:
    services = Services(HOME % (APPLICATION, KEY))
    with serving(services) as port, access(tmp_path, port, third_parties=["*.algolia.net*"]) as polite:
        opening = run_sequence(open_site(f"http://docs.test:{port}/", "looms", "zqnonsense", 5.0), polite)
        channel = opening.channel
        assert (channel.kind, channel.format) == ("algolia", "algolia")
        assert [result.title for result in opening.first.results][:2] == ["Chapter 0", "Chapter 1"]
        second = run_sequence(query_channel(channel, "looms", 1), polite)
        third = run_sequence(query_channel(channel, "looms", 2), polite)
    assert second is not None
    assert third is not None
    urls = {result.url for page in (opening.first, second, third) for result in page.results}
    assert urls == {f"http://docs.test/guide/{n}" for n in range(60)}  # and none of elsewhere.test


def test_without_leave_nobody_else_is_asked(tmp_path: Path) -> None:
    services = Services()
    with serving(services) as port, access(tmp_path, port) as polite:
        ask = SiteRequest(
            f"https://{APPLICATION.lower()}-dsn.algolia.net/1/indexes/handbook/query", "post", payload=b"{}"
        )
        assert polite.ask([ask]) == [None]
    assert services.log == []


def test_a_site_without_search_is_asked_for_by_site_query(tmp_path: Path) -> None:
    services = Services()
    with serving(services) as port, access(tmp_path, port, site_queries=True) as polite:
        further = site_leads(["searxng:http://searx.test", "file:x", "brave:"], "")("docs.test")
        opening = run_sequence(open_site("http://docs.test/", "looms", "zqnonsense", 5.0, None, further), polite)
        assert opening.channel.kind == "websearch"
        assert [result.url for result in opening.first.results] == [f"http://docs.test/found/{n}" for n in range(3)]
        following = run_sequence(query_channel(opening.channel, "looms", 1), polite)
        assert following is not None
        assert following.results == ()
    assert not [path for host, _, path in services.log if host == "searx.test" and path == "/robots.txt"]


@pytest.mark.parametrize("leave", [{"site_queries": True}, {"third_parties": ["searx.test*"]}])
def test_errands_that_meet_at_one_host_take_turns(tmp_path: Path, leave: dict[str, bool | list[str]]) -> None:
    services = Services()
    services.robots = ""
    address = "http://searx.test/search?q=site%3Adocs.test+looms&format=json&pageno=1"
    with serving(services) as port, access(tmp_path, port, delay=0.3, **leave) as polite:
        answers = polite.ask([SiteRequest(address), SiteRequest(address), SiteRequest(address)])
    assert all(answer is not None and answer.good for answer in answers)
    assert [path for _, _, path in services.log].count("/robots.txt") == ("third_parties" in leave)
    assert min(later - earlier for earlier, later in pairwise(services.times)) > 0.24


def test_keys_of_the_configuration_do_not_reach_the_catalog(tmp_path: Path) -> None:
    (lead,) = site_leads(["brave:"], "secret-key")("docs.test")
    assert dict(lead.headers)["X-Subscription-Token"] == "secret-key"
    hired = SearchChannel(
        "websearch", "http://docs.test/", "brave", lead.template, headers=lead.headers, learned_at=9.0
    )
    public = SearchChannel(
        "algolia", "http://other.test/", "algolia", "https://x/", headers=(("k", "v"),), learned_at=9.0
    )
    with Warehouse.open(tmp_path / "warehouse") as warehouse:
        remember_channels(warehouse.stores.catalog, [hired, public])
        seeds = [SeedSite("http://docs.test/"), SeedSite("http://other.test/")]
        assert known_channels(warehouse.stores.catalog, seeds, 0.0) == {"other.test": public}
