"""Bulk work cut into tasks, each done by whichever process is free: child processes here, or tasks on a Ray cluster.

A task is a name, such as a file of the archive, and its result is bytes; nothing else is shared. A process that does
tasks opens what they need by itself. A child that dies costs its task a second and a third try; then the job fails and
names the task. `quadloom.maintenance.parallel.results` stores results, so that an interrupted job can be resumed.
"""

from __future__ import annotations

import importlib
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import repeat

import msgspec

from quadloom.errors import QuadloomError, StoreError
from quadloom.process.channel import Channel, run, start
from quadloom.process.request_child import ChildEnded, RequestChild
from quadloom.process.retry import retry

_TRIES = 3
_AHEAD = 2  # results for each process that wait to be taken: beyond, the processes wait


class BulkJob(msgspec.Struct, frozen=True):
    """What every process of a job needs to know. A job is resumed by one with the same `name` and `argument`.

    `worker` ("module:name") is a context manager: it opens what `setup` describes and gives the function that does a
    task of this job, `(task, argument) → result`. On Ray a process opens it once for all jobs with the same `setup`.
    """

    name: str
    worker: str
    setup: bytes
    argument: bytes = b""


TaskFunction = Callable[[str, bytes], bytes]


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
        threads = [_TaskThread(job, waiting, results) for _ in range(count)]
        try:
            for _ in tasks:
                result = results.get()
                if result.error:
                    raise StoreError(result.error, hint=result.hint)
                yield result
        finally:
            for thread in threads:
                thread.close()

    return runner


class _TaskThread:
    """A thread with a child process of its own, which takes tasks until none is left."""

    def __init__(self, job: BulkJob, waiting: queue.SimpleQueue[str], results: queue.Queue[TaskResult]) -> None:
        self._waiting = waiting
        self._results = results
        self._child = RequestChild(lambda: start(__name__, job))
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bulk", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._child.close()
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
            self._child.end()

    def _put(self, result: TaskResult) -> None:
        while not self._closed.is_set():
            with suppress(queue.Full):  # the caller takes results more slowly than tasks end
                self._results.put(result, timeout=0.2)
                return

    def _done(self, task: str) -> TaskResult:
        try:
            return retry(lambda: self._child.ask(task, TaskResult), repeat(0.0, _TRIES - 1), ChildEnded)
        except ChildEnded:
            return TaskResult(
                task, error=f"{task}: the process that worked on it died {_TRIES} times", hint="is there enough memory?"
            )


def opened(job: BulkJob) -> AbstractContextManager[TaskFunction]:
    """What does the tasks of a job in this process."""
    module, name = job.worker.split(":")
    worker: AbstractContextManager[TaskFunction] = getattr(importlib.import_module(module), name)(job.setup)
    return worker


def perform(function: TaskFunction, task: str, argument: bytes) -> TaskResult:
    """Do one task, with a function that `opened` has given."""
    try:
        return TaskResult(task, function(task, argument))
    except QuadloomError as error:
        return TaskResult(task, error=f"{task}: {error.message}", hint=error.hint)


def serve(channel: Channel) -> None:
    job = channel.receive(BulkJob)
    with opened(job) as function:
        while True:
            channel.send(perform(function, channel.receive(str), job.argument))


if __name__ == "__main__":
    run(serve)
