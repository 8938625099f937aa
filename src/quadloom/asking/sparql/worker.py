"""The process in which SPARQL queries run, one at a time: requests in, results out in pieces.

It owns nothing: an embedded store is opened for reading only, and the owner may kill this process at any moment. Its
address space is limited, so a query that collects too much ends this process and no other.

The view of an embedded store is frozen when it is opened. It is opened again when files have changed since, at most
once in `_REOPEN_SECONDS`.

If the quads are on a SPARQL server, the query is passed on. It has been checked before, and text patterns have become
VALUES; here the engine parses it once on an empty store. That finds mistakes and their place, says which form the
answer has, and makes sure that it is a query and no update, which the server would carry out. Then the query is sent as
it is, with PREFIX lines for the well-known prefixes that it uses.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice, pairwise
from typing import Literal

import msgspec
import pyoxigraph as ox

from quadloom.asking.sparql.checks import scan
from quadloom.asking.sparql.mistakes import explain_mistake
from quadloom.asking.sparql.result_formats import boolean, row_writer, write_graph
from quadloom.asking.sparql.spread import Spread
from quadloom.errors import QuerySyntaxError, StoreError
from quadloom.process.channel import Channel, run
from quadloom.process.limits import set_alarm
from quadloom.stores.quads.sparql_client import ROWS, TRIPLES, SparqlClient, SparqlResponse, SparqlServer

READY = "ready"  # the first message: imports are done, deadlines may count
_REOPEN_SECONDS = 2.0
_CHUNK = 64 * 1024
_ATTEMPTS = 7
_SERVER_ATTEMPTS = 3  # few, since somebody waits for the answer
_PLACE = re.compile(r"error at (\d+):(\d+): ")
_GRACE = 2.0  # the owner kills first; the alarm is for an owner that hangs

CutBy = Literal["", "rows", "bytes"]


class GatheredRows:
    """The solutions of several servers, one server after another."""

    def __init__(self, results: Sequence[ox.QuerySolutions], spread: Spread) -> None:
        self.variables = results[0].variables
        self._results = results
        self._spread = spread

    def __iter__(self) -> Iterator[ox.QuerySolution]:
        seen: set[tuple[str, ...]] = set()
        rows = 0
        for row in chain.from_iterable(self._results):
            if self._spread.distinct:
                key = tuple(map(str, row))
                if key in seen:
                    continue
                seen.add(key)
            yield row
            rows += 1
            if rows == self._spread.limit:
                return


Rows = ox.QuerySolutions | GatheredRows
Result = Rows | ox.QueryBoolean | bool | Iterator[ox.Triple]


class QuerySource(msgspec.Struct, frozen=True):
    """The directory of an embedded store, or servers that queries are passed on to."""

    path: str = ""
    servers: tuple[SparqlServer, ...] = ()


class QueryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One query. `data`: evaluate it on these N-Quads instead of the store."""

    query: str
    written: str  # as the user wrote it, to report where it does not parse
    format: str
    prefixes: dict[str, str]  # known without PREFIX lines
    written_prefixes: dict[str, str] = {}  # to shorten IRIs in Turtle and TriG
    union: bool = True
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    rows: int = 0
    result_bytes: int = 0
    seconds: float = 0.0
    data: bytes | None = None
    fresh: bool = False  # see everything committed by now, not the view of up to two seconds ago
    spread: Spread = Spread(server=0)  # which servers to ask, if there are any


class QueryHead(msgspec.Struct, frozen=True, tag="head"):
    """The first message of an answer."""

    form: Literal["select", "ask", "graph"]
    variables: tuple[str, ...] = ()


class QueryChunk(msgspec.Struct, frozen=True, tag="chunk"):
    """Further bytes of the result document."""

    data: bytes


