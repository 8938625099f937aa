"""Evaluates queries of users, in the process that runs them (`quadloom.asking.sparql.worker`).

An embedded store is opened for reading only. Its view is frozen when it is opened; it is opened again if files have
changed since, at most once in `_REOPEN_SECONDS`.

A query for a SPARQL server is passed on. The engine parses it once on an empty store before that. This finds mistakes
and their place, says which form the answer has, and makes sure that it is a query and no update, which the server would
carry out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from typing import Protocol, TypeVar

import pyoxigraph as ox

from quadloom.errors import StoreError
from quadloom.stores.protocols.queries import QuerySource, ServerChoice, SparqlServer, StoreQuery
from quadloom.stores.quads.sparql_client import ROWS, TRIPLES, SparqlClient, SparqlResponse

T = TypeVar("T")
_REOPEN_SECONDS = 2.0
_SERVER_ATTEMPTS = 3  # few, since somebody waits for the answer


class GatheredRows:
    """The solutions of several servers, one server after another."""

    def __init__(self, results: Sequence[ox.QuerySolutions], choice: ServerChoice) -> None:
        self.variables = results[0].variables
        self._results = results
        self._choice = choice

    def __iter__(self) -> Iterator[ox.QuerySolution]:
        rows: Iterator[ox.QuerySolution] = chain.from_iterable(self._results)
        if self._choice.distinct:
            rows = _each_once(rows, lambda row: tuple(map(str, row)))
        return islice(rows, self._choice.limit or None)


Rows = ox.QuerySolutions | GatheredRows
EngineResult = Rows | ox.QueryBoolean | bool | Iterator[ox.Triple]


class QueryEngine(Protocol):
    """Evaluates one query at a time."""

    def evaluate(self, query: StoreQuery) -> EngineResult:
        """Solutions, yes or no, or triples, while they arrive. Raises `SyntaxError` for what is no query, `StoreError`
        if a server fails, and `OSError` or `RuntimeError` if files of the view went; so may the iteration. After
        `reopen` the query can be tried again."""
        ...

    def reopen(self) -> None:
        """Use a new view from now on."""
        ...


def open_engine(source: QuerySource) -> QueryEngine:
    """What evaluates queries on `source`. Nothing is opened before the first query."""
    return _ServerEngine(source.servers) if source.servers else _LocalEngine(source.folder)


class _LocalEngine:
    """The files of an embedded store."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._store: ox.Store | None = None
        self._seen: tuple[tuple[str, int, int], ...] = ()
        self._opened_at = 0.0

    def evaluate(self, query: StoreQuery) -> EngineResult:
        return _evaluated(self._view(query) if query.data is None else _scratch(query.data), query)

    def reopen(self) -> None:
        self._store = None

    def _view(self, query: StoreQuery) -> ox.Store:
        now = time.monotonic()
        if self._store is not None and not query.fresh and now - self._opened_at < _REOPEN_SECONDS:
            return self._store
        files = _files(self._folder)
        if self._store is None or files != self._seen:
            self._store = None
            self._store = ox.Store.read_only(self._folder)
            self._seen = files
        self._opened_at = now
        return self._store


class _ServerEngine:
    """Servers that queries are passed on to; several are asked at the same time."""

    def __init__(self, servers: Sequence[SparqlServer]) -> None:
        self._clients = [SparqlClient(server, attempts=_SERVER_ATTEMPTS) for server in servers]

    def evaluate(self, query: StoreQuery) -> EngineResult:
        if query.data is not None:
            return _evaluated(_scratch(query.data), query)
        is_graph = isinstance(ox.Store().query(query.query, prefixes=query.prefixes), ox.QueryTriples)
        choice = query.choice
        if choice.server is not None:
            return _received(_sent(self._clients[choice.server], query, is_graph), is_graph)
        with ThreadPoolExecutor(len(self._clients)) as threads:
            responses = list(threads.map(lambda client: _sent(client, query, is_graph), self._clients))
        results = [_received(response, is_graph) for response in responses]
        if all(isinstance(result, ox.QueryBoolean) for result in results):
            return any(map(bool, results))
        rows = [result for result in results if isinstance(result, ox.QuerySolutions)]
        if rows:
            return GatheredRows(rows, choice)
        triples = (triple for result in results if isinstance(result, Iterator) for triple in result)
        return islice(_each_once(triples, lambda triple: triple), choice.limit or None)

    def reopen(self) -> None:
        """Servers have no view."""


def _scratch(nquads: bytes) -> ox.Store:
    store = ox.Store()
    store.load(nquads, ox.RdfFormat.N_QUADS, lenient=True)
    return store


def _files(folder: str) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of the store's files: they differ as soon as anything was written."""
    found = []
    for entry in os.scandir(folder):
        if entry.name != "LOG":
            status = entry.stat()
            found.append((entry.name, status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))


def _evaluated(store: ox.Store, query: StoreQuery) -> ox.QuerySolutions | ox.QueryBoolean | ox.QueryTriples:
    chosen = bool(query.default_graphs or query.named_graphs)
    return store.query(
        query.query,
        prefixes=query.prefixes,
        use_default_graph_as_union=query.union and not chosen,
        default_graph=[ox.NamedNode(graph) for graph in query.default_graphs] if chosen else None,
        named_graphs=[ox.NamedNode(graph) for graph in query.named_graphs] if chosen else None,
    )


def _sent(client: SparqlClient, query: StoreQuery, is_graph: bool) -> SparqlResponse:
    return client.query(
        query.query,
        TRIPLES if is_graph else ROWS,
        union=query.union,
        limited=True,
        default_graphs=query.default_graphs,
        named_graphs=query.named_graphs,
    ).expect(TRIPLES if is_graph else ROWS)


def _received(response: SparqlResponse, is_graph: bool) -> ox.QuerySolutions | ox.QueryBoolean | Iterator[ox.Triple]:
    """A server's answer while it arrives."""
    if is_graph:
        return _triples(response)
    found = ox.parse_query_results(response, ox.QueryResultsFormat.JSON)  # type: ignore[arg-type]  # it only calls read
    assert isinstance(found, ox.QuerySolutions | ox.QueryBoolean), "SPARQL JSON is one of the two"
    return found


def _triples(response: SparqlResponse) -> Iterator[ox.Triple]:
    with response:
        try:
            for quad in ox.parse(response, ox.RdfFormat.N_TRIPLES, lenient=True):  # type: ignore[arg-type]  # it only calls read
                yield quad.triple
        except SyntaxError as error:
            raise StoreError(f"the server's answer is not N-Triples: {error.msg}", hint="try again") from error


def _each_once(items: Iterator[T], key: Callable[[T], Hashable]) -> Iterator[T]:
    seen: set[Hashable] = set()
    for item in items:
        if (name := key(item)) not in seen:
            seen.add(name)
            yield item
