"""Verify and rebuild read files of the archive one after another, and name what such a file does not have."""

from __future__ import annotations

import importlib.util
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from quadloom.errors import SettingsError, StoreError
from quadloom.maintenance.archive_order import pages_by_file
from quadloom.maintenance.parallel.jobs import check_reachable, warehouse_job
from quadloom.maintenance.verify import FOLDER
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Failure, Page
from quadloom.process.bulk_tasks import BulkJob, TaskResult, in_processes
from quadloom.process.ray_tasks import on_ray_tasks
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.warehouse import Warehouse

PAGES = 60
SETTINGS = Settings(stores=StoreSettings(archive_file_bytes=8_000))


def url(number: int) -> str:
    return f"http://site{number % 7}.example/{number}"


def version(number: int, words: str = "word") -> Page:
    body = f"<title>Page {number}</title><p>{words} {os.urandom(300).hex()}".encode()
    return Page(url(number), url(number), 200, (("content-type", "text/html"),), body, 1000.0 + number, 0.1)


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """Sixty pages in several files; the first ten have a newer version."""
    pages = [version(number) for number in range(PAGES)]
    pages += [msgspec.structs.replace(version(number, "newer"), fetched_at=5000.0) for number in range(10)]
    source = tmp_path / "source.warc.gz"
    source.write_bytes(file_header(source.name, 0.0) + b"".join(encode(page).member for page in pages))
    with Warehouse.open(tmp_path / "warehouse", settings=SETTINGS) as warehouse:
        warehouse.maintenance.import_(source)
        warehouse.stores.archive.seal()
        assert len(warehouse.stores.archive.files()) > 3
        yield warehouse


class CountedArchive:
    """The archive, with the number of records that were read one by one."""

    def __init__(self, warehouse: Warehouse) -> None:
        self._archive = warehouse.stores.archive
        self.gets = 0

    def get(self, ref: ArchiveRef) -> Page | Failure:
        self.gets += 1
        return self._archive.get(ref)

    def __getattr__(self, name: str) -> object:
        return getattr(self._archive, name)


def counted(warehouse: Warehouse) -> CountedArchive:
    archive = CountedArchive(warehouse)
    warehouse.maintenance._stores = msgspec.structs.replace(warehouse.stores, archive=archive)
    return archive


def test_every_page_comes_once_with_its_newest_version(warehouse: Warehouse) -> None:
    archive = counted(warehouse)
    found = list(pages_by_file(warehouse.maintenance._stores, lambda _row: True))
    assert sorted(item.row.href for item in found) == sorted(map(url, range(PAGES)))
    for item in found:
        assert item.page is not None and item.row.archive is not None
        assert item.page == warehouse.stores.archive.get(item.row.archive)
    assert archive.gets == 0


def test_verify_and_rebuild_read_no_record_by_itself(warehouse: Warehouse) -> None:
    archive = counted(warehouse)
    assert warehouse.maintenance.verify().ok
    assert archive.gets <= 10  # at most the versions that a newer one has replaced
    archive.gets = 0
    before = sorted(warehouse.stores.quads.graph(url(number)) for number in range(PAGES))
    warehouse.maintenance.rebuild()
    assert archive.gets <= len(archive._archive.files())  # one of each file, to see that it is there
    assert sorted(warehouse.stores.quads.graph(url(number)) for number in range(PAGES)) == before
    assert warehouse.maintenance.verify().ok


def test_a_damaged_record_is_named_and_those_after_it_are_read(warehouse: Warehouse) -> None:
    row = next(item.row for item in pages_by_file(warehouse.stores, lambda row: row.href == url(30)))
    assert row.archive is not None
    path = warehouse.path / "archive" / row.archive.file
    data = bytearray(path.read_bytes())
    data[row.archive.offset + 40 : row.archive.offset + 60] = bytes(20)
    path.write_bytes(data)
    report = warehouse.maintenance.verify()
    assert [(drift.what, drift.subject) for drift in report.drifts] == [("archive", url(30))]
    done = warehouse.maintenance.rebuild()
    assert [record.url for record in done.unreadable] == [url(30)]


def test_processes_find_the_same_as_one(warehouse: Warehouse) -> None:
    warehouse.stores.quads.remove(url(3))
    warehouse.stores.quads.remove(url(50))
    alone = warehouse.maintenance.verify()
    seen: list[int] = []
    together = warehouse.maintenance.verify(runner=in_processes(2), progress=seen.append)
    assert {drift.subject for drift in alone.drifts} == {url(3), url(50)}
    assert sorted(together.drifts, key=str) == sorted(alone.drifts, key=str)
    assert seen[-1] == together.pages == PAGES


def test_a_process_that_dies_costs_nothing_and_one_that_always_dies_is_named(warehouse: Warehouse) -> None:
    job = warehouse_job("verify", warehouse.path, warehouse.settings)
    files = list(warehouse.stores.archive.files())
    results = in_processes(1)(job, files)
    first = next(results)
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    for pid in map(int, children.read_text().split()):
        if b"bulk_tasks" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGKILL)
    assert sorted(result.task for result in (first, *results)) == sorted(files)
    broken = warehouse_job("verify", warehouse.path / "nothing", warehouse.settings)
    with pytest.raises(StoreError, match="died 3 times"):
        list(in_processes(1)(broken, files[:1]))


def test_an_interrupted_run_is_resumed(warehouse: Warehouse) -> None:
    given: list[str] = []

    def interrupted(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        given.extend(tasks)
        for number, result in enumerate(in_processes(1)(job, tasks)):
            if number == 2:
                raise KeyboardInterrupt
            yield result

    with pytest.raises(KeyboardInterrupt):
        warehouse.maintenance.verify(runner=interrupted)
    files = set(given)
    given.clear()

    def recorded(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        given.extend(tasks)
        return in_processes(1)(job, tasks)

    report = warehouse.maintenance.verify(runner=recorded, resume=True)
    assert len(files - set(given)) == 2
    assert report.ok
    assert not (warehouse.path / FOLDER).exists()


def test_ray_needs_stores_that_others_reach() -> None:
    with pytest.raises(SettingsError, match=r"stores\.frontier and stores\.quads and stores\.archive"):
        check_reachable(Settings())


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="RAY IS NOT INSTALLED: pip install quadloom[ray]")
def test_ray_tasks_find_the_same_and_survive_a_killed_worker(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "RAY_agent_register_timeout_ms", "120000"
    )  # Ray gives its agent 15 s, too little on a busy machine
    warehouse.stores.quads.remove(url(3))
    import ray

    tries: list[int] = []

    def runner(job: BulkJob, tasks: Sequence[str]) -> Iterator[TaskResult]:
        for result in on_ray_tasks("local")(job, tasks):
            if not tries:
                tries.extend(_kill_workers(ray))
            yield result

    report = warehouse.maintenance.verify(runner=runner)
    assert tries
    assert [(drift.what, drift.subject) for drift in report.drifts] == [("quads", url(3))]


def _kill_workers(ray: object) -> list[int]:
    """Kill the processes that Ray of this test has started for its tasks."""
    session = Path(ray._private.worker.global_worker.node.get_session_dir_path())  # type: ignore[attr-defined]
    killed = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                words = (process / "cmdline").read_bytes()
                environment = (process / "environ").read_bytes()
            except OSError:
                continue
            if words.startswith(b"ray::") and session.name.encode() in environment + words:
                os.kill(int(process.name), signal.SIGKILL)
                killed.append(int(process.name))
    return killed
