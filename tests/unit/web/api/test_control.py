"""Dumps, VoID, metrics, events: what other programs read."""

from __future__ import annotations

import gzip
import hmac
import re
import time
from pathlib import Path

import msgspec
import pyoxigraph as ox
import pytest
from starlette.testclient import TestClient

from quadloom.crawling.run.control import ControlRequest, ControlServer, Value
from quadloom.crawling.subscriptions.standing_queries import FAILURES, StandingQueryFailure
from quadloom.errors import UsageError
from quadloom.model.event import Event, Notice
from quadloom.model.subscription import Subscription
from quadloom.settings import Settings, WebSettings
from quadloom.stores.protocols.outbox import Delivery
from quadloom.warehouse import Warehouse
from quadloom.web.api.events import encode
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from unit.web.web_fixture import BOOK


def quads(data: bytes, format: ox.RdfFormat) -> set[str]:
    return {str(quad) for quad in ox.parse(data, format, lenient=True)}


@pytest.mark.parametrize(("name", "format"), [("trig", ox.RdfFormat.TRIG), ("jsonld", ox.RdfFormat.JSON_LD)])
def test_exports_hold_the_same_quads(client: TestClient, name: str, format: ox.RdfFormat) -> None:
    plain = client.get("/export.nq")
    assert plain.headers["content-type"] == "application/n-quads"
    expected = quads(plain.content, ox.RdfFormat.N_QUADS)
    assert expected and quads(client.get(f"/export.{name}").content, format) == expected
    packed = gzip.decompress(client.get("/export.nq.gz").content)
    assert quads(packed, ox.RdfFormat.N_QUADS) == expected


def test_triple_formats_drop_only_the_graph(client: TestClient) -> None:
    lines = client.get("/export.nq").content
    triples = {str(quad.triple) for quad in ox.parse(lines, ox.RdfFormat.N_QUADS, lenient=True)}
    for name, format in (("ttl", ox.RdfFormat.TURTLE), ("nt", ox.RdfFormat.N_TRIPLES)):
        found = {str(quad.triple) for quad in ox.parse(client.get(f"/export.{name}").content, format, lenient=True)}
        assert found == triples


def test_export_of_one_site(client: TestClient) -> None:
    lines = client.get("/export.nq", params={"site": "books.example"}).text.splitlines()
    assert lines and all(line.endswith(f"<{BOOK}> .") for line in lines)
    assert client.get("/export.docx").status_code == 404


def test_void_counts_classes_and_properties(client: TestClient) -> None:
    answer = client.get("/.well-known/void", headers={"accept": "application/n-triples"})
    assert "<http://rdfs.org/ns/void#class> <http://schema.org/Book>" in answer.text
    assert "<http://rdfs.org/ns/void#sparqlEndpoint> <http://127.0.0.1:7272/sparql>" in answer.text


def test_metrics_are_openmetrics(client: TestClient) -> None:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    lines = answer.text.splitlines()
    assert lines[-1] == "# EOF"
    families = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(families) == len(set(families))
    sample = re.compile(r'^[a-z_]+(\{[a-z]+="[^"]*"\})? [0-9.e+-]+$')
    assert all(sample.match(line) for line in lines if not line.startswith("#"))
    assert 'quadloom_pages_by_outcome{outcome="changed"} 1' in lines


def test_health(client: TestClient) -> None:
    assert client.get("/health/live").json() == {"ok": True, "state": "live"}
    deadline = time.monotonic() + 60.0
    while (ready := client.get("/health/ready").json())["crawl"]:  # of another test; it is noticed within a second
        assert time.monotonic() < deadline
    assert ready["stores"]["text"] == 3 and ready["crawl"] is False


def test_an_event_is_one_block() -> None:
    block = encode(Event(7, "settled", 1.5, "http://a.example/\n", {"title": "two\nlines"})).decode()
    assert block.startswith("id: 7\nevent: settled\ndata: {") and block.endswith("}\n\n") and block.count("\n") == 4


class Crawl:
    """A crawl's owner as the site sees it: answers over the real control socket."""

    def __init__(self) -> None:
        self.asked: list[ControlRequest] = []
        self.events = [
            # A page that is stored: the events stay in the site, which other tests look at too.
            Event(number, "settled", 1.0, BOOK, {"status": 200})
            for number in (5, 6, 7)
        ]

    def answer(self, request: ControlRequest) -> Value:
        self.asked.append(request)
        if request.verb == "status":
            workers: list[Value] = [["fetch", 11, 1000, 2.0, 3], ["transform-1", 12, 2000, 8.0, 1]]
            phases: dict[str, Value] = dict.fromkeys(("fetch", "detect", "transform", "index", "extract"), 100)
            cpu: dict[str, Value] = {"fetch": 1.0, "transform": 8.0, "index": 1.0, "settle": 1.0}
            return {
                "pages": 90,
                "phases": phases,
                "cpu": cpu,
                "rates": {"fetch": 10.0, "transform": 10.0},
                "seconds": 10.0,
                "workers": workers,
                "state": "running",
                "frontier": {"queued": 4},
            }
        if request.verb == "events":
            after = request.arguments["after"]
            assert isinstance(after, int)
            return [msgspec.to_builtins(event) for event in self.events if event.id > after]
        if request.verb == "stop":
            raise UsageError("not today", hint="tomorrow")
        return request.verb


