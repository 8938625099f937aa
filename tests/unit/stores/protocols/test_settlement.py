"""Hooks take part in the one transaction: prepared before it, written inside it, told that it is durable after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quadloom.crawling.ingest.intake import Ingest
from quadloom.errors import DiskFull, StoreUnavailable
from quadloom.model.outcome import Outcome
from quadloom.model.page import Failure
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom.stores.named_values import NamedValue
from quadloom.stores.protocols.settlement import FinishedVisit, SettleBatch
from quadloom.warehouse import Warehouse

URL = Url.parse("http://site.example/")
CONTACT = NamedValue("contact", str)


class Recorder:
    """Writes a value of its own, and fails as often as it is told to."""

    def __init__(self, warehouse: Warehouse, *failures: Exception) -> None:
        self._catalog = warehouse.stores.catalog
        self._failures = list(failures)
        self.calls: list[str] = []

    def prepare(self, batch: SettleBatch) -> None:
        assert [item.visit.href for item in batch.visits] == [item.visit.href for item in batch.settlements]
        self.calls.append("prepare")

    def write(self, now: float) -> None:
        self.calls.append("write")
        CONTACT.put(self._catalog, f"at {now:g}")
        if self._failures:
            raise self._failures.pop(0)

    def committed(self) -> None:
        self.calls.append("committed")


def visit() -> FinishedVisit:
    leased = Visit(URL.href, URL.key, URL.host, URL.fingerprint, deadline=1e10)
    return FinishedVisit(leased, Failure(URL.href, "connect", "refused", True, 5.0, 0.1), None)


def test_a_batch_is_prepared_written_and_committed(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path) as warehouse:
        hook = Recorder(warehouse)
        ingest = Ingest(warehouse.stores, Settings(), hooks=[hook])
        (settled,) = ingest.settle([visit()], 7.0)
        assert settled.outcome is Outcome.FAILED
        assert hook.calls == ["prepare", "write", "committed"]
        assert CONTACT.get(warehouse.stores.catalog) == "at 7"
        ingest.close()


def test_what_a_hook_wrote_is_undone_with_the_transaction(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path) as warehouse:
        hook = Recorder(warehouse, DiskFull("full"))
        ingest = Ingest(warehouse.stores, Settings(), hooks=[hook])
        with pytest.raises(DiskFull):
            ingest.settle([visit()], 7.0)
        assert hook.calls == ["prepare", "write"]
        assert CONTACT.get(warehouse.stores.catalog) is None
        assert warehouse.stores.catalog.page(URL.fingerprint) is None
        ingest.close()


def test_a_second_try_writes_again_what_was_prepared_once(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path) as warehouse:
        hook = Recorder(warehouse, StoreUnavailable("away"))
        ingest = Ingest(warehouse.stores, Settings(), hooks=[hook])
        assert len(ingest.settle([visit()], 7.0)) == 1
        assert hook.calls == ["prepare", "write", "write", "committed"]
        assert warehouse.stores.catalog.page(URL.fingerprint) is not None
        ingest.close()
