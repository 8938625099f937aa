"""A client of SPARQL 1.1 servers: queries, updates, graphs, each as one HTTP request.

Responses are read while they arrive: the reader sets the pace, and may close the connection early. A request that could
not be delivered, or found a server that is starting or overloaded, is sent again after a pause that doubles; that is
safe, because every update states ground facts and has the same effect the second time. Redirects are not followed and
no proxy is used: the address in the settings is the address that gets the data.

The password comes from the environment only and appears in no record, message or command line.
"""

from __future__ import annotations

import math
import random
import re
import select
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from types import TracebackType
from urllib.parse import urlencode, urljoin

import pycurl

from quadloom.errors import QuerySyntaxError, SettingsError, StoreError, StoreUnavailable
from quadloom.process.retry import doubling, jittered, retry
from quadloom.settings import Settings
from quadloom.settings.loading import secret
from quadloom.settings.plain_http import check_plain_http
from quadloom.stores.protocols.queries import SparqlServer

ROWS, TRIPLES = "application/sparql-results+json", "application/n-triples"
_QUERY = "application/x-www-form-urlencoded"  # of the protocol's three forms, the one that all servers support
_CONNECT_SECONDS = 10.0
_ATTEMPTS = 6  # with pauses of .2 to 3.2 s, enough for a server to restart
_FIRST_PAUSE = 0.2
_BUSY = frozenset((429, 502, 503, 504))
_BROKEN = frozenset(
    (
        pycurl.E_COULDNT_CONNECT,
        pycurl.E_COULDNT_RESOLVE_HOST,
        pycurl.E_SEND_ERROR,
        pycurl.E_RECV_ERROR,
        pycurl.E_GOT_NOTHING,
        pycurl.E_PARTIAL_FILE,
    )
)
_EVENTS = {
    pycurl.POLL_NONE: 0,
    pycurl.POLL_IN: select.POLLIN,
    pycurl.POLL_OUT: select.POLLOUT,
    pycurl.POLL_INOUT: select.POLLIN | select.POLLOUT,
}
_NO_THREAD = re.compile(r"Resource temporarily unavailable|os error 11|EAGAIN")
_WORDS = 2000  # bytes of an error message that are shown
_BUFFER = 256 * 1024
_HINT = "check that the server runs and that stores.quads names it; the same command again resumes"


def servers_of(settings: Settings) -> tuple[SparqlServer, ...]:
    """The servers in `[stores]`, usually one. Raises `SettingsError` for an address that is invalid, or not safe to
    use."""
    return tuple(_server(settings, address) for address in settings.stores.quads.split())


def _server(settings: Settings, address: str) -> SparqlServer:
    stores = settings.stores
    if not address.startswith("sparql+http"):
        raise SettingsError(
            f"stores.quads: {address} is not the address of a SPARQL server",
            hint="separate several servers by blanks: sparql+http://one:7878 sparql+http://two:7878",
        )
    base = address.removeprefix("sparql+").rstrip("/") + "/"
    query, update = urljoin(base, stores.quads_query), urljoin(base, stores.quads_update)
    graph_store = urljoin(base, stores.quads_graph_store) if stores.quads_graph_store else ""
    for url in filter(None, (query, update, graph_store)):
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise SettingsError(
                "a SPARQL server's address must not contain a password",
                hint="use stores.quads_user and the environment variable QUADLOOM_QUADS_PASSWORD",
            )
        check_plain_http("stores.quads", url, settings.guard)
    return SparqlServer(
        query=query,
        update=update,
        graph_store=graph_store,
        union=stores.quads_union,
        timeout=stores.quads_timeout.replace("{seconds}", f"{math.ceil(settings.limits.query_seconds)}"),
        user=stores.quads_user,
        seconds=stores.quads_seconds,
        most_bytes=settings.limits.query_result_bytes,
    )


