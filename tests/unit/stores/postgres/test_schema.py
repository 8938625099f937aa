"""Tables in parts by shard: an older database is cut when it is opened, and looks are confined to one part."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from contract.contract_backends import PostgresState
from contract.contract_records import links, settlement
from postgres_server import postgres
from quadloom.model.outcome import Outcome
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.postgres import database as database_module
from quadloom.stores.postgres import frontier_queue, frontier_tables
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.frontier_tables import host_number
from quadloom.stores.postgres.schema import HOST_BITS, IS_QUEUED, MIGRATIONS, PARTS
from quadloom.stores.shards import SHARDS, shard_of
from waiting import wait_until

POLICY = FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=1000)
HOSTS = [f"h{number}.example" for number in range(20)]


def everything(state: PostgresState) -> dict[str, list[tuple[object, ...]]]:
    """All rows that people or a crawl could see, with hosts by name."""
    database = state._database
    assert database is not None
    questions = {
        "host": "SELECT name, shard, queued, pages FROM host",
        "url": "SELECT h.name, u.fingerprint, u.href, u.state, u.visits, u.due, u.outcome FROM url u "
        "JOIN host h ON h.id = u.host_id",
        "queue": "SELECT h.name, q.priority, q.first, q.second, q.fingerprint FROM queue q "
        "JOIN host h ON h.id = q.host_id",
        "later": "SELECT h.name, l.shard, l.due, l.fingerprint FROM later l JOIN host h ON h.id = l.host_id",
        "robots": "SELECT h.name, r.data FROM robots r JOIN host h ON h.id = r.host_id",
        "page": "SELECT fingerprint, shard, host, outcome, record FROM page",
        "visit": "SELECT fingerprint, fetched_at, record FROM visit",
    }
    return {name: sorted(database.execute(question)) for name, question in questions.items()}


def older(monkeypatch: pytest.MonkeyPatch) -> PostgresState:
    """A database of the version before, in use: pages read, queued, waiting for a retry, over budget."""
    with monkeypatch.context() as patch:
        patch.setattr(database_module, "MIGRATIONS", MIGRATIONS[:3])
        patch.setattr(
            frontier_tables.PostgresHosts, "last_host_number", lambda _self: 0
        )  # the only two statements that know the new ids
        made = frontier_tables.PostgresHosts.host_ids

        def host_ids(self: frontier_tables.PostgresHosts, names: list[str], *, create: bool) -> dict[str, int]:
            if create:
                for name in names:
                    self._database.write(
                        "INSERT INTO host(name, site, shard) VALUES(%s, %s, %s) ON CONFLICT DO NOTHING",
                        (name, name, shard_of(name)),
                    )
            return made(self, names, create=False)

        patch.setattr(frontier_tables.PostgresHosts, "host_ids", host_ids)
        state = PostgresState(Path())
        column = PostgresDatabase.open(state._url)
        column.write(IS_QUEUED)  # which the statements of today ask for
        frontier = state.open(POLICY, 0.0)
        frontier.add([link for host in HOSTS for link in links(host, 8)], 0.0)
        visits = frontier.lease(60, 1.0)
        ended = [
            settlement(visit, Outcome.NEW if number % 3 else Outcome.FAILED, again_at=500.0 if number % 5 else None)
            for number, visit in enumerate(visits)
        ]
        with state.catalog.transaction():
            frontier.settle(ended, 1.0)
            state.catalog.record(ended, 1.0)
        assert state._database is not None
        ids = [row[0] for row in state._database.execute("SELECT id FROM host")]
        assert max(ids) < 1 << HOST_BITS
        state._database.write("INSERT INTO robots SELECT id, 'x'::bytea, 5 FROM host")
        column.write("ALTER TABLE host DROP COLUMN is_queued")
        column.close()
    return state


def test_an_older_database_is_cut_and_holds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    state = older(monkeypatch)
    before = everything(state)
    assert all(before[name] for name in ("url", "queue", "later", "page", "visit", "robots"))
    frontier = state.crash(2.0)
    assert everything(state) == before
    database = state._database
    assert database is not None
    for id_, shard, name in database.execute("SELECT id, shard, name FROM host"):
        assert id_ >> HOST_BITS == shard == shard_of(name)
    for table in ("url", "queue", "later", "page", "visit"):
        counted = database.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = %s::regclass", (table,))
        assert counted == [(PARTS,)]
        assert database.execute("SELECT to_regclass(%s)", (f"{table}_whole",)) == [(None,)]
    # It goes on: the rest is leased, and new hosts get numbers above the old ones.
    highest = max(host_number(row[0]) for row in database.execute("SELECT id FROM host"))
    frontier.add(links("new.example", 3), 3.0)
    (new,) = database.execute("SELECT id FROM host WHERE name = 'new.example'")
    assert host_number(new[0]) > highest
    leased = {visit.host for visit in frontier.lease(1000, 4.0)}
    assert "new.example" in leased and len(leased) > len(HOSTS) // 2
    state.close()


def test_copying_a_large_table_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    state = older(monkeypatch)
    assert state._database is not None
    state._database.write("ANALYZE url")
    monkeypatch.setattr(database_module, "_LARGE", 100)
    state.crash(2.0)
    (told,) = [record.getMessage() for record in caplog.records]
    assert "about 160 rows of the table url are copied" in told
    state.close()


def test_longer_queues_touch_no_index_of_hosts() -> None:
    """The indexes of hosts would otherwise get three entries for every host with a new link."""
    state = PostgresState(Path())
    frontier = state.open(POLICY, 0.0)
    frontier.add([link for host in HOSTS for link in links(host, 2)], 0.0)
    database = state._database
    assert database is not None

    def updates() -> tuple[int, int]:
        (found,) = database.execute(
            "SELECT pg_stat_get_xact_tuples_updated(c), pg_stat_get_xact_tuples_hot_updated(c) "
            "FROM (SELECT 'host'::regclass::oid AS c) AS host"
        )
        return found[0], found[1]

    with database.transaction():
        before = updates()
        frontier.add([link for host in HOSTS for link in links(host, 4)], 0.0)
        after = updates()
    assert after[0] - before[0] == len(HOSTS) == after[1] - before[1]
    state.close()


def test_little_is_read_ahead_for_hosts_that_give_one_url(monkeypatch: pytest.MonkeyPatch) -> None:
    """With more hosts than fit into memory, what is read beyond the first URL of a host is thrown away."""
    state = PostgresState(Path())
    frontier = state.open(POLICY, 0.0)
    frontier.add([link for host in HOSTS for link in links(host, 30)], 0.0)
    frontier = state.crash(1.0)
    asked: list[int] = []
    fronts = frontier_queue.PostgresQueue.fronts

    def noted(self: frontier_queue.PostgresQueue, ids: list[int], limit: int) -> object:
        asked.append(limit)
        return fronts(self, ids, limit)

    monkeypatch.setattr(frontier_queue.PostgresQueue, "fronts", noted)
    assert len(frontier.lease(len(HOSTS), 2.0)) == len(HOSTS)
    assert asked and max(asked) <= 4
    state.close()


def test_links_that_are_known_are_found_without_the_table() -> None:
    """A page's links are in as many blocks of the table, which are not in memory if it is large."""
    state = PostgresState(Path())
    frontier = state.open(POLICY, 0.0)
    frontier.add([link for host in HOSTS for link in links(host, 30)], 0.0)
    database = state._database
    assert database is not None
    vacuum(database, "url")
    asked = database.execute("SELECT host_id, fingerprint FROM url LIMIT 40")
    look = ExplainedLooks(database)
    found = frontier_tables.PostgresUrls(look, None).ranks(asked)  # type: ignore[arg-type]
    assert len(found) == 40
    assert "Index Only Scan" in look.plan
    assert sum(map(int, re.findall(r"Heap Fetches: (\d+)", look.plan))) == 0, look.plan
    state.close()


