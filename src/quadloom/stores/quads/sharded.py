"""The quad store on several SPARQL servers, each with a range of the 256 shards.

A page's graph is on the server of its site's shard, and so is its description, although the graph of descriptions is
one by name. So everything about one page is one request to one server. A pattern without a graph is asked of all of
them. A question that joins graphs is not answered: a graph on one server knows nothing of those on another. Such
questions belong to the lake, or are asked of each part (`parts`).

The order of the servers decides which graph is where: after it has changed, `quadloom rebuild` moves the pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from quadloom.model.quads import Quads
from quadloom.stores.protocols.quads import Difference
from quadloom.stores.protocols.queries import SparqlServer
from quadloom.stores.quads.nquads import lines_of, text_of
from quadloom.stores.quads.sparql import RefilledQuads, SparqlQuads
from quadloom.stores.shards import is_page_graph, join_refused, server_number


class ShardedQuads:
    """See `quadloom.stores.protocols.quads.QuadStore`. `describe` is atomic for each server."""

    def __init__(self, servers: Sequence[SparqlServer], *, read_only: bool = False) -> None:
        self._stores: list[SparqlQuads] = [SparqlQuads(server, read_only=read_only) for server in servers]

    def replace(self, quads: Quads, known: bytes = b"") -> Difference:
        return self._of(quads.graph).replace(quads, known)

    def difference(self, quads: Quads) -> Difference:
        return self._of(quads.graph).difference(quads)

    def insert_new(self, batch: Sequence[Quads], about: bytes = b"") -> None:
        batches: list[list[Quads]] = [[] for _ in self._stores]
        lines: list[list[str]] = [[] for _ in self._stores]
        for quads in batch:
            batches[self._number(quads.graph)].append(quads)
        for line in lines_of(about):
            lines[self._number(line[1 : line.index(">")])].append(line)
        for store, some, texts in zip(self._stores, batches, lines, strict=True):
            if some or texts:
                store.insert_new(some, text_of(texts))

    def describe(self, graph: str, descriptions: Sequence[tuple[str, bytes]]) -> None:
        parts: list[list[tuple[str, bytes]]] = [[] for _ in self._stores]
        for subject, nquads in descriptions:
            parts[self._number(subject)].append((subject, nquads))
        for store, part in zip(self._stores, parts, strict=True):
            if part:
                store.describe(graph, part)

    def remove(self, graph: str) -> Difference:
        removed = [line for store in self._having(graph) for line in store.remove(graph).removed]
        return Difference((), tuple(sorted(removed)))

    def graph(self, graph: str) -> bytes:
        lines = [line for store in self._having(graph) for line in lines_of(store.graph(graph))]
        return text_of(sorted(lines))

    def match(
        self, subject: str | None, predicate: str | None, object: str | None, graph: str | None, limit: int = 0
    ) -> Iterator[str]:
        left = limit
        for store in self._having(graph[1:-1]) if graph is not None else self._stores:
            for line in store.match(subject, predicate, object, graph, left):
                yield line
                left -= bool(limit)
            if limit and not left:
                return

    def query(self, sparql: str) -> bytes:
        """Raises `QueryRefused`: no server has all graphs."""
        raise join_refused("a query joins their graphs")

    def parts(self, sparql: str) -> Iterator[bytes]:
        for store in self._stores:
            yield store.query(sparql)

    def graphs(self) -> Iterator[str]:
        shared: set[str] = set()
        for store in self._stores:
            for graph in store.graphs():
                if is_page_graph(graph):
                    yield graph
                else:
                    shared.add(graph)
        yield from shared

    def dump(self) -> Iterator[bytes]:
        for store in self._stores:
            yield from store.dump()

    def __len__(self) -> int:
        return sum(map(len, self._stores))

    def flush(self) -> None:
        for store in self._stores:
            store.flush()

    def release_memory(self) -> None:
        """Left to the servers."""

    def optimize(self) -> None:
        for store in self._stores:
            store.optimize()

    def close(self) -> None:
        for store in self._stores:
            store.close()

    def _number(self, graph: str) -> int:
        return server_number(graph, len(self._stores))

    def _of(self, graph: str) -> SparqlQuads:
        return self._stores[self._number(graph)]

    def _having(self, graph: str) -> list[SparqlQuads]:
        return [self._of(graph)] if is_page_graph(graph) else self._stores


class RefilledShards(ShardedQuads):
    """All servers rebuilt in place, see `RefilledQuads`. Pages that another server has now are removed from the one
    that had them."""

    def __init__(self, servers: Sequence[SparqlServer]) -> None:
        self._refilled = [RefilledQuads(server) for server in servers]
        self._stores = [*self._refilled]

    def written_elsewhere(self, graph: str, subjects: Iterable[str]) -> None:
        """See `RefilledQuads.written_elsewhere`."""
        for subject in subjects:
            self._refilled[self._number(subject)].written_elsewhere(graph, (subject,))

    def finish(self) -> None:
        """See `RefilledQuads.finish`."""
        described = frozenset().union(*(store.described for store in self._refilled))
        for store in self._refilled:
            store.finish(described)