class QueryEnd(msgspec.Struct, frozen=True, kw_only=True, tag="end"):
    """Seconds until the query was parsed and planned, seconds from there to the last row, and the size of the result.

    `truncated`: the limit that cut the result.
    """

    parse_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    rows: int = 0
    bytes: int = 0
    truncated: CutBy = ""


class QueryRefusal(msgspec.Struct, frozen=True, kw_only=True, tag="refusal"):
    """The last message of an answer that failed."""

    kind: Literal["syntax", "memory", "store"]
    message: str
    line: int = 0
    column: int = 0


class QueryReply(msgspec.Struct, frozen=True, array_like=True):
    """A message to the owner: a head, chunks, an end; or a refusal at any point."""

    content: QueryHead | QueryChunk | QueryEnd | QueryRefusal


_Send = Callable[[QueryHead | QueryChunk | QueryEnd | QueryRefusal], None]


class QueryWorker:
    """Answers requests on one store. With `clients` the store is on servers, and `path` is not used."""

    def __init__(self, path: str, send: _Send, clients: Sequence[SparqlClient] = ()) -> None:
        self._path = path
        self._send = send
        self._clients = clients
        self._store: ox.Store | None = None
        self._seen: tuple[tuple[str, int, int], ...] = ()
        self._opened_at = 0.0

    def answer(self, request: QueryRequest) -> None:
        try:
            self._answer(request)
        except SyntaxError as error:
            self._send(_syntax_refusal(error, request))
        except QuerySyntaxError as error:
            self._send(QueryRefusal(kind="syntax", message=error.message[:300]))
        except StoreError as error:
            self._send(QueryRefusal(kind="store", message=error.message[:500]))
        except MemoryError:
            self._send(QueryRefusal(kind="memory", message="the query needs more memory than it may have"))
        except (OSError, ValueError, RuntimeError) as error:
            self._store = None
            self._send(QueryRefusal(kind="store", message=str(error)[:500]))

    def _answer(self, request: QueryRequest) -> None:
        """A writer may remove a file of the view, also while the view is opened. Then the query is repeated on a new
        view, unless a part of the answer has been sent."""
        for attempt in itertools.count(1):
            output = _Output(self._send)
            try:
                ended = self._evaluate(request, output)
                output.flush()
                self._send(ended)
                return
            except (OSError, RuntimeError):
                if output.sent or attempt == _ATTEMPTS:
                    raise
                self._store = None
                time.sleep(0.01 * 2**attempt)

    def _evaluate(self, request: QueryRequest, output: _Output) -> QueryEnd:
        started = time.perf_counter()
        result = self._result(request)
        parsed = time.perf_counter()
        rows, cut = _write(result, request, output)
        return QueryEnd(
            parse_seconds=parsed - started,
            evaluate_seconds=time.perf_counter() - parsed,
            rows=rows,
            bytes=output.total,
            truncated=cut,
        )

    def _result(self, request: QueryRequest) -> Result:
        if not self._clients or request.data is not None:
            return _query_store(self._view(request), request)
        if request.spread.server is not None:
            return _query_server(self._clients[request.spread.server], request)
        return _query_servers(self._clients, request)

    def _view(self, request: QueryRequest) -> ox.Store:
        if request.data is not None:
            scratch = ox.Store()
            scratch.load(request.data, ox.RdfFormat.N_QUADS, lenient=True)
            return scratch
        now = time.monotonic()
        if self._store is not None and not request.fresh and now - self._opened_at < _REOPEN_SECONDS:
            return self._store
        files = _files(self._path)
        if self._store is None or files != self._seen:
            self._store = None
            self._store = ox.Store.read_only(self._path)
            self._seen = files
        self._opened_at = now
        return self._store


def _files(path: str) -> tuple[tuple[str, int, int], ...]:
    """Names, sizes and times of the store's files: they differ as soon as anything was written."""
    found = []
    for entry in os.scandir(path):
        if entry.name != "LOG":
            status = entry.stat()
            found.append((entry.name, status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))


