"""A host table smaller than the crawl: hosts come and go, none starves, none is asked early."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, Settlement
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.stores.frontier.frontier import TableFrontier
from quadloom.stores.frontier.host_table import QueuedUrl
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.frontier.recent_urls import RecentFingerprints
from quadloom.stores.protocols.frontier import FIRST_PLACE, Place, ScheduledPage
from quadloom.stores.sql.queue import SqlFrontierValues
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.frontier_tables import SqliteHosts, SqliteQueue, SqliteUrls
from quadloom.stores.sqlite.schema import SCHEMA


def found(href: str, depth: int = 1, priority: int = 3) -> Discovery:
    url = Url.parse(href)
    return Discovery(url.href, url.key, url.host, url.fingerprint, depth, priority=priority)


class CountingQueue(SqliteQueue):
    """Notes how many URLs each look into a host's queue has read."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database, SqlFrontierValues(database), "breadth-first")
        self.reads: list[int] = []

    def front(self, host_id: int, limit: int, priorities: Sequence[int] = ()) -> list[QueuedUrl]:
        urls = super().front(host_id, limit, priorities)
        self.reads.append(len(urls))
        return urls


def opened(folder: Path, policy: FrontierPolicy) -> tuple[TableFrontier, CountingQueue]:
    database = SqliteDatabase.open(folder / "quadloom.db", SCHEMA)
    queue = CountingQueue(database)
    urls = SqliteUrls(database, SqlFrontierValues(database))
    return TableFrontier(database, SqliteHosts(database), urls, queue, policy, now=0.0), queue


def settled(visit: Visit, address: str = "") -> Settlement:
    return Settlement(visit, Outcome.NEW, None, HostPace(visit.host, address, 0.0, 0.0))


@pytest.mark.parametrize("delay", [0.0, 1.0, 7.0])
def test_a_small_table_serves_many_hosts(tmp_path: Path, delay: float) -> None:
    database = SqliteDatabase.open(tmp_path / "quadloom.db", SCHEMA)
    policy = FrontierPolicy(delay=delay, ip_delay=0.1)
    frontier = SqliteFrontier(database, policy, now=0.0, capacity=8)
    hosts = [f"h{number}.s{number % 11}.example" for number in range(100)]
    frontier.add([found(f"http://{host}/{page}") for host in hosts for page in range(3)], 0.0)
    asked: dict[str, list[float]] = defaultdict(list)
    now, steps = 0.0, 0
    while (due := frontier.next_due(now)) is not None:
        now = max(due, now)
        visits = frontier.lease(6, now)
        for visit in visits:
            asked[visit.host].append(now)
        now += 0.05
        frontier.settle(
            [settled(visit, f"10.0.0.{int(visit.host[1:].partition('.')[0]) % 5}") for visit in visits], now
        )
        assert len(frontier.loaded.table.loaded) <= 8
        steps += 1
        assert steps < 3000
    assert {host: len(times) for host, times in asked.items()} == dict.fromkeys(hosts, 3)
    for times in asked.values():
        assert all(later - earlier >= delay - 1e-6 for earlier, later in pairwise(times))
    # Every host had its first turn before any had its last but a few: a table full of some hosts starves no other.
    firsts, lasts = [times[0] for times in asked.values()], sorted(times[-1] for times in asked.values())
    assert max(firsts) <= lasts[-10]
    database.close()


def test_a_full_table_still_sees_an_explicit_request(tmp_path: Path) -> None:
    database = SqliteDatabase.open(tmp_path / "quadloom.db", SCHEMA)
    frontier = SqliteFrontier(database, FrontierPolicy(delay=5.0, ip_delay=0.0), now=0.0, capacity=4)
    frontier.add([found(f"http://h{number}.example/") for number in range(30)], 0.0)
    frontier.lease(2, 0.0)
    frontier.request([found("http://wanted.example/")], 0.0)
    assert frontier.lease(1, 0.0)[0].host == "wanted.example"
    database.close()


def test_a_clean_close_keeps_clocks_and_costs_no_delay(tmp_path: Path) -> None:
    policy = FrontierPolicy(delay=10.0, ip_delay=0.0)
    database = SqliteDatabase.open(tmp_path / "quadloom.db", SCHEMA)
    frontier = SqliteFrontier(database, policy, now=0.0)
    frontier.add([found(f"http://{host}.example/{n}") for host in "ab" for n in range(2)], 0.0)
    (visit,) = frontier.lease(1, 100.0)
    frontier.close()  # the visit was neither settled nor released
    database.close()
    database = SqliteDatabase.open(tmp_path / "quadloom.db", SCHEMA)
    frontier = SqliteFrontier(database, policy, now=101.0)
    other = frontier.lease(5, 101.0)
    assert len(other) == 1
    assert other[0].host != visit.host
    assert frontier.lease(5, 109.9) == []
    assert {v.host for v in frontier.lease(5, 110.0)} == {visit.host}
    database.close()


def test_changing_the_order_reorders_what_is_queued(tmp_path: Path) -> None:
    offered = [
        Discovery(d.href, d.key, d.host, d.fingerprint, depth, score=float(depth))
        for depth, d in ((n, found(f"http://a.example/{n}")) for n in range(6))
    ]
    keys = []
    for order in ("breadth-first", "importance"):
        database = SqliteDatabase.open(tmp_path / "quadloom.db", SCHEMA)
        policy = FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=9, order=order)
        frontier = SqliteFrontier(database, policy, now=0.0)
        frontier.add(offered, 0.0)
        keys.append([visit.key for visit in frontier.lease(9, 1.0)])
        frontier.close()
        database.close()
    assert keys[0] == [d.key for d in offered]
    assert keys[1] == keys[0][::-1]


