"""The quad store on a SPARQL 1.1 server: Oxigraph's, Fuseki, GraphDB, Virtuoso and others.

Only standard requests are made: SPARQL 1.1 Query and Update over the SPARQL 1.1 Protocol, and, if an address is given,
the Graph Store Protocol to read one graph. Every pattern of this store names its graph (`GRAPH ?g { … }`), so nothing
depends on what a server takes for the default graph. Only user queries do: they need the union of all graphs, which
some servers always use and others on request by a parameter (`stores.quads_union`).

A refresh reads the old graph and sends the difference as one operation, so it is as atomic as the server's operations.
Blank nodes never arrive here (`quadloom.documents.syntaxes.rdf.blank_nodes` has replaced them by IRIs). That makes a
difference possible: SPARQL cannot delete a statement with a blank node by name.

One warehouse (or one cluster) has a dataset for itself. Graphs in it that are not its pages are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyoxigraph as ox

from quadloom.errors import StoreError
from quadloom.model.quads import Quads
from quadloom.stores.protocols.quads import Difference
from quadloom.stores.protocols.queries import SparqlServer
from quadloom.stores.quads.nquads import as_stored, lines_of, parse_term, text_of
from quadloom.stores.quads.sparql_client import ROWS, TRIPLES, SparqlClient, SparqlResponse
from quadloom.stores.quads.sparql_text import exchange, graph_name, insertion, is_name, term

_UPDATE_BYTES = 1 << 20  # of statements in one request: larger ones gain nothing, and cost the server memory
_SUBJECTS = 500  # asked for in one query
_CHUNK = 1 << 20
_READER_TRIES = 3  # a person waits for the answer; a crawl has time
_Term = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple


class SparqlQuads:
    """See `quadloom.stores.protocols.quads.QuadStore`. Safe for many threads if the server is."""

    def __init__(self, server: SparqlServer, *, read_only: bool = False, client: SparqlClient | None = None) -> None:
        self._client = client or (SparqlClient(server, attempts=_READER_TRIES) if read_only else SparqlClient(server))
        self._server = server
        self._read_only = read_only
        self._count: int | None = None
        if not read_only:
            self._client.query("ASK {}").expect(ROWS).whole()  # a wrong address should fail before the first page

    def replace(self, quads: Quads, known: bytes = b"") -> Difference:
        difference = self.difference(quads)
        if difference:
            self._update(exchange(quads.graph, difference.removed, difference.added))
        return difference

    def difference(self, quads: Quads) -> Difference:
        old = set(self._lines(quads.graph))
        new = set(lines_of(quads.nquads))
        # A statement that is not there in these words may be there by value: servers store numbers as 1, not as 01.
        changed = set(as_stored(new - old)) if old and new - old else new
        return Difference(tuple(sorted(changed - old)), tuple(sorted(old - new - changed)))

    def insert_new(self, batch: Sequence[Quads], about: bytes = b"") -> None:
        parts: list[tuple[str, Sequence[str]]] = [
            (quads.graph, lines_of(quads.nquads)) for quads in batch if quads.nquads
        ]
        parts += _by_graph(lines_of(about)).items()
        waiting: list[tuple[str, Sequence[str]]] = []
        size = 0
        for graph, lines in _portions(parts):
            if waiting and size >= _UPDATE_BYTES:
                self._update(insertion(waiting))
                waiting, size = [], 0
            waiting.append((graph, lines))
            size += sum(map(len, lines))
        if waiting:
            self._update(insertion(waiting))

    def describe(self, graph: str, descriptions: Sequence[tuple[str, bytes]]) -> None:
        new = {line for _, nquads in descriptions for line in lines_of(nquads)}
        old: set[str] = set()
        for start in range(0, len(descriptions), _SUBJECTS):
            old |= self._about(graph, [subject for subject, _ in descriptions[start : start + _SUBJECTS]])
        changed = set(as_stored(new - old)) if old and new - old else new
        added, removed = sorted(changed - old), sorted(old - new - changed)
        if added or removed:
            self._update(exchange(graph, removed, added))

    def remove(self, graph: str) -> Difference:
        removed = tuple(sorted(self._lines(graph)))
        if removed:
            self._update(f"DROP SILENT GRAPH {graph_name(graph)}")
        return Difference((), removed)

    def graph(self, graph: str) -> bytes:
        return text_of(sorted(self._lines(graph)))

    def match(
        self, subject: str | None, predicate: str | None, object: str | None, graph: str | None, limit: int = 0
    ) -> Iterator[str]:
        wanted = [None if text is None else _as_kept(parse_term(text)) for text in (subject, predicate, object, graph)]
        if any(isinstance(found, ox.BlankNode) for found in wanted):
            return  # in SPARQL it would be a variable, and this store has no blank nodes
        if any(found is not None and not isinstance(found, ox.NamedNode) for found in (*wanted[:2], wanted[3])):
            return  # a misplaced term matches nothing
        texts = [f"?{name}" if found is None else term(str(found)) for name, found in zip("spog", wanted, strict=True)]
        pattern = f"GRAPH {texts[3]} {{ {' '.join(texts[:3])} }}"
        free = [name for name, found in zip("spog", wanted, strict=True) if found is None]
        # Without a variable there is nothing to select but whether the statement is there.
        select = " ".join(f"?{name}" for name in free) or "(1 AS ?found)"
        ending = f" LIMIT {limit}" if limit else ""
        for row in self._rows(f"SELECT {select} {{ {pattern} }}{ending}"):
            yield _line(*(row[name] if found is None else found for name, found in zip("spog", wanted, strict=True)))

    def query(self, sparql: str) -> bytes:
        answer = self._client.query(sparql, f"{ROWS}, {TRIPLES};q=0.9", union=True)
        return answer.expect(ROWS, TRIPLES).whole()

    def parts(self, sparql: str) -> Iterator[bytes]:
        yield self.query(sparql)

    def graphs(self) -> Iterator[str]:
        for row in self._rows("SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }"):
            name = row["g"]
            if isinstance(name, ox.NamedNode):
                yield name.value

    def dump(self) -> Iterator[bytes]:
        parts: list[str] = []
        size = 0
        for line in self.match(None, None, None, None):
            parts.append(line)
            size += len(line)
            if size >= _CHUNK:
                yield text_of(parts)
                parts, size = [], 0
        if parts:
            yield text_of(parts)

    def __len__(self) -> int:
        """Counted by the server, which may have to read all quads; a reader counts once."""
        if self._count is not None:
            return self._count
        (row,) = self._rows("SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }")
        number = row["n"]
        assert isinstance(number, ox.Literal), "COUNT gives a number"
        if self._read_only:
            self._count = int(number.value)
        return int(number.value)

    def flush(self) -> None:
        """What the server has acknowledged is as durable as the server promises."""

    def release_memory(self) -> None:
        """Left to the server."""

    def optimize(self) -> None:
        """Left to the server."""

    def close(self) -> None:
        self._client.close()

    def _update(self, sparql: str) -> None:
        if self._read_only:
            raise StoreError("this view of the quads is read-only", hint="open the warehouse for writing")
        self._client.update(sparql)

    def _lines(self, graph: str) -> list[str]:
        if not is_name(graph):
            return []
        tail = f"{graph_name(graph)} ."
        with self._graph(graph) as answer:
            return [f"{triple} {tail}" for triple in ox.parse(answer.whole(), ox.RdfFormat.N_TRIPLES, lenient=True)]

    def _graph(self, graph: str) -> SparqlResponse:
        answer = self._client.graph(graph) if self._server.graph_store else None
        if answer is None:
            sparql = f"CONSTRUCT {{ ?s ?p ?o }} {{ GRAPH {graph_name(graph)} {{ ?s ?p ?o }} }}"
            answer = self._client.query(sparql, TRIPLES)
        return answer.expect(TRIPLES)

    def _about(self, graph: str, subjects: Sequence[str]) -> set[str]:
        listed = " ".join(graph_name(subject) for subject in subjects if is_name(subject))
        name = ox.NamedNode(graph)
        found = self._rows(f"SELECT * {{ VALUES ?s {{ {listed} }} GRAPH {graph_name(graph)} {{ ?s ?p ?o }} }}")
        return {_line(row["s"], row["p"], row["o"], name) for row in found}

    def _rows(self, sparql: str) -> Iterator[ox.QuerySolution]:
        """Solutions while they arrive."""
        with self._client.query(sparql).expect(ROWS) as answer:
            try:
                found = ox.parse_query_results(answer, ox.QueryResultsFormat.JSON)  # type: ignore[arg-type]  # it only calls read
                assert isinstance(found, ox.QuerySolutions), "a SELECT has solutions"
                yield from found
            except SyntaxError as error:
                raise StoreError(
                    f"{self._server.query} sent a response that is not SPARQL JSON: {error.msg}",
                    hint="stores.quads must be the address of a SPARQL 1.1 server",
                ) from error


class RefilledQuads(SparqlQuads):
    """The same store rebuilt in place, for `rebuild`: readers see each graph before or after, never missing.

    There is no second dataset to fill and swap in, so pages are replaced one by one; `finish` removes pages that are
    described and were not written again. A rebuild that ends before `finish` is simply repeated.
    """

    def __init__(self, server: SparqlServer) -> None:
        super().__init__(server)
        self._written: dict[str, set[str]] = {}  # graph of descriptions → subjects described again

    def insert_new(self, batch: Sequence[Quads], about: bytes = b"") -> None:
        for quads in batch:
            self.replace(quads)
        for graph, lines in _by_graph(lines_of(about)).items():
            subjects: dict[str, list[str]] = {}
            for line in lines:
                subjects.setdefault(line[1 : line.index(">")], []).append(line)
            self.describe(graph, [(subject, text_of(texts)) for subject, texts in subjects.items()])
            self._written.setdefault(graph, set()).update(subjects)

    def written_elsewhere(self, graph: str, subjects: Iterable[str]) -> None:
        """Other processes have described these subjects again."""
        self._written.setdefault(graph, set()).update(subjects)

    @property
    def described(self) -> frozenset[str]:
        """Graphs of descriptions that were written again."""
        return frozenset(self._written)

    def finish(self, described: Iterable[str] = ()) -> None:
        """Remove pages that are described and were not written again, with their descriptions. `described`: graphs of
        descriptions to look into, besides those that were written."""
        for graph in sorted({*self._written, *described}):
            written = self._written.get(graph, set())
            rows = self._rows(f"SELECT DISTINCT ?s {{ GRAPH {graph_name(graph)} {{ ?s ?p ?o }} }}")
            left = {row["s"].value for row in rows if isinstance(row["s"], ox.NamedNode)} - written
            for subject in sorted(left):
                self.remove(subject)
            self.describe(graph, [(subject, b"") for subject in sorted(left)])


def _line(subject: object, predicate: object, object_: object, graph: object) -> str:
    return f"{subject} {predicate} {object_} {graph} ."


def _as_kept(found: _Term) -> _Term:
    """Numbers by value, as the store returns them."""
    if not isinstance(found, ox.Literal):
        return found
    name = ox.NamedNode("x:x")
    scratch = ox.Store()
    scratch.add(ox.Quad(name, name, found))
    (kept,) = scratch
    value: _Term = kept.object
    return value


def _by_graph(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line[line.rindex("<") + 1 : line.rindex(">")], []).append(line)
    return {**found}


def _portions(parts: Sequence[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, Sequence[str]]]:
    """No graph longer than a request may be."""
    for graph, lines in parts:
        portion: list[str] = []
        size = 0
        for line in lines:
            if size >= _UPDATE_BYTES:
                yield graph, portion
                portion, size = [], 0
            portion.append(line)
            size += len(line)
        yield graph, portion
