"""An ordinary crawl that asks the search of its sites: pages that no page links to, within bounds and politely."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from test_topic import DELAY, TopicServer, topic_server

from quadloom.model.outcome import READ_OUTCOMES
from quadloom.settings import CrawlSettings, FreshnessSettings, GuardSettings, PolitenessSettings, Settings
from quadloom.topical.site_search import SEARCHED
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


@pytest.mark.timeout(300)
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


@pytest.mark.timeout(300)
def test_robots_and_scope_hold_for_searches(tmp_path: Path) -> None:
    with topic_server() as server:
        plan = next(plan for plan in server.plans if plan.search == "form")
        server.robots = b"User-agent: *\nDisallow: /*?\n"
        with Warehouse.open(tmp_path / "w", settings=settings(BUDGET)) as warehouse:
            for _ in warehouse.crawl(homes([plan])):
                pass
        assert {host for _, host, _, _ in server.log} == {plan.host}
        assert not [path for _, _, _, path in server.log if "?" in path]


@pytest.mark.timeout(120)
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
