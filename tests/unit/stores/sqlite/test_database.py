"""The database's owner: lock, identity, readers, and what failing disks become."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from quadloom.errors import DiskFull, StoreError, WarehouseLocked
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.lock import WarehouseLock, is_working
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase, translate
from quadloom.stores.sqlite.frontier import SqliteFrontier
from quadloom.stores.sqlite.schema import SCHEMA


def test_one_owner_at_a_time(tmp_path: Path) -> None:
    lock = WarehouseLock(tmp_path)
    with pytest.raises(WarehouseLocked) as refusal:
        WarehouseLock(tmp_path)
    assert refusal.value.hint
    lock.release()
    lock.release()
    WarehouseLock(tmp_path).release()


def test_another_process_holds_the_lock_until_it_is_killed(tmp_path: Path) -> None:
    script = """
        import sys, time
        from pathlib import Path
        from quadloom.stores.lock import WarehouseLock, is_working
        lock = WarehouseLock(Path(sys.argv[1]))
        print("locked", flush=True)
        time.sleep(60)
    """
    owner = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "locked\n"
        with pytest.raises(WarehouseLocked, match=f"process {owner.pid}"):
            WarehouseLock(tmp_path)
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    WarehouseLock(tmp_path).release()


def test_a_lock_that_is_held_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    """`seeds add` and `scope` have it that long. The other process releases it while this one waits."""
    script = """
        import sys
        from pathlib import Path
        from quadloom.stores.lock import WarehouseLock
        lock = WarehouseLock(Path(sys.argv[1]))
        print("locked", flush=True)
        sys.stdin.readline()
        lock.release()
        print("released", flush=True)
        sys.stdin.readline()
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        stdin, stdout = owner.stdin, owner.stdout
        assert stdin is not None and stdout is not None
        assert stdout.readline() == "locked\n"
        waits: list[float] = []

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 1:
                stdin.write("\n")
                stdin.flush()
                assert stdout.readline() == "released\n"

        WarehouseLock(tmp_path, sleep=wait).release()
        assert len(waits) == 1
        stdin.write("\n")


def test_what_is_not_ours_is_refused(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE theirs(x)")
    connection.close()
    with pytest.raises(StoreError, match="not a Quadloom database"):
        SqliteDatabase.open(foreign, SCHEMA)
    (tmp_path / "noise.db").write_bytes(b"noise " * 1000)
    with pytest.raises(StoreError, match="not a database"):
        SqliteDatabase.open(tmp_path / "noise.db", SCHEMA)
    path = tmp_path / "newer.db"
    SqliteDatabase.open(path, SCHEMA).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.raises(StoreError, match="schema version 99"):
        SqliteDatabase.open(path, SCHEMA)
    with pytest.raises(StoreError, match="no warehouse"):
        SqliteDatabase.read_only(tmp_path / "none.db")
    with pytest.raises(StoreError, match="cannot use"):
        SqliteDatabase.open(tmp_path / "none" / "x.db", SCHEMA)


def test_readers_see_commits_beside_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "quadloom.db"
    owner = SqliteDatabase.open(path, SCHEMA)
    catalog = SqliteCatalog(owner)
    reader = SqliteDatabase.read_only(path)
    beside = SqliteCatalog(reader)
    frontier = SqliteFrontier(reader, FrontierPolicy(), now=0.0)
    with owner.transaction():
        catalog.values.put("name", b"1")
        assert beside.values.get("name") is None
    assert beside.values.get("name") == b"1"
    assert frontier.stats(0.0).total == 0
    with pytest.raises(StoreError):
        beside.values.put("name", b"2")
    reader.close()
    owner.close()


def test_swallowed_inner_failures_still_undo_the_outer_transaction(tmp_path: Path) -> None:
    database = SqliteDatabase.open(tmp_path / "quadloom.db", SCHEMA)
    catalog = SqliteCatalog(database)
    with database.transaction():
        catalog.values.put("name", b"1")
        try:
            with database.transaction():
                raise ValueError("inner")
        except ValueError:
            pass
    assert catalog.values.get("name") is None
    database.close()


def test_codes_become_our_words() -> None:
    for code, kind in ((sqlite3.SQLITE_FULL, DiskFull), (sqlite3.SQLITE_CORRUPT, StoreError)):
        error = sqlite3.OperationalError("words")
        error.sqlite_errorcode = code
        translated = translate(error, Path("/x/quadloom.db"))
        assert type(translated) is kind
        assert translated.hint


def test_a_full_disk_undoes_the_transaction_and_nothing_else(tmp_path: Path) -> None:
    """A limit on file size stands for the end of the disk: writes fail with EFBIG, as a quota would make them."""
    script = """
        import resource, signal, sys
        from pathlib import Path
        from quadloom.errors import StoreError
        from quadloom.stores.sqlite.catalog import SqliteCatalog
        from quadloom.stores.sqlite.database import SqliteDatabase
        from quadloom.stores.sqlite.schema import SCHEMA
        database = SqliteDatabase.open(Path(sys.argv[1]), SCHEMA)
        catalog = SqliteCatalog(database)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, resource.RLIM_INFINITY))
        try:
            for number in range(10_000):
                with database.transaction():
                    for part in range(5):
                        catalog.values.put(f"{number:05d}/{part}", bytes(5_000))
                print(number, flush=True)
        except StoreError as error:
            print(type(error).__name__)
    """
    path = tmp_path / "quadloom.db"
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    *acknowledged, last = ended.stdout.split()
    assert last in ("DiskFull", "StoreError")
    assert len(acknowledged) > 10
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    database = SqliteDatabase.open(path, SCHEMA)
    names = SqliteCatalog(database).values.names("")
    assert names == [f"{int(number):05d}/{part}" for number in acknowledged for part in range(5)]
    assert database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    database.close()


def test_a_look_at_the_mark_keeps_the_locks_of_sqlite(tmp_path: Path) -> None:
    """Without its lock on the WAL index, the next process that opens the database would truncate it under the owner."""

    def locks() -> list[str]:
        file = os.stat(tmp_path / "quadloom.db-shm").st_ino
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
        return [line.partition(":")[2] for line in lines if f":{file} " in line and f" {os.getpid()} " in line]

    owner = SqliteDatabase.open(tmp_path / "quadloom.db", SCHEMA)
    owner.execute("SELECT count(*) FROM sqlite_master").fetchone()
    before = locks()
    assert before
    mark = owner.changed_mark()
    assert locks() == before
    reader = SqliteDatabase.read_only(tmp_path / "quadloom.db", SCHEMA)
    assert reader.changed_mark() == mark
    reader.close()
    assert locks() == before
    owner.close()
    descriptors = [os.readlink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd") if _is_there(name)]
    assert not [name for name in descriptors if str(tmp_path) in name]


def _is_there(descriptor: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{descriptor}")


def test_two_processes_share_a_warehouse_but_no_part_of_it(tmp_path: Path) -> None:
    script = """
        import sys, time
        from pathlib import Path
        from quadloom.stores.lock import WarehouseLock
        lock = WarehouseLock(Path(sys.argv[1]), ["frontier"])
        print("locked", flush=True)
        time.sleep(60)
    """
    other = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(WarehouseLocked, match=f"process {other.pid}"):
            WarehouseLock(tmp_path)
        with pytest.raises(WarehouseLocked, match=f"process {other.pid} fetches"):
            WarehouseLock(tmp_path, ["frontier", "indexes"])
        lock = WarehouseLock(tmp_path, ["indexes"])
        assert is_working(tmp_path, other.pid)
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert not is_working(tmp_path, other.pid)
    lock.release()
    WarehouseLock(tmp_path).release()
