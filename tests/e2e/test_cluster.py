"""Three workers on one PostgreSQL: one is killed, one is paused past its lease and goes on. Judged by the servers' log
and by the shared tables."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from fakeweb.request_log import RequestLog
from faults.crawling import command, finish, kill_group, must_be_read, requests, run_config, start
from postgres_server import PostgresServer, postgres, start_postgres
from quadloom.model.event import Event
from quadloom.model.outcome import PageRow
from quadloom.model.wire import decode
from quadloom.stores.shards import SHARDS
from quadloom.stores.sql.catalog import BEHIND
from quadloom_lab.fakeweb import FakeWeb, FakeWebServer, WebSpec, serve_in_process
from servers import new_bucket, sparql_server
from waiting import wait_until

pytestmark = pytest.mark.cluster

DELAY = 0.4
# A request may take longer than a lease: what counts is when it is sent.
LEASE, HEARTBEAT, REQUEST = 5.0, 0.5, 10.0
WEB = WebSpec(seed=9, pages=260, hosts=24, scale=0.05, links=20, faults=False, traps=False, crawl_delay=0.5)


class Cluster:
    """Workers with a directory each, and a directory for commands of somebody who only looks."""

    def __init__(
        self,
        folder: Path,
        serving: FakeWebServer,
        *,
        delay: float = DELAY,
        server: PostgresServer | None = None,
        **stores: str | int,
    ) -> None:
        self.folder = folder
        self.serving = serving
        self.url = (server or postgres()).url()
        database = {"frontier": self.url, "catalog": "postgresql:", "text": "postgresql:"}
        self.config = run_config(
            folder,
            serving,
            crawl={"scope": "site", "max_wait": 3.0, "in_flight": 64, "batch": 16},
            politeness={"delay": delay, "ip_delay": 0.0, "adaptive": 0.0, "per_site": 1, "max_crawl_delay": 5.0},
            limits={"total_seconds": REQUEST, "connect_seconds": REQUEST},
            cluster={"lease": LEASE, "heartbeat": HEARTBEAT},
            stores={**database, "archive": f"warc://{folder}/archive", **stores},
        )

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        """What it says is in a file: a failed wait shows it."""
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command(self.folder / name, self.config, "worker"), stdout=log, stderr=log, start_new_session=True
            )

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def tell(self, *arguments: str) -> dict[str, Any]:
        return finish(self.folder / "desk", self.config, "--json", *arguments)

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(statement).fetchall()

    def change(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def owners(self) -> dict[str, int]:
        """Shards by worker, those alive only."""
        rows = self.rows(
            "SELECT split_part(owner, ':', 1), count(*) FROM shard_lease JOIN worker ON name = owner "
            "WHERE until > clock_timestamp() GROUP BY 1"
        )
        return {str(name): int(str(count)) for name, count in rows}

    def shared_by(self, workers: int) -> bool:
        """All shards are owned, by so many."""
        shares = self.owners().values()
        return len(shares) == workers and sum(shares) == SHARDS

    def wait(self, what: str, reached: Callable[[], object], seconds: float = 60.0) -> None:
        wait_until(reached, lambda: f"{what}: not within {seconds} s\n{self._state()}", seconds=seconds)

    def _state(self) -> str:
        """What a person asks first after a failure."""
        lines = [f"{self.serving.load().requests} requests; shards by worker: {self.owners()}; left: {self.left()}"]
        for log in sorted(self.folder.glob("*.log")):
            lines += [f"--- {log.stem}", self.said(log.stem)[-2000:]]
        return "\n".join(lines)

    def wait_for_requests(self, count: int) -> None:
        self.wait(f"{count} requests", lambda: self.serving.load().requests >= count)

    def left(self) -> int:
        """URLs that somebody still has to read now, and batches under way between shards."""
        row = self.rows("SELECT (SELECT coalesce(sum(queued), 0) FROM host) + (SELECT count(*) FROM link_outbox)")[0]
        return int(str(row[0]))

    def behind(self) -> int:
        """Pages that are settled and of which nobody can know yet that they are indexed."""
        return int(str(self.rows(f"SELECT count(*) FROM page WHERE {BEHIND}")[0][0]))

    def settled(self) -> set[str]:
        """URLs of pages that were read and acknowledged."""
        rows = self.rows("SELECT record FROM page WHERE status = 200")
        return {decode(bytes(record), PageRow).href for (record,) in rows}  # type: ignore[call-overload]

    def notices(self) -> list[str]:
        return [decode(bytes(record), Event).subject for (record,) in self.rows("SELECT record FROM event")]  # type: ignore[call-overload]


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a worker politely."""
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, (told or b"").decode()[-3000:]


