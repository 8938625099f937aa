"""One SQLite file and the processes that write it: the authoritative state of a warehouse.

WAL with synchronous=FULL, because what is acknowledged must survive a power cut: in a replay of write logs NORMAL lost
up to 15 acknowledged commits and FULL none, for twice the time per commit, which group commit makes up for.
The process that writes (`open`) holds `<warehouse>/lock`, see `quadloom.stores.lock`; any number of processes
read (`read_only`) at the same time.

The schema's version is the file's `user_version`. `open` brings an older file up to date by the migrations that it
lacks, each in one transaction together with its number: a process that is killed leaves the file at one version or the
next, and the next `open` continues there. A file of a newer version is refused. `read_only` changes nothing; a
process that reads an older file brings it up to date first (`bring_up_to_date`), unless a process of an older program
owns it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from quadloom.errors import DiskFull, StoreError
from quadloom.stores.lock import WarehouseLock
from quadloom.stores.sql.statements import EVERYTHING, BulkStatement, Dialect, Row, SqlCondition, Value
from quadloom.stores.sql.transactions import Transactions
from quadloom.stores.sqlite.schema import SCHEMA, Migration

APPLICATION_ID = 0x51644C6D  # "QdLm"
_KEYS = 512  # in one look-up
_COPIED_PAGES = 4096  # of the database in one step of a copy
_WAL_INDEX_HEADER = 48  # bytes, https://sqlite.org/walformat.html#the_wal_index_header


class _WalIndexFiles:
    """Open files of WAL indexes, by database.

    When a process closes any descriptor of a file, POSIX drops all its record locks on that file, those of SQLite too.
    Without them, the next process that opens the database takes the index for abandoned and truncates it, which kills
    the owner by SIGBUS. So a descriptor is kept until the last connection of this process is closed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: Counter[str] = Counter()
        self._files: dict[str, int] = {}

    def opened(self, database: str) -> None:
        with self._lock:
            self._connections[database] += 1

    def closed(self, database: str) -> None:
        with self._lock:
            self._connections[database] -= 1
            if self._connections[database] <= 0:
                del self._connections[database]
                self._drop(database)

    def header(self, database: str) -> bytes:
        """Empty = no process has the database open."""
        with self._lock:
            file = self._files.get(database)
            if file is not None and os.fstat(file).st_nlink == 0:  # removed, and perhaps created again since
                self._drop(database)
                file = None
            if file is None:
                try:
                    file = self._files[database] = os.open(f"{database}-shm", os.O_RDONLY)
                except FileNotFoundError:
                    return b""
            return os.pread(file, _WAL_INDEX_HEADER, 0)

    def _drop(self, database: str) -> None:
        file = self._files.pop(database, None)
        if file is not None:
            os.close(file)


_wal_indexes = _WalIndexFiles()


