"""The quad store as a dictionary of graphs: the reference of the contract suite and a test double."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyoxigraph as ox

from quadloom.model.quads import Quads
from quadloom.stores.protocols.quads import Difference
from quadloom.stores.quads.nquads import lines_of, parse_term
from quadloom.stores.quads.oxigraph import evaluate


class MemoryQuads:
    def __init__(self) -> None:
        self._graphs: dict[str, set[str]] = {}

    def replace(self, quads: Quads, known: bytes = b"") -> Difference:
        old = self._graphs.pop(quads.graph, set())
        new = set(lines_of(quads.nquads))
        if new:
            self._graphs[quads.graph] = new
        return Difference(tuple(sorted(new - old)), tuple(sorted(old - new)))

    def difference(self, quads: Quads) -> Difference:
        old, new = self._graphs.get(quads.graph, set()), set(lines_of(quads.nquads))
        return Difference(tuple(sorted(new - old)), tuple(sorted(old - new)))

    def insert_new(self, batch: Sequence[Quads], about: bytes = b"") -> None:
        for quads in batch:
            self.replace(quads)
        for line in lines_of(about):
            self._graphs.setdefault(line[line.rindex("<") + 1 : line.rindex(">")], set()).add(line)

    def describe(self, graph: str, descriptions: Sequence[tuple[str, bytes]]) -> None:
        lines = self._graphs.setdefault(graph, set())
        for subject, nquads in descriptions:
            lines -= {line for line in lines if line.startswith(f"<{subject}> ")}
            lines |= set(lines_of(nquads))
        if not lines:
            del self._graphs[graph]

    def remove(self, graph: str) -> Difference:
        return Difference((), tuple(sorted(self._graphs.pop(graph, set()))))

    def graph(self, graph: str) -> bytes:
        return "".join(f"{line}\n" for line in sorted(self._graphs.get(graph, ()))).encode()

    def match(
        self, subject: str | None, predicate: str | None, object: str | None, graph: str | None, limit: int = 0
    ) -> Iterator[str]:
        wanted = [None if text is None else str(parse_term(text)) for text in (subject, predicate, object, graph)]
        number = 0
        for quad in ox.parse(b"".join(self.dump()), ox.RdfFormat.N_QUADS):
            terms = (quad.subject, quad.predicate, quad.object, quad.graph_name)
            if all(want in (None, str(term)) for want, term in zip(wanted, terms, strict=True)):
                yield f"{quad} ."
                number += 1
                if number == limit:
                    return

    def query(self, sparql: str) -> bytes:
        store = ox.Store()
        store.load(b"".join(self.dump()), ox.RdfFormat.N_QUADS)
        return evaluate(store, sparql)

    def parts(self, sparql: str) -> Iterator[bytes]:
        yield self.query(sparql)

    def graphs(self) -> Iterator[str]:
        yield from list(self._graphs)

    def dump(self) -> Iterator[bytes]:
        for name in list(self._graphs):
            yield self.graph(name)

    def __len__(self) -> int:
        return sum(map(len, self._graphs.values()))

    def flush(self) -> None:
        """Nothing is buffered."""

    def release_memory(self) -> None:
        """There are no caches."""

    def optimize(self) -> None:
        """Nothing to gain."""

    def close(self) -> None:
        """Nothing is open."""
