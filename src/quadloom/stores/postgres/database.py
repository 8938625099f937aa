"""One PostgreSQL connection as the stores use it: nested transactions, and retries while a server restarts.

What is acknowledged is on the server's disk: `synchronous_commit` is switched on, whatever the server's default is.
No server may keep a thread waiting for ever: the server ends statements that take too long, TCP notices a peer that
is gone, and a thread of this process cuts connections on which nothing comes back (`ConnectionWatch`).
A lost connection is opened again with back-off. Outside a transaction the statement is simply repeated; inside one
nothing was acknowledged, so the transaction is undone and `StoreUnavailable` means that it may be tried again: settling
twice is harmless.

The driver is an optional part (`pip install quadloom[cluster]`), so it is imported when the first connection is made.
A password may be in the URL; it is never shown, since no message repeats a URL.
"""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from quadloom.errors import ServerFull, SettingsError, StoreError, StoreUnavailable
from quadloom.process.retry import doubling, retry, within
from quadloom.process.waiting import Waiting
from quadloom.stores.postgres.arrays import column, columns, register
from quadloom.stores.postgres.schema import ADDITIVE, MIGRATIONS
from quadloom.stores.postgres.timeouts import network, watch
from quadloom.stores.sql.statements import EVERYTHING, BulkStatement, Dialect, Row, SqlCondition
from quadloom.stores.sql.transactions import Transactions

if TYPE_CHECKING:
    import psycopg
    from psycopg import Connection, Pipeline

_log = logging.getLogger(__name__)
T = TypeVar("T")
PATIENCE = 60.0  # seconds after which a store gives up on a server that cannot be reached
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
STATEMENT_SECONDS = 120.0  # after which the server ends a statement
_ROOM_PAUSE = 2.0  # seconds until a full disk may have room again
_LARGE = 100_000  # rows whose copying is logged
_COPIED = re.compile(r"FROM (\w+_whole)\b")
# A worker that is stopped in the middle of a transaction must not hold its shards' rows for ever.
_IDLE_IN_TRANSACTION = "15s"
# Every statement searches by key. Fresh tables have no statistics, so the planner would scan them, and its estimate of
# the cost would make it compile machine code for half a second.
_PLANNING = "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET jit = off"


