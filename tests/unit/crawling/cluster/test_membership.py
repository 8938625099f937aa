"""A worker among others, on a real database: what it keeps, what it gives back, what it tries again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from postgres_server import postgres
from quadloom.crawling.cluster.membership import OUTDATED, Membership
from quadloom.crawling.run.control import ControlRequest
from quadloom.errors import StoreError, UsageError
from quadloom.model.outcome import PageRow
from quadloom.planning.scope import Scope, ScopeRecord
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.backends import open_state
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.shard_leases import Claim, ShardLeases
from quadloom.stores.protocols.cluster import Shards
from quadloom.stores.shards import SHARDS
from waiting import wait_until

pytestmark = pytest.mark.cluster


class Session:
    """A crawl session whose indexer is set by hand, and whose thread is the caller's."""

    def __init__(self) -> None:
        self.left: frozenset[int] = frozenset()
        self.acquisitions = 0
        self.failures = 0
        self.shards = 0
        self.wanted = 0.0
        self.requests: list[str] = []
        self.errors: list[BaseException] = []
        self.waits: dict[str, float] = {}
        self.stopped = False

    def call(self, action: Callable[[], object]) -> object:
        return action()

    def acquired(self, rows: list[PageRow]) -> None:
        self.acquisitions += 1
        if self.failures:
            self.failures -= 1
            raise StoreError("the archive is away")

    def set_part(self, owned: float, wanted: float) -> None:
        self.shards, self.wanted = round(owned * SHARDS), wanted

    def stuck(self) -> dict[str, float]:
        return self.waits

    def unfinished_shards(self) -> frozenset[int]:
        return self.left

    def reload_scope(self) -> None:
        return

    def reload(self) -> None:
        return

    def fail(self, error: BaseException) -> None:
        self.errors.append(error)

    def stop(self) -> None:
        self.stopped = True

    def answer(self, request: ControlRequest) -> str:
        if request.verb == "stop":
            raise UsageError("not now", hint="later")
        self.requests.append(request.verb)
        return f"{request.verb} done"


def member(url: str, session: Session, folder: Path) -> tuple[Membership, Shards]:
    """A worker in a directory of its own; its state stays open until the end of the test process."""
    folder.mkdir()
    settings = Settings(stores=StoreSettings(frontier=url, catalog="postgresql:"))
    state = open_state(folder, settings, writable=True)
    state.frontier(Scope(ScopeRecord("any")), 0.0)
    assert state.shards is not None
    return Membership(session, state.shards, heartbeat=0.02, notice=lambda _text: None), state.shards  # type: ignore[arg-type]


def test_a_shard_is_kept_until_all_its_pages_are_marked_as_indexed(tmp_path: Path) -> None:
    url, session = postgres().url(), Session()
    membership, shards = member(url, session, tmp_path / "one")
    with membership:
        wait_until(lambda: len(shards.owned) == SHARDS, "a worker alone owns everything")
        session.left = frozenset({3, 200})  # both have pages at the indexer; 3 is among those that will be given back
        database = PostgresDatabase.open(url)
        ShardLeases("guest").renew(database)
        wait_until(lambda: len(shards.owned) == SHARDS // 2 + 1, "all others of the surplus are given back")
        assert session.left < shards.owned
        session.left = frozenset()
        wait_until(lambda: len(shards.owned) == SHARDS // 2, "the last one follows when its marks are written")
        assert 3 not in shards.owned
        database.close()


def test_a_machine_whose_clock_is_wrong_says_so_once(tmp_path: Path) -> None:
    membership, shards = member(postgres().url(), Session(), tmp_path / "one")
    notices: list[str] = []
    membership._notice = notices.append
    shards.leases._clock = lambda: time.time() - 3600.0  # type: ignore[attr-defined]
    with membership:
        wait_until(lambda: any("3600 s behind that of the database" in text for text in notices), "a notice")
        time.sleep(0.5)  # many heartbeats
        shards.leases._clock = time.time  # type: ignore[attr-defined]
        wait_until(lambda: "the clock of this machine is right again" in notices, "another one")
    assert len([text for text in notices if "behind" in text]) == 1


def test_a_worker_says_what_its_thread_waits_for_while_that_cannot(tmp_path: Path) -> None:
    session, notices = Session(), list[str]()
    membership, _ = member(postgres().url(), session, tmp_path / "one")
    membership._notice = notices.append
    sent: list[dict[str, float]] = []
    membership._amend = lambda record, stuck: (sent.append(stuck), record)[1]
    with membership:
        session.waits = {"the archive, which does not answer": 5.0}
        wait_until(lambda: sent, "a heartbeat with the reason")
        session.waits = {}
        wait_until(lambda: "the store is back" in notices, "and its end")
    assert sent[0] == {"the archive, which does not answer": 5.0}
    assert notices.count("waiting for a store: the archive, which does not answer") == 1


def test_a_worker_leaves_when_a_newer_version_has_changed_the_tables(tmp_path: Path) -> None:
    url, session, notices = postgres().url(), Session(), list[str]()
    membership, _ = member(url, session, tmp_path / "one")
    membership._notice = notices.append
    with membership:
        assert not session.stopped
        database = PostgresDatabase.open(url)
        database.write("UPDATE quadloom_schema SET version = version + 1")
        wait_until(lambda: session.stopped, "it was stopped")
        database.close()
    assert notices.count(OUTDATED) == 1


def test_each_of_two_workers_is_told_its_share(tmp_path: Path) -> None:
    url, first, second = postgres().url(), Session(), Session()
    one, _ = member(url, first, tmp_path / "one")
    two, _ = member(url, second, tmp_path / "two")
    with one:
        wait_until(lambda: first.shards == SHARDS, "a worker alone has the whole bandwidth")
        with two:
            wait_until(lambda: second.shards == SHARDS // 2, "the second has half")
            wait_until(lambda: first.shards == SHARDS // 2, "and the first no more than that")


def test_what_a_former_owner_left_is_looked_at_until_it_could_be(tmp_path: Path) -> None:
    session = Session()
    session.failures = 2
    membership, shards = member(postgres().url(), session, tmp_path / "one")
    with membership:
        wait_until(lambda: len(shards.owned) == SHARDS, "all is owned")
        wait_until(lambda: session.acquisitions >= 3 and not membership._unindexed, "two failures, then a success")
        before = session.acquisitions
        time.sleep(1.0)  # many heartbeats
    assert session.acquisitions == before, "and it was not asked again after that"


def test_shards_that_a_worker_owns_without_knowing_are_taken_again(tmp_path: Path) -> None:
    """The lease is alive, so no other worker may have them: without this, nobody read their sites again."""
    session = Session()
    membership, shards = member(postgres().url(), session, tmp_path / "one")
    with membership:
        wait_until(lambda: session.shards == SHARDS, "a worker alone has all")
        shards.lose(range(0, SHARDS, 2))
        wait_until(lambda: len(shards.owned) == SHARDS, "they are taken again")


def test_shards_that_are_taken_during_a_heartbeat_are_not_lost() -> None:
    leases = ShardLeases("one")
    leases.took([Claim(1, 1, True, "")])

    class Database:
        """Another thread takes a shard after the server has looked, and before its answer arrives."""

        def execute(self, statement: str, values: object = ()) -> list[tuple[float, ...]]:
            if statement.startswith("INSERT"):
                return [(time.time(), 1)]
            leases.took([Claim(2, 1, True, "")])
            return [(1, 1)]

    assert leases.renew(Database()) == frozenset()  # type: ignore[arg-type]
    assert set(leases.epochs) == {1, 2}
