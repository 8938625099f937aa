"""The bulk jobs of a warehouse: which function does a task of which job, and the stores that it gets.

The engine that runs them is `quadloom.process.bulk_tasks`; a task may run in any process that can reach the stores.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from quadloom.errors import SettingsError
from quadloom.model.wire import decode, encode
from quadloom.planning.scope import Scope, ScopeRecord
from quadloom.process.bulk_tasks import BulkJob, TaskFunction
from quadloom.process.clock import unix_time
from quadloom.settings import Settings
from quadloom.stores.opened import Stores, open_stores

JobName = Literal["verify", "lake", "export", "statistics", "rebuild", "importance"]
# What does a task of a job: (stores, name of the task, argument of the job) → result.
_FUNCTIONS: dict[JobName, tuple[str, str]] = {
    "verify": ("quadloom.maintenance.verify", "verify_file"),
    "lake": ("quadloom.maintenance.lake.sync", "sync_part"),
    "export": ("quadloom.maintenance.parallel.export", "export_range"),
    "statistics": ("quadloom.maintenance.parallel.statistics", "count_range"),
    "rebuild": ("quadloom.maintenance.parallel.rebuild", "rebuild_part"),
    "importance": ("quadloom.maintenance.parallel.importance", "sum_part"),
}


class _Setup(msgspec.Struct, frozen=True):
    name: JobName
    path: str
    settings: Settings


def warehouse_job(name: JobName, path: Path, settings: Settings, argument: bytes = b"") -> BulkJob:
    """A job over the warehouse at `path`."""
    return BulkJob(name, f"{__name__}:warehouse_worker", encode(_Setup(name, str(path.absolute()), settings)), argument)


@contextmanager
def warehouse_worker(setup: bytes) -> Iterator[TaskFunction]:
    """Open the stores of a job for reading. On a machine without the warehouse's directory, all of them are on servers;
    `check_reachable` has made sure of that."""
    job = decode(setup, _Setup)
    # One transform worker for each process of the job: there are many of these.
    settings = replace(job.settings, crawl=replace(job.settings.crawl, workers=1))
    module, function = _FUNCTIONS[job.name]
    with ExitStack() as closing:
        path = Path(job.path)
        if not path.is_dir():
            path = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="quadloom-")))
        opened = open_stores(path, settings, lambda _catalog: Scope(ScopeRecord()), unix_time(), writable=False)
        stores: Stores = closing.enter_context(opened)
        done = getattr(importlib.import_module(module), function)
        yield lambda task, argument: done(stores, task, argument)


def check_reachable(settings: Settings) -> None:
    """Raise `SettingsError` if other machines could not reach the stores."""
    stores = settings.stores
    local = {
        "stores.frontier": not stores.is_shared,
        "stores.quads": stores.quads.startswith("oxigraph:"),
        "stores.archive": stores.archive == "warc:",
    }
    names = [name for name, is_local in local.items() if is_local]
    if names:
        raise SettingsError(
            f"other machines cannot reach {' and '.join(names)}, which are in this directory",
            hint="use --ray local or --workers, or put the stores on servers: docs/howto/many-machines.md",
        )
