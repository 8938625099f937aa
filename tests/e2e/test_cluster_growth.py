"""More workers read more: a web whose pages take 200 ms each, and workers that have few requests in progress.

A young crawl spends every second request on a robots.txt, which takes as long as a page. So counting begins when those
of all hosts are read: a single worker, which is measured first, would seem to be slow otherwise.
"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from e2e.test_cluster import Cluster, stop
from faults.crawling import kill_group
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timing]
# Latency is the limit: two requests at a time of .2 s are at most 10 pages a second for each worker.
LATENCY, IN_FLIGHT = 0.2, 2
WEB = WebSpec(
    seed=9, pages=6000, hosts=120, scale=0.05, links=20, faults=False, traps=False, crawl_delay=0.0, latency=LATENCY
)
WINDOW = 30.0  # seconds over which pages are counted
LINEAR = 0.9
FAIR, JOINED = 0.7, 20.0  # of a fair share, after so many seconds


def moments(log: Path) -> list[float]:
    """When each page was asked for, by the servers' clock."""
    lines = log.read_text(encoding="utf-8").splitlines()
    found = (json.loads(line) for line in lines if line.endswith("}"))
    return [float(one["wall"]) for one in found if not one["target"].endswith("/robots.txt")]


def hosts_known(log: Path) -> int:
    """Hosts whose robots.txt was asked for."""
    lines = log.read_text(encoding="utf-8").splitlines()
    found = (json.loads(line) for line in lines if line.endswith("}"))
    return len({one["host"] for one in found if one["target"].endswith("/robots.txt")})


@pytest.mark.timeout(900)
def test_pages_grow_with_workers_and_new_ones_carry_their_share(tmp_path: Path) -> None:
    workers: list[subprocess.Popen[bytes]] = []
    rates: dict[int, float] = {}
    with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving, delay=0.05)
        text = cluster.config.read_text(encoding="utf-8")
        cluster.config.write_text(text.replace("in_flight = 64", f"in_flight = {IN_FLIGHT}"), encoding="utf-8")

        def settled_by() -> dict[str, int]:
            """Worker → pages, from the heartbeats."""
            status = cluster.tell("status")
            found = status["cluster"]["workers"]
            return {str(one["name"]): int(one["pages"]) for one in found}

        try:
            for number in (1, 2, 4):
                while len(workers) < number:
                    workers.append(cluster.worker(f"w{len(workers)}"))
                if number == 1:
                    cluster.tell("seeds", "add", *serving.web.homes)
                cluster.wait("all shares", lambda n=number: cluster.shared_by(n))
                if number == 1:
                    homes = len(serving.web.homes)
                    cluster.wait("all hosts known", lambda h=homes: hosts_known(serving.log_path) >= h, 240.0)
                joined = time.monotonic()
                cluster.wait_for_requests(serving.load().requests + 20)
                time.sleep(max(0.0, joined + JOINED - time.monotonic()))
                before, start = settled_by(), time.time()
                time.sleep(WINDOW)
                after, end = settled_by(), time.time()
                read = [at for at in moments(serving.log_path) if start <= at < end]
                rates[number] = len(read) / (end - start)
                done = {name: after[name] - before.get(name, 0) for name in after}
                print(f"{number} workers: {rates[number]:.1f} pages a second, {done}")
                fair = sum(done.values()) / number
                assert min(done.values()) >= FAIR * fair, done
            assert rates[2] >= LINEAR * 2 * rates[1], rates
            assert rates[4] >= LINEAR * 4 * rates[1], rates
            for worker in workers:
                stop(worker)
        finally:
            for worker in workers:
                if worker.poll() is None:
                    kill_group(worker)
