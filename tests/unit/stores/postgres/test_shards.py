"""Shards of many workers: who owns what, who may write, and how links find their owner."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

import pytest

from postgres_server import postgres
from quadloom.errors import SettingsError, ShardsLost, StoreError, WarehouseLocked
from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, Settlement
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.stores.frontier.host_table import QueuedUrl
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.postgres.catalog import PostgresCatalog
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier import PostgresFrontier
from quadloom.stores.postgres.frontier_queue import PostgresQueue
from quadloom.stores.postgres.shard_leases import ShardLeases
from quadloom.stores.postgres.shards import LinkOutbox, PostgresShards
from quadloom.stores.shards import SHARDS, shard_of

POLICY = FrontierPolicy(delay=5.0, ip_delay=0.0)


class Worker:
    """A frontier with its shards, on a connection of its own."""

    opened: ClassVar[list[PostgresDatabase]] = []

    def __init__(
        self,
        url: str,
        name: str,
        *,
        shards: int,
        now: float = 0.0,
        policy: FrontierPolicy = POLICY,
        ahead: float = 0.0,
    ) -> None:
        """`ahead`: seconds by which the clock of its machine is wrong."""
        self.database = PostgresDatabase.open(url)
        self.opened.append(self.database)

        def clock() -> float:
            return time.time() + ahead

        self.leases = ShardLeases(name, clock=clock)
        self.shards = PostgresShards(url, self.database, self.leases, PostgresCatalog(self.database))
        self.frontier = PostgresFrontier(self.database, policy, self.shards, now=now, clock=clock)
        self.leases.renew(self.database)
        if shards:
            self.shards.take(shards, now)

    def pull(self, now: float, prepare: Callable[[], None] = lambda: None) -> int:
        """Returns the number of batches that were queued."""
        outbox = LinkOutbox(self.database, self.leases)
        before = outbox.waiting(SHARDS)
        assert not self.shards.pull(now, prepare), "so few batches are pulled at once"
        return len(set(before).difference(outbox.waiting(SHARDS)))

    def expire(self) -> None:
        self.expire_from(self)

    def expire_from(self, other: Worker) -> None:
        """End the lease of this one by the connection of another."""
        other.database.write("UPDATE worker SET until='-infinity' WHERE name=%s", (self.leases.owner,))


@pytest.fixture
def url() -> Iterator[str]:
    yield postgres().url()
    while Worker.opened:
        Worker.opened.pop().close()


def found(host: str, number: int = 0) -> Discovery:
    made = Url.parse(f"http://{host}/{number}")
    return Discovery(made.href, made.key, made.host, made.fingerprint, 1)


def hosts_of(worker: Worker, count: int, *, inside: bool = True) -> list[str]:
    names = (f"site{number}.example" for number in range(5000))
    return [name for name in names if (shard_of(name) in worker.shards.owned) is inside][:count]


def settled(visit: Visit, *discoveries: Discovery) -> Settlement:
    return Settlement(visit, Outcome.NEW, None, HostPace(visit.host, "", 0.0, 0.0), discoveries)


def test_a_site_has_one_shard_for_ever() -> None:
    assert [shard_of(name) for name in ("example.org", "www.example.org", "a.b.example.org:8080")] == [223] * 3
    assert {shard_of(f"s{number}.example") for number in range(5000)} == set(range(SHARDS))


def test_every_shard_has_one_owner(url: str) -> None:
    first, second = Worker(url, "first", shards=100), Worker(url, "second", shards=SHARDS)
    assert len(first.shards.owned) == 100
    assert first.shards.owned | second.shards.owned == set(range(SHARDS))
    assert not first.shards.owned & second.shards.owned
    assert first.leases.workers(first.database) == 2


def test_a_zombie_is_refused_and_its_work_dropped(url: str) -> None:
    zombie = Worker(url, "zombie", shards=SHARDS)
    host = hosts_of(zombie, 1)[0]
    zombie.frontier.add([found(host, 1), found(host, 2)], 0.0)
    (visit,) = zombie.frontier.lease(5, 0.0)
    zombie.frontier.settle([settled(visit, found("other.example"))], 1.0)
    late = next(visit for visit in zombie.frontier.lease(5, 10.0) if visit.host == host)
    zombie.expire()
    heir = Worker(url, "heir", shards=SHARDS, now=20.0)
    with pytest.raises(ShardsLost) as refusal:
        zombie.frontier.settle([settled(late, found("third.example"))], 21.0)
    assert refusal.value.shards == set(range(SHARDS))
    assert refusal.value.hint
    assert zombie.shards.owned == frozenset()
    assert zombie.frontier.lease(5, 100.0) == []
    with pytest.raises(ShardsLost):
        zombie.frontier.settle([settled(late)], 22.0)  # it still does not know better
    stats = heir.frontier.stats(21.0)
    assert (stats.done, stats.queued, stats.total) == (1, 2, 3), "what the zombie found late was not written"
    again = {visit.href: visit for visit in heir.frontier.lease(5, 30.0)}
    assert late.href in again


def test_turns_are_reserved_only_on_hosts_that_this_worker_may_ask(url: str) -> None:
    worker = Worker(url, "one", shards=100)
    own, foreign = hosts_of(worker, 1)[0], hosts_of(worker, 1, inside=False)[0]
    with pytest.raises(ShardsLost):
        worker.frontier.hosts.reserve(foreign, 0.0)
    assert worker.database.execute("SELECT count(*) FROM host") == [(0,)]
    assert worker.frontier.hosts.reserve(own, 0.0) == 0.0
    worker.shards.drain([shard_of(own)])
    assert shard_of(own) not in worker.shards.give_back(), "the request has not ended"
    worker.frontier.hosts.free(own, 6.0, 1.0)
    assert worker.frontier.hosts.reserve(own, 10.0) is None, "about to be given back"
    assert worker.shards.give_back() == [shard_of(own)]
    worker.frontier.hosts.free(own, 9.0, 2.0)  # a late answer: nothing to do, and no host comes back into memory
    heir = Worker(url, "two", shards=SHARDS, now=2.0)
    assert heir.frontier.hosts.reserve(own, 3.0) == 6.0, "the clock went with the shard"
    heir.leases.begin_until = time.time() - 1.0
    assert heir.frontier.hosts.reserve(foreign, 3.0) is None, "the lease may have run out"


@pytest.mark.parametrize(("first", "second"), [(-3600.0, 0.0), (0.0, 3600.0), (-1800.0, 1800.0)])
def test_no_host_is_asked_early_if_the_clocks_of_two_machines_differ(url: str, first: float, second: float) -> None:
    """A shard is given back properly a moment after a request, so its hosts need not wait; but their clocks are those
    of another machine, an hour ago."""
    one = Worker(url, "one", shards=SHARDS, ahead=first)
    host = hosts_of(one, 1)[0]
    assert one.frontier.hosts.reserve(host, 0.0) == 0.0
    one.frontier.hosts.free(host, 5.0, 0.1)
    one.shards.drain(range(SHARDS))
    assert one.shards.give_back() == list(range(SHARDS))
    two = Worker(url, "two", shards=SHARDS, now=3600.2, ahead=second)
    assert two.frontier.hosts.reserve(host, 3600.3) == 3605.2, "the full delay after the takeover"
    assert [round(worker.shards.clock_error, -1) for worker in (one, two)] == [first, second]


@pytest.mark.parametrize(("capacity", "read_ahead"), [(4, 1), (100, 2)])
def test_a_url_is_read_for_each_host_if_more_wait_than_fit(
    url: str, capacity: int, read_ahead: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(url, "one", shards=SHARDS)
    frontier = PostgresFrontier(worker.database, POLICY, worker.shards, now=0.0, capacity=capacity)
    frontier.add([found(name, number) for name in hosts_of(worker, 10) for number in range(3)], 0.0)
    limits: list[int] = []
    fronts = PostgresQueue.fronts

    def noted(self: PostgresQueue, host_ids: Sequence[int], limit: int) -> Mapping[int, list[QueuedUrl]]:
        limits.append(limit)
        return fronts(self, host_ids, limit)

    monkeypatch.setattr(PostgresQueue, "fronts", noted)
    assert len(frontier.lease(4, 10.0)) == 4
    assert limits == [read_ahead]


def test_own_hosts_are_those_of_shards_that_stay(url: str) -> None:
    worker = Worker(url, "one", shards=SHARDS)
    names = hosts_of(worker, 6)
    worker.frontier.add([found(name) for name in names], 0.0)
    other = Worker(url, "two", shards=0)
    assert [row.host for row in worker.frontier.hosts.rows(own=True)] == sorted(names)
    worker.shards.drain([shard_of(names[0])])
    staying = sorted(name for name in names if shard_of(name) != shard_of(names[0]))
    assert [row.host for row in worker.frontier.hosts.rows(own=True)] == staying
    assert [row.host for row in other.frontier.hosts.rows()] == sorted(names)
    assert other.frontier.hosts.rows(own=True) == []


def test_the_heartbeat_of_a_zombie_tells_it_what_it_lost(url: str) -> None:
    zombie = Worker(url, "zombie", shards=10)
    zombie.expire()
    heir = Worker(url, "heir", shards=4)
    assert zombie.leases.renew(zombie.database) == heir.shards.owned
    assert not heir.leases.renew(heir.database)


def test_a_zombie_that_wakes_asks_nobody_before_it_knows_what_it_lost(url: str) -> None:
    """Its heartbeat may be through before the crawl's thread has forgotten the shards: their heir is asking already."""
    zombie = Worker(url, "zombie", shards=SHARDS)
    zombie.frontier.add([found(host) for host in hosts_of(zombie, 9)], 0.0)
    zombie.leases.begin_until = -1.0  # by its own clock the lease is over
    zombie.expire()
    heir = Worker(url, "heir", shards=100)
    lost = zombie.leases.renew(zombie.database)
    assert lost == heir.shards.owned
    assert zombie.frontier.lease(9, 0.0) == []
    zombie.shards.lose(lost)
    zombie.leases.renew(zombie.database)
    assert {shard_of(visit.host) for visit in zombie.frontier.lease(9, 0.0)}.isdisjoint(lost)


