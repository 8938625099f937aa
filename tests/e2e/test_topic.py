"""A topical crawl over HTTP: real servers on loopback, the guarded client, robots.txt, pace, and the warehouse."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from random import Random
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from quadloom.cli.main import run
from quadloom.crawling.topical.relevance import Topic
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.topic import CHANNELS, TOPICS
from quadloom.crawling.topical.watched_topics import WATCHED, WatchedTopic, watch
from quadloom.model.url import Url
from quadloom.settings import FreshnessSettings
from quadloom.settings.loading import load
from quadloom.warehouse import Warehouse
from quadloom_lab.topical.corpus import Corpus
from quadloom_lab.topical.sites import SitePlan, plan_sites
from quadloom_lab.topical.web import TopicalWeb

TOPIC = 3
DELAY = 0.05
KINDS = ("form", "post-form", "opensearch", "wordpress", "mediawiki", "discourse", "mkdocs", "sphinx")


class TopicServer:
    """The simulated web on one port, by Host header, and a SearXNG beside it. Remembers every request. `apart`: each
    site is a registered domain of its own."""

    def __init__(self, *, apart: bool = False) -> None:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                owner.answer(self, "get", [])

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                owner.answer(self, "post", parse_qsl(body, keep_blank_values=True))

            def log_message(self, *_: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.corpus = Corpus(5)
        plans = plan_sites(self.corpus, TOPIC, 1, "known", 20, port=self.port)
        if apart:
            plans = [plan._replace(host=plan.host.replace(".known", "-known")) for plan in plans]
        first: dict[str, SitePlan] = {}
        for plan in plans:
            first.setdefault(plan.search, plan)
        self.plans = [first[kind] for kind in KINDS if kind in first]
        self.web = TopicalWeb(self.plans)
        self.log: list[tuple[float, str, str, str]] = []
        self.robots = b""  # in place of the sites' own
        self._lock = threading.Lock()
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, handler: BaseHTTPRequestHandler, method: str, fields: list[tuple[str, str]]) -> None:
        host = handler.headers["Host"]
        with self._lock:
            self.log.append((time.monotonic(), host, method, handler.path))
            if host.startswith("searx."):
                status, kind, body = 200, "application/json", self._searxng(handler.path)
            else:
                response = self.web.respond(f"http://{host}{handler.path}", method, fields)
                status, kind, body = response.status or 404, response.content_type, response.body
                location = response.location
                body = self.robots if handler.path == "/robots.txt" and self.robots else body
        handler.send_response(status)
        if not host.startswith("searx.") and location:
            handler.send_header("Location", location)
        handler.send_header("Content-Type", kind or "text/plain")
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def _searxng(self, path: str) -> bytes:
        asked = dict(parse_qsl(urlsplit(path).query))
        assert asked["format"] == "json"
        pages = self.web.homes() if asked.get("pageno") == "1" else []
        return json.dumps(
            {"results": [{"url": f"{home}about", "title": "t", "content": "c"} for home in pages]}
        ).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def topic_server() -> Iterator[TopicServer]:
    server = TopicServer()
    try:
        yield server
    finally:
        server.close()


def configured(folder: Path, server: TopicServer) -> list[str]:
    """Options of a command on this server's web, examples written to files."""
    config = folder / "quadloom.toml"
    config.write_text(
        f'[crawl]\ncontact = "test@example.org"\n[politeness]\ndelay = {DELAY}\nip_delay = 0.0\nadaptive = 0.0\n'
        '[guard]\nallow = ["127.0.0.0/8"]\nhosts = { "*.known.test" = "127.0.0.1", "searx.test" = "127.0.0.1" }\n'
        "[index]\ntext_commit_seconds = 0.2\n",
        encoding="utf-8",
    )
    return ["--config", str(config), "-w", str(folder / "data"), "--json"]


def examples(folder: Path, corpus: Corpus) -> list[str]:
    random = Random(9)
    options = []
    for number in range(8):
        for option, topic in (
            ("--example", TOPIC),
            ("--against", random.choice(corpus.siblings(TOPIC))),
            ("--against", 20),
        ):
            text = corpus.text(topic, random)
            file = folder / f"{option[2:]}-{topic}-{number}.txt"
            file.write_text(f"{text.title}\n{text.body}", encoding="utf-8")
            options += [option, str(file)]
    return options


