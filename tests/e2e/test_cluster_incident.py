"""What an operator sees while servers are away: `status`, the monitor and the health check answer from PostgreSQL."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from e2e.test_cluster import DELAY, LEASE, WEB, Cluster, stop
from fakeweb.request_log import RequestLog
from faults.crawling import finish, kill_group, must_be_read, requests, run_config
from postgres_server import postgres
from quadloom.asking.report.numbers import store_counts
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.backends import share_settings
from quadloom.warehouse import Warehouse
from quadloom_lab.fakeweb import FakeWeb, WebSpec, serve_in_process
from servers import S3_ENVIRONMENT

pytestmark = pytest.mark.cluster


@pytest.fixture
def silent_port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server that takes connections and says nothing, as one that was stopped does."""
    for name, value in S3_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield listener.getsockname()[1]


def test_status_answers_while_other_servers_are_silent(silent_port: int, tmp_path: Path) -> None:
    url = postgres().url()
    with serve_in_process(FakeWeb(WebSpec(seed=1, pages=5, hosts=1))) as serving:
        config = run_config(
            tmp_path,
            serving,
            stores={
                "frontier": url,
                "catalog": "postgresql:",
                "text": "postgresql:",
                "quads": f"sparql+http://127.0.0.1:{silent_port}",
                "archive": "s3://bucket/prefix",
                "archive_endpoint": f"http://127.0.0.1:{silent_port}",
            },
        )
        finish(tmp_path / "desk", config, "--json", "config", "share")
        found = finish(tmp_path / "desk", config, "--json", "status")
    assert found["away"] == {"quads": "no answer within 2 s", "archive": "no answer within 2 s"}
    assert found["numbers"]["pages_visited"] == 0 and found["documents"] == 0 and found["quads"] is None


def test_stores_have_two_seconds_together(silent_port: int, tmp_path: Path) -> None:
    url, address = postgres().url(), f"http://127.0.0.1:{silent_port}"
    stores = StoreSettings(
        frontier=url, catalog="postgresql:", text="postgresql:", quads=f"sparql+{address}", archive="s3://b/p",
        archive_endpoint=address,
    )  # fmt: skip
    settings = Settings(stores=stores)
    share_settings(settings, None)  # creates the tables
    with Warehouse.read(tmp_path, settings=settings) as warehouse:
        began = time.monotonic()
        has, away = store_counts(warehouse.stores)
        assert time.monotonic() - began < 4.0
    assert has == {"text": 0} and away.keys() == {"quads", "archive"}


# What PostgreSQL says when a table cannot grow, for as long as the trigger is there.
_FULL = (
    """CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$""",
    "CREATE TRIGGER is_full BEFORE INSERT OR UPDATE ON page FOR EACH ROW EXECUTE FUNCTION full_disk()",
)


def test_workers_wait_for_room_at_the_database_and_say_so(tmp_path: Path) -> None:
    workers: list[subprocess.Popen[bytes]] = []
    with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving)
        try:
            workers += [cluster.worker("one"), cluster.worker("two")]
            cluster.tell("seeds", "add", *serving.web.homes)
            cluster.wait("two shares", lambda: cluster.shared_by(2))
            cluster.wait_for_requests(100)
            for statement in _FULL:
                cluster.change(statement)
            # The other one says it, too, as soon as it has something to write.
            cluster.wait("a worker says what it waits for", lambda: waits(cluster) > 0)
            time.sleep(2 * LEASE)
            assert [worker.poll() for worker in workers] == [None, None], "nobody ends"
            assert cluster.shared_by(2), "and nobody loses a shard"
            during = serving.load().requests
            cluster.change("DROP TRIGGER is_full ON page")
            cluster.wait("they go on", lambda: serving.load().requests > during and not waits(cluster), 30.0)
            cluster.wait("nothing left", lambda: cluster.left() == 0, 120.0)
            cluster.wait("all indexed", lambda: cluster.behind() == 0)
            for worker in workers:
                stop(worker)
            assert must_be_read(serving) <= set(requests(serving)), "nothing is lost"
            assert not RequestLog(serving.log_path).never_earlier_than(DELAY, tolerance=0.05), "nothing is early"
        finally:
            for worker in workers:
                if worker.poll() is None:
                    kill_group(worker)


def waits(cluster: Cluster) -> int:
    """Workers that wait for room."""
    view = cluster.tell("status")["cluster"]
    return sum(any("room on the disk" in what for what in worker["waits_for"]) for worker in view["workers"])