def _query_store(store: ox.Store, request: QueryRequest) -> ox.QuerySolutions | ox.QueryBoolean | ox.QueryTriples:
    chosen = bool(request.default_graphs or request.named_graphs)
    return store.query(
        request.query,
        prefixes=request.prefixes,
        use_default_graph_as_union=request.union and not chosen,
        default_graph=[ox.NamedNode(graph) for graph in request.default_graphs] if chosen else None,
        named_graphs=[ox.NamedNode(graph) for graph in request.named_graphs] if chosen else None,
    )


def _query_server(client: SparqlClient, request: QueryRequest) -> Result:
    """The server's answer while it arrives. Raises `SyntaxError` for what is no query, else as `SparqlClient.query`."""
    media_type = _media_type(request)
    return _parsed(_sent(client, request, media_type), media_type)


def _query_servers(clients: Sequence[SparqlClient], request: QueryRequest) -> Result:
    """What all servers answer together, see `quadloom.asking.sparql.spread`. They are asked at the same time."""
    media_type = _media_type(request)
    with ThreadPoolExecutor(len(clients)) as threads:
        responses = list(threads.map(lambda client: _sent(client, request, media_type), clients))
    results = [_parsed(response, media_type) for response in responses]
    if all(isinstance(result, ox.QueryBoolean) for result in results):
        return any(map(bool, results))
    rows = [result for result in results if isinstance(result, ox.QuerySolutions)]
    if rows:
        return GatheredRows(rows, request.spread)
    triples = (triple for result in results if isinstance(result, Iterator) for triple in result)
    return islice(_each_once(triples), request.spread.limit or None)


def _media_type(request: QueryRequest) -> str:
    is_graph = isinstance(ox.Store().query(request.query, prefixes=request.prefixes), ox.QueryTriples)
    return TRIPLES if is_graph else ROWS


def _sent(client: SparqlClient, request: QueryRequest, media_type: str) -> SparqlResponse:
    return client.query(
        with_prefixes(request.query, request.prefixes),
        media_type,
        union=request.union,
        default_graphs=request.default_graphs,
        named_graphs=request.named_graphs,
    ).expect(media_type)


def _parsed(response: SparqlResponse, media_type: str) -> ox.QuerySolutions | ox.QueryBoolean | Iterator[ox.Triple]:
    if media_type == TRIPLES:
        return _triples(response)
    found = ox.parse_query_results(response, ox.QueryResultsFormat.JSON)  # type: ignore[arg-type]  # it only calls read
    assert isinstance(found, ox.QuerySolutions | ox.QueryBoolean), "SPARQL JSON is one of the two"
    return found


def _each_once(triples: Iterator[ox.Triple]) -> Iterator[ox.Triple]:
    seen: set[ox.Triple] = set()
    for triple in triples:
        if triple not in seen:
            seen.add(triple)
            yield triple


def with_prefixes(query: str, prefixes: Mapping[str, str]) -> str:
    """The query with a declaration of each well-known prefix that it uses and does not declare itself."""
    tokens = scan(query)
    names = {token.text.partition(":")[0] for token in tokens if token.kind == "name"}
    declared = {
        name.text.partition(":")[0]
        for word, name in pairwise(tokens)
        if word.kind == "word" and word.text.upper() == "PREFIX"
    }
    lines = [f"PREFIX {name}: <{prefixes[name]}>\n" for name in sorted(names - declared) if name in prefixes]
    return "".join(lines) + query


def _triples(response: SparqlResponse) -> Iterator[ox.Triple]:
    with response:
        try:
            for quad in ox.parse(response, ox.RdfFormat.N_TRIPLES, lenient=True):  # type: ignore[arg-type]  # it only calls read
                yield quad.triple
        except SyntaxError as error:
            raise StoreError(f"the server's answer is not N-Triples: {error.msg}", hint="try again") from error


