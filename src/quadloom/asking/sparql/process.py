"""A query process as its owner sees it: started, asked, and killed at the deadline.

The engine cannot be interrupted, so the only sure end of a query is the end of its process. A process that has answered
in full is used again. One that was killed, or whose answer was not read to the end, never is.

The deadline counts for the query alone. The time that a new process needs until it can read one (half a second, many
on a busy machine) does not count; otherwise a query would fail because of the one that was killed before it.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

from quadloom.asking.sparql.mistakes import pointed_line
from quadloom.asking.sparql.worker import (
    QueryChunk,
    QueryEnd,
    QueryHead,
    QueryRefusal,
    QueryReply,
    QueryRequest,
)
from quadloom.errors import QueryError, QueryLimit, QuerySyntaxError, StoreError
from quadloom.process.channel import ChannelClosed, start
from quadloom.stores.protocols.queries import QuerySource

_START_SECONDS = 60.0  # a new process that is not ready after this is given up
LEAST_MEMORY = 384 << 20  # bytes of address space: to open a view of the quads takes 305 MiB, whatever they hold
# One arena for each thread would reserve 64 MiB of the limited address space each.
_ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}


class QueryProcess:
    """One child process that evaluates queries on `source`. Not for two threads at once."""

    def __init__(self, source: QuerySource, memory: int) -> None:
        self._child = start(
            "quadloom.asking.sparql.worker",
            source,
            address_space=memory,
            environment=_ENVIRONMENT,
            stderr=subprocess.DEVNULL,
        )
        self._memory = memory
        self._seconds = 0.0
        self._query = ""
        self._ready = False
        self.free = True  # between two queries

    @property
    def alive(self) -> bool:
        return self._child.is_alive

    def start(self, request: QueryRequest) -> QueryHead:
        """Send a query and wait for the head of its answer. Raises `QueryError`."""
        self.free = False
        if not self._ready:
            self._await_ready()
        self._seconds = request.seconds
        self._query = request.written
        self._child.kill_after(request.seconds)
        try:
            self._child.channel.send(request)
        except ChannelClosed:
            raise self._death() from None
        head = self._receive()
        if isinstance(head, QueryRefusal):
            raise self._refusal(head)
        assert isinstance(head, QueryHead)
        return head

    def chunks(self) -> Iterator[bytes | QueryEnd]:
        """The bytes of the result as they arrive, then the figures of the query."""
        while True:
            content = self._receive()
            if isinstance(content, QueryChunk):
                yield content.data
            elif isinstance(content, QueryEnd):
                self._finish()
                yield content
                return
            else:
                assert isinstance(content, QueryRefusal)
                raise self._refusal(content)

    def kill(self) -> None:
        self.free = False  # the system may call it alive for another moment
        self._child.close()

    def _await_ready(self) -> None:
        self._child.kill_after(_START_SECONDS)
        try:
            self._child.channel.receive(str)
        except ChannelClosed:
            self.kill()
            raise StoreError(
                "a query process did not start", hint="the machine may be short of memory; see limits.query_bytes"
            ) from None
        self._child.cancel_deadline()
        self._ready = True

    def _receive(self) -> QueryHead | QueryChunk | QueryEnd | QueryRefusal:
        try:
            return self._child.channel.receive(QueryReply).content
        except ChannelClosed:
            raise self._death() from None

    def _finish(self) -> None:
        self._child.cancel_deadline()
        self.free = not self._child.timed_out

    def _refusal(self, refused: QueryRefusal) -> QueryError | StoreError:
        self._finish()
        if refused.kind == "syntax":
            place = f" at line {refused.line}, column {refused.column}" if refused.line else ""
            return QuerySyntaxError(
                f"the query does not parse{place}: {refused.message}",
                hint=pointed_line(self._query, refused.line, refused.column)
                or "common prefixes such as schema: need no PREFIX line",
                line=refused.line,
                column=refused.column,
            )
        if refused.kind == "memory":
            self.kill()  # what it holds may be too much for the next query, too
            return self._too_much_memory()
        return StoreError(
            f"the quads cannot be read: {refused.message}", hint="try again; `quadloom verify` checks them"
        )

    def _death(self) -> QueryLimit:
        ended = self._child.wait()
        self.kill()
        if ended.cause == "deadline" or ended.code == -signal.SIGKILL:
            return QueryLimit(
                f"the query was ended after {self._seconds:g} seconds",
                hint="make it more selective, add LIMIT, or raise limits.query_seconds",
            )
        if ended.cause == "memory" or ended.code == -signal.SIGABRT:
            return self._too_much_memory()
        return QueryLimit(
            "the query ended its process, most likely by nesting too deep for the engine",
            hint="write it flatter: long chains of || or + can become VALUES or IN",
        )

    def _too_much_memory(self) -> QueryLimit:
        hint = "sort or group fewer rows, add LIMIT, or raise limits.query_bytes"
        if self._memory < LEAST_MEMORY:
            hint = f"raise limits.query_bytes to at least {LEAST_MEMORY}: opening the quads takes most of that"
        return QueryLimit(f"the query needed more than {self._memory >> 20} MiB of memory", hint=hint)
