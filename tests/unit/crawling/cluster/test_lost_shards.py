"""A worker learns at some moment that its shards were taken over, wherever it is; it goes on with what it has left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from postgres_server import postgres
from quadloom.crawling.ingest.intake import Ingest
from quadloom.model.page import Page
from quadloom.model.phase import Owed
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.shards import SHARDS
from quadloom.warehouse import Warehouse

pytestmark = pytest.mark.cluster
PAGE = "http://first.example/"


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """With one page, and owner of all shards."""
    stores = StoreSettings(frontier=postgres().url(), catalog="postgresql:", text="postgresql:")
    page = Page(PAGE, PAGE, 200, (("content-type", "text/html"),), b"<title>One</title>", time.time(), 0.1)
    source = tmp_path / "source.warc.gz"
    source.write_bytes(file_header(source.name, page.fetched_at) + encode(page).member)
    with Warehouse.open(tmp_path / "data", settings=Settings(stores=stores)) as opened:
        assert opened.maintenance.import_(source).new == 1
        assert opened.stores.shards is not None
        opened.stores.shards.take_all(time.time())
        yield opened


def take_over(warehouse: Warehouse, shards: int = SHARDS) -> None:
    """As another worker does after this one was paused."""
    database = PostgresDatabase.open(warehouse.settings.stores.frontier)
    database.write("UPDATE shard_lease SET owner='another', epoch = epoch + 1 WHERE shard < %s", (shards,))
    database.close()


def test_the_loss_is_noticed_while_taking_left_pages(warehouse: Warehouse) -> None:
    notices: list[str] = []
    ingest = Ingest(warehouse.stores, warehouse.settings, notice=lambda _kind, text: notices.append(text))
    ingest.open_backlog()
    assert warehouse.stores.catalog.backlog.add(Owed.EXTRACT) == 1
    take_over(warehouse)
    ingest.step(0.0)
    assert [text for text in notices if "has taken over 256 of 256 shards" in text]
    deadline = time.monotonic() + 30.0
    while warehouse.stores.catalog.backlog.counts() and time.monotonic() < deadline:
        ingest.step(0.05)
    assert not warehouse.stores.catalog.backlog.counts(), "the page was not forgotten"
    ingest.close()


def test_the_loss_is_noticed_at_the_end(warehouse: Warehouse) -> None:
    take_over(warehouse, 10)
    warehouse.stores.frontier.close()
    database = PostgresDatabase.open(warehouse.settings.stores.frontier)
    owners: dict[str, int] = dict(database.execute("SELECT owner, count(*) FROM shard_lease GROUP BY owner"))
    database.close()
    assert owners == {"another": 10, "": SHARDS - 10}, "the others were given back"
