"""A worker among others, on a real database: what it keeps, what it gives back, what it tries again."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from postgres_server import postgres
from quadloom.cluster.membership import Membership
from quadloom.errors import StoreError
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier import PostgresFrontier
from quadloom.stores.postgres.shards import ShardLeases
from quadloom.stores.shards import SHARDS

pytestmark = pytest.mark.cluster


class Duties:
    """A warehouse whose indexer is told by hand how far it is."""

    def __init__(self) -> None:
        self.left: frozenset[int] = frozenset()
        self.told: list[list[int]] = []
        self.failures = 0
        self.shards = 0

    def taken(self, shards: list[int]) -> None:
        self.told.append(shards)
        if self.failures:
            self.failures -= 1
            raise StoreError("the archive is away")

    def owns(self, shards: int) -> None:
        self.shards = shards

    def unfinished(self) -> frozenset[int]:
        return self.left

    def tend(self) -> None:
        return


def member(url: str, duties: Duties, name: str = "member") -> tuple[Membership, PostgresFrontier]:
    leases = ShardLeases(name)
    frontier = PostgresFrontier(PostgresDatabase.open(url), FrontierPolicy(), leases, now=0.0)
    membership = Membership(
        url, frontier, leases, duties, heartbeat=0.02, call=lambda action: action(), tell=lambda _text: None
    )
    return membership, frontier


def wait_until(reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 30.0
    while not reached():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def test_a_shard_is_kept_until_all_its_pages_are_marked_as_indexed() -> None:
    url, duties = postgres().url(), Duties()
    membership, frontier = member(url, duties)
    with membership:
        wait_until(lambda: len(frontier.owned) == SHARDS, "a worker alone owns everything")
        duties.left = frozenset({3, 200})  # both have pages at the indexer; 3 is among those that will be given back
        database = PostgresDatabase.open(url)
        ShardLeases("guest").renew(database)
        wait_until(lambda: len(frontier.owned) == SHARDS // 2 + 1, "all others of the surplus are given back")
        assert duties.left < frontier.owned
        duties.left = frozenset()
        wait_until(lambda: len(frontier.owned) == SHARDS // 2, "the last one follows when its marks are written")
        assert 3 not in frontier.owned
        database.close()


def test_each_of_two_workers_is_told_its_share() -> None:
    url, first, second = postgres().url(), Duties(), Duties()
    one, _ = member(url, first, "one")
    two, _ = member(url, second, "two")
    with one:
        wait_until(lambda: first.shards == SHARDS, "a worker alone has the whole bandwidth")
        with two:
            wait_until(lambda: second.shards == SHARDS // 2, "the second has half")
            wait_until(lambda: first.shards == SHARDS // 2, "and the first no more than that")


def test_what_a_former_owner_left_is_looked_at_until_it_could_be() -> None:
    duties = Duties()
    duties.failures = 2
    membership, frontier = member(postgres().url(), duties)
    with membership:
        wait_until(lambda: len(duties.told) == 3, "two failures, then a success")
        wait_until(lambda: len(frontier.owned) == SHARDS, "all is owned")
    assert duties.told == [list(range(SHARDS))] * 3, "and it was not told again after that"
