"""A small site with mistakes that only a crawl can see: the audit names each on the line that has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import quadloom
from fakeweb.scripted import Answer, ScriptedSite, html
from quadloom.asking.audit.across_pages import with_across
from quadloom.asking.audit.report import AuditReport, audit, pages_of
from quadloom.asking.audit.source_lines import SourceLines, archived
from quadloom.settings.loading import load
from quadloom.warehouse import Warehouse

SITEMAP = """<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>{0}de</loc></url>
<url><loc>{0}moved</loc></url>
<url><loc>{0}hidden</loc></url>
<url><loc>{0}lost</loc></url>
</urlset>"""


def lamp(price: str, **more: object) -> str:
    offer = {"@type": "Offer", "price": price, "priceCurrency": "EUR"}
    data = {"@context": "https://schema.org", "@type": "Product", "name": "Lamp", "sku": "L-1", "offers": offer, **more}
    return f'\n<script type="application/ld+json">{json.dumps(data, indent=0)}</script>'


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> AuditReport:
    pages = {
        "/robots.txt": Answer(b"", "text/plain"),
        "/": html(
            "<a href=/lamp>1</a> <a href=/offer>2</a> <a href=/sitemap.xml>3</a> <a href=/lost>4</a>"
            " <a href=/moved>5</a> <a href=/picture.png>6</a>",
            '<link rel="alternate" hreflang="en" href="/">\n<link rel="alternate" hreflang="de" href="/de">',
        ),
        "/de": html("<p>ohne Verweis zurück"),
        "/lamp": html(lamp("5.00", image="/picture.png", sameAs="/moved")),
        "/offer": html(lamp("6.00") + "<a href=/fr>fr</a>"),
        "/fr": html(lamp("7.00", name="Lampe", offers={"@type": "Offer", "price": "7.00", "priceCurrency": "CHF"})),
        "/hidden": html("<p>secret", "<meta name=robots content=noindex>"),
        "/moved": Answer(b"", "text/html", status=301, headers=(("Location", "/de"),)),
    }
    with ScriptedSite(pages) as site:
        root = site.url("")
        site.pages["/sitemap.xml"] = Answer(SITEMAP.format(f"{root}/").encode(), "application/xml")
        settings = load(environ={}, overrides=site.settings()).settings
        with Warehouse.open(tmp_path_factory.mktemp("audit") / "w", settings=settings) as warehouse:
            list(warehouse.crawl([site.url(), f"{root}/hidden"]))
            stores = warehouse.stores
            return SourceLines(archived(stores)).report(audit(with_across(pages_of(stores.catalog), stores)))


@pytest.mark.parametrize(
    ("code", "path", "page", "line"),
    [
        ("missing-hreflang", "hreflang de", "/", 2),
        ("id-conflict", "sku › price", "/lamp", 0),
        ("broken-data-link", "image", "/lamp", 0),
        ("broken-data-link", "sameAs", "/lamp", 0),
        ("broken-sitemap-link", "loc that is redirected", "/sitemap.xml", 3),
        ("broken-sitemap-link", "loc that asks not to be indexed", "/sitemap.xml", 4),
        ("broken-sitemap-link", "loc that is gone", "/sitemap.xml", 5),
    ],
)
def test_what_only_a_crawl_can_see(report: AuditReport, code: str, path: str, page: str, line: int) -> None:
    found = [one for one in report.groups if (one.code, one.path) == (code, path)]
    assert len(found) == 1, [(one.code, one.path) for one in report.groups]
    (example,) = found[0].examples
    assert example.page.endswith(page)
    assert example.line == line if line else example.line > 1
    assert example.fix and example.excerpt


def test_a_pipeline_fails_for_new_errors_only(tmp_path: Path) -> None:
    page = tmp_path / "public" / "index.html"
    page.parent.mkdir()

    def publish(price: str, link: str = "") -> None:
        page.write_text(lamp(price) + link, encoding="utf-8")

    def run(*words: str) -> int:
        return quadloom("audit", "./public", *words, cwd=tmp_path).returncode

    publish("5 €")
    assert run("--save-baseline", "baseline.json", "--fail-on", "error") == 1
    assert run("--baseline", "baseline.json", "--fail-on", "new") == 0
    publish("6 €", "<a href=/lost>x</a>")
    assert run("--baseline", "baseline.json", "--fail-on", "new") == 1
    report = quadloom("audit", "./public", "--baseline", "baseline.json", "--format", "sarif", cwd=tmp_path).stdout
    uris = {
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for one in json.loads(report)["runs"][0]["results"]
    }
    assert uris == {"public/index.html"}