def test_shards_claimed_by_a_commit_whose_answer_was_lost_are_found_again(url: str) -> None:
    worker = Worker(url, "worker", shards=200)
    worker.database.write("UPDATE shard_lease SET owner='worker', epoch=epoch+1 WHERE owner=''")
    before = worker.shards.owned
    taken = worker.shards.take(SHARDS, 0.0)
    assert set(taken) == set(range(SHARDS)) - before
    worker.frontier.add([found("a.example")], 0.0)  # the epochs are right: nothing is refused


def test_an_expired_lease_that_nobody_took_is_still_good(url: str) -> None:
    worker = Worker(url, "worker", shards=SHARDS)
    worker.expire()
    worker.frontier.add([found("a.example")], 0.0)
    assert worker.leases.renew(worker.database) == frozenset()
    assert len(worker.frontier.lease(1, 0.0)) == 1


def test_after_a_takeover_every_host_waits_its_full_delay(url: str) -> None:
    killed = Worker(url, "killed", shards=SHARDS)
    killed.frontier.add([found("a.example", 1), found("a.example", 2)], 0.0)
    assert len(killed.frontier.lease(1, 100.0)) == 1
    killed.expire()
    heir = Worker(url, "heir", shards=SHARDS, now=101.0)
    heir.frontier.add([found("new.example")], 101.0)
    assert [visit.host for visit in heir.frontier.lease(5, 105.9)] == ["new.example"]
    assert [visit.host for visit in heir.frontier.lease(5, 106.0)] == ["a.example"]