def test_a_killed_and_a_paused_worker_lose_nothing_and_hurt_nobody(tmp_path: Path) -> None:
    with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving)
        killed, paused, steady = (cluster.worker(name) for name in ("killed", "paused", "steady"))
        try:
            cluster.tell("seeds", "add", *serving.web.homes)
            cluster.wait("three shares", lambda: cluster.shared_by(3))
            cluster.wait_for_requests(100)
            kill_group(killed)
            cluster.wait_for_requests(160)
            os.killpg(paused.pid, signal.SIGSTOP)
            # If it was stopped within a transaction, the server ends that after 30 s; only then are its shards free.
            cluster.wait("a takeover of all shards", lambda: cluster.shared_by(1), 120.0)
            time.sleep(2 * DELAY)
            os.killpg(paused.pid, signal.SIGCONT)
            cluster.wait("two shares", lambda: cluster.shared_by(2))
            cluster.wait("nothing left", lambda: cluster.left() == 0, 120.0)
            cluster.wait("all marked while the workers rest", lambda: cluster.behind() == 0)
            stop(paused)
            stop(steady)
        finally:
            for process in (killed, paused, steady):
                if process.poll() is None:
                    kill_group(process)
        asked, wanted = requests(serving), must_be_read(serving)
        log = RequestLog(serving.log_path)
        assert wanted <= set(asked), f"{len(wanted - set(asked))} pages were never asked for"
        assert not log.never_earlier_than(DELAY, tolerance=0.1)
        assert not log.disallowed_hits(serving.web)
        assert "of 256 shards (" in cluster.said("paused"), "a worker tells what it owns"
        told_of_loss = ("has taken over", "the lease had run out")  # by a refused write, or by its next heartbeat
        assert any(words in text for text in cluster.notices() for words in told_of_loss), "the paused worker knows"
        assert cluster.rows("SELECT count(*) FROM shard_lease WHERE owner <> ''") == [(0,)], "all were given back"
        pages = int(str(cluster.rows("SELECT count(*) FROM page WHERE status = 200")[0][0]))
        assert pages == len({url for url in asked if not url.endswith("/robots.txt")} & _found(cluster))
        assert cluster.behind() == 0, "all that was settled is indexed"
        searchable = {str(row[0]) for row in cluster.rows("SELECT id FROM text_document")}
        without = sorted(url for url in cluster.settled() - searchable if not url.endswith(".png"))
        assert not without, f"pages that were read and cannot be found: {without[:9]}"
        assert cluster.tell("status")["documents"] == len(searchable)
        assert cluster.tell("search", "the")["total"]


def test_a_crawl_on_a_shared_database_ends_by_itself_and_everybody_can_look(tmp_path: Path) -> None:
    web = FakeWeb(WebSpec(seed=4, pages=40, hosts=4, scale=0.05, links=12, faults=False, traps=False, crawl_delay=0.0))
    with serve_in_process(web, log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving, delay=0.02)
        report = finish(tmp_path / "one", cluster.config, "--json", "crawl", *serving.web.homes)
        assert must_be_read(serving) <= set(requests(serving))
        assert finish(tmp_path / "one", cluster.config, "--json", "verify")["drift"] == []
        checked = subprocess.run(
            command(tmp_path / "desk", cluster.config, "check"), capture_output=True, text=True, check=True
        )
        assert "PostgreSQL" in checked.stdout and "0 workers" in checked.stdout
        status = cluster.tell("status")
        assert status["documents"] == cluster.rows("SELECT count(*) FROM page WHERE status = 200")[0][0]
        assert int(str(report["pages"])) >= int(str(status["documents"]))
        rebuilt = finish(tmp_path / "desk", cluster.config, "--json", "rebuild")
        assert rebuilt["pages"], "all quads can be made anew on any machine"


