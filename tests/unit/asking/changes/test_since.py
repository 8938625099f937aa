"""What is new, changed and gone since a time, with values before and after."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quadloom.asking.changes.described import DescribedVersion, changes_between
from quadloom.asking.changes.since import ChangesSince, changes_since
from quadloom.asking.changes.timeline import page_timeline
from quadloom.crawling.ingest.settle import settle_failure
from quadloom.model.page import Failure
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from unit.web.things_fixture import page_of, product
from unit.web.web_fixture import store_page

_NOW = time.time()
_FIRST, _SECOND, _THIRD = _NOW - 7200, _NOW - 3600, _NOW - 60
_SHOP = "http://shop.example/p/"


def find_gone(warehouse: Warehouse, href: str, at: float) -> None:
    url = Url.parse(href)
    visit = Visit(url.href, url.key, url.host, url.fingerprint)
    failure = Failure(
        url=url.href, kind="status", message="HTTP 404", transient=False, fetched_at=at, seconds=0.1, status=404
    )
    settlement = settle_failure(visit, failure, None, warehouse.stores.catalog.page(url.fingerprint), Settings())
    with warehouse.stores.catalog.transaction():
        warehouse.stores.catalog.record([settlement], at)


def _lamp(number: int, price: str = "30.00", news: str = "Old") -> str:
    return page_of(product(number, price, "4.4"), body=f"<p>Lamp {number} shines. {news} news.")


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path_factory.mktemp("since") / "data", settings=Settings()) as warehouse:
        for number in range(4):
            store_page(warehouse, f"{_SHOP}{number}", _lamp(number), _FIRST)
        store_page(warehouse, f"{_SHOP}1", _lamp(1, price="25.00"), _SECOND)
        store_page(warehouse, f"{_SHOP}2", _lamp(2, news="Good"), _SECOND)
        store_page(warehouse, "http://shop.example/about", page_of(body="<p>Hello"), _SECOND)
        find_gone(warehouse, f"{_SHOP}3", _THIRD)
        warehouse.stores.text.commit()
        yield warehouse


def _since(warehouse: Warehouse, at: float) -> ChangesSince:
    return changes_since(warehouse.stores, warehouse.ask.versions, at)


def test_new_changed_and_gone_apart_with_their_values(warehouse: Warehouse) -> None:
    found = _since(warehouse, _FIRST + 60)
    kinds = {page.url.rpartition("/")[2]: (page.is_new, page.is_gone) for page in found.pages}
    assert kinds == {"about": (True, False), "1": (False, False), "2": (False, False), "3": (False, True)}
    assert (found.new, found.changed, found.gone, found.is_first) == (1, 2, 1, False)
    pages = {page.url: page for page in found.pages}
    (price,) = pages[f"{_SHOP}1"].changes
    assert str(price) == "Lamp 1 · offers › price: 30.00 EUR → 25.00 EUR"
    (text,) = pages[f"{_SHOP}2"].changes
    assert (text.property, text.before, text.after) == ("text", ("Old news.",), ("Good news.",))


def test_pages_are_grouped_by_site_and_template(warehouse: Warehouse) -> None:
    groups = {(group.site, group.template): group for group in _since(warehouse, _FIRST + 60).groups}
    lamps = groups["shop.example", "/p/"]
    assert (lamps.new, lamps.changed, lamps.gone) == (0, 2, 1)


def test_a_later_time_leaves_out_what_was_before(warehouse: Warehouse) -> None:
    assert [page.is_gone for page in _since(warehouse, _SECOND + 60).pages] == [True]


def test_the_first_crawl_is_no_change(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "data", settings=Settings()) as warehouse:
        store_page(warehouse, f"{_SHOP}1", _lamp(1), _NOW - 60)
        warehouse.stores.text.commit()
        found = _since(warehouse, _NOW - 3600)
    assert found.is_first and found.new == 1 and not found.changed


def test_the_timeline_of_a_page_ends_with_its_disappearance(warehouse: Warehouse) -> None:
    row = warehouse.stores.catalog.page(Url.parse(f"{_SHOP}3").fingerprint)
    assert row is not None
    (gone,) = page_timeline(warehouse.stores.catalog, warehouse.ask.versions, row).changes
    assert gone.after == ("not found (HTTP 404)",) and (gone.before_at, gone.at) == (_FIRST, _THIRD)


def test_a_thing_without_an_iri_is_followed_by_its_name() -> None:
    def version(price: str, node: str) -> DescribedVersion:
        thing, offer = f"<urn:quadloom:blank:{node}1>", f"<urn:quadloom:blank:{node}2>"
        lines = (
            f'{thing} <http://schema.org/name> "Kettle" <http://e.org/> .',
            f"{thing} <http://schema.org/offers> {offer} <http://e.org/> .",
            f'{offer} <http://schema.org/price> "{price}" <http://e.org/> .',
        )
        return DescribedVersion("\n".join(lines).encode())

    changes = changes_between(version("7", "a"), version("8", "b"))
    assert [str(one) for one in changes] == ["Kettle · offers › price: 7 → 8"]
    assert not changes_between(version("7", "a"), version("7", "b"))