def test_shards_given_back_keep_their_clocks_and_need_not_wait(url: str) -> None:
    giver = Worker(url, "giver", shards=SHARDS)
    giver.frontier.add([found("a.example", 1), found("a.example", 2), found("b.example", 1)], 0.0)
    visits = giver.frontier.lease(5, 100.0)
    assert {visit.host for visit in visits} == {"a.example", "b.example"}
    giver.shards.drain(range(SHARDS))
    assert giver.frontier.lease(5, 200.0) == []
    assert len(giver.shards.give_back()) == SHARDS - 2, "two have something under way"
    giver.frontier.settle([settled(visit) for visit in visits], 101.0)
    assert set(giver.shards.give_back()) == {shard_of("a.example"), shard_of("b.example")}
    heir = Worker(url, "heir", shards=SHARDS, now=102.0)
    assert heir.frontier.lease(5, 104.9) == []
    (visit,) = heir.frontier.lease(5, 105.0)  # five seconds after it was asked, not after the change of owner
    assert (visit.host, visit.attempt) == ("a.example", 1)


def test_links_reach_the_owner_of_their_shard_exactly_once(url: str) -> None:
    here, there = Worker(url, "here", shards=128), Worker(url, "there", shards=SHARDS)
    (own,) = hosts_of(here, 1)
    foreign = hosts_of(there, 3)
    here.frontier.add([found(own)], 0.0)
    (visit,) = here.frontier.lease(1, 0.0)
    links = [found(name, number) for name in foreign for number in range(4)]
    here.frontier.settle([settled(visit, *links, *links)], 1.0)
    here.frontier.settle([settled(visit, *links)], 1.0)
    assert there.frontier.lease(9, 1.0) == []
    assert there.pull(1.0) == 3, "a batch for each shard"
    assert there.pull(1.0) == here.pull(1.0) == 0
    assert {visit.host for visit in there.frontier.lease(9, 1.0)} == set(foreign)
    assert there.frontier.stats(1.0).total == 13