class _Connection:
    """One request at a time, on a connection that stays open between requests.

    Sockets are watched by poll(): pycurl's own select() cannot see those with numbers above 1023.
    """

    def __init__(self) -> None:
        self.easy = pycurl.Curl()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._watched: dict[int, int] = {}

    def start(self) -> None:
        self._multi.add_handle(self.easy)
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def wait(self, seconds: float) -> None:
        """Transfer bytes for up to `seconds`."""
        poll = select.poll()
        for socket, what in self._watched.items():
            poll.register(socket, _EVENTS[what])
        due = self._multi.timeout()
        ready = poll.poll(min(seconds * 1000, due if due >= 0 else 1000))
        for socket, event in ready:
            mask = pycurl.CSELECT_IN if event & ~select.POLLOUT else 0
            self._multi.socket_action(socket, mask | (pycurl.CSELECT_OUT if event & select.POLLOUT else 0))
        if not ready:
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def outcome(self) -> tuple[bool, tuple[int, str] | None]:
        """Whether the request has ended; and the error that ended it, code and message."""
        _, done, failed = self._multi.info_read()
        return bool(done or failed), (failed[0][1], failed[0][2]) if failed else None

    def stop(self) -> None:
        self._multi.remove_handle(self.easy)

    def close(self) -> None:
        self._multi.close()
        self.easy.close()

    def _watch(self, what: int, socket: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            self._watched.pop(socket, None)
        else:
            self._watched[socket] = what


class SparqlClient:
    """Safe for many threads; each request in progress has its own connection."""

    def __init__(
        self,
        server: SparqlServer,
        *,
        password: str | None = None,
        attempts: int = _ATTEMPTS,
        sleep: Callable[[float], None] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.server = server
        self._password = secret("QUADS_PASSWORD") if password is None else password
        self._attempts = attempts
        self._sleep = sleep
        self._chance = chance
        self._idle: list[_Connection] = []
        self._lock = threading.Lock()

    def query(
        self,
        sparql: str,
        accept: str = ROWS,
        *,
        union: bool = False,
        limited: bool = False,
        default_graphs: Sequence[str] = (),
        named_graphs: Sequence[str] = (),
    ) -> SparqlResponse:
        """Send a query. Raises `QuerySyntaxError` if the server rejects its syntax, otherwise `StoreError`.

        `union`: the default graph is the union of all graphs. Given graphs are the dataset instead. `limited`: by the
        server's own limit of time, if it takes one.
        """
        chosen = [("default-graph-uri", graph) for graph in default_graphs]
        chosen += [("named-graph-uri", graph) for graph in named_graphs]
        parameters = urlencode([*chosen, ("query", sparql)])
        if union and not chosen and self.server.union:
            parameters = f"{self.server.union}&{parameters}"
        if limited and self.server.timeout:
            parameters = f"{self.server.timeout}&{parameters}"
        return self._send(self.server.query, {"Accept": accept, "Content-Type": _QUERY}, parameters.encode())

    def update(self, sparql: str) -> None:
        """Return when the server has applied the whole update."""
        with self._send(self.server.update, {"Content-Type": "application/sparql-update"}, sparql.encode()) as answer:
            answer.whole()

    def graph(self, name: str) -> SparqlResponse | None:
        """A graph as N-Triples by the Graph Store Protocol; None = there is no such graph."""
        url = _extended(self.server.graph_store, urlencode({"graph": name}))
        answer = self._send(url, {"Accept": TRIPLES}, None)
        if answer.status == 404:
            answer.close()
            return None
        return answer

    def probe(self) -> None:
        """Write a statement, ask for it and remove it. Raises `StoreError` with the first thing that does not work."""
        graph = f"<urn:quadloom:check:{random.getrandbits(64):x}>"
        fact = f'GRAPH {graph} {{ <urn:quadloom:check> <urn:quadloom:check> "1" }}'
        with self.query("ASK {}") as answer:
            answer.whole()
        self.update(f"INSERT DATA {{ {fact} }}")
        try:
            with self.query(f"ASK {{ {fact} }}") as answer:
                found = b"true" in answer.whole()
            if not found:
                raise StoreError(
                    f"{self.server.update} accepts updates, but {self.server.query} does not show them",
                    hint="stores.quads_query and stores.quads_update must name the same dataset",
                )
        finally:
            self.update(f"DELETE DATA {{ {fact} }}")

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def give_back(self, line: _Connection, *, reusable: bool) -> None:
        """Called by a response at its end."""
        line.stop()
        if reusable:
            with self._lock:
                self._idle.append(line)
        else:
            line.close()

    def _send(self, url: str, headers: Mapping[str, str], body: bytes | None) -> SparqlResponse:
        def send() -> SparqlResponse:
            return SparqlResponse(self, self._prepared(url, headers, body), self.server).begin()

        pauses = jittered(islice(doubling(_FIRST_PAUSE), self._attempts - 1), self._chance)
        try:
            answer = retry(send, pauses, _Interrupted, sleep=self._sleep)
        except _Undelivered as trouble:
            raise _given_up(self.server, trouble) from None
        if answer.status in (200, 204) or (answer.status == 404 and body is None):
            return answer
        raise _refusal(url, answer.status, answer.words(), is_query=headers.get("Content-Type") == _QUERY)

    def _prepared(self, url: str, headers: Mapping[str, str], body: bytes | None) -> _Connection:
        with self._lock:
            line = self._idle.pop() if self._idle else _Connection()
        easy = line.easy
        easy.reset()
        easy.setopt(pycurl.URL, url)
        easy.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        easy.setopt(pycurl.PROXY, "")
        easy.setopt(pycurl.NOSIGNAL, 1)
        easy.setopt(pycurl.CONNECTTIMEOUT_MS, int(_CONNECT_SECONDS * 1000))
        easy.setopt(pycurl.BUFFERSIZE, _BUFFER)
        easy.setopt(pycurl.USERAGENT, "Quadloom")
        # curl would wait up to a second for "100 Continue" before it sends a larger body.
        easy.setopt(pycurl.HTTPHEADER, [*(f"{name}: {value}" for name, value in headers.items()), "Expect:"])
        if body is not None:
            easy.setopt(pycurl.POST, 1)
            easy.setopt(pycurl.POSTFIELDS, body)
            easy.setopt(pycurl.POSTFIELDSIZE_LARGE, len(body))
        if self.server.user:
            easy.setopt(pycurl.HTTPAUTH, pycurl.HTTPAUTH_BASIC | pycurl.HTTPAUTH_DIGEST)
            easy.setopt(pycurl.USERNAME, self.server.user)
            easy.setopt(pycurl.PASSWORD, self._password)
        return line


class SparqlResponse:
    """A response on its way; reads like a file. Close it, or use it as a context manager, to free its connection."""

    def __init__(self, client: SparqlClient, line: _Connection, server: SparqlServer) -> None:
        self._client = client
        self._line: _Connection | None = line
        self._server = server
        self._parts: list[bytes] = []
        self._rest = b""
        self._ended = False
        self.status = 0
        self.media_type = ""

    def begin(self) -> SparqlResponse:
        """Send the request and wait for the first bytes of the response. Raises `_Undelivered`."""
        assert self._line is not None
        self._line.easy.setopt(pycurl.WRITEFUNCTION, self._parts.append)
        self._line.start()
        try:
            while not self._parts and not self._ended:
                self._pump()
        except _Undelivered:
            self.close()
            raise
        self.status = self._line.easy.getinfo(pycurl.RESPONSE_CODE)
        self.media_type = (self._line.easy.getinfo(pycurl.CONTENT_TYPE) or "").partition(";")[0].strip().lower()
        if self.status in _BUSY:
            words = self.words()
            raise _Interrupted(f"the server answers {self.status}: {words}")
        return self

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, empty at the end. Raises `StoreError` if the response breaks off."""
        if not self._rest:
            try:
                while not self._parts and not self._ended:
                    self._pump()
            except _Undelivered as trouble:
                self.close()
                raise _given_up(self._server, trouble) from None
            self._rest = b"".join(self._parts)
            self._parts.clear()
        if size < 0 or size >= len(self._rest):
            data, self._rest = self._rest, b""
        else:
            data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def whole(self) -> bytes:
        """The whole response. Raises `StoreError` above the size limit."""
        parts: list[bytes] = []
        size = 0
        while data := self.read():
            parts.append(data)
            size += len(data)
            if size > self._server.most_bytes:
                self.close()
                raise StoreError(
                    f"a response of {self._server.query} is longer than {self._server.most_bytes} bytes",
                    hint="raise limits.query_result_bytes",
                )
        self.close()
        return b"".join(parts)

    def words(self) -> str:
        """The beginning of an error message, in one line; ends the response."""
        data = b""
        try:
            while len(data) < _WORDS and (more := self.read(_WORDS)):
                data += more
        except StoreError:
            data += b" (cut off)"
        self.close()
        return " ".join(data[:_WORDS].decode("utf-8", "replace").split())

    def expect(self, *media_types: str) -> SparqlResponse:
        """Raises `StoreError` if the response has another media type."""
        if self.media_type not in media_types:
            self.close()
            raise StoreError(
                f"{self._server.query} answered in {self.media_type or 'no format'}, not in {media_types[0]}",
                hint="stores.quads must be the address of a SPARQL 1.1 server",
            )
        return self

    def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            self._client.give_back(line, reusable=self._ended)

    def __enter__(self) -> SparqlResponse:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pump(self) -> None:
        """Wait for bytes or the end."""
        if self._line is None:
            raise _Interrupted("the response was closed before its end")
        silent_since = time.monotonic()
        while True:
            ended, trouble = self._line.outcome()
            if trouble is not None:
                kind = _Interrupted if trouble[0] in _BROKEN else _Undelivered
                raise kind(trouble[1] or f"curl error {trouble[0]}")
            self._ended = ended
            if self._parts or self._ended:
                return
            left = silent_since + self._server.seconds - time.monotonic()
            if left <= 0:
                raise _Undelivered(f"no data for {self._server.seconds:g} seconds")
            self._line.wait(left)


class _Undelivered(Exception):
    """A request failed."""


class _Interrupted(_Undelivered):
    """Sending it once more can help."""


def _given_up(server: SparqlServer, trouble: _Undelivered) -> StoreError:
    """`StoreUnavailable`: it may help to wait longer."""
    kind = StoreUnavailable if isinstance(trouble, _Interrupted) else StoreError
    return kind(f"{server.query}: {trouble}", hint=_HINT)


def _refusal(url: str, status: int, words: str, *, is_query: bool) -> StoreError | QuerySyntaxError:
    if status == 400 and is_query:
        return QuerySyntaxError(f"the server does not understand the query: {words}")
    if status in (401, 403):
        return StoreError(
            f"{url} refuses the user ({status})",
            hint="set stores.quads_user and the environment variable QUADLOOM_QUADS_PASSWORD",
        )
    if _NO_THREAD.search(words):
        return StoreUnavailable(
            f"{url} answers {status}: {words}",
            hint="the server has no thread left: start Oxigraph without --timeout-s, which keeps one for each query",
        )
    return StoreError(
        f"{url} answers {status}: {words}", hint="check stores.quads_query and stores.quads_update against its manual"
    )


def _extended(url: str, parameters: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{parameters}" if parameters else url
