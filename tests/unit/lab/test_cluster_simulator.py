"""Many workers in one process over the real leases and outbox: fencing holds, no link is lost, shards find an owner."""

from __future__ import annotations

from contextlib import closing

import pytest

from postgres_server import postgres
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.shards import SHARDS
from quadloom_lab.cluster_simulator import simulate_cluster

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("workers", [7, pytest.param(300, marks=pytest.mark.slow)])  # fewer and more than shards
def test_workers_come_and_die_without_loss(workers: int) -> None:
    with closing(PostgresDatabase.open(postgres().url())) as database:
        report = simulate_cluster(database, workers=workers, rounds=3, churn=workers // 7)
    assert report.conflicts == 0
    assert report.refused > 0  # dead workers woke up after their shards were taken over
    assert report.owned == SHARDS
    assert report.owners == min(workers, SHARDS)
    assert report.most_shards == -(-SHARDS // workers)
    assert report.sent == report.received + report.waiting
    assert report.twice == 0 and report.received > 0
