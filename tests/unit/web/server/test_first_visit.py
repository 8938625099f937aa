"""What a visitor sees first: a warehouse without a page, figures with their unit, times with their zone, live links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from starlette.testclient import TestClient

from quadloom.settings import Settings, WebSettings
from quadloom.warehouse import Warehouse
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from unit.web.pages.test_pages import HTML, PAGES

# Streams without end and dumps of everything: that they answer is proved elsewhere.
_LONG = ("/events", "/changes/events", "/export.", "/static/")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    path = tmp_path_factory.mktemp("empty") / "data"
    with Warehouse.open(path, settings=Settings()):
        pass
    site = SiteState(path, Settings(web=WebSettings(rate=0.0, concurrency=0)))
    with TestClient(create_app(site), base_url="http://127.0.0.1:7272", follow_redirects=False) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/search", "/sites", "/vocabularies", "/topics", "/subscriptions", "/monitor"])
def test_an_empty_warehouse_tells_how_to_fill_it(empty: TestClient, path: str) -> None:
    page = empty.get(path, headers=HTML)
    assert page.status_code == 200
    assert "quadloom " in re.sub(r"<footer.*", "", page.text.partition("<main")[2], flags=re.DOTALL)
    assert "<tbody></tbody>" not in page.text


def test_no_table_of_a_crawl_where_none_runs(empty: TestClient) -> None:
    page = empty.get("/monitor", headers=HTML).text
    assert "No crawl is running." in page and "Heartbeat" not in page and "Balance of the phases" not in page


def test_times_have_a_zone(client: TestClient) -> None:
    """Also those in words: the tooltip of `2 days ago` has the time."""
    for path in PAGES:
        for element in re.findall(r"<time[^>]*>[^<]*</time>", client.get(path, headers=HTML).text):
            assert re.search(r'datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"', element), element
            assert "UTC" in unescape(element), element


def test_no_link_is_dead(client: TestClient) -> None:
    """Every address of the site that any page links to has an answer."""
    named: dict[str, str] = {}
    for path in PAGES:
        text = client.get(path, headers=HTML).text
        for address in re.findall(r'(?:href|src)="(/[^"]*)"', text):
            named.setdefault(unescape(address).partition("#")[0], path)
    assert len(named) > 100
    dead = {
        address: (path, status)
        for address, path in named.items()
        if not address.startswith(_LONG) and (status := client.get(address, headers=HTML).status_code) >= 400
    }
    assert dead == {}


def test_fragments_lead_somewhere(client: TestClient) -> None:
    for path in PAGES:
        text = client.get(path, headers=HTML).text
        ids = set(re.findall(r'\bid="([^"]+)"', text))
        for name in re.findall(r'(?:href="#|aria-labelledby=")([^"]+)"', text):
            assert name in ids, f"{path} names #{name}"


def test_hosts_are_filtered_and_sorted_by_their_columns(client: TestClient) -> None:
    found = client.get("/sites.json?q=BOOK").json()
    assert [row["host"] for row in found["hosts"]] == ["books.example"]
    assert found["matching"] == 1 and found["total"] == 3
    page = client.get("/sites?q=book&sort=host", headers=HTML).text
    assert 'aria-sort="ascending"' in page and page.count("aria-sort") == 1
    assert "sort=queued&amp;q=book" in page, "sorting keeps the filter"
    nothing = client.get("/sites?q=nowhere", headers=HTML).text
    assert "0 hosts of 3" in nothing and "<table" not in nothing.partition('id="traps"')[0]
    names = [row["host"] for row in client.get("/sites.json?sort=host").json()["hosts"]]
    assert names == sorted(names)


def test_a_thing_is_named_once_above_what_is_said_of_it(client: TestClient) -> None:
    page = next(path for path in PAGES if path.startswith("/page"))
    text = client.get(page, headers=HTML).text
    groups = re.findall(r'<th scope="rowgroup" colspan="2">(.*?)</th>', text, flags=re.DOTALL)
    assert len(groups) == len(set(groups)) > 3
