"""The process in which queries run: `python -m quadloom.asking.sparql.worker STORE BYTES`.

STORE is the directory of an embedded store, or the JSON of a `SparqlServer` that queries are passed on to.

It reads requests from standard input and writes frames to standard output, one query at a time. It owns nothing: the
store is opened for reading only, and whoever started it may kill it at any moment. Address space is limited, so
a query that gathers too much ends this process and no other. A thread waits for the end of the input meanwhile, so
that the process does not outlive its owner even in the middle of a query.

The view of the store is frozen at its opening. It is opened again when files have changed since, at most once in
`_REOPEN_SECONDS`.
"""

from __future__ import annotations

import itertools
import os
import queue
import re
import resource
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO, Literal

import msgspec
import pyoxigraph as ox

from quadloom.asking.sparql.forwarding import Result, forwarded
from quadloom.asking.sparql.result_formats import boolean, row_writer, write_graph
from quadloom.errors import QuerySyntaxError, StoreError
from quadloom.stores.quads.sparql_client import SparqlClient, SparqlServer

FRAME = struct.Struct("<cI")  # kind and length of what follows
READY = b"R"  # the first frame of a process
_REOPEN_SECONDS = 2.0
_CHUNK = 64 * 1024
_ATTEMPTS = 7
_TRIES = 3  # of a request to a server: somebody waits
_PLACE = re.compile(r"error at (\d+):(\d+): ")
_GRACE = 2.0  # the owner kills first; the alarm is for an owner that hangs


class QueryRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One query. `data`: ask these N-Quads instead of the store."""

    query: str
    written: str  # as the user wrote it, to say where it does not parse
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
    fresh: bool = False  # see all that is committed now, not only what was two seconds ago


class QueryHead(msgspec.Struct, frozen=True):
    form: Literal["select", "ask", "graph"]
    variables: tuple[str, ...] = ()


class QueryEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a query went: seconds until it was parsed and planned, and until the last row; what it gave."""

    parse_seconds: float = 0.0
    evaluate_seconds: float = 0.0
    rows: int = 0
    bytes: int = 0
    truncated: Literal["", "rows", "bytes"] = ""


class QueryRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """`kind`: syntax, memory or store."""

    kind: Literal["syntax", "memory", "store"]
    message: str
    line: int = 0
    column: int = 0


class QueryWorker:
    """Answers requests on one store. With a `client` the store is a server's, and `path` is not used."""

    def __init__(self, path: str, send: Callable[[bytes, bytes], None], client: SparqlClient | None = None) -> None:
        self._path = path
        self._send = send
        self._client = client
        self._store: ox.Store | None = None
        self._seen: tuple[tuple[str, int, int], ...] = ()
        self._opened_at = 0.0

    def answer(self, request: QueryRequest) -> None:
        try:
            self._answer(request)
        except SyntaxError as error:
            self._refuse(_syntax(error, request))
        except QuerySyntaxError as error:
            self._refuse(QueryRefusal(kind="syntax", message=error.message[:300]))
        except StoreError as error:
            self._refuse(QueryRefusal(kind="store", message=error.message[:500]))
        except MemoryError:
            self._refuse(QueryRefusal(kind="memory", message="the query needs more memory than it may have"))
        except (OSError, ValueError, RuntimeError) as error:
            self._store = None
            self._refuse(QueryRefusal(kind="store", message=str(error)[:500]))

    def _answer(self, request: QueryRequest) -> None:
        """A writer may remove a file under the view, or while the view is opened: as long as nothing of the answer has
        left, all is done again on a new view."""
        for attempt in itertools.count(1):
            output = _Output(self._send)
            try:
                ended = self._evaluated(request, output)
                output.flush()
                self._send(b"E", msgspec.json.encode(ended))
                return
            except (OSError, RuntimeError):
                if output.sent or attempt == _ATTEMPTS:
                    raise
                self._store = None
                time.sleep(0.01 * 2**attempt)

    def _evaluated(self, request: QueryRequest, output: _Output) -> QueryEnd:
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
        if self._client is None or request.data is not None:
            return _evaluate(self._view(request), request)
        return forwarded(
            self._client, request.query, request.prefixes, union=request.union,
            default_graphs=request.default_graphs, named_graphs=request.named_graphs,
        )  # fmt: skip

    def _refuse(self, refused: QueryRefusal) -> None:
        self._send(b"X", msgspec.json.encode(refused))

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
    """Names, sizes and times of the store's files: differ as soon as anything was written."""
    found = []
    for entry in os.scandir(path):
        if entry.name != "LOG":
            status = entry.stat()
            found.append((entry.name, status.st_size, status.st_mtime_ns))
    return tuple(sorted(found))


