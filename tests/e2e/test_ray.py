"""Ray: bulk work whose process is killed or whose job is interrupted, and workers that Ray starts again."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from e2e.test_cluster import WEB, Cluster
from fakeweb.request_log import RequestLog
from faults.crawling import finish, finish_alone, kill_group, must_be_read, requests, start
from quadloom.maintenance.lake.extraction.inputs import sources_of
from quadloom.maintenance.lake.extraction.messages import Options
from quadloom.maintenance.lake.extraction.run import extract
from quadloom.maintenance.verify import FOLDER
from quadloom.model.page import Page
from quadloom.model.url import fingerprint
from quadloom.planning.ranking.link_matrix import LinkMatrix
from quadloom.process.bulk_tasks import BulkJob, TaskResult, in_processes
from quadloom.process.ray_tasks import on_ray_tasks, ray_session
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from servers import S3_ENVIRONMENT, free_port, new_bucket, sparql_server
from waiting import wait_until

pytest.importorskip("ray", reason="needs ray: pip install quadloom[ray]")
psutil = pytest.importorskip("psutil", reason="needs psutil: pip install -r requirements-dev.txt")

PAGES, REMOVED = 60, 17
SETTINGS = Settings(stores=StoreSettings(archive_file_bytes=8_000))


def url(number: int) -> str:
    return f"http://site{number % 7}.example/{number}"


def version(number: int) -> Page:
    body = f"<title>Page {number}</title><p>{os.urandom(300).hex()}".encode()
    return Page(url(number), url(number), 200, (("content-type", "text/html"),), body, 1000.0 + number, 0.1)


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    """Sixty pages in at least four files of the archive. One page has lost its statements."""
    source = tmp_path / "source.warc.gz"
    members = (encode(version(number)).member for number in range(PAGES))
    source.write_bytes(file_header(source.name, 0.0) + b"".join(members))
    with Warehouse.open(tmp_path / "warehouse", settings=SETTINGS) as warehouse:
        warehouse.maintenance.import_(source)
        warehouse.stores.archive.seal()
        assert len(warehouse.stores.archive.files()) > 3
        warehouse.stores.quads.remove(url(REMOVED))
        yield warehouse


def kill_a_task() -> int:
    """SIGKILL to a process below this one in which a Ray task runs, as soon as there is one."""
    killed: list[int] = []

    def found() -> bool:
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if child.cmdline()[:1] == ["ray::_perform"]:
                    child.kill()
                    killed.append(int(child.pid))
                    return True
        return False

    wait_until(found, "no Ray task is running")
    return killed[0]


def test_a_killed_task_is_repeated_and_an_interrupted_job_is_resumed(warehouse: Warehouse) -> None:
    ray = on_ray_tasks("local")
    given: list[set[str]] = []

    def interrupted(job: BulkJob, tasks: list[str]) -> Iterator[TaskResult]:
        """The first task is killed; the job ends after two results."""
        given.append(set(tasks))
        results = ray(job, tasks)
        killed = 0
        for number, result in enumerate(results):
            if number == 2:
                assert killed
                results.close()  # type: ignore[attr-defined]
                raise KeyboardInterrupt
            yield result
            killed = killed or kill_a_task()

    def recorded(job: BulkJob, tasks: list[str]) -> Iterator[TaskResult]:
        given.append(set(tasks))
        return ray(job, tasks)

    verify = warehouse.maintenance.verify
    with pytest.raises(KeyboardInterrupt):
        verify(runner=interrupted)  # type: ignore[arg-type]
    report = verify(runner=recorded, resume=True)  # type: ignore[arg-type]
    every, rest = given
    assert rest < every and len(every - rest) == 2, "finished tasks are not done again"
    assert [drift.subject for drift in report.drifts] == [url(REMOVED)]
    assert report.pages == PAGES
    assert not (warehouse.path / FOLDER).exists()


def test_the_passes_of_importance_share_one_connection(warehouse: Warehouse) -> None:
    matrix = LinkMatrix(warehouse.stores.places.links)
    for number in range(PAGES):
        matrix.append(fingerprint(url(number)), [(fingerprint(url(number * by % PAGES)), "plain") for by in (2, 3)])
    matrix.sync()
    with ray_session("local") as ray:
        session = ray.get_runtime_context().get_job_id()
        passes: list[int] = []
        together = warehouse.rank(runner=on_ray_tasks("local"), progress=lambda number, _error: passes.append(number))
        assert ray.get_runtime_context().get_job_id() == session, "connected once"
    assert not ray.is_initialized()
    assert len(passes) > 3
    alone = warehouse.rank()  # begins with the result of the other
    assert alone.pages == together.pages == PAGES
    assert dict(together.top) == pytest.approx(dict(alone.top), abs=0.02)


@pytest.mark.slow
def test_ray_places_workers_and_restarts_them(tmp_path: Path) -> None:
    with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving, delay=0.1)
        driver = start(
            tmp_path / "desk", cluster.config, "--json", "crawl", "--ray", "local", "--ray-workers", "2",
            *serving.web.homes,
        )  # fmt: skip
        try:
            cluster.wait_for_requests(60)
            cluster.wait("two workers", lambda: cluster.shared_by(2))
            os.kill(int((tmp_path / "desk/ray-0/lock").read_text()), signal.SIGKILL)
            output, told = driver.communicate(timeout=200)
        finally:
            if driver.poll() is None:
                kill_group(driver)
        assert driver.returncode == 0, told.decode()[-3000:]
        assert json.loads(output.splitlines()[-1])["workers"] == 2
        assert must_be_read(serving) <= set(requests(serving))
        assert cluster.left() == 0


# In a process of its own: Ray reads its token when it is imported.
_TWO_NODES = """
import sys, time
from quadloom.process.ray_tasks import ray_session
with ray_session(sys.argv[1]) as ray:
    while sum(node["Alive"] for node in ray.nodes()) < 2:
        time.sleep(0.2)
