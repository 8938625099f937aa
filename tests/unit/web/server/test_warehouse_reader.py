"""Views of the warehouse: reused while nothing is committed, renewed afterwards."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from quadloom.errors import StoreError
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from quadloom.web.server import warehouse_reader
from quadloom.web.server.state import SiteState
from quadloom.web.server.warehouse_reader import WarehouseReader
from unit.web.web_fixture import BOOK, fill


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WarehouseReader]:
    monkeypatch.setattr(warehouse_reader, "STALE", 0.0)
    with Warehouse.open(tmp_path / "data", settings=Settings()):
        pass
    with contextlib.closing(WarehouseReader(tmp_path / "data", Settings(), threads=1)) as reader:
        yield reader


def test_a_view_is_renewed_after_a_commit_and_only_then(reader: WarehouseReader) -> None:
    first = reader.ask(lambda warehouse: warehouse)
    with Warehouse.open(reader.path, settings=Settings()) as writer:
        second = reader.ask(lambda warehouse: warehouse)  # opening may have committed something
        assert reader.ask(lambda warehouse: warehouse) is second
        writer.requests.remember_contact("somebody@example.org")
        assert reader.ask(lambda warehouse: warehouse.requests.contact) == "somebody@example.org"
        assert reader.ask(lambda warehouse: warehouse) not in (first, second)


def test_while_one_thread_opens_a_view_the_others_answer_from_theirs(
    reader: WarehouseReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reader.ask(lambda warehouse: warehouse)
    with Warehouse.open(reader.path, settings=Settings()) as writer:
        writer.requests.remember_contact("somebody@example.org")
        with reader._reopening:  # as if another thread was opening one
            assert reader.ask(lambda warehouse: warehouse) is first
            monkeypatch.setattr(warehouse_reader, "_MAX_AGE", 0.0)
            waiting = reader._lane.pool.submit(reader._fresh)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.2)
        assert waiting.result() is not first, "an old view waits for its turn"


def test_a_warehouse_that_was_replaced_is_opened(reader: WarehouseReader) -> None:
    assert reader.ask(lambda warehouse: len(warehouse.stores.text)) == 0
    shutil.rmtree(reader.path)
    fill(reader.path)
    assert reader.ask(lambda warehouse: len(warehouse.stores.text)) == 3


def test_a_server_that_is_older_than_its_warehouse_finds_words_in_queries(tmp_path: Path) -> None:
    with contextlib.closing(SiteState(tmp_path / "data", Settings(), query_processes=1)) as site:
        with pytest.raises(StoreError):
            site.queries.ask("ASK {}")
        fill(tmp_path / "data")
        query = 'SELECT ?page { ?page ql:matches "title:distant" }'
        assert site.queries.ask(query, format="csv").read().split() == [b"page", BOOK.encode()]
