"""A command borrows the shards of some sites from running workers; statistics of all workers are one."""

from __future__ import annotations

from pathlib import Path

import pytest

from postgres_server import postgres
from quadloom.crawling.cluster.borrowing import borrowed, shards_of
from quadloom.crawling.subscriptions.notify import ChangeNotifier
from quadloom.model.subscription import Subscription
from quadloom.settings import Settings, StoreSettings
from quadloom.stores.backends import open_state
from quadloom.stores.shards import SHARDS, shard_of
from quadloom.stores.statistics import STATISTICS, Statistics
from quadloom.warehouse import Warehouse
from unit.crawling.cluster.test_membership import Session, member
from waiting import wait_until

pytestmark = pytest.mark.cluster


def test_workers_give_back_what_a_command_wants_and_get_it_again(tmp_path: Path) -> None:
    url, session, other = postgres().url(), Session(), Session()
    first, one = member(url, session, tmp_path / "one")
    second, two = member(url, other, tmp_path / "two")
    _, command = member(url, Session(), tmp_path / "command")
    wanted = frozenset({5, 77, 200})
    with first, second:
        wait_until(lambda: len(one.owned | two.owned) == SHARDS, "the workers own everything")
        with borrowed(command, wanted, 1.0):
            assert command.owned == wanted
            wait_until(lambda: len(one.owned) + len(two.owned) == SHARDS - 3, "the workers keep the others")
        wait_until(lambda: len(one.owned | two.owned) == SHARDS, "and then own everything again")
        assert not command.owned
        assert not session.errors and not other.errors


def test_a_dead_command_wants_nothing(tmp_path: Path) -> None:
    url = postgres().url()
    worker, shards = member(url, Session(), tmp_path / "one")
    _, command = member(url, Session(), tmp_path / "command")
    command.want({1, 2})
    with worker:
        wait_until(lambda: len(shards.owned) == SHARDS - 2, "both are left alone")

        _expire(url, command.owner)
        wait_until(lambda: len(shards.owned) == SHARDS, "until the command is dead")


def test_which_shards_hosts_have() -> None:
    assert shards_of(["www.example.org", "*.example.org"]) == {shard_of("example.org")}
    assert shards_of(["example.org", "shop.*"]) == frozenset(range(SHARDS)), "may be any site"


def test_counts_of_all_workers_are_one(tmp_path: Path) -> None:
    """One worker has indexed a page, another has replaced its statements after the site changed hands."""
    settings = _settings(postgres().url())
    parts = {"one": (b"<s> <p> <o> <g> .\n<s> <q> <o> <g> .", 1), "two": (b"<s> <q> <o> <g> .", -1)}
    for name, (lines, sign) in parts.items():
        (tmp_path / name).mkdir()
        state = open_state(tmp_path / name, settings, writable=True)
        counts = Statistics()
        counts.count(lines, sign)
        STATISTICS.put_encoded(state.catalog, counts.encode())
        state.close()
    reader = open_state(tmp_path / "desk", settings, writable=False)
    assert dict(+Statistics.saved(reader.catalog).properties) == {"p": 1}
    reader.close()
    writer = open_state(tmp_path / "one", settings, writable=True)
    again = Statistics()
    again.count(b"<s> <p> <o> <g> .")
    STATISTICS.put_encoded_for_all(writer.catalog, again.encode())
    assert len(STATISTICS.get_all(writer.catalog)) == 1, "a rebuild counts for all"
    writer.close()


def test_subscriptions_of_another_machine_are_followed(tmp_path: Path) -> None:
    settings = _settings(postgres().url())
    with Warehouse.open(tmp_path / "one", settings=settings) as worker:
        stores = worker.stores
        notifier = ChangeNotifier(stores.catalog, stores.outbox, stores.quads)
        notifier.reload_if_changed()
        assert not notifier.interests
        with Warehouse.open(tmp_path / "two", settings=settings) as other:
            other.subscriptions.add(Subscription(id="s", sites=("example.org",)))
        notifier.reload_if_changed()
        assert [one.id for one in notifier.interests.subscriptions] == ["s"]


def _settings(url: str) -> Settings:
    return Settings(stores=StoreSettings(frontier=url, catalog="postgresql:"))


def _expire(url: str, owner: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("UPDATE worker SET until='-infinity' WHERE name=%s", (owner,))