class SqliteDatabase(Transactions):
    """A connection: a `SqlDatabase`. Raises only `StoreError` and its kinds.

    Not for concurrent use: one thread at a time, which `transaction` enforces for writers.
    """

    # CROSS JOIN fixes the order of loops: one key search for each row, never a scan of the table.
    dialect = Dialect(nested_join="CROSS JOIN", for_update="", by_name="h.name", least="min", greatest="max")

    def __init__(self, connection: sqlite3.Connection, path: Path, *, writable: bool) -> None:
        super().__init__()
        self.path = path
        self.writable = writable
        self._connection = connection
        self._is_open = True
        self._identity = str(path.resolve())  # one name for one file, however it was spelled
        self._inode = path.stat().st_ino
        _wal_indexes.opened(self._identity)

    @classmethod
    def open(cls, path: Path, schema: Sequence[Migration] = SCHEMA) -> SqliteDatabase:
        """Open for writing. A missing file is created, an older one migrated. The caller holds the `WarehouseLock`."""
        try:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
            connection.execute("PRAGMA busy_timeout=5000")
            _check_identity(connection, path, len(schema))
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            # 64 MB: pages of the trees are rewritten in the log many times before they are copied once, 15 % less CPU.
            connection.execute("PRAGMA wal_autocheckpoint=16000")
            connection.execute("PRAGMA cache_size=-32768")
            connection.execute("PRAGMA temp_store=MEMORY")
        except sqlite3.Error as error:
            raise translate(error, path) from error
        database = cls(connection, path, writable=True)
        try:
            database._migrate(schema)
        except BaseException:
            database.close()
            raise
        return database

    @classmethod
    def read_only(cls, path: Path, schema: Sequence[Migration] = SCHEMA) -> SqliteDatabase:
        """Open for reading, also while an owner writes: sees every commit, takes no lock, writes nothing."""
        if not path.exists():
            raise StoreError(f"there is no warehouse at {path.parent}", hint="run `quadloom crawl URL` first")
        try:
            connection = _reading_connection(path)
            version = _check_identity(connection, path, len(schema))
        except sqlite3.Error as error:
            raise translate(error, path) from error
        if version == 0:
            connection.close()
            raise StoreError(f"there is no warehouse at {path.parent}", hint="run `quadloom crawl URL` first")
        if version < len(schema):
            connection.close()
            raise StoreError(
                f"{path} has schema version {version}, this program reads version {len(schema)}",
                hint="end a crawl by the older program, then run `quadloom verify`: it brings the warehouse up to date",
            )
        return cls(connection, path, writable=False)

    def _migrate(self, schema: Sequence[Migration]) -> None:
        """Apply the migrations that the file lacks, each in one transaction with its number."""
        for number in range(self.schema_version(), len(schema)):
            with self.transaction():
                if self.schema_version() > number:
                    continue  # another process was faster
                for statement in schema[number]:
                    self.execute(statement)
                self.execute(f"PRAGMA application_id={APPLICATION_ID}")
                self.execute(f"PRAGMA user_version={number + 1}")

    def schema_version(self) -> int:
        """0 = an empty file."""
        return int(self.execute("PRAGMA user_version").fetchone()[0])

    def changed_mark(self) -> bytes:
        """See `quadloom.stores.protocols.state.State.changed_mark`.

        The header of the WAL index holds a counter of commits and a checksum over the log; every commit rewrites it,
        for all processes. It is gone while no process has the file open; then the last one has copied the log into the
        file, whose time has changed.
        """
        return _wal_indexes.header(self._identity) + self.path.stat().st_mtime_ns.to_bytes(8, "big")

    def _begin(self) -> None:
        self.execute("BEGIN IMMEDIATE")

    def _finish(self) -> None:
        if not self._broken:
            self._check_file()
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._rollback()
                raise translate(error, self.path) from error
        else:
            self._rollback()

    def _check_file(self) -> None:
        """Commits to a deleted file succeed, and are lost when the process ends. Raises `StoreError`."""
        with contextlib.suppress(OSError):
            if self.path.stat().st_ino == self._inode:
                return
        self._rollback()
        raise StoreError(
            f"{self.path} was deleted or replaced while this process was writing to it",
            hint="put the file back if you have moved it. Otherwise run `quadloom recover`: it makes a new one from the"
            " archive, which has every page that was fetched",
        )

    def _rollback(self) -> None:
        if self._connection.in_transaction:  # SQLite rolls back by itself when the disk is full
            self._connection.execute("ROLLBACK")
        self._run_undo()

    def execute(self, statement: str, values: Sequence[Value] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    write = execute

    def write_many(
        self, statement: BulkStatement, rows: Iterable[Sequence[Value]], narrowed: SqlCondition = EVERYTHING
    ) -> None:
        assert narrowed is EVERYTHING, "one process owns all rows"
        try:
            self._connection.executemany(statement.sqlite, rows)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def change(self, statement: str, values: Sequence[Value] = ()) -> int:
        return self.execute(statement, values).rowcount

    def among(self, statement: str, keys: Sequence[int] | Sequence[str]) -> Iterator[Row]:
        for start in range(0, len(keys), _KEYS):
            part = [*keys[start : start + _KEYS]]
            part += part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))  # few sizes: statements stay prepared
            yield from self.execute(statement.format(keys=f"IN ({','.join('?' * len(part))})"), part)

    def compact(self) -> None:
        """Write the file again without free space, and empty the log: nothing of deleted rows is left in either."""
        self.execute("PRAGMA temp_store=FILE")  # a copy of the whole database
        try:
            self.execute("VACUUM")
        finally:
            self.execute("PRAGMA temp_store=MEMORY")
        if self.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
            raise StoreError(
                f"another process is reading an old state of {self.path}, which still has the deleted rows",
                hint="end that process, such as a long export, and run the same command again",
            )

    def close(self) -> None:
        self._connection.close()
        if self._is_open:
            self._is_open = False
            _wal_indexes.closed(self._identity)