def said(crawl: Crawl, verb: str) -> dict[str, object]:
    return next(request.arguments for request in reversed(crawl.asked) if request.verb == verb)


def test_a_live_crawl_is_followed_and_steered(warehouse_path: Path, token: str) -> None:
    crawl = Crawl()
    server = ControlServer(warehouse_path, crawl.answer)
    site = SiteState(warehouse_path, Settings(web=WebSettings(rate=0)), may_control=True)
    try:
        with TestClient(create_app(site), base_url="http://localhost", follow_redirects=False) as client:
            monitor = client.get("/monitor.json").json()
            assert monitor["running"] and monitor["workers"][-1]["memory"] == 3000
            assert monitor["balance"]["bottleneck"] == "transform"
            stream = client.get("/events?once=1").text
            assert stream.count("event: settled") == 3
            resumed = client.get("/events?once=1", headers={"last-event-id": "6"}).text
            assert re.findall(r"^id: (\d+)$", resumed, re.M) == ["7"]
            assert "id:" not in client.get("/events?once=1&kinds=finding").text
            assert client.get("/events?after=x").status_code == 400
            assert "quadloom_phase_pages_total" in client.get("/metrics").text
            assert "expected" in monitor
            page = client.get("/monitor", headers={"accept": "text/html"}).text
            assert "bottleneck" in page and "total of 2" in page
            head = {"authorization": f"Bearer {token}"}
            assert client.post("/control/pause", headers=head).json() == {"ok": True, "answer": "pause"}
            assert client.post("/control/dance", headers=head).status_code == 404
            client.post("/publish", json={"urls": ["http://a.example/new"]}, headers=head)
            assert said(crawl, "publish") == {"urls": ["http://a.example/new"], "owner": True}
            stated = {"urls": ["http://a.example/new"], "changefreq": "weekly"}
            client.post("/publish", json=stated, headers=head)
            assert said(crawl, "publish") == {**stated, "owner": True}
            client.post("/publish", json={"sitemap": "http://a.example/sitemap.xml"}, headers=head)
            assert said(crawl, "publish") == {"sitemap": "http://a.example/sitemap.xml", "owner": True}
            for wrong, status in (
                ({"sitemap": 7}, 400),
                ({"urls": "x"}, 400),
                ({"urls": ["x"] * 1001}, 413),
                ([], 400),
            ):
                refused = client.post("/publish", json=wrong, headers=head)
                assert refused.status_code == status and refused.json()["hint"]
            assert client.post("/publish", json={"urls": ["http://a.example/"]}).status_code == 401
            client.post("/subscriptions", json={"urls": ["http://a.example/"]}, headers=head)
            assert said(crawl, "subscribe").keys() == {"id", "created_at", "urls"}
            client.request("DELETE", "/subscriptions", json={"id": "x"}, headers=head)
            assert said(crawl, "unsubscribe") == {"id": "x"}
            assert client.get("/websub/hub1?hub.mode=subscribe&hub.challenge=c").status_code == 200
            assert said(crawl, "websub")["query"] == {"hub.mode": "subscribe", "hub.challenge": "c"}
            right = "sha256=" + hmac.new(b"hush", b"news", "sha256").hexdigest()
            assert client.post("/websub/hub1", content=b"news", headers={"x-hub-signature": right}).status_code == 202
            assert said(crawl, "websub") == {"id": "hub1", "verifies": False, "body": "bmV3cw==", "signature": right}
            before = sum(request.verb == "websub" for request in crawl.asked)
            assert client.get("/websub/strange").status_code == 404
            assert client.post("/websub/strange", content=b"news").status_code == 410, "a hub then forgets us"
            wrong = {"x-hub-signature": "sha256=" + "0" * 64}
            assert client.post("/websub/hub1", content=bytes(1 << 20), headers=wrong).status_code == 202
            after = sum(request.verb == "websub" for request in crawl.asked)
            assert after == before, "what no hub has signed does not reach the crawl"
            refused = client.post("/control/stop", headers=head)
            assert refused.status_code == 400 and refused.json()["error"] == "not today"
            client.post("/control/scope", json={"exclude": ["*/private/*"]}, headers=head)
            assert said(crawl, "scope") == {"rules": {"exclude": ["*/private/*"]}, "remove": False}
            client.post("/control/freshness", json={"suspect_share": 0.6, "chi": 2.0}, headers=head)
            assert said(crawl, "freshness") == {"suspect_share": 0.6, "chi": 2.0}
            client.post("/control/freshness", data={"bandwidth": "7.5", "policy": "xyleme", "chi": ""}, headers=head)
            assert said(crawl, "freshness") == {"bandwidth": 7.5, "policy": "xyleme"}
            for wrong_share in ({"share": 1}, {"chi": "much"}):
                assert client.post("/control/freshness", json=wrong_share, headers=head).status_code == 400
            client.post("/control/recrawl", json={"site": "a.example", "older_than": "1h"}, headers=head)
            assert said(crawl, "refresh").keys() == {"site", "read_before"}
            assert client.post("/control/recrawl", json={"older_than": "soon"}, headers=head).status_code == 400
            assert client.post("/control/scope", json={}, headers=head).status_code == 400
            assert client.post("/publish", json={"urls": []}, headers=head).status_code == 400
            form = client.post("/control/seeds", data={"urls": "http://a.example/"}, headers=head)
            assert form.status_code == 303 and form.headers["location"] == "/monitor"
    finally:
        server.close()


