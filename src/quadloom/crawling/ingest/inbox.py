"""The inbox of the thread that owns the stores: everything that other threads and processes have for it.

Only the owner writes, so the others hand over messages (`put`), errors that must end the run (`fail`) and actions that
have to run in the owner's thread (`call`). The owner handles them all in one place, between two steps.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

import msgspec

from quadloom.crawling.ingest.messages import EventMessage, Message
from quadloom.errors import QuadloomError, UsageError
from quadloom.model.event import EventKind
from quadloom.model.service import InstanceLoad
from quadloom.process.channel import ProcessHeartbeat
from quadloom.stores.protocols.archive import DiskState

T = TypeVar("T")
M = TypeVar("M")
_CALL_SECONDS = 60.0  # how long `call` waits for a busy owner
_GATHER = 0.002  # seconds from the first message in which others are awaited: a turn for each would cost a tenth more
_POLL = 0.25  # seconds between two looks at whether the owner is still there


class IngestCounts(msgspec.Struct):
    """What has passed through, since the start. Seconds of detect and extract are CPU of the workers; `settle_wait` is
    time in which the owner waited for the archive and the database."""

    detected: int = 0
    extracted: int = 0
    extracted_later: int = 0  # pages that others had left for the phase extract
    detect_seconds: float = 0.0
    extract_seconds: float = 0.0
    settle_wait: float = 0.0
    transformed: int = 0
    indexed: int = 0
    quarantined: int = 0
    replaced_workers: int = 0  # that died or were killed, the fetch process included
    quads: int = 0
    links: int = 0
    findings: int = 0


class IngestLoad(NamedTuple):
    """`services`: every instance, nothing before the first page was sent to one. `disks`: directories of the archive,
    with what is wrong with them. `queues`: pages that wait before a phase."""

    workers: list[ProcessHeartbeat]
    services: list[InstanceLoad]
    disks: list[DiskState]
    cpu_seconds: float
    queues: dict[str, int]


class ThreadFailed(msgspec.Struct, frozen=True):
    """A thread of the owner has failed; the run ends with its error."""

    error: BaseException

    def throw(self) -> None:
        raise self.error


class OwnerCall:
    """An action for the owner's thread, and the place where the caller waits for its result."""

    def __init__(self, action: Callable[[], object]) -> None:
        self._action = action
        self.result: Future[object] = Future()

    def run(self) -> None:
        try:
            self.result.set_result(self._action())
        except QuadloomError as error:
            self.result.set_exception(error)
        except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError) as error:
            # A value that no check foresaw: the caller gets the error, and the crawl goes on. Its transaction was
            # rolled back.
            refused = UsageError(f"command failed: {type(error).__name__}: {error}", hint="check its arguments")
            self.result.set_exception(refused)


class Inbox:
    """Any thread may `put`, `fail` and `call`. The owner says what handles each kind of message (`on`), and
    delivers."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[Message | OwnerCall | ThreadFailed] = queue.SimpleQueue()
        self._handlers: dict[type, Callable[[Any], None]] = {OwnerCall: OwnerCall.run, ThreadFailed: ThreadFailed.throw}
        self._closed = False

    def on(self, kind: type[M], handler: Callable[[M], None]) -> None:
        """Hand messages of this kind to `handler`, in the owner's thread."""
        self._handlers[kind] = handler

    def put(self, message: Message) -> None:
        self._queue.put(message)

    def event(self, kind: EventKind, text: str) -> None:
        self._queue.put(EventMessage(kind, text))

    def fail(self, error: BaseException) -> None:
        self._queue.put(ThreadFailed(error))

    def call(self, action: Callable[[], T]) -> T:
        """Run `action` in the owner's thread between two steps and return its result. Raises the `QuadloomError` that
        it raised, and `TimeoutError` if the owner has ended or stays busy for a minute."""
        results: list[T] = []
        call = OwnerCall(lambda: results.append(action()))
        self._queue.put(call)
        deadline = time.monotonic() + _CALL_SECONDS
        while True:
            try:
                call.result.result(timeout=_POLL)
                return results[0]
            except TimeoutError:
                if self._closed or time.monotonic() > deadline:
                    raise

    def deliver(self, wait: float) -> None:
        """Handle everything that has arrived; wait up to `wait` seconds if nothing has. Calls are run, errors are
        raised. Messages without a handler are dropped."""
        take = self._queue.get
        try:
            message = take(timeout=wait) if wait > 0 else take(False)
            until = time.monotonic() + _GATHER if wait > 0 else 0.0
            while True:
                handler = self._handlers.get(type(message))
                if handler is not None:
                    handler(message)
                left = until - time.monotonic()
                message = take(timeout=left) if left > 0 else take(False)
        except queue.Empty:
            return

    def deliver_rest(self, *kinds: type) -> None:
        """At the end, handle what is left of these kinds and drop the others; calls are not run, errors not raised."""
        while not self._queue.empty():
            message = self._queue.get()
            if isinstance(message, kinds):
                self._handlers[type(message)](message)

    def close(self) -> None:
        """The owner takes nothing more: callers that wait in `call` give up."""
        self._closed = True
