"""Deadlines of workers: a busy machine, a stopped process and a slow page are told apart."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from quadloom.crawling.workers.pool import PoolChanged, SlowPage, TransformResult, WorkerPool
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.process import limits
from quadloom.process.limits import TaskTime
from quadloom.settings import LimitSettings, Settings
from waiting import wait_until

BURNING = """
import os, time
import quadloom.documents.pipeline as pipeline
original = pipeline.process_page

def burning(page, *rest):
    if b"BURN" in page.body:
        until = time.process_time() + 0.4
        while time.process_time() < until:
            pass
    if b"ONCE" in page.body and not os.path.exists(os.environ["ONCE_FILE"]):
        open(os.environ["ONCE_FILE"], "w").close()
        os.abort()
    return original(page, *rest)

pipeline.process_page = burning
"""


class _Collected:
    """What a pool answers, by the number of the visit."""

    def __init__(self) -> None:
        self.done: dict[int, TransformResult] = {}
        self.notices: list[tuple[str, str]] = []
        self.errors: list[BaseException] = []

    def take(self, item: TransformResult | SlowPage | PoolChanged) -> None:
        if isinstance(item, TransformResult):
            self.done[item.visit.fingerprint] = item

    def wait(self, pool: WorkerPool, count: int) -> None:
        wait_until(lambda: pool.redistribute() or len(self.done) >= count, lambda: str(self.notices), seconds=90)


@contextmanager
def pool_of(collected: _Collected, seconds: float) -> Iterator[WorkerPool]:
    settings = msgspec.structs.replace(Settings(), limits=LimitSettings(transform_seconds=seconds))
    pool = WorkerPool(
        1, settings, collected.take, lambda *notice: collected.notices.append(notice), collected.errors.append
    )
    try:
        yield pool
    finally:
        pool.close()


def submit(pool: WorkerPool, number: int, body: bytes) -> None:
    url = f"http://busy.example/{number}"
    page = Page(url, url, 200, (("content-type", "text/html"),), body, 0.0, 0.1)
    pool.submit(Visit(url, url, "busy.example", number), page)


@pytest.fixture
def burning_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(BURNING, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("ONCE_FILE", str(tmp_path / "once"))


@pytest.mark.skipif(limits.queued_seconds(os.getpid()) is None, reason="the kernel has no scheduler statistics")
@pytest.mark.usefixtures("burning_workers")
def test_a_busy_machine_quarantines_nothing_innocent() -> None:
    """The page needs 0.4 s of CPU and may take 0.8 s; with a quarter of a processor it needs 1.6."""
    collected = _Collected()
    cpu = {min(os.sched_getaffinity(0))}
    with pool_of(collected, 0.8) as pool:
        submit(pool, 0, b"<title>fine")  # so that the worker has started
        collected.wait(pool, 1)
        (beat,) = pool.heartbeats()
        os.sched_setaffinity(beat.pid, cpu)
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
        try:
            for other in others:
                os.sched_setaffinity(other.pid, cpu)
            queued = limits.queued_seconds(beat.pid)
            submit(pool, 1, b"<title>BURN")
            collected.wait(pool, 2)
            waited = limits.queued_seconds(beat.pid)
        finally:
            for other in others:
                other.kill()
                other.wait()
    assert collected.done[1].answer is not None, collected.notices
    assert not collected.notices
    assert queued is not None and waited is not None and waited - queued > 0.5, "the machine was not busy"


@pytest.mark.usefixtures("burning_workers")
def test_a_replaced_worker_is_a_finding_of_its_page_and_a_notice() -> None:
    collected = _Collected()
    with pool_of(collected, 10.0) as pool:
        submit(pool, 0, b"<title>ONCE")
        collected.wait(pool, 1)
    answer = collected.done[0].answer
    assert answer is not None
    (finding,) = [finding for finding in answer.result.findings if finding.code == "worker-replaced"]
    assert "crashed with signal 6" in finding.message
    assert [kind for kind, _ in collected.notices] == ["worker-killed"]


def test_time_of_a_task_is_wall_time_without_waiting_for_a_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, queued = 5.0, 100.0
    monkeypatch.setattr(limits, "cpu_seconds", lambda _pid: cpu)
    monkeypatch.setattr(limits, "queued_seconds", lambda _pid: queued)
    task = TaskTime(1)
    task.begin(1000.0)
    assert task.spent(1000.0) == 0.0
    cpu, queued = 6.0, 103.0
    assert task.spent(1004.0) == 1.0, "3 of 4 seconds in a queue"
    assert task.spent(1009.0) == 6.0, "5 seconds of sleep count"
    cpu = 12.0
    assert task.spent(1009.0) == 7.0, "never less than its CPU time"
    task.excuse(30.0)
    assert task.spent(1040.0) == 7.0, "the group was stopped for half a minute"
    task.begin(1040.0)
    assert task.spent(1041.0) == 1.0


def test_without_statistics_of_the_scheduler_wall_time_counts_a_quarter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "cpu_seconds", lambda _pid: 0.0)
    monkeypatch.setattr(limits, "queued_seconds", lambda _pid: None)
    task = TaskTime(1)
    task.begin(0.0)
    assert task.spent(0.0) == 0.0
    assert task.spent(40.0) == 10.0
