"""Bulk work as Ray tasks: Ray chooses a machine for each, and runs it again elsewhere if that machine dies."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any

from msgspec.structs import replace

from quadloom.errors import SettingsError, StoreError, StoreUnavailable
from quadloom.model.wire import decode, encode
from quadloom.process.bulk_tasks import BulkJob, Runner, TaskFunction, TaskResult, opened, perform

LOCAL = "local"
_RETRIES = 3
_AHEAD = 4  # tasks for each processor that wait or are done: their results are in Ray's memory until they are taken
_LOGGED = logging.ERROR  # stderr has the messages of Quadloom, not those of Ray about its start
_OBJECT_BYTES = 80 << 20  # Ray refuses less than 75 MiB


def on_ray_tasks(address: str) -> Runner:
    """A runner that does the tasks of a job on a Ray cluster. `address` as in Ray: `auto`, `local`, `ray://host:10001`."""

    def runner(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        with ray_session(address) as ray:
            # A Ray task may be repeated: it only reads the warehouse, or replaces what an earlier try left.
            remote = ray.remote(num_cpus=1, max_retries=_RETRIES)(_perform)
            data = encode(job)
            left = iter(tasks)
            most = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
            waiting = [remote.remote(data, task) for task in islice(left, most)]
            while waiting:
                done, waiting = ray.wait(waiting, num_returns=1)
                result = decode(ray.get(done[0]), TaskResult)
                waiting += [remote.remote(data, task) for task in islice(left, 1)]
                if result.error:
                    raise StoreError(result.error, hint=result.hint)
                yield result

    return runner


@contextmanager
def ray_session(address: str) -> Iterator[Any]:
    """The module `ray`, connected to a cluster. Sessions within this one share its connection: work of many jobs
    begins one around them all, since connecting takes seconds."""
    global _sessions
    ray = connected(address)
    _sessions += 1
    try:
        yield ray
    finally:
        _sessions -= 1
        if not _sessions:
            ray.shutdown()


_sessions = 0


def _perform(data: bytes, task: str) -> bytes:
    job = decode(data, BulkJob)
    return encode(perform(_function_of(job), task, job.argument))


_opened: dict[bytes, tuple[ExitStack, TaskFunction]] = {}  # of the last setup only


def _function_of(job: BulkJob) -> TaskFunction:
    """Opened once by each process of Ray, which does many tasks: opening takes as long as a small task."""
    key = encode(replace(job, argument=b""))
    if key not in _opened:
        for closing, _ in _opened.values():
            closing.close()
        _opened.clear()
        closing = ExitStack()
        _opened[key] = (closing, closing.enter_context(opened(job)))
        atexit.register(closing.close)
    return _opened[key][1]


def connected(address: str) -> Any:
    """The module `ray`, connected to a cluster; the caller calls its `shutdown`."""
    try:
        import ray
    except ImportError:
        raise SettingsError(
            "--ray needs the package ray, which is not installed", hint="pip install quadloom[ray]"
        ) from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # otherwise a local cluster sends usage statistics
    # Only settings and reports go through Ray. By default a local cluster reserves a third of the memory for objects.
    local: dict[str, Any] = {"include_dashboard": False, "object_store_memory": _OBJECT_BYTES}
    options = local if address == "local" else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=_LOGGED, ignore_reinit_error=True, **options)
    except Exception as error:  # noqa: BLE001  Ray raises a bare one if its node does not start within 30 s
        raise _not_connected(address, error) from None
    return ray


def _not_connected(address: str, error: Exception) -> StoreUnavailable:
    reason = str(error).strip() or type(error).__name__
    if address == "local":
        return StoreUnavailable(
            f"Ray does not start on this machine: {reason}",
            hint="try again when the machine is less busy, check that its folder for temporary files has room, or use "
            "--workers instead",
        )
    return StoreUnavailable(
        f"cannot connect to a Ray cluster at {address}: {reason}",
        hint="start one with `ray start --head`, or use --ray local; if the cluster asks for a token, set "
        "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH",
    )
