"""What commands with bulk work share: their runner, from `--workers` and `--ray`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from quadloom.cli.session import Session
from quadloom.maintenance.parallel.jobs import check_reachable
from quadloom.process.bulk_tasks import Runner, in_processes


def runner_of(s: Session, workers: int, ray: str | None) -> Runner:
    """What does bulk work on the stores of a warehouse."""
    if ray is not None and ray != "local":
        check_reachable(s.settings)
    return parallel_runner(s, workers, ray)


def parallel_runner(s: Session, workers: int, ray: str | None) -> Runner:
    """Processes of this machine, 0 = one per core, or a Ray cluster."""
    if ray is None:
        return in_processes(workers or s.settings.crawl.workers or os.cpu_count() or 1)
    from quadloom.process.ray_tasks import on_ray_tasks

    return on_ray_tasks(ray)


def runner_if_asked(s: Session, workers: int, ray: str | None) -> Runner | None:
    """The same for commands that do without: None = one process, this one."""
    return None if ray is None and workers == 1 else runner_of(s, workers, ray)


@contextmanager
def runner_of_many_jobs(s: Session, workers: int, ray: str | None) -> Iterator[Runner | None]:
    """As `runner_if_asked`, for work that is a long row of small jobs: on Ray they share one connection."""
    if ray is None:
        yield runner_if_asked(s, workers, ray)
        return
    from quadloom.process.ray_tasks import ray_session

    runner = runner_of(s, workers, ray)
    with ray_session(ray):
        yield runner
