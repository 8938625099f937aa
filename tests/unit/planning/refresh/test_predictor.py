"""Suspects in the crawl: new URLs are classified by what first reads have found, and that is saved."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from quadloom.crawling.run.explain import why
from quadloom.model.link import Discovery, LinkKind
from quadloom.model.outcome import Outcome, PageRow, Settlement
from quadloom.model.url import fingerprint, host_of
from quadloom.model.visit import Visit
from quadloom.planning.refresh.predictor import DataPredictor
from quadloom.planning.refresh.scheduler import RefreshScheduler
from quadloom.planning.refresh.state import schedule_of
from quadloom.planning.scope import Scope, ScopeRecord
from quadloom.settings import Settings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.protocols.frontier import Quota
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.schema import SCHEMA

START = 1_700_000_000.0
HUB = "https://a.example/"


class Crawled:
    """A catalog, a frontier and the schedule over them."""

    def __init__(self, folder: Path) -> None:
        database = SqliteDatabase.open(folder / "q.db", SCHEMA)
        self.catalog = SqliteCatalog(database)
        self.frontier = SqliteFrontier(database, FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=999), now=START)
        self.scheduler = RefreshScheduler(self.catalog, self.frontier, Settings())

    def read(self, *visits: Visit, kind: str, links: tuple[Discovery, ...] = ()) -> list[Settlement]:
        """First reads that found pages of this kind."""
        settlements = [Settlement(visit, Outcome.NEW, _row(visit, kind), None, links) for visit in visits]
        planned = self.scheduler.plan(settlements, {}, START)
        with self.catalog.transaction():
            self.frontier.settle(planned, START)
            self.catalog.record(planned, START)
            self.scheduler.write(START)
        self.scheduler.committed()
        return planned


@pytest.fixture
def crawled(tmp_path: Path) -> Crawled:
    return Crawled(tmp_path)


def _row(visit: Visit, kind: str) -> PageRow:
    return PageRow(
        fingerprint=visit.fingerprint,
        key=visit.key,
        href=visit.href,
        host=visit.host,
        fetched_at=START,
        kind=kind,
        quads_digest=b"q",
    )


def visit(url: str, kind: LinkKind = "plain", via: int = 0) -> Visit:
    return Visit(url, url, host_of(url), fingerprint(url), 1, deadline=START + 600.0, kind=kind, via=via)


def link(url: str, kind: LinkKind = "plain", priority: int = 3) -> Discovery:
    return Discovery(url, url, host_of(url), fingerprint(url), 1, kind, priority)


def priorities(settlement: Settlement) -> dict[str, int]:
    return {found.href.rpartition("/")[2]: found.priority for found in settlement.discoveries}


def test_suspects_are_leased_from_their_own_share(crawled: Crawled) -> None:
    found = (
        link(HUB + "x.ttl"),
        link(HUB + "page"),
        link(HUB + "news", "feed"),
        link(HUB + "a.jpg"),
        link(HUB + "pushed", "published", 1),
    )
    (planned,) = crawled.read(visit(HUB), kind="html", links=found)
    assert priorities(planned) == {"x.ttl": 2, "page": 3, "news": 2, "a.jpg": 3, "pushed": 1}
    leased = crawled.frontier.lease(10, START + 1.0, quota=Quota(suspects=10))
    assert {item.href for item in leased} == {HUB + "x.ttl", HUB + "news", HUB + "pushed"}


def test_an_unknown_suffix_is_a_suspect_where_data_links_to_it(crawled: Crawled) -> None:
    (planned,) = crawled.read(visit(HUB + "graph"), kind="turtle", links=(link(HUB + "thing"), link(HUB + "a.jpg")))
    assert priorities(planned) == {"thing": 2, "a.jpg": 3}


def test_the_crawl_learns_from_first_reads_and_remembers_it_after_a_restart(crawled: Crawled) -> None:
    (before,) = crawled.read(visit(HUB), kind="html", links=(link(HUB + "d/1"),))
    crawled.read(*(visit(f"{HUB}record/{n}") for n in range(60)), kind="rdfxml")
    crawled.read(*(visit(f"https://b.example/{n}.xml") for n in range(60)), kind="html")
    links = (link(HUB + "d/2"), link("https://b.example/new.xml"), link("https://b.example/new"))
    (after,) = crawled.read(visit(HUB + "again"), kind="html", links=links)
    assert (priorities(before), priorities(after)) == ({"1": 3}, {"2": 2, "new.xml": 3, "new": 3})
    crawled.scheduler.close()
    assert DataPredictor(crawled.catalog).suspects.dump() == crawled.scheduler.predictor.suspects.dump()


def test_the_kind_of_a_source_read_long_ago_is_looked_up(crawled: Crawled) -> None:
    source = visit("https://a.example/graph")
    crawled.read(source, kind="turtle")
    later = DataPredictor(crawled.catalog)
    new = visit(HUB + "thing", via=source.fingerprint)
    later.learn([Settlement(new, Outcome.NEW, _row(new, "jsonld"))])
    assert later.suspects.dump()["from-data:"] == (1.0, 1.0)
    learned = later.suspects.dump()
    later.learn([Settlement(new, outcome, _row(new, "")) for outcome in (Outcome.FAILED, Outcome.GONE)])
    assert later.suspects.dump() == learned, "a page that could not be read is no evidence"


def test_why_shows_the_suspicion_and_its_witnesses(crawled: Crawled) -> None:
    crawled.read(visit(HUB), kind="html", links=(replace(link(HUB + "x.ttl"), via=fingerprint(HUB)),))
    crawled.scheduler.close()
    explained = why(
        HUB + "x.ttl",
        frontier=crawled.frontier,
        catalog=crawled.catalog,
        scope=Scope(ScopeRecord("any")),
        schedule=schedule_of(crawled.catalog, Settings()),
        settings=Settings(),
        now=START,
    )
    facts = {reason.what: (reason.value, reason.rule) for reason in explained.reasons if reason.part == "discovery"}
    assert facts["first found"][0] == HUB
    assert float(facts["suspicion"][0]) > 0.9
    assert all(word in facts["suspicion"][1] for word in ("suffix .ttl 0.97", "link plain 0.18", "site a.example"))


def test_a_classification_costs_little(crawled: Crawled) -> None:
    """Every link of every page is classified; the goal is one microsecond."""
    links = tuple(link(f"https://host{n % 40}.example/path/{n}.html") for n in range(4000))
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        crawled.scheduler.predictor.prioritize(links, from_data=False)
        best = min(best, (time.process_time() - began) / len(links))
    assert best < 2e-6, f"{best * 1e6:.2f} µs a URL"
