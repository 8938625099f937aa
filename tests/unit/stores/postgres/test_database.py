"""The PostgreSQL connection: a server that is killed, addresses that are wrong, words that must not be said."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from postgres_server import PostgresServer, postgres, start_postgres
from quadloom.errors import QuadloomError, SettingsError, StoreError, StoreUnavailable
from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.postgres import database as module
from quadloom.stores.postgres.arrays import columns
from quadloom.stores.postgres.catalog import PostgresCatalog
from quadloom.stores.postgres.database import PostgresDatabase, plain
from quadloom.stores.postgres.frontier import PostgresFrontier
from quadloom.stores.postgres.schema import MIGRATIONS
from quadloom.stores.postgres.shard_leases import ShardLeases
from quadloom.stores.postgres.shards import PostgresShards
from quadloom.stores.postgres.state import described
from quadloom.stores.shards import SHARDS

PAGES, BATCH = 300, 6


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    made = start_postgres(fsync=True)
    yield made
    made.remove()


def page(number: int) -> Discovery:
    url = Url.parse(f"http://h{number % 9}.example/{number}")
    return Discovery(url.href, url.key, url.host, url.fingerprint, 1)


def ended(visit: Visit) -> Settlement:
    number = int(visit.href.rpartition("/")[2])
    row = PageRow(
        fingerprint=visit.fingerprint, key=visit.key, href=visit.href, host=visit.host, fetched_at=visit.not_before
    )
    further = tuple(page(n) for n in (2 * number + 1, 2 * number + 2, number // 2) if n < PAGES)
    return Settlement(visit, Outcome.NEW, row, HostPace(visit.host, "", 0.0, 0.0), further)


def test_a_killed_server_loses_nothing_that_was_acknowledged(server: PostgresServer) -> None:
    """SIGKILL at two random moments of a crawl, and a new start each time."""
    database = PostgresDatabase.open(server.url("crawl"))
    leases, catalog = ShardLeases("worker"), PostgresCatalog(database)
    shards = PostgresShards(server.url("crawl"), database, leases, catalog)
    frontier = PostgresFrontier(database, FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=9), shards, now=time.time())
    leases.renew(database)
    shards.take(SHARDS, time.time())
    frontier.add([page(0)], time.time())
    over, chance = threading.Event(), random.Random(5)
    kills: list[float] = []

    def disturb() -> None:
        while len(kills) < 2 and not over.wait(chance.uniform(0.05, 0.3)):
            server.kill()
            kills.append(time.monotonic())
            server.start()

    killer = threading.Thread(target=disturb)
    killer.start()
    acknowledged: list[int] = []
    refused = 0
    while len(acknowledged) < PAGES:
        settlements = [ended(visit) for visit in frontier.lease(BATCH, time.time())]
        while settlements:
            try:
                with catalog.transaction():
                    frontier.settle(settlements, time.time())
                    catalog.record(settlements, time.time())
            except StoreUnavailable as error:
                assert error.hint
                refused += 1
                continue
            acknowledged += [settlement.visit.fingerprint for settlement in settlements]
            break
        time.sleep(0.01)
    over.set()
    killer.join(timeout=60)
    assert kills, "the server was never killed"
    stats = frontier.stats(time.time())
    assert (stats.done, stats.total) == (PAGES, PAGES)
    rows = catalog.scan(limit=PAGES + 1)
    assert {row.fingerprint for row in rows} == set(acknowledged)
    assert len(acknowledged) == len(set(acknowledged)), "an acknowledged page came back"
    assert catalog.counts()["outcome:new"] == PAGES
    database.close()


def test_a_transaction_that_lost_its_connection_is_undone_and_may_be_tried_again() -> None:
    url = postgres().url()
    database, other = PostgresDatabase.open(url), PostgresDatabase.open(url)
    catalog = PostgresCatalog(database)
    undone: list[str] = []
    database.on_rollback(lambda: undone.append("undone"))
    with pytest.raises(StoreUnavailable), catalog.transaction():
        catalog.values.put("name", b"value")
        own = database.execute("SELECT pg_backend_pid()")[0][0]
        other.execute("SELECT pg_terminate_backend(%s)", (own,))
        time.sleep(0.1)
        catalog.values.put("other", b"value")
        catalog.values.get("other")
    assert undone == ["undone"]
    assert catalog.values.names("") == []
    catalog.values.put("name", b"value")
    assert catalog.values.get("name") == b"value"
    database.close()
    other.close()


@pytest.mark.parametrize(
    ("url", "kind", "hint"),
    [
        ("postgresql://quadloom:SECRET@127.0.0.1:1/postgres", StoreUnavailable, "start the server"),
        ("postgresql://quadloom:SECRET@nowhere.invalid/postgres", StoreError, "host name"),
        ("postgresql://quadloom:SECRET@127.0.0.1:{port}/nodatabase", StoreError, "createdb"),
        ("postgresql://quadloom:SECRET@127.0.0.1:{port}/postgres?nonsense=SECRET", SettingsError, "postgresql://user@"),
        ("postgresql://nobody:SECRET@127.0.0.1:{port}/postgres", StoreError, "stores.frontier"),
    ],
)
def test_what_is_wrong_with_an_address_is_told_without_its_password(url: str, kind: type, hint: str) -> None:
    with pytest.raises(QuadloomError) as refusal:
        PostgresDatabase.open(url.format(port=postgres().port), patience=0.3)
    assert type(refusal.value) is kind
    assert hint in refusal.value.hint
    assert "SECRET" not in f"{refusal.value} {refusal.value.hint} {refusal.value!r} {refusal.value.__cause__}"


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingsError) as refusal:
        PostgresDatabase.open("postgresql://127.0.0.1/x")
    assert refusal.value.hint == "pip install quadloom[cluster]"


def test_tables_of_a_newer_version_are_left_alone() -> None:
    url = postgres().url()
    with pytest.raises(StoreError, match="no warehouse"):
        PostgresDatabase.read_only(url)
    database = PostgresDatabase.open(url)
    database.write("UPDATE quadloom_schema SET version = version + 1")
    database.close()
    for way in (PostgresDatabase.open, PostgresDatabase.read_only):
        with pytest.raises(StoreError, match=f"version {len(MIGRATIONS) + 1}"):
            way(url)


@pytest.mark.parametrize("is_additive", [True, False])
def test_tables_change_under_running_workers_only_if_that_breaks_none(
    is_additive: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, next_version = postgres().url(), len(MIGRATIONS) + 1
    database = PostgresDatabase.open(url)
    leases = ShardLeases("old:1", duration=20.0)
    leases.renew(database)
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, ("ALTER TABLE page ADD COLUMN new int",)))
    monkeypatch.setattr(module, "ADDITIVE", frozenset({next_version} if is_additive else ()))
    if not is_additive:
        with pytest.raises(StoreError, match="would break 1 workers"):
            PostgresDatabase.open(url)
        leases.leave(database)
    PostgresDatabase.open(url).close()
    assert database.schema_version() == next_version
    leases.renew(database)
    assert leases.is_outdated, "the old worker notices at its heartbeat"
    database.close()


def test_many_may_make_the_tables_at_once() -> None:
    url = postgres().url()
    with ThreadPoolExecutor(6) as pool:
        databases = list(pool.map(lambda _: PostgresDatabase.open(url), range(6)))
    for database in databases:
        assert database.execute("SELECT version FROM quadloom_schema") == [(len(MIGRATIONS),)]
        database.close()


def test_a_reader_cannot_write() -> None:
    url = postgres().url()
    PostgresDatabase.open(url).close()
    reader = PostgresDatabase.read_only(url)
    with pytest.raises(StoreError):
        PostgresCatalog(reader).values.put("name", b"value")
    reader.close()


def test_arrays_come_back_as_they_were_sent() -> None:
    database = PostgresDatabase.open(postgres().url())
    rows = [(1 << 62, -3, 7, -0.1, "ä\n\"'{}", b"\x00\xff"), (-(1 << 63), 2, 0, float("inf"), None, b"")]
    casts = "%s::bigint[], %s::int[], %s::smallint[], %s::float8[], %s::text[], %s::bytea[]"
    assert database.execute(f"SELECT * FROM unnest({casts})", columns("qihdsy", rows)) == rows
    assert database.execute(f"SELECT * FROM unnest({casts})", columns("qihdsy", [])) == []
    database.close()


@pytest.mark.parametrize(("text", "held"), [("a\x00b", "ab"), ("é\x00", "é"), ("\ud800x", "?x"), ("plain", "plain")])
def test_text_that_postgresql_cannot_hold(text: str, held: str) -> None:
    assert plain(text) == held


def test_a_server_that_accepts_no_writes_is_named_as_that() -> None:
    with closing(PostgresDatabase.open(postgres().url())) as database:
        database.write("SET default_transaction_read_only = on")  # as on a standby
        with pytest.raises(StoreError, match="accepts no writes: it is a standby") as refused:
            ShardLeases("worker").renew(database)
        assert "target_session_attrs=read-write" in refused.value.hint
        assert not isinstance(refused.value, StoreUnavailable), "waiting would not help"


@pytest.mark.parametrize("ahead", [3600.0, -90.0])
def test_check_compares_the_clock_of_this_machine(ahead: float, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(stores=StoreSettings(frontier=postgres().url(), catalog="postgresql:"))
    assert described(settings).clock_error == 0.0
    monkeypatch.setattr("quadloom.stores.postgres.state.unix_time", lambda: time.time() + ahead)
    assert described(settings).clock_error == pytest.approx(ahead, abs=5.0)
