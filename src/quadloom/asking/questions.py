"""All questions that a warehouse answers: words, SPARQL, entities, history, findings, statistics."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Unpack

import msgspec

from quadloom.asking.audit.across_pages import audited_pages
from quadloom.asking.changes.history import PageHistory, difference_between, graph_after, history
from quadloom.asking.changes.readable_changes import PropertyChange, StoredNames, readable
from quadloom.asking.changes.versions import VersionDifference, VersionReader
from quadloom.asking.entity import Entity, describe_entity
from quadloom.asking.findings import LocatedDefect
from quadloom.asking.report.numbers import WarehouseNumbers, counts_of, numbers_from, numbers_of, store_counts
from quadloom.asking.search import LAST_MOMENT, SearchFilters, moment, search, search_request, several
from quadloom.asking.sparql.service import QueryResult, QueryService
from quadloom.asking.statistics import Summary, summary
from quadloom.asking.things.table import ThingsCache, ThingTables
from quadloom.model.phase import OWED_BY_PHASE
from quadloom.model.quads import Quads
from quadloom.model.wire import Value
from quadloom.stores.opened import Stores
from quadloom.stores.protocols.catalog import Catalog, VisitRow
from quadloom.stores.protocols.text import SearchAnswer
from quadloom.stores.quads.json_results import Row
from quadloom.stores.statistics import Statistics, stored_spelling


class WarehouseQueries:
    """Nothing here writes. `close` ends the query processes, if any were started."""

    def __init__(self, stores: Stores, versions: VersionReader) -> None:
        self.versions = versions
        self.path = stores.path
        self.settings = stores.settings
        self.catalog = stores.catalog
        self.archive = stores.archive
        self.quads = stores.quads
        self._stores = stores
        self._service: QueryService | None = None

    @property
    def queries(self) -> QueryService:
        """User queries, each in a process that can be killed."""
        if self._service is None:
            self._service = QueryService(
                self._stores.query_source,
                self.settings.limits,
                text=self._stores.text,
                concurrency=self.settings.web.concurrency,
                schema_org=stored_spelling(self.catalog, self.settings.index.schema_org),
            )
        return self._service

    def close(self) -> None:
        if self._service is not None:
            self._service.close()

    def sparql(self, query: str, *, format: str = "") -> QueryResult:
        """Ask in SPARQL; well-known prefixes need no PREFIX line. `.rows()`, `.boolean()`, or iterate for bytes."""
        return self.queries.ask(query, format=format, client="library")

    def search(self, text: str = "", **filters: Unpack[SearchFilters]) -> SearchAnswer:
        """Pages by words, best first; see `search_request` for the filters."""
        return search(self._stores.text, search_request(text, **filters), self.catalog)

    def findings(self, *, codes: str | Sequence[str] = (), site: str | Sequence[str] = ()) -> Iterator[LocatedDefect]:
        """Every defect of the pages as of their last visit, including those that only several pages together show.
        `site` is a registered domain or a host."""
        wanted = several(codes)
        for page in audited_pages(self._stores, several(site)):
            yield from (LocatedDefect(page.row.href, one) for one in page.findings if not wanted or one.code in wanted)

    def entity(self, iri: str, *, consolidate: bool | None = None) -> Entity:
        """All statements about an IRI, with the pages that make them. Raises `NothingFound` if there are none."""
        chosen = self.settings.index.consolidate if consolidate is None else consolidate
        return describe_entity(self.quads, iri, consolidate=chosen)

    def tables(self, cache: ThingsCache | None = None, queries: QueryService | None = None) -> ThingTables:
        """Things of a type as a table; its SPARQL runs in a query process, `queries` or this warehouse's own."""

        def ask(query: str) -> list[Row]:
            with (queries or self.queries).ask(query, limits=self.settings.limits, client="tables") as result:
                return result.rows()

        counts = Statistics.saved(self.catalog)
        return ThingTables(self.quads, ask, dict(+counts.classes), dict(+counts.properties), cache or ThingsCache())

    def statistics(self, *, limit: int = 50) -> Summary:
        """Counts by class, property, vocabulary, site, kind, size and change rate."""
        return summary(self.catalog, self._stores.frontier, self.quads, limit=limit)

    def numbers(self) -> WarehouseNumbers:
        """The five numbers of a warehouse: pages, documents and statements; `quadloom.asking.report.numbers` defines
        them."""
        return numbers_of(self.catalog, self._stores.text, self.quads)

    def status(self) -> dict[str, Value]:
        """Frontier states, pages by outcome, sizes: what `quadloom status` prints of a warehouse at rest.

        Other servers than the database have two seconds each. `away` says which did not answer, and why; their figures
        are those that the catalog has, or None."""
        stores = self._stores
        counted, away = store_counts(stores)
        stats = stores.frontier.stats(time.time())
        counts = stores.catalog.counts()
        return {
            "warehouse": str(stores.path),
            "running": False,
            "state": "stopped",
            "frontier": {**msgspec.structs.asdict(stats), "total": stats.total},
            "outcomes": {**counts_of(counts, "outcome")},
            "kinds": {**counts_of(counts, "kind")},
            "statuses": {**counts_of(counts, "status")},
            **({"owed": _owed(stores.catalog)} if stores.catalog.backlog.counts() else {}),
            "away": {**away},
            "numbers": msgspec.structs.asdict(numbers_from(stores.catalog, counted.get("text"), counted.get("quads"))),
            "quads": counted.get("quads"),
            "documents": counted.get("text"),
            "text_index": "outdated" if "text" in counted and stores.text.is_outdated else "current",
            "rates": {},
            "sizes": {
                "database": stores.state.size(),
                "archive": counted.get("archive", 0),
                "quads": _size(stores.places.quads),
                "text": _size(stores.places.text),
            },
        }

    def history(self, url: str) -> PageHistory:
        """A page's visits, newest first."""
        return history(self.catalog, url)

    def graph_at(self, url: str, when: str | float = LAST_MOMENT) -> Quads:
        """A page's graph as of a time (unix seconds or ISO date); without one, as of its last visit."""
        found = history(self.catalog, url)
        return graph_after(self.versions, found.page, found.at(moment(when)))

    def changes(self, url: str, since: str | float, until: str | float = LAST_MOMENT) -> VersionDifference:
        """What was added and removed between two times; its `reason` says if that cannot be known. Before its first
        visit a page stated nothing."""
        found = history(self.catalog, url)
        begin = moment(since)
        known = any(visit.fetched_at <= begin for visit in found.visits)
        nothing = VisitRow(fingerprint=found.page.fingerprint, fetched_at=begin, status=0, outcome="")
        old = found.at(begin) if known else nothing
        new = found.at(moment(until))
        return difference_between(self.versions, found.page, old, new)

    def readable(self, added: Iterable[str], removed: Iterable[str]) -> tuple[PropertyChange, ...]:
        """A difference of statements (N-Quads lines) for people: thing, property, before and after."""
        return readable(added, removed, StoredNames(self.quads))


def _owed(catalog: Catalog) -> dict[str, Value]:
    """How many pages wait for each phase, in the order of the phases."""
    owing = catalog.backlog.counts()
    return {phase: owing[owed] for phase, owed in OWED_BY_PHASE.items() if owed in owing}


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else 0
