"""Workers on one PostgreSQL watch a topic: each asks the sites of its own shards, and what a killed one has left is
asked by the next owner. Judged by the sites' log and by the shared tables."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import psycopg
import pytest

from e2e.test_topic import TOPIC, TopicServer, check_politeness
from faults.crawling import command, kill_group
from postgres_server import postgres
from quadloom.crawling.topical.topic import TopicCrawl
from quadloom.crawling.topical.watched_topics import WatchedTopic
from quadloom.model.wire import decode
from quadloom.stores.shards import SHARDS, shard_of
from servers import sparql_server
from waiting import wait_until

pytestmark = pytest.mark.cluster

_SCORES = "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?page <urn:quadloom:topicScore> ?score } }"


class TopicCluster:
    """Workers without an end on the sites of a `TopicServer`, and a directory of somebody who only asks."""

    def __init__(self, folder: Path, server: TopicServer, quads: str) -> None:
        self.folder, self.url = folder, postgres().url()
        self.config = folder / "quadloom.toml"
        self.hosts = [plan.host.partition(":")[0] for plan in server.plans]
        self.shards = {shard_of(host) for host in self.hosts}
        hosts = ", ".join(f'"{host}" = "127.0.0.1"' for host in self.hosts)
        self.config.write_text(
            '[crawl]\ncontact = "test@example.org"\nworkers = 1\nmax_wait = 5.0\n'
            "[politeness]\ndelay = 0.05\nip_delay = 0.0\nadaptive = 0.0\n"
            f'[guard]\nallow = ["127.0.0.0/8"]\nhosts = {{ {hosts} }}\n'
            "[cluster]\nlease = 5.0\nheartbeat = 0.5\n[limits]\ntotal_seconds = 2.0\nconnect_seconds = 2.0\n"
            '[freshness]\nbandwidth = 100.0\nmin_interval = "1h"\n[topic]\nshare = 0.4\nbudget = 120\n'
            f'[stores]\nfrontier = "{self.url}"\ncatalog = "postgresql:"\ntext = "postgresql:"\n'
            f'quads = "{quads}"\narchive = "warc://{folder}/archive"\n',
            encoding="utf-8",
        )

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        arguments = command(self.folder / name, self.config, "worker", "--forever")
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(arguments, stdout=log, stderr=log, start_new_session=True)

    def name_of(self, worker: str) -> str:
        return (self.folder / worker / "worker").read_text(encoding="utf-8").strip()

    def run(self, *arguments: str) -> str:
        arguments = tuple(command(self.folder / "desk", self.config, *arguments))
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    def rows(self, statement: str) -> list[tuple[object, ...]]:
        """Empty before the first worker has made the tables."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            try:
                return connection.execute(statement).fetchall()
            except psycopg.errors.UndefinedTable:
                return []

    def owners(self) -> dict[int, str]:
        """Shard → its living owner."""
        rows = self.rows("SELECT shard, split_part(owner, ':', 1) FROM shard_lease JOIN worker ON name = owner "
                         "WHERE until > clock_timestamp()")  # fmt: skip
        return {int(str(shard)): str(owner) for shard, owner in rows}

    def watched(self) -> WatchedTopic:
        ((data,),) = self.rows("SELECT data FROM value WHERE name LIKE 'watched-topic:%'")
        return decode(bytes(data), WatchedTopic)  # type: ignore[call-overload]

    def asked_by(self) -> set[str]:
        """Workers that have reported a round."""
        events = [json.loads(line) for line in self.run("--json", "logs").splitlines()]
        return {event["data"]["worker"] for event in events if event["subject"].startswith("topic ")}

    def wait(self, what: str, reached: Callable[[], object], seconds: float = 240.0) -> None:
        def report() -> str:
            logs = [log.read_text(encoding="utf-8", errors="replace")[-2000:] for log in self.folder.glob("*.log")]
            return "\n".join([f"{what}: not within {seconds} s", *logs])

        wait_until(reached, report, seconds=seconds)


def test_each_worker_asks_its_own_sites_and_a_killed_one_is_replaced(tmp_path: Path) -> None:
    with closing(TopicServer(apart=True)) as server, ExitStack() as ended:
        sparql = sparql_server()
        ended.callback(sparql.stop)
        cluster = TopicCluster(tmp_path, server, f"sparql+{sparql.url}")
        assert len(cluster.shards) > 4, "the sites are spread"
        homes = tmp_path / "sites.txt"
        homes.write_text("\n".join(server.web.homes()), encoding="utf-8")
        query = (server.corpus.broad_query(TOPIC), server.corpus.narrow_query(TOPIC))
        workers = {name: cluster.worker(name) for name in ("one", "two")}
        try:
            cluster.wait("two shares", lambda: sorted(Counter(cluster.owners().values()).values()) == [128, 128])
            told = cluster.run("topic", *query, "--seeds", str(homes), "--every", "6s")
            assert "watches the topic" in told, "the workers do it, wherever the command runs"
            cluster.wait("the first round", lambda: cluster.watched().rounds >= 1)
            assert len(cluster.asked_by()) == 2, "both asked sites of their own"
            assert set(cluster.watched().shard_times) == cluster.shards

            # The owner of the most sites dies in the middle of a round: they are still due, now at the other one.
            owners = cluster.owners()
            busiest = Counter(owners[shard] for shard in cluster.shards).most_common(1)[0][0]
            victim, survivor = sorted(workers, key=lambda name: cluster.name_of(name) != busiest)
            its_hosts = {host for host in cluster.hosts if owners[shard_of(host)] == busiest}
            asked = len(server.log)
            cluster.wait("a round", lambda: any(it[1].partition(":")[0] in its_hosts for it in server.log[asked:]))
            before = cluster.watched()
            kill_group(workers[victim])
            cluster.wait(
                "all shards at the other one", lambda: list(cluster.owners().values()).count(busiest) == 0
                and len(cluster.owners()) == SHARDS
            )  # fmt: skip
            at = max(before.shard_times.values())
            cluster.wait("a whole round there", lambda: min(cluster.watched().shard_times.values()) > at)
            after = cluster.watched()
            assert after.rounds > before.rounds
            assert json.loads(cluster.run("--json", "topic", "list"))["rounds"] >= after.rounds

            cluster.run("topic", "remove", after.name)
            assert cluster.rows("SELECT data FROM value WHERE name LIKE 'watched-topic:%'") == []
            workers[survivor].send_signal(signal.SIGTERM)
            assert workers[survivor].wait(60) == 130, (tmp_path / f"{survivor}.log").read_text()[-2000:]
        finally:
            for process in workers.values():
                if process.poll() is None:
                    kill_group(process)
        check_politeness(server.log)
        ((data,),) = cluster.rows("SELECT data FROM value WHERE name LIKE 'topic:%'")
        assert msgspec.json.decode(bytes(data), type=TopicCrawl).requests > 0  # type: ignore[call-overload]
        assert int(str(cluster.rows("SELECT count(*) FROM page WHERE status = 200")[0][0])) >= 15
        scored = json.loads(cluster.run("sparql", _SCORES, "--format", "json"))
        assert int(scored["results"]["bindings"][0]["n"]["value"]) >= 10
