"""SQLite migrations: older files are brought up to date, also by a process that is killed in between."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from quadloom.errors import DiskFull, StoreError
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import APPLICATION_ID, SqliteDatabase
from quadloom.stores.sqlite.schema import SCHEMA

# As a later version of the program would have them: a new column that is filled from an old one, then an index.
LATER = (
    *SCHEMA,
    ("ALTER TABLE value ADD COLUMN size INTEGER NOT NULL DEFAULT 0", "UPDATE value SET size = length(data)"),
    ("CREATE TABLE note(id INTEGER PRIMARY KEY, text TEXT NOT NULL)", "INSERT INTO note(text) VALUES('once')"),
)
NEXT = len(SCHEMA)  # place of the first later migration
TODAY = Path(__file__).with_name("today.sql")


def version(path: Path) -> int:
    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])
    finally:
        connection.close()


def old_file(path: Path) -> None:
    database = SqliteDatabase.open(path)
    SqliteCatalog(database).values.put("name", b"12345")
    database.close()


def migrated(path: Path) -> tuple[int, str, int]:
    database = SqliteDatabase.open(path, LATER)
    size = database.execute("SELECT size FROM value WHERE name='name'").fetchone()[0]
    notes = database.execute("SELECT group_concat(text) FROM note").fetchone()[0]
    found = (size, notes, database.schema_version())
    assert SqliteCatalog(database).values.get("name") == b"12345"
    database.close()
    return found


def test_a_new_file_gets_all_migrations(tmp_path: Path) -> None:
    database = SqliteDatabase.open(tmp_path / "q.db", LATER)
    assert database.schema_version() == len(LATER)
    assert database.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
    database.close()
    SqliteDatabase.open(tmp_path / "q.db", LATER).close()
    SqliteDatabase.read_only(tmp_path / "q.db", LATER).close()


def test_an_older_file_is_brought_up_to_date(tmp_path: Path) -> None:
    old_file(tmp_path / "q.db")
    assert version(tmp_path / "q.db") == len(SCHEMA)
    assert migrated(tmp_path / "q.db") == (5, "once", len(LATER))
    assert migrated(tmp_path / "q.db") == (5, "once", len(LATER)), "and no migration runs twice"


def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    SqliteDatabase.open(tmp_path / "q.db", LATER).close()
    for open_it in (SqliteDatabase.open, SqliteDatabase.read_only):
        with pytest.raises(StoreError, match=f"schema version {len(LATER)}") as refusal:
            open_it(tmp_path / "q.db")
        assert "newest Quadloom" in (refusal.value.hint or "")
    assert version(tmp_path / "q.db") == len(LATER)


def test_a_reader_of_an_older_file_names_the_command_that_migrates(tmp_path: Path) -> None:
    old_file(tmp_path / "q.db")
    with pytest.raises(StoreError, match=f"schema version {len(SCHEMA)}") as refusal:
        SqliteDatabase.read_only(tmp_path / "q.db", LATER)
    assert "`quadloom verify`" in (refusal.value.hint or "")
    assert version(tmp_path / "q.db") == len(SCHEMA), "a reader changes nothing"


def test_a_migration_that_fails_leaves_the_version_before(tmp_path: Path) -> None:
    old_file(tmp_path / "q.db")
    broken = (*LATER[: NEXT + 1], ("CREATE TABLE half(x)", "INSERT INTO missing VALUES(1)"))
    with pytest.raises(StoreError, match="no such table: missing"):
        SqliteDatabase.open(tmp_path / "q.db", broken)
    assert version(tmp_path / "q.db") == len(SCHEMA) + 1
    assert migrated(tmp_path / "q.db") == (5, "once", len(LATER))


@pytest.mark.parametrize("statement", [*LATER[NEXT], f"PRAGMA user_version={NEXT + 1}", LATER[NEXT + 1][0], "COMMIT 2"])
def test_a_kill_between_two_steps_leaves_one_version_or_the_next(tmp_path: Path, statement: str) -> None:
    """The child ends itself before the statement; `COMMIT 2` = after the second migration has committed."""
    script = """
        import os, signal, sys
        from pathlib import Path
        from unit.stores.sqlite.test_schema import LATER, NEXT
        from quadloom.stores.sqlite.database import SqliteDatabase

        class Killed(SqliteDatabase):
            def execute(self, statement, values=()):
                if statement == sys.argv[2] or (sys.argv[2] == "COMMIT 2" and statement == LATER[NEXT + 1][0]):
                    os.kill(os.getpid(), signal.SIGKILL)
                return super().execute(statement, values)

        Killed.open(Path(sys.argv[1]), LATER)
    """
    path = tmp_path / "q.db"
    old_file(path)
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(path), statement],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    assert version(path) in (len(SCHEMA), len(SCHEMA) + 1)
    assert migrated(path) == (5, "once", len(LATER))


def test_a_full_disk_during_a_migration_loses_nothing(tmp_path: Path) -> None:
    old_file(tmp_path / "q.db")
    limited = (*SCHEMA, ("PRAGMA max_page_count=1", "CREATE TABLE big AS SELECT zeroblob(10000000) AS x"))
    with pytest.raises(DiskFull):
        SqliteDatabase.open(tmp_path / "q.db", limited)
    assert version(tmp_path / "q.db") == len(SCHEMA)
    assert migrated(tmp_path / "q.db") == (5, "once", len(LATER))


def test_a_database_of_today_opens(tmp_path: Path) -> None:
    """`today.sql` is a dump of a warehouse that a crawl made: with every later schema it must still open."""
    connection = sqlite3.connect(tmp_path / "q.db")
    connection.executescript(TODAY.read_text(encoding="utf-8"))
    connection.close()
    database = SqliteDatabase.open(tmp_path / "q.db")
    catalog = SqliteCatalog(database)
    assert database.schema_version() == len(SCHEMA)
    pages = catalog.scan()
    assert [page.outcome for page in pages] == ["new"] * len(pages)
    assert len(pages) == 3
    assert all(catalog.visits.of(page.fingerprint) for page in pages)
    assert catalog.unindexed(10) == []
    database.close()
    columns = sqlite3.connect(tmp_path / "q.db"), sqlite3.connect(tmp_path / "new.db")
    SqliteDatabase.open(tmp_path / "new.db").close()
    tables = [
        sorted(connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))
        for connection in columns
    ]
    assert [name for name, _ in tables[0]] == [name for name, _ in tables[1]]
    for connection in columns:
        connection.close()
