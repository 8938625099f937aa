"""Four workers on PostgreSQL, S3, two SPARQL servers and text by shard, under every fault that an operator meets.

Workers are killed, paused past their lease and cut off from the database; PostgreSQL is killed; S3 and a SPARQL server
are away; `rebuild` and `prune` are tried beside them. In the end nothing is lost, nothing was asked too early, and the
quads are those of an embedded crawl of the same web.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from e2e.test_cluster import Cluster, stop
from fakeweb.request_log import RequestLog
from faults.crawling import command, finish_alone, kill_group, must_be_read, requests, run_config
from postgres_server import start_postgres
from quadloom.settings.loading import load
from quadloom.stores.shards import is_page_graph
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from servers import CuttableProxy, new_bucket, shared_s3_server, sparql_server

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
WEB = WebSpec(seed=9, pages=2200, hosts=60, scale=0.05, links=20, faults=False, traps=False, crawl_delay=0.5)
DELAY = 2.0  # the slower the hosts, the longer there is something to do
AWAY = 30.0  # seconds
LONG = 300.0  # seconds; with QUADLOOM_LONG_OUTAGE=1 the SPARQL server is away for so long
NAMES = ("one", "two", "three", "four")


def page_quads(folder: Path, config: Path) -> dict[str, bytes]:
    """Page → its statements."""
    with Warehouse.read(folder, settings=load(config=config).settings) as warehouse:
        quads = warehouse.stores.quads
        return {graph: quads.graph(graph) for graph in quads.graphs() if is_page_graph(graph)}


@pytest.mark.timeout(1800)
def test_four_workers_under_every_fault_hold_what_one_machine_would(tmp_path: Path) -> None:
    postgres, bucket = start_postgres(fsync=True), new_bucket()
    sparql = [sparql_server("--location", str(tmp_path / f"server-{number}")) for number in range(2)]
    to_s3, to_postgres = CuttableProxy(shared_s3_server().port), CuttableProxy(postgres.port)
    workers: dict[str, subprocess.Popen[bytes]] = {}
    try:
        with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
            cluster = Cluster(
                tmp_path, serving, delay=DELAY, server=postgres,
                quads=" ".join(f"sparql+{server.url}" for server in sparql),
                text=f"tantivy+shards://{tmp_path}/text",
                archive=f"s3://{bucket.bucket}/{bucket.prefix}", archive_endpoint=f"http://127.0.0.1:{to_s3.port}",
                archive_file_bytes=200_000,
            )  # fmt: skip
            with cluster.config.open("a", encoding="utf-8") as config_file:
                config_file.write('[index]\nretention = "1d"\n')
            through = tmp_path / "through-the-proxy.toml"
            through.write_text(
                cluster.config.read_text(encoding="utf-8").replace(f":{postgres.port}/", f":{to_postgres.port}/"),
                encoding="utf-8",
            )

            def start(name: str) -> None:
                config = through if name == "three" else cluster.config
                with (tmp_path / f"{name}.log").open("ab") as log:
                    workers[name] = subprocess.Popen(
                        command(tmp_path / name, config, "worker"), stdout=log, stderr=log, start_new_session=True
                    )

            def goes_on(requests: int) -> None:
                cluster.wait_for_requests(serving.load().requests + requests)

            def refused(*arguments: str) -> None:
                tried = subprocess.run(
                    command(tmp_path / "desk", cluster.config, *arguments), capture_output=True, text=True, timeout=120
                )
                assert tried.returncode == 7, tried.stderr
                assert "running workers own" in tried.stderr

            for name in NAMES:
                start(name)
            cluster.tell("seeds", "add", *serving.web.homes)
            cluster.wait("four shares", lambda: cluster.shared_by(4))
            goes_on(60)
            refused("rebuild")
            refused("prune")
            kill_group(workers["one"])
            goes_on(40)
            os.killpg(workers["two"].pid, signal.SIGSTOP)
            cluster.wait("a takeover", lambda: cluster.shared_by(2), 120.0)
            os.killpg(workers["two"].pid, signal.SIGCONT)
            start("one")
            cluster.wait("four shares", lambda: cluster.shared_by(4))
            to_postgres.cut()
            cluster.wait("a takeover from the one that is cut off", lambda: cluster.shared_by(3), 120.0)
            goes_on(20)
            to_postgres.heal()
            cluster.wait("it is back", lambda: cluster.shared_by(4), 120.0)
            postgres.kill()
            time.sleep(5.0)
            postgres.start()
            cluster.wait("four shares", lambda: cluster.shared_by(4), 120.0)
            to_s3.cut()
            time.sleep(AWAY)
            to_s3.heal()
            goes_on(40)
            sparql[1].stop()
            time.sleep(LONG if os.environ.get("QUADLOOM_LONG_OUTAGE") else AWAY)
            sparql[1].start()
            refused("prune")
            cluster.wait("nothing left", lambda: cluster.left() == 0, 900.0)
            cluster.wait("all indexed", lambda: cluster.behind() == 0, 120.0)
            assert [name for name, worker in workers.items() if worker.poll() is not None] == [], cluster._state()
            for worker in workers.values():
                stop(worker)
            asked = requests(serving)
            assert must_be_read(serving) <= set(asked), "nothing is lost"
            log = RequestLog(serving.log_path)
            assert not log.never_earlier_than(DELAY, tolerance=0.1), "nothing is early"
            assert not log.disallowed_hits(serving.web)
            assert cluster.tell("verify")["drift"] == []
            shared = page_quads(tmp_path / "desk", cluster.config)
            found = cluster.tell("search", "the")
            plain = tmp_path / "plain"
            plain.mkdir()
            config = run_config(plain, serving, crawl={"scope": "site"}, politeness={"delay": 0.0, "ip_delay": 0.0})
            finish_alone(plain / "one", config, "--json", "crawl", *serving.web.homes)
            alone = page_quads(plain / "one", config)
            assert sorted(shared) == sorted(alone)
            assert [page for page in alone if shared[page] != alone[page]] == []
            assert found["total"] == finish_alone(plain / "one", config, "--json", "search", "the")["total"]
    finally:
        for worker in workers.values():
            if worker.poll() is None:
                kill_group(worker)
        for proxy in (to_s3, to_postgres):
            proxy.cut()
        for server in sparql:
            server.stop()
        postgres.remove()
