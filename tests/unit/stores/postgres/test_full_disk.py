"""A server whose disk is full: who may wait does, and the cause is what people read."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest

from postgres_server import postgres
from quadloom.errors import DiskFull, ServerFull, StoreUnavailable
from quadloom.process.retry import retry_when_unavailable
from quadloom.stores.postgres.database import PostgresDatabase
from waiting import wait_until

pytestmark = pytest.mark.cluster
# What the server says when a table cannot grow: the error of a full disk, from a trigger that another session may drop.
_FULL = """CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$"""
_TRIGGER = "CREATE TRIGGER is_full BEFORE INSERT ON leased FOR EACH ROW EXECUTE FUNCTION full_disk()"
_ROOM = "DROP TRIGGER is_full ON leased"
_INSERT = "INSERT INTO leased VALUES(%s, '')"


class FullServer:
    def __init__(self) -> None:
        self.url = postgres().url()
        self.database = PostgresDatabase.open(self.url)
        self.tell(_FULL, _TRIGGER)

    def tell(self, *statements: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)  # type: ignore[call-overload]


@pytest.fixture
def full() -> Iterator[FullServer]:
    server = FullServer()
    yield server
    server.database.close()


def test_a_process_that_does_not_wait_gets_the_cause(full: FullServer) -> None:
    for kind in (DiskFull, StoreUnavailable):
        with pytest.raises(kind, match="no room left on the server"):
            full.database.write(_INSERT, ("one",))


def test_what_follows_in_the_same_transaction_does_not_hide_the_cause(full: FullServer) -> None:
    with pytest.raises(ServerFull, match="no room left"), full.database.transaction():
        with pytest.raises(ServerFull, match="no room left"):
            full.database.execute(f"{_INSERT} RETURNING 1", ("one",))
        full.database.execute("SELECT 1")


@pytest.mark.parametrize("alone", [True, False])
def test_a_worker_waits_until_there_is_room(full: FullServer, alone: bool) -> None:
    database = full.database
    database.waits = lambda: True

    def write() -> None:
        with database.transaction():
            database.write(_INSERT, ("one",))

    def run() -> None:
        if alone:
            database.write(_INSERT, ("one",))
        else:
            retry_when_unavailable(write)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_until(lambda: database.waiting.known(), "others can see that it waits")
    time.sleep(0.2)
    assert thread.is_alive()
    full.tell(_ROOM)
    thread.join(timeout=30.0)
    assert not thread.is_alive(), "it goes on when there is room"
    with psycopg.connect(full.url) as connection:
        assert connection.execute("SELECT count(*) FROM leased").fetchall() == [(1,)]


def test_who_is_stopped_meanwhile_ends(full: FullServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quadloom.process.retry._TRANSACTION_PAUSES", (0.0,))
    full.database.waits = lambda: False

    def write() -> None:
        with full.database.transaction():
            full.database.write(_INSERT, ("one",))

    with pytest.raises(ServerFull):
        retry_when_unavailable(write)