def test_links_sent_to_a_shard_that_then_becomes_ours_are_not_forgotten(url: str) -> None:
    worker = Worker(url, "worker", shards=0)
    worker.frontier.add([found("a.example")], 0.0)
    worker.shards.take(SHARDS, 0.0)
    worker.pull(0.0)
    assert [visit.host for visit in worker.frontier.lease(1, 0.0)] == ["a.example"]


class _OnlySeeds:
    """A scope of the hosts that somebody has said are in it; everything else is refused."""

    def __init__(self) -> None:
        self.hosts: set[str] = set()

    def verdict(self, href: str, host: str, depth: int) -> str | None:
        return None if host in self.hosts else "not a seed"


def test_seeds_that_arrive_after_the_scope_was_read_are_not_judged_by_it(url: str) -> None:
    """A command on another machine widens the scope and then sends its seeds; the owner may look in between."""
    owner, visitor = Worker(url, "owner", shards=SHARDS), Worker(url, "visitor", shards=0)
    shared, known = {"early.example"}, _OnlySeeds()
    owner.frontier.set_scope(known)
    visitor.frontier.add([found("early.example")], 0.0)

    def learn() -> None:
        known.hosts = set(shared)
        if "late.example" not in shared:  # the other machine's next command falls just behind our look
            shared.add("late.example")
            visitor.frontier.add([found("late.example")], 0.0)

    assert owner.pull(0.0, learn) == 1, "what came after the look waits for the next one"
    assert owner.pull(0.0, learn) == 1
    assert {visit.host for visit in owner.frontier.lease(5, 0.0)} == {"early.example", "late.example"}


