"""SQL over a lake, by DuckDB: the tables are views of the files that the manifests list at this moment."""

from __future__ import annotations

from typing import Any

import msgspec

from quadloom.errors import QuerySyntaxError, StoreError, UsageError
from quadloom.maintenance.lake.place import (
    TABLES,
    BucketLake,
    DirectoryLake,
    LakeLayout,
    read_layout,
    read_manifest,
)
from quadloom.maintenance.lake.tables import arrow, schema


class LakeAnswer(msgspec.Struct, frozen=True):
    """Names of columns, and rows of values."""

    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]


def ask(place: DirectoryLake | BucketLake, sql: str, *, limit: int = 0) -> LakeAnswer:
    """Answer one SQL statement over the tables `quads`, `pages`, `links` and `findings`. `limit`: most rows, 0 = all.
    Raises `QuerySyntaxError` with DuckDB's own words."""
    duckdb = _duckdb()
    files = lake_files(place)
    with duckdb.connect() as connection:
        for table in TABLES:
            _define(connection, place, table, files[table])
        try:
            found = connection.execute(sql)
            rows = found.fetchmany(limit) if limit else found.fetchall()
        except (duckdb.IOException, FileNotFoundError) as error:
            raise StoreError(
                f"a file of the lake cannot be read: {error}", hint="was the lake synced meanwhile? Ask again"
            ) from None
        except duckdb.Error as error:
            raise QuerySyntaxError(
                str(error), line=0, column=0, hint=f"the tables are {', '.join(TABLES)}: docs/howto/lake.md"
            ) from None
        return LakeAnswer(tuple(column[0] for column in found.description or ()), rows)


def lake_files(place: DirectoryLake | BucketLake) -> dict[str, list[str]]:
    """The files of each table, relative to the lake. Raises `UsageError` if there is no lake."""
    layout = read_layout(place)
    if layout is None:
        raise UsageError("there is no lake yet", hint="to write one: `quadloom lake sync`")
    return _listed(place, layout)


def _listed(place: DirectoryLake | BucketLake, layout: LakeLayout) -> dict[str, list[str]]:
    files: dict[str, list[str]] = {table: [] for table in TABLES}
    for part in range(layout.parts):
        for table, listed in read_manifest(place, part).files.items():
            files[table] += [file.name for file in listed]
    return files


def views(place: DirectoryLake | BucketLake) -> str:
    """SQL that defines the tables for any DuckDB, which must be started in the directory of the lake."""
    lines = []
    for table, files in lake_files(place).items():
        if files:
            lines.append(f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM {_read_parquet(files)};")
    return "\n".join(lines) + "\n"


def _define(connection: Any, place: DirectoryLake | BucketLake, table: str, files: list[str]) -> None:
    if not files:
        connection.register(table, schema(table).empty_table())
    elif isinstance(place, DirectoryLake):
        paths = [str(place.folder / name) for name in files]
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {_read_parquet(paths)}")
    else:
        connection.register(table, _bucket_dataset(place, table, files))


def _read_parquet(files: list[str]) -> str:
    listed = ", ".join("'" + name.replace("'", "''") + "'" for name in files)
    return f"read_parquet([{listed}], hive_partitioning = false)"


def _bucket_dataset(place: BucketLake, table: str, files: list[str]) -> Any:
    """Read by Arrow: DuckDB's own part for S3 would be downloaded at the first use."""
    arrow()
    from pyarrow import dataset, fs

    address = place.address
    scheme, _, host = address.endpoint.partition("://")
    options = {"endpoint_override": host, "scheme": scheme} if address.endpoint else {}
    if address.region:
        options["region"] = address.region
    root = f"{address.bucket}/{address.prefix}".rstrip("/")
    return dataset.dataset(
        [f"{root}/{name}" for name in files],
        schema=schema(table),
        format="parquet",
        filesystem=fs.S3FileSystem(**options),
    )


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError:
        raise UsageError("questions to a lake need the package duckdb", hint="pip install 'quadloom[lake]'") from None
    return duckdb
