"""Servers that are away for longer than any back-off: workers wait, finish, and lose nothing.

With QUADLOOM_LONG_OUTAGE=1 each server is away for five minutes.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from e2e.test_cluster import Cluster, stop
from fakeweb.request_log import RequestLog
from faults.crawling import kill_group, must_be_read, requests
from postgres_server import start_postgres
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from servers import CuttableProxy, new_bucket, shared_s3_server, sparql_server

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
WEB = WebSpec(seed=9, pages=260, hosts=24, scale=0.05, links=20, faults=False, traps=False, crawl_delay=0.0)
DELAY = 0.1
LONG = 300.0 if os.environ.get("QUADLOOM_LONG_OUTAGE") else 0.0
# The clients of SPARQL and S3 give up after about 10 s, the connection to PostgreSQL after 60.
SECONDS = {"sparql": 40.0, "s3": 40.0, "postgresql": 80.0}
NOTICES = {
    "sparql": ("waiting for a store", "the store is back"),
    "s3": ("waiting for a store", "the store is back"),
    "postgresql": ("the database was away for",),
}


class Switch(NamedTuple):
    """Takes a server away, and brings it back."""

    off: Callable[[], None]
    on: Callable[[], None]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("away", SECONDS)
def test_workers_wait_for_a_server_that_is_away(away: str, tmp_path: Path) -> None:
    seconds = max(SECONDS[away], LONG)
    sparql, postgres = sparql_server("--location", str(tmp_path / "server")), start_postgres(fsync=True)
    bucket, to_s3 = new_bucket(), CuttableProxy(shared_s3_server().port)
    switch = {
        "sparql": Switch(sparql.stop, sparql.start),
        "s3": Switch(to_s3.cut, to_s3.heal),
        "postgresql": Switch(postgres.kill, postgres.start),
    }[away]
    workers: list[subprocess.Popen[bytes]] = []
    try:
        with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
            cluster = Cluster(
                tmp_path, serving, delay=DELAY, server=postgres, quads=f"sparql+{sparql.url}",
                archive=f"s3://{bucket.bucket}/{bucket.prefix}", archive_endpoint=f"http://127.0.0.1:{to_s3.port}",
                archive_file_bytes=200_000,
            )  # fmt: skip
            workers += [cluster.worker("one"), cluster.worker("two")]
            cluster.tell("seeds", "add", *serving.web.homes)
            cluster.wait_for_requests(80)
            switch.off()
            time.sleep(seconds)
            assert [worker.poll() for worker in workers] == [None, None], "both wait"
            during = serving.load().requests
            switch.on()
            cluster.wait("both go on", lambda: serving.load().requests > during, 120.0)
            cluster.wait("two shares again", lambda: cluster.shared_by(2), 120.0)
            cluster.wait("nothing left", lambda: cluster.left() == 0, 180.0)
            cluster.wait("all indexed", lambda: cluster.behind() == 0, 120.0)
            for worker in workers:
                stop(worker)
            assert must_be_read(serving) <= set(requests(serving)), "nothing is lost"
            assert not RequestLog(serving.log_path).never_earlier_than(DELAY, tolerance=0.05), "nothing is early"
            assert cluster.tell("verify")["drift"] == []
            told = "".join(cluster.notices())
            for words in NOTICES[away]:
                assert words in told
    finally:
        for worker in workers:
            if worker.poll() is None:
                kill_group(worker)
        to_s3.cut()
        sparql.stop()
        postgres.remove()