class PostgresDatabase(Transactions):
    """A `SqlDatabase`. Raises only `StoreError` and its kinds. One thread at a time; others wait."""

    dialect = Dialect(
        nested_join="JOIN", for_update=" FOR UPDATE", by_name='h.name COLLATE "C"', least="least", greatest="greatest"
    )

    def __init__(
        self, url: str, *, writable: bool, patience: float = PATIENCE, statement_seconds: float = STATEMENT_SECONDS
    ) -> None:
        super().__init__()
        self.writable = writable
        self.waits: Callable[[], bool] = lambda: False  # True = wait for the server, however long it is away
        self.waiting = Waiting()  # for room on the server's disk
        self._cause: StoreError | None = None  # the first error of the transaction in progress
        self.away_seconds = 0.0  # that a lost connection took to come back
        self.busy_since = 0.0  # monotonic; 0 = no statement is in progress
        self.statement_seconds = statement_seconds
        self.name = place_of(url)
        self._url = url
        self._patience = patience
        self._pipeline: AbstractContextManager[Pipeline] | None = None
        self._channels: list[str] = []
        self._connection = self._connect()
        watch.add(self)

    @classmethod
    def open(cls, url: str, *, patience: float = PATIENCE) -> PostgresDatabase:
        """For writing. Missing tables are created, older ones migrated."""
        database = cls(url, writable=True, patience=patience)
        database._migrate()
        return database

    @classmethod
    def read_only(cls, url: str, *, patience: float = 5.0) -> PostgresDatabase:
        """For reading, also while workers write. Raises `StoreError` if there is no warehouse yet."""
        database = cls(url, writable=False, patience=patience)
        if database.schema_version() != len(MIGRATIONS):
            database._refuse_version(database.schema_version())
        return database

    def _begin(self) -> None:
        self._cause = None
        self.write("BEGIN")
        self._pipeline = self._connection.pipeline()
        self._pipeline.__enter__()

    def _finish(self) -> None:
        assert self._pipeline is not None
        driver, leave = _driver(), self._pipeline.__exit__
        failures: list[psycopg.Error] = []
        with self._watched():
            # The pipeline is always left: a rollback inside it would only be sent.
            for step in (self._commit, partial(leave, None, None, None)):
                try:
                    step()  # what the server refused is raised here
                except driver.Error as error:
                    failures.append(error)
        self._pipeline = None
        if failures:
            translated = self._translated(failures[0])  # before the rollback, which may open another connection
            self._rollback()
            if self._broken:
                return  # the error that broke the transaction is on its way
            raise translated from failures[0]
        if self._broken:
            self._rollback()
        else:
            self.waiting.off()

    def _commit(self) -> None:
        if not self._broken:
            self._connection.execute("COMMIT")

    def _rollback(self) -> None:
        psycopg = _driver()
        try:
            self._connection.execute("ROLLBACK")
        except psycopg.Error:
            self._reconnect()
        self._run_undo()

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Run a statement and return its rows."""
        return self._retried(lambda: self._connection.execute(_native(statement), values).fetchall())

    def write(self, statement: str, values: Sequence[object] = ()) -> None:
        """Run a statement without rows. In a transaction it is only sent: an error is raised by the next `execute`, or
        by the commit, so that a batch does not wait for one response after the other."""
        self._retried(lambda: self._connection.execute(_native(statement), values))

    def write_many(
        self, statement: BulkStatement, rows: Iterable[Sequence[object]], narrowed: SqlCondition = EVERYTHING
    ) -> None:
        """Sent with one array for each column."""
        sent = rows if isinstance(rows, list) else list(rows)
        if sent:
            self.write(statement.postgres + narrowed.sql, (*columns(statement.kinds, sent), *narrowed.values))

    def change(self, statement: str, values: Sequence[object] = ()) -> int:
        counted = f"WITH changed AS ({statement} RETURNING 1) SELECT count(*) FROM changed"
        return int(self.execute(counted, values)[0][0])

    def among(self, statement: str, keys: Sequence[int] | Sequence[str]) -> list[Row]:
        if not keys:
            return []
        kind, type = ("s", "text") if isinstance(keys[0], str) else ("q", "bigint")
        return self.execute(statement.format(keys=f"= ANY(?::{type}[])"), (column(kind, keys),))

    def _retried(self, action: Callable[[], T]) -> T:
        psycopg = _driver()
        with self._lock:
            while True:
                try:
                    with self._watched():
                        return action()
                except psycopg.Error as error:
                    translated = self._translated(error)
                    if self._depth or not (self._connection.broken or _may_wait(translated)):
                        raise translated from error
                if self._connection.broken:
                    self._reconnect()
                else:
                    time.sleep(_ROOM_PAUSE)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        self.busy_since = time.monotonic()
        try:
            yield
        finally:
            self.busy_since = 0.0

    @contextmanager
    def unhurried(self) -> Iterator[None]:
        """A transaction for statements that may take as long as they need: they change or read whole tables."""
        seconds, self.statement_seconds = self.statement_seconds, float("inf")
        try:
            with self.transaction():
                self.write("SET LOCAL statement_timeout = 0")
                yield
        finally:
            self.statement_seconds = seconds

    def compact(self) -> None:
        """Write all tables again without the remains of deleted rows. Other sessions wait meanwhile."""
        seconds, self.statement_seconds = self.statement_seconds, float("inf")
        try:
            self.write("SET statement_timeout = 0")
            for (table,) in self.execute(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
            ):
                self.write(f'VACUUM (FULL, ANALYZE) "{table}"')
        finally:
            self.statement_seconds = seconds
            self.write(f"SET statement_timeout = {int(seconds * 1000) if seconds < float('inf') else 0}")

    def cut(self) -> None:
        """From another thread: end the connection, so that a thread that waits for an answer gets an error."""
        with suppress(OSError, ValueError), socket.socket(fileno=os.dup(self._connection.pgconn.socket)) as twin:
            twin.shutdown(socket.SHUT_RDWR)

    def listen(self, channel: str) -> None:
        """Receive notifications on this channel, also after the connection was lost and opened again."""
        self._channels.append(channel)
        self.write(f'LISTEN "{channel}"')

    def wait(self, seconds: float) -> None:
        """Return at a notification, or after `seconds`. A server that cannot be reached raises nothing."""
        psycopg = _driver()
        try:
            for _ in self._connection.notifies(timeout=seconds, stop_after=1):
                return
        except psycopg.Error:
            time.sleep(min(seconds, _LONGEST_PAUSE))

    def close(self) -> None:
        self._connection.close()

    def _connect(self) -> Connection[Row]:
        """Waits for a server that is starting, or as long as `waits` says; fails at once for a wrong password or
        name."""
        pauses = within(self._patience, doubling(_FIRST_PAUSE, _LONGEST_PAUSE), unless=lambda: self.waits())
        return retry(self._new_connection, pauses, StoreUnavailable)

    def _new_connection(self) -> Connection[Row]:
        psycopg = _driver()
        try:
            connection: Connection[Row] = psycopg.connect(self._url, autocommit=True, **network(self._url))
            register(connection.adapters)
            connection.execute("SET synchronous_commit = on")
            if self.statement_seconds < float("inf"):
                connection.execute(f"SET statement_timeout = {int(self.statement_seconds * 1000)}")
            connection.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_IN_TRANSACTION}'")
            connection.execute(_PLANNING)
            connection.execute("SET default_transaction_read_only = " + ("off" if self.writable else "on"))
            return connection
        except psycopg.ProgrammingError:
            raise SettingsError(
                f"{self.name} is not an address that PostgreSQL's library understands",
                hint="write postgresql://user@host:5432/database; put a password into ~/.pgpass or PGPASSWORD",
            ) from None
        except psycopg.OperationalError as error:
            raise _refusal(error, self.name) or StoreUnavailable(
                f"no PostgreSQL server answers at {self.name}: {_first_line(error)}",
                hint="start the server, or correct host and port in stores.frontier; what was settled is safe",
            ) from None

    def _reconnect(self) -> None:
        self._connection.close()
        lost = time.monotonic()
        self._connection = self._connect()
        self.away_seconds += time.monotonic() - lost
        for channel in self._channels:
            self._connection.execute(f'LISTEN "{channel}"')

    def _translated(self, error: psycopg.Error) -> StoreError:
        """What follows from the first error of a transaction is that error again: it says nothing about the cause."""
        errors = _driver().errors
        if self._cause is not None and isinstance(error, (errors.InFailedSqlTransaction, errors.PipelineAborted)):
            return self._cause
        found = self._recognised(error)
        if self._depth and self._cause is None:
            self._cause = found
        return found

    def _recognised(self, error: psycopg.Error) -> StoreError:
        errors = _driver().errors
        if isinstance(error, errors.DiskFull) or "No space left on device" in str(error):
            self.waiting.on(f"room on the disk of {self.name}")
            return ServerFull(
                f"no room left on the server of {self.name}; all that was acknowledged is safe",
                hint="free some space there and run the same command again: it resumes",
                waits=self.waits,
            )
        if isinstance(error, errors.QueryCanceled):
            return StoreUnavailable(
                f"{self.name} did not finish a statement within {self.statement_seconds:g} s",
                hint="the server is overloaded, or somebody holds a lock; nothing acknowledged is lost",
            )
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return StoreError(
                f"{self.name} accepts no writes: it is a standby, or its default_transaction_read_only is on",
                hint="give the address of the primary; with several hosts in it, add ?target_session_attrs=read-write",
            )
        retryable = (errors.DeadlockDetected, errors.SerializationFailure, errors.AdminShutdown, errors.CrashShutdown)
        if self._connection.broken or isinstance(error, retryable):
            return StoreUnavailable(
                f"the connection to {self.name} was lost: {_first_line(error)}",
                hint="nothing acknowledged is lost; run the same command again when the server is back",
            )
        return StoreError(f"cannot use {self.name}: {_first_line(error)}", hint="look at the server's log")

    def schema_version(self) -> int:
        """0 = there are no tables yet."""
        # Read from the catalog: `to_regclass` may cache that there is no table although another worker just created it.
        made = self.execute(
            "SELECT FROM pg_class WHERE relname='quadloom_schema' AND relnamespace = current_schema()::regnamespace"
        )
        if not made:
            return 0
        return int(self.execute("SELECT version FROM quadloom_schema")[0][0])

    def _refuse_version(self, version: int) -> None:
        self.close()
        if version == 0:
            raise StoreError(
                f"there is no warehouse at {self.name} yet",
                hint="start a worker on each machine: `quadloom worker`; then `quadloom seeds add URL` on any of them",
            )
        raise StoreError(
            f"{self.name} has schema version {version}, this program knows version {len(MIGRATIONS)}",
            hint="use the newest Quadloom version on all machines; workers bring older tables up to date",
        )

    def _migrate(self) -> None:
        if self.schema_version() == len(MIGRATIONS):
            return
        with self.unhurried():
            # Several workers may start at once. The lock is for the whole database, since all schemas share lock names.
            self.execute("SELECT pg_advisory_xact_lock(hashtext('quadloom schema'))")
            version = self.schema_version()
            if version > len(MIGRATIONS):
                self._refuse_version(version)
            if version and not ADDITIVE.issuperset(range(version + 1, len(MIGRATIONS) + 1)):
                self._refuse_workers(version)
            if version == 0:
                self.write("CREATE TABLE quadloom_schema(version int NOT NULL)")
                self.write("INSERT INTO quadloom_schema VALUES(0)")
            for statement in chain.from_iterable(MIGRATIONS[version:]):
                if version:
                    self._tell(statement)
                self.write(statement)
            self.write("UPDATE quadloom_schema SET version=%s", (len(MIGRATIONS),))

    def _refuse_workers(self, version: int) -> None:
        ((workers,),) = self.execute("SELECT count(*) FROM worker WHERE until > clock_timestamp()")
        if workers:
            raise StoreError(
                f"{self.name} has schema version {version}, and its change to version {len(MIGRATIONS)} would break "
                f"{workers} workers that run or died a moment ago",
                hint="stop them first: `quadloom stop --all-workers`",
            )

    def _tell(self, statement: str) -> None:
        """Log what takes minutes: a worker that seems to hang would be killed, and all of it begun again."""
        copied = _COPIED.search(statement)
        if copied is None:
            return
        rows = int(
            self.execute(
                "SELECT greatest(0, reltuples)::bigint FROM pg_class WHERE oid = %s::regclass", copied.groups()
            )[0][0]
        )
        if rows >= _LARGE:
            _log.warning(
                "%s is brought up to date: about %s rows of the table %s are copied, some minutes for each ten million",
                self.name,
                f"{rows:,}",
                copied[1].removesuffix("_whole"),
            )


@lru_cache(maxsize=1024)
def _native(statement: str) -> str:
    """With the driver's sign for a value."""
    return statement.replace("?", "%s")


