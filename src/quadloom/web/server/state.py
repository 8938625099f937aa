"""What all handlers share: settings, views of the warehouse, the query service, caches, tokens, the crawl's status."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from quadloom.asking.audit.across_pages import AcrossCache, AcrossFindings, across_pages
from quadloom.asking.sparql.service import QueryService
from quadloom.asking.statistics import Summary
from quadloom.asking.things.table import ThingsCache
from quadloom.crawling.cluster.steering import RETAINED, Steering
from quadloom.crawling.run.control import Value, ask
from quadloom.errors import QuadloomError, QueryError
from quadloom.settings import Settings
from quadloom.stores.backends import open_text, query_source
from quadloom.stores.opened import Stores, places_of
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.statistics import stored_spelling
from quadloom.web.server.crawl_poller import CrawlPoller
from quadloom.web.server.lanes import Lane
from quadloom.web.server.response_cache import ResponseCache
from quadloom.web.server.security import BodyMemory
from quadloom.web.server.static_files import StaticFiles
from quadloom.web.server.tokens import FILE, Tokens
from quadloom.web.server.warehouse_reader import WarehouseReader
from quadloom.web.view.cards import Cards
from quadloom.web.view.usage import MOST_TERMS, UsageCache

# One more than a client may occupy (`web.concurrency`), so that no single client blocks everybody's queries.
_QUERY_PROCESSES = 3
_EXPORTS = 4  # at a time
_TRUSTED_QUERY = 16 * 1024 * 1024  # bytes of a query of our own


class SiteState:
    """`may_control`: started with --crawl or --control, so that a token gives access to the control routes."""

    def __init__(
        self,
        path: Path,
        settings: Settings,
        *,
        may_control: bool = False,
        clock: Callable[[], float] = time.time,
        query_processes: int = _QUERY_PROCESSES,
    ) -> None:
        self.path = path
        self.settings = settings
        self.may_control = may_control
        self.clock = clock
        self.cache = ResponseCache()
        self.cards = Cards()
        self.things = ThingsCache()
        self._across = AcrossCache()
        self.usage = UsageCache(self._statistics)
        self.reader = WarehouseReader(path, settings)
        self.scanner = WarehouseReader(path, settings, name="scanning", threads=2, queue=50)
        # Threads of these lanes wait: for a query process, for another server, for the process that crawls.
        self.querying = Lane("querying", threads=16, queue=200, max_wait=5.0)
        self.fetching = Lane("fetching", threads=4, queue=8, max_wait=10.0)
        self.waiting = Lane("waiting", threads=8, queue=200, max_wait=5.0)
        # Responses that wait for their next block. Each needs one thread, and another when its client leaves.
        self.exporting = Lane("exporting", threads=2 * _EXPORTS, queue=1000, max_wait=math.inf)
        self.exports = threading.BoundedSemaphore(_EXPORTS)
        self.answering = Lane("answering", threads=2 * query_processes, queue=1000, max_wait=math.inf)
        self.listening = Lane("listening", threads=2, queue=10_000, max_wait=math.inf)
        self.tokens = Tokens(Path(settings.web.token_file) if settings.web.token_file else path / FILE)
        self.crawl = CrawlPoller(path, settings, clock)
        self.listeners: Counter[str] = Counter()  # open event streams by client; only the event loop counts
        self.bodies = BodyMemory()
        self.static = StaticFiles.load(Path(__file__).parents[1] / "static")
        self._query_processes = query_processes
        self._queries: QueryService | None = None
        self._text: TextIndex | None = None
        self._lock = threading.Lock()

    @property
    def queries(self) -> QueryService:
        """Started at the first query. Raises `StoreError` before the first crawl, when there is nothing to open yet."""
        with self._lock:
            if self._queries is None:
                places = places_of(self.path, self.settings)
                self._text = open_text(places.text, self.settings, writable=False)
                self._queries = QueryService(
                    query_source(places.quads, self.settings),
                    self.settings.limits,
                    text=self._text,
                    processes=self._query_processes,
                    concurrency=self.settings.web.concurrency,
                    schema_org=self.reader.ask(
                        lambda warehouse: stored_spelling(warehouse.stores.catalog, self.settings.index.schema_org)
                    ),
                )
            return self._queries

    def across_pages(self, stores: Stores) -> AcrossFindings:
        """Findings that only several pages show. A query process looks for them, so that their time and memory
        have a limit and searches do not wait for it."""
        return self._across.get(stores.opened_at, lambda: self._find_across(stores))

    def _find_across(self, stores: Stores) -> AcrossFindings:
        limits = msgspec.structs.replace(self.settings.limits, query_length=_TRUSTED_QUERY, query_rows=0)

        def asked(query: str) -> Iterator[bytes]:
            with self.queries.ask(query, format="json", limits=limits, client="findings across pages") as answer:
                yield answer.read()

        try:
            local = query_source(stores.places.quads, self.settings).is_local
            return AcrossFindings(across_pages(stores, asked if local else None))
        except QueryError as error:
            return AcrossFindings({}, f"{error}; `quadloom audit` looks without a limit")

    def _statistics(self) -> Summary:
        return self.reader.ask(lambda warehouse: warehouse.ask.statistics(limit=MOST_TERMS))

    def send(self, verb: str, **arguments: Value) -> Value | None:
        """Send a command to the running crawl and return its answer; None = no crawl is running. On a cluster, what is
        about all workers goes to all of them; the rest is done by one for all."""
        if not self.settings.stores.is_shared:
            return ask(self.path, verb, **arguments)
        with Steering(self.settings) as steering:
            if verb not in (*RETAINED, "stop"):
                return steering.ask_one(verb, arguments)
            replies = steering.send(verb, arguments)
        refused = next((reply for reply in replies if reply.error), None)
        if refused is not None:
            raise QuadloomError(f"{refused.worker}: {refused.error}", hint=refused.hint)
        return replies[0].answer if replies else None  # type: ignore[return-value]  # JSON

    def warm(self) -> None:
        """Half a second of work that the first visitors would wait for: views of the stores, and a query process.

        What cannot be opened yet, because the first crawl has just started, is opened by the first request.
        """
        self.reader.warm()
        with contextlib.suppress(QuadloomError), self.queries.ask("ASK {}") as answer:
            answer.read()

    def close(self) -> None:
        self.crawl.close()
        if self._queries is not None:
            self._queries.close()
        if self._text is not None:
            self._text.close()
        for lane in (self.querying, self.fetching, self.waiting, self.exporting, self.answering, self.listening):
            lane.close()
        self.scanner.close()
        self.reader.close()