def _evaluate(store: ox.Store, request: QueryRequest) -> ox.QuerySolutions | ox.QueryBoolean | ox.QueryTriples:
    chosen = bool(request.default_graphs or request.named_graphs)
    return store.query(
        request.query,
        prefixes=request.prefixes,
        use_default_graph_as_union=request.union and not chosen,
        default_graph=[ox.NamedNode(graph) for graph in request.default_graphs] if chosen else None,
        named_graphs=[ox.NamedNode(graph) for graph in request.named_graphs] if chosen else None,
    )


def _write(result: Result, request: QueryRequest, output: _Output) -> tuple[int, Literal["", "rows", "bytes"]]:
    if isinstance(result, ox.QueryBoolean):
        output.head(QueryHead("ask"))
        output.write(boolean(bool(result), request.format))
        return int(bool(result)), ""
    if isinstance(result, ox.QuerySolutions):
        return _write_rows(result, request, output)
    return _write_graph(result, request, output)


def _write_rows(
    result: ox.QuerySolutions, request: QueryRequest, output: _Output
) -> tuple[int, Literal["", "rows", "bytes"]]:
    names = tuple(variable.value for variable in result.variables)
    writer = row_writer(request.format)
    output.head(QueryHead("select", names))
    output.write(writer.head(names))
    rows = 0
    cut: Literal["", "rows", "bytes"] = ""
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


def _write_graph(
    result: Iterator[ox.Triple], request: QueryRequest, output: _Output
) -> tuple[int, Literal["", "rows", "bytes"]]:
    output.head(QueryHead("graph"))
    counted = _Counted(result, request.rows, lambda: bool(request.result_bytes) and output.total > request.result_bytes)
    prefixes = request.written_prefixes if request.format in ("turtle", "trig") else {}
    write_graph(counted, output.write, request.format, prefixes)
    return counted.rows, counted.cut


class _Counted:
    """Triples up to the limits, each once in a row; what ends the iteration early is remembered."""

    def __init__(self, triples: Iterator[ox.Triple], limit: int, full: Callable[[], bool]) -> None:
        self._triples = triples
        self._limit = limit
        self._full = full
        self.rows = 0
        self.cut: Literal["", "rows", "bytes"] = ""

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
    """Gathers bytes into frames."""

    def __init__(self, send: Callable[[bytes, bytes], None]) -> None:
        self._send = send
        self._head = b""
        self._parts: list[bytes] = []
        self._size = 0
        self.sent = 0

    @property
    def total(self) -> int:
        return self.sent + self._size

    def head(self, head: QueryHead) -> None:
        """Leaves with the first bytes, not before."""
        self._head = msgspec.json.encode(head)

    def write(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size >= _CHUNK:
            self.flush()

    def flush(self) -> None:
        if self._head:
            self._send(b"H", self._head)
            self._head = b""
        if self._parts:
            self._send(b"D", b"".join(self._parts))
            self.sent += self._size
            self._parts, self._size = [], 0


def _syntax(error: SyntaxError, request: QueryRequest) -> QueryRefusal:
    """Where the query as the user wrote it does not parse; what was rewritten may have moved."""
    if request.written != request.query:
        try:
            ox.Store().query(request.written, prefixes=request.prefixes)
        except SyntaxError as first:
            error = first
    words = str(error.msg)
    match = _PLACE.match(words)
    line, column = (int(match.group(1)), int(match.group(2))) if match else (error.lineno or 0, error.offset or 0)
    words = words[match.end() :] if match else words
    if "Prefix not found" in words:
        words = "unknown prefix"
    return QueryRefusal(kind="syntax", message=words.split("\n")[0][:300], line=line, column=column)


def _send_to(stream: BinaryIO) -> Callable[[bytes, bytes], None]:
    def send(kind: bytes, payload: bytes) -> None:
        stream.write(FRAME.pack(kind, len(payload)) + payload)
        stream.flush()

    return send


def _receive(stream: BinaryIO, requests: queue.Queue[QueryRequest]) -> None:
    while True:
        head = stream.read(FRAME.size)
        if len(head) < FRAME.size:
            os._exit(0)
        _, length = FRAME.unpack(head)
        requests.put(msgspec.msgpack.decode(stream.read(length), type=QueryRequest))


def main(arguments: list[str]) -> None:
    store, limit = arguments[0], int(arguments[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the owner's affair
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests: queue.Queue[QueryRequest] = queue.Queue()
    threading.Thread(target=_receive, args=(sys.stdin.buffer, requests), daemon=True).start()
    server = msgspec.json.decode(store, type=SparqlServer) if store.startswith("{") else None
    send = _send_to(sys.stdout.buffer)
    worker = QueryWorker(store, send, SparqlClient(server, attempts=_TRIES) if server else None)
    send(READY, b"")
    while True:
        request = requests.get()
        if request.seconds:
            signal.setitimer(signal.ITIMER_REAL, request.seconds + _GRACE)
        worker.answer(request)
        signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
