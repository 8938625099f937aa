"""One SQLite file and its one owner: the truth of a warehouse.

WAL with synchronous=FULL, because what is acknowledged must survive a power cut: in a replay of write logs NORMAL lost
up to 15 acknowledged commits and FULL none, for twice the time per commit, which group commit hides again.
Exactly one process writes (`open`, which holds `<warehouse>/lock`); any number read (`read_only`) while it does.

The lock is a POSIX record lock: the kernel drops it with the process, however it ends, and a forked child does not
inherit it, so a transform worker that outlives a killed owner does not keep the warehouse locked.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from quadloom.errors import DiskFull, StoreError, WarehouseLocked
from quadloom.stores.transactions import Transactions

APPLICATION_ID = 0x51644C6D  # "QdLm"
SCHEMA_VERSION = 1
Value = str | bytes | int | float | None
_held: set[str] = set()  # record locks do not exclude a second open within one process, so we do


class WarehouseLock:
    """Held by the process that may write. Raises `WarehouseLocked`, with the owner's pid, where there is one."""

    def __init__(self, directory: Path) -> None:
        self._path = str(directory.resolve() / "lock")
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644) if self._path not in _held else -1
        try:
            if self._file < 0:
                raise BlockingIOError(errno.EAGAIN, "held by this process")
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise self._refusal(error, directory) from None
        _held.add(self._path)
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def _refusal(self, error: OSError, directory: Path) -> StoreError:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            return StoreError(f"cannot lock {directory}: {error.strerror}", hint="use a directory on a local disk")
        pid = str(os.getpid())
        if self._file >= 0:
            pid = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
        return WarehouseLocked(
            f"the warehouse {directory} is in use by process {pid}",
            hint="wait for it or end it with `quadloom stop`; status, search and sparql work meanwhile",
        )

    def release(self) -> None:
        if self._path in _held:
            _held.discard(self._path)
            os.close(self._file)  # the file stays: unlinking it would let two owners lock two different files


class SqliteDatabase(Transactions):
    """A connection. Raises only `StoreError` and its kinds.

    Not for concurrent use: one thread at a time, which `transaction` enforces for writers.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, *, writable: bool) -> None:
        super().__init__()
        self.path = path
        self.writable = writable
        self._connection = connection

    @classmethod
    def open(cls, path: Path, schema: Iterable[str] = ()) -> SqliteDatabase:
        """Open for writing, creating what is missing. The caller holds the `WarehouseLock`."""
        try:
            connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
            connection.execute("PRAGMA busy_timeout=5000")
            _check_identity(connection, path)
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            # 64 MB: pages of the trees are rewritten in the log many times before they are copied once, 15 % less CPU.
            connection.execute("PRAGMA wal_autocheckpoint=16000")
            connection.execute("PRAGMA cache_size=-65536")
            connection.execute("PRAGMA temp_store=MEMORY")
            database = cls(connection, path, writable=True)
            with database.transaction():
                for statement in schema:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
        except sqlite3.Error as error:
            raise translate(error, path) from error
        return database

    @classmethod
    def read_only(cls, path: Path) -> SqliteDatabase:
        """Open beside a running owner: sees every commit, takes no lock, writes nothing."""
        if not path.exists():
            raise StoreError(f"there is no warehouse at {path.parent}", hint="run `quadloom crawl URL` first")
        try:
            connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None)
            connection.execute("PRAGMA busy_timeout=5000")
            _check_identity(connection, path)
        except sqlite3.Error as error:
            raise translate(error, path) from error
        return cls(connection, path, writable=False)

    def _begin(self) -> None:
        self.execute("BEGIN IMMEDIATE")

    def _finish(self) -> None:
        if not self._broken:
            try:
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                self._rollback()
                raise translate(error, self.path) from error
        else:
            self._rollback()

    def _rollback(self) -> None:
        if self._connection.in_transaction:  # SQLite rolls back by itself when the disk is full
            self._connection.execute("ROLLBACK")
        self._tell_undone()

    def execute(self, statement: str, values: Sequence[Value] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(statement, values)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def executemany(self, statement: str, rows: Iterable[Sequence[Value]]) -> None:
        try:
            self._connection.executemany(statement, rows)
        except sqlite3.Error as error:
            raise translate(error, self.path) from error

    def close(self) -> None:
        self._connection.close()


def translate(error: sqlite3.Error, path: Path) -> StoreError:
    """SQLite's words as ours: what happened, to which file, what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL or (code == sqlite3.SQLITE_IOERR and _disk_is_full(path)):
        return DiskFull(
            f"no room left to write {path}; all that was acknowledged is safe",
            hint="free some space and run the same command again: it resumes",
        )
    hints = {
        sqlite3.SQLITE_IOERR: "the disk failed to read or write; check it, then run `quadloom verify`",
        sqlite3.SQLITE_CORRUPT: "restore the file from a backup, or rebuild the warehouse from its archive",
        sqlite3.SQLITE_NOTADB: "this is not a warehouse; give another directory with --warehouse",
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


def _check_identity(connection: sqlite3.Connection, path: Path) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    empty = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
    if empty and application == 0:
        return
    if application != APPLICATION_ID:
        connection.close()
        raise StoreError(f"{path} is not a Quadloom database", hint="give another directory with --warehouse")
    if version != SCHEMA_VERSION:
        connection.close()
        raise StoreError(
            f"{path} has schema version {version}, this program knows version {SCHEMA_VERSION}",
            hint="use the Quadloom version that made it, or rebuild it from its archive",
        )