def test_changes_are_a_feed_and_json(client: TestClient) -> None:
    feed = client.get("/changes.atom")
    assert feed.headers["content-type"].startswith("application/atom+xml") and "<feed" in feed.text
    assert client.get("/changes.json", params={"since": 5}).json() == {"ok": True, "notices": []}
    assert client.get("/changes.json", params={"since": "x"}).status_code == 400


def test_notices_are_streamed_and_the_feed_has_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "warehouse"
    with Warehouse.open(path) as warehouse:
        warehouse.stores.outbox.append(
            [
                Notice(
                    at=float(n), subscription="even" if n % 2 == 0 else "odd", kind="new", url=f"http://a.example/{n}"
                )
                for n in range(1, 501)
            ]
        )
    public = "https://data.example/"
    site = SiteState(path, Settings(web=WebSettings(rate=0, public_url=public)))
    with TestClient(create_app(site), base_url="https://data.example", follow_redirects=False) as client:
        feed = client.get("/changes.atom").text
        assert f"<id>{public}changes.atom#500</id>" in feed and "#301</id>" in feed and "#300</id>" not in feed
        odd = re.findall(r"#(\d+)</id>", client.get("/changes.atom?subscription=odd").text)
        assert odd == [str(n) for n in range(499, 99, -2)]
        assert "#3</id>" in client.get("/changes.atom?since=2").text
        stream = client.get("/changes/events?once=1&since=497").text
        assert re.findall(r"^id: (\d+)$", stream, re.M) == ["498", "499", "500"]
        assert stream.count("event: notice") == 3 and '"url":"http://a.example/499"' in stream
        resumed = client.get("/changes/events?once=1", headers={"last-event-id": "499"}).text
        assert re.findall(r"^id: (\d+)$", resumed, re.M) == ["500"]
        assert "id:" not in client.get("/changes/events?once=1").text, "without an id, those to come"
        assert client.get("/changes/events?since=x").status_code == 400


def test_a_failing_subscription_says_so_but_not_where_its_webhook_is(tmp_path: Path) -> None:
    path, hook = tmp_path / "warehouse", "https://hook.example/secret-path"
    with Warehouse.open(path) as warehouse:
        warehouse.subscriptions.add(Subscription(id="fine", sites=("a.example",)))
        warehouse.subscriptions.add(Subscription(id="deaf", sites=("a.example",), webhook=hook))
        warehouse.stores.outbox.put_delivery(
            Delivery(subscription="deaf", attempts=3, retry_at=60.0, error=f"{hook}: refused", lost=2)
        )
        warehouse.subscriptions.add(Subscription(id="slow", query="ASK {}"))
        FAILURES.put(warehouse.stores.catalog, "slow", StandingQueryFailure(0.0, 2, 120.0, "ended after 30 seconds"))
    with TestClient(
        create_app(SiteState(path, Settings(web=WebSettings(rate=0)))), base_url="http://localhost"
    ) as client:
        found = client.get("/subscriptions.json")
        page = client.get("/subscriptions", headers={"accept": "text/html"}).text
    states = {item["id"]: item["state"] for item in found.json()["subscriptions"]}
    assert states["fine"] == "ok"
    assert "webhook fails, next try 1970-01-01 00:01:00 UTC" in states["deaf"] and "2 notices lost" in states["deaf"]
    assert "query has failed since 1970-01-01 00:00:00 UTC" in states["slow"] and "ended after 30 seconds" in page
    assert "hook.example" not in found.text + page
