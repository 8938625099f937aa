"""All stores of a warehouse as the crawl sees them, and the small duties between them."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from quadloom.model.visit import Visit
from quadloom.ranking.page_ranks import Fingerprints, PageRank
from quadloom.scheduling.scope import Scope
from quadloom.settings import Settings
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.bus import Bus
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier
from quadloom.stores.protocols.outbox import Outbox
from quadloom.stores.protocols.quads import Difference, QuadStore
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.quads.sparql_client import SparqlServer


class LinkRanking(Protocol):
    """Where the link matrix grows, and what pages weigh; see `quadloom.ranking.ranker.PageRanker`."""

    def append(self, source: int, targets: bytes) -> None: ...

    def weigh(self, fingerprints: Sequence[int], are_data: Sequence[bool]) -> list[PageRank | None]: ...

    def take_moved(self) -> Fingerprints | None: ...

    def prefer(self, chi: float) -> None: ...

    def start(self, failed: Callable[[BaseException], None]) -> None: ...

    def close(self) -> None: ...


class Stores:
    """The stores, opened for writing by this process. `quadloom.warehouse` makes it."""

    def __init__(
        self,
        *,
        frontier: Frontier,
        catalog: Catalog,
        archive: Archive,
        quads: QuadStore,
        text: TextIndex,
        bus: Bus,
        links: LinkRanking | None = None,
        query_source: Path | SparqlServer | None = None,
        outbox: Outbox | None = None,
        scope: Callable[[], Scope | None] = lambda: None,
        changed: Callable[[str, Difference], None] = lambda _graph, _difference: None,
    ) -> None:
        self.frontier = frontier
        self.catalog = catalog
        self.archive = archive
        self.quads = quads
        self.text = text
        self.bus = bus
        self.changed = changed
        self.query_source = query_source
        self.outbox = outbox
        self.links = links
        self.scope = scope
        self._told: set[str] = set()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.cpu_before = usage.ru_utime + usage.ru_stime

    def worker_count(self, settings: Settings) -> int:
        return settings.crawl.workers or max(1, (os.cpu_count() or 2) - 1)

    def first_contacts(self, visits: Sequence[Visit]) -> tuple[dict[str, bytes], dict[str, int]]:
        """robots.txt rows and failures in a row of hosts that the fetcher has not been told of yet."""
        robots, strikes = {}, {}
        for host in {visit.host for visit in visits} - self._told:
            row = self.frontier.host(host)
            if row is not None and row.robots:
                robots[host] = row.robots
            if row is not None and row.failures:
                strikes[host] = row.failures
            self._told.add(host)
        if len(self._told) > 100_000:
            self._told.clear()
        return robots, strikes

    def fetcher_restarted(self) -> None:
        self._told.clear()

    def linked(self, source: int, targets: bytes) -> None:
        if self.links is not None:
            self.links.append(source, targets)

    def close(self) -> None:
        """Close all, the derived ones first."""
        if self.links is not None:
            self.links.close()
        for store in (self.text, self.quads, self.archive, self.frontier, self.catalog):
            store.close()
