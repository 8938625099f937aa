"""Bulk work as Ray tasks: Ray chooses a machine for each, and runs it again elsewhere if that machine dies."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import Any

from msgspec.structs import replace

from quadloom.cluster.ray_workers import connected
from quadloom.errors import SettingsError, StoreError
from quadloom.maintenance.bulk import BulkJob, Runner, TaskResult, opened, perform
from quadloom.model.wire import decode, encode
from quadloom.settings import Settings
from quadloom.stores.stores import Stores

_LOCAL = "local"
_RETRIES = 3
_AHEAD = 4  # tasks for each processor that wait or are done: their results are in Ray's memory until they are taken


def on_ray_tasks(address: str, settings: Settings) -> Runner:
    """A runner that does the tasks of a job on a Ray cluster. `address` as in Ray: `auto`, `local`, `ray://host:10001`.

    Raises `SettingsError` if other machines could not reach the stores; those of `local` are on this one."""
    if address != _LOCAL:
        _check_reachable(settings)

    def runner(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        with ray_session(address) as ray:
            # A Ray task may be repeated: it only reads the warehouse, or replaces what an earlier try left.
            remote = ray.remote(num_cpus=1, max_retries=_RETRIES)(_here if address == _LOCAL else _elsewhere)
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


def _here(job: bytes, task: str) -> bytes:
    return encode(perform(decode(job, BulkJob), _stores_of(job, elsewhere=False), task))


def _elsewhere(job: bytes, task: str) -> bytes:
    """On a machine without a directory of the warehouse: everything is on servers."""
    return encode(perform(decode(job, BulkJob), _stores_of(job, elsewhere=True), task))


_opened: dict[bytes, tuple[ExitStack, Stores]] = {}  # by warehouse and settings; of the last job only


def _stores_of(data: bytes, *, elsewhere: bool) -> Stores:
    """Opened once by each process of Ray, which does many tasks: opening takes as long as a small task."""
    job = decode(data, BulkJob)
    key = encode(replace(job, argument=b""))
    if key not in _opened:
        for closing, _ in _opened.values():
            closing.close()
        _opened.clear()
        closing = ExitStack()
        if elsewhere:
            folder = closing.enter_context(tempfile.TemporaryDirectory(prefix="quadloom-"))
            job = replace(job, path=folder)
        _opened[key] = (closing, closing.enter_context(opened(job)))
        atexit.register(closing.close)
    return _opened[key][1]


def _check_reachable(settings: Settings) -> None:
    stores = settings.stores
    local = {
        "stores.frontier": stores.frontier.startswith("sqlite:"),
        "stores.quads": stores.quads.startswith("oxigraph:"),
        "stores.archive": stores.archive == "warc:",
    }
    names = [name for name, is_local in local.items() if is_local]
    if names:
        raise SettingsError(
            f"other machines cannot reach {' and '.join(names)}, which are in this directory",
            hint="use --ray local or --workers, or put the stores on servers: docs/howto/many-machines.md",
        )
