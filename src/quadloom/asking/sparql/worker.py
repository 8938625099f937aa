"""The process in which SPARQL queries run, one at a time: requests in, results out in pieces.

It owns nothing, and the owner may kill it at any moment. Its address space is limited, so a query that collects too
much ends this process and no other.

The query has been checked before, and text patterns have become VALUES. A query for SPARQL servers has PREFIX lines for
the well-known prefixes that it uses. `quadloom.stores.quads.evaluation` evaluates it.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Literal

import msgspec
import pyoxigraph as ox

from quadloom.asking.sparql.checks import scan
from quadloom.asking.sparql.mistakes import explain_mistake, place_of_mistake
from quadloom.asking.sparql.result_formats import boolean, row_writer, write_graph
from quadloom.errors import QuerySyntaxError, StoreError
from quadloom.process.channel import Channel, run
from quadloom.process.limits import set_alarm
from quadloom.stores.protocols.queries import QuerySource, StoreQuery
from quadloom.stores.quads.evaluation import EngineResult, GatheredRows, QueryEngine, Rows, open_engine

READY = "ready"  # the first message: imports are done, deadlines may count
_CHUNK = 64 * 1024
_ATTEMPTS = 7
_PLACE = re.compile(r"error at (\d+):(\d+): ")
_GRACE = 2.0  # the owner kills first; the alarm is for an owner that hangs

CutBy = Literal["", "rows", "bytes"]


class QueryRequest(StoreQuery, frozen=True, kw_only=True):
    """One query, and what its answer may be."""

    written: str  # as the user wrote it, to report where it does not parse
    format: str
    written_prefixes: dict[str, str] = {}  # to shorten IRIs in Turtle and TriG
    rows: int = 0
    result_bytes: int = 0
    seconds: float = 0.0


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
    """Answers requests by an engine."""

    def __init__(self, engine: QueryEngine, send: _Send) -> None:
        self._engine = engine
        self._send = send

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
            self._engine.reopen()
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
                self._engine.reopen()
                time.sleep(0.01 * 2**attempt)

    def _evaluate(self, request: QueryRequest, output: _Output) -> QueryEnd:
        started = time.perf_counter()
        result = self._engine.evaluate(request)
        parsed = time.perf_counter()
        rows, cut = _write(result, request, output)
        return QueryEnd(
            parse_seconds=parsed - started,
            evaluate_seconds=time.perf_counter() - parsed,
            rows=rows,
            bytes=output.total,
            truncated=cut,
        )


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


def _write(result: EngineResult, request: QueryRequest, output: _Output) -> tuple[int, CutBy]:
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
    line, column = place_of_mistake(request.written, line, column)
    return QueryRefusal(kind="syntax", message=message[:300], line=line, column=column)


def serve(channel: Channel) -> None:
    engine = open_engine(channel.receive(QuerySource))
    worker = QueryWorker(engine, lambda content: channel.send(QueryReply(content)))
    channel.send(READY)
    while True:
        request = channel.receive(QueryRequest)
        if request.seconds:
            set_alarm(request.seconds + _GRACE)
        worker.answer(request)
        set_alarm(0.0)


if __name__ == "__main__":
    run(serve)