def test_topic_crawl_over_http_is_polite_and_lands_in_the_warehouse(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with topic_server() as server:
        options = configured(tmp_path, server)
        query = (server.corpus.broad_query(TOPIC), server.corpus.narrow_query(TOPIC))
        search = ["--searcher", f"searxng:http://searx.test:{server.port}", "--budget", "160"]
        code = run(["topic", *query, *search, *examples(tmp_path, server.corpus), *options])
        report = json.loads(capsys.readouterr().out)
        truth = {Url.parse(url).key for url in server.web.truth(TOPIC)}
        log = list(server.log)
    assert code == 0
    found = {Url.parse(line["url"]).key for line in report["found"]}
    assert len(found & truth) >= 25
    assert len(found & truth) / len(found) >= 0.8
    assert any(line["isolated"] for line in report["found"])
    check_politeness(log)
    with Warehouse.read(tmp_path / "data") as warehouse:
        for line in report["found"]:
            row = warehouse.stores.catalog.page(Url.parse(line["url"]).fingerprint)
            assert row is not None
            assert row.status == 200
            assert row.link_kind == "result"
        channels = dict(CHANNELS.items(warehouse.stores.catalog))
        assert TOPICS.keys(warehouse.stores.catalog), "the page of topics shows how the crawl went"
        scores = warehouse.stores.quads.query(
            "SELECT ?page ?score { GRAPH ?g { ?page <urn:quadloom:topicScore> ?score } }"
        )
    kinds = {channel.kind for channel in channels.values()}
    assert {"form", "mediawiki", "wordpress"} <= kinds
    scored = {row["page"]["value"] for row in msgspec.json.decode(scores)["results"]["bindings"]}
    assert {line["url"] for line in report["found"]} <= scored


def test_what_a_topical_crawl_reads_is_a_page_like_any_other(tmp_path: Path) -> None:
    """Scheduled, explained, with the home pages, and kept fresh by a crawl without an end, whose scope is elsewhere."""
    with topic_server() as server:
        configured(tmp_path, server)
        loaded = load(config=tmp_path / "quadloom.toml").settings
        settings = msgspec.structs.replace(
            loaded, freshness=FreshnessSettings(min_interval="1s", max_interval="2s", bandwidth=50.0)
        )
        with Warehouse.open(tmp_path / "data", settings=settings) as warehouse:
            narrow = server.corpus.narrow_query(TOPIC)
            homes = server.web.homes()
            report = warehouse.topic(server.corpus.broad_query(TOPIC), narrow, homes, budget=60)
            assert report.documents > 5
            for found in report.found:
                explained = warehouse.requests.why(found.url)
                said = {(reason.part, reason.what): reason for reason in explained.reasons}
                assert explained.state == "waiting" and said["scope", "verdict"].value == "inside"
                assert "UTC" in said["schedule", "next visit"].value
                assert said["page", "found through"].rule == "chosen by a topical crawl"
            stored = [warehouse.stores.catalog.page(Url.parse(home).fingerprint) for home in homes]
            assert sum(row is not None for row in stored) > len(homes) // 2, "home pages are stored, too"
            before = len(server.log)
            missing = {found.url for found in report.found}
            for settlement in warehouse.crawl(
                [f"http://elsewhere.known.test:{server.port}/"], forever=True, max_seconds=90
            ):
                missing.discard(settlement.visit.href)
                if not missing:
                    break
            assert not missing
            asked = {(host, path) for _, host, _, path in server.log[before:] if path != "/robots.txt"}
            known = {(parts.netloc, parts.path) for parts in (urlsplit(found.url) for found in report.found)}
            known |= {(urlsplit(home).netloc, "/") for home in [*homes, f"http://elsewhere.known.test:{server.port}/"]}
            assert {(host, urlsplit(path).path) for host, path in asked} <= known, "their links are not followed"


def test_a_second_crawl_reads_known_pages_again_and_asks_known_channels_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with topic_server() as server:
        options = configured(tmp_path, server)
        sites = tmp_path / "sites.txt"
        sites.write_text("\n".join(server.web.homes()), encoding="utf-8")
        command = [
            "topic",
            server.corpus.narrow_query(TOPIC),  # one word alone is a topic
            "--seeds",
            str(sites),
            "--budget",
            "60",
            *examples(tmp_path, server.corpus),
            *options,
        ]
        assert run(command) == 0
        first = json.loads(capsys.readouterr().out)
        assert run(command) == 0
        second = json.loads(capsys.readouterr().out)
    assert second["purposes"].get("home", 0) < first["purposes"]["home"]
    both = {line["url"] for line in first["found"]} & {line["url"] for line in second["found"]}
    assert both
    with Warehouse.open(tmp_path / "data") as warehouse:
        rows = [warehouse.stores.catalog.page(Url.parse(url).fingerprint) for url in both]
        assert all(row is not None and row.visits == 2 and row.first_seen < row.fetched_at for row in rows)
    assert run(["verify", *options]) == 0


def test_where_robots_forbid_the_search_it_is_not_asked_and_links_remain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with topic_server() as server:
        server.robots = (
            b"User-agent: *\nDisallow: /search\nDisallow: /find\nDisallow: /wp-json\nDisallow: /w/\nDisallow: /feed\n"
        )
        options = configured(tmp_path, server)
        sites = tmp_path / "sites.txt"
        sites.write_text("\n".join(server.web.homes()), encoding="utf-8")
        query = (server.corpus.broad_query(TOPIC), server.corpus.narrow_query(TOPIC))
        run(["topic", *query, "--seeds", str(sites), "--budget", "60", *examples(tmp_path, server.corpus), *options])
        report = json.loads(capsys.readouterr().out)
        paths = {urlsplit(path).path for _, _, _, path in server.log}
    assert not [path for path in paths if path.startswith(("/search", "/find", "/wp-json", "/w/", "/feed"))]
    assert report["refused"]["robots"] > 0
    assert report["documents"] > 0


def check_politeness(log: list[tuple[float, str, str, str]]) -> None:
    """robots.txt first, pauses between requests to a host, nothing disallowed, POST only to the search."""
    by_host: dict[str, list[tuple[float, str, str]]] = defaultdict(list)
    for at, host, method, path in log:
        if not host.startswith("searx."):
            by_host[host].append((at, method, path))
    for requests in by_host.values():
        assert requests[0][2] == "/robots.txt"
        assert all(path not in ("/login", "/subscribe") for _, _, path in requests)
        assert all(path == "/find" for _, method, path in requests if method == "post")
        gaps = [after[0] - before[0] for before, after in pairwise(requests)]
        assert min(gaps, default=1.0) >= DELAY * 0.8


def test_survey_prints_shares_and_keeps_channels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with topic_server() as server:
        options = configured(tmp_path, server)
        sites = tmp_path / "sites.txt"
        homes = server.web.homes()
        sites.write_text("\n".join([*homes[2:], "http://gone.known.test:9/"]), encoding="utf-8")
        shops = tmp_path / "shops.txt"
        shops.write_text("\n".join(homes[:2]), encoding="utf-8")
        assert run(["topic", "survey", str(sites), str(shops), *options]) == 0
        survey = json.loads(capsys.readouterr().out)
        expected = {f"http://{plan.host}/": plan.search for plan in server.plans}
    kinds = {line["home"]: line["kind"] for line in survey["sites"] if line["reached"]}
    for home, search in expected.items():
        assert kinds[home] == {"post-form": "form"}.get(search, search)
    assert len(kinds) == len(expected)
    assert sum(row["sites"] for row in survey["shares"]) == len(expected)
    assert [(row["category"], row["sites"]) for row in survey["categories"]] == [
        ("sites", len(expected) - 2),
        ("shops", 2),
        ("all", len(expected)),
    ]


def test_a_watched_topic_is_served_by_a_crawl_without_an_end_within_its_share(tmp_path: Path) -> None:
    """Rounds find what was not there before, read nothing twice, and share hosts' pace and bandwidth with the crawl."""
    with topic_server() as server:
        configured(tmp_path, server)
        loaded = load(config=tmp_path / "quadloom.toml").settings
        settings = msgspec.structs.replace(
            loaded,
            freshness=FreshnessSettings(min_interval="1h", bandwidth=100.0),
            topic=msgspec.structs.replace(loaded.topic, share=0.4, budget=100),
        )
        homes = server.web.homes()
        wanted = Topic(server.corpus.broad_query(TOPIC), server.corpus.narrow_query(TOPIC))
        with Warehouse.open(tmp_path / "data", settings=settings) as warehouse:
            topic = WatchedTopic(topic=wanted, sites=tuple(map(SeedSite, homes)), every=1.0, budget=100)
            watch(warehouse.stores.catalog, topic)
            for _ in warehouse.crawl([homes[0]], forever=True, max_seconds=100):
                watched = WATCHED.get(warehouse.stores.catalog, topic.name)
                if watched is not None and watched.rounds >= 2:
                    break
            assert watched is not None and watched.rounds >= 2
            assert watched.next_at > 0
            documents = [
                row
                for row in warehouse.stores.catalog.scan(limit=5000)
                if row.link_kind == "result" and urlsplit(row.href).path != "/"
            ]
            assert len(documents) >= 15
            assert [row.href for row in documents if not row.schedule] == []
            # Crawl and round may ask for a page at the same moment, above all on the host that both know.
            crawled = urlsplit(homes[0]).hostname
            assert len([row.href for row in documents if row.visits != 1 and row.host != crawled]) <= 2
            assert len({row.host for row in documents}) >= 3
            scores = warehouse.stores.quads.graph(f"urn:quadloom:topic:{topic.name}")
            assert scores.count(b"topicScore") >= 10
        check_politeness(server.log)


def test_topics_are_watched_listed_and_forgotten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with topic_server() as server:
        options = configured(tmp_path, server)
        sites = tmp_path / "sites.txt"
        sites.write_text(server.web.homes()[0], encoding="utf-8")
        query = server.corpus.narrow_query(TOPIC)
        run(["topic", query, "--seeds", str(sites), "--budget", "10", "--every", "7d", *options])
        capsys.readouterr()
    assert run(["topic", "list", *options]) == 0
    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (line["name"], line["sites"], line["every"], line["rounds"]) == (query, 1, 604800.0, 0)
    assert line["next_at"] > time.time() + 6 * 86400
    assert run(["topic", "remove", query, *options]) == 0
    assert run(["topic", "remove", query, *options]) == 4
