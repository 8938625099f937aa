"""Cost of settling on PostgreSQL: batches of 100 pages with 25 links each, 15 of them met before; catalog included.

CPU of client and server, round trips and statements of a batch.
Run: PYTHONPATH=src:tests:tests/contract python tests/bench/bench_postgres.py [batches]
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from contract_backends import PostgresState
from contract_records import found, settlement

from quadloom.model.link import Discovery
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.postgres.database import PostgresDatabase

PAGES, LINKS, NEW, HOSTS = 100, 25, 10, 200


class Counting:
    """How often the client waits for an answer, and how many statements it sends."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.waits = self.statements = 0
        execute, write = database.execute, database.write

        def counted(statement: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
            self.waits += 1
            self.statements += 1
            return execute(statement, values)

        def sent(statement: str, values: tuple[object, ...] = ()) -> None:
            self.statements += 1
            write(statement, values)

        database.execute, database.write = counted, sent  # type: ignore[method-assign,assignment]


def links(batch: int, page: int) -> tuple[Discovery, ...]:
    number = batch * PAGES + page
    fresh = [found(f"http://h{number % HOSTS}.example/articles/{number}/{k}", anchor="a title") for k in range(NEW)]
    old = [found(f"http://h{(number * 7 + k) % HOSTS}.example/old/{k}") for k in range(LINKS - NEW)]
    return (*fresh, *old)


def server_seconds() -> float:
    """CPU of all processes of the server (and of any other PostgreSQL on this machine)."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            command = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if b"postgres" in command:
            total += (int(fields[11]) + int(fields[12])) / 100
    return total


def main(batches: int) -> None:
    state = PostgresState(Path())
    frontier = state.open(FrontierPolicy(delay=0.0, ip_delay=0.0, per_site=1000), 0.0)
    assert state._database is not None
    seeds = [found(f"http://h{host}.example/{k}") for host in range(HOSTS) for k in range(batches * PAGES // HOSTS + 1)]
    frontier.add(seeds, 0.0)
    counting = Counting(state._database)
    lease = settle = 0.0
    wall, before = time.perf_counter(), server_seconds()
    for batch in range(batches):
        start = time.process_time()
        visits = frontier.lease(PAGES, float(batch))
        lease += time.process_time() - start
        ended = [settlement(visit, discoveries=links(batch, page)) for page, visit in enumerate(visits)]
        start = time.process_time()
        with state.catalog.transaction():
            frontier.settle(ended, float(batch))
            state.catalog.record(ended, float(batch))
        settle += time.process_time() - start
    wall = time.perf_counter() - wall
    served = server_seconds() - before
    pages = batches * PAGES
    print(
        f"{pages} pages, {LINKS} links each, {NEW} new: client CPU a page: lease {lease / pages * 1e6:.0f} us, "
        f"settle {settle / pages * 1e6:.0f} us; server CPU a page {served / pages * 1e6:.0f} us; "
        f"a batch of {PAGES}: {wall / batches * 1e3:.1f} ms, {counting.statements / batches:.1f} statements, "
        f"{counting.waits / batches:.1f} waits"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
