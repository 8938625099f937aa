"""What it takes to bring a database of version 0.2.0 up to date, by its number of URLs; a fifth of them are pages.

Run: PYTHONPATH=src:tests python tests/bench/bench_postgres_migration.py [1000000 …]
A million URLs take about 1.5 GB, and twice that while they are copied.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import psycopg

from postgres_server import start_postgres
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.schema import MIGRATIONS

_VERSION = 3  # of the tables of 0.2.0
_URLS_OF_HOST = 500
_RECORD = 1500  # bytes of a page's row that are a record


def fill(url: str, urls: int) -> None:
    hosts = max(1, urls // _URLS_OF_HOST)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE quadloom_schema(version int NOT NULL)")
        connection.execute(f"INSERT INTO quadloom_schema VALUES({_VERSION})")
        for migration in MIGRATIONS[:_VERSION]:
            for statement in migration:
                connection.execute(statement)
        connection.execute(
            "INSERT INTO host(shard, name, site, queued) SELECT n % 256, 'h' || n || '.example', "
            f"'h' || n || '.example', {_URLS_OF_HOST} FROM generate_series(1, {hosts}) n"
        )
        keys = f"SELECT n, 1 + n % {hosts} AS host, hashint8extended(n, 1) AS key FROM generate_series(1, {urls}) n"
        connection.execute(
            "INSERT INTO url(host_id, fingerprint, href, state, priority, depth, score, kind, via, anchor) "
            "SELECT host, key, 'http://h' || host || '.example/articles/' || n || '/a-title-of-some-length', 0, 2, 3, "
            f"0, 'plain', 1, 'an anchor' FROM ({keys}) k"
        )
        connection.execute(f"INSERT INTO queue SELECT host, 2, 3, 0, key FROM ({keys}) k")
        record = f"decode(repeat(md5(n::text), {_RECORD // 16}), 'hex')"
        pages = f"FROM ({keys}) k WHERE n % 5 = 0"
        connection.execute(
            "INSERT INTO page(fingerprint, shard, host, outcome, kind, status, fetched_at, quads_digest, text_digest, "
            f"indexed_quads, indexed_text, record) SELECT key, host % 256, 'h' || host || '.example', 'new', 'html', "
            f"200, n, 'a', 'b', 'a', 'b', {record} {pages}"
        )
        connection.execute(f"INSERT INTO visit SELECT key, n, decode(repeat(md5(n::text), 4), 'hex') {pages}")
        connection.execute("ANALYZE")


def main(sizes: list[int]) -> None:
    for size in sizes:
        server = start_postgres(fsync=True)
        try:
            url = server.url("before")
            fill(url, size)
            with psycopg.connect(url, autocommit=True) as watching:
                before = _size(watching)
                start = time.perf_counter()
                database = PostgresDatabase.open(url)
                seconds = time.perf_counter() - start
                backend = database.execute("SELECT pg_backend_pid()")[0][0]
                cpu = int(Path(f"/proc/{backend}/schedstat").read_text().split()[0]) / 1e9
                print(
                    f"{size:,} URLs, {size // 5:,} pages: {before / 1e9:.1f} GB before, "
                    f"{_size(watching) / 1e9:.1f} after; {seconds:.0f} s, {cpu:.0f} CPU-s of the server",
                    flush=True,
                )
                database.close()
        finally:
            server.remove()


def _size(connection: psycopg.Connection[tuple[object, ...]]) -> int:
    row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    assert row is not None
    return int(str(row[0]))


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [1_000_000, 3_000_000])
