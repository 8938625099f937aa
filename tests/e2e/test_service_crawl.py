"""A crawl whose pages are read by a service: statements arrive, and the load of its instances is in the report."""

from __future__ import annotations

from pathlib import Path

import msgspec

from quadloom.crawling.run.report import CrawlReport
from quadloom.model.service import InstanceLoad
from quadloom.settings import CrawlSettings, GuardSettings, PolitenessSettings, ServiceSettings, Settings
from quadloom.warehouse import Warehouse
from quadloom.web.api.metrics import _Figures, crawl_lines
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from service_server import running

WORDS = "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s <http://vocab.example/bytes> ?o } }"


def test_a_crawl_asks_its_services_and_reports_their_load(tmp_path: Path) -> None:
    def count(_headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        return 200, "text/turtle", f"<> <http://vocab.example/bytes> {len(body)} .".encode()

    spec = WebSpec(seed=3, pages=30, hosts=3, traps=False, faults=False, slow_seconds=0.0, crawl_delay=0.0)
    with running(count) as one, running(count) as two, serve_in_process(FakeWeb(spec)) as serving:
        settings = Settings(
            crawl=CrawlSettings(contact="a@b.example", scope="any", workers=1, max_wait=0.5),
            politeness=PolitenessSettings(delay=0.0, ip_delay=0.0, per_site=8, adaptive=0.0),
            guard=GuardSettings(allow=["127.0.0.0/8"], hosts=serving.web.hosts_override()),
            service=[ServiceSettings(url=f"{one.url} {two.url}", kinds=["html"], timeout=60.0)],
        )
        reports: list[CrawlReport] = []
        with Warehouse.open(tmp_path / "w", settings=settings) as warehouse:
            crawl = warehouse.crawl(serving.web.seeds)
            for _ in crawl:
                reports.append(crawl.report())
            kinds = warehouse.stores.catalog.counts()
            answer = list(warehouse.sparql(WORDS))
        asked = len(one.requests) + len(two.requests)
    assert asked == kinds["kind:html"] > 20
    assert str(asked) in str(answer[0])
    loads = next(report.services for report in reversed(reports) if report.services)
    assert {load.url for load in loads} == {one.url, two.url}
    assert sum(load.requests for load in loads) > 0
    names = {beat.name for report in reports for beat in report.workers}
    assert names == {"fetch", "transform-0", "services"}


def test_metrics_have_each_instance_without_its_password() -> None:
    load = InstanceLoad("http://me:secret@127.0.0.1:9001/", requests=7, in_progress=2, mean_seconds=0.25, failures=1)
    report = msgspec.to_builtins(CrawlReport(services=[load]))
    lines = list(crawl_lines(msgspec.convert(report, _Figures)))
    assert 'quadloom_service_requests_total{instance="http://me:***@127.0.0.1:9001/"} 7' in lines
    assert 'quadloom_service_failures_total{instance="http://me:***@127.0.0.1:9001/"} 1' in lines
    assert 'quadloom_service_in_progress{instance="http://me:***@127.0.0.1:9001/"} 2' in lines
    assert 'quadloom_service_seconds{instance="http://me:***@127.0.0.1:9001/"} 0.25' in lines