def _reading_connection(path: Path) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    connection.execute("PRAGMA busy_timeout=5000")
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.OperationalError as error:
        connection.close()
        # On a read-only disk SQLite cannot make its files beside the database. Without a log nobody has it open to
        # write, so that it can be read without them.
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
            raise
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size:
            raise StoreError(
                f"{path} cannot be read on this read-only disk: the last commits are in {log.name}",
                hint="copy the warehouse to a disk that can be written; it is whole there",
            ) from error
        connection = sqlite3.connect(f"{uri}&immutable=1", uri=True, isolation_level=None)
    return connection


def copy_file(path: Path, target: Path) -> None:
    """Write a consistent copy to `target`, by SQLite's online backup: an owner goes on writing meanwhile."""
    source = SqliteDatabase.read_only(path)
    try:
        with contextlib.closing(sqlite3.connect(target)) as copy:
            source._connection.backup(copy, pages=_COPIED_PAGES, sleep=0.0)
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise translate(error, path) from error
    finally:
        source.close()


def bring_up_to_date(path: Path) -> None:
    """Migrate an older file that no process owns. Otherwise, or if it may not be written, it stays as it is."""
    if not path.exists():
        return
    with contextlib.suppress(StoreError, OSError, sqlite3.Error):
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            is_older = 0 < _check_identity(connection, path, len(SCHEMA)) < len(SCHEMA)
        if is_older:
            lock = WarehouseLock(path.parent)
            try:
                SqliteDatabase.open(path).close()
            finally:
                lock.release()


def translate(error: sqlite3.Error, path: Path) -> StoreError:
    """SQLite's error as a `StoreError`: what happened, to which file, what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _disk_is_full(path)):
        return DiskFull(
            f"no room left to write {path}; all that was acknowledged is safe",
            hint="free some space and run the same command again: it resumes",
        )
    read_archive = f"recover it from the archive: `quadloom -w {shlex.quote(str(path.parent))} recover`"
    hints = {
        sqlite3.SQLITE_IOERR: "the disk failed to read or write; check it, then run `quadloom verify`",
        sqlite3.SQLITE_CORRUPT: f"restore the file from a backup, or {read_archive}",
        sqlite3.SQLITE_NOTADB: f"restore the file from a backup, or {read_archive}; if {path.parent} is no warehouse, "
        "give another directory with -w",
        sqlite3.SQLITE_CANTOPEN: "check that the directory exists and may be written",
        sqlite3.SQLITE_READONLY: "check the rights of the directory",
        sqlite3.SQLITE_BUSY: "another process writes; try again in a moment",
    }
    return StoreError(f"cannot use {path}: {error}", hint=hints.get(code, "run `quadloom verify`"))


def _disk_is_full(path: Path) -> bool:
    """A full disk shows as an I/O error too, when the write-ahead index cannot grow."""
    try:
        room = os.statvfs(path.parent)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < 1 << 20


def _check_identity(connection: sqlite3.Connection, path: Path, newest: int) -> int:
    """The file's version; 0 = it is empty. Raises for files of other programs and of newer versions of this one."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if empty and application == 0:
        return 0
    if application != APPLICATION_ID:
        connection.close()
        raise StoreError(f"{path} is not a Quadloom database", hint="give another directory with --warehouse")
    if version > newest:
        connection.close()
        raise StoreError(
            f"{path} has schema version {version}, this program knows versions up to {newest}",
            hint="use the newest Quadloom version; a newer one has brought this warehouse up to date",
        )
    return version
