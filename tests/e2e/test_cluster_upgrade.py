"""A whole cluster is brought to the next version under load, one worker after the other."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from e2e.test_cluster import DELAY, WEB, Cluster, stop
from fakeweb.request_log import RequestLog
from faults.crawling import command, kill_group, must_be_read, requests
from quadloom.crawling.cluster.membership import OUTDATED
from quadloom_lab.fakeweb import FakeWeb, serve_in_process

pytestmark = pytest.mark.cluster

# The next version of the program: it has a migration more, which adds a column to a table that all workers write.
_NEXT = """
import sys
from quadloom.stores.postgres import schema
schema.MIGRATIONS += (("ALTER TABLE page ADD COLUMN next_version int",),)
schema.ADDITIVE |= {len(schema.MIGRATIONS)}
from quadloom.cli.main import main
sys.argv[0] = "quadloom"
main()
"""


def next_worker(cluster: Cluster, name: str) -> subprocess.Popen[bytes]:
    arguments = command(cluster.folder / name, cluster.config, "worker")[3:]
    with (cluster.folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", _NEXT, *arguments], stdout=log, stderr=log, start_new_session=True
        )


def test_a_rolling_upgrade_loses_nothing_and_asks_nobody_early(tmp_path: Path) -> None:
    workers: list[subprocess.Popen[bytes]] = []
    with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving)
        try:
            workers += [cluster.worker("one"), cluster.worker("two")]
            cluster.tell("seeds", "add", *serving.web.homes)
            cluster.wait("two shares", lambda: cluster.shared_by(2))
            cluster.wait_for_requests(100)
            workers.append(next_worker(cluster, "three"))
            cluster.wait("the old ones leave", lambda: [worker.poll() for worker in workers[:2]] == [0, 0])
            assert OUTDATED in cluster.notices()
            assert "broken" not in cluster.said("one") + cluster.said("two")
            workers.append(next_worker(cluster, "one"))
            cluster.wait("two new shares", lambda: cluster.shared_by(2))
            cluster.wait("nothing left", lambda: cluster.left() == 0, 120.0)
            cluster.wait("all indexed", lambda: cluster.behind() == 0)
            for worker in workers[2:]:
                stop(worker)
            assert cluster.rows("SELECT count(next_version) FROM page") == [(0,)]
            assert must_be_read(serving) <= set(requests(serving)), "nothing is lost"
            assert not RequestLog(serving.log_path).never_earlier_than(DELAY, tolerance=0.05), "nothing is early"
        finally:
            for worker in workers:
                if worker.poll() is None:
                    kill_group(worker)
