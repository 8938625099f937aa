"""SQL over a lake, by DuckDB: the tables are views of the files that the manifests list at this moment.

A question reads these tables and nothing else. DuckDB could also read and write any file of the account, list folders,
open other databases, fetch URLs and download extensions; a question may come from a colleague or a program. Who wants
all that starts a DuckDB with `views`.
"""

from __future__ import annotations

from typing import Any, Self

import msgspec

from quadloom.errors import QueryRefused, QuerySyntaxError, StoreError, UsageError
from quadloom.maintenance.lake.place import (
    BucketLake,
    DirectoryLake,
    LakeLayout,
    read_layout,
    read_manifest,
)
from quadloom.maintenance.lake.tables import arrow, schema

_ELSEWHERE = "for anything else, start DuckDB with the tables: `quadloom lake views > views.sql`"


class LakeAnswer(msgspec.Struct, frozen=True):
    """Names of columns, and rows of values."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


def ask(place: DirectoryLake | BucketLake, sql: str, *, limit: int = 0) -> LakeAnswer:
    """Answer one SQL question over the tables of a lake. `limit`: most rows, 0 = all. Raises as `LakeTables.ask`."""
    with LakeTables(place) as tables:
        return tables.ask(sql, limit=limit)


class LakeTables:
    """The tables of a lake as they are now, for several questions. Use as a context manager."""

    def __init__(self, place: DirectoryLake | BucketLake) -> None:
        self._duckdb = _duckdb()
        self._files = lake_files(place)
        self._connection = self._duckdb.connect()
        for table, names in self._files.items():
            self._connection.register(table, _table(place, table, names))
        _lock(self._connection)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, sql: str, *, limit: int = 0) -> LakeAnswer:
        """Raises `QuerySyntaxError` with DuckDB's own words, and `QueryRefused` for what is not a question to these
        tables."""
        duckdb = self._duckdb
        try:
            found = self._connection.execute(_question(duckdb, self._connection, sql))
            rows = found.fetchmany(limit) if limit else found.fetchall()
        except duckdb.PermissionException as error:
            raise QueryRefused(f"not allowed: {error}", hint=_ELSEWHERE) from None
        except (duckdb.IOException, FileNotFoundError) as error:
            raise StoreError(
                f"a file of the lake cannot be read: {error}", hint="was the lake synced meanwhile? Ask again"
            ) from None
        except duckdb.Error as error:
            raise QuerySyntaxError(
                str(error), line=0, column=0, hint=f"the tables are {', '.join(self._files)}: docs/howto/lake.md"
            ) from None
        return LakeAnswer(tuple(column[0] for column in found.description or ()), rows)


def _question(duckdb: Any, connection: Any, sql: str) -> Any:
    """The one statement of `sql`. Raises `QueryRefused` for what is no question. What passes here and writes (a PIVOT
    inside COPY, an EXPLAIN ANALYZE of one) fails at the locked connection."""
    kinds = duckdb.StatementType
    statements = connection.extract_statements(sql)
    # A PIVOT is several statements to DuckDB.
    if len(statements) != 1 or statements[0].type not in (kinds.SELECT, kinds.MULTI, kinds.EXPLAIN):
        raise QueryRefused("this is not one SELECT, SHOW, DESCRIBE or EXPLAIN", hint=_ELSEWHERE)
    return statements[0]


def _lock(connection: Any) -> None:
    """From now on the connection opens no file and no address: Arrow reads the tables."""
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def lake_files(place: DirectoryLake | BucketLake) -> dict[str, list[str]]:
    """The Parquet files of each table, relative to the lake. Raises `UsageError` if there is no lake."""
    layout = read_layout(place)
    if layout is None:
        raise UsageError("there is no lake yet", hint="to write one: `quadloom lake sync`")
    return _listed(place, layout)


def _listed(place: DirectoryLake | BucketLake, layout: LakeLayout) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {table: [] for table in layout.tables}
    for part in range(layout.parts):
        for table, listed in read_manifest(place, part).files.items():
            if table in files:
                files[table] += [file.name for file in listed]
    return files


def views(place: DirectoryLake | BucketLake) -> str:
    """SQL that defines the tables for any DuckDB, which must be started in the directory of the lake."""
    lines = []
    for table, files in lake_files(place).items():
        if files:
            names = ", ".join("'" + name.replace("'", "''") + "'" for name in files)
            lines.append(
                f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM read_parquet([{names}], hive_partitioning = false);"
            )
    return "\n".join(lines) + "\n"


def _table(place: DirectoryLake | BucketLake, table: str, files: list[str]) -> Any:
    """The rows of these files; the first one says which columns there are. Arrow reads them, so that DuckDB needs no
    access to any file."""
    arrow()
    from pyarrow import dataset

    if isinstance(place, DirectoryLake):
        paths, system = [str(place.folder / name) for name in files], None
    else:
        root = f"{place.address.bucket}/{place.address.prefix}".rstrip("/")
        paths, system = [f"{root}/{name}" for name in files], _bucket(place)
    columns = None if paths else schema(table)
    return dataset.dataset(paths, schema=columns, format="parquet", filesystem=system)


def _bucket(place: BucketLake) -> Any:
    from pyarrow import fs

    address = place.address
    scheme, _, host = address.endpoint.partition("://")
    options = {"endpoint_override": host, "scheme": scheme} if address.endpoint else {}
    if address.region:
        options["region"] = address.region
    return fs.S3FileSystem(**options)


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise UsageError("questions to a lake need the package duckdb", hint="pip install 'quadloom[lake]'") from None
    return duckdb