def test_what_a_zombie_pulls_stays_for_the_heir(url: str) -> None:
    zombie = Worker(url, "zombie", shards=SHARDS)
    visitor = Worker(url, "visitor", shards=0)
    visitor.frontier.add([found("a.example")], 0.0)
    zombie.expire()
    heir = Worker(url, "heir", shards=SHARDS)
    with pytest.raises(ShardsLost):
        zombie.pull(0.0)
    assert heir.pull(0.0) == 1
    assert [visit.host for visit in heir.frontier.lease(1, 0.0)] == ["a.example"]


def test_requests_go_to_the_owner_and_first(url: str) -> None:
    owner, visitor = Worker(url, "owner", shards=SHARDS), Worker(url, "visitor", shards=0)
    owner.frontier.add([found(f"h{number}.example", page) for number in range(5) for page in range(3)], 0.0)
    assert visitor.frontier.request([found("h3.example", 2), found("wanted.example")], 0.0) == 2
    assert visitor.frontier.next_due(0.0) == 0.0
    owner.pull(0.0)
    assert {visit.key for visit in owner.frontier.lease(2, 0.0)} == {"http://h3.example/2", "http://wanted.example/0"}


def test_without_a_heartbeat_nothing_is_leased(url: str) -> None:
    worker = Worker(url, "worker", shards=SHARDS)
    worker.frontier.add([found("a.example")], 0.0)
    until, worker.leases.begin_until = worker.leases.begin_until, 0.0
    assert worker.frontier.lease(1, 0.0) == []
    worker.leases.begin_until = until
    (visit,) = worker.frontier.lease(1, 0.0)
    assert visit.start_before == until


def test_a_crawl_ends_only_when_nobody_has_anything_left(url: str) -> None:
    idle, busy = Worker(url, "idle", shards=128), Worker(url, "busy", shards=SHARDS)
    busy.frontier.add([found(hosts_of(busy, 1)[0])], 0.0)
    assert idle.frontier.next_due(0.0) == 0.0
    (visit,) = busy.frontier.lease(1, 0.0)
    busy.frontier.settle([settled(visit)], 0.0)
    idle.frontier._elsewhere = (float("-inf"), None)
    assert idle.frontier.next_due(0.0) is None


def test_a_command_that_needs_all_shards_does_not_take_them_from_workers(url: str) -> None:
    worker, command = Worker(url, "worker", shards=10), Worker(url, "command", shards=0)
    with pytest.raises(WarehouseLocked, match="10 of 256"):
        command.shards.take_all(0.0)
    worker.frontier.close()
    command.shards.take_all(0.0)
    assert len(command.shards.owned) == SHARDS


def test_workers_agree_on_the_order(url: str) -> None:
    first = Worker(url, "first", shards=1)
    with pytest.raises(SettingsError, match="breadth-first"):
        Worker(url, "second", shards=1, policy=FrontierPolicy(order="random"))
    first.leases.leave(first.database)
    Worker(url, "third", shards=1, policy=FrontierPolicy(order="random"))


def test_a_worker_that_was_stopped_between_two_statements_does_not_keep_its_shards(url: str) -> None:
    """Within a pipeline neither limit of the server runs: its locks would stay for as long as the process exists."""
    stopped, other = Worker(url, "stopped", shards=SHARDS), Worker(url, "other", shards=0)
    stopped.database._begin()
    stopped.leases.check(stopped.database)  # locks its rows; then nothing more comes from it
    stopped.expire_from(other)
    assert other.shards.take(SHARDS, 0.0) == [], "they are locked"
    assert other.leases.end_frozen(other.database, seconds=3600.0) == 0, "it may still be at work"
    assert other.leases.end_frozen(other.database, seconds=0.0) == 1
    deadline = time.monotonic() + 60.0
    while not other.shards.take(SHARDS, 0.0):
        assert time.monotonic() < deadline, "a session ends a moment after it was told to"
    with pytest.raises(StoreError):
        stopped.database._finish()
