"""Workers as Ray actors: Ray chooses the machines, starts the processes and starts them again when they die.

Ray keeps no state of ours. An actor that died begins its work anew; what it had settled is in the database, and its
shards come back to it or to another as after any crash. So actors may be restarted without end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from quadloom.errors import SettingsError, StoreUnavailable

T = TypeVar("T")
Stopped = threading.Event
Work = Callable[[int, Stopped], T]  # number of the worker, and an event that asks it to end


class _Actor:
    """Two threads: one works, the other hears `stop`."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def run(self, work: Work[T], number: int) -> T:
        return work(number, self._stopped)

    def stop(self) -> None:
        self._stopped.set()


def on_ray(address: str, workers: int, work: Work[T], *, interrupted: Callable[[], bool] = lambda: False) -> list[T]:
    """Have `work` done by so many actors (0 = one for each machine) and wait for what they return.

    `address` as Ray takes it: `auto`, `local`, `ray://host:10001`. When `interrupted` says so they are asked to end.
    """
    ray = _ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a local cluster would report to its makers
    try:
        ray.init(address=address, log_to_driver=False, ignore_reinit_error=True)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise StoreUnavailable(
            f"no Ray cluster at {address}: {error}",
            hint="start one with `ray start --head`, or use --ray local",
        ) from None
    try:
        kind = ray.remote(max_restarts=-1, max_task_retries=-1, max_concurrency=2, num_cpus=1)(_Actor)
        count = workers or sum(node["Alive"] for node in ray.nodes())
        actors = [kind.remote() for _ in range(count)]
        waiting = [actor.run.remote(work, number) for number, actor in enumerate(actors)]
        return _gathered(ray, actors, waiting, interrupted)
    finally:
        ray.shutdown()


def _gathered(ray: Any, actors: list[Any], waiting: list[Any], interrupted: Callable[[], bool]) -> list[Any]:
    asked = False
    left = waiting
    while left:
        if interrupted() and not asked:
            asked = True
            for actor in actors:
                actor.stop.remote()
        _, left = ray.wait(left, num_returns=len(left), timeout=0.5)
    results: list[Any] = ray.get(waiting)
    return results


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise SettingsError(
            "--ray needs the package ray, which is not installed", hint="pip install quadloom[ray]"
        ) from None
    return ray
