"""What all handlers share: settings, views of the warehouse, the query service, tokens, the feed of events."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from quadloom.asking.sparql.service import QueryService
from quadloom.crawl.control import Value, ask
from quadloom.errors import QuadloomError
from quadloom.settings import Settings
from quadloom.stores.backends import query_source
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.text.tantivy import TantivyText
from quadloom.web.server.crawl_feed import MonitorFeed
from quadloom.web.server.lanes import Lane
from quadloom.web.server.reading import WarehouseReader
from quadloom.web.server.response_cache import ResponseCache
from quadloom.web.server.static_files import StaticFiles
from quadloom.web.server.tokens import FILE, Tokens
from quadloom.web.view.cards import Cards

# One more than a client may occupy (`web.concurrency`), so that nobody alone holds up everybody's queries.
_QUERY_PROCESSES = 3


class SiteState:
    """`may_control`: this server was started with --crawl, so tokens open the control routes."""

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
        self.kept = ResponseCache()
        self.cards = Cards()
        self.reader = WarehouseReader(path, settings)
        self.scanner = WarehouseReader(path, settings, name="scanning", threads=2, line=50)
        # Threads here wait for others: for a query process, for a foreign server, for the crawl's owner.
        self.asking = Lane("asking", threads=16, line=200, patience=5.0)
        self.visiting = Lane("visiting", threads=4, line=8, patience=10.0)
        self.waiting = Lane("waiting", threads=8, line=200, patience=5.0)
        self.tokens = Tokens(Path(settings.web.token_file) if settings.web.token_file else path / FILE)
        self.feed = MonitorFeed(path, clock)
        self.listeners: Counter[str] = Counter()  # open event streams by client; only the event loop counts
        self.static = StaticFiles.load(Path(__file__).parents[1] / "static")
        self._query_processes = query_processes
        self._queries: QueryService | None = None
        self._lock = threading.Lock()

    @property
    def queries(self) -> QueryService:
        """Made at the first query: before a first crawl there is nothing that it could open."""
        with self._lock:
            if self._queries is None:
                self._queries = QueryService(
                    query_source(self.path / "quads", self.settings),
                    self.settings.limits,
                    text=self._text(),
                    processes=self._query_processes,
                    concurrency=self.settings.web.concurrency,
                )
            return self._queries

    def _text(self) -> TextIndex | None:
        try:
            return TantivyText(self.path / "text", read_only=True)
        except QuadloomError:
            return None

    def tell(self, verb: str, **arguments: Value) -> Value | None:
        """Ask the running crawl; None = none runs."""
        return ask(self.path, verb, **arguments)

    def warm(self) -> None:
        """Half a second of work that the first visitors would wait for: views of the stores, and a query process.

        What cannot be opened yet, since the first crawl is only beginning, is left to them.
        """
        self.reader.warm()
        with contextlib.suppress(QuadloomError), self.queries.ask("ASK {}") as answer:
            answer.read()

    def close(self) -> None:
        self.feed.close()
        if self._queries is not None:
            self._queries.close()
        for lane in (self.asking, self.visiting, self.waiting):
            lane.close()
        self.scanner.close()
        self.reader.close()
