"""Bulk work cut into tasks, each done by whichever process is free: child processes here, or tasks on a Ray cluster.

A task is a name, such as a file of the archive, and its result is bytes; nothing else is shared. A process that does
tasks opens the stores for reading by itself. A child that dies costs its task a second and a third try; then the job
fails and names the task. Finished tasks are in a journal, so an interrupted job can be resumed (`TaskJournal`).
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from quadloom.errors import QuadloomError, StoreError
from quadloom.process.channel import Channel, ChannelClosed, ChildProcess, run, start
from quadloom.process.clock import unix_time
from quadloom.scheduling.scope import Scope, ScopeRecord
from quadloom.settings import Settings
from quadloom.stores.stores import Stores, open_stores

JobName = Literal["verify", "lake", "export", "statistics", "rebuild", "importance"]
# What does a task of a job: (stores, name of the task, argument of the job) → result.
_JOBS: dict[JobName, tuple[str, str]] = {
    "verify": ("quadloom.maintenance.verify", "verify_file"),
    "lake": ("quadloom.maintenance.lake.sync", "sync_part"),
    "export": ("quadloom.maintenance.parallel.export", "export_range"),
    "statistics": ("quadloom.maintenance.parallel.statistics", "count_range"),
    "rebuild": ("quadloom.maintenance.parallel.rebuild", "rebuild_part"),
    "importance": ("quadloom.maintenance.parallel.importance", "sum_part"),
}
_TRIES = 3
_AHEAD = 2  # results for each process that wait to be taken: beyond, the processes wait


class BulkJob(msgspec.Struct, frozen=True):
    """What every process of a job needs to know. `path`: the warehouse."""

    name: JobName
    path: str
    settings: Settings
    argument: bytes = b""


class TaskResult(msgspec.Struct, frozen=True):
    """`error`: why the task could not be done; empty = `data` is its result."""

    task: str
    data: bytes = b""
    error: str = ""
    hint: str = ""


Runner = Callable[[BulkJob, Sequence[str]], Iterator[TaskResult]]
"""Does all tasks of a job in any order. The job ends when the iterator is closed."""


def in_processes(workers: int) -> Runner:
    """A runner with `workers` child processes."""

    def runner(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        count = min(workers, len(tasks))
        results: queue.Queue[TaskResult] = queue.Queue(_AHEAD * count)
        for task in tasks:
            waiting.put(task)
        hands = [_Hand(job, waiting, results) for _ in range(count)]
        try:
            for _ in tasks:
                result = results.get()
                if result.error:
                    raise StoreError(result.error, hint=result.hint)
                yield result
        finally:
            for hand in hands:
                hand.close()

    return runner


class _Hand:
    """A thread with a child process of its own, which takes tasks until none is left."""

    def __init__(self, job: BulkJob, waiting: queue.SimpleQueue[str], results: queue.Queue[TaskResult]) -> None:
        self._job = job
        self._waiting = waiting
        self._results = results
        self._child: ChildProcess | None = None
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bulk", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        child = self._child
        if child is not None:
            child.kill()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._closed.is_set():
                try:
                    task = self._waiting.get_nowait()
                except queue.Empty:
                    return
                self._put(self._done(task))
        finally:
            if self._child is not None:
                self._child.close()

    def _put(self, result: TaskResult) -> None:
        while not self._closed.is_set():
            with suppress(queue.Full):  # the caller takes results more slowly than tasks end
                self._results.put(result, timeout=0.2)
                return

    def _done(self, task: str) -> TaskResult:
        for _ in range(_TRIES):
            try:
                if self._child is None:
                    self._child = start(__name__, self._job)
                self._child.channel.send(task)
                return self._child.channel.receive(TaskResult)
            except ChannelClosed:
                if self._child is not None:
                    self._child.close()
                    self._child = None
                if self._closed.is_set():
                    break
        return TaskResult(
            task, error=f"{task}: the process that worked on it died {_TRIES} times", hint="is there enough memory?"
        )


@contextmanager
def opened(job: BulkJob) -> Iterator[Stores]:
    """The stores of a job, for reading. One worker process for each process of the job: there are many of these."""
    settings = replace(job.settings, crawl=replace(job.settings.crawl, workers=1))
    with open_stores(
        Path(job.path), settings, lambda _catalog: Scope(ScopeRecord()), unix_time(), writable=False
    ) as stores:
        yield stores


def perform(job: BulkJob, stores: Stores, task: str) -> TaskResult:
    """Do one task, with stores that `opened` has given."""
    module, name = _JOBS[job.name]
    try:
        return TaskResult(task, getattr(importlib.import_module(module), name)(stores, task, job.argument))
    except QuadloomError as error:
        return TaskResult(task, error=f"{task}: {error.message}", hint=error.hint)


class TaskJournal:
    """The results of finished tasks, one JSON line each. A torn last line, of a crash, is ignored."""

    def __init__(self, path: Path, *, resume: bool) -> None:
        self._path = path
        self.done: dict[str, bytes] = {}
        if resume:
            self._read()
        self._file = path.open("ab" if resume else "wb")

    def add(self, result: TaskResult) -> None:
        self.done[result.task] = result.data
        self._file.write(b"\n" + msgspec.json.encode(result))  # the break comes first, so that a torn line ends here
        self._file.flush()

    def finish(self) -> None:
        """The job is complete: nothing is left to resume."""
        self.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        self._file.close()

    def _read(self) -> None:
        with suppress(FileNotFoundError):
            for line in self._path.read_bytes().split(b"\n"):
                with suppress(msgspec.DecodeError):
                    result = msgspec.json.decode(line, type=TaskResult)
                    self.done[result.task] = result.data


def serve(channel: Channel) -> None:
    job = channel.receive(BulkJob)
    with opened(job) as stores:
        while True:
            channel.send(perform(job, stores, channel.receive(str)))


if __name__ == "__main__":
    run(serve)
