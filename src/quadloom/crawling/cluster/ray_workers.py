"""Workers as Ray actors: Ray chooses the machines, starts the processes and restarts them when they die.

Ray has no state of a crawl. A restarted actor begins again; what it had settled is in the database, and its shards come
back to it or to another worker as after any crash. So actors may be restarted without limit.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from quadloom.errors import SettingsError, StoreUnavailable

_LOGGED = logging.ERROR  # stderr has the messages of Quadloom, not those of Ray about its start
_OBJECT_BYTES = 80 << 20  # Ray refuses less than 75 MiB

T = TypeVar("T")
Stopped = threading.Event
Work = Callable[[int, Stopped], T]  # (number of the worker, an event that is set when it should end)


class _Actor:
    """Has two threads: one works, the other receives `stop`."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def run(self, work: Work[T], number: int) -> T:
        return work(number, self._stopped)

    def stop(self) -> None:
        self._stopped.set()


def on_ray(address: str, workers: int, work: Work[T], *, interrupted: Callable[[], bool] = lambda: False) -> list[T]:
    """Run `work` in `workers` actors (0 = one per machine), and wait for their results.

    `address` as in Ray: `auto`, `local`, `ray://host:10001`. When `interrupted` returns True, the actors are asked to
    end.
    """
    ray = connected(address)
    try:
        kind = ray.remote(max_restarts=-1, max_task_retries=-1, max_concurrency=2, num_cpus=1)(_Actor)
        count = workers or sum(node["Alive"] for node in ray.nodes())
        actors = [kind.remote() for _ in range(count)]
        tasks = [actor.run.remote(work, number) for number, actor in enumerate(actors)]
        return _wait(ray, actors, tasks, interrupted)
    finally:
        ray.shutdown()


def _wait(ray: Any, actors: list[Any], tasks: list[Any], interrupted: Callable[[], bool]) -> list[Any]:
    stopping = False
    unfinished = tasks
    while unfinished:
        if interrupted() and not stopping:
            stopping = True
            for actor in actors:
                actor.stop.remote()
        _, unfinished = ray.wait(unfinished, num_returns=len(unfinished), timeout=0.5)
    results: list[Any] = ray.get(tasks)
    return results


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
