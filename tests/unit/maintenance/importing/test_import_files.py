"""Import and rebuild queue the links of the pages that they read; a later strategy finds links of stored pages."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from quadloom.maintenance.importing.import_files import import_pages
from quadloom.maintenance.importing.imported_pages import ImportedPage
from quadloom.model.page import Page
from quadloom.settings import CrawlSettings, Settings
from quadloom.warehouse import Warehouse

HEADERS = (("content-type", "text/html; charset=utf-8"),)


def page(url: str, *links: str) -> ImportedPage:
    body = "<title>t</title>" + "".join(f'<a href="{link}">{link}</a>' for link in links)
    return ImportedPage(Page(url, url, 200, HEADERS, body.encode(), 1000.0, 0.1))


def queued(warehouse: Warehouse) -> int:
    return warehouse.stores.frontier.stats(2000.0).queued


def test_links_are_queued_by_scope_and_strategy(tmp_path: Path) -> None:
    anywhere = Settings(crawl=CrawlSettings(scope="any", strategies=["same-site"], workers=1))
    pages = [page("http://a.example/", "/1", "/2", "http://b.example/"), page("http://a.example/1", "/", "/2")]
    with Warehouse.open(tmp_path / "w", settings=anywhere) as warehouse:
        report = import_pages(warehouse.stores, anywhere, pages)
        assert (report.pages, report.queued, queued(warehouse)) == (2, 1, 1), "/2: the others are known or elsewhere"
        warehouse.maintenance.rebuild(links=False)
        assert queued(warehouse) == 1
    wider = replace(anywhere, crawl=replace(anywhere.crawl, strategies=["all"]))
    with Warehouse.open(tmp_path / "w", settings=wider) as warehouse:
        warehouse.maintenance.rebuild()
        assert queued(warehouse) == 2, "the strategy of today finds b.example"


def test_extract_reads_stored_pages_again(tmp_path: Path) -> None:
    nothing = Settings(crawl=CrawlSettings(scope="any", strategies=["feeds"], workers=1))
    with Warehouse.open(tmp_path / "w", settings=nothing) as warehouse:
        import_pages(warehouse.stores, nothing, [page("http://a.example/", "/1"), page("http://b.example/", "/1")])
        assert queued(warehouse) == 0
    everything = replace(nothing, crawl=replace(nothing.crawl, strategies=["all"]))
    with Warehouse.open(tmp_path / "w", settings=everything) as warehouse:
        assert list(warehouse.extract()) == []
        assert queued(warehouse) == 0, "nothing is owed"
        assert list(warehouse.extract(host="a.example")) == []
        assert queued(warehouse) == 1
        assert list(warehouse.extract(everything=True)) == []
        assert queued(warehouse) == 2
        assert warehouse.stores.catalog.backlog.counts() == {}