def test_recent_fingerprints_forget_the_oldest_only() -> None:
    recent = RecentFingerprints(size=200)
    offered = [found(f"http://a.example/{number}") for number in range(1000)]
    for discovery in offered:
        recent.learn(discovery.fingerprint, 3, 1)
    assert recent.unknown(offered[-100:]) == []
    assert len(recent.unknown(offered[:800])) == 800
    better = found(offered[-1].href, depth=0)
    assert recent.unknown([better]) == [better]


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_new_places_change_the_order_and_leave_the_rest_in_memory(tmp_path: Path, share: float) -> None:
    """The next URLs of a host are in memory. After new scores and shorter ways they are in the order of the table."""
    chosen = random.Random(7)
    frontier, queue = opened(tmp_path, FrontierPolicy(delay=0.0, ip_delay=0.0))
    frontier.guide(share)
    scores: dict[int, float] = {}

    def scored(unread: Sequence[tuple[int, float]]) -> list[float | None]:
        return [scores.get(key) for key, _ in unread]

    urls = [found(f"http://a.example/{page}", depth=page % 3 + 1) for page in range(300)]
    frontier.add(urls, 0.0)
    for _ in range(40):
        (visit,) = frontier.lease(1, 0.0)
        frontier.settle([settled(visit)], 0.0)
        scores = {url.fingerprint: chosen.random() for url in chosen.sample(urls, chosen.choice((0, 1, 20)))}
        place: Place | None = FIRST_PLACE
        while place is not None:
            place = frontier.rescore(place, 50, scored)
        nearer = chosen.sample(range(300), chosen.choice((0, 1, 5)))
        frontier.add(
            [found(f"http://a.example/{page}", chosen.randint(0, 2), chosen.choice((2, 3, 3))) for page in nearer], 0.0
        )
        (host,) = frontier.loaded.table.loaded.values()
        stored = queue.front(host.id, len(host.buffer))
        assert [url[:8] for url in host.buffer] == [url[:8] for url in stored]
        if host.important:
            best = queue.most_important(host.id, host.important[0][0], len(host.important))
            assert [url[3] for url in host.important] == [url[3] for url in best]


def test_new_places_read_few_urls_again(tmp_path: Path) -> None:
    """Each URL that is read again is a block of the table: 64 of them for every new score were a sixth of the CPU time
    of a crawl's thread."""
    frontier, queue = opened(tmp_path, FrontierPolicy(delay=0.0, ip_delay=0.0))
    frontier.add([found(f"http://a.example/{page}") for page in range(300)], 0.0)
    held: set[int] = set()
    for step in range(60):
        (visit,) = frontier.lease(1, 0.0)
        (host,) = frontier.loaded.table.loaded.values()
        held.update(url[3] for url in host.buffer[step % 30 : step % 30 + 1])
        frontier.rescore(FIRST_PLACE, 300, lambda unread: [0.1 if key in held else None for key, _ in unread])
        frontier.settle([settled(visit)], 0.0)
        frontier.add([found(url[4], depth=0) for url in host.buffer[-2:-1]], 0.0)  # a shorter way to one of them
    assert len(queue.reads) <= 3, "the first 64 of the queue, and the next when they were handed out"


def test_a_new_time_for_a_known_page_leaves_the_next_urls_in_memory(tmp_path: Path) -> None:
    """After a ranking thousands of pages get other times for their next visit. None of them is in its host's queue."""
    frontier, queue = opened(tmp_path, FrontierPolicy(delay=0.0, ip_delay=0.0))
    frontier.add([found(f"http://a.example/{page}") for page in range(300)], 0.0)
    read: list[ScheduledPage] = []
    for step in range(60):
        (visit,) = frontier.lease(1, 0.0)
        frontier.settle([settled(visit)], 0.0)
        read.append(ScheduledPage(visit.fingerprint, visit.host, 1000.0 + step))
        frontier.reschedule(read, 0.0)
    assert len(queue.reads) <= 2, "the first 64 of the queue, once"
    assert frontier.next_due(0.0) == 0.0
    assert [page.due for page in frontier.soonest(2)] == []  # their host has unread URLs


def test_the_most_important_urls_of_a_long_queue_cost_what_those_of_a_short_one_cost(tmp_path: Path) -> None:
    """Judged by the steps of SQLite's machine. Thousands of URLs have the same score before the first ranking."""

    def steps(urls: int, name: str) -> int:
        database = SqliteDatabase.open(tmp_path / name, SCHEMA)
        frontier = SqliteFrontier(database, FrontierPolicy(delay=0.0, ip_delay=0.0, guided_share=0.5), now=0.0)
        frontier.guide(0.5)
        frontier.add([found(f"http://a.example/{page}", depth=page % 5) for page in range(urls)], 0.0)
        queue, taken = SqliteQueue(database, SqlFrontierValues(database), "breadth-first"), [0]
        (host_id,) = SqliteHosts(database).host_ids(["a.example"], create=False).values()
        database._connection.set_progress_handler(lambda: taken.__setitem__(0, taken[0] + 1), 10)
        assert len(queue.most_important(host_id, 3, 8)) == 8
        database._connection.set_progress_handler(None, 0)
        database.close()
        return taken[0]

    assert steps(5_000, "long.db") <= 2 * steps(50, "short.db")
