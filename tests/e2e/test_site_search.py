"""An ordinary crawl that asks the search of its sites: pages that no page links to, within bounds and politely."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs

import msgspec
import pytest
from msgspec.structs import replace
from test_topic import DELAY, TopicServer, topic_server

from postgres_server import postgres
from quadloom.crawling.ingest.traps.filter import read_traps
from quadloom.crawling.topical.site_search import SEARCHED
from quadloom.model.outcome import READ_OUTCOMES
from quadloom.settings import (
    CrawlSettings,
    FreshnessSettings,
    GuardSettings,
    PolitenessSettings,
    Settings,
    StoreSettings,
)
from quadloom.warehouse import Warehouse
from quadloom_lab.topical.sites import SitePlan

BUDGET = 60
SEARCHABLE = ("form", "post-form", "wordpress")


def settings(budget: int) -> Settings:
    return Settings(
        crawl=CrawlSettings(
            contact="test@example.org", scope="host", workers=1, max_wait=1.0, batch_seconds=0.05, site_search=budget,
            sitemaps=False,
        ),
        politeness=PolitenessSettings(delay=DELAY, ip_delay=0.0, adaptive=0.0, retries=0),
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts={"*.known.test": "127.0.0.1"}),
    )  # fmt: skip


def chosen(server: TopicServer) -> list[SitePlan]:
    return [plan for plan in server.plans if plan.search in SEARCHABLE]


def homes(plans: list[SitePlan]) -> list[str]:
    return [f"http://{plan.host}/" for plan in plans]


def orphans(plans: list[SitePlan]) -> set[str]:
    return {f"http://{plan.host}{page.path}" for plan in plans for page in plan.documents if page.orphan}


def read(warehouse: Warehouse) -> set[str]:
    return {row.href for row in warehouse.stores.catalog.scan(limit=100_000) if row.outcome in READ_OUTCOMES}


def test_pages_without_in_links_are_found_by_asking(tmp_path: Path) -> None:
    with topic_server() as server:
        plans = chosen(server)
        hidden = orphans(plans)
        assert len(plans) == len(SEARCHABLE) and len(hidden) > 10
        with Warehouse.open(tmp_path / "plain", settings=settings(0)) as warehouse:
            for _ in warehouse.crawl(homes(plans)):
                pass
            assert not read(warehouse) & hidden
        server.log.clear()
        with Warehouse.open(tmp_path / "asking", settings=settings(BUDGET)) as warehouse:
            for _ in warehouse.crawl(homes(plans)):
                pass
            found = read(warehouse) & hidden
            rounds = dict(SEARCHED.items(warehouse.stores.catalog))
            kinds = {row.link_kind for row in warehouse.stores.catalog.scan(limit=100_000) if row.href in found}
        assert len(found) >= 0.6 * len(hidden), f"{len(found)} of {len(hidden)}"
        assert kinds == {"result"}
        assert rounds.keys() == {plan.host for plan in plans}
        for plan in plans:
            assert 2 <= rounds[plan.host].requests <= BUDGET
            times = [at for at, host, _, path in server.log if host == plan.host and path != "/robots.txt"]
            assert min(after - before for before, after in pairwise(times)) > 0.5 * DELAY, "searches take turns"
        server.log.clear()
        with Warehouse.open(tmp_path / "asking", settings=settings(BUDGET)) as warehouse:
            for _ in warehouse.crawl():
                pass
        assert not server.log, "asked once, and not by every crawl"


@pytest.mark.cluster
def test_a_worker_asks_the_searches_of_its_own_shards(tmp_path: Path) -> None:
    with topic_server() as server:
        plans = chosen(server)
        hidden = orphans(plans)
        shared = replace(
            settings(BUDGET),
            stores=StoreSettings(
                frontier=postgres().url(),
                catalog="postgresql:",
                text="postgresql:",
                archive=f"warc://{tmp_path}/archive",
            ),
        )
        with Warehouse.open(tmp_path / "one", settings=shared) as warehouse:
            for _ in warehouse.crawl(homes(plans)):
                pass
            found = read(warehouse) & hidden
            rounds = dict(SEARCHED.items(warehouse.stores.catalog))
        assert len(found) >= 0.6 * len(hidden), f"{len(found)} of {len(hidden)}"
        assert rounds.keys() == {plan.host for plan in plans}
        for plan in plans:
            assert 2 <= rounds[plan.host].requests <= BUDGET
            times = [at for at, host, _, path in server.log if host == plan.host and path != "/robots.txt"]
            assert min(after - before for before, after in pairwise(times)) > 0.5 * DELAY, "searches take turns"


def test_robots_and_scope_hold_for_searches(tmp_path: Path) -> None:
    with topic_server() as server:
        plan = next(plan for plan in server.plans if plan.search == "form")
        server.robots = b"User-agent: *\nDisallow: /*?\n"
        with Warehouse.open(tmp_path / "w", settings=settings(BUDGET)) as warehouse:
            for _ in warehouse.crawl(homes([plan])):
                pass
        assert {host for _, host, _, _ in server.log} == {plan.host}
        assert not [path for _, _, _, path in server.log if "?" in path]


def test_a_crawl_without_an_end_asks_within_the_share_of_topics(tmp_path: Path) -> None:
    with topic_server() as server:
        plans = chosen(server)[:1]
        hidden = orphans(plans)
        chosen_settings = msgspec.structs.replace(
            settings(20), freshness=FreshnessSettings(bandwidth=40.0, min_interval="1h")
        )
        with Warehouse.open(tmp_path / "w", settings=chosen_settings) as warehouse:
            running = warehouse.crawl(homes(plans), forever=True)
            for settlement in running:
                if settlement.visit.href in hidden:
                    running.stop()
            assert read(warehouse) & hidden


class _TrapSite(BaseHTTPRequestHandler):
    """Its search shows a hidden page, and the same pages with a new session for every query."""

    asked: list[str] = []

    def log_message(self, format: str, *arguments: object) -> None: ...

    def do_GET(self) -> None:
        self.asked.append(self.path)
        path, _, query = self.path.partition("?")
        words = parse_qs(query).get("q", [""])[0]
        body = "<title>Lighthouse keepers</title><form action='/find' role=search><input name=q type=search></form>"
        if path == "/find" and words in ("lighthouse", "keepers", "hidden"):
            sessions = (f"/page{n};jsessionid={abs(hash((words, n))):032x}" for n in range(12))
            body += "".join(f"<li><a href='{url}'>Hidden {words} page</a> text</li>" for url in ("/hidden", *sessions))
        elif path == "/":
            body += "<p>All about lighthouse keepers and lighthouse lamps.</p>"
        status = 200 if path in ("/", "/find", "/hidden") or path.startswith("/page") else 404
        data = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def test_results_go_through_the_filter_of_traps(tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _TrapSite)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        polite = replace(settings(20), politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, retries=0))
        with Warehouse.open(tmp_path, settings=polite) as warehouse:
            for _ in warehouse.crawl([f"http://127.0.0.1:{server.server_address[1]}/"]):
                pass
            traps = read_traps(warehouse.stores.catalog)
    finally:
        server.shutdown()
        server.server_close()
    assert "/hidden" in _TrapSite.asked
    assert not [path for path in _TrapSite.asked if "jsessionid" in path]
    assert ["session id" in trap.reason for trap in traps] == [True]
