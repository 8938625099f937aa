"""A query process as its owner sees it: started, asked, and killed at the deadline.

The engine cannot be interrupted, so the only sure end of a query is the end of its process. A process that answered in
full is used again; one that was killed, or left before the end of its answer, never is.

The deadline is the query's own: what a new process needs until it can read one (half a second, many on a machine that
is busy otherwise) does not count, or a query would fail for the one that was killed before it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quadloom.asking.sparql.worker import FRAME, READY, QueryEnd, QueryHead, QueryRefusal, QueryRequest
from quadloom.errors import QueryError, QueryLimit, QuerySyntaxError, StoreError
from quadloom.stores.quads.sparql_client import SparqlServer

_START_SECONDS = 60.0  # for a new process, before it is given up


class QueryProcess:
    """One child process that reads `store`, a directory or a server. Not for two threads at once."""

    def __init__(self, store: Path | SparqlServer, memory: int) -> None:
        name = str(store) if isinstance(store, Path) else msgspec.json.encode(store).decode()
        source = str(Path(__file__).parents[3])
        paths = os.pathsep.join(part for part in (source, os.environ.get("PYTHONPATH", "")) if part)
        self._child = subprocess.Popen(
            [sys.executable, "-m", "quadloom.asking.sparql.worker", name, str(memory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # One arena per thread would reserve 64 MiB of the limited address space each.
            env={**os.environ, "PYTHONPATH": paths, "MALLOC_ARENA_MAX": "2"},
        )
        self._memory = memory
        self._timer: threading.Timer | None = None
        self._seconds = 0.0
        self._timed_out = False
        self._ready = False
        self.free = True  # between two queries

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    def start(self, request: QueryRequest) -> QueryHead:
        """Send a query and wait for the first word of its answer. Raises `QueryError`."""
        self.free = False
        self._timed_out = False
        if not self._ready:
            self._await_ready()
        self._end_after(request.seconds)
        data = msgspec.msgpack.encode(request)
        try:
            assert self._child.stdin is not None
            self._child.stdin.write(FRAME.pack(b"Q", len(data)) + data)
            self._child.stdin.flush()
        except OSError:
            raise self._died() from None
        kind, payload = self._frame()
        if kind != b"H":
            raise self._refusal(payload)
        return msgspec.json.decode(payload, type=QueryHead)

    def _await_ready(self) -> None:
        self._end_after(_START_SECONDS)
        try:
            kind, _ = self._frame()
        except QueryLimit:
            raise StoreError(
                "a query process did not start", hint="the machine may be short of memory; see limits.query_bytes"
            ) from None
        assert kind == READY
        self._stop_timer()
        self._ready = True

    def _end_after(self, seconds: float) -> None:
        self._seconds = seconds
        if seconds:
            self._timer = threading.Timer(seconds, self._expire)
            self._timer.daemon = True
            self._timer.start()

    def chunks(self) -> Iterator[bytes | QueryEnd]:
        """The document's bytes as they come, then how it went."""
        while True:
            kind, payload = self._frame()
            if kind == b"D":
                yield payload
            elif kind == b"E":
                self._finished()
                yield msgspec.json.decode(payload, type=QueryEnd)
                return
            else:
                raise self._refusal(payload)

    def kill(self) -> None:
        self._stop_timer()
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue  # unsent bytes of a request nobody will read

    def _frame(self) -> tuple[bytes, bytes]:
        stream = self._child.stdout
        assert stream is not None
        head = stream.read(FRAME.size)
        if len(head) < FRAME.size:
            raise self._died()
        kind, length = FRAME.unpack(head)
        payload = stream.read(length)
        if len(payload) < length:
            raise self._died()
        return kind, payload

    def _finished(self) -> None:
        self._stop_timer()
        self.free = not self._timed_out

    def _expire(self) -> None:
        self._timed_out = True
        self._child.kill()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refusal(self, payload: bytes) -> QueryError | StoreError:
        refused = msgspec.json.decode(payload, type=QueryRefusal)
        self._finished()
        if refused.kind == "syntax":
            where = f" at line {refused.line}, column {refused.column}" if refused.line else ""
            return QuerySyntaxError(
                f"the query does not parse{where}: {refused.message}",
                hint="docs/howto/sparql.md has examples; common prefixes need no PREFIX line",
                line=refused.line,
                column=refused.column,
            )
        if refused.kind == "memory":
            return self._too_much_memory()
        return StoreError(
            f"the quads cannot be read: {refused.message}", hint="try again; `quadloom verify` checks them"
        )

    def _died(self) -> QueryLimit:
        code = self._child.wait()
        self.kill()
        if self._timed_out or code in (-signal.SIGALRM, -signal.SIGKILL):
            return QueryLimit(
                f"the query was ended after {self._seconds:g} seconds",
                hint="make it more selective, add LIMIT, or raise limits.query_seconds",
            )
        if code == -signal.SIGABRT:
            return self._too_much_memory()
        return QueryLimit(
            "the query ended its process, most likely by nesting too deep for the engine",
            hint="write it flatter: long chains of || or + can become VALUES or IN",
        )

    def _too_much_memory(self) -> QueryLimit:
        return QueryLimit(
            f"the query needed more than {self._memory >> 20} MiB of memory",
            hint="sort or group fewer rows, add LIMIT, or raise limits.query_bytes",
        )
