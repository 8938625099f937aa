"""Servers that are away for longer than any back-off: workers wait, finish, and lose nothing."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from e2e.test_cluster import Cluster, stop
from faults.crawling import kill_group, must_be_read, requests
from postgres_server import start_postgres
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from servers import sparql_server

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
WEB = WebSpec(seed=9, pages=260, hosts=24, scale=0.05, links=20, faults=False, traps=False, crawl_delay=0.0)
SPARQL_SECONDS, POSTGRES_SECONDS = 40.0, 80.0  # the client gives up after about 10 s, the connection after 60


def test_workers_wait_for_a_sparql_server_and_for_postgresql(tmp_path: Path) -> None:
    sparql, server = sparql_server("--location", str(tmp_path / "server")), start_postgres(fsync=True)
    workers: list[subprocess.Popen[bytes]] = []
    try:
        with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
            cluster = Cluster(tmp_path, serving, delay=0.1, server=server, quads=f"sparql+{sparql.url}")
            workers += [cluster.worker("one"), cluster.worker("two")]
            cluster.tell("seeds", "add", *serving.web.homes)
            cluster.wait_for_requests(60)
            sparql.stop()
            time.sleep(SPARQL_SECONDS)
            assert [worker.poll() for worker in workers] == [None, None], "both wait for the SPARQL server"
            sparql.start()
            cluster.wait_for_requests(140)
            server.kill()
            time.sleep(POSTGRES_SECONDS)
            assert [worker.poll() for worker in workers] == [None, None], "both wait for PostgreSQL"
            server.start()
            cluster.wait("two shares again", lambda: cluster.shared_by(2))
            cluster.wait("nothing left", lambda: cluster.left() == 0, 180.0)
            cluster.wait("all indexed", lambda: cluster.behind() == 0)
            for worker in workers:
                stop(worker)
            assert must_be_read(serving) <= set(requests(serving))
            assert cluster.tell("verify")["drift"] == []
            told = "".join(cluster.notices())
            assert "waiting for a store" in told and "the store answers again" in told
    finally:
        for worker in workers:
            if worker.poll() is None:
                kill_group(worker)
        sparql.stop()
        server.remove()