@pytest.mark.slow
def test_a_database_that_is_killed_and_comes_back_does_not_end_the_crawl(tmp_path: Path) -> None:
    web = FakeWeb(
        WebSpec(seed=4, pages=150, hosts=12, scale=0.05, links=12, faults=False, traps=False, crawl_delay=0.0)
    )
    server = start_postgres(fsync=True)
    with serve_in_process(web, log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving, delay=0.1, server=server)
        crawl = start(tmp_path / "one", cluster.config, "crawl", *serving.web.homes)
        for count in (40, 100):
            cluster.wait_for_requests(count)
            server.kill()
            server.start()
        _, told = crawl.communicate(timeout=90)
        assert crawl.returncode == 0, told.decode()[-3000:]
        assert must_be_read(serving) <= set(requests(serving))
        assert finish(tmp_path / "one", cluster.config, "--json", "verify")["drift"] == []
    server.remove()


@pytest.mark.slow
def test_workers_share_a_bucket_and_a_sparql_server(tmp_path: Path) -> None:
    """One machine is lost with its disk, another joins for a moment: nothing settled is lost, nothing read twice."""
    bucket, sparql = new_bucket(), sparql_server("--location", str(tmp_path / "server"))
    workers: list[subprocess.Popen[bytes]] = []
    try:
        with serve_in_process(FakeWeb(WEB), log=tmp_path / "requests.jsonl") as serving:
            cluster = Cluster(
                tmp_path, serving, delay=0.1, quads=f"sparql+{sparql.url}",
                archive=f"s3://{bucket.bucket}/{bucket.prefix}", archive_endpoint=bucket.endpoint,
                archive_file_bytes=200_000,
            )  # fmt: skip
            workers += [cluster.worker("lost"), cluster.worker("steady")]
            lost, steady = workers
            cluster.tell("seeds", "add", *serving.web.homes)
            cluster.wait_for_requests(100)
            kill_group(lost)
            shutil.rmtree(tmp_path / "lost")
            settled = cluster.settled()
            cluster.wait("a takeover of all shards", lambda: cluster.shared_by(1))
            cluster.wait("nothing left", lambda: cluster.left() == 0, 120.0)
            workers.append(cluster.worker("guest"))
            cluster.wait("two shares", lambda: cluster.shared_by(2))
            stop(workers[-1])
            stop(steady)
            asked = requests(serving)
            assert must_be_read(serving) <= set(asked)
            assert settled and {url: asked[url] for url in settled if asked[url] != 1} == {}, "no page was read twice"
            assert cluster.tell("verify")["drift"] == []
            assert cluster.tell("status")["quads"]
    finally:
        for process in workers:
            if process.poll() is None:
                kill_group(process)
        sparql.stop()


def _found(cluster: Cluster) -> set[str]:
    """URLs that were answered 200 at least once."""
    log = RequestLog(cluster.serving.log_path)
    return {one.url for one in log.requests if one.status == 200 and one.target != "/robots.txt"}


@pytest.mark.slow
def test_workers_for_single_phases(tmp_path: Path) -> None:
    """One machine fetches, two transform, one indexes and extracts; one of those that transform is killed."""
    web = FakeWeb(WebSpec(seed=4, pages=60, hosts=6, scale=0.05, links=15, faults=False, traps=False, crawl_delay=0.0))
    phases = {"a": "fetch", "b": "transform", "c": "transform", "d": "index,extract"}
    with serve_in_process(web, log=tmp_path / "requests.jsonl") as serving:
        cluster = Cluster(tmp_path, serving, delay=0.0, spool=str(tmp_path / "spool"))
        cluster.tell("seeds", "add", *serving.web.homes)
        running = {
            name: start(tmp_path / name, cluster.config, "worker", "--phases", some) for name, some in phases.items()
        }
        try:
            cluster.wait_for_requests(20)
            kill_group(running.pop("b"))
            # In one statement: a page never leaves one of these lists before it is in the next.
            left = (
                "SELECT (SELECT coalesce(sum(queued), 0) FROM host) + (SELECT count(*) FROM link_outbox) + "
                f"(SELECT count(*) FROM page WHERE owed > 0 OR {BEHIND})"
            )
            cluster.wait("nothing is left", lambda: cluster.rows(left) == [(0,)], seconds=150)
            assert set(cluster.owners().values()) == {SHARDS}, "only the one that fetches owns shards"
        finally:
            for process in running.values():
                stop(process)
        assert must_be_read(serving) <= set(requests(serving))
        assert len(list((tmp_path / "d" / "quads").iterdir())) > 1
        assert cluster.rows("SELECT count(*) FROM page_lease") == [(0,)]
        graphs = cluster.rows("SELECT count(*) FROM text_document")
        assert int(str(graphs[0][0])) > 40
