"""Fair shares of the work: who gives what back, and who takes it, until nobody wants to move anything."""

from __future__ import annotations

import random

import pytest

from quadloom.crawling.cluster.balance import plan, wanted_part
from quadloom.stores.protocols.cluster import ShardLoad
from quadloom.stores.shards import SHARDS


class Workers:
    """The plans of several workers, carried out at once."""

    def __init__(self, work: dict[int, float], names: list[str]) -> None:
        self.work = {shard: work.get(shard, 0.0) for shard in range(SHARDS)}
        self.owners = dict.fromkeys(range(SHARDS), "")
        self.wanted: dict[int, str] = {}
        self.names = names

    def loads(self) -> list[ShardLoad]:
        return [ShardLoad(s, self.owners[s], self.wanted.get(s, ""), self.work[s]) for s in range(SHARDS)]

    def turn(self) -> int:
        """Everybody acts once; returns how many shards moved."""
        moved = 0
        for name in self.names:
            planned = plan(self.loads(), name, len(self.names))
            for shard in planned.give:
                self.owners[shard] = ""
            for shard in planned.take:
                assert not self.owners[shard]
                self.owners[shard] = name
            moved += len(planned.give) + len(planned.take)
        return moved

    def settle(self) -> int:
        """Turns until nothing moves."""
        for turn in range(60):
            if not self.turn():
                return turn
        raise AssertionError("shards move for ever")

    def of(self, name: str) -> float:
        return sum(self.work[shard] for shard, owner in self.owners.items() if owner == name)

    def count(self, name: str) -> int:
        return sum(owner == name for owner in self.owners.values())


@pytest.mark.parametrize("number", [1, 2, 3, 7, 40, 256, 300])
def test_without_work_shards_are_shared_by_number(number: int) -> None:
    workers = Workers({}, [f"w{i}" for i in range(number)])
    workers.settle()
    counts = [workers.count(name) for name in workers.names]
    assert sum(counts) == SHARDS and max(counts) <= -(-SHARDS // number) and max(counts) - min(counts) <= 1


def test_workers_that_join_get_work_and_not_empty_shards() -> None:
    """Few sites: 13 shards have something to do, as in many small crawls."""
    busy = dict.fromkeys(range(0, 13 * 19, 19), 60.0)
    workers = Workers(busy, ["first"])
    workers.settle()
    assert workers.of("first") == 13 * 60.0
    workers.names += ["second", "third", "fourth"]
    assert workers.settle() <= 3
    assert [workers.of(name) / 60.0 for name in workers.names] == pytest.approx([3.25] * 4, abs=0.8)
    assert max(workers.count(name) for name in workers.names) < 120, "the empty ones are shared, too"


@pytest.mark.parametrize("seed", range(20))
def test_uneven_work_is_shared_within_the_slack(seed: int) -> None:
    random_ = random.Random(seed)
    work = {shard: random_.paretovariate(1.2) * 10 for shard in range(SHARDS)}
    workers = Workers(work, [f"w{i}" for i in range(random_.randrange(2, 12))])
    workers.settle()
    fair, largest = sum(work.values()) / len(workers.names), max(work.values())
    assert all(workers.owners.values()), "no shard is too heavy for everybody"
    for name in workers.names:
        assert workers.of(name) <= max(1.3 * fair, largest + 0.3 * fair)


def test_a_shard_heavier_than_a_share_stays_and_the_others_leave_it() -> None:
    workers = Workers({7: 1000.0, 8: 10.0, 9: 10.0}, ["first"])
    workers.settle()
    workers.names.append("second")
    workers.settle()
    owner = workers.owners[7]
    assert workers.owners[8] == workers.owners[9] != owner
    assert plan(workers.loads(), owner, 2).hot == [7]
    assert plan(workers.loads(), workers.owners[8], 2).hot == []


def test_a_shard_that_a_command_wants_is_given_back_and_left_alone() -> None:
    workers = Workers({}, ["first", "second"])
    workers.settle()
    workers.wanted = {5: "topic", 200: "topic"}
    workers.settle()
    assert [shard for shard, owner in workers.owners.items() if not owner] == [5, 200]
    workers.wanted = {}
    workers.settle()
    assert all(workers.owners.values())


def test_the_bandwidth_follows_the_queues_and_not_the_shards() -> None:
    """Four shards with all the work: their owner may read nearly all, however many empty ones the other has."""
    loads = [ShardLoad(s, "few" if s < 4 else "many", "", 100.0 if s < 4 else 0.0) for s in range(SHARDS)]
    assert wanted_part(loads, "few") > 0.9
    assert wanted_part(loads, "few") + wanted_part(loads, "many") == pytest.approx(1.0)
    idle = [load._replace(work=0.0) for load in loads]
    assert wanted_part(idle, "few") == 4 / SHARDS, "without any queue by shards: what becomes due is spread like pages"
    assert wanted_part([load._replace(owner="") for load in loads], "few") == 0.0


def test_work_of_a_dead_worker_takes_no_bandwidth() -> None:
    loads = [ShardLoad(s, ("one", "two", "")[s % 3], "", 10.0) for s in range(SHARDS)]
    assert wanted_part(loads, "one") + wanted_part(loads, "two") == pytest.approx(1.0)
