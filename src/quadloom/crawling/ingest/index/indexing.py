"""The phase index in one process: jobs of settled batches, pages that are transformed again, and link queries.

In a process that does not run this phase nothing is indexed, and every question is answered as if all were.
"""

from __future__ import annotations

from collections.abc import Callable

from quadloom.crawling.ingest.in_flight import InFlightVisits
from quadloom.crawling.ingest.index.indexer import IndexAcks, Indexer, IndexJob, LinksFound
from quadloom.crawling.ingest.index.jobs import IndexJobs
from quadloom.crawling.ingest.index.ledger import CatalogLedger, IndexLedger
from quadloom.crawling.ingest.index.reindex import Reindexing
from quadloom.crawling.ingest.link_queries import UserQueryRunner
from quadloom.crawling.ingest.outgoing import OutgoingBuffer
from quadloom.model.link import Discovery
from quadloom.process.failpoints import Failpoints
from quadloom.process.waiting import Waiting
from quadloom.settings import Settings
from quadloom.stores.opened import Stores
from quadloom.stores.statistics import Statistics


class Indexing:
    """`jobs` and `reindexing` take work; `report` receives what the indexer's thread has to say. One thread, the
    owner's.

    `ledger`: where it is written what the indexes hold, if not in the catalog.
    """

    def __init__(
        self,
        stores: Stores,
        settings: Settings,
        in_flight: InFlightVisits,
        outgoing: OutgoingBuffer,
        report: Callable[[IndexAcks | LinksFound], None],
        failpoints: Failpoints,
        *,
        ledger: IndexLedger | None,
        statistics: Statistics | None,
        links_of: Callable[[int, bytes], None],
        notice: Callable[[str], None],
    ) -> None:
        self._queries = UserQueryRunner(settings, stores.query_source, notice)
        self._indexer: Indexer | None = None
        if "index" in stores.phases:
            counts = statistics or Statistics.begin(stores)
            self._indexer = Indexer(
                stores.quads, stores.text, settings.index, report, failpoints, counts, self._queries
            )
        self._unindexed = in_flight.unindexed
        self._outgoing = outgoing
        self.ledger = ledger or CatalogLedger(stores.catalog, stores.frontier)
        self.jobs = IndexJobs(stores.catalog, self._indexer, settings.index, self._unindexed)
        self.reindexing = Reindexing(stores, self.jobs, self.ledger, outgoing, links_of)

    @property
    def is_busy(self) -> bool:
        """Pages are on their way through the indexer, or their acknowledgements are not written yet."""
        return bool(self._unindexed or self.reindexing or self._outgoing)

    @property
    def waiting(self) -> Waiting:
        """Why nothing can be indexed now: a store is away."""
        return self._indexer.waiting if self._indexer is not None else Waiting()

    @property
    def may_find_links(self) -> bool:
        """The user's own link queries have not seen all pages yet that are on their way through the indexer."""
        return bool(self._queries.queries) and self.is_busy

    def ask(self, job: IndexJob) -> tuple[Discovery, ...]:
        """What the user's own link queries find on a page that was indexed before."""
        return self._queries.discoveries([job]) if self._queries.queries else ()

    def unfinished_shards(self) -> frozenset[int]:
        """Shards with pages that are settled but not marked as indexed yet."""
        return self._unindexed.shards() | self.reindexing.shards()

    def check(self) -> None:
        """Raise the error that stopped the indexer, if one did."""
        if self._indexer is not None:
            self._indexer.check()

    def hurry(self) -> None:
        """Nothing else is in progress: index what waits."""
        if self._indexer is not None and self._unindexed:
            self._indexer.hurry()

    def change_strategies(self, settings: Settings) -> None:
        self._queries.change(settings)

    def close(self) -> None:
        """Index what is queued, and end the queries. The last acknowledgements are in the inbox then."""
        try:
            if self._indexer is not None:
                self._indexer.close()
        finally:
            self._queries.close()

    def mark_complete(self) -> None:
        """All acknowledgements are written: the counts that were saved last are complete."""
        if self._indexer is not None:
            self.ledger.mark_complete()