def _write(result: Result, request: QueryRequest, output: _Output) -> tuple[int, CutBy]:
    if isinstance(result, ox.QueryBoolean | bool):
        output.head(QueryHead("ask"))
        output.write(boolean(bool(result), request.format))
        return int(bool(result)), ""
    if isinstance(result, ox.QuerySolutions | GatheredRows):
        return _write_rows(result, request, output)
    return _write_graph(result, request, output)


def _write_rows(result: Rows, request: QueryRequest, output: _Output) -> tuple[int, CutBy]:
    names = tuple(variable.value for variable in result.variables)
    writer = row_writer(request.format)
    output.head(QueryHead("select", names))
    output.write(writer.head(names))
    rows = 0
    cut: CutBy = ""
    tail = writer.tail()
    for solution in result:
        if request.rows and rows >= request.rows:
            cut = "rows"
            break
        line = writer.row(tuple(solution))
        if request.result_bytes and output.total + len(line) + len(tail) > request.result_bytes:
            cut = "bytes"
            break
        output.write(line)
        rows += 1
    output.write(tail)
    return rows, cut


def _write_graph(result: Iterator[ox.Triple], request: QueryRequest, output: _Output) -> tuple[int, CutBy]:
    output.head(QueryHead("graph"))
    counted = _Counted(result, request.rows, lambda: bool(request.result_bytes) and output.total > request.result_bytes)
    prefixes = request.written_prefixes if request.format in ("turtle", "trig") else {}
    write_graph(counted, output.write, request.format, prefixes)
    return counted.rows, counted.cut


class _Counted:
    """Triples up to the limits; `cut` names the limit that ended the iteration early."""

    def __init__(self, triples: Iterator[ox.Triple], limit: int, full: Callable[[], bool]) -> None:
        self._triples = triples
        self._limit = limit
        self._full = full
        self.rows = 0
        self.cut: CutBy = ""

    def __iter__(self) -> Iterator[ox.Triple]:
        for triple in self._triples:
            if self._limit and self.rows >= self._limit:
                self.cut = "rows"
                return
            if self._full():
                self.cut = "bytes"
                return
            self.rows += 1
            yield triple


class _Output:
    """Collects bytes into chunks."""

    def __init__(self, send: _Send) -> None:
        self._send = send
        self._head: QueryHead | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self.sent = 0

    @property
    def total(self) -> int:
        return self.sent + self._size

    def head(self, head: QueryHead) -> None:
        """Sent with the first bytes, not before."""
        self._head = head

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size >= _CHUNK:
            self.flush()

    def flush(self) -> None:
        if self._head is not None:
            self._send(self._head)
            self._head = None
        if self._parts:
            self._send(QueryChunk(b"".join(self._parts)))
            self.sent += self._size
            self._parts, self._size = [], 0


def _syntax_refusal(error: SyntaxError, request: QueryRequest) -> QueryRefusal:
    """Where the query as the user wrote it does not parse; rewriting may have moved the place."""
    if request.written != request.query:
        try:
            ox.Store().query(request.written, prefixes=request.prefixes)
        except SyntaxError as first:
            error = first
    words = str(error.msg)
    match = _PLACE.match(words)
    line, column = (int(match.group(1)), int(match.group(2))) if match else (error.lineno or 0, error.offset or 0)
    words = words[match.end() :] if match else words
    message = explain_mistake(request.written, words, line, column, request.prefixes)
    return QueryRefusal(kind="syntax", message=message[:300], line=line, column=column)


def serve(channel: Channel) -> None:
    source = channel.receive(QuerySource)
    clients = [SparqlClient(server, attempts=_SERVER_ATTEMPTS) for server in source.servers]
    worker = QueryWorker(source.path, lambda content: channel.send(QueryReply(content)), clients)
    channel.send(READY)
    while True:
        request = channel.receive(QueryRequest)
        if request.seconds:
            set_alarm(request.seconds + _GRACE)
        worker.answer(request)
        set_alarm(0.0)


if __name__ == "__main__":
    run(serve)
