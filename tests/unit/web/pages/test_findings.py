"""`/findings` shows what pages have and what only several pages together show, with the counts of `quadloom audit`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from starlette.testclient import TestClient

from command_line import quadloom
from quadloom.asking.audit.report import AuditReport, TrendPoint
from quadloom.asking.report.crawl_summary import summarise
from quadloom.crawling.ingest.settle import settle_failure
from quadloom.model.page import Failure
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.settings import AuditSettings, LimitSettings, Settings, WebSettings
from quadloom.warehouse import Warehouse
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from quadloom.web.view.charts import trend
from unit.web.web_fixture import store_page

SHOP = "http://shop.example"
MAKER = f"{SHOP}/#maker"
ADA = f"{SHOP}/#ada"
PAGES: dict[str, dict[str, object]] = {
    # One @id with two telephone numbers, of which the pages share none.
    "/a": {"@type": "Organization", "@id": MAKER, "name": "Lux", "telephone": "+43 1", "logo": f"{SHOP}/gone.png"},
    "/b": {"@type": "Organization", "@id": MAKER, "name": "Lux", "telephone": "+43 2", "logo": f"{SHOP}/gone.png"},
    # Several values that all pages share, and one name for each language: no conflicts.
    "/c": {
        "@type": "Person",
        "@id": f"{SHOP}/#ada",
        "telephone": ["1", "2"],
        "name": {"@value": "A", "@language": "en"},
    },
    "/d": {
        "@type": "Person",
        "@id": f"{SHOP}/#ada",
        "telephone": ["2", "3"],
        "name": {"@value": "Б", "@language": "ru"},
    },
    "/e": {"@type": "Product", "name": "Lamp", "nme": "Lamp"},
}


def fail(warehouse: Warehouse, href: str) -> None:
    url = Url.parse(href)
    failure = Failure(url.href, "status", "HTTP 404", False, 1.7e9, status=404)
    gone = settle_failure(Visit(url.href, url.key, url.host, url.fingerprint), failure, None, None, warehouse.settings)
    with warehouse.stores.catalog.transaction():
        warehouse.stores.frontier.settle([gone], 1.7e9)
        warehouse.stores.catalog.record([gone], 1.7e9)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("faulty") / "data"
    with Warehouse.open(path, settings=Settings()) as warehouse:
        warehouse.requests.add_seeds([f"{SHOP}{place}" for place in (*PAGES, "/gone.png")])
        for place, facts in PAGES.items():
            data = json.dumps({"@context": "https://schema.org", **facts})
            script = f'<script type="application/ld+json">{data}</script>'
            store_page(warehouse, f"{SHOP}{place}", f"<title>{facts['name']}</title>{script}<p>Lux</p>", 1.7e9)
        fail(warehouse, f"{SHOP}/gone.png")
        warehouse.stores.text.commit()
    return path


@pytest.fixture(scope="module")
def site(faulty: Path) -> Iterator[TestClient]:
    state = SiteState(faulty, Settings(web=WebSettings(rate=0.0, concurrency=0)))
    with TestClient(create_app(state), base_url="http://127.0.0.1:7272") as client:
        yield client


def test_findings_across_pages_are_listed(site: TestClient) -> None:
    view = site.get("/findings.json").json()
    across = [(one["code"], one["page"], one["path"]) for one in view["findings"] if one["phase"] == "index"]
    assert sorted(across) == [
        ("broken-data-link", f"{SHOP}/a", "logo"),
        ("broken-data-link", f"{SHOP}/b", "logo"),
        ("id-conflict", f"{SHOP}/a", "@id › telephone"),
    ]
    only = site.get("/findings.json?code=id-conflict").json()
    assert (only["total"], only["pages"]) == (1, 1)
    assert only["findings"][0]["message"] == f"{MAKER} has different values of telephone on 2 pages"
    assert "id-conflict" in site.get("/findings.csv?code=id-conflict").text
    text = site.get("/findings", headers={"accept": "text/html"}).text
    assert "different values of telephone" in text
    assert '<pre tabindex="0">' in text and "<pre>" not in text  # what scrolls can be reached with the keyboard


def test_all_counts_agree(site: TestClient, faulty: Path, tmp_path: Path) -> None:
    view = site.get("/findings.json").json()
    said = quadloom("-w", str(faulty), "audit", "--format", "json", cwd=tmp_path).stdout
    report = msgspec.json.decode(said, type=AuditReport)
    by_code: Counter[str] = Counter()
    for group in report.groups:
        by_code[group.code] += group.findings
    assert dict(by_code) == view["codes"]
    severities: dict[str, int] = view["severities"]
    assert severities == {name: count for name in ("error", "warning", "info") if (count := report.count(name))}
    sarif = json.loads(quadloom("-w", str(faulty), "audit", "--format", "sarif", cwd=tmp_path).stdout)
    assert Counter(one["ruleId"] for one in sarif["runs"][0]["results"]) == by_code
    with Warehouse.read(faulty) as warehouse:
        assert Counter(one.finding.code for one in warehouse.ask.findings()) == by_code
        assert [one.url for one in warehouse.ask.findings(codes="id-conflict")] == [f"{SHOP}/a"]
        summary = summarise(warehouse.ask, warehouse.stores)
    assert sum(group.findings for group in summary.audit.groups) == view["total"]


def test_a_site_has_its_score_and_the_same_counts(site: TestClient) -> None:
    of_site = site.get("/site/shop.example.json").json()
    found = site.get("/findings.json?site=shop.example").json()
    assert of_site["findings"] == found["codes"]
    assert of_site["audit"]["score"] == pytest.approx(found["score"], abs=0.06)
    counts = {name: of_site["audit"][f"{name}s"] for name in ("error", "warning", "remark")}
    assert counts == {"error": 2, "warning": found["severities"]["warning"], "remark": found["severities"]["info"]}
    text = site.get("/site/shop.example", headers={"accept": "text/html"}).text
    assert f"Score {of_site['audit']['score']:.0f} of 100" in text
    assert "/findings?site=shop.example&amp;severity=error" in text


def test_ignored_codes_are_not_looked_for(faulty: Path) -> None:
    settings = Settings(audit=AuditSettings(ignore=["id-conflict"]))
    with Warehouse.read(faulty, settings=settings) as warehouse:
        codes = {one.finding.code for one in warehouse.ask.findings()}
    assert "broken-data-link" in codes and "id-conflict" not in codes
    with Warehouse.read(faulty, settings=Settings(audit=AuditSettings(checks=False))) as warehouse:
        assert "broken-data-link" not in {one.finding.code for one in warehouse.ask.findings()}


def test_times_of_two_days_have_their_date() -> None:
    points = [TrendPoint(1.7e9, 3, 1), TrendPoint(1.7e9 + 2 * 86400, 1, 1)]
    assert "11-14 22:13" in trend(points, "shop.example")
    assert trend(points[:1], "shop.example") == ""


def test_questions_across_pages_that_a_limit_ends_are_left_out_and_the_page_says_so(faulty: Path) -> None:
    """They run in a query process under its limits, so the server itself is never busy with them."""
    settings = Settings(web=WebSettings(rate=0.0, concurrency=0), limits=LimitSettings(query_nesting=1))
    with TestClient(create_app(SiteState(faulty, settings)), base_url="http://127.0.0.1:7272") as client:
        for path in ("/site/shop.example", "/findings"):
            answer = client.get(path, headers={"accept": "text/html"})
            assert answer.status_code == 200
            assert "several pages together show are left out" in answer.text and "quadloom audit" in answer.text
        codes = client.get("/findings.json").json()["codes"]
    assert "id-conflict" not in codes and codes, "the findings of single pages are there"
