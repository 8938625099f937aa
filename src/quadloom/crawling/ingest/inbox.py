"""The inbox of the thread that owns the stores: everything that other threads and processes have for it.

Only the owner writes, so the others hand over results (`put`), errors that must end the run (`fail`) and actions that
have to run in the owner's thread (`call`). The owner takes them all in one place, between two steps.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import NamedTuple, TypeVar

import msgspec

from quadloom.errors import QuadloomError, UsageError
from quadloom.model.event import EventKind
from quadloom.model.service import InstanceLoad
from quadloom.model.visit import Visit
from quadloom.process.channel import ProcessHeartbeat
from quadloom.stores.protocols.archive import DiskState

T = TypeVar("T")
_CALL_SECONDS = 60.0  # how long `call` waits for a busy owner
_POLL = 0.25  # seconds between two looks at whether the owner is still there


class EventMessage(msgspec.Struct, frozen=True):
    """Something that a person should see, from another thread."""

    kind: EventKind
    text: str


class VisitsDropped(msgspec.Struct, frozen=True):
    """Visits of shards that another worker has taken over; nothing was written for them. Sent to the inbox."""

    visits: tuple[Visit, ...]


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

    def measured(self, detect: float, extract: float) -> None:
        """A worker has detected a page and, if `extract` is not 0, looked for its links."""
        self.detected += 1
        self.extracted += extract > 0.0
        self.detect_seconds += detect
        self.extract_seconds += extract


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
            refused = UsageError(f"this cannot be done: {type(error).__name__}: {error}", hint="check the values sent")
            self.result.set_exception(refused)


class Inbox:
    """Any thread may `put`, `fail` and `call`; only the owner takes."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._closed = False

    def put(self, message: object) -> None:
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

    def take(self, wait: float) -> Iterator[object]:
        """Everything that has arrived; waits up to `wait` seconds if nothing has. Calls are run, errors are raised."""
        try:
            message = self._queue.get(timeout=wait) if wait > 0 else self._queue.get_nowait()
            while True:
                if isinstance(message, OwnerCall):
                    message.run()
                elif isinstance(message, ThreadFailed):
                    raise message.error
                else:
                    yield message
                message = self._queue.get_nowait()
        except queue.Empty:
            return

    def rest(self) -> list[object]:
        """What is left at the end; calls are not run, errors not raised."""
        left = []
        while not self._queue.empty():
            left.append(self._queue.get())
        return left

    def close(self) -> None:
        """The owner takes nothing more: callers that wait in `call` give up."""
        self._closed = True
