"""A crawl without an end on the fake web, days passing in seconds: it keeps up, and can be steered and asked."""

from __future__ import annotations

import threading
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from xxhash import xxh3_128_digest

from quadloom.crawling.run.control import Value, ask
from quadloom.crawling.run.explain import Why
from quadloom.model.outcome import Outcome
from quadloom.settings import CrawlSettings, FreshnessSettings, GuardSettings, PolitenessSettings, Settings
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeRequest, FakeWeb, FakeWebServer, WebSpec, serve_in_process

SPEC = WebSpec(seed=3, pages=60, hosts=4, scale=0.1, links=16, traps=False, slow_seconds=0.0, crawl_delay=0.0)


_STANDING = """PREFIX ql: <urn:quadloom:> SELECT ?page ?low ?high { GRAPH ql:pages {
  ?page ql:importance ?i ; ql:usefulness ?u ; ql:nextVisit ?v ; ql:changesPerDay ?rate ; ql:changesPerDayLow ?low ;
        ql:changesPerDayHigh ?high FILTER(?i > 0 && ?rate > 0) } }"""


def settings_for(serving: FakeWebServer) -> Settings:
    return Settings(
        crawl=CrawlSettings(
            contact="test@quadloom.invalid", scope="any", workers=1, batch_seconds=0.1, max_seconds=300.0,
            guided_share=0.0,  # so that some PDFs are read before the scope excludes them
        ),
        politeness=PolitenessSettings(
            delay=0.0, ip_delay=0.0, per_site=8, adaptive=0.0, retries=1, backoff=0.2, max_backoff=0.5,
            max_crawl_delay=0.0,
        ),
        freshness=FreshnessSettings(
            bandwidth=120.0, min_interval="1s", max_interval="4s", prior_interval="3s", importance_every="3s",
        ),
        guard=GuardSettings(allow=["127.0.0.0/8"], hosts=serving.web.hosts_override()),
    )  # fmt: skip


class Steering(threading.Thread):
    """Another process's wishes, when a page that they exclude has been read."""

    def __init__(self, warehouse: Path, seed: str) -> None:
        super().__init__(daemon=True)
        self.may_begin = threading.Event()
        self._warehouse, self._seed = warehouse, seed
        self.answers: dict[str, Value | None] = {}

    def run(self) -> None:
        self.may_begin.wait()
        for verb, arguments in (
            ("why", {"url": self._seed}),
            ("refresh", {"urls": [self._seed]}),
            ("scope", {"rules": {"exclude": ["*.pdf"]}}),
            ("freshness", {"suspect_share": 0.1, "chi": 2.0}),
        ):
            self.answers[verb] = ask(self._warehouse, verb, **arguments)  # JSON


def _is_ranked(warehouse: Warehouse, url: str) -> bool:
    return warehouse.requests.why(url).reasons[-1].value != "not ranked yet"


def test_it_keeps_up_and_can_be_steered(tmp_path: Path) -> None:
    with serve_in_process(FakeWeb(SPEC), log=tmp_path / "requests.jsonl") as serving:
        seed = serving.web.seeds[0]
        with Warehouse.open(tmp_path / "w", settings=settings_for(serving)) as warehouse:
            running = warehouse.crawl(serving.web.seeds, forever=True)
            steering = Steering(tmp_path / "w", seed)
            steering.start()
            outcomes, turned, revision = Counter[str](), time.time(), 0
            read, read_since = set[str](), set[str]()
            for settlement in running:
                href = settlement.visit.href
                outcomes[str(settlement.outcome)] += 1
                read_since.add(href)
                if href.endswith(".pdf"):
                    steering.may_begin.set()
                elif settlement.outcome in (Outcome.NEW, Outcome.CHANGED, Outcome.UNCHANGED):
                    read.add(href)
                if revision < 3 and time.time() - turned > 2.0:
                    revision, turned = revision + 1, time.time()
                    serving.turn(revision=4 * revision)
                    read_since.clear()
                done = revision == 3 and time.time() - turned > 8.0 and read <= read_since and not steering.is_alive()
                if done and _is_ranked(warehouse, seed):  # by another process, which a busy machine starts late
                    break
            steering.join(timeout=60.0)
            explained = warehouse.requests.why(seed)
            standing = warehouse.stores.quads.query(_STANDING)
            pdfs = [row for row in warehouse.stores.catalog.scan(limit=10_000) if row.href.endswith(".pdf")]
            places = [warehouse.stores.frontier.explain(row.key, time.time()) for row in pdfs]
        behind, compared = _behind(serving, tmp_path / "w")
    assert outcomes["changed"] >= 10 and outcomes["unchanged"] > 3 * outcomes["new"], outcomes
    assert compared > 100 and not behind, "pages whose newest version was not read"
    assert steering.answers["refresh"] == 1
    rows = msgspec.json.decode(standing)["results"]["bindings"]
    assert len(rows) > 20 and all(float(row["high"]["value"]) > float(row["low"]["value"]) for row in rows)
    states = {place.state for place in places if place is not None}
    assert states and states <= {"parked", "done", "dead"}, "one that was being read is not scheduled again"
    share = steering.answers["freshness"]
    assert isinstance(share, dict) and (share["suspect_share"], share["chi"]) == (0.1, 2.0)
    _assert_complete(msgspec.convert(steering.answers["why"], Why))
    _assert_complete(explained)
    assert float(explained.reasons[-1].value) > 0.0, "ranked by now"


def _assert_complete(explained: Why) -> None:
    """Every part of the crawl has its say, with the interval of the change rate and the weight among it."""
    assert {reason.part for reason in explained.reasons} == {
        "scope",
        "robots",
        "frontier",
        "discovery",
        "page",
        "schedule",
        "ranking",
    }
    said = {reason.what: reason.value for reason in explained.reasons if reason.part in ("schedule", "ranking")}
    assert "between" in said["change rate"] and "weight in the last ranking" in said
    assert any(reason.what == "suspicion" for reason in explained.reasons)
    assert {"weight", "price of a read", "period", "next visit", "refresh bandwidth", "gone"} <= said.keys()
    assert all(reason.rule for reason in explained.reasons)


def _behind(serving: FakeWebServer, warehouse: Path) -> tuple[list[str], int]:
    """Pages of the fake web whose present body is not the one that was read last, and how many were compared."""
    stale, compared = [], 0
    with Warehouse.read(warehouse) as reading:
        for row in reading.stores.catalog.scan(limit=10_000):
            parts = urlsplit(row.href)
            answer = serving.web.answer(FakeRequest(parts.netloc, parts._replace(scheme="", netloc="").geturl() or "/"))
            if answer.status == 200 and row.status == 200 and row.outcome is not Outcome.DENIED:  # pictures
                compared += 1
                stale += [row.href] if xxh3_128_digest(answer.body) != row.body_digest else []
    return stale, compared
