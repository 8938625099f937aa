"""Workers that join a crawl in progress get a fair share of its work, not of its shards."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from e2e.test_cluster import Cluster, stop
from faults.crawling import kill_group
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
# Few sites: most of the 256 shards have nothing to do.
WEB = WebSpec(seed=9, pages=1500, hosts=60, scale=0.05, links=20, faults=False, traps=False, crawl_delay=0.0)
FAIR = 0.7  # of a fair share


def test_workers_that_join_get_work(tmp_path: Path) -> None:
    workers: list[subprocess.Popen[bytes]] = []
    with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving, delay=2.0)

        def work() -> dict[str, float]:
            """Worker → pages that the hosts of its shards can serve within a minute."""
            rows = cluster.rows(
                "SELECT split_part(owner, ':', 1), sum(work) FROM shard_lease JOIN shard_load USING (shard) "
                "WHERE owner <> '' GROUP BY 1"
            )
            return {str(name): float(str(amount)) for name, amount in rows}

        def is_fair() -> bool:
            shares = work()
            fair = sum(shares.values()) / 4
            return len(shares) == 4 and min(shares.values()) >= FAIR * fair

        try:
            workers.append(cluster.worker("first"))
            cluster.tell("seeds", "add", *serving.web.homes)
            cluster.wait_for_requests(120)
            workers += [cluster.worker(name) for name in ("second", "third", "fourth")]
            cluster.wait("four workers", lambda: len(cluster.owners()) == 4)
            joined = time.monotonic()
            cluster.wait(f"everybody has {FAIR:.0%} of a fair share of the work", is_fair)
            print(f"after {time.monotonic() - joined:.1f} s: {work()}")
            before = serving.load().requests
            cluster.wait_for_requests(before + 60)
            for worker in workers:
                stop(worker)
        finally:
            for worker in workers:
                if worker.poll() is None:
                    kill_group(worker)