def vacuum(database: PostgresDatabase, table: str) -> None:
    """As autovacuum does, until every block is marked as visible to all. A block is not while another session may still
    see an older state of it, such as autovacuum itself, which looks at a new table at any moment."""
    hidden = (
        "SELECT sum(relpages - relallvisible)::int FROM pg_class JOIN pg_inherits ON oid = inhrelid"
        " WHERE inhparent = %s::regclass"
    )

    def is_visible() -> bool:
        database.write(f"VACUUM ANALYZE {table}")
        return database.execute(hidden, (table,)) == [(0,)]

    wait_until(is_visible, f"blocks of {table} are not visible to all sessions")


class ExplainedLooks:
    """Notes the plan of a question."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self.plan = ""

    def execute(self, statement: str, values: tuple[object, ...]) -> list[tuple[object, ...]]:
        self.plan = "\n".join(row[0] for row in self._database.execute(f"EXPLAIN ANALYZE {statement}", values))
        return self._database.execute(statement, values)


def test_looks_for_one_host_touch_one_part() -> None:
    database = PostgresDatabase.open(postgres().url())
    for statement in (
        "SELECT * FROM url WHERE host_id = %s AND fingerprint = 1",
        "SELECT * FROM queue WHERE host_id = %s ORDER BY priority, first, second, fingerprint LIMIT 5",
    ):
        plan = "\n".join(row[0] for row in database.execute(f"EXPLAIN {statement}", ((200 << HOST_BITS) + 1,)))
        table = statement.split()[3]
        assert set(re.findall(rf"{table}_(\d\d)", plan)) == {f"{200 * PARTS // SHARDS:02d}"}, plan
    database.close()
