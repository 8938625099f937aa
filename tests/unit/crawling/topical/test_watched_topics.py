"""Which sites of a watched topic are due, on one machine and on many, and when a round of all workers is over."""

from __future__ import annotations

import threading
import time
from contextlib import closing

from postgres_server import postgres
from quadloom.crawling.topical.relevance import Topic
from quadloom.crawling.topical.sites import SeedSite
from quadloom.crawling.topical.watched_topics import WATCHED, WatchedTopic, watch
from quadloom.stores.postgres.catalog import PostgresCatalog
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.shards import shard_of

HOSTS = ("a.example", "b.test", "c.example.org")
SHARDS = [shard_of(host) for host in HOSTS]
WEEKLY = WatchedTopic(
    topic=Topic("Travel", "paris"), sites=tuple(SeedSite(f"http://{host}/") for host in HOSTS), every=7.0, budget=100
)


def test_one_machine_asks_all_sites() -> None:
    due = WEEKLY.due(1.0, None)
    assert due is not None and (due.sites, due.budget) == (WEEKLY.sites, 100)
    served = WEEKLY.served(due, 10.0, None)
    assert (served.next_at, served.rounds) == (17.0, 1)
    assert served.due(16.9, None) is None and served.due(17.0, None) is not None


def test_workers_ask_the_sites_of_their_shards_with_a_part_of_the_budget() -> None:
    assert len(set(SHARDS)) == 3, "a site in each"
    first = WEEKLY.due(1.0, SHARDS[:2])
    assert first is not None and [site.host for site in first.sites] == ["a.example", "b.test"] and first.budget == 67
    assert WEEKLY.due(1.0, [number for number in range(256) if number not in SHARDS]) is None
    served = WEEKLY.served(first, 10.0, SHARDS[:2])
    assert (served.next_at, served.rounds) == (0.0, 0), "one site was not asked yet"
    assert served.due(11.0, SHARDS[:2]) is None
    second = served.due(11.0, SHARDS)
    assert second is not None and [site.host for site in second.sites] == ["c.example.org"]
    over = served.served(second, 12.0, SHARDS)
    assert (over.next_at, over.rounds) == (17.0, 1)
    again = over.due(17.0, SHARDS)
    assert again is not None and len(again.sites) == 2, "each shard by its own time"


def test_a_shard_that_was_given_back_meanwhile_is_still_due() -> None:
    due = WEEKLY.due(1.0, SHARDS)
    assert due is not None
    served = WEEKLY.served(due, 10.0, SHARDS[1:])
    assert set(served.shard_times) == set(SHARDS[1:]) and served.rounds == 0
    left = served.due(10.0, SHARDS[:1])
    assert left is not None and [site.host for site in left.sites] == ["a.example"]


def test_two_workers_that_finish_at_once_both_count() -> None:
    """Each reads the topic, adds its shards and writes it; the lock lets one go after the other."""
    url = postgres().url()
    with closing(PostgresDatabase.open(url)) as database:
        watch(PostgresCatalog(database), WEEKLY)

    def finish(shards: list[int]) -> None:
        with closing(PostgresDatabase.open(url)) as database:
            catalog = PostgresCatalog(database)
            with catalog.transaction():
                watched = WATCHED.get(catalog, WEEKLY.name, lock=True)
                assert watched is not None
                due = watched.due(1.0, shards)
                assert due is not None
                time.sleep(0.3)
                watch(catalog, watched.served(due, 10.0, shards))

    threads = [threading.Thread(target=finish, args=(part,)) for part in (SHARDS[:1], SHARDS[1:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with closing(PostgresDatabase.open(url)) as database:
        watched = WATCHED.get(PostgresCatalog(database), WEEKLY.name)
    assert watched is not None and set(watched.shard_times) == set(SHARDS) and watched.rounds == 1
