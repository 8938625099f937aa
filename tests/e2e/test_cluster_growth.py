"""More workers read more: a web whose pages take their time, and workers that may open few connections.

Then each worker can read at most connections / latency pages a second, and what is missing says where it waits. A young
crawl spends every second request on a robots.txt, which takes as long as a page. So counting begins when those of all
hosts are read: a single worker, which is measured first, would seem to be slow otherwise.

The connections limit the workers, and not `crawl.in_flight`: pages in progress include those that wait for their
transaction, so they would measure how fast the database is while all workers share two cores with it.
"""

from __future__ import annotations

import json
import subprocess
import time
from functools import partial
from pathlib import Path

import msgspec
import pytest

from e2e.test_cluster import Cluster, stop
from faults.crawling import kill_group
from quadloom.crawling.cluster.beat import read_beat
from quadloom.crawling.run.report import CrawlReport
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timing]
WEB = WebSpec(seed=9, pages=6000, hosts=120, scale=0.05, links=20, faults=False, traps=False, crawl_delay=0.0)
WINDOW = 30.0  # seconds over which pages are counted
LINEAR = 0.9
STARVED = 0.05  # of the time: no host of its own shards may be asked, although there is room
FAIR, JOINED = 0.7, 20.0  # of a fair share, after so many seconds


def moments(log: Path) -> list[float]:
    """When each page was asked for, by the servers' clock."""
    lines = log.read_text(encoding="utf-8").splitlines()
    found = (json.loads(line) for line in lines if line.endswith("}"))
    return [float(one["wall"]) for one in found if not one["target"].endswith("/robots.txt")]


def knows(log: Path, hosts: int) -> bool:
    """Whether the robots.txt of so many hosts was asked for."""
    lines = log.read_text(encoding="utf-8").splitlines()
    found = (json.loads(line) for line in lines if line.endswith("}"))
    return len({one["host"] for one in found if one["target"].endswith("/robots.txt")}) >= hosts


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("latency", "connections"), [(1.0, 4), (0.2, 2)])
def test_pages_grow_with_workers_and_new_ones_carry_their_share(
    tmp_path: Path, latency: float, connections: int
) -> None:
    """On a busy machine only the slow web shows it: 10 pages a second of each of four workers need a core."""
    workers: list[subprocess.Popen[bytes]] = []
    rates: dict[int, float] = {}
    web = FakeWeb(msgspec.structs.replace(WEB, latency=latency))
    with serve_in_process(web, log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving, delay=0.05)
        text = cluster.config.read_text(encoding="utf-8")
        cluster.config.write_text(text.replace("[limits]\n", f"[limits]\nconnections = {connections}\n"))

        def beats() -> dict[str, CrawlReport]:
            """Worker → its crawl, from the heartbeats."""
            rows = cluster.rows("SELECT name, record FROM worker WHERE until > clock_timestamp() AND record <> ''")
            return {str(name): read_beat(bytes(record)).report for name, record in rows}  # type: ignore[call-overload]

        try:
            for number in (1, 2, 4):
                while len(workers) < number:
                    workers.append(cluster.worker(f"w{len(workers)}"))
                if number == 1:
                    cluster.tell("seeds", "add", *serving.web.homes)
                cluster.wait("all shares", partial(cluster.shared_by, number))
                if number == 1:
                    homes = len(serving.web.homes)
                    cluster.wait("all hosts known", partial(knows, serving.log_path, homes), 240.0)
                joined = time.monotonic()
                cluster.wait_for_requests(serving.load().requests + 20)
                time.sleep(max(0.0, joined + JOINED - time.monotonic()))
                before, start = beats(), time.time()
                time.sleep(WINDOW)
                after, end = beats(), time.time()
                read = [at for at in moments(serving.log_path) if start <= at < end]
                rates[number] = len(read) / (end - start)
                done = {name: after[name].pages - before[name].pages for name in after}
                ideal = number * connections / latency
                print(f"{number} workers: {rates[number]:.1f} pages a second of {ideal:g}, {done}")
                fair = sum(done.values()) / number
                assert min(done.values()) >= FAIR * fair, done
                starved = {name: report.waits.get("hosts", 0.0) for name, report in after.items()}
                assert max(starved.values()) <= STARVED, "no worker waits for shards, robots.txt or links of others"
            assert rates[2] >= LINEAR * 2 * rates[1], rates
            assert rates[4] >= LINEAR * 4 * rates[1], rates
            for worker in workers:
                stop(worker)
        finally:
            for worker in workers:
                if worker.poll() is None:
                    kill_group(worker)
