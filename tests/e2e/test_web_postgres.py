"""The site of a warehouse on PostgreSQL: pages written later are shown, and words in queries are found."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from postgres_server import postgres
from quadloom.model.page import Page
from quadloom.settings import Settings, StoreSettings, WebSettings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.warehouse import Warehouse
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from waiting import wait_until

FIRST, SECOND = "http://first.example/", "http://second.example/"
MATCHES = 'SELECT ?page { ?page ql:matches "lighthouse" }'
VISIBLE_SECONDS = 20.0  # the promise is five, on a machine that is not busy


@pytest.fixture
def warehouse(tmp_path: Path) -> tuple[Path, Settings]:
    stores = StoreSettings(frontier=postgres().url(), catalog="postgresql:", text="postgresql:")
    settings = Settings(stores=stores, web=WebSettings(rate=0, concurrency=0))
    write(tmp_path / "data", settings, FIRST)
    return tmp_path / "data", settings


@pytest.fixture
def client(warehouse: tuple[Path, Settings]) -> Iterator[TestClient]:
    with TestClient(create_app(SiteState(*warehouse)), base_url="http://localhost") as client:
        yield client


def write(path: Path, settings: Settings, url: str) -> None:
    markup = f"""<!doctype html><title>{url}</title><p>A lighthouse.</p><script type="application/ld+json">
        {{"@context": "http://schema.org/", "@id": "{url}#it", "@type": "Book", "name": "{url}"}}</script>"""
    page = Page(url, url, 200, (("content-type", "text/html; charset=utf-8"),), markup.encode(), time.time(), 0.1)
    source = path.with_name("source.warc.gz")
    source.write_bytes(file_header(source.name, page.fetched_at) + encode(page).member)
    with Warehouse.open(path, settings=settings) as warehouse:
        assert warehouse.maintenance.import_(source).new == 1


def pages(client: TestClient) -> set[str]:
    answer = client.get("/sparql", params={"query": MATCHES}, headers={"accept": "text/csv"})
    assert answer.status_code == 200, answer.text
    return set(answer.text.split()[1:])


def test_words_are_found_in_queries(client: TestClient) -> None:
    assert pages(client) == {FIRST}


def test_a_page_that_is_written_later_is_shown(client: TestClient, warehouse: tuple[Path, Settings]) -> None:
    def status(url: str, path: str = "/store", name: str = "graph") -> int:
        return client.get(path, params={name: url}).status_code

    assert status(FIRST) == 200 and status(SECOND) == 404
    write(*warehouse, SECOND)
    wait_until(lambda: status(SECOND) == 200, "the view of the quads was not renewed", seconds=VISIBLE_SECONDS)
    assert status(SECOND, "/page", "url") == 200
    assert pages(client) == {FIRST, SECOND}
