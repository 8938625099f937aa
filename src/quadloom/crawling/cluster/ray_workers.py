"""Workers as Ray actors: Ray chooses the machines, starts the processes and restarts them when they die.

Ray has no state of a crawl. A restarted actor begins again; what it had settled is in the database, and its shards come
back to it or to another worker as after any crash. So actors may be restarted without limit.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from quadloom.process.ray_tasks import connected

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
        # On different machines, as long as there are some: one that dies takes as few workers along as possible.
        actors = [kind.options(scheduling_strategy="SPREAD").remote() for _ in range(count)]
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
