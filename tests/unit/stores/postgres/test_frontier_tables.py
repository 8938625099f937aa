"""A worker with few of the shards reads its own hosts only, however many others have."""

from __future__ import annotations

import json

import pytest

from postgres_server import postgres
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier_queue import PostgresQueue
from quadloom.stores.postgres.frontier_tables import FrontierCounters, PostgresHosts
from quadloom.stores.postgres.shard_leases import ShardLeases
from quadloom.stores.shards import SHARDS

pytestmark = pytest.mark.cluster
HOSTS = 20_000
NOW = 1000.0


class ExplainedDatabase(PostgresDatabase):
    """Notes the plans of what is asked, with the rows that were read for it."""

    def __init__(self, url: str) -> None:
        super().__init__(url, writable=True)
        self.rows_read = 0

    def execute(self, statement: str, values: object = ()) -> list[tuple[object, ...]]:
        if statement.startswith("SELECT") and "host x" in statement:
            explained = super().execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)  # type: ignore[arg-type]
            plan = explained[0][0]
            self.rows_read += _read(json.loads(plan) if isinstance(plan, str) else plan)
        return super().execute(statement, values)  # type: ignore[arg-type]


def _read(plan: object) -> int:
    """Rows that scans of the table have returned or filtered away."""
    if isinstance(plan, list):
        return sum(_read(part) for part in plan)
    if not isinstance(plan, dict):
        return 0
    own = 0
    if plan.get("Relation Name") == "host":
        own = int((plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"])
    return own + sum(_read(value) for name, value in plan.items() if name in ("Plan", "Plans"))


@pytest.fixture(scope="module")
def database() -> ExplainedDatabase:
    url = postgres().url()
    PostgresDatabase.open(url).close()
    made = ExplainedDatabase(url)
    made.write(
        "INSERT INTO host(id, name, site, shard, ready_at, queued) SELECT n, 'h' || n, 'h' || n, n %% %s, "
        "CASE WHEN n %% 2 = 0 THEN 10 ELSE 2000 + n END, 1 FROM generate_series(1, %s) n",
        (SHARDS, HOSTS),
    )
    made.write("ANALYZE host")
    return made


@pytest.mark.parametrize("owned", [range(4, 7), range(86), range(SHARDS)])
def test_hosts_with_work_are_found_without_reading_others(database: ExplainedDatabase, owned: range) -> None:
    leases = ShardLeases("worker")
    leases.epochs = dict.fromkeys(owned, 1)
    hosts = PostgresHosts(database, leases, FrontierCounters(database, 0))
    database.rows_read = 0
    found = hosts.hosts_with_work(NOW, [], 200)
    ready = sum(1 for n in range(1, HOSTS + 1) if n % SHARDS in owned and n % 2 == 0)
    assert len(found) == min(200, ready)
    assert database.rows_read <= max(8 * len(owned), 4 * 200)
    database.rows_read = 0
    wake = hosts.next_wake(NOW, [host.id for host in found])
    assert wake == min((2000 + n for n in range(1, HOSTS) if n % SHARDS in owned and n % 2), default=float("inf"))
    assert database.rows_read <= len(owned)


def test_what_others_have_is_one_row_of_each_shard(database: ExplainedDatabase) -> None:
    leases = ShardLeases("worker")
    leases.epochs = dict.fromkeys(range(SHARDS), 1)
    queue = PostgresQueue(database, leases, FrontierCounters(database, 0), "breadth-first")
    database.rows_read = 0
    assert queue.next_elsewhere(NOW) is None and database.rows_read == 0, "nothing is elsewhere"
    leases.epochs = dict.fromkeys(range(100), 1)
    assert queue.next_elsewhere(NOW) == NOW
    assert database.rows_read <= SHARDS - 100


def test_a_shard_with_most_of_the_hosts_is_read_in_full(database: ExplainedDatabase) -> None:
    leases = ShardLeases("worker")
    leases.epochs = dict.fromkeys([0, *range(1, SHARDS, 2)], 1)  # hosts of odd shards are not due yet
    hosts = PostgresHosts(database, leases, FrontierCounters(database, 0))
    assert len(hosts.hosts_with_work(NOW, [], 60)) == 60
