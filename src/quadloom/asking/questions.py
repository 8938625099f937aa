"""All questions that a warehouse answers, as methods of one object."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from quadloom.asking.entity import Entity, describe_entity
from quadloom.asking.findings import LocatedDefect, findings
from quadloom.asking.history import PageHistory, difference_between, graph_after, history
from quadloom.asking.search import moment, search, search_request, several
from quadloom.asking.sparql.service import QueryResult, QueryService
from quadloom.asking.statistics import Summary, summary
from quadloom.asking.versions import VersionDifference
from quadloom.model.quads import Quads
from quadloom.settings import Settings
from quadloom.stores.backends import query_source
from quadloom.stores.protocols.archive import Archive
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Frontier
from quadloom.stores.protocols.quads import QuadStore
from quadloom.stores.protocols.text import SearchAnswer, TextIndex

_FOREVER = 1e18


class WarehouseQueries:
    """Reads the stores it is given and never writes. `path`: the warehouse's folder, whose quads user queries read.

    Starts query processes with the first SPARQL query; `close` ends them and leaves the stores open.
    """

    def __init__(
        self,
        path: Path,
        settings: Settings,
        *,
        frontier: Frontier,
        catalog: Catalog,
        archive: Archive,
        quads: QuadStore,
        text: TextIndex,
    ) -> None:
        self.path = path
        self.settings = settings
        self.frontier = frontier
        self.catalog = catalog
        self.archive = archive
        self.quads = quads
        self.text = text
        self._queries: QueryService | None = None

    @property
    def queries(self) -> QueryService:
        """User queries, each in a process that can be killed."""
        if self._queries is None:
            self._queries = QueryService(
                query_source(self.path / "quads", self.settings),
                self.settings.limits,
                text=self.text,
                concurrency=self.settings.web.concurrency,
            )
        return self._queries

    def close(self) -> None:
        if self._queries is not None:
            self._queries.close()
            self._queries = None

    def sparql(self, query: str, *, format: str = "") -> QueryResult:
        """Ask in SPARQL; well-known prefixes need no PREFIX line. `.rows()`, `.boolean()`, or iterate for bytes."""
        return self.queries.ask(query, format=format, client="library")

    def search(
        self,
        text: str = "",
        *,
        type: str | Sequence[str] = (),
        vocabulary: str | Sequence[str] = (),
        site: str | Sequence[str] = (),
        language: str | Sequence[str] = (),
        kind: str | Sequence[str] = (),
        since: str | float = 0.0,
        until: str | float = 0.0,
        limit: int = 10,
        offset: int = 0,
        facets: bool = False,
    ) -> SearchAnswer:
        """Pages by words, best first. Types may be `schema:Event`, `Event` or an IRI."""
        request = search_request(
            text,
            types=type,
            vocabularies=vocabulary,
            sites=site,
            languages=language,
            kinds=kind,
            since=since,
            until=until,
            limit=limit,
            offset=offset,
            facets=facets,
        )
        return search(self.text, request)

    def findings(self, *, codes: str | Sequence[str] = (), site: str | Sequence[str] = ()) -> Iterator[LocatedDefect]:
        """Every defect of the pages as of their last visit; `site` is a registered domain or a host."""
        return findings(self.catalog, codes=several(codes), sites=several(site))

    def entity(self, iri: str, *, consolidate: bool | None = None) -> Entity:
        """All statements about an IRI, with the pages that make them. Raises `NothingFound` if there are none."""
        chosen = self.settings.index.consolidate if consolidate is None else consolidate
        return describe_entity(self.quads, iri, consolidate=chosen)

    def statistics(self, *, limit: int = 50) -> Summary:
        """Counts by class, property, vocabulary, site, kind, size and change rate."""
        return summary(self.catalog, self.frontier, self.quads, limit=limit)

    def history(self, url: str) -> PageHistory:
        """A page's visits, newest first."""
        return history(self.catalog, url)

    def graph_at(self, url: str, when: str | float = _FOREVER) -> Quads:
        """A page's graph as of a time (unix seconds or ISO date); without one, as of its last visit."""
        found = history(self.catalog, url)
        return graph_after(self.archive, found.page, found.at(moment(when)), self.settings)

    def changes(self, url: str, since: str | float, until: str | float = _FOREVER) -> VersionDifference:
        """Statements added and removed between two times; its `reason` says if they cannot be known."""
        found = history(self.catalog, url)
        old, new = found.at(moment(since)), found.at(moment(until))
        return difference_between(self.archive, found.page, old, new, self.settings)
