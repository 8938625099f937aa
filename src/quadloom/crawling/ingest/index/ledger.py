"""The ledger of the indexes: which pages they hold, and which pages must be read again before they can.

A crawl writes it into the catalog, in the transaction that settles pages. `rebuild` fills indexes that are not in place
yet; it collects the same entries in a file (`quadloom.maintenance.swap`), so that the catalog never refers to indexes
that are not in use yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quadloom.crawling.ingest.index.describe import REPROCESSED_AT
from quadloom.crawling.ingest.index.indexer import IndexAcks
from quadloom.model.link import Discovery
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier
from quadloom.stores.statistics import STATISTICS, mark_complete


class IndexLedger(Protocol):
    """One thread, the owner's."""

    def reprocessed(self, at: float) -> None:
        """Pages are transformed again from the archive; called before the first of them is indexed."""
        ...

    def write(self, acks: Sequence[IndexAcks], requests: Sequence[Discovery], now: float) -> None:
        """What the indexes have acknowledged, and pages to be read again. Part of the caller's transaction."""
        ...

    def mark_complete(self) -> None:
        """All was written; the counts that were saved last are complete."""
        ...


class CatalogLedger:
    """The ledger of indexes that are in use."""

    def __init__(self, catalog: Catalog, frontier: Frontier) -> None:
        self._catalog = catalog
        self._frontier = frontier

    def reprocessed(self, at: float) -> None:
        REPROCESSED_AT.put(self._catalog, at)

    def write(self, acks: Sequence[IndexAcks], requests: Sequence[Discovery], now: float) -> None:
        for ack in acks:
            self._catalog.mark_indexed(ack.marks)
        if requests:
            self._frontier.request(requests, now)
        if acks:
            STATISTICS.put_encoded(self._catalog, acks[-1].statistics)

    def mark_complete(self) -> None:
        mark_complete(self._catalog)