"""
_IMPORTANCE = """
import sys
from pathlib import Path
import numpy as np
from quadloom.maintenance.parallel.importance import ParallelRanking
from quadloom.planning.ranking.link_matrix import LinkMatrix
from quadloom.planning.ranking.usefulness import RankingRules, rank
from quadloom.process.ray_tasks import on_ray_tasks, ray_session
from quadloom.settings import Settings
address, path, links = sys.argv[1:]
matrix, rules = LinkMatrix(Path(links)), RankingRules(variant="mean", tol=1e-8)
structured = np.arange(matrix.manifest.pages) % 3 == 0
with ray_session(address):
    solve = ParallelRanking(Path(path), Settings(), on_ray_tasks(address), resume=False, width=17)
    found = solve(matrix, structured, rules, None)
expected = rank(matrix.blocks(), structured, rules)
assert np.ptp(expected.importance) > 0.001 and expected.usefulness.sum() > 0.01
assert np.abs(found.importance - expected.importance).max() < 1e-7
assert np.abs(found.usefulness - expected.usefulness).max() < 1e-7
"""


def alone(program: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]


class RayNodes:
    """Nodes of a Ray cluster on this machine, as `ray start` makes them."""

    def __init__(self) -> None:
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self._nodes: list[psutil.Process] = []

    def start(self, *options: str) -> None:
        program = [str(Path(sys.executable).with_name("ray")), "start", "--block", *options]
        sizes = [f"--object-store-memory={80 << 20}", "--node-ip-address=127.0.0.1"]
        node = subprocess.Popen(
            [*program, *sizes], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        self._nodes.append(psutil.Process(node.pid))

    def kill(self, place: int) -> None:
        """The power of a machine fails: the node, and every process that Ray started there."""
        node = self._nodes[place]
        for process in [*node.children(recursive=True), node]:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def close(self) -> None:
        for place in range(len(self._nodes)):
            with suppress(psutil.NoSuchProcess):
                self.kill(place)


@pytest.fixture
def two_nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[RayNodes]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
    nodes = RayNodes()
    try:
        nodes.start("--head", f"--port={nodes.port}", "--num-cpus=2", "--include-dashboard=false")
        wait_until(lambda: is_open(nodes.port), "the head of the cluster", seconds=90.0)
        nodes.start(f"--address={nodes.address}", "--num-cpus=2")
        alone(_TWO_NODES, nodes.address)
        yield nodes
    finally:
        nodes.close()


@pytest.mark.slow
def test_importance_on_two_nodes_is_that_of_the_single_run(warehouse: Warehouse, two_nodes: RayNodes) -> None:
    matrix = LinkMatrix(warehouse.stores.places.links)
    for number in range(PAGES):
        targets = {number * by % PAGES for by in (2, 3, 5)} | {number // 2}
        matrix.append(fingerprint(url(number)), [(fingerprint(url(target)), "plain") for target in targets])
    matrix.sync()
    matrix.rebuild()
    assert matrix.manifest.pages == PAGES
    alone(_IMPORTANCE, two_nodes.address, str(warehouse.path), str(warehouse.stores.places.links))


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_machine_of_a_ray_cluster_dies_and_its_worker_is_started_elsewhere(
    tmp_path: Path, two_nodes: RayNodes
) -> None:
    with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving, delay=0.4)
        driver = start(
            tmp_path / "desk", cluster.config, "--json", "crawl", "--ray", two_nodes.address, "--ray-workers", "2",
            *serving.web.homes,
        )  # fmt: skip
        try:
            cluster.wait("the first requests", lambda: serving.load().requests >= 20, 120.0)
            cluster.wait("two workers", lambda: cluster.shared_by(2), 120.0)
            before = cluster.owners().keys()
            two_nodes.kill(1)
            cluster.wait("one is gone", lambda: len(cluster.owners()) == 1)
            cluster.wait("it works again", lambda: cluster.shared_by(2), 150.0)
            assert cluster.owners().keys() == before, "in its own directory"
            output, told = driver.communicate(timeout=200)
        finally:
            if driver.poll() is None:
                kill_group(driver)
        assert driver.returncode == 0, told.decode()[-3000:]
        assert json.loads(output.splitlines()[-1])["workers"] == 2
        assert must_be_read(serving) <= set(requests(serving)), "nothing is lost"
        assert not RequestLog(serving.log_path).never_earlier_than(0.4, tolerance=0.05), "nothing is early"


@pytest.fixture
def ray_address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A Ray cluster of one machine, as `ray start` makes it, with a token of its own."""
    for name, value in S3_ENVIRONMENT.items():  # each machine of a Ray cluster has its own
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(16))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    port = free_port()
    program = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", f"--port={port}"]
    options = ["--num-cpus=2", "--include-dashboard=false", f"--object-store-memory={80 << 20}"]
    head = subprocess.Popen(
        [*program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    processes = [psutil.Process(head.pid)]
    try:
        wait_until(lambda: psutil.Process(head.pid).children(recursive=True) and is_open(port))
        yield f"127.0.0.1:{port}"
    finally:
        processes += psutil.Process(head.pid).children(recursive=True)
        head.terminate()
        for process in psutil.wait_procs(processes, timeout=30)[1]:
            process.kill()


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_archives_by_ray_give_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'quadloom[lake]'")
    for number in range(3):
        (tmp_path / f"{number}.warc.gz").write_bytes(encode(version(number)).member)
    sources = sources_of([str(tmp_path / f"{number}.warc.gz") for number in range(3)])
    alone = extract(sources, str(tmp_path / "alone"), Options(nquads=True), Settings(), in_processes(1))
    by_ray = extract(sources, str(tmp_path / "by-ray"), Options(nquads=True), Settings(), on_ray_tasks("local"))
    assert by_ray == alone
    assert alone.counts["pages"] == 3


@pytest.mark.slow
def test_bulk_work_on_a_ray_cluster_with_all_stores_on_servers(tmp_path: Path, ray_address: str) -> None:
    """The tasks see nothing but the servers: the directory of the warehouse is not theirs."""
    web = FakeWeb(WebSpec(seed=4, pages=40, hosts=4, scale=0.05, links=12, faults=False, traps=False, crawl_delay=0.0))
    bucket, sparql = new_bucket(), sparql_server()
    try:
        with serve_in_process(web, log=tmp_path / "requests.jsonl") as serving:
            cluster = Cluster(
                tmp_path, serving, delay=0.02, quads=f"sparql+{sparql.url}",
                archive=f"s3://{bucket.bucket}/{bucket.prefix}", archive_endpoint=bucket.endpoint,
                archive_file_bytes=50_000, lake=f"s3://{bucket.bucket}/lake",
            )  # fmt: skip
            finish(tmp_path / "one", cluster.config, "--json", "crawl", *serving.web.homes)
        desk = partial(finish_alone, tmp_path / "desk", cluster.config, "--json")
        verified = desk("verify", "--ray", ray_address)
        assert verified["ok"] and verified["pages"]
        synced = desk("lake", "sync", "--ray", ray_address)
        assert synced["written"] == verified["pages"]
        counted: object = desk("lake", "query", "SELECT count(*) AS pages FROM pages")
        assert counted == [{"pages": verified["pages"]}]
        alone, together = tmp_path / "alone.nq", tmp_path / "together.nq"
        desk("export", str(alone))
        desk("export", str(together), "--ray", ray_address)
        assert together.read_bytes() == alone.read_bytes() and alone.stat().st_size
        before = desk("stats")
        after = desk("stats", "--recount", "--ray", ray_address)
        assert after["properties"] == before["properties"] and before["properties"]
        assert desk("rebuild", "--ray", ray_address)["pages"]
        assert desk("verify", "--ray", ray_address)["ok"]
        desk("export", str(together), "--ray", ray_address)
        assert together.read_bytes() == alone.read_bytes()
    finally:
        sparql.stop()
