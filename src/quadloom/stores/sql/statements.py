"""Statements that SQLite and PostgreSQL have in common, each written once.

Text for both uses `?` for a value. A statement for many rows differs: SQLite runs it once for each row, PostgreSQL once
for all of them, with an array for each column (`unnest`). `insert`, `upsert`, `update` and `delete` render it for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

Value = str | bytes | int | float | None
Row = tuple[Any, ...]  # what a statement gives; each caller knows the columns it asked for
# Types of columns, by the letters of `struct`; s is text, y is bytea. A column has one type in all tables.
_TYPES = {"q": "bigint", "i": "int", "h": "smallint", "d": "float8", "s": "text", "y": "bytea"}
_KINDS = {
    name: kind
    for kind, names in {
        "q": "id host_id fingerprint via pages queued number",
        "i": "depth attempt visits failures status",
        "h": "priority state owed shard slot what",
        "d": "first second due score token at fetched_at delay next_at blocked_until ready_at spent budget crawl_delay "
        "expires",
        "s": "name site address block_reason href key kind anchor outcome etag last_modified host subscription owner",
        "y": "record data value quads_digest text_digest indexed_quads indexed_text",
    }.items()
    for name in names.split()
}
_NOTHING: Mapping[str, str] = MappingProxyType({})


class BulkStatement(NamedTuple):
    """A statement for many rows. `kinds`: the types of their columns."""

    sqlite: str
    postgres: str
    kinds: str


class SqlCondition(NamedTuple):
    """A part of a statement, with its values."""

    sql: str = ""
    values: Sequence[object] = ()


EVERYTHING = SqlCondition()


class Dialect(NamedTuple):
    """Words that differ. `nested_join`: a join that looks up each row of the left side in the right one. `for_update`:
    what locks the rows of a query. `by_name`: how names are sorted."""

    nested_join: str
    for_update: str
    by_name: str
    least: str
    greatest: str


class SqlDatabase(Protocol):
    """What the statements need of a database. Every method joins an enclosing transaction."""

    dialect: Dialect

    @property
    def writable(self) -> bool: ...

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing; inner blocks join the outer one."""
        ...

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Iterable[Row]:
        """Run a statement and return its rows."""
        ...

    def write(self, statement: str, values: Sequence[Any] = ()) -> object:
        """Run a statement without rows. In a transaction, its error may be raised by a later statement."""
        ...

    def write_many(
        self, statement: BulkStatement, rows: Iterable[Sequence[Any]], narrowed: SqlCondition = EVERYTHING
    ) -> None:
        """Run a statement for all rows, if there are any. `narrowed`: a further condition, for an update."""
        ...

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run an UPDATE or a DELETE. Returns the number of rows."""
        ...

    def among(self, statement: str, keys: Sequence[int] | Sequence[str]) -> Iterable[Row]:
        """Rows of a query with `{keys}` after a column: those in which the column has one of the keys."""
        ...


def first(rows: Iterable[Row]) -> Row | None:
    """None = there is none."""
    return next(iter(rows), None)


def insert(table: str, columns: str, conflict: str = "") -> BulkStatement:
    """`columns`: names separated by blanks, in the order of the rows' values."""
    names = columns.split()
    head, marks = f"INSERT INTO {table}({', '.join(names)})", ",".join("?" * len(names))
    return BulkStatement(
        f"{head} VALUES({marks}) {conflict}", f"{head} SELECT * FROM {_unnest(names)} {conflict}", _kinds(names)
    )


def upsert(table: str, columns: str, key: str, changes: Mapping[str, str] = _NOTHING) -> BulkStatement:
    """Insert rows, or replace the other columns of those that have the same key. `changes`: expressions for them."""
    keys = key.split()
    rest = [name for name in columns.split() if name not in keys]
    setting = ", ".join(f"{name} = {changes.get(name, f'excluded.{name}')}" for name in rest)
    return insert(table, columns, f"ON CONFLICT({', '.join(keys)}) DO UPDATE SET {setting}")


def update(table: str, columns: str, key: str, changes: Mapping[str, str] = _NOTHING) -> BulkStatement:
    """A row has the new values of `columns`, then its key. `changes`: expressions for these or other columns, in which
    `{name}` is a value of the row, and columns have the name of the table in front."""
    names, keys = columns.split(), key.split()
    targets = {**{name: f"{{{name}}}" for name in names}, **changes}
    setting = ", ".join(f"{name} = {value}" for name, value in targets.items())
    return _both(f"UPDATE {table} SET {setting}", "FROM", table, [*names, *keys], keys)


def delete(table: str, key: str) -> BulkStatement:
    """A row is a key."""
    return _both(f"DELETE FROM {table}", "USING", table, key.split(), key.split())


def _both(head: str, source: str, table: str, names: Sequence[str], keys: Sequence[str]) -> BulkStatement:
    """`names`: of a row's values, some of which are the `keys` of the row to change."""
    where = "WHERE " + " AND ".join(f"{table}.{name} = {{{name}}}" for name in keys)
    numbered = {name: f"?{place}" for place, name in enumerate(names, 1)}
    joined = {name: f"w.{name}" for name in names}
    return BulkStatement(
        f"{head} {where}".format(**numbered),
        f"{head.format(**joined)} {source} {_unnest(names)} {where.format(**joined)}",
        _kinds(names),
    )


def _unnest(names: Sequence[str]) -> str:
    arrays = ", ".join(f"?::{_TYPES[_KINDS[name]]}[]" for name in names)
    return f"unnest({arrays}) AS w({', '.join(names)})"


def _kinds(names: Sequence[str]) -> str:
    return "".join(_KINDS[name] for name in names)
