"""SPARQL for strangers: checked, run in a process that can be killed, streamed, and ended at its limits.

`QueryService` keeps a few query processes ready. Each query has one to itself from its start to the last byte of its
result, so a killed query affects no other. SPARQL is the only language for conjunctive queries over the warehouse. All
graphs together are the default graph, unless FROM or the caller says otherwise: every page is a graph of its own, and a
newcomer's `?s ?p ?o` should find something.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from msgspec.structs import replace

from quadloom.asking.sparql.checks import CheckedQuery, Form, Token, check
from quadloom.asking.sparql.frames import Cell, FrameMethods, typed
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.asking.sparql.process import QueryProcess
from quadloom.asking.sparql.result_formats import GRAPH_MEDIA, ROW_MEDIA
from quadloom.asking.sparql.spread import spread
from quadloom.asking.sparql.text_patterns import PatternHitCache, replace_text_patterns
from quadloom.asking.sparql.worker import QueryEnd, QueryRequest, with_prefixes
from quadloom.documents.syntaxes.terms import iri
from quadloom.errors import QueryError, QueryLimit, QueryRefused, StoreError
from quadloom.process.threads import FairSlots
from quadloom.settings import LimitSettings
from quadloom.stores.protocols.queries import QuerySource, ServerChoice
from quadloom.stores.protocols.text import TextIndex
from quadloom.stores.quads.json_results import Row, boolean_of, rows_of

_BUSY_SECONDS = 10.0
_LEAST_SECONDS = 0.1  # for the engine, if text patterns took all the time


class QueryResult(FrameMethods):
    """A result that is being streamed. Iterate for its bytes, once; `ended` and `truncated` are known after the last.

    If you stop early, close it (or use it as a context manager): that ends the query.
    """

    def __init__(self, service: QueryService, process: QueryProcess, form: Form, format: str, client: str) -> None:
        self._service = service
        self._process: QueryProcess | None = process
        self._client = client
        self.form = form
        self.format = format
        self.media_type = GRAPH_MEDIA[format] if form == "graph" else ROW_MEDIA[format]
        self.variables: tuple[str, ...] = ()
        self.ended: QueryEnd | None = None

    def __repr__(self) -> str:
        about = f"variables {', '.join(self.variables)}" if self.variables else self.form
        return f"<QueryResult in {self.format}: {about}; iterate once, or take rows(), values(), pandas()>"

    @property
    def truncated(self) -> bool:
        """Whether a row or byte limit cut the result. The document is well-formed anyway."""
        return self.ended is not None and bool(self.ended.truncated)

    def __iter__(self) -> Iterator[bytes]:
        process = self._process
        if process is None:
            return
        try:
            for chunk in process.chunks():
                if isinstance(chunk, QueryEnd):
                    self.ended = chunk
                else:
                    yield chunk
        finally:
            self.close()

    def read(self) -> bytes:
        """The whole document."""
        return b"".join(self)

    def rows(self) -> list[Row]:
        """Solutions of a SELECT in format json: name → `Binding`."""
        return rows_of(self.read())

    def values(self) -> list[tuple[str, ...]]:
        """Solutions as plain strings in the order of `variables`; unbound = empty."""
        return [tuple(str(row[name].value) if name in row else "" for name in self.variables) for row in self.rows()]

    def columns(self) -> dict[str, Sequence[Cell]]:
        """Solutions by variable, each column with the type that all its values have; see also `pandas()`, `polars()`
        and `arrow()`. Literals of a language or an unknown datatype are text."""
        rows = self.rows()
        return {name: typed([str(row[name].value) if name in row else None for row in rows]) for name in self.variables}

    def boolean(self) -> bool:
        """The answer to an ASK in format json."""
        return boolean_of(self.read())

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._service._give_back(process, self._client)

    def __enter__(self) -> QueryResult:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class QueryService:
    """Runs queries on a store or on servers; safe for many threads.

    `processes`: queries that run at once. `concurrency`: how many of them may belong to one client, 0 = no limit.
    `schema_org`: http or https if the store has that vocabulary in one spelling; queries may then use either.
    """

    def __init__(
        self,
        source: QuerySource,
        limits: LimitSettings,
        *,
        text: TextIndex | None = None,
        processes: int = 2,
        concurrency: int = 0,
        schema_org: str = "as-written",
    ) -> None:
        self._source = source
        self._schema_org = schema_org
        self._limits = limits
        self._text = PatternHitCache(text) if text is not None else None
        self._concurrency = concurrency
        self._idle: list[QueryProcess] = []
        self._busy: set[QueryProcess] = set()
        self._running: Counter[str] = Counter()
        self._slots = FairSlots(processes)
        self._lock = threading.Lock()
        self._closed = False

    def ask(
        self,
        query: str,
        *,
        format: str = "",
        default_graphs: Sequence[str] = (),
        named_graphs: Sequence[str] = (),
        limits: LimitSettings | None = None,
        client: str = "",
        fresh: bool = False,
    ) -> QueryResult:
        """Check and start a query; returns when the first bytes have arrived.

        `format`: json, xml, csv, tsv, spreadsheet (CSV without formulas) for SELECT and ASK; turtle, nt, nq, trig,
        jsonld, rdfxml for graphs; empty = json or turtle. Graphs given here are the dataset and win over FROM. `fresh`:
        see everything committed by now, not the view of up to two seconds ago. Raises `QueryError`.
        """
        limits = limits or self._limits
        checked = check(query, limits)
        written = checked.text
        if self._schema_org != "as-written":
            checked = in_one_spelling(checked, self._schema_org, limits)
        for graph in (*default_graphs, *named_graphs):
            if iri(graph) is None:
                raise QueryRefused(f"not an IRI: {graph[:200]!r}", hint="graphs are named by the URLs of pages")
        chosen = _format(format, checked.form)
        process = self._take(client)  # before anything that costs more than reading the query
        began = time.monotonic()
        try:
            rewritten = replace_text_patterns(checked, self._text, limits)
            choice = self._choice(rewritten, (*default_graphs, *named_graphs))
        except BaseException:
            self._give_back(process, client)
            raise
        request = QueryRequest(
            query=rewritten,
            written=written,
            format=chosen,
            prefixes=_prefixes(self._schema_org),
            written_prefixes=used_prefixes(checked.tokens),
            union=not checked.has_dataset,
            default_graphs=tuple(default_graphs),
            named_graphs=tuple(named_graphs),
            rows=limits.query_rows,
            result_bytes=limits.query_result_bytes,
            seconds=max(_LEAST_SECONDS, round(limits.query_seconds - (time.monotonic() - began), 1)),
            fresh=fresh,
            choice=choice,
        )
        return self._start(process, request, checked.form, client)

    def _choice(self, query: str, graphs: Sequence[str]) -> ServerChoice:
        servers = len(self._source.servers)
        return spread(query, servers, graphs) if servers > 1 else ServerChoice(server=0)

    def run(self, request: QueryRequest, form: Form = "select", *, client: str = "") -> QueryResult:
        """Start a request that was checked before."""
        return self._start(self._take(client), request, form, client)

    def _start(self, process: QueryProcess, request: QueryRequest, form: Form, client: str) -> QueryResult:
        answer = QueryResult(self, process, form, request.format, client)
        if not self._source.is_local and request.data is None:
            request = replace(request, query=with_prefixes(request.query, request.prefixes))
        try:
            head = process.start(request)
        except (QueryError, StoreError):
            answer.close()
            raise
        answer.form, answer.variables = head.form, head.variables
        return answer

    def close(self) -> None:
        """End all queries and processes."""
        with self._lock:
            self._closed = True
            processes = [*self._idle, *self._busy]
            self._idle = []
        for process in processes:
            process.kill()

    def __enter__(self) -> QueryService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take(self, client: str) -> QueryProcess:
        if self._source.is_local and not Path(self._source.folder).is_dir():
            raise StoreError(f"there are no quads at {self._source.folder}", hint="run `quadloom crawl URL` first")
        with self._lock:
            if self._concurrency and self._running[client] >= self._concurrency:
                raise QueryLimit(
                    f"{self._concurrency} of your queries are running already", hint="wait until one of them ends"
                )
            self._running[client] += 1
        if not self._slots.acquire(timeout=_BUSY_SECONDS):
            self._leave(client)
            raise QueryLimit("all query processes are busy", hint="try again in a few seconds")
        with self._lock:
            process = None
            while self._idle and (process is None or not process.alive):
                process = self._idle.pop()
            if process is None or not process.alive:
                process = QueryProcess(self._source, self._limits.query_bytes)
            self._busy.add(process)
        return process

    def _give_back(self, process: QueryProcess, client: str) -> None:
        with self._lock:
            self._busy.discard(process)
            keep = process.free and process.alive and not self._closed
            if keep:
                self._idle.append(process)
        if not keep:
            process.kill()
        self._leave(client)
        self._slots.release()

    def _leave(self, client: str) -> None:
        with self._lock:
            self._running[client] -= 1
            if self._running[client] <= 0:
                del self._running[client]


def in_one_spelling(checked: CheckedQuery, scheme: str, limits: LimitSettings) -> CheckedQuery:
    """The query with schema.org's IRIs in the scheme of the store; texts stay as they are."""
    parts, done = [], 0
    for token in checked.tokens:
        if token.kind == "iri" and token.text.startswith(("<http://schema.org/", "<https://schema.org/")):
            parts += [checked.text[done : token.start], f"<{scheme}", token.text[token.text.index("://") :]]
            done = token.end
    return check("".join(parts) + checked.text[done:], limits) if parts else checked


def _prefixes(scheme: str) -> dict[str, str]:
    if scheme == "as-written":
        return PREFIXES
    return {**PREFIXES, "schema": f"{scheme}://schema.org/", "schemas": f"{scheme}://schema.org/"}


def form_of(query: str, limits: LimitSettings) -> Form:
    """select, ask or graph; content negotiation needs it before the query runs. Raises `QueryRefused`."""
    return check(query, limits).form


def used_prefixes(tokens: Sequence[Token]) -> dict[str, str]:
    """Well-known prefixes that the query itself uses: a result in Turtle uses the same and no others."""
    written = {token.text.partition(":")[0] for token in tokens if token.kind == "name"}
    return {name: iri for name, iri in PREFIXES.items() if name in written or name == "rdf"}


def _format(format: str, form: Form) -> str:
    known = GRAPH_MEDIA if form == "graph" else ROW_MEDIA
    chosen = format or ("turtle" if form == "graph" else "json")
    if chosen not in known:
        what = "a graph" if form == "graph" else "rows"
        raise QueryRefused(f"{chosen} cannot hold {what}", hint=f"choose one of {', '.join(known)}")
    return chosen