def _may_wait(error: StoreError) -> bool:
    return isinstance(error, ServerFull) and error.waits()


def place_of(url: str) -> str:
    """Server and database for messages, without user, password and options."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"
    except ValueError:
        return "postgresql://…"


def plain(text: str) -> str:
    """Text as PostgreSQL can store it: without NUL and lone surrogates."""
    if text.isascii():
        return text.replace("\x00", "") if "\x00" in text else text
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _refusal(error: psycopg.OperationalError, name: str) -> StoreError | None:
    """Errors that waiting does not cure, recognised by PostgreSQL's messages: before a session there are no codes."""
    words = _first_line(error)
    if "password" in words or "authentication" in words or "pg_hba.conf" in words:
        return StoreError(
            f"{name} refuses the user: {words}",
            hint="check the user in stores.frontier; put the password into ~/.pgpass or PGPASSWORD",
        )
    if "does not exist" in words:
        return StoreError(f"{name}: {words}", hint="create it with `createdb`, or correct the name in stores.frontier")
    if "could not translate host name" in words or "failed to resolve host" in words.lower():
        return StoreError(f"{name}: {words}", hint="correct the host name in stores.frontier")
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _driver() -> Any:
    """The module `psycopg`. Any, because it may not be installed."""
    try:
        import psycopg
    except ImportError:
        raise SettingsError(
            "PostgreSQL needs the package psycopg, which is not installed",
            hint="pip install quadloom[cluster]",
        ) from None
    return psycopg
